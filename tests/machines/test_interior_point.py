"""The interior-point method of the joint hinge: against a conic solver, on its hard cases, and when it is used."""

from __future__ import annotations

from weakref import ref

import numpy as np
import pytest
from reference_joint import conic_joint, joint_bounds, joint_infeasibility

from multikernel import M3KClassifier, MKLClassifier, stack_kernels
from multikernel.gram.combined import HostCombined
from multikernel.gram.dense import DenseGram
from multikernel.kernels import RBF, Linear
from multikernel.machines.base import inner_gap
from multikernel.machines.joint.crammer_singer import CrammerSinger
from multikernel.machines.joint.interior_point import InteriorPoint, LowRankSystem, interior_point, low_rank_factor
from multikernel.machines.joint.newton_systems import ClassBlocksNewtonSystem


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


def counted_steps(monkeypatch) -> list[int]:
    steps, used = [], InteriorPoint.step
    monkeypatch.setattr(InteriorPoint, "step", lambda path: steps.append(1) or used(path))
    return steps


CASES = [
    (n, d, c, C, intercept)
    for (n, d, c), C in zip([(30, 1, 3), (40, 2, 4), (60, 3, 5), (25, 4, 2), (50, 6, 3)] * 2,
                            [1e-3, 0.1, 1.0, 30.0, 1e3, 1e4, 1e3, 100.0, 1e4, 1.0], strict=True)
    for intercept in (True, False)
]  # fmt: skip


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize(("n", "d", "c", "C", "intercept"), CASES)
def test_the_interior_point_method_finds_the_optimum(n, d, c, C, intercept, gaussian):
    """From zero, with the factor of a low rank and with class blocks."""
    X, y = data(n, d, c)
    cost = C * np.random.default_rng(n).uniform(0.3, 2.0, n)
    K = np.exp(-np.square(X[:, None] - X).sum(axis=2)) if gaussian else X @ X.T
    machine = CrammerSinger(y, cost, intercept, c)
    zero = np.zeros((n, c))
    A = interior_point(machine, combined_of(K), zero, zero, 1e-11 * cost.sum())
    assert joint_infeasibility(A, y, cost, intercept) <= 1e-9 * C
    quad = float(np.vdot(A, K @ A))
    upper, lower = machine.primal(K @ A, quad)[0], machine.dual(A) - 0.5 * quad
    assert upper - lower <= 1e-7 * cost.sum()
    optimum = conic_joint(K[None], y, cost, 1.0, fit_intercept=intercept)
    assert upper == pytest.approx(optimum, rel=1e-5) and lower == pytest.approx(optimum, rel=1e-5)


@pytest.mark.parametrize("c", [5, 12])
@pytest.mark.parametrize("balanced", [True, False])
def test_both_systems_solve_the_same_equations(balanced, c):
    """Of low rank with fewer unknowns of the classes than rows, and with more."""
    rng = np.random.default_rng(0)
    X, D = rng.normal(size=(30, 4)), 10 ** rng.uniform(-2, 4, (30, c))
    R, rows = rng.normal(size=(30, c)), rng.normal(size=30)
    columns = rng.dirichlet(np.ones(c)) * rows.sum()
    firm = D > 1e9
    blocks = ClassBlocksNewtonSystem(combined_of(X @ X.T), ~firm, balanced, D, firm / D)
    for system in (blocks, LowRankSystem(X, D, balanced)):
        dA, dt, db = system.saddle(R, rows, columns)
        np.testing.assert_allclose(X @ (X.T @ dA) + D * dA + dt[:, None] + db, R, atol=1e-6)
        np.testing.assert_allclose(dA.sum(axis=1), rows, atol=1e-6)
        if balanced:
            np.testing.assert_allclose(dA.sum(axis=0), columns, atol=1e-6)


def test_firm_entries_are_left_out_and_corrected():
    """Conjugate gradients give the step of the whole kernel, whatever the blocks leave out."""
    X, y = data(40, 3, 4)
    K = np.exp(-np.square(X[:, None] - X).sum(axis=2))
    machine, zero = CrammerSinger(y, 10.0), np.zeros((40, 4))
    path = InteriorPoint(machine, combined_of(K), zero, zero, np.zeros(4), 1.0)
    D = 10 ** np.random.default_rng(0).uniform(-2, 3, (40, 4))
    R, sums = np.random.default_rng(1).normal(size=(40, 4)), (np.zeros(40), np.zeros(4))
    steps = []
    for limit in (0.5, 1e9):
        system = machine.blocks(path.combined, limit > D, True, D, np.where(limit > D, 0.0, 1.0 / (1.0 + D)))
        steps.append(path._solve(system, D, R, sums, 1e-9)[0])
    np.testing.assert_allclose(*steps, atol=1e-7)


