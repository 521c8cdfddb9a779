"""Problems that start near their solution: the same optimum, whichever kernels they begin with."""

from __future__ import annotations

import numpy as np
import pytest
from problems import random_problem

from multikernel.gram.dense import DenseGram
from multikernel.machines.svc import SVC
from multikernel.machines.svr import SVR
from multikernel.mixing.norms import Ball, Simplex, mixing_for
from multikernel.problem import Point, Problem, Start
from multikernel.solve import solve
from multikernel.solvers import active_set

TOL = 1e-7


def gaussians(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Kernels of sixteen columns at two widths each, and a score that two of the columns make."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 16))
    stack = [np.exp(-np.square(x[:, None] - x) / w) for x in X.T for w in (0.5, 4.0)]
    return np.array(stack), np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)


STACK, SCORE = gaussians()
MACHINES = {
    "hinge": lambda C: SVC(np.where(SCORE > 0, 1.0, -1.0), C),
    "tube": lambda C: SVR(SCORE, np.full(len(SCORE), C), 0.1),
}


def start_of(solution, machine, other):
    a, b, F = machine.warm_start(other, solution.dual_coef, solution.outputs)
    return Start(solution.weights, a, (b, F))


def spied(monkeypatch) -> list[int]:
    """The numbers of kernels of the lists that are solved from now on."""
    seen: list[int] = []

    class Spy(active_set._Run):
        def __init__(self, point, *args):
            seen.append(point.problem.gram.n_kernels)
            super().__init__(point, *args)

    monkeypatch.setattr(active_set, "_Run", Spy)
    return seen


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("solver", ["auto", "alternating", "level"])
def test_a_path_of_costs_has_the_solutions_of_single_problems(machine, solver, monkeypatch):
    seen = spied(monkeypatch)
    make, gram = MACHINES[machine], DenseGram(STACK)
    last = None
    for C in (100.0, 10.0, 1.0, 0.1, 0.01):
        problem = Problem(gram, make(C), Simplex())
        start = None if last is None else start_of(last[1], problem.machine, last[0])
        found = solve(problem, solver, start=start, tol=TOL, max_iter=5000)
        alone = solve(problem, solver, tol=TOL, max_iter=5000)
        assert found.gap <= TOL
        assert found.lower <= alone.upper + 1e-12 * abs(alone.upper)
        assert found.upper == pytest.approx(alone.upper, rel=2 * TOL)
        np.testing.assert_allclose(found.outputs, STACK @ found.dual_coef, atol=1e-9 * max(1.0, C))
        last = problem.machine, found
    assert min(seen) < len(STACK) // 2


@pytest.mark.parametrize("index", range(42))
def test_random_problems_from_the_solution_at_twice_the_cost(index):
    random = random_problem(index, seed=5)
    gram, mixing = DenseGram(random.stack), mixing_for(1.0)
    twice, once = SVC(random.y, 2.0 * random.C), SVC(random.y, random.C)
    first = solve(Problem(gram, twice, mixing), tol=1e-5)
    problem = Problem(gram, once, mixing)
    found = solve(problem, start=start_of(first, once, twice), tol=1e-5)
    alone = solve(problem, tol=1e-5)
    assert found.gap <= 1e-5 and alone.gap <= 1e-5
    assert found.lower <= alone.upper * (1 + 1e-9) and alone.lower <= found.upper * (1 + 1e-9)


def test_a_kernel_that_the_start_lacks_is_found(monkeypatch):
    seen = spied(monkeypatch)
    problem = Problem(DenseGram(STACK), MACHINES["hinge"](1.0), Simplex())
    useless = np.eye(len(STACK))[-1]
    a = problem.machine.start()
    found = solve(problem, start=Start(useless, a, (a, np.zeros(STACK.shape[:2]))), tol=TOL)
    assert seen[0] == 1 < seen[1]
    assert found.weights[-1] < 1e-3 and found.n_iter > 0
    assert found.upper == pytest.approx(solve(problem, tol=TOL).upper, rel=2 * TOL)


def test_all_kernels_take_part_where_nothing_is_gained(monkeypatch):
    seen = spied(monkeypatch)
    machine, gram = MACHINES["hinge"](1.0), DenseGram(STACK)
    for mixing in (Simplex(), Ball(2.0)):
        problem = Problem(gram, machine, mixing)
        everything = mixing.start(len(STACK))
        few = np.eye(len(STACK))[0]
        a, F = machine.start(), np.zeros(STACK.shape[:2])
        solve(problem)
        solve(problem, start=Start(everything, a, (a, F)))
        if isinstance(mixing, Ball):
            solve(problem, start=Start(few, a, None))
            solve(problem, start=Start(few, a, (a, F)))
    assert not seen


def test_a_solution_that_stays_one_is_certified_as_it_is(monkeypatch):
    seen = spied(monkeypatch)
    # costs so large that no coefficient is on its bound: a smaller one makes the same coefficients better
    gram, large, less = DenseGram(STACK), MACHINES["hinge"](1e6), MACHINES["hinge"](1e5)
    first = solve(Problem(gram, large, Simplex()), tol=1e-3)
    again = solve(Problem(gram, less, Simplex()), start=start_of(first, less, large), tol=1e-3)
    assert seen == [np.count_nonzero(first.weights)] and again.n_iter == 0 and again.status == "converged"
    np.testing.assert_allclose(again.dual_coef, first.dual_coef, rtol=1e-12)
    assert 0 < again.gap <= first.gap


