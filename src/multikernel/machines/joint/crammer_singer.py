"""The support vector machine of several classes on one kernel, after Crammer & Singer 2001 and Zien & Ong 2007, (9).

    max_A  sum_i A_{i,y_i} - 1/2 tr A'KA,     A <= C_i e_{y_i} row by row,     A1 = 0,     1'A = 0  (with biases)

A is (n, c). The primal is 1/2 tr A'KA + sum_i C_i max_u ([u != y_i] + F_iu - F_{i,y_i})_+, F = KA + b. Rows are moved
one at a time, each to the projection of A_i + g_i / K_ii onto its set; biases are multipliers of the column sums, which
a small penalty keeps near zero on the way and which are made zero, by moves within rows, in what is returned. Where
rows alone are slow (large costs), Newton steps on the free entries finish the work or, on a kernel of low rank, an
interior-point method.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from multikernel.gram.base import Combined, Outputs
from multikernel.machines.base import ConicMachine, Curvature
from multikernel.machines.joint.hinge_biases import best_biases
from multikernel.machines.joint.hinge_loops import CONVERGED, climb
from multikernel.machines.joint.low_rank import low_rank_factor, solve_low_rank
from multikernel.machines.joint.rows import BIASES, ROUNDING, ROWS, Ascent, RowMachine

# row steps per sample without convergence before the free entries are moved together, and how often that is done
_PATIENCE, _ROUNDS, _RAISE = 20, 20, 8.0
# without biases rows go on alone while so many steps leave no more than this part of the gap
_HALF = 0.6
# largest number of Newton steps of one polish
_JUMPS = 200


class CrammerSinger(RowMachine):
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
    >>> from multikernel.machines.joint.crammer_singer import CrammerSinger
    >>> from multikernel.mixing.norms import Simplex
    >>> from multikernel.problem import Problem
    >>> from multikernel.solve import solve
    >>> X = np.repeat(np.eye(3), 2, axis=0)
    >>> K = np.stack([X @ X.T, np.eye(6)])
    >>> solution = solve(Problem(DenseGram(K), CrammerSinger(np.array([0, 0, 1, 1, 2, 2])), Simplex()), tol=1e-6)
    >>> solution.weights.round(3), round(solution.upper, 4)
    (array([1., 0.]), 1.0)
    """

    description = "the joint loss 'hinge'"

    def __init__(
        self, y: np.ndarray, C: float | np.ndarray = 1.0, fit_intercept: bool = True, n_classes: int | None = None
    ) -> None:
        super().__init__(y, C, fit_intercept, n_classes)

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

    def compact(self) -> ConicMachine:
        """Return the machine in the variables of (7): x_iu = -A_iu for the wrong classes u, row by row."""
        n, c = self.n_samples, self.n_classes
        i, u = np.nonzero(self.upper == 0.0)
        x = np.arange(len(i))
        lift = sparse.coo_array(
            (np.repeat([-1.0, 1.0], len(i)), (np.concatenate([i * c + u, i * c + self.y[i]]), np.tile(x, 2))),
            shape=(n * c, len(i)),
        )
        # the columns of A sum to zero, one of them because the others do
        columns = sparse.kron(np.ones((1, n)), sparse.eye_array(c, format="csr")[1:]) @ lift if self.balanced else None
        return ConicMachine(
            np.ones(len(i)), np.zeros(len(i)), self.C[i], columns, columns=c, centred=self.balanced, lift=lift.tocsr(),
            sums=sparse.coo_array((np.ones(len(i)), (i, x)), shape=(n, len(i))), most=self.C,
        )  # fmt: skip

    # ---- the inner problem

    @property
    def _ascent(self) -> type[Ascent]:
        return _HingeAscent

    def solve(self, combined, a, f, accuracy):
        accuracy = max(accuracy, ROUNDING * self.scale)
        ascent = self._ascent(self, combined, a, f, ROWS * accuracy)
        polished: tuple[np.ndarray, np.ndarray] | None = None
        turn, before, ranked = -1, np.inf, False
        while turn < _ROUNDS - 1:
            status, _ = ascent.run(_PATIENCE * self.n_samples)
            a = ascent.feasible()
            gap = ascent.gap(a)
            if gap <= accuracy:
                return a
            if status != CONVERGED and not ranked:
                ranked, polished = True, self._by_rank(combined)
                if polished is not None and self._gap(*polished, accuracy)[0] <= accuracy:
                    return polished[0]
            if not self.balanced and status != CONVERGED and gap <= _HALF * before:
                # rows alone get there, and cost far less than Newton steps on many free entries
                before = gap
                continue
            turn += 1
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
            f = ascent.f + combined.apply(a - ascent.start)
            if polished is not None and self._value(a, f) < self._value(*polished):
                a, f = polished
            a, f, gap = self._polish(combined, a, f, accuracy)
            polished = a, f
            if gap <= accuracy:
                break
            rho = float(ascent.rho[0])
            ascent = self._ascent(self, combined, a, f, ROWS * accuracy)
            ascent.rho[0] = max(ascent.rho[0], rho)
        return a

    def _by_rank(self, combined: Combined) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the solution on a kernel of low rank and its outputs, None on other kernels."""
        G = low_rank_factor(combined, self.n_classes)
        if G is None:
            return None
        a = self.make_feasible(solve_low_rank(G, self.y, self.C, self.n_classes, self.balanced))
        return a, combined.apply(a)

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
                new = self.make_feasible(np.where(ratio <= t, self.upper, a + t * step))
                f = f + combined.apply(new - a)
                a = new
            if t < 1.0:
                free &= ratio > t
                free &= free.sum(axis=1, keepdims=True) > 1
                continue
            gap, b = self._gap(a, f, accuracy)
            now = self._value(a, f)
            # entries released together may block each other: then the worst alone, then by the other biases
            attempt = 0 if now > before + 1e-3 * gap else attempt + 1
            before = now
            if gap <= 0.5 * accuracy or attempt == 4:
                break
            free = self._released(a, self._slopes(f), b if attempt > 1 else None, attempt % 2 == 1)
        return a, f, self._gap(a, f, accuracy)[0]

    def _released(self, a: np.ndarray, g: np.ndarray, b: np.ndarray | None, alone: bool) -> np.ndarray:
        """Return the free entries and, of those on their bounds, the ones whose slopes make them leave."""
        if self.balanced:
            g = g - (self.start_biases(a, g, 0.0) if b is None else b)
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

    def start_biases(self, a: np.ndarray, g: np.ndarray, accuracy: float) -> np.ndarray:
        """Return the biases that make the slopes of the free entries of each row most nearly equal."""
        free = self.free(a).astype(float)
        counts = np.maximum(free.sum(axis=1, keepdims=True), 1.0)
        shares = free / counts
        L = np.diag(free.sum(axis=0)) - shares.T @ free
        rhs = np.sum(free * (g - np.sum(shares * g, axis=1, keepdims=True)), axis=0)
        return np.linalg.lstsq(L, rhs, rcond=1e-10)[0]

    # ---- the primal value

    def primal(self, f, quad, accuracy=0.0):
        margins = f - f[self._own][:, None] + 1.0
        margins[self._own] = 0.0
        if not self.balanced:
            return 0.5 * quad + float(self.C @ margins.max(axis=1)), np.zeros(self.n_classes)
        b, loss = best_biases(margins, self.C, self.y, max(BIASES * accuracy, ROUNDING * self.scale))
        return 0.5 * quad + loss, b

    # ---- second order

    def _step(self, combined: Combined, free: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows with free entries and the Newton moves of all right-hand sides there, (m, c, k)."""
        return self._newton(combined, free, R)

    def curvature(
        self, combined: Combined, a: np.ndarray, f: np.ndarray, outputs: Outputs, rough: bool = False
    ) -> Curvature:
        """Linearise the optimality conditions of the free entries.

        In each row the slopes E - f - b of the free entries are equal, and rows and columns keep their sums, so that a
        change of weights moves the free entries by -Z dbeta, Z_k the solution for F_k, and H_kl = <F_k, Z_l>.
        """
        F = outputs.kernel_outputs()
        p, c = len(F), self.n_classes
        free = self.free(a)
        if not free.any():
            return Curvature(np.zeros((p, p)), np.zeros(0, np.intp), np.zeros((0, c, p)), np.zeros((0, c)))
        rows, Z = self._step(combined, free, np.concatenate([F, self._slopes(f)[None]]))
        H = np.ascontiguousarray(F[:, rows]).reshape(p, -1) @ Z[..., :p].reshape(-1, p)
        return Curvature(0.5 * (H + H.T), rows, Z[..., :p], Z[..., p])


class _HingeAscent(Ascent):
    """Row steps of the hinge."""

    def _climb(self, max_steps: int, wanted: np.ndarray, top: np.ndarray, low: np.ndarray) -> tuple:
        machine, rows = self.machine, self.rows
        return climb(
            rows.matrix, rows.scale, rows.have, self.diag, self.r, self.mean, machine.balanced,
            self.A, self.G, self.mask, machine.C, machine.y, self.S, self.t, self.b, self.rho, self.target,
            self.tight, max_steps, wanted, top, low,
        )  # fmt: skip

    def gap(self, a):
        machine = self.machine
        g, t = self.balanced_slopes(a)
        g = g + t[:, None]
        own = g[machine.y, np.arange(machine.n_samples)]
        return float(machine.C @ (own - g.min(axis=0)) - np.vdot(a.T, g))
