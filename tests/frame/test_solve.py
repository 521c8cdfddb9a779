"""The outer loop with solvers whose steps are known beforehand: what it certifies, records, and when it stops."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, count, repeat
from typing import ClassVar

import numpy as np
import pytest

from multikernel.certificate import Best
from multikernel.gram.dense import DenseGram
from multikernel.machines.svc import SVC
from multikernel.mixing.norms import Simplex
from multikernel.problem import Point, Problem, Start
from multikernel.solve import solve
from multikernel.solvers import Solver
from multikernel.solvers.base import Step

N = 12


def make_problem(p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, p))
    y = np.where(np.arange(N) % 2, 1.0, -1.0)
    return Problem(DenseGram(np.array([np.exp(-((x[:, None] - x) ** 2)) for x in X.T])), SVC(y, 2.0), Simplex())


@dataclass(frozen=True)
class Scripted(Solver):
    """The moves of a run, one function of the point for each step; what follows them moves nothing."""

    moves: tuple[Callable, ...] = ()
    rest: Callable = lambda point: Step()

    def start(self, point, tol):
        return chain(self.moves, repeat(self.rest))

    def step(self, point, state, certificate):
        return next(state)(point)


class Unseen(Scripted):
    """One that does not let its start be certified."""

    certifies_start: ClassVar[bool] = False


def stay(**report):
    return lambda point: Step(**report)


def to(accuracy, **report):
    """Move to the machine's solution at this accuracy."""

    def move(point):
        point.solve(accuracy)
        return Step(**report)

    return move


def weights(beta, **report):
    def move(point):
        point.set_weights(np.array(beta))
        return Step(**report)

    return move


def forget(point):
    """Move to coefficients zero, the worst there are."""
    point.set_dual(np.zeros(N))
    return Step()


def never(point):
    raise AssertionError("a step too many")


def optimal(**flags):
    """A step to the optimum of all weights."""

    def step(point):
        found = solve(point.problem, tol=1e-9)
        point.set_weights(found.weights)
        point.set_dual(found.dual_coef)
        return Step(**flags)

    return step


def test_the_solution_is_the_point_and_its_certificate():
    problem = make_problem()
    solution = solve(problem, Scripted((to(1e-9), weights([0.5, 0.5, 0.0]))), tol=1e-9, max_iter=2)
    point = Point(problem)
    best = Best(1e-9)
    best.take(point)
    point.solve(1e-9)
    best.take(point)
    uniform = point.beta
    point.set_weights(np.array([0.5, 0.5, 0.0]))
    last = best.take(point)
    np.testing.assert_array_equal(solution.weights, best.model.weights)
    np.testing.assert_array_equal(solution.dual_coef, best.model.coef)
    np.testing.assert_array_equal(solution.outputs, best.model.outputs)
    np.testing.assert_array_equal(solution.curvature, point.curvature)
    found = best.own
    assert (solution.upper, solution.lower, solution.intercept) == (found.upper, found.lower, found.intercept)
    assert found.floor == problem.machine.floor and found.relative < solution.gap < found.relative * (1 + 1e-9)
    assert solution.status == "max_iter" and solution.n_iter == 2 and solution.solver == "scripted"
    history = solution.history
    assert history["upper"][-1] == best.certificate.upper and history["lower"][-1] == best.certificate.lower
    assert history["gap"][-1] == best.certificate.relative and history["primal"][-1] == last.upper
    assert history["active"] == [3, 2]
    np.testing.assert_array_equal(history["weights"], [uniform, [0.5, 0.5, 0.0]])