def test_second_order_steps_leave_out_what_the_multipliers_hold():
    """Behind an interior-point solution no entry is on its bound, and most of them do not move all the same."""
    X, y = data(80, 6, 8)
    gram = DenseGram(np.exp(-0.2 * np.square(X[:, None] - X).sum(axis=2))[None])
    machine, combined, zero = CrammerSinger(y, 100.0), gram.combined(np.ones(1)), np.zeros((80, 8))
    a = interior_point(machine, combined, zero, zero, 1e-4 * machine.scale)
    assert machine.free(a).mean() > 0.9
    outputs = gram.new_outputs(a.shape)
    outputs.update(a)
    c = machine.curvature(combined, a, combined.apply(a), outputs)
    assert c.H[0, 0] > 0 and (c.response != 0).sum() < 0.6 * a.size


@pytest.mark.parametrize("seed", range(3))
def test_second_order_steps_keep_what_the_loss_alone_makes_stiff(seed):
    """Squared hinge at small costs: the own entries curve much more than the kernel, and move all the same."""
    X, y = data(120, 4, 4, seed)
    kernels = [RBF(factor=factor) for factor in (0.25, 0.5, 1.0, 2.0, 4.0)]
    steps = [MKLClassifier(kernels, loss="squared_hinge", C=C, tol=1e-5).fit(X, y).n_iter_ for C in (0.02, 0.03)]
    assert max(steps) <= 9


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
    gaussian = np.exp(-5.0 * np.square(X[:, None] - X).sum(axis=2))
    for K in (gaussian, np.eye(90), np.zeros((90, 90))):
        assert low_rank_factor(combined_of(K), 3) is None
    # of rank 20 with 20 classes class blocks take less
    W = np.random.default_rng(0).normal(size=(90, 20))
    assert low_rank_factor(combined_of(W @ W.T), 20) is None
    assert low_rank_factor(combined_of(W @ W.T), 5).shape == (90, 20)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["linear", "duplicates", "tiny classes"])
def test_large_costs_take_a_bounded_number_of_factorisations(intercept, dtype, kind, monkeypatch):
    X, y = data(150, 3, 5)
    if kind == "duplicates":
        X[1::2] = X[::2]
    elif kind == "tiny classes":
        y[:3] = [5, 6, 6]
    c = y.max() + 1
    K = (X @ X.T if kind == "linear" else np.exp(-0.2 * np.square(X[:, None] - X).sum(axis=2))).astype(dtype)[None]
    steps = counted_steps(monkeypatch)
    model = MKLClassifier("precomputed", C=1000.0, fit_intercept=intercept, normalize=None).fit(stack_kernels(K), y)
    assert model.status_ == "converged" and len(steps) <= 60
    A = np.zeros((150, c))
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


