"""A differentiable loss of all classes on one kernel, by its conjugate, with exact biases.

    max_A  -sum_i C_i l*(-A_i / C_i, y_i) - 1/2 tr A'KA,     A1 = 0,     1'A = 0  (with biases)
    min    1/2 tr A'KA + sum_i C_i l(F_i, y_i),               F = KA + b

Given: classes y, costs C, the combined kernel K, and l, the multinomial loss or a loss of the largest wrong class
(`multikernel.losses.joint`). Returned: A of shape (n, c), feasible and within the accuracy asked for; a_y is at most C,
without bound for the squared hinge. The dual is that of Zien & Ong 2007, Theorem 1. We differ in the way: exact row
steps with multipliers for the column sums, and where these become slow the method of `interior_point`. A change of
weights moves A by the inverse of K + D, D the second derivatives of the conjugate.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from multikernel.gram.base import Outputs
from multikernel.gram.combined import Combined
from multikernel.losses import LargestMargin, Loss, Multinomial, joint_form, loss_name
from multikernel.machines.base import FLOOR, Curvature
from multikernel.machines.joint.loss_loops import loss_row_steps, row_conjugates, row_gaps
from multikernel.machines.joint.newton_systems import ProjectedNewtonSystem
from multikernel.machines.joint.rows import RowMachine, RowSteps
from multikernel.machines.joint.smooth_biases import joint_biases

# squared error and largest number of the iterations for the multinomial Hessian: more exact ones save no outer steps
_LOOSE, _ITERATIONS = 3e-4, 40


class LossRowSteps(RowSteps):
    """Row steps of a differentiable loss."""

    machine: JointLoss
    bend = 0.3

    def __init__(self, machine, combined, a, f, target):
        super().__init__(machine, combined, a, f, target)
        self.conjugates = row_conjugates(*machine.loss.form, self.A, machine.C, machine.y)

    def _loop(self, max_steps, wanted, top, low):
        machine, rows = self.machine, self.rows
        return loss_row_steps(
            *machine.loss.form, rows.matrix, rows.scale, rows.have, self.diag, self.r, self.mean,
            machine.balanced, self.A, self.G, machine.C, machine.y, self.S, self.t, self.b, self.rho, self.conjugates,
            self.target, self.column_target, max_steps, wanted, top,
        )  # fmt: skip

    def gap(self, a):
        machine = self.machine
        G, t = self.slopes_at(a)
        A, zero = np.ascontiguousarray(a.T), np.zeros(machine.n_classes)
        conjugates = row_conjugates(*machine.loss.form, A, machine.C, machine.y)
        return row_gaps(
            *machine.loss.form, G, A, self.r, zero, t, machine.C, machine.y, conjugates, np.empty(machine.n_samples)
        )


class JointLoss(RowMachine):
    """A loss of all classes, with per-sample costs.

    Parameters
    ----------
    y : ndarray of int, shape (n,)
        Classes, 0 to c - 1.
    loss : Multinomial, SquaredHinge, SmoothHinge or Logistic
        The loss at cost one; all but the first stand for the largest over the wrong classes.
    C : float or ndarray of shape (n,)
        Cost of each sample (C times its weight), positive.
    fit_intercept : bool
        Whether each class has a bias; without them the columns of A need not sum to zero.
    n_classes : int, optional
        Number c of classes, by default one more than the largest of y.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.losses import Multinomial
    >>> from multikernel.mixing.norms import Simplex
    >>> from multikernel.problem import Problem
    >>> from multikernel.solve import solve
    >>> X = np.repeat(np.eye(3), 2, axis=0)
    >>> K = np.stack([X @ X.T, np.eye(6)])
    >>> machine = JointLoss(np.array([0, 0, 1, 1, 2, 2]), Multinomial())
    >>> solution = solve(Problem(DenseGram(K), machine, Simplex()), tol=1e-9)
    >>> solution.weights.round(6), round(solution.upper, 6)
    (array([1., 0.]), 4.265916)
    """

    row_steps = LossRowSteps

    def __init__(
        self,
        y: np.ndarray,
        loss: Loss,
        C: float | np.ndarray = 1.0,
        fit_intercept: bool = True,
        n_classes: int | None = None,
    ) -> None:
        form = joint_form(loss)
        if form is None:
            raise ValueError(f"The loss must have a form for all classes at once. Got {loss!r} instead.")
        # the loss is kept at cost one, its own cost multiplies the costs of the samples
        cost = form.C if isinstance(form, Multinomial) else form.loss.C
        super().__init__(y, np.multiply(C, cost), fit_intercept, n_classes)
        if isinstance(form, Multinomial):
            form = replace(form, C=1.0)
        else:
            form = replace(form, loss=replace(form.loss, C=1.0))
        self.loss: Multinomial | LargestMargin = form
        self.bounds = self.C * form.bound
        self.upper[self._own] = self.bounds
        self.E = np.zeros_like(self.upper)
        self.linear = (self.upper == 0.0) & (not isinstance(form, Multinomial))
        self.scale = float(self.losses(np.zeros((self.n_samples, self.n_classes))).sum())
        self.floor = FLOOR * self.scale
        self.reach = 1.0 + form.steepness

    @property
    def description(self) -> str:
        return f"the joint loss {loss_name(self.loss)!r}"

    # ---- value and conjugate

    def losses(self, f):
        return self.C * self.loss.value(f, self.y)

    def dual(self, a):
        return -float(self.C @ self.loss.conjugate(a / self.C[:, None], self.y))

    def derivatives(self, a):
        u = a / self.C[:, None]
        return self.loss.inverse_gradient(u, self.y), self.loss.curvature(u, self.y) / self.C[:, None]

    def off_bounds(self, a):
        tiny = 1e-10 * self.C[:, None]
        a = np.minimum(a, self.upper - tiny)
        a[self._own] = np.maximum(a[self._own], tiny[:, 0])
        return a

    # ---- feasible points

    def start(self):
        """Return minus the gradients at outputs that are the logarithms of the class frequencies; halved for hinges."""
        c = self.n_classes
        shares = np.bincount(self.y, self.C, c) / self.C.sum() if self.balanced else np.full(c, 1.0 / c)
        a = np.outer(-self.C, shares)
        a[self._own] += self.C
        return self._balance(a if isinstance(self.loss, Multinomial) else 0.5 * a)

    def _rescale(self, other, coef):
        """Return the coefficients multiplied by the ratios of the costs."""
        return coef * (self.C / getattr(other, "C", self.C))[:, None]

    def _soft_room(self, a, u, v, room):
        """Return how much class u may give to class v in each row: more where the conjugate curves less."""
        with np.errstate(divide="ignore", over="ignore"):
            D = self.loss.curvature(a / self.C[:, None], self.y)
            return np.minimum(0.5 * room, self.C / (D[:, u] + D[:, v]))

    # ---- the inner problem

    def best_biases(self, f, enough):
        return joint_biases(f, self.C, self.y, self.loss.form, enough)

    # ---- second order

    def curvature(self, combined: Combined, a, f, outputs: Outputs, rough: bool = False) -> Curvature:
        """Linearise the optimality conditions: a change of weights moves the free entries by -(K + D)^-1 F_k."""
        F = outputs.kernel_outputs()
        p = len(F)
        gradient, D = self.derivatives(a)
        if isinstance(self.loss, Multinomial):
            # every entry is free, and D large enough for iterations
            D = np.minimum(D, 1.0 / (FLOOR * self.C[:, None]))
            R = np.maximum(gradient - f, np.log(FLOOR) - np.abs(f).max())
            Z = ProjectedNewtonSystem(combined, D, self.balanced, rough).solve(
                np.concatenate([F, R[None]]), _LOOSE, _ITERATIONS
            )
            if Z is not None:
                H = F.reshape(p, -1) @ Z[..., :p].reshape(-1, p)
                return Curvature(0.5 * (H + H.T), np.arange(self.n_samples), Z[..., :p], Z[..., p])
        return super().curvature(combined, a, f, outputs, rough)
