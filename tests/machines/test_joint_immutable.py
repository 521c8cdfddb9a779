"""Machines of all classes are immutable: the certificate of a point does not depend on what was called before."""

import numpy as np
import pytest
from problems_joint import draw

from multikernel.gram.dense import DenseGram
from multikernel.gram.product import ProductGram
from multikernel.losses import Logistic, Multinomial, SmoothHinge, SquaredHinge
from multikernel.machines.joint.class_products import ProductCrammerSinger
from multikernel.machines.joint.crammer_singer import CrammerSinger
from multikernel.machines.joint.hinge_loops import CONVERGED
from multikernel.machines.joint.joint_loss import JointLoss
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Point, Problem


def shared_problem(kind, fit_intercept):
    stack, y, C, norm, c, _ = draw(23, n=30, norm=2.0)
    gram = DenseGram(stack)
    if kind == "hinge":
        machine = CrammerSinger(y, C, fit_intercept, c)
    elif kind == "products":
        machine = ProductCrammerSinger(y, C, fit_intercept, c)
        gram = ProductGram(gram, np.array([np.eye(c), np.ones((c, c)) + np.diag(np.arange(c))]))
    else:
        machine = JointLoss(y, kind, C, fit_intercept, c)
    return Problem(gram, machine, mixing_for(norm))


def bits(value):
    return [np.asarray(part).tobytes() for part in (value if isinstance(value, tuple) else (value,))]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "kind", ["hinge", "products", Multinomial(), SquaredHinge(), SmoothHinge(), Logistic()], ids=str
)
def test_certificates_have_the_same_bits_in_any_order_of_calls(kind, fit_intercept):
    problem = shared_problem(kind, fit_intercept)
    machine, rng = problem.machine, np.random.default_rng(0)
    accuracies = [10.0**-k * machine.scale for k in (1, 3, 6, 9)]
    weights = [problem.mixing.make_feasible(rng.uniform(size=problem.gram.n_kernels)) for _ in accuracies]

    def solved(i):
        point = Point(problem, weights[i])
        point.solve(accuracies[i])
        return point

    def outcome(point):
        now = point.certificate
        return bits((now.upper, now.lower, now.intercept, point.a))

    points = [solved(i) for i in range(4)]
    expected = [outcome(point) for point in points]
    rough = 10.0 * rng.normal(size=points[0].a.shape)
    repaired = bits(machine.make_feasible(rough))
    for _ in range(40):
        i, j, call = rng.integers(4), rng.integers(4), rng.integers(6)
        point, accuracy = points[i], accuracies[j]
        if call == 0:
            machine.primal(point.f, float(point.beta @ point.q), accuracy)
        elif call == 1:
            machine.solve(point.combined, point.a, point.f, accuracy)
        elif call == 2:
            machine.partial_solve(point.combined, machine.start(), np.zeros_like(point.f), accuracy, 3)
        elif call == 3:
            machine.curvature(point.combined, point.a, point.f, point.outputs)
        elif call == 4:
            assert bits(machine.make_feasible(rough)) == repaired
        else:
            assert outcome(solved(i)) == expected[i]
        point.set_dual(point.a)
        assert outcome(point) == expected[i]


def test_row_steps_of_many_small_classes_end_in_a_few_steps_a_sample():
    # the penalty of the column sums grows from call to call of the compiled loop, each of n steps at most
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 4)
    X = 1.5 * rng.normal(size=(40, 6))[y] + rng.normal(size=(160, 6))
    K = np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
    machine = CrammerSinger(y, 100.0)
    rows = machine.row_steps(machine, DenseGram(K[None]).combined(np.ones(1)), machine.start(), 0.0 * machine.E, 0.05)
    first = rows.rho[0]
    status, a, _ = rows.run(50 * len(y))
    assert status == CONVERGED
    assert rows.rho[0] > first
    assert rows.gap(a) <= 0.1
