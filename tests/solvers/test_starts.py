"""Starts of Newton's method: all coefficients moved at once, and weights that follow settled coefficients."""

from __future__ import annotations

import numpy as np
import pytest

from multikernel.gram.combined import HostCombined
from multikernel.gram.dense import DenseGram
from multikernel.machines.oneclass import OneClass
from multikernel.machines.svc import SVC
from multikernel.machines.svr import SVR
from multikernel.mixing.norms import Simplex
from multikernel.problem import Problem, Start
from multikernel.solve import solve

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
STACK = np.array([np.exp(-np.square(x[:, None] - x) / w) for x in X.T for w in (0.5, 4.0)])
SCORE = np.sin(2.0 * X[:, 0]) + 0.3 * RNG.normal(size=50)
LABELS = np.where(SCORE > 0, 1.0, -1.0)
MACHINES = {
    "svc": lambda C: SVC(LABELS, C),
    "svc without intercept": lambda C: SVC(LABELS, C, fit_intercept=False),
    "svc with costs": lambda C: SVC(LABELS, C * RNG.uniform(0.5, 2.0, 50)),
    "svr": lambda C: SVR(SCORE, np.full(50, C), 0.1),
    "one class": lambda C: OneClass(np.ones(50), 0.3),
}


@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("name", MACHINES)
def test_a_leap_is_feasible_and_ascends(name, C):
    machine = MACHINES[name](C)
    combined = HostCombined(DenseGram(STACK), np.full(6, 1 / 6))
    K = STACK.mean(axis=0)

    def value(a):
        return machine.dual(a) - 0.5 * a @ K @ a

    rng = np.random.default_rng(1)
    for spread in (0.0, 0.3, 1.0):
        a = machine.make_feasible(spread * rng.uniform(machine.lo, machine.hi))
        f = K @ a
        leapt = machine.frank_wolfe_step(combined, a, f, machine.primal(f, a @ f)[1])
        assert np.all(leapt >= machine.lo) and np.all(leapt <= machine.hi)
        if machine.balanced:
            assert leapt.sum() == pytest.approx(machine.total, abs=1e-12 * max(1.0, np.abs(leapt).sum()))
        assert value(leapt) >= value(a) - 1e-12 * abs(value(a))


def test_from_zero_a_leap_at_small_costs_is_the_solution():
    # with every sample inside the margin all coefficients are on their bounds
    machine = SVC(np.repeat([1.0, -1.0], 25), 1e-4)
    combined = HostCombined(DenseGram(STACK), np.full(6, 1 / 6))
    a = machine.frank_wolfe_step(combined, machine.start(), np.zeros(50), 0.0)
    np.testing.assert_allclose(a, np.repeat([1e-4, -1e-4], 25))


@pytest.mark.parametrize("C", [1.0, 0.1, 0.01, 1e-3])
@pytest.mark.parametrize("name", ["svc", "svr"])
def test_starts_at_ten_times_the_cost_reach_the_optimum(name, C):
    gram, many = DenseGram(STACK), MACHINES[name](10.0 * C)
    first = solve(Problem(gram, many, Simplex()), tol=1e-6)
    machine = MACHINES[name](C)
    problem = Problem(gram, machine, Simplex())
    a, b, F = machine.warm_start(many, first.dual_coef, first.outputs)
    start = Start(first.weights, a, (b, F))
    warm, cold = solve(problem, tol=1e-6, start=start), solve(problem, "level", tol=1e-6)
    assert warm.gap <= 1e-6
    assert warm.upper == pytest.approx(cold.upper, rel=3e-6)
