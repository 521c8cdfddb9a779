"""Progress, callback and Ctrl-C of every estimator of the package: one table."""

import os
import subprocess
import sys

import numpy as np
import pytest
from interrupted import interrupted
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import multikernel
from multikernel.estimators.baselines import BestSingleKernel
from multikernel.kernels import RBF, Linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
NUMBERS = X[:, 0] + 0.3 * RNG.normal(size=60)
KERNELS = [(f"column {j}", RBF(gamma=0.5) if j % 2 else Linear(), [j]) for j in range(4)]
STEPS = {"gap", "active"}
PARTS = {"done", "of", "parts"}

# estimator: its parameters, so that it calls back twice at least; what each row has; whether Ctrl-C leaves a model
TABLE = {
    "DiscriminantMKLClassifier": ({"tol": 1e-10}, STEPS, True),
    "EasyMKLClassifier": ({}, STEPS, True),
    "LPBetaClassifier": ({"n_jobs": 1}, PARTS, True),
    "M3KClassifier": ({"tol": 1e-10}, STEPS, True),
    "M3KClassifierCV": ({"Cs": [0.1, 1.0], "cv": 2}, {"done", "of"}, False),
    "MKLClassifier": ({"tol": 1e-10}, STEPS, True),
    "MKLClassifierCV": ({"Cs": [0.1, 1.0], "cv": 2, "baselines": False}, {"done", "of"}, False),
    "MKLOneClass": ({"tol": 1e-10}, STEPS, True),
    "MKLRegressor": ({"tol": 1e-10}, STEPS, True),
    "MKLRegressorCV": ({"Cs": [0.1, 1.0], "cv": 2}, {"done", "of"}, False),
    "OBSCUREClassifier": ({"random_state": 0}, STEPS, True),
    "TwoStageClassifier": ({"weights": BestSingleKernel(), "n_jobs": 1}, PARTS, True),
    "TwoStageRegressor": ({"weights": BestSingleKernel(), "n_jobs": 1}, PARTS, True),
    "UFOMKLClassifier": ({"random_state": 0}, STEPS, True),
}


def make(name, **options):
    return getattr(multikernel, name)(KERNELS, **TABLE[name][0], **options)


def target(name):
    return NUMBERS if "Regressor" in name else NUMBERS > 0


def test_the_table_has_every_estimator():
    public = {name for name in multikernel.__all__ if hasattr(getattr(multikernel, name), "fit")}
    assert set(TABLE) == public


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", TABLE)
def test_verbose_shows_progress_on_a_terminal_and_plain_lines_elsewhere(name, monkeypatch, capsys):
    make(name, verbose=1).fit(X, target(name))
    out, err = capsys.readouterr()
    assert out == "" and "\x1b" not in err and ": starting\n" in err
    assert all(" active kernels, " in line or " of " in line or line.endswith("starting") for line in err.splitlines())
    assert len(err.splitlines()) >= 2
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    make(name, verbose=0).fit(X, target(name))
    assert capsys.readouterr() == ("", "")
    make(name, verbose=1).fit(X, target(name))
    out, err = capsys.readouterr()
    assert out == "" and ("active kernels" in err or " of " in err), err


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", TABLE)
def test_the_callback_is_called_with_dicts(name):
    rows = []
    model = make(name, callback=rows.append).fit(X, target(name))
    check_is_fitted(model)
    assert len(rows) >= 2
    assert all(isinstance(row, dict) and TABLE[name][1] <= set(row) for row in rows)
    assert all(isinstance(row["problem"], str) for row in rows if "CV" not in name)
    if "history_" in vars(model) and "CV" not in name:
        shown = rows[-model.n_iter_ :]
        np.testing.assert_array_equal([row["gap"] for row in shown], model.history_["gap"])


@pytest.mark.parametrize("name", TABLE)
def test_ctrl_c_keeps_the_best_model_with_a_warning_and_is_raised_again(name):
    rows = []

    def impatient(row):
        rows.append(row)
        if len(rows) == 2:
            raise KeyboardInterrupt

    model = make(name, callback=impatient)
    if TABLE[name][2]:
        with interrupted("was interrupted"):
            model.fit(X, target(name))
        assert model.status_ == "interrupted"
        assert model.predict(X).shape == (60,)
    else:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, target(name))
        with pytest.raises(NotFittedError):
            model.predict(X)
    # LP-beta goes on to choose nu for the kernels that it has
    assert len(rows) == 2 or (name == "LPBetaClassifier" and rows[2]["parts"] == "folds for nu")


def test_a_callback_must_be_callable():
    for name in TABLE:
        with pytest.raises(ValueError, match=f"'callback' parameter of {name} must be None or a callable. Got 3 inst"):
            make(name, callback=3).fit(X, target(name))


def test_a_file_gets_few_lines_or_all(capsys):
    def lines(verbose):
        make("MKLClassifierCV", verbose=verbose).set_params(Cs=np.geomspace(0.01, 100, 30).tolist()).fit(X, NUMBERS > 0)
        return capsys.readouterr().err.splitlines()

    few, all_of_them = lines(1), lines(2)
    assert all_of_them[0] == few[0] == "MKLClassifierCV: starting" and len(all_of_them) == 61 > len(few) >= 3
    assert " 1 of 60 fits" in few[1] and " 60 of 60 fits" in few[-1] and few[-1].endswith(" s")


def test_compiling_is_told(tmp_path):
    code = """
import numpy as np
from multikernel import MKLClassifier
X = np.random.default_rng(0).normal(size=(30, 2))
MKLClassifier(verbose={verbose}).fit(X, X[:, 0] > 0)
"""

    def run(verbose, cache):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
        command = [sys.executable, "-c", code.format(verbose=verbose)]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stderr

    first = run(1, tmp_path / "cache").splitlines()
    told = [line for line in first if line.startswith("multikernel: compiling ")]
    assert told[0].endswith(", once for this installation (beforehand: multikernel warm-up)") and len(told) > 1
    assert len(set(told)) == len(told) and all("warm-up" not in line for line in told[1:])
    assert "compiling" not in run(1, tmp_path / "cache") and run(0, tmp_path / "cache") == ""
