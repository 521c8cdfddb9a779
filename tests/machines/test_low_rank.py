"""The joint hinge on kernels of low rank: the interior-point method against a conic solver, and where it is used."""

from __future__ import annotations

import numpy as np
import pytest
from reference_joint import conic_joint, joint_bounds, joint_infeasibility

from multikernel import M3KClassifier, MKLClassifier, stack_kernels
from multikernel.gram.combined import HostCombined
from multikernel.gram.dense import DenseGram
from multikernel.kernels import RBF, Linear
from multikernel.machines.joint.crammer_singer import CrammerSinger
from multikernel.machines.joint.low_rank import low_rank_factor, solve_low_rank


def data(n: int, d: int, c: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Samples of d columns, of which a linear function with noise makes c classes."""
    rng = np.random.default_rng([n, d, c, seed])
    X = rng.normal(size=(n, d))
    y = np.argmax(X @ rng.normal(size=(d, c)) + rng.normal(size=(n, c)), axis=1)
    y[:c] = np.arange(c)
    return X, y


def combined_of(K: np.ndarray) -> HostCombined:
    """Two halves, so that rows are formed when they are asked for."""
    return HostCombined(DenseGram(np.stack([K, K])), np.full(2, 0.5))


CASES = [
    (n, d, c, C, intercept)
    for (n, d, c), C in zip([(30, 1, 3), (40, 2, 4), (60, 3, 5), (25, 4, 2), (50, 6, 3)] * 2,
                            [1e-3, 0.1, 1.0, 30.0, 1e3, 1e4, 1e3, 100.0, 1e4, 1.0], strict=True)
    for intercept in (True, False)
]  # fmt: skip


@pytest.mark.parametrize(("n", "d", "c", "C", "intercept"), CASES)
def test_the_interior_point_method_finds_the_optimum(n, d, c, C, intercept):
    X, y = data(n, d, c)
    cost = C * np.random.default_rng(n).uniform(0.3, 2.0, n)
    A = solve_low_rank(X, y, cost, c, intercept)
    assert joint_infeasibility(A, y, cost, intercept) <= 1e-7 * C
    K = (X @ X.T)[None]
    machine = CrammerSinger(y, cost, intercept, c)
    A = machine.make_feasible(A)
    quad = float(np.vdot(A, K[0] @ A))
    upper, lower = machine.primal(K[0] @ A, quad)[0], machine.dual(A) - 0.5 * quad
    assert upper - lower <= 1e-7 * cost.sum()
    optimum = conic_joint(K, y, cost, 1.0, fit_intercept=intercept)
    assert upper == pytest.approx(optimum, rel=1e-5) and lower == pytest.approx(optimum, rel=1e-5)
    # entries are on their bounds, as the machine sees them, or clearly off them
    room = (machine.upper - A) / cost[:, None]
    assert not np.any((room > 1e-9) & (room < 1e-7))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_factor_of_a_low_rank_reads_its_pivots_alone(dtype):
    X, _ = data(200, 7, 3)
    combined = combined_of((X @ X.T).astype(dtype))
    G = low_rank_factor(combined, 3)
    assert G.shape == (200, 7)
    np.testing.assert_allclose(G @ G.T, X @ X.T, atol=1e-4 if dtype == np.float32 else 1e-10)
    assert np.count_nonzero(combined.host_rows().have) == 7


def test_other_kernels_have_no_factor():
    X, _ = data(90, 3, 3)
    gaussian = np.exp(-np.square(X[:, None] - X).sum(axis=2))
    for K in (gaussian, np.eye(90), np.zeros((90, 90))):
        assert low_rank_factor(combined_of(K), 3) is None
    # of rank 10 with 20 classes there would be too many unknowns for 90 samples
    W = np.random.default_rng(0).normal(size=(90, 10))
    assert low_rank_factor(combined_of(W @ W.T), 20) is None
    assert low_rank_factor(combined_of(W @ W.T), 5).shape == (90, 10)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_costs_on_low_ranks_need_no_active_sets(intercept, dtype, monkeypatch):
    X, y = data(150, 3, 5)
    K = (X @ X.T).astype(dtype)[None]
    calls = []
    original = CrammerSinger._newton_polish
    monkeypatch.setattr(CrammerSinger, "_newton_polish", lambda *args: calls.append(1) or original(*args))
    model = MKLClassifier("precomputed", C=1000.0, fit_intercept=intercept, normalize=None).fit(stack_kernels(K), y)
    assert model.status_ == "converged" and not calls
    A = np.zeros((150, 5))
    A[model.support_] = model.dual_coef_.T
    b = model.intercept_ if intercept else None
    upper, lower = joint_bounds(K.astype(float), y, np.full(150, 1000.0), 1.0, model.weights_, A, b, intercept)
    assert upper - lower <= 1.001e-3 * upper


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_mixes_of_linear_kernels_agree_with_a_conic_solver(norm, intercept):
    X, y = data(70, 8, 4)
    K = np.array([X[:, [2 * j, 2 * j + 1]] @ X[:, [2 * j, 2 * j + 1]].T for j in range(4)])
    model = MKLClassifier("precomputed", C=300.0, norm=norm, fit_intercept=intercept, normalize=None, tol=1e-5)
    model.fit(stack_kernels(K), y)
    optimum = conic_joint(K, y, np.full(70, 300.0), norm, 4, intercept)
    assert model.objective_ == pytest.approx(optimum, rel=2e-5)
    assert model.dual_objective_ <= optimum * (1 + 1e-6)


def test_a_margin_and_other_kernels_beside_linear_ones():
    X, y = data(120, 4, 4)
    margin = M3KClassifier([Linear(), ("first", Linear(), [0, 1])], C=1000.0, normalize=None).fit(X, y)
    assert margin.status_ == "converged" and margin.duality_gap_ <= 1e-3
    mixed = MKLClassifier([Linear(), RBF()], C=1000.0).fit(X, y)
    assert mixed.status_ == "converged" and mixed.duality_gap_ <= 1e-3
