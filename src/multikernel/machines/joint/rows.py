"""What the machines of all classes share: the set of A, the way to make A feasible, and the row steps.

    A <= B_i e_{y_i} row by row,     A1 = 0,     1'A = 0  (with biases)

Given: the classes y, the costs C and, in `solve`, the combined kernel. Returned: coefficients A of shape (n, c). B_i is
the cost of sample i, or infinity for a loss without that bound. A row step maximises the dual value over one row of A.
The column sums are kept near zero by an augmented Lagrangian: the biases are its multipliers, and a penalty on the
squared sums its second part. Coefficients that leave this module have row and column sums of exactly zero.

References: Crammer & Singer 2001 for the row steps; Zien & Ong 2007, (9), for the set with biases. We differ in the
multipliers: the references have no biases, or leave them to a general solver.
"""

from __future__ import annotations

from operator import itemgetter

import numpy as np
from scipy.linalg import LinAlgError

from multikernel.gram.base import Outputs
from multikernel.gram.combined import Combined
from multikernel.machines.base import BIASES, FLOOR, ON_BOUND, PENALTY, ROUNDING, Curvature, Machine
from multikernel.machines.joint.hinge_loops import CONVERGED, NEEDS_ROWS, bias_system, project_rows, settle_rows
from multikernel.machines.joint.interior_point import FIRM, interior_point, kept_factor
from multikernel.machines.joint.newton_systems import ClassBlocksNewtonSystem, DifferencesNewtonSystem

# row steps of a partial solve for each step asked for: more of them cost row steps and save passes over the kernels
_BURST = 10
# row steps per sample after which the gap must have halved: fewer begin Newton's method where rows would be faster
_PATIENCE = 50
# share of the change of A, times the diagonal, by which slopes move when the column sums are made zero: a guess that
# is too small makes the row steps stop too early, and they are run again
_SLOPE_CHANGE = 0.02


