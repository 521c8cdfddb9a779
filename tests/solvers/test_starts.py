"""What Newton's method begins with: partial solutions of the inner problem, and solutions at other costs."""

from __future__ import annotations

import numpy as np
import pytest

from multikernel.gram.dense import DenseGram
from multikernel.losses import SquaredHinge
from multikernel.machines.joint.crammer_singer import CrammerSinger
from multikernel.machines.joint.joint_loss import JointLoss
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
    "joint hinge": lambda C: CrammerSinger(np.digitize(SCORE, [-0.5, 0.5]), C),
    "joint squared hinge": lambda C: JointLoss(np.digitize(SCORE, [-0.5, 0.5]), SquaredHinge(), C),
}


@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("name", MACHINES)
def test_a_partial_solution_is_feasible_and_ascends(name, C):
    machine = MACHINES[name](C)
    gram = DenseGram(STACK)
    combined = gram.combined(np.full(6, 1 / 6))
    K = STACK.mean(axis=0)

    def value(a):
        return machine.dual(a) - 0.5 * np.vdot(a, K @ a)

    rng = np.random.default_rng(1)
    for spread in (0.0, 0.3, 1.0):
        start = machine.start()
        a = machine.make_feasible(start + spread * C * rng.normal(size=start.shape))
        f = K @ a
        solved = machine.solve(combined, a, f, 1e-9 * machine.scale)
        part = machine.partial_solve(combined, a, f, 1e-9 * machine.scale, 20)
        np.testing.assert_allclose(machine.make_feasible(part), part, atol=1e-12 * machine.scale)
        gain = value(solved) - value(a)
        assert value(part) - value(a) >= 0.02 * gain - 1e-9 * machine.scale
        assert value(part) <= value(solved) + 1e-8 * machine.scale


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
