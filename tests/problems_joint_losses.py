"""The joint losses other than the hinge, and what their solutions are held against."""

import numpy as np
import pytest
from reference_joint import conic_other, joint_infeasibility, other_dual, other_loss, support_value, trace_forms

from multikernel.gram.dense import DenseGram
from multikernel.losses import Logistic, Multinomial, SmoothHinge, SquaredHinge
from multikernel.machines.joint.joint_loss import JointLoss
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Problem
from multikernel.solve import solve

LOSSES = {
    "multinomial": Multinomial(),
    "squared_hinge": SquaredHinge(),
    "logistic": Logistic(),
    "smooth_hinge": SmoothHinge(),
}
names = pytest.mark.parametrize("loss", list(LOSSES))
biases = pytest.mark.parametrize("fit_intercept", [True, False])


def run(loss, stack, y, C, norm, c, fit_intercept, solver="auto", tol=1e-6):
    machine = JointLoss(y, LOSSES[loss], C, fit_intercept, c)
    return solve(Problem(DenseGram(stack), machine, mixing_for(norm)), solver, tol=tol)


def check(loss, solution, stack, y, C, norm, c, fit_intercept, tol=1e-6):
    """The status, the set A, both bounds recomputed, and the optimum."""
    assert solution.status == "converged" and solution.gap <= tol
    A, b = solution.dual_coef, solution.intercept
    most = np.maximum(C, A.max(axis=1)) if loss == "squared_hinge" else C
    assert joint_infeasibility(A, y, most, fit_intercept) < 1e-9
    q = trace_forms(stack, A)
    f = np.tensordot(solution.weights, np.array([K @ A for K in stack]), 1)
    upper = 0.5 * float(solution.weights @ q) + other_loss(f + b, y, C, loss)
    assert upper == pytest.approx(solution.upper, rel=1e-9)
    assert other_dual(A, y, C, loss) - 0.5 * support_value(q, norm) <= solution.lower + 1e-9 * abs(upper)
    optimum = conic_other(stack, y, C, norm, loss, fit_intercept)
    assert solution.upper == pytest.approx(optimum, rel=1e-5)
    assert solution.lower <= optimum * (1 + 1e-9) and solution.upper >= optimum * (1 - 2e-6)
