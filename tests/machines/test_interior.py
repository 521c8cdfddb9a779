"""Inner solutions at huge costs and on degenerate kernels: bounded work, and gaps that hold at the returned model."""

import numpy as np
import pytest
from problems import gaussian
from reference import conic_binary

from multikernel import MKLClassifier, stack_kernels
from multikernel.gram.combined import Combined
from multikernel.gram.dense import DenseGram
from multikernel.gram.features import FeatureGram
from multikernel.gram.lazy import LazyGram
from multikernel.gram.sources import DenseSource
from multikernel.losses import Huber, Logistic, SquaredHinge
from multikernel.machines.base import MOST_FACTORISATIONS, inner_gap
from multikernel.machines.box_interior import solve_inside
from multikernel.machines.descent import Descent
from multikernel.machines.oneclass import OneClass
from multikernel.machines.ridge import Ridge
from multikernel.machines.smooth import Smooth
from multikernel.machines.svc import SVC
from multikernel.machines.svr import SVR
from multikernel.mixing.highs import HighsProgramme
from multikernel.mixing.norms import PlainSum, Simplex, mixing_for
from multikernel.problem import Point, Problem
from multikernel.solve import solve
from multikernel.solvers import cut_model
from multikernel.solvers.cut_model import CutModel
from multikernel.solvers.silp import LinearMaster
from multikernel.training.prepare import prepare


