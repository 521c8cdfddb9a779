"""The outer loop with solvers whose steps are known beforehand: what it certifies, records, and when it stops."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain, count, repeat
from typing import ClassVar

import numpy as np
import pytest

from multikernel.certificate import Best, Certificate
from multikernel.gram.dense import DenseGram
from multikernel.machines.svc import SVC
from multikernel.mixing.norms import Simplex, mixing_for
from multikernel.problem import Point, Problem, Start
from multikernel.solve import solve
from multikernel.solvers import Solver
from multikernel.solvers.base import Step

N = 12


Y = np.where(np.arange(N) % 2, 1.0, -1.0)


def make_stack(p=3, seed=0):
    X = np.random.default_rng(seed).normal(size=(N, p))
    return np.array([np.exp(-((x[:, None] - x) ** 2)) for x in X.T])


def make_problem(p=3, seed=0):
    return Problem(DenseGram(make_stack(p, seed)), SVC(Y, 2.0), Simplex())


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


def test_weights_that_are_known_need_no_cuts_before_a_run_stalls():
    problem = make_problem(6)
    known = replace(problem, mixing=mixing_for(np.inf))
    runs = [solve(each, Scripted(), tol=1e-9, max_iter=10_000) for each in (problem, known)]
    assert [each.status for each in runs] == ["stalled"] * 2 and runs[0].n_iter == 10 * runs[1].n_iter


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


class Asked(SVC):
    """A machine that notes how accurate the intercepts of primal values were asked for."""

    def __init__(self, y, C=1.0, begin=None):
        super().__init__(y, C)
        self.asked, self.begin = [], np.zeros(len(y)) if begin is None else begin

    def start(self):
        return self.begin

    def primal(self, f, quad, accuracy=0.0, a=None):
        self.asked.append(accuracy)
        return super().primal(f, quad, accuracy, a)


def asking_problem(size=1.0, begin=None):
    """The problem with a machine that notes, kernels multiplied by ``size``, coefficients to begin with."""
    return Problem(DenseGram(size * make_stack()), Asked(Y, 2.0, begin), Simplex())


def dual_of(a, size=1.0):
    """The dual value of coefficients: for the hinge |a|_1 less half of the largest quadratic form."""
    return np.abs(a).sum() - 0.5 * size * max(a @ K @ a for K in make_stack())


def alternating(value):
    """Feasible coefficients, all of one size."""
    return np.where(np.arange(N) % 2, value, -value)


def test_intercepts_of_a_start_are_as_accurate_as_the_result():
    a = alternating(0.05)
    problem = asking_problem()
    lower = dual_of(a)
    assert lower > 0.1
    solve(problem, Scripted(), tol=1e-3, max_iter=1, start=Start(np.full(3, 1 / 3), a))
    assert problem.machine.asked[0] == pytest.approx(1e-3 * lower, rel=1e-12)
    # a bound below zero says nothing about the result
    a, problem = alternating(2.0), asking_problem(20.0)
    assert dual_of(a, 20.0) < 0
    solve(problem, Scripted(), tol=1e-3, max_iter=0, start=Start(np.full(3, 1 / 3), a))
    assert problem.machine.asked[0] == 0.0


@pytest.mark.parametrize("tol", [1e-3, 0.5])
def test_intercepts_of_a_cold_start_are_as_accurate_as_a_share_of_its_gap_or_the_result(tol):
    a = alternating(0.3)
    problem = asking_problem(begin=a)
    lower = dual_of(a)
    assert 1.0 < lower < 0.5 * problem.machine.scale
    solve(problem, Scripted((stay(done=True),)), tol=tol)
    # the losses at outputs of zero are the machine's scale
    share = 0.01 * (problem.machine.scale - lower)
    assert problem.machine.asked[0] == pytest.approx(max(tol * lower, share), rel=1e-12)


def test_the_certificate_of_the_result_is_as_accurate_as_was_asked_for():
    problem = asking_problem()
    rows = []
    solve(problem, Scripted((to(1e-3), stay(done=True))), tol=1e-4, callback=rows.append)
    assert problem.machine.asked[-1] == pytest.approx(1e-4 * rows[-1]["upper"], rel=1e-9)


@pytest.mark.parametrize("value", [0.35, 2.0])
def test_a_start_whose_bounds_are_both_worse_is_dropped(value):
    problem = asking_problem(20.0)
    beta, bad = np.array([0.2, 0.5, 0.3]), alternating(value)
    cold, warm = Point(problem).certificate, Point(problem, beta, bad).certificate
    assert warm.lower < cold.lower == 0.0 and warm.upper > cold.upper
    rows = []
    solution = solve(problem, Scripted((stay(), stay(done=True))), start=Start(beta, bad), callback=rows.append)
    np.testing.assert_array_equal(solution.weights, np.full(3, 1 / 3))
    np.testing.assert_array_equal(solution.dual_coef, np.zeros(N))
    assert solution.n_iter == len(rows) == 2 and rows[0]["upper"] == cold.upper
    # with its tolerance and its number of steps
    assert solve(problem, Scripted(), start=Start(beta, bad), max_iter=3).n_iter == 3
    assert solve(problem, Scripted(rest=never), start=Start(beta, bad), tol=1.1).status == "converged"


@pytest.mark.parametrize("value", [0.0, 0.2])
def test_a_start_with_one_bound_that_is_not_worse_is_kept(value):
    # of zero both bounds are those of a cold start; of the other one the upper bound is better
    problem, beta = asking_problem(20.0), np.array([0.2, 0.5, 0.3])
    cold, warm = Point(problem).certificate, Point(problem, beta, alternating(value)).certificate
    assert warm.lower == warm.upper - cold.upper == 0.0 if value == 0 else warm.lower < 0.0 < warm.upper < cold.upper
    solution = solve(problem, Scripted((stay(done=True),)), start=Start(beta, alternating(value)))
    np.testing.assert_array_equal(solution.weights, beta)
    np.testing.assert_array_equal(solution.dual_coef, alternating(value))


def test_where_rounding_is_more_than_was_asked_for_patience_is_short():
    problem, a = make_problem(1), alternating(0.3)
    found = Point(problem, a=a).exact_certificate
    rounding = found.rounding / found.size
    assert found.size > 2.0 and 0.0 < rounding < 1e-12
    move = Scripted((lambda point: point.set_dual(a) or Step(),))
    long, short = (solve(problem, move, tol=factor * rounding, max_iter=1000).n_iter for factor in (1.1, 0.9))
    # after a first step that is progress
    assert long - 1 == 5 * (short - 1) < 999


def claims(beta, upper, lower, rounding=0.0):
    """Move to weights whose certificate says this."""

    def move(point):
        point.set_weights(np.array(beta))
        found = Certificate(upper, lower, 0.0, 1e-9, rounding=rounding)
        point.__dict__["certificate"] = point.__dict__["exact_certificate"] = found
        return Step()

    return move


@pytest.mark.parametrize(
    ("lower", "rounding", "expected"),
    [
        # the second point has the smaller gap, but one that was not asked for: the smallest primal value is the result
        (5.0, 0.0, 0),
        # it has the gap that was asked for but for its rounding
        (9.0, 3.0, 1),
        (7.0, 1.0, 1),
    ],
)
def test_the_result_certifies_itself_but_for_rounding_or_has_the_smallest_primal_value(lower, rounding, expected):
    places = [0.2, 0.5, 0.3], [0.6, 0.3, 0.1]
    # upper bounds below that of the cold start
    moves = claims(places[0], 8.5, 0.0), claims(places[1], 9.0, lower, rounding)
    solution = solve(make_problem(), Scripted(moves), tol=0.25, max_iter=2)
    assert solution.status == "max_iter"
    np.testing.assert_array_equal(solution.weights, places[expected])