@pytest.mark.parametrize(("loss", "norm"), [("logistic", np.inf), ("multinomial", np.inf), ("smooth_hinge", 1.0)])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_many_classes_on_kernels_of_low_rank(loss, norm, C, monkeypatch):
    """More unknowns of the classes than rows: the rows are what is factorised, in a bounded number of steps."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 40
    X = rng.normal(size=(40, 3))[y] + rng.normal(size=(120, 3))
    sizes, make = [], LowRankSystem.__init__

    def count(self, *given):
        make(self, *given)
        sizes.append(len(self.factor[0]))

    monkeypatch.setattr(LowRankSystem, "__init__", count)
    stack = stack_kernels([np.outer(x, x) for x in X.T])
    model = MKLClassifier("precomputed", loss=loss, norm=norm, C=C, multiclass="joint", tol=1e-3).fit(stack, y)
    assert model.status_ == "converged"
    assert set(sizes) <= {120} and len(sizes) <= 60 * model.n_iter_


@pytest.mark.parametrize("n, rank", [(20, 2), (12, 8)])
def test_the_sums_of_a_class_whose_entries_are_held_come_out(n, rank):
    rng = np.random.default_rng(0)
    G, D, columns = 20.0 * rng.normal(size=(n, rank)), np.full((n, 3), 1e-2), np.array([1e-3, 0.0, -1e-3])
    D[:, 2] = 1e7
    dA, _, _ = LowRankSystem(G, D, True).saddle(rng.normal(size=(n, 3)), np.zeros(n), columns)
    assert dA.sum(axis=1) == pytest.approx(np.zeros(n), abs=1e-10)
    assert dA.sum(axis=0) == pytest.approx(columns, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("balanced", [True, False])
def test_what_rounding_of_the_combined_kernel_loses_is_won_back(balanced):
    """Kernels in single precision at a large cost: outputs of the combined one are off by more than the gap asked for.

    From a solution of that kernel, with its outputs by all kernels, the gap by these falls to what is asked for.
    """
    X, y = data(60, 3, 4)
    K = np.exp(-np.square(X[:, None] - X).sum(axis=2) * np.array([0.2, 0.7, 2.0])[:, None, None]).astype(np.float32)
    gram, beta = DenseGram(K), np.array([0.31, 0.47, 0.22])
    machine, combined = CrammerSinger(y, 1e6, balanced, 4), HostCombined(gram, beta)
    assert combined.dtype == np.float32
    gaps, a, f = [], np.zeros((60, 4)), np.zeros((60, 4))
    for _ in range(3):
        a = interior_point(machine, combined, a, f, 1e-12 * machine.scale)
        f = np.tensordot(beta, gram.apply(a), 1)
        gaps.append(inner_gap(machine, a, f, 1e-12 * machine.scale)[0] / machine.scale)
    assert gaps[0] > 1e-8 and min(gaps[1:]) <= 1e-3 * gaps[0]


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_a_residual_far_above_the_multipliers_does_not_keep_steps_short(seed, monkeypatch):
    """Samples that stand several times with other classes, at a large cost: a start pulled inside is out of balance."""
    rng, (m, times, c) = np.random.default_rng(seed), (60, 5, 11)
    X, y = np.repeat(rng.normal(size=(m, 6)), times, axis=0), np.repeat(rng.integers(0, c, m), times)
    y = np.where(rng.random(m * times) < 0.1, rng.integers(0, c, m * times), y)
    y[:c] = np.arange(c)
    squares = np.square(X[:, None] - X).sum(axis=2)
    stack = stack_kernels([*(np.exp(-squares / width) for width in (3.0, 12.0, 48.0)), (1.0 + X @ X.T / 6.0) ** 2])
    steps = counted_steps(monkeypatch)
    model = MKLClassifier("precomputed", C=1e4, norm=2.0).fit(stack, y)
    assert model.status_ == "converged" and len(steps) <= 22


@pytest.mark.parametrize("seed", range(4))
def test_a_low_rank_system_that_rounding_has_made_indefinite_is_solved(seed, monkeypatch):
    """Linear kernels on columns of which most entries are equal."""
    rng, (n, d, c) = np.random.default_rng(seed), (200, 30, 5)
    X = (rng.random((n, d)) < 0.15) * rng.exponential(size=(n, d))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.argmax(X @ rng.normal(size=(d, c)) + rng.normal(size=(n, c)), axis=1)
    steps = counted_steps(monkeypatch)
    model = MKLClassifier("precomputed", C=1e4, norm=np.inf, normalize=None)
    model.fit(stack_kernels([np.outer(x, x) for x in X.T]), y)
    assert model.status_ == "converged" and model.n_iter_ <= 2 and len(steps) <= 40


def test_a_second_call_at_the_same_weights_goes_on_where_the_first_has_ended(monkeypatch):
    """A smaller gap takes the steps that are left, and not those of a new start."""
    X, y = data(120, 3, 5)
    K = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2))
    machine, combined, coef = CrammerSinger(y, 1e3), combined_of(K), np.zeros((120, 5))
    steps, counts = counted_steps(monkeypatch), []
    for kernel, accuracy in ((combined, 1e-4), (combined, 1e-8), (combined_of(K), 1e-8)):
        start, before = coef if accuracy < 1e-4 else np.zeros((120, 5)), len(steps)
        found = interior_point(machine, kernel, start, K @ start, accuracy * machine.scale)
        assert inner_gap(machine, found, K @ found)[0] <= accuracy * machine.scale
        coef, counts = found if accuracy == 1e-4 else coef, [*counts, len(steps) - before]
    assert counts[1] < counts[2] < counts[0]


def test_a_kept_path_does_not_keep_the_kernel():
    """Without a cycle the memory of the combined kernel is free at once."""
    X, y = data(40, 3, 3)
    K = np.exp(-np.square(X[:, None] - X).sum(axis=2))
    combined, zero = combined_of(K), np.zeros((40, 3))
    interior_point(CrammerSinger(y, 100.0), combined, zero, zero, 0.1)
    assert "path" in combined.cache
    gone = ref(combined)
    del combined
    assert gone() is None
