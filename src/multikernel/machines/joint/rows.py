"""What the machines of several classes share: the set of A, its repair, and runs of row steps with multipliers.

    A <= B_i e_{y_i} row by row,     A1 = 0,     1'A = 0  (with biases)

A is (n, c), B_i the cost of sample i or, for losses without that bound, infinity. Rows are moved one at a time; biases
are multipliers of the column sums, which a small penalty keeps near zero on the way and which are made zero, by moves
within rows, in what is returned.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from multikernel.gram.base import Combined
from multikernel.machines.base import Machine
from multikernel.machines.joint.hinge_loops import CONVERGED, NEEDS_ROWS, project_rows
from multikernel.machines.joint.newton_systems import ClassBlocksNewtonSystem, DifferencesNewtonSystem

# row steps of a partial solution in units of its size: they are cheap beside the outputs of all kernels
BURST = 10
# part of the accuracy that the gap of the rows may take
ROWS = 0.7
# share of an accuracy to which the best biases are found: a smaller one takes iterations, a larger one shows in the gap
BIASES = 0.01
# smallest accuracy asked of an inner solution, relative to the largest loss
ROUNDING = 1e-15
# the penalty of the column sums, in units of the mean diagonal of the centred kernel
_PENALTY = 0.05
# share of the column sums, times the diagonal, by which slopes change when the sums are made zero
_SMALL_PART = 0.02
# relative distance from a bound below which a coefficient counts as being on it
_ON_BOUND = 1e-9
# how much more work one matrix of all free entries may be than one a class
_DEARER = 2.0
# steps between two returns to Python, where Ctrl-C is heard
_CHUNK = 20_000


class RowMachine(Machine):
    """Classes, costs and the set of A; a subclass brings the loss.

    Parameters
    ----------
    y : ndarray of int, shape (n,)
        Classes, 0 to c - 1.
    C : float or ndarray of shape (n,)
        Cost of each sample (C times its weight), positive.
    fit_intercept : bool
        Whether each class has a bias; without them the columns of A need not sum to zero.
    n_classes : int, optional
        Number c of classes, by default one more than the largest of y.
    """

    def __init__(
        self, y: np.ndarray, C: float | np.ndarray = 1.0, fit_intercept: bool = True, n_classes: int | None = None
    ) -> None:
        self.y = np.ascontiguousarray(y, np.intp)
        self.n_samples = len(self.y)
        self.n_classes = int(self.y.max()) + 1 if n_classes is None else n_classes
        self.C = np.ascontiguousarray(np.broadcast_to(np.asarray(C, float), self.y.shape))
        self.balanced = fit_intercept
        self.scale = float(self.C.sum())
        self._own = np.arange(self.n_samples), self.y
        self.upper = np.zeros((self.n_samples, self.n_classes))
        self.upper[self._own] = self.bounds = self.C

    def start(self):
        return np.zeros((self.n_samples, self.n_classes))

    def make_feasible(self, a):
        out = np.empty((self.n_samples, self.n_classes))
        project_rows(np.ascontiguousarray(a), self.bounds, self.y, out)
        return self._balance(out) if self.balanced else out

    def _balance(self, a: np.ndarray) -> np.ndarray:
        """Make the column sums zero: mass goes from the class of the largest surplus to that of the largest deficit.

        An entry may always shrink, and the room of a class in deficit is more than its deficit, so that each of at most
        c - 1 rounds settles a class; rows that have both entries off their bounds are moved first.
        """
        for _ in range(4 * self.n_classes):
            sums = a.sum(axis=0)
            u, v = int(np.argmax(sums)), int(np.argmin(sums))
            amount = min(sums[u], -sums[v])
            if amount <= 1e-15 * self.scale:
                break
            for first in (True, False):
                room = self._room(a, u, v) if first else np.minimum(self.upper[:, v] - a[:, v], self.scale)
                total = float(room.sum())
                share = min(1.0, amount / total) if total > 0 else 0.0
                a[:, u] -= share * room
                a[:, v] = np.minimum(a[:, v] + share * room, self.upper[:, v])
                amount -= share * total
                if share < 1.0 and total > 0:
                    break
        return a

    def _room(self, a: np.ndarray, u: int, v: int) -> np.ndarray:
        """Return how far class v may gain of class u, in rows where both are off their bounds."""
        room = self.upper[:, v] - a[:, v]
        return room * ((a[:, u] < self.upper[:, u]) & (room > _ON_BOUND * self.C))

    def free(self, a: np.ndarray) -> np.ndarray:
        """Return which entries are off their bounds, in rows with at least two of them, bool (n, c)."""
        free = a < self.upper - _ON_BOUND * self.C[:, None]
        free &= free.sum(axis=1, keepdims=True) > 1
        return free

    def _value(self, a: np.ndarray, f: np.ndarray) -> float:
        """Return the dual value of the single-kernel problem."""
        return self.dual(a) - 0.5 * float(np.vdot(a, f))

    def _gap(self, a: np.ndarray, f: np.ndarray, accuracy: float) -> tuple[float, Any]:
        """Return the gap of the single-kernel problem, and the best biases, found to ``accuracy`` in the value."""
        upper, b = self.primal(f, float(np.vdot(a, f)), accuracy)
        return upper - self._value(a, f), b

    def partial_solve(self, combined: Combined, a: np.ndarray, f: np.ndarray, accuracy: float, size: int) -> np.ndarray:
        """Return coefficients after a number of row steps in proportion to ``size``."""
        ascent = self._ascent(self, combined, a, f, ROWS * max(accuracy, ROUNDING * self.scale))
        ascent.run(BURST * size)
        return ascent.feasible()

    @property
    def _ascent(self) -> type[Ascent]:
        """The kind of row steps."""
        raise NotImplementedError

    def _slopes(self, f: np.ndarray) -> np.ndarray:
        """Return the slopes of the linear part of the dual value, less the outputs f."""
        raise NotImplementedError

    def start_biases(self, a: np.ndarray, g: np.ndarray, accuracy: float) -> np.ndarray:
        """Return biases to begin row steps with, from coefficients and slopes."""
        raise NotImplementedError

    def _newton(
        self, combined: Combined, free: np.ndarray, R: np.ndarray, D: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows with free entries and the Newton moves of all right-hand sides there, (m, c, k).

        D, of shape (n, c), is a diagonal to be added to the matrix.
        """
        counts = free.sum(axis=0).astype(float)
        rows = np.flatnonzero(free.any(axis=1))
        many = (counts.sum() - len(rows)) ** 3 > _DEARER * (np.sum(3.0 * counts**3) + float(len(rows)) ** 3)
        blocks = (ClassBlocksNewtonSystem if many else DifferencesNewtonSystem)(combined, free, self.balanced, D)
        return rows, blocks.solve(R)


