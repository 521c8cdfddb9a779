"""Every solver against a general conic solver, on the same random problems; and the contract of the driver.

A new solver is one line of ``SOLVERS`` in ``problems.py`` and inherits the battery.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from certificates import assert_feasible, assert_objective, primal_value
from problems import NORMS, SOLVERS, random_problem
from reference import conic_solution

from multikernel import MKLClassifier
from multikernel.gram.dense import DenseGram
from multikernel.kernels import RBF, Cosine, Linear, Polynomial
from multikernel.machines import base as machines_base
from multikernel.machines.base import Machine
from multikernel.machines.svc import SVC
from multikernel.mixing import base as mixing_base
from multikernel.mixing.base import Mixing
from multikernel.mixing.norms import Ball, Simplex, mixing_for
from multikernel.problem import Point, Problem, Start
from multikernel.solve import solve
from multikernel.solvers import REGISTRY, get_solver, missing, solver_names
from multikernel.solvers.level import Level
from multikernel.solvers.newton import Newton
from multikernel.solvers.qcqp import QCQP

TOL = 1e-6

# forms of the joint multiclass problem alone, which test_outputs.py tries
JOINT_FORMS = {"qcqp-compact", "silp-compact"}
# those that need explicit features, which test_features.py tries
ON_FEATURES = {"interleaved"}


def problem_of(stack, y, C, norm, fit_intercept=True) -> Problem:
    return Problem(DenseGram(stack), SVC(y, C, fit_intercept), mixing_for(norm))


@cache
def optimum(index: int):
    case = random_problem(index)
    return conic_solution(case.stack, case.y, case.C, case.norm)


def indices(solver: str) -> list[int]:
    """The first problems whose norm the solver takes."""
    norms, count, _ = SOLVERS[solver]
    taken = [j for j, norm in enumerate(NORMS) if norm in norms]
    return [j + len(NORMS) * i for i in range(-(-count // len(taken))) for j in taken][:count]


def assert_solved(solution, stack, y, C, norm, reference, fit_intercept=True, tol=TOL) -> None:
    """Feasible, converged, the right value, and bounds that hold in every row of the history."""
    assert solution.status == "converged", f"{solution.status} at gap {solution.gap:.2e}"
    assert solution.gap <= tol
    assert_feasible(y, C, solution.dual_coef, solution.weights, norm, fit_intercept=fit_intercept)
    assert_objective(solution.upper, reference.value, 1e-5)
    rounding = 1e-9 * abs(reference.value) + 1e-13 * np.sum(C * np.ones(len(y)))
    assert solution.upper - reference.value <= solution.upper - solution.lower + rounding
    assert max(solution.history["lower"]) <= reference.upper + rounding
    assert min(solution.history["upper"]) >= reference.lower - rounding
    value = primal_value(stack, y, C, solution.weights, solution.dual_coef, solution.intercept)
    assert solution.upper == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("solver", "index"),
    [pytest.param(solver, i, id=f"{solver}-{random_problem(i).id}") for solver in SOLVERS for i in indices(solver)],
)
def test_agrees_with_a_conic_solver(solver, index):
    case = random_problem(index)
    problem = problem_of(case.stack, case.y, case.C, case.norm)
    solution = solve(problem, solver, tol=TOL, max_iter=SOLVERS[solver][2])
    assert_solved(solution, case.stack, case.y, case.C, case.norm, optimum(index))


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no-intercept"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_costs_per_sample_and_no_intercept(solver, fit_intercept):
    for index in range(700, 714):
        case = random_problem(index)
        if case.norm not in SOLVERS[solver][0]:
            continue
        C = case.C * np.random.default_rng(index).uniform(0.2, 3.0, case.n)
        reference = conic_solution(case.stack, case.y, C, case.norm, fit_intercept=fit_intercept)
        problem = problem_of(case.stack, case.y, C, case.norm, fit_intercept)
        solution = solve(problem, solver, tol=TOL, max_iter=SOLVERS[solver][2])
        assert_solved(solution, case.stack, case.y, C, case.norm, reference, fit_intercept)


@pytest.mark.parametrize("solver", SOLVERS)
def test_kernels_that_say_nothing(solver):
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    for norm in SOLVERS[solver][0]:
        solution = solve(problem_of(np.zeros((3, 5, 5)), y, 2.0, norm), solver, tol=TOL)
        # the best constant pays 2 C for each sample of the smaller class
        assert solution.upper == pytest.approx(8.0)
        assert solution.status == "converged"


@pytest.mark.parametrize("tol", [1e-1, 1e-3])
@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "qcqp"])
def test_loose_tolerances_stop_early_and_bound_rigorously(solver, tol):
    for index in indices(solver)[:14]:
        case, reference = random_problem(index), optimum(index)
        problem = problem_of(case.stack, case.y, case.C, case.norm)
        loose = solve(problem, solver, tol=tol, max_iter=500)
        assert loose.gap <= tol
        assert loose.lower <= reference.upper * (1 + 1e-9)
        assert reference.lower * (1 - 1e-9) <= loose.upper <= reference.upper * (1 + 1.2 * tol)


def test_the_table_is_the_registry():
    assert set(SOLVERS) | JOINT_FORMS | ON_FEATURES == set(REGISTRY)
    assert solver_names() == ["auto", *REGISTRY]


def test_silp_records_the_violation_of_the_paper():
    case = random_problem(0)
    solution = solve(problem_of(case.stack, case.y, case.C, 1.0), "silp", tol=TOL)
    violation = solution.history["violation"]
    assert len(violation) == solution.n_iter
    # theta is minus infinity before the first row
    assert violation[0] == 1.0
    assert violation[-1] < 1e-4


@pytest.mark.parametrize("C", [100.0, 1e4])
def test_more_digits_than_rounding_leaves_do_not_make_the_model_worse(C):
    """Bounds of several points meet down to rounding: then one that certifies itself is looked for all the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y, D = np.sign(X[:, 0] * X[:, 1] + rng.normal(size=60)), np.square(X[:, None] - X)
    widths = [np.exp(-scale * D[..., : j + 1].sum(axis=2)) for j in range(5) for scale in (0.1, 0.5, 2.0, 5.0)]
    stack = np.stack([*widths, *(np.outer(x, x) for x in X.T)])
    found = [solve(Problem(DenseGram(stack), SVC(y, C), Simplex()), "silp", tol=tol) for tol in (1e-6, 1e-9)]
    assert found[0].status == "converged" and found[1].gap <= 1e-8


