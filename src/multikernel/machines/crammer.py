"""The support vector machine of several classes on one kernel, after Crammer & Singer 2001 and Zien & Ong 2007, (9).

    max_A  sum_i A_{i,y_i} - 1/2 tr A'KA,     A <= C_i e_{y_i} row by row,     A1 = 0,     1'A = 0  (with biases)

A is (n, c). The primal is 1/2 tr A'KA + sum_i C_i max_u ([u != y_i] + F_iu - F_{i,y_i})_+, F = KA + b. Rows are moved
one at a time, each to the projection of A_i + g_i / K_ii onto its set; biases are multipliers of the column sums, which
a small penalty keeps near zero on the way and which are made zero, by moves within rows, in what is returned. Where
rows alone are slow (low ranks, large costs), Newton steps on the free entries finish the work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multikernel.gram.combined import Combined
from multikernel.machines.base import ConicMachine, Curvature, Machine
from multikernel.machines.biases import best_biases
from multikernel.machines.classblocks import ClassBlocks
from multikernel.machines.crammer_loops import CONVERGED, NEEDS_ROWS, climb, project_rows
from multikernel.machines.differences import Differences

# the penalty of the column sums, in units of the mean diagonal of the centred kernel
_PENALTY = 0.05
# share of the column sums, times the diagonal, by which slopes change when the sums are made zero
_SMALL_PART = 0.02
# relative distance from a bound below which a coefficient counts as being on it
_ON_BOUND = 1e-9
# row steps per sample without convergence before the free entries are moved together, and how often that is done
_PATIENCE, _ROUNDS, _RAISE = 20, 20, 8.0
# how much more work one matrix of all free entries may be than one a class
_DEARER = 2.0
# largest number of Newton steps of one polish
_JUMPS = 200
# row steps of a burst for each step asked for: they are cheap beside the outputs of all kernels
_BURST = 10
# part of the accuracy asked for to which problems are solved: row steps are cheap beside the outputs of all kernels
_FINER = 0.2
# part of the accuracy that the gap of the rows may take
_ROWS = 0.7
# smallest accuracy asked of an inner solution, relative to the largest loss
_ROUNDING = 1e-15
# steps between two returns to Python, where Ctrl-C is heard
_CHUNK = 20_000


@dataclass(frozen=True)
class _Biases:
    """Best biases for the outputs f, the loss with them, and how exact they were asked to be."""

    f: np.ndarray
    b: np.ndarray
    loss: float
    exactness: float


class CrammerSinger(Machine):
    """The hinge of the largest wrong class, with per-sample costs.

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

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.machines.crammer import CrammerSinger
    >>> from multikernel.mixing import Simplex
    >>> from multikernel.problem import Problem
    >>> from multikernel.solve import solve
    >>> X = np.repeat(np.eye(3), 2, axis=0)
    >>> K = np.stack([X @ X.T, np.eye(6)])
    >>> solution = solve(Problem(DenseGram(K), CrammerSinger(np.array([0, 0, 1, 1, 2, 2])), Simplex()), tol=1e-6)
    >>> solution.weights.round(3), round(solution.upper, 4)
    (array([1., 0.]), 1.0)
    """

    bursts = True

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
        self.upper[self._own] = self.C
        # those of the last primal value, and how exact they need be: as the last solution asked
        self._biases: _Biases | None = None
        self._exactness = 0.0

    def start(self):
        return np.zeros((self.n_samples, self.n_classes))

    def dual(self, a):
        return float(a[self._own].sum())

    def conic(self) -> ConicMachine:
        """Return the machine as data for a conic solver: A row by row as one vector."""
        n, c = self.n_samples, self.n_classes
        rows = np.kron(np.eye(n), np.ones(c))
        columns = np.kron(np.ones(n), np.eye(c))
        linear = np.zeros((n, c))
        linear[self._own] = 1.0
        return ConicMachine(
            linear.ravel(), np.repeat(-self.C, c), self.upper.ravel(),
            np.vstack([rows, columns[1:]]) if self.balanced else rows, columns=c, centred=self.balanced,
        )  # fmt: skip

    # ---- feasible points

    def repair(self, a):
        out = np.empty((self.n_samples, self.n_classes))
        project_rows(np.ascontiguousarray(a), self.C, self.y, out)
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
                room = self.upper[:, v] - a[:, v]
                if first:
                    room = room * ((a[:, u] < self.upper[:, u]) & (room > _ON_BOUND * self.C))
                total = float(room.sum())
                share = min(1.0, amount / total) if total > 0 else 0.0
                a[:, u] -= share * room
                a[:, v] = np.minimum(a[:, v] + share * room, self.upper[:, v])
                amount -= share * total
                if share < 1.0 and total > 0:
                    break
        return a

    # ---- the inner problem

    def solve(self, combined, a, f, accuracy, max_steps=None):
        accuracy = max(_FINER * accuracy, _ROUNDING * self.scale)
        self._exactness = 0.03 * accuracy
        ascent = _Ascent(self, combined, a, f, _ROWS * accuracy)
        if max_steps is not None:
            ascent.run(_BURST * max_steps)
            return ascent.feasible()
        polished = None
        for turn in range(_ROUNDS):
            status, _ = ascent.run(_PATIENCE * self.n_samples)
            a = ascent.feasible()
            gap = ascent.gap(a)
            if gap <= accuracy:
                return a
            if status == CONVERGED:
                # slopes change with the sums to first order: nearer to zero, then
                ascent.tight *= min(0.1, (0.3 * accuracy / gap) ** 2)
                ascent.target *= 0.5
                if ascent.target > 1e-2 * accuracy:
                    continue
            elif self.balanced and turn % 3 < 2:
                # what a small penalty does not settle a larger one may
                ascent.stiffen(_RAISE)
                continue
            f = ascent.f + combined.apply_change(a - ascent.start)
            if polished is not None and self._value(a, f) < self._value(*polished):
                a, f = polished
            a, f, gap = self._polish(combined, a, f, accuracy)
            polished = a, f
            if gap <= accuracy:
                break
            rho = float(ascent.rho[0])
            ascent = _Ascent(self, combined, a, f, _ROWS * accuracy)
            ascent.rho[0] = max(ascent.rho[0], rho)
        return a

    def _value(self, a: np.ndarray, f: np.ndarray) -> float:
        """Return the dual value of the single-kernel problem."""
        return self.dual(a) - 0.5 * float(np.vdot(a, f))

    def _polish(self, combined: Combined, a: np.ndarray, f: np.ndarray, accuracy: float):
        """Newton steps on the free entries, each as far as the bounds allow: what single rows cannot do on low ranks.

        The objective is a concave quadratic, so that every such step ascends, rows and columns keeping their sums. A
        step that ends on a bound takes its entry out of the free set; after a full one the entries that the best biases
        want to leave their bounds join it. Returns coefficients, outputs and the gap that is left.
        """
        free, attempt, before = self.free(a), 0, self._value(a, f)
        for _ in range(_JUMPS):
            step = np.zeros_like(a)
            if free.any():
                rows, moves = self._step(combined, free, self._slopes(f)[None])
                step[rows] = moves[..., 0]
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(step > 0, (self.upper - a) / step, np.inf)
            t = min(1.0, float(ratio.min()))
            if t > 0:
                new = self.repair(np.where(ratio <= t, self.upper, a + t * step))
                f = f + combined.apply_change(new - a)
                a = new
            if t < 1.0:
                free &= ratio > t
                free &= free.sum(axis=1, keepdims=True) > 1
                continue
            gap, b = self._gap(a, f)
            now = self._value(a, f)
            # entries released together may block each other: then the worst alone, then by the other biases
            attempt = 0 if now > before + 1e-3 * gap else attempt + 1
            before = now
            if gap <= 0.5 * accuracy or attempt == 4:
                break
            free = self._released(a, self._slopes(f), b if attempt > 1 else None, attempt % 2 == 1)
        return a, f, self._gap(a, f)[0]

    def _gap(self, a: np.ndarray, f: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the gap of the single-kernel problem, and the best biases."""
        upper, b = self.primal(f, float(np.vdot(a, f)))
        return upper - self._value(a, f), b

    def _released(self, a: np.ndarray, g: np.ndarray, b: np.ndarray | None, alone: bool) -> np.ndarray:
        """Return the free entries and, of those on their bounds, the ones whose slopes make them leave."""
        if self.balanced:
            g = g - (self.start_biases(a, g) if b is None else b)
        inside = a < self.upper
        excess = np.where(inside, g, -np.inf).max(axis=1, keepdims=True) - g
        excess[inside] = 0.0
        wrong = excess > 0
        if alone:
            wrong &= excess == excess.max()
        free = self.free(a) | wrong | (inside & wrong.any(axis=1, keepdims=True))
        return free & (free.sum(axis=1, keepdims=True) > 1)

    def _slopes(self, f: np.ndarray) -> np.ndarray:
        """E - f."""
        g = -f
        g[self._own] += 1.0
        return g

    def free(self, a: np.ndarray) -> np.ndarray:
        """Return which entries are off their bounds, in rows with at least two of them, bool (n, c)."""
        free = a < self.upper - _ON_BOUND * self.C[:, None]
        free &= free.sum(axis=1, keepdims=True) > 1
        return free

    def start_biases(self, a: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return the biases that make the slopes of the free entries of each row most nearly equal."""
        free = self.free(a).astype(float)
        counts = np.maximum(free.sum(axis=1, keepdims=True), 1.0)
        shares = free / counts
        L = np.diag(free.sum(axis=0)) - shares.T @ free
        rhs = np.sum(free * (g - np.sum(shares * g, axis=1, keepdims=True)), axis=0)
        return np.linalg.lstsq(L, rhs, rcond=1e-10)[0]

    # ---- the primal value

    def primal(self, f, quad):
        margins = f - f[self._own][:, None] + 1.0
        margins[self._own] = 0.0
        if not self.balanced:
            return 0.5 * quad + float(self.C @ margins.max(axis=1)), np.zeros(self.n_classes)
        known = self._biases
        if known is None or known.exactness > self._exactness or not np.array_equal(known.f, f):
            near = np.zeros(self.n_classes) if known is None else known.b
            b, loss = best_biases(margins, self.C, self.y, near, size=0.5 * quad, enough=self._exactness)
            self._biases = known = _Biases(f.copy(), b, loss, self._exactness)
        return 0.5 * quad + known.loss, known.b.copy()

    # ---- second order

    def _step(self, combined: Combined, free: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows with free entries and the Newton moves of all right-hand sides there, (m, c, k)."""
        counts = free.sum(axis=0).astype(float)
        rows = np.flatnonzero(free.any(axis=1))
        many = (counts.sum() - len(rows)) ** 3 > _DEARER * (np.sum(3.0 * counts**3) + float(len(rows)) ** 3)
        blocks = (ClassBlocks if many else Differences)(combined, free, self.balanced)
        return rows, blocks.solve(R)

    def curvature(self, combined: Combined, a: np.ndarray, f: np.ndarray, F: np.ndarray) -> Curvature:
        """Linearise the optimality conditions of the free entries.

        In each row the slopes E - f - b of the free entries are equal, and rows and columns keep their sums, so that a
        change of weights moves the free entries by -Z dbeta, Z_k the solution for F_k, and H_kl = <F_k, Z_l>.
        """
        p, c = len(F), self.n_classes
        free = self.free(a)
        if not free.any():
            return Curvature(np.zeros((p, p)), np.zeros(0, np.intp), np.zeros((0, c, p)), np.zeros((0, c)))
        rows, Z = self._step(combined, free, np.concatenate([F, self._slopes(f)[None]]))
        H = np.ascontiguousarray(F[:, rows]).reshape(p, -1) @ Z[..., :p].reshape(-1, p)
        return Curvature(0.5 * (H + H.T), rows, Z[..., :p], Z[..., p])


class _Ascent:
    """One run of row steps: class-major copies of the coefficients and slopes, column sums and multipliers."""

    def __init__(self, machine: CrammerSinger, combined: Combined, a: np.ndarray, f: np.ndarray, target: float) -> None:
        self.target, self.tight, self.f = target, 0.1 * target, f
        self.machine, self.combined, self.start = machine, combined, a
        g = machine._slopes(f)
        self.A, self.G = np.ascontiguousarray(a.T), np.ascontiguousarray(g.T)
        self.mask = np.where(self.A < machine.upper.T, 0.0, -np.inf)
        n, c = a.shape
        self.S = np.zeros(c)
        self.r, self.mean, self.diag, self.rho = np.zeros(n), 0.0, combined.diag, np.zeros(1)
        self.b = np.zeros(c)
        if machine.balanced:
            self.b = machine.start_biases(a, g)
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
        machine, combined = self.machine, self.combined
        n = machine.n_samples
        wanted, top, low = np.empty(n, np.intp), np.empty(n), np.empty(n)
        used = 0
        while True:
            status, steps, m, _ = climb(
                combined.matrix, combined.scale, combined.have, self.diag, self.r, self.mean, machine.balanced,
                self.A, self.G, self.mask, machine.C, machine.y, self.S, self.t, self.b, self.rho, self.target,
                self.tight, min(max_steps - used, _CHUNK), wanted, top, low,
            )  # fmt: skip
            used += steps
            if status == NEEDS_ROWS:
                combined.ensure(wanted[:m])
            elif status == CONVERGED or used >= max_steps:
                return status, used

    def stiffen(self, factor: float) -> None:
        """Multiply the penalty."""
        self.t -= (factor - 1.0) * self.rho[0] * self.S
        self.rho *= factor

    def feasible(self) -> np.ndarray:
        """Return the coefficients with column sums made zero, (n, c)."""
        a = np.ascontiguousarray(self.A.T)
        return self.machine._balance(a) if self.machine.balanced else a

    def gap(self, a: np.ndarray) -> float:
        """Return the gap of feasible coefficients, with the multipliers as biases."""
        machine, change = self.machine, a - self.A.T
        g, t = self.G, self.t
        if change.any():
            g = g - self.combined.apply_change(change).T
            t = t + change.T @ (self.r - self.mean)
        g = g + t[:, None]
        own = g[machine.y, np.arange(machine.n_samples)]
        return float(machine.C @ (own - g.min(axis=0)) - np.vdot(a.T, g))
