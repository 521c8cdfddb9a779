"""The reference optimum against a second formulation, scikit-learn, and the laws it must obey."""

from __future__ import annotations

import numpy as np
import pytest
from certificates import assert_feasible
from problems import NORMS, gaussian, random_problem, random_problems
from reference import conic_binary, conic_solution, feasible
from sklearn.svm import SVC

cvxpy = pytest.importorskip("cvxpy")


def primal_with_weights(stack, y, C, norm, fit_intercept=True) -> float:
    """min over beta, v, b of 1/2 sum_k ||v_k||^2 / beta_k + sum_i C_i xi_i, as (4) in Zien & Ong 2007."""
    p, n = len(stack), len(y)
    roots = []
    for K in stack:
        values, vectors = np.linalg.eigh(K)
        keep = values > 1e-12 * max(values[-1], 1e-300)
        roots.append(vectors[:, keep] * np.sqrt(values[keep]))
    beta, b = cvxpy.Variable(p, nonneg=True), cvxpy.Variable()
    v = [cvxpy.Variable(max(1, root.shape[1])) for root in roots]
    f = sum(root @ v_k for root, v_k in zip(roots, v, strict=True) if root.shape[1])
    loss = cvxpy.sum(cvxpy.multiply(np.broadcast_to(C, n), cvxpy.pos(1 - cvxpy.multiply(y, f + b))))
    penalty = sum(cvxpy.quad_over_lin(v_k, beta[k]) for k, v_k in enumerate(v)) / 2
    ball = [beta <= 1] if np.isinf(norm) else [cvxpy.pnorm(beta, norm, max_denom=1024) <= 1]
    problem = cvxpy.Problem(cvxpy.Minimize(penalty + loss), ball + ([] if fit_intercept else [b == 0]))
    problem.solve(solver="CLARABEL", tol_gap_rel=1e-7, tol_gap_abs=1e-7, tol_feas=1e-7)
    return float(problem.value)


@pytest.mark.parametrize("norm", NORMS, ids=lambda r: f"norm{r:.3g}")
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no-intercept"])
def test_agrees_with_the_primal_in_weights_and_vectors(norm, fit_intercept):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(16, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=16) > 0, 1.0, -1.0)
    stack = np.array([gaussian(X, 1.0), 3 * gaussian(X[:, :1], 2.0), X @ X.T, np.ones((16, 16))])
    C = rng.uniform(0.1, 2.0, size=16)
    found = conic_solution(stack, y, C, norm, fit_intercept=fit_intercept)
    assert abs(found.gap) <= 1e-9
    assert found.value == pytest.approx(primal_with_weights(stack, y, C, norm, fit_intercept), rel=1e-6)


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.7, np.inf])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_one_kernel_is_scikit_learns_svc(norm, C):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=40) > 0, 1.0, -1.0)
    K = gaussian(X, 1.3)
    weight = rng.uniform(0.2, 2.0, size=40)
    model = SVC(kernel="precomputed", C=C, tol=1e-9).fit(K, y, sample_weight=weight)
    a = model.dual_coef_[0]
    dual = np.abs(a).sum() - 0.5 * a @ K[np.ix_(model.support_, model.support_)] @ a
    assert conic_binary(K[None], y, C, norm, sample_weight=weight) == pytest.approx(dual, rel=1e-7)


def test_plain_sum_is_scikit_learns_svc():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    stack = np.array([gaussian(X, w) for w in (0.5, 1.0, 3.0)])
    model = SVC(kernel="precomputed", C=2.0, tol=1e-9).fit(stack.sum(axis=0), y)
    a = model.dual_coef_[0]
    dual = np.abs(a).sum() - 0.5 * a @ stack.sum(axis=0)[np.ix_(model.support_, model.support_)] @ a
    assert conic_binary(stack, y, 2.0, np.inf) == pytest.approx(dual, rel=1e-7)