class RowMachine(Machine):
    """Classes, costs and the set of A; a subclass brings the loss.

    Parameters
    ----------
    y : ndarray of int, shape (n,)
        Classes, 0 to c - 1.
    C : float or ndarray of shape (n,)
        Cost of each sample (C times its weight), positive.
    fit_intercept : bool
        Whether each class has a bias; without biases the columns of A need not sum to zero.
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
        self.floor = FLOOR * self.scale
        self._own = np.arange(self.n_samples), self.y
        self._absent = np.flatnonzero(np.bincount(self.y, minlength=self.n_classes) == 0)
        self.upper = np.zeros((self.n_samples, self.n_classes))
        self.upper[self._own] = self.bounds = self.C
        # linear part of the dual value, that of the hinge
        self.E = np.eye(self.n_classes)[self.y]

    # ---- what a subclass brings

    row_steps: type[RowSteps]
    blocks = ClassBlocksNewtonSystem
    # two forms of the Newton system of the free entries, for many of them in a row and for few
    newton_systems: tuple[type, type] = (ClassBlocksNewtonSystem, DifferencesNewtonSystem)
    # whether the classes share one kernel, and the entries in which the dual value is linear but for the kernel
    separable = True
    linear: np.ndarray | bool = True

    def derivatives(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        """Return the gradient of g, and minus its second derivatives."""
        return self.E, 0.0

    def off_bounds(self, a: np.ndarray) -> np.ndarray:
        """Return coefficients near a at which the gradient is finite."""
        return a

    def _soft_room(self, a: np.ndarray, u: int, v: int, room: np.ndarray) -> np.ndarray:
        """Return how much of the room class u may use to give to class v, of a loss that is not linear."""
        raise NotImplementedError

    def losses(self, f: np.ndarray) -> np.ndarray:
        """Return the loss of each sample, costs included."""
        raise NotImplementedError

    def best_biases(self, f: np.ndarray, enough: float) -> np.ndarray:
        """Return biases of the least loss, up to ``enough``."""
        raise NotImplementedError

    # ---- the set of A

    def start(self):
        return np.zeros((self.n_samples, self.n_classes))

    def make_feasible(self, a):
        out = np.empty((self.n_samples, self.n_classes))
        project_rows(np.ascontiguousarray(a), self.bounds, self.y, out)
        return self._balance(out)

    def _balance(self, a: np.ndarray) -> np.ndarray:
        """Make the column sums zero, in place: the class of the largest sum gives to the class of the smallest one.

        Sums of rows and columns are then zero in exact arithmetic; without biases those of the rows. An entry may
        always shrink, and the entries of a class of negative sum are further from their bounds than that sum. So a
        transfer makes one sum zero, and at most c - 1 transfers are needed. Rows that have both entries off their
        bounds give first.
        """
        sums = a.sum(axis=0)
        for _ in range(4 * self.n_classes if self.balanced else 0):
            u, v = int(np.argmax(sums)), int(np.argmin(sums))
            amount = min(sums[u], -sums[v])
            if amount <= 0.1 * ROUNDING * self.scale:
                break
            for first in (True, False):
                room = np.minimum(self.upper[:, v] - a[:, v], self.scale)
                if first:
                    room *= (a[:, u] < self.upper[:, u]) & (room > ON_BOUND * self.C)
                    if self.linear is not True:
                        room = self._soft_room(a, u, v, room)
                total = float(room.sum())
                share = min(1.0, amount / total) if total > 0 else 0.0
                a[:, u] -= share * room
                a[:, v] = np.minimum(a[:, v] + share * room, self.upper[:, v])
                amount -= share * total
                if share < 1.0 and total > 0:
                    break
            sums[u], sums[v] = a[:, u].sum(), a[:, v].sum()
        if self.balanced:
            # entries of a class without samples have one sign: their sum of zero leaves rounding alone
            a[:, self._absent] = 0.0
        settle_rows(a, self.upper, self.balanced)
        return a

    def free(self, a: np.ndarray, held: np.ndarray | bool = False) -> np.ndarray:
        """Return which entries are off their bounds and not ``held``, in rows with at least two of them, (n, c)."""
        free = (a < self.upper - ON_BOUND * self.C[:, None]) & ~np.asarray(held)
        return free & (free.sum(axis=1, keepdims=True) > 1)

    # ---- the primal problem

    def biases_of(self, a: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Return the biases that make the slopes of the free entries of each row most nearly equal.

        At the optimum they are equal. Entries count by how far they would move: small ones less, since the way to
        column sums of zero, or an interior-point method, may have left them there. On the path of the latter a slope
        is off by the multiplier, which is as the reciprocal of the slack: the weights are those of its Newton system.
        """
        inside = a if self.linear is True else self.off_bounds(a)
        gradient, D = self.derivatives(inside)
        slack = np.minimum(self.upper - inside, self.scale) ** 2
        L, rhs = bias_system(a, self.upper, self.C, slack / (self.C[:, None] + D * slack), gradient - f)
        return np.linalg.lstsq(L, rhs, rcond=1e-10)[0]

    def primal(self, f, quad, accuracy=0.0, a=None):
        b, least = np.zeros(self.n_classes), np.inf
        if not self.balanced:
            return 0.5 * quad + float(self.losses(f).sum()), b
        if a is not None and accuracy:
            b = self.biases_of(a, f)
            least = float(self.losses(f + b).sum())
            if quad + least - self.dual(a) <= accuracy:
                return 0.5 * quad + least, b
        best = self.best_biases(f, max(BIASES * accuracy, ROUNDING * self.scale))
        loss = float(self.losses(f + best).sum())
        return (0.5 * quad + loss, best) if loss < least else (0.5 * quad + least, b)

    def risk(self, out, b, error):
        # the output of the own class too small, all others too large
        worst = out + error
        worst[self._own] = (out - error)[self._own]
        return float(self.losses(worst).sum())

    # ---- the inner problem

    def partial_solve(self, combined: Combined, a: np.ndarray, f: np.ndarray, accuracy: float, size: int) -> np.ndarray:
        """Return coefficients after a number of row steps in proportion to ``size``."""
        return self.row_steps(self, combined, a, f, max(accuracy, ROUNDING * self.scale)).run(_BURST * size)[1]

    def solve(self, combined, a, f, accuracy):
        """Row steps while they halve the gap; then Newton's method."""
        accuracy = max(accuracy, ROUNDING * self.scale)
        rows = self.row_steps(self, combined, a, f, accuracy)
        # a start of zero is further away than its gap says
        before = rows.gap(a) if a.any() else np.inf
        if before <= accuracy:
            return a
        new, gap = rows.solve(accuracy, before)
        if gap > accuracy and kept_factor(self, combined) is None:
            # without a factor of low rank Newton's method takes as long as many row steps
            more = rows.solve(accuracy, np.inf, self.n_samples / _PATIENCE)
            new, gap = min((new, gap), more, key=itemgetter(1))
        if gap <= accuracy:
            return new
        if gap < before:
            a, f = new, rows.outputs(new)
        return interior_point(self, combined, a, f, accuracy)

    # ---- second order

    def curvature(self, combined: Combined, a, f, outputs: Outputs, rough: bool = False) -> Curvature:
        """Linearise the optimality conditions of the free entries.

        In each row the slopes less the biases are equal at free entries, and rows and columns keep their sums, so that
        a change of weights moves the free entries by -Z dbeta, Z_k the solution for F_k, and H_kl = <F_k, Z_l>.
        """
        F = outputs.kernel_outputs()
        p, c = len(F), self.n_classes
        (gradient, D), free = self.derivatives(a), self.free(a)
        R = gradient - f
        # rows without an entry on its bound come from the interior-point method: slopes tell what holds their entries
        interior = self.linear & (a < self.upper).all(axis=1, keepdims=True)
        if interior.any():
            g = R - self.biases_of(a, f) if self.balanced else R
            low = np.where(interior, g, np.inf).min(axis=1, keepdims=True)
            held = np.subtract(g, low, out=np.zeros_like(a), where=interior)
            held /= np.maximum(self.upper - a, ROUNDING * self.C[:, None])
            D, free = D + held, self.free(a, held > FIRM * combined.diag.mean())
        if not free.any():
            return Curvature(np.zeros((p, p)), np.zeros(0, np.intp), np.zeros((0, c, p)), np.zeros((0, c)))
        R = np.concatenate([F, np.where(free, R, 0.0)[None]])
        # of the two forms of the system the one of fewer operations
        counts, m = free.sum(axis=0).astype(float), float(np.count_nonzero(free.any(axis=1)))
        few = (counts.sum() - m) ** 3 <= 3.0 * np.sum(counts**3) + m**3
        system = self.newton_systems[int(few)]
        if combined.by_products:
            from multikernel.machines.joint.device_systems import DistantClassBlocksNewtonSystem as system
        diagonal = np.where(free, D, 0.0) if isinstance(D, np.ndarray) else None
        made = system(combined, free, self.balanced, diagonal, single=rough)
        rows, Z = made.rows, made.solve(R)
        if not np.isfinite(Z).all():
            raise LinAlgError("The Newton system of the free entries is singular to rounding.")
        H = np.ascontiguousarray(F[:, rows]).reshape(p, -1) @ Z[..., :p].reshape(-1, p)
        return Curvature(0.5 * (H + H.T), rows, Z[..., :p], Z[..., p])


