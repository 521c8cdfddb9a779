"""Least squares with shared weights: the machine, matrix-valued coefficients in the frame, MCKL-EM and MCKL-SILP."""

from __future__ import annotations

import os
from functools import cache

import numpy as np
import pytest
from certificates import support_value, weights_infeasibility
from reference_losses import conic_loss
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from multikernel import MKLClassifier, MKLRegressor, stack_kernels
from multikernel.datasets import load_dataset
from multikernel.gram.combined import HostCombined
from multikernel.gram.dense import AffineForm, DenseGram
from multikernel.gram.lazy import LazyGram
from multikernel.gram.subset import SubsetGram
from multikernel.kernels import RBF, Linear, rbf_family
from multikernel.machines.ridge import Ridge
from multikernel.machines.weighted_inverse import WeightedInverse
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Point, Problem
from multikernel.solve import solve
from multikernel.solvers.alternating import Alternating
from multikernel.solvers.silp import SILP

NORMS = (1.0, 4 / 3, 2.0, np.inf)
TOL = 1e-6


@cache
def data(n=36):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 4))
    stack = np.array([np.exp(-((x[:, None] - x[None]) ** 2) * g) for x in X.T for g in (0.2, 2.0)])
    stack[-1] = np.outer(X[:, 0], X[:, 0])
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] + 2.0, np.tanh(X[:, 0] * X[:, 1])])
    return stack, Y + 0.1 * rng.normal(size=Y.shape)


def bounds(stack, Y, C, norm, solution, fit_intercept):
    """Primal and dual value from the formulas."""
    A, Y = (x.reshape(len(x), -1) for x in (solution.dual_coef, Y))
    C = np.broadcast_to(np.asarray(C, float), (len(Y),))[:, None]
    F = sum(b * K @ A for b, K in zip(solution.weights, stack, strict=True))
    b = np.sum(C * (Y - F), axis=0) / C.sum() if fit_intercept else 0.0
    upper = 0.5 * np.sum(A * F) + np.sum(C * (Y - F - b) ** 2)
    q = np.array([np.sum(A * (K @ A)) for K in stack])
    return upper, np.sum(A * Y) - np.sum(A**2 / (4 * C)) - 0.5 * support_value(q, norm)


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["no-intercept", "intercept"])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("norm", NORMS)
def test_agrees_with_a_conic_solver(norm, columns, fit_intercept):
    stack, Y = data()
    Y = Y[:, 0] if columns == 1 else Y
    C = np.random.default_rng(0).uniform(0.5, 20.0, len(Y))
    value = conic_loss(stack, Y, C, norm, "squared", fit_intercept)
    for solver in ["newton", "sip", "level", "alternating"] + ["silp", "simplemkl"] * (norm == 1):
        problem = Problem(DenseGram(stack), Ridge(Y, C, fit_intercept), mixing_for(norm))
        solution = solve(problem, solver, tol=TOL, max_iter=3000)
        assert solution.status == "converged"
        assert solution.upper == pytest.approx(value, rel=1e-5)
        upper, lower = bounds(stack, Y, C, norm, solution, fit_intercept)
        assert solution.upper == pytest.approx(upper, rel=1e-9)
        assert max(lower, solution.lower) <= value * (1 + 1e-8)
        assert weights_infeasibility(solution.weights, norm) <= 1e-9
        if fit_intercept:
            assert np.abs(solution.dual_coef.sum(axis=0)).max() <= 1e-9 * np.abs(solution.dual_coef).sum()


def test_one_kernel_is_kernel_ridge():
    stack, Y = data()
    K, C = stack[0], 3.0
    baseline = KernelRidge(alpha=1 / (2 * C), kernel="precomputed").fit(K, Y)
    objective = 0.5 * np.sum(baseline.dual_coef_ * (K @ baseline.dual_coef_)) + C * np.sum(
        (Y - baseline.predict(K)) ** 2
    )
    model = MKLRegressor("precomputed", loss="squared", C=C, fit_intercept=False, normalize=None, tol=1e-9)
    model.fit(stack_kernels(K[None]), Y)
    assert model.objective_ == pytest.approx(objective, rel=1e-5)
    assert model.predict(stack_kernels(K[None])) == pytest.approx(baseline.predict(K), abs=1e-5)
    assert model.dual_coef_ == pytest.approx(baseline.dual_coef_.T, abs=1e-5)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_float32_kernels_at_any_cost(C, fit_intercept):
    stack, Y = data()
    small = stack.astype(np.float32)
    machine = Ridge(Y, C, fit_intercept)
    exact = Point(Problem(DenseGram(small.astype(float)), machine, mixing_for(np.inf)))
    exact.solve(0.0)
    rough = Point(Problem(DenseGram(small), machine, mixing_for(np.inf)))
    start = rough.certificate.inner_gap
    rough.solve(1e-9 * start)
    assert rough.certificate.inner_gap <= 2e-9 * start
    assert rough.q == pytest.approx(exact.q, rel=1e-2)


