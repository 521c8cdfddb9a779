"""Checkpoints: a fit that was broken off goes on, and nothing else takes its state up."""

import errno
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from interrupted import interrupted
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import multikernel
from multikernel import MKLClassifier, MKLClassifierCV, MKLRegressor, stack_kernels
from multikernel.estimators.baselines import BestSingleKernel
from multikernel.kernels import RBF, Linear
from multikernel.model_selection import mkl_path
from multikernel.training.checkpoint import Checkpoint, StateFile, checkpointed, fingerprint
from multikernel.training.core import Settings

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
NUMBERS = X[:, 0] + np.sin(2 * X[:, 2]) + 0.3 * RNG.normal(size=60)
THREE = np.digitize(NUMBERS, (-0.5, 0.5))
KERNELS = [(f"column {j}", RBF(gamma=0.5) if j % 2 else Linear(), [j]) for j in range(4)]

# estimator -> parameters with which it calls back at least twice
TABLE = {
    "DiscriminantMKLClassifier": {"tol": 1e-10},
    "EasyMKLClassifier": {},
    "LPBetaClassifier": {"n_jobs": 1},
    "M3KClassifier": {"tol": 1e-10},
    "M3KClassifierCV": {"Cs": [0.1, 1.0], "cv": 3},
    "MKLClassifier": {"tol": 1e-10},
    "MKLClassifierCV": {"Cs": [0.1, 1.0], "cv": 3, "baselines": False},
    "MKLOneClass": {"tol": 1e-10},
    "MKLRegressor": {"tol": 1e-10},
    "MKLRegressorCV": {"Cs": [0.1, 1.0], "cv": 3, "baselines": False},
    "OBSCUREClassifier": {"random_state": 0, "tol": 1e-9, "max_iter": 12},
    "TwoStageClassifier": {"weights": BestSingleKernel(), "n_jobs": 1},
    "TwoStageRegressor": {"weights": BestSingleKernel(), "n_jobs": 1},
    "UFOMKLClassifier": {"random_state": 0, "tol": 1e-9, "max_iter": 12},
}


class Stop(Exception):
    """What a callback raises in the middle of a fit."""


def stop_at(count):
    """Return a callback that raises when it is called for this time, and the rows it got."""
    rows = []

    def callback(row):
        rows.append(row)
        if len(rows) == count:
            raise Stop

    return callback, rows


def make(name, **options):
    return getattr(multikernel, name)(KERNELS, **{**TABLE[name], **options})


def target(name):
    return NUMBERS if "Regressor" in name else THREE


def files(folder):
    return sorted(path.name for path in Path(folder).iterdir())


@pytest.fixture
def every_step(monkeypatch):
    """Let every state be written."""
    monkeypatch.setattr("multikernel.training.checkpoint.SHARE", np.inf)


def test_the_table_has_every_estimator():
    assert set(TABLE) == {name for name in multikernel.__all__ if hasattr(getattr(multikernel, name), "fit")}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", TABLE)
def test_a_fit_goes_on_after_an_exception(name, tmp_path, every_step):
    whole = make(name).fit(X, target(name))
    callback, _ = stop_at(4 if "CV" in name else 2)
    model = make(name, callback=callback, checkpoint=tmp_path)
    with pytest.raises(Stop):
        model.fit(X, target(name))
    assert len(files(tmp_path)) >= 1 and not [each for each in files(tmp_path) if not each.endswith(".npz")]
    later = []
    again = clone(model).set_params(callback=later.append).fit(X, target(name))
    assert files(tmp_path) == []
    for attribute in ("objective_", "weights_", "best_score_", "dual_coef_"):
        if hasattr(whole, attribute):
            one, two = getattr(whole, attribute), getattr(again, attribute)
            tolerance = 2e-3 if "CV" in name or name == "EasyMKLClassifier" else 1e-4
            np.testing.assert_allclose(one, two, atol=tolerance, rtol=tolerance)
    if "CV" in name:
        # the first fold of two points was done, and so was one point of the second
        assert [row["done"] for row in later] == list(range(3, 7))
    elif name in ("UFOMKLClassifier", "OBSCUREClassifier"):
        assert later[0]["epoch"] == 3 and again.objective_ == whole.objective_


