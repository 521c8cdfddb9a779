"""Support vector classification on one kernel.

    max_a  y'a - 1/2 a'Ka,     0 <= y_i a_i <= C_i,     sum a = 0  (with an intercept)

by sequential minimal optimisation with second-order working sets, warm starts, and shrinking: variables at a bound
whose gradient holds them there are set aside, the rest is solved as a smaller problem, and all are rechecked.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError

from multikernel.gram.combined import Combined
from multikernel.gram.dense import DenseGram
from multikernel.losses import Hinge
from multikernel.machines.base import ConicMachine, Curvature, Machine
from multikernel.machines.smo import CONVERGED, NEEDS_ROW, ascend, smo
from multikernel.spd import solve_spd

# steps between two returns to Python, where Ctrl-C is heard
_CHUNK = 100_000
# combined rows formed together when one is missing
_BATCH = 32
# steps per sample without convergence before the free variables are moved together
_PATIENCE = 20
# relative distance from a bound below which a coefficient counts as being on it
_ON_BOUND = 1e-9


@dataclass(frozen=True)
class SVCFit:
    """A trained single-kernel machine: coefficients y_i alpha_i, intercept, outputs K a, and the costs used."""

    dual_coef: np.ndarray
    intercept: float
    outputs: np.ndarray
    C: np.ndarray


class SVC(Machine):
    """Hinge loss with per-sample costs.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels -1 and 1.
    C : float or ndarray of shape (n,)
        Cost of each sample (C times its weight), positive.
    fit_intercept : bool
        Whether f has an intercept; without it the constraint sum a = 0 falls away.
    """

    def __init__(self, y: np.ndarray, C: float | np.ndarray = 1.0, fit_intercept: bool = True) -> None:
        self.y = np.asarray(y, float)
        self.C = np.broadcast_to(np.asarray(C, float), self.y.shape)
        self.fit_intercept = fit_intercept
        self.loss = Hinge(self.C)
        self.n_samples = len(self.y)
        self.scale = float(self.C.sum())
        self.lo = np.where(self.y > 0, 0.0, -self.C)
        self.hi = np.where(self.y > 0, self.C, 0.0)

    def start(self):
        return np.zeros(self.n_samples)

    def dual(self, a):
        return float(self.y @ a)

    def conic(self) -> ConicMachine:
        """Return the machine as data for a conic solver."""
        equality = np.ones(self.n_samples) if self.fit_intercept else None
        return ConicMachine(self.y, self.lo, self.hi, equality)

    def primal(self, f, quad):
        b = self.loss.best_intercept(f, self.y) if self.fit_intercept else 0.0
        return 0.5 * quad + float(self.loss.value(f + b, self.y).sum()), b

    def free(self, a: np.ndarray) -> np.ndarray:
        """Return the indices strictly inside their bounds."""
        edge = _ON_BOUND * self.C
        return np.flatnonzero((a > self.lo + edge) & (a < self.hi - edge))

    def repair(self, a):
        a = np.clip(a, self.lo, self.hi)
        if not self.fit_intercept:
            return a
        rounding = 1e-15 * np.abs(a).sum()
        for candidates in (self.free(a), np.arange(self.n_samples)):
            excess = a.sum()
            if abs(excess) <= rounding:
                break
            room = self._room(a, excess)[candidates]
            if total := room.sum():
                a[candidates] -= np.sign(excess) * room * min(1.0, abs(excess) / total)
        excess = a.sum()
        roomiest = int(np.argmax(self._room(a, excess)))
        a[roomiest] = np.clip(a[roomiest] - excess, self.lo[roomiest], self.hi[roomiest])
        return a

    def _room(self, a: np.ndarray, excess: float) -> np.ndarray:
        """How far each coefficient can move against the sign of ``excess``."""
        return a - self.lo if excess > 0 else self.hi - a

    def solve(self, combined, a, f, accuracy, max_steps=None):
        tol = max(accuracy / self.scale, 1e-15)
        climb = _Climb(self, a, self.y - f, tol)
        if max_steps is not None:
            climb.burst(combined, max_steps)
        else:
            climb.run(combined, max(500_000, 100 * self.n_samples))
        return self.repair(climb.a)

    def fit(self, K: np.ndarray, start: SVCFit | None = None, tol: float = 1e-3) -> SVCFit:
        """Train on one kernel matrix alone, to the violation ``tol`` of the optimality conditions.

        Parameters
        ----------
        K : ndarray of shape (n, n)
            Kernel matrix, float32 or float64.
        start : SVCFit, optional
            A fit on the same samples and kernel with neighbouring costs, to begin with.
        tol : float
            Largest violation, as libsvm's tolerance.

        Returns
        -------
        SVCFit

        Examples
        --------
        >>> import numpy as np
        >>> from multikernel.machines.svc import SVC
        >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
        >>> fit = SVC(np.sign(x)).fit(np.outer(x, x))
        >>> fit.dual_coef, fit.intercept
        (array([ 0. , -0.5,  0.5,  0. ]), 0.0)
        """
        combined = Combined(DenseGram(K[None]), np.ones(1))
        a, f = self.start(), np.zeros(self.n_samples)
        if start is not None:
            a = self._carry_over(start)
            f = start.outputs + combined.apply_change(a - start.dual_coef)
        a_new = self.solve(combined, a, f, tol * self.scale)
        f += combined.apply_change(a_new - a)
        return SVCFit(a_new, self.primal(f, 0.0)[1], f, self.C)

    def _carry_over(self, start: SVCFit) -> np.ndarray:
        """Keep the coefficients of another fit, those on their upper bound moved to the new one."""
        bounded = np.abs(start.dual_coef) >= (1.0 - _ON_BOUND) * start.C
        return self.repair(np.where(bounded, self.y * self.C, start.dual_coef))

    def curvature(self, combined: Combined, a: np.ndarray, f: np.ndarray, F: np.ndarray) -> Curvature:
        """Linearise the optimality conditions of the free coefficients.

        On the free set y - f - b = 0 and sum a = 0, so that a change of weights moves a_free by -Z dbeta with
        [K_ff 1; 1' 0] [Z; .] = [F_f'; 0], and H = F_f Z.
        """
        free = self.free(a)
        p = len(F)
        if len(free) < 1 + self.fit_intercept:
            return Curvature(np.zeros((p, p)), free[:0], np.zeros((0, p)), np.zeros(0))
        Ff = F[:, free]
        residual = self.y[free] - f[free]
        rhs = np.column_stack([Ff.T, residual, np.ones(len(free))])
        X = _solve_ridged(combined, free, rhs)
        if self.fit_intercept:
            ones = X[:, -1]
            X = X - np.outer(ones, X.sum(axis=0) / ones.sum())
        Z, correction = X[:, :p], X[:, p]
        H = Ff @ Z
        return Curvature(0.5 * (H + H.T), free, Z, correction)


class _Climb:
    """One inner solve: coefficients a, gradient G, and the masks of what may grow and shrink."""

    def __init__(self, machine: SVC, a: np.ndarray, G: np.ndarray, tol: float) -> None:
        self.balanced = machine.fit_intercept
        self.loop = smo if self.balanced else ascend
        self.lo, self.hi, self.tol = machine.lo, machine.hi, tol
        self.a, self.G = a.copy(), G
        self._set_masks()

    def _set_masks(self) -> None:
        self.up = np.where(self.a < self.hi, 0.0, -np.inf)
        self.low = np.where(self.a > self.lo, 0.0, np.inf)

    def run(self, rows, budget: int) -> None:
        """Climb to the tolerance, on all variables and on those that shrinking leaves, in turn."""
        n, patience = len(self.a), _PATIENCE * len(self.a)
        while budget > 0:
            status, used, top, bottom = self._ascend(rows, min(n, budget))
            budget -= used
            patience -= used
            if status == CONVERGED:
                return
            if patience < 0:
                self._jump(rows)
                patience = _PATIENCE * n
                continue
            # a variable on a bound that its gradient holds there cannot be chosen while top and bottom close in
            held = (np.isinf(self.up) & (self.G > top)) | (np.isinf(self.low) & (self.G < bottom))
            if n > 2 * np.count_nonzero(~held) > 2:
                used = self._climb_within(rows, np.flatnonzero(~held), min(budget, _PATIENCE * n))
                budget -= used
                patience -= used

    def burst(self, rows, size: int) -> None:
        """Work on the ``size`` worst violators only, for as many steps."""
        chosen = _working_set(self.G, self.up, self.low, size)
        rows.ensure(chosen)
        aside = np.ones(len(self.a), bool)
        aside[chosen] = False
        self.up[aside], self.low[aside] = -np.inf, np.inf
        self._ascend(rows, size)

    def _jump(self, rows) -> None:
        """Newton steps on the free variables, each as far as the box allows: what pairs cannot do on low ranks.

        The objective is a concave quadratic, so that every such step ascends; a step that ends on a bound takes
        that variable out of the free set, and a full one ends the jump.
        """
        for _ in range(len(self.a)):
            free = np.flatnonzero((self.up == 0) & (self.low == 0))
            if len(free) < 1 + self.balanced:
                return
            rhs = np.column_stack([self.G[free], np.ones(len(free))])
            X = _solve_ridged(rows, free, rhs)
            step = X[:, 0] - X[:, 1] * (X[:, 0].sum() / X[:, 1].sum() if self.balanced else 0.0)
            room = np.where(step > 0, self.hi[free], self.lo[free]) - self.a[free]
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(step != 0, room / step, np.inf)
            first = int(np.argmin(ratio))
            t = min(1.0, float(ratio[first]))
            change = np.zeros(len(self.a))
            change[free] = t * step
            if t < 1.0:
                change[free[first]] = room[first]
            self.a += change
            self.G -= rows.apply_change(change)
            self._set_masks()
            if t == 1.0:
                return

    def _climb_within(self, rows, keep: np.ndarray, budget: int) -> int:
        """Solve the problem restricted to ``keep``, then bring all gradients up to date; return the steps used."""
        part = copy(self)
        for name in ("lo", "hi", "a", "G", "up", "low"):
            setattr(part, name, getattr(self, name)[keep].copy())
        used = part._ascend(rows.restrict(keep), budget)[1]
        change = np.zeros(len(self.a))
        change[keep] = part.a - self.a[keep]
        self.a[keep] = part.a
        self.G -= rows.apply_change(change)
        self._set_masks()
        return max(used, 1)

    def _ascend(self, rows, budget: int) -> tuple[int, int, float, float]:
        """Run the compiled loop, forming rows as it asks for them; return (status, steps, top, bottom)."""
        used = 0
        while True:
            status, row, steps, top, bottom = self.loop(
                rows.matrix, rows.scale, rows.have, rows.diag,
                self.lo, self.hi, self.a, self.G, self.up, self.low, self.tol, min(budget - used, _CHUNK),
            )  # fmt: skip
            used += steps
            if status == NEEDS_ROW:
                rows.ensure(_wanted_rows(row, rows.have, self.G, self.up, self.low, top, bottom))
            elif status == CONVERGED or used >= budget:
                return status, used, top, bottom


def _working_set(G: np.ndarray, up: np.ndarray, low: np.ndarray, size: int) -> np.ndarray:
    """Return the worst violators, half of them able to grow and half to shrink, ties broken at random, sorted."""
    noise = np.random.default_rng(len(G)).random(len(G)) * 1e-6
    half = min(size // 2, len(G))
    grow = np.argpartition(-(G + up) - noise, half - 1)[:half]
    shrink = np.argpartition(G + low - noise, half - 1)[:half]
    return np.unique(np.concatenate([grow[up[grow] == 0], shrink[low[shrink] == 0]]))


def _wanted_rows(row, have, G, up, low, top, bottom) -> np.ndarray:
    """Return the missing row and the other missing rows that violate optimality most, sorted."""
    middle = 0.5 * (top + bottom)
    violation = np.maximum(G + up - middle, middle - (G + low))
    violation[have] = -np.inf
    violation[row] = np.inf
    m = min(_BATCH, len(G))
    rows = np.argpartition(-violation, m - 1)[:m]
    return np.sort(rows[violation[rows] > 0])


def _solve_ridged(combined: Combined, idx: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Solve (K_beta[idx, idx] + ridge I) X = rhs, the ridge as small as a Cholesky factorisation allows."""
    mean = max(float(combined.diag[idx].mean()), np.finfo(np.float32).tiny)
    for power in range(-6 if combined.matrix.dtype == np.float32 else -11, 1):
        K = combined.block(idx)
        K.flat[:: len(idx) + 1] += mean * 10.0**power
        try:
            return solve_spd(K, rhs, combined.gram.team).astype(np.float64)
        except LinAlgError:
            continue
    return np.zeros_like(rhs)