def test_rows_go_to_the_callback_with_coefficients_and_intercept():
    rows, coefs = [], []

    def move(point):
        point.solve(1e-6)
        coefs.append(point.a)
        return Step(extra={"turns": 7})

    began = time.perf_counter()
    solution = solve(make_problem(), Scripted((move, forget)), tol=1e-9, max_iter=2, callback=rows.append)
    took = time.perf_counter() - began
    assert len(rows) == 2 and solution.history["turns"] == [7] and rows[0]["turns"] == 7
    np.testing.assert_array_equal(rows[0]["coef"], coefs[0])
    np.testing.assert_array_equal(rows[1]["coef"], np.zeros(N))
    assert rows[0]["intercept"] == solution.intercept
    # the second point is worse: the best of both is reported, beside its own value
    assert rows[1]["upper"] == rows[0]["upper"] == rows[0]["primal"] < rows[1]["primal"]
    np.testing.assert_array_equal(solution.dual_coef, coefs[0])
    assert 0.0 <= rows[0]["time"] <= rows[1]["time"] <= took


@pytest.mark.parametrize(
    ("last", "status"),
    [
        (stay(settled=True), "settled"),
        (stay(done=True), "stalled"),
        (stay(settled=True, done=True), "settled"),
        (optimal(), "converged"),
        (optimal(done=True, settled=True), "converged"),
    ],
    ids=["settled", "done", "settled-and-done", "converged", "all"],
)
def test_a_step_may_end_the_run(last, status):
    solution = solve(make_problem(), Scripted((to(1.0), last), rest=never), tol=1e-9)
    assert (solution.status, solution.n_iter) == (status, 2)


def test_the_last_allowed_step_may_converge():
    last = Scripted((to(1.0), optimal()))
    assert solve(make_problem(), last, tol=1e-9, max_iter=2).status == "converged"
    solution = solve(make_problem(), last, tol=1e-9, max_iter=1)
    assert (solution.status, solution.n_iter) == ("max_iter", 1)


def test_steps_that_only_certify_are_no_iterations():
    rows = []
    solver = Scripted((stay(moved=False), to(1.0), stay(moved=False), stay(done=True)), rest=never)
    solution = solve(make_problem(), solver, tol=1e-9, callback=rows.append)
    assert solution.n_iter == len(rows) == len(solution.history["gap"]) == 2


def test_a_run_without_progress_stalls_after_steps_in_proportion_to_the_kernels_and_four():
    steps = {p: solve(make_problem(p), Scripted(), tol=1e-9, max_iter=10_000) for p in (1, 6)}
    assert {each.status for each in steps.values()} == {"stalled"}
    assert steps[6].n_iter == 2 * steps[1].n_iter < 10_000
    # progress begins the count anew
    late = (stay(),) * (steps[1].n_iter - 1) + (lambda point: Step(lower=0.5 * point.certificate.upper),)
    assert solve(make_problem(1), Scripted(late), tol=1e-9, max_iter=10_000).n_iter == 2 * steps[1].n_iter


def test_defaults_are_a_thousandth_and_five_hundred_steps():
    solution = solve(make_problem(), Scripted(rest=lambda point, n=count(1): Step(lower=next(n) * 1e-4)))
    assert (solution.n_iter, solution.status) == (500, "max_iter")
    assert solve(make_problem(), Scripted((optimal(done=True),))).gap <= 1e-3
    assert solve(make_problem(), Scripted((to(1.0), stay(done=True)))).status == "stalled"


def test_a_bound_of_several_points_alone_certifies_no_model():
    solution = solve(
        make_problem(), Scripted((lambda point: Step(lower=point.certificate.upper, done=True),)), tol=1e-9
    )
    assert solution.status == "stalled" and solution.history["gap"][-1] < 1e-9 < solution.gap


def test_no_steps_where_none_are_allowed_or_needed():
    problem = make_problem()
    for solver in (Scripted(rest=never), Unseen(rest=never)):
        solution = solve(problem, solver, max_iter=0)
        assert (solution.status, solution.n_iter) == ("max_iter", 0)
        assert solution.history == {column: [] for column in ("time", "upper", "lower", "gap", "active")}
        now = Point(problem).certificate
        assert (solution.upper, solution.lower) == (now.upper, now.lower)
    solution = solve(problem, Scripted(rest=never), tol=1.1)
    assert (solution.status, solution.n_iter) == ("converged", 0)


