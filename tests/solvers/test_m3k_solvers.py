"""M3K: every solver against a conic one, at margins from none to the largest."""

import numpy as np
import pytest
from problems_joint import draw
from problems_margin import INDICES, inexact, table_of, views
from reference_joint import conic_joint, joint_infeasibility, joint_loss, trace_forms
from reference_margin import conic_m3k, eta_of, margins_at

from multikernel import M3KClassifier, stack_kernels
from multikernel.gram.dense import DenseGram
from multikernel.machines.joint.crammer_singer import CrammerSinger
from multikernel.mixing import largest_margin, margin_mixing, mixing_for
from multikernel.problem import Problem
from multikernel.solve import solve

pytestmark = inexact


def levels(largest, norm):
    """No margin, and margins more and more of the largest, to which a general solver needs a little distance."""
    rooms = (1.5, 0.5, 0.05, 1e-4) if norm == 1 else (0.9, 0.5, 0.05, 1e-2)
    return [-np.inf] + [largest.value - room * abs(largest.value) for room in rooms]


def run(stack, y, C, c, mixing, solver="auto", tol=1e-6):
    return solve(Problem(DenseGram(stack), CrammerSinger(y, C, False, c), mixing), solver, tol=tol)


def assert_solved(solution, stack, y, C, norm, gamma0, c):
    """The set A, the margin, the value recomputed, the optimum, and the bounds on both sides of it."""
    eta, A, beta = eta_of(stack, y, c), solution.dual_coef, solution.weights
    size = np.abs(eta).max()
    assert solution.status == "converged" and solution.gap <= 1e-6
    assert joint_infeasibility(A, y, C, False) < 1e-9
    assert np.sum(beta**norm) == pytest.approx(1.0, abs=1e-9)
    assert np.mean(margins_at(eta, y, beta)) >= gamma0 - 2e-10 * size
    f = np.tensordot(beta, np.array([K @ A for K in stack]), 1)
    upper = 0.5 * float(beta @ trace_forms(stack, A)) + joint_loss(f, y, C)
    assert upper == pytest.approx(solution.upper, rel=1e-9)
    optimum = conic_m3k(stack, y, C, norm, gamma0, c)
    assert solution.upper == pytest.approx(optimum, rel=1e-5)
    assert solution.lower <= optimum * (1 + 1e-6) and solution.upper >= optimum * (1 - 1e-6)


@pytest.mark.parametrize("level", range(5))
@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("index", INDICES)
def test_agrees_with_the_conic_solver(index, norm, level):
    stack, y, C, _, c, _ = draw(index, n=24)
    table = table_of(stack, y, c)
    largest = largest_margin(table, norm)
    gamma0 = levels(largest, norm)[level]
    if norm > 1 and (-np.inf < gamma0 < 0 or largest.value <= 0):
        pytest.skip("refused: the set would hold weights of zero")
    plain = gamma0 == -np.inf
    mixing = mixing_for(norm) if plain else margin_mixing(norm, table, gamma0, largest)
    assert_solved(run(stack, y, C, c, mixing), stack, y, C, norm, gamma0, c)


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("index", INDICES)
def test_at_the_largest_margin_the_problem_has_one_kernel(index, norm):
    stack, y, C, _, c, _ = draw(index, n=24)
    largest = largest_margin(table_of(stack, y, c), norm)
    if norm > 1 and largest.value <= 0:
        pytest.skip("refused: the set would hold weights of zero")
    mixing = margin_mixing(norm, table_of(stack, y, c), largest.value, largest)
    solution = run(stack, y, C, c, mixing)
    mixed = np.tensordot(solution.weights, stack, 1)[None]
    assert solution.upper == pytest.approx(conic_joint(mixed, y, C, 1, c, fit_intercept=False), rel=1e-5)
    assert np.mean(margins_at(eta_of(stack, y, c), y, solution.weights)) >= largest.value - 2e-10 * mixing.table.size


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize(
    "solver", ["newton", "silp", "sip", "level", "alternating", "qcqp", "qcqp-compact", "silp-compact"]
)
def test_every_solver_reaches_the_optimum(solver, norm):
    if "silp" in solver and norm == 2:
        pytest.skip("the solver is for polyhedra")
    stack, y, C, _, c, _ = draw(2, n=24)
    table = table_of(stack, y, c)
    largest = largest_margin(table, norm)
    for fraction in (0.95, 0.6):
        gamma0 = fraction * largest.value
        solution = run(stack, y, C, c, margin_mixing(norm, table, gamma0, largest), solver)
        assert_solved(solution, stack, y, C, norm, gamma0, c)


def test_a_solver_that_cannot_hold_a_margin_says_so():
    stack, y = views()
    with pytest.raises(ValueError, match=r"'simplemkl' cannot be used with norm=1 and a kernel margin gamma0=0\.4"):
        M3KClassifier("precomputed", solver="simplemkl").fit(stack_kernels(stack), y)