def test_outputs_need_not_be_known(monkeypatch):
    seen = spied(monkeypatch)
    gram, make = DenseGram(STACK), MACHINES["hinge"]
    twice = solve(Problem(gram, make(0.2), Simplex()), tol=TOL)
    problem = Problem(gram, make(0.1), Simplex())
    start = Start(twice.weights, problem.machine.make_feasible(twice.dual_coef))
    found = solve(problem, start=start, tol=TOL)
    assert seen[0] == np.count_nonzero(twice.weights) < len(STACK)
    np.testing.assert_allclose(found.outputs, STACK @ found.dual_coef, atol=1e-9)
    assert found.upper == pytest.approx(solve(problem, tol=TOL).upper, rel=2 * TOL)


@pytest.mark.parametrize("left", [[0], [11], [4, 7], [6, 8, 10]])
def test_kernels_that_matter_are_let_in_at_once(left):
    # from nothing but useless kernels, where steps in closed form would leave the others out
    gram = DenseGram(STACK)
    for C in (0.1, 1.0, 100.0):
        problem = Problem(gram, MACHINES["hinge"](C), Simplex())
        weights = np.zeros(len(STACK))
        weights[left] = 1.0 / len(left)
        found = solve(problem, start=Start(weights, problem.machine.start(), None), tol=1e-3)
        alone = solve(problem, tol=1e-3)
        assert found.gap <= 1e-3
        assert found.upper == pytest.approx(alone.upper, rel=2e-3)
        assert found.n_iter <= 3 * alone.n_iter + 5


def test_an_interrupted_start_is_certified_on_all_kernels(monkeypatch):
    problem = Problem(DenseGram(STACK), MACHINES["hinge"](1.0), Simplex())
    calls = []

    def interrupt(point, *args, **options):
        calls.append(point.problem.gram.n_kernels)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return original(point, *args, **options)

    original = Point.solve
    monkeypatch.setattr(Point, "solve", interrupt)
    beta = np.zeros(len(STACK))
    beta[[0, 2, 4]] = 1 / 3
    a = problem.machine.start()
    found = solve(problem, start=Start(beta, a, (a, np.zeros(STACK.shape[:2]))), tol=TOL)
    assert found.status == "interrupted" and max(calls) < len(STACK)
    assert found.gap > TOL
    monkeypatch.undo()
    best = solve(problem, tol=TOL)
    assert found.lower <= best.upper and best.lower <= found.upper


def test_negative_curvature_is_seen_among_the_few():
    K = STACK.copy()
    K[0] = np.diag(np.where(np.arange(len(SCORE)) % 2, 1.0, -1.0))
    problem = Problem(DenseGram(K), MACHINES["hinge"](1.0), Simplex())
    rng = np.random.default_rng(0)
    a = problem.machine.make_feasible(
        0.5 * problem.machine.y * rng.uniform(size=len(SCORE)) * (np.arange(len(SCORE)) % 2 == 0)
    )
    beta = np.eye(len(K))[0]
    found = solve(problem, start=Start(beta, a, (a, K @ a)), max_iter=1)
    assert found.curvature[0] < 0


@pytest.mark.parametrize("solver", ["auto", "alternating", "level", "silp", "simplemkl"])
def test_all_of_few_kernels_take_part_from_the_beginning(solver, monkeypatch):
    seen, gram = spied(monkeypatch), DenseGram(STACK[:12])
    for C in (10.0, 0.1):
        large, less = MACHINES["hinge"](10 * C), MACHINES["hinge"](C)
        first = solve(Problem(gram, large, Simplex()), tol=1e-5)
        assert not first.weights.all()
        problem = Problem(gram, less, Simplex())
        found = solve(problem, solver, start=start_of(first, less, large), tol=1e-5, max_iter=5000)
        assert found.gap <= 1e-5 and not seen
        assert found.upper == pytest.approx(solve(problem, tol=1e-5).upper, rel=2e-5)


def test_a_start_with_worse_bounds_than_a_cold_one_is_dropped():
    problem = Problem(DenseGram(STACK), MACHINES["hinge"](100.0), Simplex())
    alone, even = solve(problem), Simplex().start(len(STACK))
    opposite = problem.machine.make_feasible(problem.machine.y * np.random.default_rng(0).uniform(0, 100, len(SCORE)))
    start, cold = Point(problem, even, opposite).certificate, Point(problem).certificate
    assert start.lower < cold.lower and start.upper > cold.upper
    found = solve(problem, start=Start(even, opposite))
    np.testing.assert_array_equal(found.dual_coef, alone.dual_coef)
    assert found.n_iter == alone.n_iter
    # without iterations there is nothing to drop it for; of zero coefficients more is known
    found = solve(problem, start=Start(even, opposite), max_iter=0)
    assert found.n_iter == 0 and start.lower < found.lower == 0.0
    # a better upper bound is worth a start
    scaled = 1.5 * alone.dual_coef
    assert Point(problem, alone.weights, scaled).certificate.upper < cold.upper
    assert solve(problem, start=Start(alone.weights, problem.machine.make_feasible(scaled))).gap <= 1e-3