def test_state_of_a_problem_is_where_it_begins(tmp_path):
    callback, rows = stop_at(4)
    model = MKLClassifier(KERNELS, C=100.0, solver="silp", tol=1e-6, checkpoint=tmp_path, callback=callback)
    with pytest.raises(Stop):
        model.fit(X, NUMBERS > 0)
    later = []
    again = clone(model).set_params(callback=later.append).fit(X, NUMBERS > 0)
    whole = clone(model).set_params(callback=None, checkpoint=None).fit(X, NUMBERS > 0)
    assert again.duality_gap_ <= 1e-6 and abs(again.objective_ - whole.objective_) <= 2e-6 * whole.objective_
    assert later[0]["gap"] < rows[0]["gap"]


def test_finished_problems_of_one_against_the_rest_are_not_solved_again(tmp_path):
    seen = []

    def callback(row):
        seen.append(row["problem"])
        if row["problem"].startswith("2"):
            raise Stop

    model = MKLClassifier(KERNELS, multiclass="ovr", tol=1e-6, checkpoint=tmp_path, callback=callback)
    with pytest.raises(Stop):
        model.fit(X, THREE)
    later = []
    again = clone(model).set_params(callback=later.append).fit(X, THREE)
    assert {row["problem"] for row in later} == {"2 and the rest"} and again.n_iter_[:2].tolist() == [0, 0]
    assert np.all(again.duality_gap_ <= 1e-6)


def test_ctrl_c_keeps_the_state_and_says_so(tmp_path):
    def impatient(row):
        raise KeyboardInterrupt

    model = MKLClassifier(KERNELS, tol=1e-10, checkpoint=tmp_path, callback=impatient)
    with interrupted("Its checkpoint stays: the same call goes on from there."):
        model.fit(X, THREE)
    assert len(files(tmp_path)) == 1
    assert clone(model).set_params(callback=None).fit(X, THREE).status_ == "converged" and files(tmp_path) == []


def broken_off(folder, **options):
    """Leave a state in a folder; return its file and the estimator."""
    model = MKLClassifier(KERNELS, tol=1e-8, checkpoint=folder, callback=stop_at(2)[0], **options)
    with pytest.raises(Stop):
        model.fit(X, THREE)
    (name,) = files(folder)
    return folder / name, model.set_params(callback=None)