@pytest.mark.parametrize("problem", list(random_problems(70)), ids=lambda problem: problem.id)
def test_every_value_is_bracketed(problem):
    found = conic_solution(problem.stack, problem.y, problem.C, problem.norm)
    assert found.lower <= found.value * (1 + 1e-8) and found.value <= found.upper * (1 + 1e-8)
    assert abs(found.gap) <= 1e-7
    assert_feasible(problem.y, problem.C, found.dual_coef, found.weights, problem.norm, 1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("norm", [1.0, 4 / 3, np.inf])
def test_scaled_kernels(norm, scale):
    # value(K scale, C) = value(K, C scale) / scale: substitute a = a' / scale
    problem = random_problem(9)
    value = conic_binary(problem.stack, problem.y, 0.3, norm)
    scaled = conic_binary(problem.stack * scale, problem.y, 0.3 / scale, norm)
    assert scaled * scale == pytest.approx(value, rel=1e-7)
    assert abs(conic_solution(problem.stack * scale, problem.y, 50.0, norm).gap) <= 1e-7


@pytest.mark.parametrize("norm", NORMS, ids=lambda r: f"norm{r:.3g}")
def test_duplicates_and_void_kernels_follow_the_law(norm):
    # p copies of one kernel: beta = p^(-1/r) each, one kernel scaled by p^(1 - 1/r)
    problem = random_problem(2)
    K, y = problem.stack[:1], problem.y
    copies = conic_binary(np.repeat(K, 4, axis=0), y, 1.0, norm)
    gain = 4.0 if np.isinf(norm) else 4.0 ** (1 - 1 / norm)
    assert copies == pytest.approx(conic_binary(gain * K, y, 1.0, norm), rel=1e-8)
    # zero kernels, and constant ones under sum a = 0, change nothing
    void = np.stack([np.zeros_like(K[0]), np.full_like(K[0], 1e6)])
    more = conic_binary(np.concatenate([K, void]), y, 1.0, norm)
    assert more == pytest.approx(conic_binary(K, y, 1.0, norm), rel=1e-8)


def test_only_void_kernels_leave_the_balanced_loss():
    # q = 0: max sum alpha over balanced classes is 2 C min(n+, n-)
    y = np.array([1.0, 1.0, 1.0, -1.0])
    for norm in NORMS:
        found = conic_solution(np.zeros((2, 4, 4)), y, 0.5, norm)
        assert found.value == pytest.approx(1.0, rel=1e-8)
        assert np.linalg.norm(found.weights, ord=norm) == pytest.approx(1.0)


def test_weights_are_repetition():
    problem = random_problem(12)
    weight = np.arange(problem.n) % 3
    weight[[int(np.argmax(problem.y)), int(np.argmin(problem.y))]] = 2
    again = np.repeat(np.arange(problem.n), weight)
    repeated = conic_binary(problem.stack[:, again][:, :, again], problem.y[again], 0.7, 1.0)
    weighted = conic_binary(problem.stack, problem.y, 0.7, 1.0, sample_weight=weight)
    assert weighted == pytest.approx(repeated, rel=1e-8)


def test_feasible_moves_any_point_into_the_set():
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = int(rng.integers(2, 10))
        y = np.where(rng.permutation(n) % 2 == 0, 1.0, -1.0)
        C = rng.uniform(0.1, 5.0, size=n)
        a = feasible(10 * rng.normal(size=n), y, C)
        assert np.all(y * a >= 0) and np.all(y * a <= C) and abs(a.sum()) < 1e-12


def test_problems_are_deterministic_and_cover_the_table():
    first, again = list(random_problems(140)), list(random_problems(140))
    assert all(a.id == b.id and np.array_equal(a.stack, b.stack) for a, b in zip(first, again, strict=True))
    assert len({problem.id for problem in first}) == 140
    assert len({(problem.kind, problem.norm) for problem in first}) == 70
    for problem in first:
        assert 4 <= problem.n <= 80 and 1 <= problem.p <= 12 and 1e-3 <= problem.C <= 1e3
        assert problem.stack.dtype == np.float64 and set(problem.y) == {-1.0, 1.0}
        assert np.array_equal(problem.stack, problem.stack.transpose(0, 2, 1))
        for K in problem.stack:
            assert np.linalg.eigvalsh(K)[0] >= -1e-12 * problem.n * max(np.abs(K).max(), 1e-300)
    assert not np.array_equal(next(random_problems(1, seed=1)).stack, first[0].stack)