def test_a_kernel_that_rounding_made_indefinite_still_has_a_preconditioner():
    x = np.linspace(0.0, 1.0, 40)
    K = np.exp(-((x[:, None] - x) ** 2)).astype(np.float32)
    inverse = WeightedInverse(HostCombined(DenseGram(K[None]), np.ones(1)), np.full(40, 1e9))
    assert not inverse.exact
    assert np.all(np.isfinite(inverse.apply(np.ones(40))))
    empty = WeightedInverse(HostCombined(DenseGram(K[None]), np.ones(1)), np.zeros(40), balanced=True)
    assert not empty.apply(np.ones((40, 2))).any()


@pytest.mark.parametrize("norm", [2.0, np.inf])
def test_a_sum_that_single_precision_makes_indefinite(norm):
    """A kernel of large values takes the digits of the others: the sum in single precision has negative eigenvalues."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 2)), rng.normal(size=(60, 3))
    K = np.stack([*(np.exp(-0.1 * (x[:, None] - x) ** 2) for x in X.T), np.full((60, 60), 1000.0)]).astype(np.float32)
    combined = HostCombined(DenseGram(K), np.ones(3))
    assert np.linalg.eigvalsh(combined.block(np.arange(60), np.dtype(float)))[0] < -5e-5
    assert combined.widen() and not combined.widen()
    assert np.linalg.eigvalsh(combined.block(np.arange(60)))[0] > -5e-5
    assert solve(Problem(DenseGram(K), Ridge(Y, 1e4, True), mixing_for(norm)), tol=1e-3).status == "converged"


def test_targets_that_say_nothing():
    stack, Y = data()
    for y, fit_intercept in ((np.zeros(len(Y)), False), (np.full((len(Y), 2), 7.0), True)):
        solution = solve(Problem(DenseGram(stack), Ridge(y, 2.0, fit_intercept), mixing_for(1)), tol=TOL)
        assert solution.status == "converged"
        assert solution.upper == 0.0
        assert np.all(solution.intercept == (7.0 if fit_intercept else 0.0))


# ---- matrix-valued coefficients in the Grams


def grams(stack):
    p, n, _ = stack.shape
    rng = np.random.default_rng(1)
    u, A = rng.uniform(0.5, 1.5, (p, n)), rng.normal(size=(p, n, 2))
    form = AffineForm(rng.uniform(0.5, 2.0, p), u, A, 0.3 * A[:, :, ::-1])
    yield DenseGram(stack, n_threads=2)
    yield DenseGram(stack.astype(np.float32))
    yield DenseGram(list(stack), form)
    yield LazyGram(lambda kernels, idx: ((k, stack[k, idx]) for k in kernels), np.einsum("kii->ki", stack))
    yield SubsetGram(DenseGram(stack, form), np.arange(n)[::-1][: n - 3])


@pytest.mark.parametrize("which", range(5))
def test_columns_are_products_one_by_one(which):
    stack, _ = data()
    gram = list(grams(stack))[which]
    n = gram.n_samples
    V = np.random.default_rng(0).normal(size=(n, 3))
    V[::5] = 0.0
    single = np.stack([gram.apply(v) for v in V.T], axis=-1)
    assert gram.apply(V) == pytest.approx(single, abs=1e-10)
    outputs = gram.new_outputs(V.shape)
    outputs.update(V)
    assert outputs.quadratic_forms() == pytest.approx(np.einsum("knc,nc->k", single, V))
    changed = V.copy()
    changed[::4] *= 2.0
    outputs.update(changed)
    assert outputs.kernel_outputs() == pytest.approx(gram.apply(changed), abs=1e-10)
    combined = HostCombined(gram, np.linspace(0.0, 1.0, gram.n_kernels))
    together = np.stack([combined.apply(v) for v in V.T], axis=-1)
    assert combined.apply(V) == pytest.approx(together, abs=1e-5)


# ---- MCKL-EM and MCKL-SILP


def em(stack, Y, mu, steps):
    """The iteration as Ying et al. state it, with their letters."""
    m, n, _ = stack.shape
    lam = np.full(m, 1.0 / m)
    path = [lam]
    for _ in range(steps - 1):
        alpha = np.linalg.solve(np.tensordot(lam, stack, 1) + np.eye(n) / (2 * mu), Y)
        norms = lam * np.sqrt(np.einsum("ic,kij,jc->k", alpha, stack, alpha))
        lam = norms / norms.sum()
        path.append(lam)
    return np.array(path)


def test_alternating_is_mckl_em_step_by_step():
    stack, Y = data()
    signs = np.where(Y > np.median(Y, axis=0), 1.0, -1.0)
    problem = Problem(DenseGram(stack), Ridge(signs, 10.0), mixing_for(1))
    solution = solve(problem, Alternating(change=1e-12), tol=1e-15, max_iter=30)
    assert np.array(solution.history["weights"]) == pytest.approx(em(stack, signs, 10.0, 30), abs=1e-8)


def test_the_change_of_the_weights_ends_a_run():
    stack, Y = data()
    problem = Problem(DenseGram(stack), Ridge(Y, 10.0), mixing_for(1))
    for solver in (Alternating(change=1e-3), SILP(change=1e-3)):
        solution = solve(problem, solver, tol=1e-12, max_iter=5000)
        assert solution.status == "settled"
        path = np.array(solution.history["weights"])
        change = np.abs(np.diff(path, axis=0)).sum(axis=1)
        assert change[-1] <= 1e-3 < change[:-1].min()
        assert solution.upper == pytest.approx(min(solution.history["primal"]), rel=1e-12)
    model = MKLRegressor("precomputed", loss="squared", C=10.0, solver=Alternating(change=1e-3), tol=1e-12)
    assert model.fit(stack_kernels(stack), Y).status_ == "settled"
    assert model.history_["weights"].shape == (model.n_iter_, len(stack))


def uci(name, n):
    if "MULTIKERNEL_DATA" not in os.environ:
        pytest.skip("the variable MULTIKERNEL_DATA names no folder with data")
    try:
        bunch = load_dataset(name)
    except FileNotFoundError:
        pytest.skip(f"{name} is not in the folder named by MULTIKERNEL_DATA")
    X, y = np.asarray(bunch.data, float), np.asarray(bunch.target)
    pick = np.random.default_rng(0).permutation(len(y))[:n]
    X = X[pick]
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    stack = np.array([rbf_kernel(X, gamma=g / X.shape[1]) for g in 10.0 ** np.arange(-3.0, 2.0)])
    return stack, np.unique(y[pick], return_inverse=True)[1]


def joint(stack, y, solver, tol, **options):
    model = MKLClassifier(
        "precomputed", loss="squared", multiclass="joint", C=10.0, fit_intercept=False, normalize=None,
        solver=solver, tol=tol, max_iter=20000, **options,
    )  # fmt: skip
    return model.fit(stack_kernels(stack), y)


@pytest.mark.parametrize("name", ["wine", "segment", "satimage"])
def test_em_and_silp_agree_at_the_stop_of_the_paper(name):
    stack, y = uci(name, 300)
    ours = joint(stack, y, Alternating(change=1e-4), 1e-12)
    theirs = joint(stack, y, SILP(change=1e-4), 1e-12)
    assert ours.status_ in ("settled", "converged")
    assert theirs.status_ in ("settled", "converged", "stalled")
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-3)


@pytest.mark.parametrize("name", ["wine", "segment", "satimage"])
def test_em_and_silp_agree_at_the_end(name):
    stack, y = uci(name, 100)
    ours = joint(stack, y, "alternating", 1e-6)
    theirs = joint(stack, y, "silp", 1e-6)
    best = joint(stack, y, "auto", 1e-9)
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-6)
    assert ours.objective_ == pytest.approx(best.objective_, rel=1e-6)
    test = stack_kernels(stack)
    assert ours.decision_function(test) == pytest.approx(theirs.decision_function(test), abs=1e-2)


# ---- the estimators


def classes(n=150, c=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, c, n)
    return rng.normal(size=(n, 6)) + 2.0 * np.eye(6)[y], np.array(["a", "b", "c", "d"])[y]


def test_all_classes_share_their_weights():
    X, y = classes()
    model = MKLClassifier([RBF(0.1), Linear()], loss="squared", multiclass="joint", tol=1e-7).fit(X, y)
    assert model.weights_.shape == (2,)
    assert model.dual_coef_.shape == (4, 150)
    assert model.intercept_.shape == (4,)
    assert model.kernel_contributions_.sum() == pytest.approx(1.0)
    scores = model.decision_function(X)
    assert scores.shape == (150, 4)
    assert np.array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    assert model.score(X, y) > 0.85
    # the columns at these weights are machines of one class against the rest
    signs = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    regressor = MKLRegressor([RBF(0.1), Linear()], loss="squared", tol=1e-7).fit(X, signs)
    assert regressor.objective_ == pytest.approx(model.objective_, rel=1e-7)
    assert regressor.predict(X) == pytest.approx(scores, abs=1e-5)


def test_two_classes_are_one_column():
    X, y = classes(c=2)
    once = MKLClassifier([RBF(0.1), Linear()], loss="squared", multiclass="joint", tol=1e-8).fit(X, y)
    assert once.dual_coef_.ndim == 1
    signs = np.where(y == "b", 1.0, -1.0)
    regressor = MKLRegressor([RBF(0.1), Linear()], loss="squared", tol=1e-8).fit(X, signs)
    assert once.objective_ == pytest.approx(regressor.objective_, rel=1e-7)


@pytest.mark.parametrize("gram", ["dense", "lazy", "memmap"])
def test_every_storage(gram):
    X, y = classes(60)
    options = {"loss": "squared", "multiclass": "joint", "tol": 1e-7, "normalize": ["center", "cosine"]}
    model = MKLClassifier([RBF(0.1), Linear()], gram=gram, **options).fit(X, y)
    reference = MKLClassifier([RBF(0.1), Linear()], **options).fit(X, y)
    assert model.objective_ == pytest.approx(reference.objective_, rel=1e-5)
    assert model.decision_function(X) == pytest.approx(reference.decision_function(X), abs=1e-2)


def test_weights_count_as_repetitions_for_all_targets():
    X, _ = classes(60)
    Y = X[:, :2] + X[:, 2:4] ** 2
    weight = np.random.default_rng(0).integers(0, 3, 60)
    make = MKLRegressor([RBF(0.1), Linear()], loss="squared", tol=1e-10)
    once = make.fit(X, Y, sample_weight=weight).predict(X)
    often = make.fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0)).predict(X)
    assert once == pytest.approx(often, abs=1e-4)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_factorisation_in_single_precision_is_refined(fit_intercept):
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((1000, 5)), rng.standard_normal((1000, 2))
    machine = Ridge(Y, 2.0, fit_intercept)
    point = Point(Problem(DenseGram((X @ X.T)[None]), machine, mixing_for(1)))
    point.solve(np.inf)
    assert machine._inverse(point.combined).single
    M = X @ X.T + np.eye(1000) / 4.0
    if fit_intercept:
        M = np.block([[M, np.ones((1000, 1))], [np.ones((1, 1000)), np.zeros((1, 1))]])
    exact = np.linalg.solve(M, np.vstack([Y, np.zeros((int(fit_intercept), 2))]))[:1000]
    assert point.a == pytest.approx(exact, abs=1e-6)


def test_a_callback_sees_every_iteration_and_its_model():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = np.array(["left", "middle", "right"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    rows, values = [], []

    def watch(row):
        rows.append(row)
        values.append(row["decision_function"](X[:7]))

    model = MKLClassifier(rbf_family([1.0, 5.0]), loss="squared", tol=1e-6, callback=watch).fit(X, y)
    assert len(rows) == model.n_iter_
    assert [row["gap"] for row in rows] == list(model.history_["gap"])
    assert values[0].shape == (7, 3) and not np.allclose(values[0], values[-1])
    assert values[-1] == pytest.approx(model.decision_function(X[:7]), abs=1e-9)
    rows.clear(), values.clear()
    model.set_params(multiclass="ovo", loss="hinge").fit(X, y)
    assert {row["problem"] for row in rows} == {"left and middle", "left and right", "middle and right"}
    assert all(value.shape == (7,) for value in values)
    with pytest.raises(ValueError, match=r"'callback' parameter of MKLClassifier must be None or a callable. Got 3"):
        model.set_params(callback=3).fit(X, y)


def test_targets_that_are_not_finite_leave_coefficients_as_they_are():
    machine = Ridge(np.ones((4, 2)), 1.0, True)
    a = np.array([[np.inf, 1.0], [0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(machine.make_feasible(a)[:, 0]).any()


def test_targets_may_be_lists():
    np.testing.assert_array_equal(Ridge([1, 2, 3]).Y, [1.0, 2.0, 3.0])
