"""Where the models of a search start, what they share, and the last of them."""

import numpy as np
import pytest
from problems_search import CS, CV, EXACT, FIXED, KERNELS, STACK, WEIGHT, N, T, X, Y, compare
from sklearn.datasets import load_iris
from sklearn.model_selection import ShuffleSplit

from multikernel import MKLClassifier, MKLClassifierCV, stack_kernels
from multikernel.gram.dense import DenseGram
from multikernel.kernels import rbf_family
from multikernel.machines.ridge import Ridge as RidgeMachine
from multikernel.machines.svc import SVC
from multikernel.machines.svr import SVR
from multikernel.mixing.norms import Simplex
from multikernel.model_selection.folds import paths
from multikernel.problem import Point, Problem
from multikernel.solve import solve
from multikernel.training.core import Fit, Target
from multikernel.training.train import from_fit


def test_refit():
    search = MKLClassifierCV("precomputed", Cs=CS, cv=CV, refit=False).fit(STACK, Y)
    assert search.best_params_ and not hasattr(search, "best_estimator_")
    with pytest.raises(AttributeError, match=r"refit=False, and has no model to predict with"):
        search.predict(STACK)
    search = MKLClassifierCV("precomputed", Cs=CS, cv=CV, refit=lambda table: 0, baselines=False).fit(STACK, Y)
    assert search.C_ == 0.1 and search.best_score_ == search.cv_results_["mean_test_score"][0]
    with pytest.raises(ValueError, match=r"must return a row of cv_results_, from 0 to 2. Got 7"):
        MKLClassifierCV("precomputed", Cs=CS, cv=CV, refit=lambda table: 7, baselines=False).fit(STACK, Y)
    search.set_params(refit=True, Cs=[1.0]).fit(STACK, Y)
    assert len(search.cv_results_["params"]) == 1


@pytest.mark.parametrize("multiclass", ["joint", "ovr", "ovo"])
@pytest.mark.parametrize("cv", [CV, ShuffleSplit(4, train_size=0.5, random_state=1)], ids=["k folds", "random splits"])
def test_the_refit_starts_from_the_folds(multiclass, cv, monkeypatch):
    starts = []

    def spy(problem, *args, start=None, **options):
        starts.append((problem, start))
        return solve(problem, *args, start=start, **options)

    monkeypatch.setattr("multikernel.training.train.solve", spy)
    data = load_iris()
    weight = np.arange(150) % 5.0
    kernels = rbf_family([0.5, 2.0, 8.0])
    search = MKLClassifierCV(kernels, Cs=[1.0], cv=cv, multiclass=multiclass, baselines=False)
    search.fit(data.data, data.target, sample_weight=weight)
    tasks = {"joint": 1, "ovr": 3, "ovo": 3}[multiclass]
    for problem, start in starts[-tasks:]:
        beta, a = start.weights, start.coef
        assert np.all(beta >= 0) and beta.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(problem.machine.make_feasible(a), a, atol=1e-9)
        warm, cold = Point(problem, beta, a).certificate, Point(problem).certificate
        # random splits leave samples out, which the mean knows nothing of
        assert warm.gap < (0.5 if cv is CV else 1.0) * cold.gap
    plain = MKLClassifier(kernels, multiclass=multiclass).fit(data.data, data.target, sample_weight=weight)
    assert np.all(np.asarray(search.duality_gap_) <= 1e-3)
    np.testing.assert_allclose(search.objective_, plain.objective_, rtol=2e-3)