@pytest.mark.parametrize("damage", ["cut", "bits", "empty", "text", "pickle", "other key", "shape"])
def test_a_damaged_file_is_reported_and_ignored(damage, tmp_path):
    path, model = broken_off(tmp_path)
    whole = path.read_bytes()
    if damage == "bits":
        spoiled = bytearray(whole)
        spoiled[len(whole) // 2] ^= 255
        path.write_bytes(spoiled)
    elif damage in ("pickle", "other key", "shape"):
        with np.load(path) as stored:
            arrays = dict(stored)
        if damage == "pickle":
            arrays["0/coef"] = np.array([Path("x")], object)
        elif damage == "shape":
            arrays["0/coef"] = np.zeros(3)
        else:
            arrays["key"] = np.array("another")
        with path.open("wb") as stream:
            np.savez(stream, **arrays)
    else:
        path.write_bytes({"cut": whole[: len(whole) // 2], "empty": b"", "text": b"nothing of the kind"}[damage])
    with pytest.warns(UserWarning, match="is damaged and ignored .*: the fit begins anew") as caught:
        model.fit(X, THREE)
    assert len(caught) == 1, [str(each.message) for each in caught]
    assert model.status_ == "converged" and files(tmp_path) == []


def test_other_data_or_settings_do_not_take_it_up(tmp_path):
    path, model = broken_off(tmp_path)
    others = [
        (clone(model), X + 1e-9, THREE, None),
        (clone(model), X, THREE[::-1].copy(), None),
        (clone(model), X, THREE, np.linspace(1, 2, 60)),
        (clone(model).set_params(C=2.0), X, THREE, None),
        (clone(model).set_params(tol=1e-6), X, THREE, None),
        (clone(model).set_params(kernels=[RBF(gamma=0.1), Linear()]), X, THREE, None),
    ]
    for other, samples, y, weight in others:
        other.fit(samples, y, sample_weight=weight)
        assert other.n_iter_ > 0 and files(tmp_path) == [path.name]
    # what changes no result does not count
    clone(model).set_params(n_jobs=1, verbose=1, memory_limit="1GB").fit(X, THREE)
    assert files(tmp_path) == []


def test_samples_of_all_kinds_have_a_hash_of_their_own(tmp_path):
    stack = np.stack([X @ X.T, np.exp(-np.square(X[:, None] - X).sum(2))])
    one = fingerprint("me", {}, stack_kernels(stack))
    assert one == fingerprint("me", {}, stack_kernels(list(stack))) and len(one) == 40
    assert one != fingerprint("me", {}, stack_kernels(stack + 1e-9))
    rows = np.arange(0, 60, 2)
    assert fingerprint("me", {}, stack_kernels(stack)[rows]) != one
    model = MKLClassifier("precomputed", checkpoint=tmp_path, tol=1e-8, callback=stop_at(2)[0])
    with pytest.raises(Stop):
        model.fit(stack_kernels(stack), THREE)
    assert model.set_params(callback=None).fit(stack_kernels(stack), THREE).status_ == "converged"
    assert files(tmp_path) == []


def test_the_hash_is_the_same_in_another_process():
    code = (
        "import numpy as np; from multikernel.training.checkpoint import fingerprint; from multikernel.kernels import "
        "RBF; print(fingerprint('me', {'kernels': [('a', RBF(gamma=0.5), [0, 1])], 'C': 1.0}, np.eye(3), ['x', 'y']))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert found == fingerprint("me", {"kernels": [("a", RBF(gamma=0.5), [0, 1])], "C": 1.0}, np.eye(3), ["x", "y"])


def test_clones_and_folds_have_files_of_their_own(tmp_path, every_step, monkeypatch):
    written = set()
    replace = os.replace

    def watch(source, target):
        written.add(Path(target).name)
        replace(source, target)

    monkeypatch.setattr(os, "replace", watch)
    model = MKLClassifier(KERNELS, tol=1e-6, checkpoint=tmp_path)
    plain = GridSearchCV(clone(model).set_params(checkpoint=None), {"C": [0.1, 1.0]}, cv=3).fit(X, THREE)
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=3).fit(X, THREE)
    # three folds of two points, and the last training
    assert len({name for name in written if name.endswith(".npz")}) == 7 and files(tmp_path) == []
    np.testing.assert_array_equal(plain.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])


def test_folds_of_a_search_at_once_and_interrupted_in_the_last_training(tmp_path, monkeypatch):
    from joblib import parallel_config

    plain = MKLClassifierCV(KERNELS, Cs=[0.1, 1.0], cv=3, tol=1e-6).fit(X, THREE)
    search = MKLClassifierCV(KERNELS, Cs=[0.1, 1.0], cv=3, tol=1e-6, checkpoint=tmp_path)
    with parallel_config("threading", n_jobs=3):
        search.fit(X, THREE)
    np.testing.assert_array_equal(plain.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])
    assert files(tmp_path) == []

    def broken(self, *args):
        raise Stop

    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(MKLClassifierCV, "_choose", broken)
        clone(search).fit(X, THREE)
    assert len(files(tmp_path)) == 3
    rows = []
    again = clone(search).set_params(callback=rows.append).fit(X, THREE)
    assert rows == [] and files(tmp_path) == []
    np.testing.assert_array_equal(plain.cv_results_["mean_test_score"], again.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(plain.weights_path_, again.weights_path_)
    assert abs(again.objective_ - plain.objective_) <= 2e-6 * plain.objective_


def test_a_path_goes_on(tmp_path):
    callback, _ = stop_at(12)
    model = MKLRegressor(KERNELS, tol=1e-8, checkpoint=tmp_path, callback=callback)
    with pytest.raises(Stop):
        mkl_path(model, X, NUMBERS, Cs=[0.1, 1.0, 10.0])
    later = []
    found = mkl_path(model.set_params(callback=later.append), X, NUMBERS, Cs=[0.1, 1.0, 10.0])
    assert np.all(found.duality_gaps <= 1e-8) and files(tmp_path) == []
    whole = mkl_path(clone(model).set_params(checkpoint=None, callback=None), X, NUMBERS, Cs=[0.1, 1.0, 10.0])
    np.testing.assert_allclose(found.weights, whole.weights, atol=1e-3)
    assert len(later) < sum(each.n_iter_ for each in whole.models)


def test_an_indefinite_kernel_that_is_repaired_forgets_the_state(tmp_path, every_step):
    K = X @ X.T
    K[0, 1:] = K[1:, 0] = 3.0 * K[0, 0]
    stack = stack_kernels([K, np.eye(60)])
    whole = MKLClassifier("precomputed", psd="clip", tol=1e-6).fit(stack, THREE)
    found = MKLClassifier("precomputed", psd="clip", tol=1e-6, checkpoint=tmp_path).fit(stack, THREE)
    assert found.objective_ == pytest.approx(whole.objective_, rel=2e-6) and files(tmp_path) == []


def test_a_folder_that_cannot_be_used_is_one_sentence(tmp_path, monkeypatch):
    for wrong in (tmp_path / "missing", 3, tmp_path / "file"):
        (tmp_path / "file").write_text("")
        with pytest.raises(ValueError, match="'checkpoint' parameter of MKLClassifier must be None or the path of an"):
            MKLClassifier(checkpoint=wrong).fit(X, THREE)

    def read_only(*args, **options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("tempfile.mkstemp", read_only)
    with pytest.raises(ValueError, match=r"must be a folder that can be written to. Got .*: Read-only file system."):
        MKLClassifier(checkpoint=tmp_path).fit(X, THREE)


def test_what_cannot_be_hashed_is_one_sentence(tmp_path):
    model = MKLClassifier([lambda A, B: A @ B.T], checkpoint=tmp_path)
    with pytest.raises(ValueError, match="'checkpoint' parameter of MKLClassifier must be None where parameters or sa"):
        model.fit(X, THREE)


def test_a_full_disk_does_not_end_the_fit(tmp_path, every_step, monkeypatch):
    save, calls = np.savez, []

    def full(stream, **arrays):
        calls.append(1)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save(stream, **arrays)

    monkeypatch.setattr(np, "savez", full)
    model = MKLClassifier(KERNELS, tol=1e-10, checkpoint=tmp_path)
    with pytest.warns(UserWarning, match="could not be written .No space left on device.: the fit goes on") as caught:
        model.fit(X, THREE)
    assert model.status_ == "converged" and len(caught) == 1 and len(calls) == 3 and files(tmp_path) == []


def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    file = StateFile.open(tmp_path, "me", "key")
    file.put({"a": np.arange(3)})
    file.write()
    (tmp_path / "me-key.abc.tmp").write_text("half a file")
    again = StateFile.open(tmp_path, "me", "key")
    assert files(tmp_path) == ["me-key.npz"] and Checkpoint(again).get("a")[0].tolist() == [0, 1, 2]
    assert Checkpoint(again).get("a", "b") is None
    # another fit of the same data has cleared away the temporary file in the middle of a write
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(FileNotFoundError()))
        again.write()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.write()


def test_states_are_written_for_a_small_part_of_the_time(tmp_path):
    with checkpointed(Settings("me"), tmp_path, "key") as settings:
        file = settings.checkpoint.file
        file.seconds, file.written = 0.01, time.perf_counter()
        before = file.written
        settings.checkpoint.put(a=np.zeros(2))
        assert file.written == before
        file.written -= 0.6
        settings.checkpoint.put(a=np.ones(2))
        assert file.written > before and files(tmp_path) == ["me-key.npz"]
    assert files(tmp_path) == []


KILLED = """
import os, signal, sys
import numpy as np
from multikernel import MKLClassifier
from multikernel.kernels import RBF, Linear
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 4))
y = np.digitize(X[:, 0] + np.sin(2 * X[:, 2]), (-0.5, 0.5))
rows = []
def callback(row):
    rows.append(row["gap"])
    if len(rows) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
import multikernel.training.checkpoint as checkpoint
checkpoint.SHARE = np.inf
model = MKLClassifier([("a", RBF(gamma=0.5), [0, 1]), ("b", Linear(), [2, 3]), ("c", RBF(gamma=2.0), [2])], tol=1e-8,
                      solver="alternating", checkpoint=sys.argv[1], callback=callback).fit(X, y)
print(rows[0], model.objective_, model.duality_gap_, model.n_iter_)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals of POSIX")
def test_a_killed_process_is_taken_up_by_another(tmp_path):
    run = [sys.executable, "-c", KILLED, str(tmp_path)]
    whole = subprocess.run([*run, "0"], capture_output=True, text=True, check=True).stdout.split()
    killed = subprocess.run([*run, "150"], capture_output=True, text=True)
    assert killed.returncode == -9 and len(files(tmp_path)) == 1
    again = subprocess.run([*run, "0"], capture_output=True, text=True, check=True).stdout.split()
    assert files(tmp_path) == []
    (_, first, gap, steps), (at, objective, later, fewer) = (map(float, each) for each in (whole, again))
    assert later <= 1e-8 and abs(objective - first) <= (gap + later) * first
    assert fewer < steps and at < float(whole[0])
