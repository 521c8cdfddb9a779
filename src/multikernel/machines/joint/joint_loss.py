"""Losses of all classes at once on one kernel, by their conjugates (Zien & Ong 2007, Theorem 1), with exact biases.

    max_A  -sum_i C_i l*(-A_i / C_i, y_i) - 1/2 tr A'KA,     A1 = 0,     1'A = 0  (with biases)
    min    1/2 tr A'KA + sum_i C_i l(F_i, y_i),               F = KA + b

l the loss of the largest wrong class, or the multinomial one (`multikernel.losses.joint`). The set of A is that of the
hinge's machine, a_y at most C (without bound for the squared hinge), and so is the way: rows one at a time, each by its
exact step, with multipliers for the columns. Where rows alone are slow, Newton's method on the primal finishes the work
(``central``). A answers to a change of weights by the matrix K + D, D the second derivatives of the conjugate.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from multikernel.gram.base import Combined, Outputs
from multikernel.losses import LargestMargin, Loss, Multinomial, joint_form, loss_name
from multikernel.machines.base import Curvature
from multikernel.machines.joint.central_path import _FASTER, CentralPath
from multikernel.machines.joint.hinge_loops import CONVERGED
from multikernel.machines.joint.loss_loops import row_gaps, sweep
from multikernel.machines.joint.newton_systems import ProjectedNewtonSystem
from multikernel.machines.joint.rows import BIASES, ROUNDING, ROWS, Ascent, RowMachine
from multikernel.machines.joint.smooth_biases import joint_biases

# entries whose D is so many times the diagonal of the kernel hardly answer to a change of weights
_STIFF = 1e3
# rounds of row steps per sample before Newton's method, and how many such rounds may end in columns that are not zero
_PATIENCE, _TURNS = 30, 10
# size from which, and how exactly, multinomial responses are found by iterations, and what D is at most, at cost one
_FEW, _LOOSE, _ITERATIONS, _HUGE = 1000, 1e-3, 40, 1e13
# accuracy, relative to the loss of no outputs, from which coefficients are refined beyond it
_FINEST = 3e-9
# part of the accuracy that the column sums may take to begin with
_COLUMNS = 0.01
# Newton steps of one polish, and the smallest mu, relative to the outputs
_JUMPS, _SMALLEST = 150, 1e-14
# biases need not be more exact than this, relative to the loss of no outputs
_BIASES = 1e-13


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
        # the loss at cost one, its own cost among those of the samples
        super().__init__(y, np.multiply(C, loss.C), fit_intercept, n_classes)  # type: ignore[attr-defined]
        form = joint_form(replace(loss, C=1.0))  # type: ignore[type-var]
        assert form is not None
        self.loss: Multinomial | LargestMargin = form
        self.bounds = self.C * form.bound
        self.upper[self._own] = self.bounds
        self.scale = float(self._losses(np.zeros((self.n_samples, self.n_classes))).sum())

    @property
    def description(self) -> str:
        return f"the joint loss {loss_name(self.loss)!r}"

    # ---- value and conjugate

    def _losses(self, f: np.ndarray) -> np.ndarray:
        return self.C * self.loss.value(f, self.y)

    def dual(self, a):
        return -float(self.C @ self.loss.conjugate(a / self.C[:, None], self.y))

    def _residual(self, a: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Slopes of the dual value: zero, up to biases and constants of rows, at the solution."""
        return self.loss.inverse_gradient(a / self.C[:, None], self.y) - f

    def _diagonal(self, a: np.ndarray) -> np.ndarray:
        """D, the second derivatives of the conjugate."""
        return self.loss.curvature(a / self.C[:, None], self.y) / self.C[:, None]

    # ---- feasible points

    def start(self):
        """Return the coefficients of outputs that know the shares of the classes alone, halved for the hinges."""
        c = self.n_classes
        shares = np.bincount(self.y, self.C, c) / self.C.sum() if self.balanced else np.full(c, 1.0 / c)
        a = np.outer(-self.C, shares)
        a[self._own] += self.C
        return a if isinstance(self.loss, Multinomial) else 0.5 * a

    def _rescale(self, other, coef):
        """Return the coefficients in proportion to the costs."""
        return coef * (self.C / getattr(other, "C", self.C))[:, None]

    def _room(self, a, u, v):
        """Moves from class u to class v in proportion to what they cost least, within the bounds."""
        D = self._diagonal(a)
        with np.errstate(divide="ignore"):
            soft = 1.0 / (D[:, u] + D[:, v])
        room = np.minimum(0.5 * (self.upper[:, v] - a[:, v]), soft)
        return np.where(a[:, u] < self.upper[:, u], room, 0.0)

    # ---- the inner problem

    @property
    def _ascent(self) -> type[Ascent]:
        return _Sweeps

    def _slopes(self, f: np.ndarray) -> np.ndarray:
        return -f

    def start_biases(self, a: np.ndarray, g: np.ndarray, accuracy: float) -> np.ndarray:
        return self.best_biases(-g, accuracy)

    def best_biases(self, f: np.ndarray, accuracy: float) -> np.ndarray:
        """Return the biases of the least loss, zero for machines without biases."""
        if not self.balanced:
            return np.zeros(self.n_classes)
        enough = max(BIASES * accuracy, _BIASES * self.scale)
        return joint_biases(f, self.C, self.y, self.loss.form, enough)

    def primal(self, f, quad, accuracy=0.0):
        b = self.best_biases(f, accuracy)
        return 0.5 * quad + float(self._losses(f + b).sum()), b

    def solve(self, combined, a, f, accuracy):
        """Row steps; where so many of them leave a gap, Newton's method."""
        accuracy = max(accuracy, ROUNDING * self.scale)
        ascent = self._ascent(self, combined, a, f, ROWS * accuracy)
        before = np.inf
        # at first; the gap of balanced columns then tells whether it is enough
        ascent.tight = max(ascent.tight, _COLUMNS * accuracy)
        for _ in range(_TURNS):
            status, _ = ascent.run(_PATIENCE * self.n_samples)
            a = ascent.feasible()
            gap = ascent.gap(a)
            if gap <= accuracy:
                return self._refined(combined, a, ascent, accuracy) if accuracy <= _FINEST * self.scale else a
            if status == CONVERGED:
                # slopes change with the sums to first order: nearer to zero, then
                ascent.tight *= min(0.1, (0.3 * accuracy / gap) ** 2)
                ascent.target *= 0.5
            elif gap > 0.5 * before:
                break
            before = gap
        f = ascent.f + combined.apply(a - ascent.start)
        return self._polish(combined, a, f, accuracy)[0]

    def _refined(self, combined: Combined, a: np.ndarray, ascent: Ascent, accuracy: float) -> np.ndarray:
        """Return a after a Newton step, where the loss has a Hessian: a gap of rounding leaves its root in a."""
        if not isinstance(self.loss, Multinomial):
            return a
        f = ascent.f + combined.apply(a - ascent.start)
        path = CentralPath(self, combined, a, f, self.best_biases(f, accuracy))
        path.step(1.0)
        new = self.make_feasible(path.a)
        there = path.f + combined.apply(new - path.a)
        return new if self._gap(new, there, accuracy)[0] <= self._gap(a, f, accuracy)[0] + 1e-15 * self.scale else a

    def _polish(self, combined, a, f, accuracy):
        """Newton steps on the primal of smoother and smoother losses, until the gap of the repaired a is small."""
        gap, b = self._gap(a, f, accuracy)
        best = a, f, gap
        if gap <= accuracy:
            return best
        path = CentralPath(self, combined, a, f, b)
        multinomial = isinstance(self.loss, Multinomial)
        spread = float(np.ptp(f + b, axis=1).max())
        # where the smooth loss is above the loss by about the gap
        mu = min(0.1 * spread, gap / float(a[self._own].sum() + _SMALLEST * self.scale))
        steps = 0
        while steps < _JUMPS:
            if multinomial:
                mu = max(mu, 1.0)
            while steps < _JUMPS:
                promise = path.step(mu)
                steps += 1
                if promise <= max(1e-2 * mu * self.scale if not multinomial or mu > 1 else 0.0, 0.1 * accuracy):
                    break
            new = self.make_feasible(path.a)
            there = path.f + combined.apply(new - path.a)
            gap = self._gap(new, there, accuracy)[0]
            if gap < best[2]:
                best = new, there, gap
            if gap <= 0.5 * accuracy or (multinomial and mu == 1.0) or mu < _SMALLEST * spread:
                break
            mu *= _FASTER
        return best

    # ---- second order

    def curvature(
        self, combined: Combined, a: np.ndarray, f: np.ndarray, outputs: Outputs, rough: bool = False
    ) -> Curvature:
        """Linearise the optimality conditions: a change of weights moves the free entries by -(K + D)^-1 F_k."""
        F = outputs.kernel_outputs()
        p, c = len(F), self.n_classes
        D = self._diagonal(a)
        if isinstance(self.loss, Multinomial) and self.n_samples * c > _FEW:
            # every entry is free, with a D of its own
            D = np.minimum(D, _HUGE / self.C[:, None])
            R = np.maximum(self._residual(a, f), -np.log(_HUGE) - np.abs(f).max())
            Z = ProjectedNewtonSystem(combined, D, self.balanced).solve(
                np.concatenate([F, R[None]]), _LOOSE, _ITERATIONS
            )
            if Z is not None:
                H = F.reshape(p, -1) @ Z[..., :p].reshape(-1, p)
                return Curvature(0.5 * (H + H.T), np.arange(self.n_samples), Z[..., :p], Z[..., p])
        free = self.free(a) & (D < _STIFF * combined.diag[:, None])
        if isinstance(self.loss, LargestMargin):
            # rows of hardly any coefficient
            free[~free[self._own] & (a[self._own] < 0.5 * self.C)] = False
        free &= free.sum(axis=1, keepdims=True) > 1
        if not free.any():
            return Curvature(np.zeros((p, p)), np.zeros(0, np.intp), np.zeros((0, c, p)), np.zeros((0, c)))
        R = np.where(free, self._residual(a, f), 0.0)
        rows, Z = self._newton(combined, free, np.concatenate([F, R[None]]), D)
        H = np.ascontiguousarray(F[:, rows]).reshape(p, -1) @ Z[..., :p].reshape(-1, p)
        return Curvature(0.5 * (H + H.T), rows, Z[..., :p], Z[..., p])


class _Sweeps(Ascent):
    """Row steps of a joint loss."""

    machine: JointLoss

    def _climb(self, max_steps, wanted, top, low):
        machine, rows = self.machine, self.rows
        return sweep(
            *machine.loss.form, rows.matrix, rows.scale, rows.have, self.diag, self.r, self.mean,
            machine.balanced, self.A, self.G, machine.C, machine.y, self.S, self.t, self.b, self.rho, self.target,
            self.tight, max_steps, wanted, top,
        )  # fmt: skip

    def gap(self, a):
        machine = self.machine
        G, t = self.balanced_slopes(a)
        zero = np.zeros(machine.n_classes)
        return row_gaps(
            *machine.loss.form, G, np.ascontiguousarray(a.T), self.r, zero, t, machine.C, machine.y,
            np.empty(machine.n_samples),
        )  # fmt: skip