def test_the_refit_starts_anew_where_a_fold_lacks_a_class():
    y = np.repeat([0, 1, 2], N // 3)
    splits = [(np.flatnonzero(y < 2), np.flatnonzero(y == 2)), (np.arange(0, N, 2), np.arange(1, N, 2))]
    search = MKLClassifierCV("precomputed", Cs=[1.0], cv=splits, error_score="raise", scoring=lambda *_: 0.0)
    search.fit(STACK, y)
    plain = MKLClassifier("precomputed").fit(STACK, y)
    np.testing.assert_array_equal(search.dual_coef_, plain.dual_coef_)


def test_a_stack_is_examined_once_and_indefinite_kernels_are_refused_or_repaired():
    bad = KERNELS.copy()
    bad[1] -= 0.3 * np.eye(N)
    with pytest.raises(ValueError, match="kernel 'kernel_1' must be positive semidefinite"):
        MKLClassifierCV("precomputed", Cs=CS, cv=3).fit(stack_kernels(bad), Y)
    compare(MKLClassifierCV("precomputed", Cs=CS, cv=3, psd="clip", **EXACT), stack_kernels(bad), Y)


def test_the_callers_data_are_never_written():
    K, samples, y, weight = KERNELS.copy(), X.copy(), Y.copy(), WEIGHT.copy()
    for array in (K, samples, y, weight):
        array.flags.writeable = False
    MKLClassifierCV("precomputed", Cs=CS, cv=3).fit(stack_kernels(K), y, sample_weight=weight)
    MKLClassifierCV(FIXED, Cs=CS, cv=3).fit(samples, y, sample_weight=weight)


def test_paths_are_walked_down_and_norms_are_kept_apart():
    points = [{"C": C, "epsilon": e, "norm": r} for C in (1.0, 2.0) for e in (0.1, 0.2) for r in (1, 2)]
    walked = [[points[i] for i in path] for path in paths(points)]
    assert [[point["C"] for point in path] for path in walked] == [[2.0, 1.0]] * 4
    assert [path[0]["norm"] for path in walked] == [1, 1, 2, 2]


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_what_is_carried_over_is_feasible(fit_intercept):
    labels = np.where(Y == "far", 1.0, -1.0)
    a = np.zeros(N)
    a[labels > 0], a[labels < 0] = 0.5 / np.sum(labels > 0), -0.5 / np.sum(labels < 0)
    a[0] = labels[0] * 1.0
    for old, new in ((1.0, 7.0), (1.0, 0.01)):
        before, after = SVC(labels, old, fit_intercept), SVC(labels, new, fit_intercept)
        moved = after.warm_start(before, before.make_feasible(a), KERNELS @ a)[0]
        assert np.all((moved >= after.lo) & (moved <= after.hi))
        assert not fit_intercept or abs(moved.sum()) < 1e-12
        if not fit_intercept:
            assert moved[0] == labels[0] * new
        before, after = SVR(T, old, 0.1, fit_intercept), SVR(T, new, 0.1, fit_intercept)
        moved = after.warm_start(before, before.make_feasible(a), KERNELS @ a)[0]
        assert np.all(np.abs(moved) <= new) and (not fit_intercept or abs(moved.sum()) < 1e-12)
        before, after = RidgeMachine(T, old, fit_intercept), RidgeMachine(T, new, fit_intercept)
        moved = after.warm_start(before, a, KERNELS @ a)[0]
        assert not fit_intercept or abs(moved.sum()) < 1e-12


def test_outputs_of_coefficients_on_their_bounds_are_known_at_the_next_cost():
    gram = DenseGram(KERNELS)
    labels = np.where(Y == Y[0], 1.0, -1.0)
    for old, new in ((1e-3, 1e-4), (1e-3, 3e-3), (1e3, 1e2)):
        before, after = SVC(labels, old), SVC(labels, new)
        found = solve(Problem(gram, before, Simplex()))
        previous = Fit(None, (Target(before, Simplex(), "before", True),), (found,))
        (start,) = from_fit(previous, [Target(after, Simplex(), "after", True)])
        a, (b, F) = start.coef, start.known
        # nothing, or almost nothing, of what is known is to be brought up to date
        assert np.count_nonzero(a - b) < 0.2 * len(a)
        np.testing.assert_allclose(F, gram.apply(b), atol=1e-12 * np.abs(F).max())
        np.testing.assert_array_equal(a, after.warm_start(before, found.dual_coef, found.outputs)[0])