def test_weights_of_silp_and_newton_have_exact_zeros():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = np.sign(X[:, 0] + 0.1 * rng.normal(size=60))
    stack = np.array([np.outer(x, x) for x in X.T])
    for solver in ("silp", "newton", "simplemkl"):
        weights = solve(problem_of(stack, y, 1.0, 1.0), solver, tol=TOL).weights
        assert np.count_nonzero(weights) < 4
        assert np.argmax(weights) == 0


def hard_problem(norm=1.0) -> Problem:
    """A problem that takes every method several iterations."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 6))
    y = np.sign(X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=40))
    stack = np.array([np.exp(-((x[:, None] - x[None]) ** 2)) for x in X.T])
    return problem_of(stack, y, 10.0, norm)


ITERATIVE = [name for name in SOLVERS if name != "qcqp"]


@pytest.mark.parametrize("solver", ITERATIVE)
def test_max_iter_keeps_the_best_model(solver):
    solution = solve(hard_problem(), solver, tol=1e-9, max_iter=2)
    assert solution.status == "max_iter"
    assert solution.n_iter == 2
    assert solution.gap > 1e-9
    assert solution.upper == min(solution.history["upper"])
    # the model's own dual value; the history has the largest of all points
    assert solution.lower <= max(solution.history["lower"])
    assert solution.gap >= (solution.upper - solution.lower) / solution.upper


@pytest.mark.parametrize("solver", ITERATIVE)
def test_interrupted_keeps_the_best_model(solver):
    rows = []

    def stop_at_three(row):
        rows.append(row)
        if len(rows) == 3:
            raise KeyboardInterrupt

    problem = hard_problem()
    solution = solve(problem, solver, tol=1e-9, callback=stop_at_three)
    assert solution.status == "interrupted"
    assert solution.n_iter == 3
    assert solution.upper == rows[-1]["upper"]
    machine, K = problem.machine, problem.gram.raw
    f = sum(beta * K(k) @ solution.dual_coef for k, beta in enumerate(solution.weights))
    assert solution.upper == pytest.approx(machine.primal(f, float(solution.dual_coef @ f))[0], rel=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_callback_gets_the_rows_of_the_history(solver):
    rows = []
    solution = solve(hard_problem(), solver, tol=TOL, callback=rows.append)
    assert len(rows) == solution.n_iter
    assert {"time", "upper", "lower", "gap", "active"} <= set(rows[0])
    for key in solution.history:
        assert solution.history[key] == [row[key] for row in rows]
    assert np.all(np.diff(solution.history["upper"]) <= 0)
    assert np.all(np.diff(solution.history["lower"]) >= 0)
    assert np.all(np.diff(solution.history["time"]) >= 0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_warm_start_from_the_solution_is_done(solver):
    problem = hard_problem(2.0 if 2.0 in SOLVERS[solver][0] else 1.0)
    first = solve(problem, "newton", tol=1e-8)
    again = solve(problem, solver, tol=TOL, start=Start(first.weights, first.dual_coef))
    assert again.n_iter == 0
    assert again.status == "converged"
    assert again.upper == pytest.approx(first.upper, rel=1e-12)


@pytest.mark.parametrize("solver", ["newton", "silp", "level"])
def test_warm_start_from_a_neighbour_arrives(solver):
    problem = hard_problem()
    neighbour = Problem(problem.gram, SVC(problem.machine.y, 9.0), problem.mixing)
    start = solve(neighbour, solver, tol=TOL)
    solution = solve(problem, solver, tol=TOL, start=Start(start.weights, start.dual_coef))
    assert_objective(solution.upper, solve(problem, "qcqp", tol=TOL).upper, 1e-5)


@pytest.mark.parametrize("solver", ["silp", "simplemkl"])
def test_a_solver_that_does_not_apply_says_with_what(solver):
    with pytest.raises(ValueError, match=f"The solver '{solver}' cannot be used with norm=2: use 'newton', 'sip'"):
        solve(hard_problem(2.0), solver)


class Mute(Machine):
    """A machine that offers nothing beyond the contract."""

    n_samples, scale, floor = 2, 1.0, 1e-13

    def start(self):
        return np.zeros(2)

    def dual(self, a):
        return 0.0

    def make_feasible(self, a):
        return a

    def solve(self, combined, a, f, accuracy):
        return a

    def primal(self, f, quad, accuracy=0.0, a=None):
        return 0.5 * quad, 0.0

    def risk(self, out, b, error):
        return 0.0


def test_the_contract_of_a_machine_is_small():
    asked = {name for name, value in vars(Machine).items() if not name.startswith("_") and name != "n_samples"}
    assert asked == {
        "description", "start", "make_feasible", "dual", "solve", "primal", "risk", "reach", "total", "warm_start",
    }  # fmt: skip
    assert Machine.__abstractmethods__ == {"start", "make_feasible", "dual", "solve", "primal", "risk"}


def test_abilities_are_declared_once_and_named_by_solvers():
    sources = (machines_base, mixing_base)
    declared = {
        f"{part}.{name}"
        for part, module in zip(("machine", "mixing"), sources, strict=True)
        for key, protocol in vars(module).items() if key.startswith("Has")
        for name in vars(protocol) if not name.startswith("_")
    }  # fmt: skip
    contract = {f"mixing.{name}" for name in vars(Mixing)}
    asked = {need for name in REGISTRY for need in (*get_solver(name).requires, *get_solver(name).uses)}
    assert asked <= declared | contract
    assert {need for need in declared if need.startswith("machine.")} <= asked
    problem = Problem(DenseGram(np.eye(2)[None]), Mute(), Simplex())
    of_machines = sorted(need for need in declared if need.startswith("machine."))
    assert missing(problem, *of_machines) == of_machines


@pytest.mark.parametrize("solver", ["newton", "qcqp"])
def test_a_machine_that_lacks_something_is_named(solver):
    problem = Problem(DenseGram(np.eye(2)[None]), Mute(), Simplex())
    with pytest.raises(ValueError, match=f"'{solver}' cannot be used with the machine Mute: use 'silp', 'sip'"):
        solve(problem, solver)


def test_unknown_names_get_the_near_match():
    with pytest.raises(ValueError, match=r"Got 'newtn' instead. Did you mean 'newton'[?]"):
        get_solver("newtn")
    with pytest.raises(ValueError, match=r"must be one of auto, newton, .*silp, .*Got 'xyz' instead.$"):
        get_solver("xyz")


def test_qcqp_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match=r"needs about 0.00144 GB for 6 kernels on 40 samples"):
        solve(hard_problem(), QCQP(memory_limit=1e3))


@pytest.mark.parametrize("fraction", [0.3, 0.9])
def test_a_solver_object_brings_its_settings(fraction):
    solution = solve(hard_problem(), Level(fraction=fraction), tol=1e-4)
    assert solution.status == "converged"
    assert solution.solver == "level"


def test_level_survives_a_failed_projection(monkeypatch):
    monkeypatch.setattr("multikernel.solvers.level.project_to_level", lambda beta, *_: np.eye(6)[5])
    solution = solve(hard_problem(), "level", tol=1e-4)
    assert_objective(solution.upper, solve(hard_problem(), "newton", tol=TOL).upper, 1e-4)


@pytest.mark.parametrize("solver", ["level", "sip", "qcqp"])
@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_a_conic_solver_that_gives_up_leaves_an_honest_answer(solver, norm, monkeypatch):
    case = random_problem(0)
    problem, found = problem_of(case.stack, case.y, case.C, norm), []
    for module in ("solvers.conic_cuts", "solvers.qcqp"):
        monkeypatch.setattr(f"multikernel.{module}.solve_conic", lambda *_: found.append(1))
    solution = solve(problem, solver, tol=1e-4)
    assert found and solution.status in ("converged", "stalled") and np.isfinite(solution.gap)
    value = primal_value(case.stack, case.y, case.C, solution.weights, solution.dual_coef, solution.intercept)
    assert solution.upper == pytest.approx(value, rel=1e-9)
    best = solve(problem, "newton", tol=1e-6)
    assert solution.lower <= best.upper * (1.0 + 1e-9) and solution.upper >= best.lower * (1.0 - 1e-9)


def test_auto_needs_neither_highspy_nor_clarabel(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "highspy", None)
    monkeypatch.setitem(sys.modules, "clarabel", None)
    for index in range(14):
        case = random_problem(index)
        problem = problem_of(case.stack, case.y, case.C, case.norm)
        assert solve(problem, "auto", tol=TOL).status == "converged"
        assert solve(problem, "alternating", tol=TOL, max_iter=5000).status == "converged"
    assert isinstance(mixing_for(1.5), Ball)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0, 100.0])
def test_newton_on_kernels_of_rank_one(C):
    # no single a certifies the optimum, and second-order steps drop kernels that they should not
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 15))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.standard_normal(200) > 0, 1.0, -1.0)
    problem = Problem(DenseGram(np.stack([np.outer(x, x) for x in X.T])), SVC(y, C), Simplex())
    found, other = solve(problem, "newton", tol=1e-4), solve(problem, "alternating", tol=1e-4)
    assert found.status == other.status == "converged"
    assert found.upper == pytest.approx(other.upper, rel=2e-4)
    assert found.n_iter <= 60


def test_newton_shortens_steps_that_raise_their_own_model(monkeypatch):
    """Norms near one: steps in the logarithms of the weights are often too long, which the Hessian tells beforehand."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = np.where(np.square(X[:, :2]).sum(axis=1) + 0.6 * rng.normal(size=300) > 1.5, 1.0, -1.0)
    kernels = [*(RBF(factor=f) for f in (0.25, 0.5, 1.0, 2.0, 4.0)), Linear(), Polynomial(degree=2), Cosine()]
    whole, falls = Ball.newton_step, []

    def step(mixing, beta, q, H):
        new = whole(mixing, beta, q, H)
        falls.append(0.5 * float((new - beta) @ (q - H @ (new - beta))))
        return new

    monkeypatch.setattr(Ball, "newton_step", step)
    model = MKLClassifier(kernels, norm=1.1, C=0.1).fit(X, y)
    assert model.status_ == "converged" and model.n_iter_ <= 12
    # of 29 solutions every other one was thrown away
    assert min(falls) < 0


def test_with_fixed_weights_a_point_that_certifies_itself_is_kept_whatever_came_before():
    """Its primal value may be above the best one by the slack of an inner solution."""
    rng = np.random.default_rng(0)
    x, newton = rng.normal(size=40), Newton()
    point = Point(Problem(DenseGram(np.outer(x, x)[None]), SVC(np.sign(x)), Simplex()))
    state = newton.start(point, 1e-3)
    point.solve(1e-6)
    solved, state.upper = point.a, point.certificate.upper - 1e-7
    newton._judge(point, state, -np.inf)
    assert state.fixed and point.a is solved and point.certificate.relative <= 1e-3
