"""MKLClassifier: what it keeps, its parameters, its progress, and what an interruption leaves."""

import pickle
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
from interrupted import interrupted
from problems_classifier import KERNELS, TIGHT, X, Y
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils import estimator_html_repr

from multikernel import MKLClassifier, stack_kernels
from multikernel.kernels import RBF, Polynomial, per_column
from multikernel.solvers.newton import Newton

# ---- what it keeps


def test_a_pickled_model_holds_active_kernels_and_support_vectors_only():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 8))
    y = np.abs(Z[:, 0]) + 0.2 * rng.normal(size=400) > 0.7
    model = MKLClassifier(per_column(RBF(factor=2.0)), C=0.3).fit(Z, y)
    active, m = np.count_nonzero(model.weights_), len(model.support_)
    assert active < 8 and m < 200
    assert model.model_.expansion.bank.n_kernels == active
    assert model.model_.expansion.samples.shape == (m, 8)
    assert len(pickle.dumps(model)) < m * 8 * 8 + 2 * active * m * 8 + 10_000
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(Z), model.decision_function(Z))

    K = np.array([model_kernel(Z[:, [j]]) for j in range(8)])
    stacked = MKLClassifier("precomputed", C=0.3).fit(stack_kernels(K), y)
    assert len(pickle.dumps(stacked)) < 40_000 < K.nbytes / 100
    again = pickle.loads(pickle.dumps(stacked))
    np.testing.assert_array_equal(again.predict(stack_kernels(K)), stacked.predict(stack_kernels(K)))


def model_kernel(column):
    return RBF(factor=2.0).fit(column)(column)


def test_a_fit_on_a_stack_takes_a_quarter_of_its_memory_at_most():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(700, 3))
    distance = np.square(Z[:, None] - Z).sum(2)
    K = np.exp(-distance / np.geomspace(0.1, 50, 10)[:, None, None]).astype(np.float32)
    stack, y = stack_kernels(K), np.sin(2 * Z[:, 0]) + Z[:, 1] > 0
    MKLClassifier("precomputed", n_jobs=1).fit(stack[:50], y[:50])  # compile first
    tracemalloc.start()
    MKLClassifier("precomputed", n_jobs=1).fit(stack, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < K.nbytes / 4


def test_a_second_fit_forgets_the_first():
    model = MKLClassifier(KERNELS, multiclass="ovo").fit(X, np.arange(60) % 3)
    assert len(model.pairs_) == 3
    assert not hasattr(model.fit(X, Y), "pairs_")
    assert model.weights_.shape == (3,)


# ---- parameters


def test_parameters_of_named_kernels_are_nested():
    model = MKLClassifier([RBF(), *KERNELS])
    assert model.get_params()["narrow__width"] == 1.0
    model.set_params(narrow__width=3.0, C=2.0)
    assert model.kernels[2][1].width == 3.0 and model.kernels[2][2] == [0, 1]
    model.set_params(narrow=Polynomial(degree=2))
    assert model.get_params()["narrow__degree"] == 2
    model.set_params(kernels=KERNELS, linear=RBF(), linear__gamma=0.5)
    assert model.kernels[2][1].gamma == 0.5
    assert clone(model).get_params()["linear__gamma"] == 0.5
    assert MKLClassifier(RBF(gamma=2.0)).get_params()["kernels__gamma"] == 2.0
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(nothing__gamma=1.0)


def test_parameters_of_kernels_can_be_searched():
    search = GridSearchCV(MKLClassifier(KERNELS), {"narrow__width": [0.1, 1.0], "norm": [1.0, 2.0]}, cv=2).fit(X, Y)
    assert set(search.best_params_) == {"narrow__width", "norm"}


def test_the_html_representation_shows_the_kernels():
    html = estimator_html_repr(MKLClassifier(KERNELS))
    for name in ("MKLClassifier", "wide", "narrow", "linear"):
        assert name in html
    assert "MKLClassifier" in estimator_html_repr(MKLClassifier())
    assert "MKLClassifier" in estimator_html_repr(MKLClassifier(KERNELS).fit(X, Y))


def test_a_solver_with_its_own_settings_is_taken():
    model = MKLClassifier(KERNELS, solver=Newton(inner=0.1)).fit(X, Y)
    assert model.solver_ == "newton" and model.duality_gap_ <= 1e-3


# ---- progress and interruption


def test_progress_is_plain_lines_in_a_file(capsys):
    MKLClassifier(KERNELS, verbose=1).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == "" and "iteration 1, gap" in err and "\x1b" not in err
    MKLClassifier(KERNELS).fit(X, Y)
    assert capsys.readouterr() == ("", "")


def test_progress_is_shown_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    MKLClassifier(KERNELS, verbose=2).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "gap" in err and "active kernels" in err


class Impatient(Newton):
    """Newton's method, interrupted at its second step."""

    def step(self, point, state, certificate):
        if getattr(state, "count", 0) == 2:
            raise KeyboardInterrupt
        state.count = getattr(state, "count", 0) + 1
        return super().step(point, state, certificate)


def test_an_interruption_keeps_the_best_certified_model():
    model = MKLClassifier(KERNELS, solver=Impatient(), tol=1e-9)
    with interrupted(r"was interrupted after 2 iterations\. The model kept is the best one found"):
        model.fit(X, Y)
    assert model.status_ == "interrupted" and model.n_iter_ == 2
    best = MKLClassifier(KERNELS, **TIGHT).fit(X, Y)
    assert model.dual_objective_ <= best.objective_ <= model.objective_ + 1e-9
    assert model.predict(X).shape == Y.shape


def test_an_interruption_ends_all_problems():
    y = np.array([0, 1, 2])[np.arange(60) % 3]
    model = MKLClassifier(KERNELS, multiclass="ovr", solver=Impatient(), tol=1e-9)
    with interrupted("interrupted on the problem '. and the rest'"):
        model.fit(X, y)
    assert model.status_ == ["interrupted"] * 3
    assert model.n_iter_.tolist() == [2, 0, 0]
    assert model.predict(X).shape == y.shape


def test_an_interruption_is_raised_again_where_warnings_are_errors():
    model = MKLClassifier(KERNELS, solver=Impatient(), tol=1e-9)
    with warnings.catch_warnings(), pytest.raises(KeyboardInterrupt):
        warnings.simplefilter("error")
        model.fit(X, Y)
    assert model.status_ == "interrupted" and model.duality_gap_ < np.inf


def test_an_interruption_ends_a_search_of_scikit_learn():
    search = GridSearchCV(MKLClassifier(KERNELS, solver=Impatient(), tol=1e-9), {"C": [0.1, 1.0]}, cv=2)
    with interrupted("The model kept is"):
        search.fit(X, Y)
    assert not hasattr(search, "cv_results_")


def test_rich_is_not_needed_to_fit(monkeypatch):
    for name in {"rich", *(name for name in sys.modules if name.startswith("rich."))}:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError):
        import rich  # noqa: F401
    assert MKLClassifier(KERNELS).fit(X, Y).status_ == "converged"
