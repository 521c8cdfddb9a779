"""The machine of differentiable losses against a conic solver, for each loss and norm."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from certificates import quadratic_forms, support_value
from problems_losses import LOSSES
from reference_losses import conic_loss

from multikernel import MKLClassifier, stack_kernels
from multikernel.gram.dense import DenseGram
from multikernel.losses import Logistic, Loss, SmoothHinge
from multikernel.machines.smooth import Smooth
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Point, Problem
from multikernel.solve import solve

NORMS = (1.0, 4 / 3, 2.0, np.inf)
TOL = 1e-6


@cache
def data(loss_task, n=36):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4))
    stack = np.array([np.exp(-((x[:, None] - x[None]) ** 2) * g) for x in X.T for g in (0.2, 2.0)])
    stack[-1] = np.outer(X[:, 0], X[:, 0])
    target = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=n) + 0.7
    return stack, np.where(target > 0.7, 1.0, -1.0) if loss_task == "classification" else target


@cache
def reference(name, norm, fit_intercept=False):
    stack, y = data(LOSSES[name].task)
    return conic_loss(stack, y, 3.0, norm, name, fit_intercept)


def assert_solved(solution, machine, stack, norm, value):
    """Converged, the right value, and bounds that are those of the formulas at what was returned."""
    assert solution.status == "converged"
    assert solution.upper == pytest.approx(value, rel=1e-5)
    assert solution.lower <= value * (1 + 1e-8)
    a, beta = solution.dual_coef, solution.weights
    f = sum(b * K @ a for b, K in zip(beta, stack, strict=True))
    losses = machine.C * machine.loss.value(f + solution.intercept, machine.y)
    assert solution.upper == pytest.approx(0.5 * a @ f + losses.sum(), rel=1e-9)
    conjugates = machine.C * Loss.conjugate(machine.loss, a / machine.C, machine.y)
    # a searched conjugate is nowhere larger than the true one
    lower = -conjugates.sum() - 0.5 * support_value(quadratic_forms(stack, a), norm)
    assert lower <= solution.upper * (1 + 1e-9)
    if machine.balanced:
        assert abs(a.sum()) <= 1e-12 * np.abs(a).sum()
    assert np.all((a >= machine.lo) & (a <= machine.hi))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", LOSSES)
def test_agrees_with_a_conic_solver(name, norm):
    loss = LOSSES[name]
    stack, y = data(loss.task)
    machine = Smooth(y, loss, 3.0)
    # a loss without formulas searches for every conjugate: two solvers will do
    solvers = ["newton", "level"] if name == "quartic" else ["newton", "sip", "level", "alternating"]
    solvers += ["silp", "simplemkl"] * (norm == 1 and name != "quartic")
    for solver in solvers:
        solution = solve(Problem(DenseGram(stack), machine, mixing_for(norm)), solver, tol=TOL, max_iter=2000)
        assert_solved(solution, machine, stack, norm, reference(name, norm))


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("name", LOSSES)
def test_agrees_with_a_conic_solver_with_an_intercept(name, norm):
    loss = LOSSES[name]
    stack, y = data(loss.task)
    machine = Smooth(y, loss, 3.0, fit_intercept=True)
    for solver in ("newton", "level"):
        solution = solve(Problem(DenseGram(stack), machine, mixing_for(norm)), solver, tol=TOL)
        assert_solved(solution, machine, stack, norm, reference(name, norm, True))


def test_costs_per_sample():
    stack, y = data("classification")
    C = np.random.default_rng(0).uniform(0.1, 10.0, len(y))
    for norm in (1.0, 2.0):
        solution = solve(Problem(DenseGram(stack), Smooth(y, Logistic(), C), mixing_for(norm)), tol=TOL)
        assert solution.upper == pytest.approx(conic_loss(stack, y, C, norm, "logistic"), rel=1e-5)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [1e-3, 1e3, 1e5])
@pytest.mark.parametrize("loss", [*LOSSES.values(), SmoothHinge(sigma=300.0)], ids=repr)
def test_one_kernel_at_any_cost(loss, C, fit_intercept):
    stack, y = data(loss.task)
    machine = Smooth(y, loss, C, fit_intercept)
    point = Point(Problem(DenseGram(stack[:1]), machine, mixing_for(1)))
    start = machine.primal(point.f, 0.0)[0]
    point.solve(1e-9 * start)
    assert point.certificate.inner_gap <= 2e-9 * start


def test_float32_kernels_are_certified_in_float64():
    stack, y = data("classification")
    small = stack.astype(np.float32)
    solution = solve(Problem(DenseGram(small), Smooth(y, Logistic(), 10.0), mixing_for(1)), tol=1e-6)
    assert solution.status == "converged"
    exact = solve(Problem(DenseGram(small.astype(float)), Smooth(y, Logistic(), 10.0), mixing_for(1)), tol=1e-9)
    assert solution.upper == pytest.approx(exact.upper, rel=2e-6)
    assert solution.lower <= exact.upper


def test_the_smooth_hinge_approaches_the_support_vector_machine():
    stack, y = data("classification")
    exact = MKLClassifier("precomputed", fit_intercept=False, tol=1e-7, normalize=None).fit(stack_kernels(stack), y)
    errors = []
    for sigma in (3.0, 30.0, 300.0):
        solution = solve(Problem(DenseGram(stack), Smooth(y, SmoothHinge(sigma=sigma), 1.0), mixing_for(1)), tol=TOL)
        errors.append(solution.upper - exact.objective_)
        assert -1e-4 <= errors[-1] <= len(y) * np.log(2) / sigma + 1e-4
    assert errors[0] > errors[1] > errors[2]