def samples(kind, n=40, seed=0):
    """Three kernels, labels that overlap, and targets; ``kind`` names the kernel, and "repeated" rows come thrice."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    if "repeated" in kind:
        X = X[rng.integers(0, n // 3, n)]
    y = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 - 0.3 + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    parts = [X[:, :2], X[:, 2:4], X[:, 4:]]
    stack = np.stack([x @ x.T if "linear" in kind else gaussian(x, 2.0) for x in parts])
    return stack, y, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)


MACHINES = {
    "hinge": lambda y, t, C: SVC(y, C),
    "hinge without intercept": lambda y, t, C: SVC(y, C, False),
    "tube": lambda y, t, C: SVR(t, C, 0.1),
    "squared hinge": lambda y, t, C: Smooth(y, SquaredHinge(), C, True),
    "logistic": lambda y, t, C: Smooth(y, Logistic(), C, True),
    "one class": lambda y, t, C: OneClass(np.ones(len(y)), 0.3),
}
KINDS = ["linear", "linear repeated", "gaussian", "gaussian repeated"]


def true_gap(solution, stack, machine, mixing):
    """The relative gap, outputs summed in extended precision from the returned coefficients."""
    a = solution.dual_coef.astype(np.longdouble)
    F = stack.astype(np.longdouble) @ a
    q = np.maximum(np.asarray(F @ a, float), 0.0)
    f = np.asarray(solution.weights @ F, float)
    upper = machine.primal(f, float(solution.weights @ q))[0]
    return (upper - solution.lower) / max(abs(upper), machine.floor)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MACHINES)
def test_huge_costs_are_solved_with_few_factorisations(name, kind, monkeypatch):
    stack, y, t = samples(kind)
    counts, original = [], Combined.factor
    monkeypatch.setattr(Combined, "factor", lambda self, *rest: counts.append(1) or original(self, *rest))
    for C in (1.0, 1e4, 1e7, 1e9):
        counts.clear()
        machine = MACHINES[name](y, t, C)
        solution = solve(Problem(DenseGram(stack), machine, Simplex()), tol=1e-3)
        # at the largest costs float64 cannot certify what was found
        assert solution.status == "converged" or C == 1e9, C
        assert true_gap(solution, stack, machine, Simplex()) <= 1.1e-3, C
        assert len(counts) <= 15 * MOST_FACTORISATIONS, C


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_the_interior_point_method_alone_finds_the_optimum_of_a_conic_solver(kind, C):
    stack, y, _ = samples(kind)
    K = stack.sum(axis=0)
    machine, combined = SVC(y, C), DenseGram(K[None]).combined(np.ones(1))
    optimum = conic_binary(K[None], y, C, 1.0)
    a, f = solve_inside(machine, combined, machine.start(), np.zeros(len(y)), 1e-6 * optimum)
    np.testing.assert_allclose(f, K @ a, rtol=1e-12, atol=1e-9 * np.abs(K @ a).max())
    assert inner_gap(machine, a, f)[0] <= 1e-6 * optimum
    assert machine.dual(a) - 0.5 * a @ f == pytest.approx(optimum, rel=2e-6)
    np.testing.assert_allclose(a, machine.make_feasible(a), rtol=1e-12)
    assert np.all((a >= machine.lo) & (a <= machine.hi))


@pytest.mark.parametrize("norm", [2.0, np.inf])
@pytest.mark.parametrize("C", [1e5, 1e6])
@pytest.mark.parametrize("name", ["hinge", "tube"])
def test_kernels_in_single_precision_at_large_costs(name, C, norm, monkeypatch):
    """The sum of kernels is not rounded to single precision: its rounding times the costs is larger than the gap."""
    rng, n = np.random.default_rng(0), 200
    X = rng.normal(size=(n, 6))
    squares = [((X[:, None] - X) ** 2).sum(axis=2) / 6, *((x[:, None] - x) ** 2 for x in X.T)]
    stack = np.exp(-0.5 * np.array(squares)).astype(np.float32)
    y = np.where((X**2).sum(axis=1) + 2 * rng.normal(size=n) > 6, 1.0, -1.0)
    counts, original = [], Combined.factor
    monkeypatch.setattr(Combined, "factor", lambda self, *rest: counts.append(1) or original(self, *rest))
    machine = MACHINES[name](y, np.round(X[:, 0] * X[:, 1]), C)
    solution = solve(Problem(DenseGram(stack), machine, mixing_for(norm)), tol=1e-3)
    assert solution.status == "converged" and len(counts) <= 2 * MOST_FACTORISATIONS
    assert true_gap(solution, stack.astype(float), machine, mixing_for(norm)) <= 1.1e-3


@pytest.mark.parametrize("storage", ["subset", "lazy"])
def test_rows_in_double_precision_of_other_storages(storage):
    stack = samples("gaussian", 20)[0].astype(np.float32)
    beta, keep = np.array([0.3, 0.5, 0.2]), np.arange(1, 20, 2)
    if storage == "subset":
        gram = DenseGram(stack).take_samples(keep)
    else:
        some = stack[:, keep][:, :, keep]
        gram = LazyGram(lambda kernels, idx: ((k, some[k, idx]) for k in kernels), np.ones((3, 10)), dtype=np.float32,
                        budget=1e6)  # fmt: skip
        gram.rows(np.arange(5))
    exact = np.tensordot(beta, stack[:, keep][:, :, keep].astype(float), 1)
    combined = gram.combined(beta)
    assert np.abs(combined.block(np.arange(10)) - exact).max() > 1e-9
    assert combined.widen() and combined.dtype == np.float64 and not combined.widen()
    for idx in (np.arange(10), np.arange(3, 7)):
        np.testing.assert_allclose(combined.block(idx), exact[np.ix_(idx, idx)], rtol=1e-15)


@pytest.mark.parametrize("kind", ["dense", "memmap", "subset", "lazy"])
def test_double_precision_keeps_to_the_memory_limit(kind):
    X = np.random.default_rng(0).normal(size=(40, 3))
    y, stack = X[:, 0] > 0, stack_kernels([np.asarray(X @ X.T, np.float32), np.eye(40, dtype=np.float32)])
    one, gram = 40 * 40 * 4, "dense" if kind == "subset" else kind
    # the kernels of a dense stack are the caller's; beside them the combined kernel, its second half, and rows
    for limit, wide in ((1.5 * one, False), (2.0 * one, True), (3.0 * one, True)):
        model = MKLClassifier("precomputed", gram=gram, memory_limit=limit)
        grams = prepare("precomputed", stack, None, model._settings()).gram
        combined = (grams.take_samples(np.arange(40)) if kind == "subset" else grams).combined(np.array([0.5, 0.5]))
        if kind == "lazy":
            grams.rows(np.arange(40))
        assert combined.widen() is wide
        if kind == "lazy":
            assert grams.nbytes <= limit - (2 if wide else 1) * one
        assert model.fit(stack, y).status_ == "converged"


@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.parametrize("kind", KINDS)
def test_a_start_near_the_solution_takes_few_steps(kind, C, monkeypatch):
    stack, y, _ = samples(kind, 120)
    machine, combined = SVC(y, C), DenseGram(stack.sum(axis=0)[None]).combined(np.ones(1))
    a = solve_inside(machine, combined, machine.start(), np.zeros(120), 1e-9 * C)[0]
    gap = inner_gap(machine, a, combined.apply(a))[0]
    counts, original = [], Combined.factor
    monkeypatch.setattr(Combined, "factor", lambda self, *rest: counts.append(1) or original(self, *rest))
    # other coefficients nearby: a share of the way to the start
    a = machine.make_feasible(0.999 * a + 0.001 * machine.start())
    f = combined.apply(a)
    now = inner_gap(machine, a, f)[0]
    better = solve_inside(machine, combined, a, f, max(0.1 * now, 2 * gap))
    assert inner_gap(machine, *better)[0] <= max(0.1 * now, 2 * gap)
    assert len(counts) <= 15


def test_coefficients_of_the_interior_point_method_are_on_their_bounds():
    stack, y, _ = samples("gaussian", 80)
    machine, combined = SVC(y, 10.0), DenseGram(stack).combined(np.full(3, 1 / 3))
    a, _ = solve_inside(machine, combined, machine.start(), np.zeros(80), 1e-3)
    assert np.count_nonzero((a == machine.lo) | (a == machine.hi)) > 20


def test_accurate_coefficients_are_returned_as_they_are():
    stack, y, _ = samples("gaussian")
    machine, combined = SVC(y), DenseGram(stack).combined(np.full(3, 1 / 3))
    a, f = machine.start(), np.zeros(len(y))
    assert solve_inside(machine, combined, a, f, np.inf)[0] is a


def test_a_kernel_without_factorisation_leaves_the_coefficients(monkeypatch):
    stack, y, _ = samples("gaussian")
    machine, combined = SVC(y), DenseGram(stack).combined(np.full(3, 1 / 3))
    monkeypatch.setattr(Combined, "factor", lambda *args: None)
    a = machine.start()
    assert solve_inside(machine, combined, a, np.zeros(len(y)), 1e-9)[0] is a


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("C, factor", [(1e3, 1e11), (100.0, 1e9), (1e8, 1e6)])
def test_no_gap_is_smaller_than_that_of_the_returned_model(name, kind, C, factor):
    stack, y, t = samples(kind, 16)
    stack = factor * stack
    machine = MACHINES[name](y, t, C) if name != "one class" else OneClass(np.ones(16), 0.3, factor)
    solution = solve(Problem(DenseGram(stack), machine, Simplex()), tol=1e-3, max_iter=60)
    assert true_gap(solution, stack, machine, Simplex()) <= 1.5 * solution.gap + 1e-9


@pytest.mark.parametrize("mixing", [Simplex(), PlainSum()], ids=lambda mixing: type(mixing).__name__)
@pytest.mark.parametrize("name", ["hinge", "tube", "squared hinge", "squared"])
def test_features_far_from_the_origin_with_an_intercept(name, mixing):
    # a common mean of the features is what an intercept takes out; weights that change must not bring it back
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(29, 7)) + 30.0 * rng.normal(size=7)
        y = np.where(X[:, 0] - np.median(X[:, 0]) + 0.5 * rng.normal(size=29) > 0, 1.0, -1.0)
        t = X[:, 0] + rng.normal(size=29)
        C = 10.0 ** rng.uniform(-1, 3)
        machine = Ridge(t, C, True) if name == "squared" else MACHINES[name](y, t, C)
        groups = np.array([0, 0, 1, 1, 1, 2, 2])
        features = FeatureGram([DenseSource(X, groups)])
        stack = np.stack([X[:, groups == k] @ X[:, groups == k].T for k in range(3)])
        one = solve(Problem(features, Descent(machine), mixing), tol=1e-3)
        other = solve(Problem(DenseGram(stack), machine, mixing), tol=1e-3)
        assert one.status == other.status == "converged"
        assert one.upper == pytest.approx(other.upper, rel=2e-3)


def test_outputs_are_summed_anew_after_large_coefficients():
    stack, y, _ = samples("linear", 16)
    point = Point(Problem(DenseGram(stack), SVC(y, 1e12), Simplex()))
    small = point.problem.machine.make_feasible(1e-3 * y)
    point.set_dual(point.problem.machine.make_feasible(1e12 * y))
    assert point.q.min() >= 0.0
    point.set_dual(small)
    np.testing.assert_allclose(point.outputs.kernel_outputs(), stack @ small, rtol=0, atol=1e-15 * np.abs(stack).max())


def test_a_programme_that_lost_rows_is_not_used(monkeypatch):
    cuts = CutModel(Simplex(), 2)
    cuts.add(1.0, np.array([1.0, 2.0]))
    master = LinearMaster(cuts, 1.0)
    monkeypatch.setattr(HighsProgramme, "minimise", lambda self, cost: (np.zeros(3), np.zeros(1)))
    # the other masters have the answer, 1 - 1/2 beta'q at its minimum
    beta, theta, lower = master.minimise(1.0, np.array([0.5, 0.5]))
    assert beta == pytest.approx([0.0, 1.0]) and theta == lower == pytest.approx(0.0, abs=1e-8)


def test_a_master_that_fails_is_passed_over(monkeypatch):
    def fails(M):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(cut_model, "matrix_game", fails)
    cuts = CutModel(Simplex(), 2)
    cuts.add(1.0, np.array([1.0, 2.0]))
    beta, lower = cuts.minimise()
    assert beta == pytest.approx([0.0, 1.0])
    assert lower == pytest.approx(0.0, abs=1e-8)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_an_inner_problem_without_a_gap_is_left_as_it_is():
    from multikernel.gram.dense import DenseGram
    from multikernel.machines.joint.crammer_singer import CrammerSinger
    from multikernel.machines.joint.interior_point import interior_point

    machine = CrammerSinger(np.array([0, 1, 2, 0, 1, 2]), 1.0, True)
    combined = DenseGram(np.zeros((1, 6, 6))).combined(np.ones(1))
    a = machine.make_feasible(np.where(np.arange(3) == machine.y[:, None], 1.0, -0.5))
    assert interior_point(machine, combined, a, np.zeros((6, 3)), 0.0) is a


@pytest.mark.filterwarnings("error")
def test_targets_without_a_gap_leave_the_interior_at_once():
    """All targets equal: the intercept alone has no loss, and no accuracy is below rounding."""
    stack, _, _ = samples("gaussian", n=7)
    machine = Smooth(np.full(7, 3.0), Huber(), 1.0, True)
    combined, a = DenseGram(stack).combined(np.ones(3)), np.zeros(7)
    best, outputs = solve_inside(machine, combined, a, np.zeros(7), -1.0)
    assert not best.any() and not outputs.any()