class RowSteps:
    """One run of row steps: class-major copies of coefficients and slopes, column sums S and multipliers b.

    Parameters
    ----------
    machine : RowMachine
        Machine.
    combined : Combined
        Kernel.
    a, f : ndarrays of shape (n, c)
        Coefficients to begin with, and their outputs.
    target : float
        Gap at which the rows stop.

    The compiled loop stops when the gap of the rows is at most ``target`` and |S|^2 at most ``column_target``. Slopes
    are G + r S' + t, with the row means r of the kernel (`hinge_loops`).

    Attributes
    ----------
    bend : float
        Smallest penalty, in units of 1 / sum C, like which the conjugate of a smooth loss curves: at small costs a
        smaller penalty leaves the biases behind, and a larger one makes the rows wait for each other.
    """

    bend = 0.0

    def __init__(self, machine: RowMachine, combined: Combined, a: np.ndarray, f: np.ndarray, target: float) -> None:
        self.target, self.column_target = target, 0.1 * target
        self.machine, self.combined, self.start, self.start_outputs = machine, combined, a, f
        self.rows = combined.host_rows()
        g = machine.E - f
        self.A, self.G = np.ascontiguousarray(a.T), np.ascontiguousarray(g.T)
        self.mask = np.where(self.A < machine.upper.T, 0.0, -np.inf)
        n, c = a.shape
        self.S = np.zeros(c)
        self.r, self.mean, self.diag, self.rho = np.zeros(n), 0.0, combined.diag, np.array([0.0, np.inf])
        self.b = np.zeros(c)
        if machine.balanced:
            self.b = machine.biases_of(a, f)
            self.r = combined.means
            self.mean = float(self.r.mean())
            # the diagonal of a centred kernel is not negative
            self.diag = np.maximum(combined.diag - 2.0 * self.r + self.mean, 0.0)
            size = max(float(self.diag.mean()), 1e-300)
            self.rho[0] = max(PENALTY * size, 2.0 / n * size, self.bend / machine.C.sum())
            # column sums that change the slopes by no more than the target
            small = min(target / (_SLOPE_CHANGE * machine.scale * size), machine.scale)
            self.column_target = min(self.column_target / float(self.rho[0]), small**2)
        self.t = -self.b

    def solve(self, accuracy: float, before: float, rounds: float = 0.0) -> tuple[np.ndarray, float]:
        """Row steps until the gap, at first ``before``, is at most ``accuracy`` or falls too slowly.

        In each round the gap should halve, or what the rows and the penalty leave of it before the column sums are made
        zero; or fall at a rate at which the rest of ``rounds`` will do. Returns coefficients and gap.
        """
        last = np.array([before, before])
        while True:
            status, a, left = self.run(_PATIENCE * self.machine.n_samples)
            now = np.array([gap := self.gap(a), left])
            if gap <= accuracy:
                return a, gap
            if status == CONVERGED and self.target > 1e-2 * accuracy:
                # making the column sums zero has changed the slopes: go on to smaller sums
                self.column_target *= min(0.1, (0.3 * accuracy / gap) ** 2)
                self.target *= 0.5
            else:
                with np.errstate(all="ignore"):
                    enough = now * (now / last) ** rounds <= accuracy
                if not np.any((now > accuracy) & (enough | (now <= 0.5 * last))):
                    return a, gap
            last, rounds = now, rounds - 1.0

    def run(self, max_steps: int) -> tuple[int, np.ndarray, float]:
        """Row steps to the targets or at most so many.

        Returns the status, A, (n, c), with column sums made zero, and the gap of the rows plus the penalty before that.
        """
        n = self.machine.n_samples
        wanted, top, low = np.empty(n, np.intp), np.empty(n), np.empty(n)
        used = 0
        while True:
            # back to Python after as many steps as samples, to hear Ctrl-C
            status, steps, m, gap = self._loop(min(max_steps - used, n), wanted, top, low)
            used += steps
            if status == NEEDS_ROWS:
                self.rows.ensure(wanted[:m])
            elif status == CONVERGED or used >= max_steps:
                left = gap + float(self.rho[0]) * float(self.S @ self.S)
                return status, self.machine._balance(np.array(self.A.T, order="C")), left

    def _loop(self, max_steps: int, wanted: np.ndarray, top: np.ndarray, low: np.ndarray) -> tuple:
        """Call the compiled loop; return its status, steps, number of rows wanted, and gap."""
        raise NotImplementedError

    def outputs(self, a: np.ndarray) -> np.ndarray:
        """Return the outputs of coefficients a, from those of the start."""
        return self.start_outputs + self.combined.apply(a - self.start)

    def slopes_at(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return slopes (c, n) at feasible coefficients, and what is to be added to the slopes of each class."""
        change = a - self.A.T
        if not change.any():
            return self.G, self.t
        return self.G - self.combined.apply(change).T, self.t + change.T @ (self.r - self.mean)

    def gap(self, a: np.ndarray) -> float:
        """Return the gap of feasible coefficients, with the multipliers as biases."""
        raise NotImplementedError