class Ascent:
    """One run of row steps: class-major copies of the coefficients and slopes, column sums and multipliers."""

    def __init__(self, machine: RowMachine, combined: Combined, a: np.ndarray, f: np.ndarray, target: float) -> None:
        self.target, self.tight, self.f = target, 0.1 * target, f
        self.machine, self.combined, self.start = machine, combined, a
        self.rows = combined.host_rows()
        g = machine._slopes(f)
        self.A, self.G = np.ascontiguousarray(a.T), np.ascontiguousarray(g.T)
        self.mask = np.where(self.A < machine.upper.T, 0.0, -np.inf)
        n, c = a.shape
        self.S = np.zeros(c)
        self.r, self.mean, self.diag, self.rho = np.zeros(n), 0.0, combined.diag, np.zeros(1)
        self.b = np.zeros(c)
        if machine.balanced:
            self.b = machine.start_biases(a, g, target)
            self.r = combined.means
            self.mean = float(self.r.mean())
            # the diagonal of a centred kernel is not negative
            self.diag = np.maximum(combined.diag - 2.0 * self.r + self.mean, 0.0)
            size = max(float(self.diag.mean()), 1e-300)
            self.rho[0] = max(_PENALTY, 2.0 / n) * size
            # making the sums zero changes the slopes of all samples, each by a small part of S K
            small = min(target / (_SMALL_PART * machine.scale * size), machine.scale)
            self.tight = min(self.tight, float(self.rho[0]) * small**2)
        self.t = -self.b

    def run(self, max_steps: int) -> tuple[int, int]:
        """Row steps to the target or at most so many; return the status and the steps taken."""
        n = self.machine.n_samples
        wanted, top, low = np.empty(n, np.intp), np.empty(n), np.empty(n)
        used = 0
        while True:
            status, steps, m, _ = self._climb(min(max_steps - used, _CHUNK), wanted, top, low)
            used += steps
            if status == NEEDS_ROWS:
                self.rows.ensure(wanted[:m])
            elif status == CONVERGED or used >= max_steps:
                return status, used

    def _climb(self, max_steps: int, wanted: np.ndarray, top: np.ndarray, low: np.ndarray) -> tuple:
        """Call the compiled loop; return its status, steps, number of rows wanted, and gap."""
        raise NotImplementedError

    def stiffen(self, factor: float) -> None:
        """Multiply the penalty."""
        self.t -= (factor - 1.0) * self.rho[0] * self.S
        self.rho *= factor

    def feasible(self) -> np.ndarray:
        """Return the coefficients with column sums made zero, (n, c)."""
        a = np.ascontiguousarray(self.A.T)
        return self.machine._balance(a) if self.machine.balanced else a

    def balanced_slopes(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return slopes (c, n) at feasible coefficients, and what is to be added to those of each class."""
        change = a - self.A.T
        if not change.any():
            return self.G, self.t
        return self.G - self.combined.apply(change).T, self.t + change.T @ (self.r - self.mean)

    def gap(self, a: np.ndarray) -> float:
        """Return the gap of feasible coefficients, with the multipliers as biases."""
        raise NotImplementedError