def test_a_start_is_certified_where_the_solver_lets_it():
    # the only step is a step back: the start is the answer where it was certified
    problem = make_problem()
    point = Point(problem)
    point.solve(1e-9)
    start = Start(np.full(3, 1 / 3), point.a)
    known = solve(problem, Scripted((forget,)), tol=1e-12, max_iter=1, start=start)
    np.testing.assert_array_equal(known.dual_coef, point.a)
    assert known.upper == pytest.approx(point.certificate.upper, rel=1e-12)
    unseen = solve(problem, Unseen((forget,)), tol=1e-12, max_iter=1, start=start)
    np.testing.assert_array_equal(unseen.dual_coef, np.zeros(N))


def test_a_start_brings_weights_coefficients_and_outputs():
    problem = make_problem()
    point = Point(problem)
    point.solve(1e-3)
    beta = np.array([0.2, 0.5, 0.3])
    outputs = point.outputs.known()[1]
    solution = solve(problem, Scripted(rest=never), max_iter=0, start=Start(beta, point.a, (point.a, outputs)))
    np.testing.assert_array_equal(solution.weights, beta)
    np.testing.assert_array_equal(solution.dual_coef, point.a)
    np.testing.assert_array_equal(solution.outputs, outputs)
    # outputs that are given are not computed again
    twice = solve(problem, Scripted(rest=never), max_iter=0, start=Start(beta, point.a, (point.a, 2 * outputs)))
    np.testing.assert_array_equal(twice.outputs, 2 * outputs)


def interrupt(point):
    point.set_dual(np.full(N, np.nan))
    raise KeyboardInterrupt


def test_an_interrupted_run_returns_what_it_has():
    problem = make_problem()
    solution = solve(problem, Scripted((to(1e-3), interrupt)), tol=1e-9)
    assert (solution.status, solution.n_iter) == ("interrupted", 1)
    assert solution.dual_coef.any() and np.isfinite(solution.upper)
    # before the first certificate that is the start
    beta = np.array([0.6, 0.4, 0.0])
    for start in (None, Start(beta, np.zeros(N))):
        solution = solve(problem, Unseen((interrupt,)), tol=1e-9, start=start)
        assert (solution.status, solution.n_iter) == ("interrupted", 0)
        np.testing.assert_array_equal(solution.dual_coef, np.zeros(N))
        np.testing.assert_array_equal(solution.weights, np.full(3, 1 / 3) if start is None else beta)
        assert np.isfinite([solution.upper, solution.lower]).all()


def test_other_errors_are_not_caught():
    with pytest.raises(AssertionError, match="too many"):
        solve(make_problem(), Scripted(rest=never), tol=1e-9)


def test_the_lower_bound_is_never_above_the_upper_one():
    solution = solve(make_problem(), tol=1e-13)
    assert solution.lower <= solution.upper and 0.0 < solution.gap < 1e-9
    solution = solve(make_problem(), Scripted((to(1e-2),)), tol=1e-9, max_iter=1)
    assert solution.lower < solution.upper


def test_a_solver_that_does_not_apply_is_refused_before_its_first_step():
    class Needy(Scripted):
        requires: ClassVar[tuple[str, ...]] = ("machine.epochs",)

    with pytest.raises(ValueError, match="The solver 'needy' cannot be used with"):
        solve(make_problem(), Needy(rest=never))


def test_at_an_optimum_of_zero_points_that_are_alike_are_no_progress():
    # one class alone is right everywhere at an intercept of one: both bounds are zero, and so is their rounding
    problem = Problem(DenseGram(np.eye(4)[None]), SVC(np.ones(4), 2.0), Simplex())
    point = Point(problem)
    best = Best(1e-3)
    for times in range(3):
        now = best.take(point)
        assert (now.upper, now.lower) == (0.0, 0.0) and best.idle == times
