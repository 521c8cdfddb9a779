"""The linear-time machine: dual coordinate descent on explicit features.

    max_a  p'a - eps |a|_1 - 1/2 sum_i h_i a_i^2 - 1/2 a' K_beta a,    lo <= a <= hi,    sum a = total  (intercept)

h = 0 for the hinge and the tube, 1/(2C) for the squared loss and the squared hinge. Rows go through in blocks: their
outputs from the tables T_k = Phi_k' a, coordinate descent inside the block on its own kernel values, then the tables
again. An epoch takes time proportional to n. Tables do not depend on the weights of the kernels, and stay as they are
when the weights change.

With an intercept the sum is held by an augmented Lagrangian, slopes p_i - f_i - b - rho (sum a - total), b moved by
rho (sum a - total) after each epoch, and made exact before anything is certified. Rows that their slopes hold at a
bound are set aside until the outputs of all rows are next known.

Reference: Hsieh, Chang, Lin, Keerthi & Sundararajan 2008, doi:10.1145/1390156.1390208. We differ in the blocks, the
per-kernel tables, the intercept, and in stopping on the duality gap.
"""

from __future__ import annotations

import numpy as np

from multikernel.gram.features import CombinedFeatures, FeatureOutputs
from multikernel.losses import SquaredHinge
from multikernel.machines.base import PATIENCE, PENALTY, STEPS, Machine
from multikernel.machines.box import BoxMachine
from multikernel.machines.box_interior import solve_inside
from multikernel.machines.descent_loops import climb, own_gaps
from multikernel.machines.ridge import Ridge
from multikernel.machines.smooth import Smooth
from multikernel.threads import RUN

# passes of coordinate descent over a block before its rows go back to the tables: steps against visits of the tables
_PASSES = 3
# rows held at a bound by so many times the slopes of free rows are set aside: smaller epochs against later surprises
_MARGIN = 4.0


class Descent(Machine):
    """Another machine's problem, solved by coordinate descent on explicit features.

    Parameters
    ----------
    machine : SVC, SVR, OneClass, Ridge with one target, or Smooth with the squared hinge
        The problem.
    shuffled : bool
        Whether each epoch takes the rows in another order; otherwise they go through as they come.
    random_state : int
        Seed of the orders.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.features import FeatureGram
    >>> from multikernel.gram.sources import DenseSource
    >>> from multikernel.machines.svc import SVC
    >>> from multikernel.mixing.norms import Simplex
    >>> from multikernel.machines.descent import Descent
    >>> from multikernel.problem import Problem
    >>> from multikernel.solve import solve
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> gram = FeatureGram([DenseSource(np.column_stack([x, np.abs(x)]), np.arange(2))])
    >>> solution = solve(Problem(gram, Descent(SVC(np.sign(x))), Simplex()), tol=1e-6)
    >>> solution.weights.round(3), round(solution.upper, 3)
    (array([1., 0.]), 0.5)
    """

    def __init__(self, machine: Machine, shuffled: bool = True, random_state: int = 0) -> None:
        self.inner = machine
        self.n_samples, self.scale, self.floor = machine.n_samples, machine.scale, machine.floor
        self.reach = machine.reach
        self.shuffled, self.random_state = shuffled, random_state
        n = self.n_samples
        self.eps, self.total, self.h = 0.0, 0.0, np.zeros(n)
        if isinstance(machine, BoxMachine):
            self.p, self.lo, self.hi, self.balanced = machine.p, machine.lo, machine.hi, machine.balanced
            self.eps, self.total = machine.eps, machine.total
        elif isinstance(machine, Ridge) and machine.Y.ndim == 1:
            self.p, self.h, self.balanced = machine.Y, 0.5 / machine.C, machine.balanced
            self.lo, self.hi = np.full(n, -np.inf), np.full(n, np.inf)
        elif isinstance(machine, Smooth) and isinstance(machine.loss, SquaredHinge):
            self.p, self.h, self.balanced = machine.y, 0.5 / (machine.C * machine.loss.C), machine.balanced
            self.lo, self.hi = np.where(self.p > 0, 0.0, -np.inf), np.where(self.p > 0, np.inf, 0.0)
        else:
            raise ValueError(
                "Explicit features need the hinge, the squared hinge, the squared loss with one target, or the tube. "
                f"Got the machine {type(machine).__name__} instead."
            )

    def start(self):
        return self.inner.start()

    def dual(self, a):
        return self.inner.dual(a)

    def make_feasible(self, a):
        return self.inner.make_feasible(a)

    def warm_start(self, other, coef, outputs):
        return self.inner.warm_start(getattr(other, "inner", other), coef, outputs)

    def primal(self, f, quad, accuracy=0.0, a=None):
        return self.inner.primal(f, quad, accuracy, a)

    def risk(self, out, b, error):
        return self.inner.risk(out, b, error)

    def solve(self, combined, a, f, accuracy):
        """Epochs until the gap is below ``accuracy``; where many do not reach it, the machine's own factorisations."""
        few = self.n_samples <= combined.host_limit
        epochs = Epochs(self, combined, combined.tables, a, f)
        for _ in range(PATIENCE if few else STEPS):
            if epochs.run() <= 0.5 * accuracy:
                break
        a = epochs.finish()
        if not few:
            return a
        f = combined.apply(a)
        if isinstance(self.inner, Ridge):
            return self.inner.solve(combined, a, f, accuracy)
        return solve_inside(self, combined, a, f, accuracy)[0]

    def epochs(self, combined: CombinedFeatures, outputs: FeatureOutputs) -> Epochs:
        """Begin epochs between which the weights of ``combined`` may change.

        Sets: ``outputs``, moved from the coefficients that they have to those of the last epoch.
        """
        return Epochs(self, combined, outputs, outputs.coef.copy(), outputs.mix(combined.beta))


class Epochs:
    """Epochs of coordinate descent from coefficients a with outputs f = K_beta a.

    Attributes
    ----------
    a : ndarray of shape (n,)
        The coefficients as they are; feasible but for their sum.
    b : float
        Multiplier of the sum.
    moved : ndarray of shape (n,)
        Sum of the sizes of all moves of each coefficient, and of what the tables were rounded by meanwhile.
    """

    def __init__(
        self, machine: Descent, combined: CombinedFeatures, tables: FeatureOutputs, a: np.ndarray, f: np.ndarray
    ) -> None:
        self.machine, self.combined = machine, combined
        self.tables = tables
        tables.update(a)
        self.excess = float(a.sum()) - machine.total if machine.balanced else 0.0
        # with sum a = 0 the kernel may be centred, and the multiplier of the sum then follows the coefficients
        self.centred = machine.balanced and machine.total == 0.0
        self.b = 0.0
        if machine.balanced:
            self.b = float(machine.inner.primal(f, 0.0)[1]) - float(getattr(machine.inner, "shift", 0.0))
        self.refresh()
        # the multiplier of the centred kernel, which changes little with the weights
        self.b += self.ra
        self.rng = np.random.default_rng(machine.random_state)
        self.rows = self._movable(f)
        # tables to which others add their own changes meanwhile see each change so many times
        self.shared = 1.0
        self.count, self.moved = 0, np.zeros(machine.n_samples)

    @property
    def a(self) -> np.ndarray:
        return self.tables.coef

    @property
    def q(self) -> np.ndarray:
        """a' K_k a of every kernel."""
        return self.tables.q

    def refresh(self) -> None:
        """Take over the weights of the combined kernel as they are now."""
        diag = self.combined.diag
        self.r, self.mean, self.ra = np.zeros(0), 0.0, 0.0
        if self.centred:
            self.r = self.combined.means
            self.mean = float(self.r.mean())
            self.ra = float(self.r @ self.tables.coef)
            diag = diag - 2.0 * self.r + self.mean
        self.rho = PENALTY * float(np.mean(diag)) if self.machine.balanced else 0.0

    def _movable(self, f: np.ndarray) -> np.ndarray:
        """Rows that may move: not those that their slopes hold at a bound, by several times the slopes of free rows."""
        m, a = self.machine, self.tables.coef
        slope = m.p - f - (self.b - self.ra) - m.h * a
        low, high = a <= m.lo, a >= m.hi
        free = ~(low | high) & (a != 0.0)
        if not free.any():
            return np.arange(m.n_samples)
        off = np.abs(slope[free]) - m.eps if m.eps else slope[free]
        margin = m.eps + _MARGIN * float(np.sqrt(np.mean(off**2)))
        held = (high & (slope > margin)) | (low & (slope < -margin))
        return np.flatnonzero(~held)

    def order(self) -> np.ndarray:
        """The rows in another order, runs of neighbours together: what is stored by rows is read by whole lines."""
        full = len(self.rows) // RUN * RUN
        runs = self.rng.permutation(self.rows[:full].reshape(-1, RUN))
        return np.concatenate([runs.ravel(), self.rows[full:]])

    def run(self) -> float:
        """Go once through the rows, and move the multiplier; return the sum of the rows' gaps as they were met."""
        m, tables = self.machine, self.tables
        total = self.visit(self.order() if m.shuffled else self.rows)
        self.count += 1
        # each block of rows rounds the tables once more
        self.moved += np.abs(tables.coef) / self.combined.gram.batch
        if m.balanced:
            self.excess = float(tables.coef.sum()) - m.total
            self.b += self.rho * self.excess
            if self.centred:
                # without the rounding that has added up
                ra = float(self.r @ tables.coef)
                self.b, self.ra = self.b + ra - self.ra, ra
        return total

    def visit(self, rows: np.ndarray) -> float:
        """Go once through some rows at a fixed multiplier; return the sum of their gaps as they were met."""
        m, combined, tables, shared = self.machine, self.combined, self.tables, self.shared
        size, total = combined.gram.batch, 0.0
        gaps = np.empty(size)
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            g = m.p[block] - combined.scores(tables, block) - (self.b - self.ra + self.rho * self.excess)
            if self.centred:
                g += (self.r[block] - self.mean) * self.excess
            a = tables.coef[block]
            lo, hi, h = m.lo[block], m.hi[block], m.h[block]
            total += own_gaps(g, a, lo, hi, h, m.eps, gaps)
            moving = np.flatnonzero(gaps[: len(block)])
            if not len(moving):
                continue
            chosen = block[moving]
            G = combined.block(chosen)
            if self.centred:
                r = self.r[chosen]
                G += (self.rho + self.mean) - r - r[:, None]
            elif self.rho:
                G += self.rho
            if shared != 1.0:
                G *= shared
            new = a[moving]
            climb(G, g[moving], new, lo[moving], hi[moving], h[moving], m.eps, _PASSES)
            step = new - a[moving]
            changed = np.flatnonzero(step)
            if len(changed):
                tables.add(chosen[changed], shared * step[changed])
                tables.coef[chosen[changed]] = new[changed]
                self.excess += shared * float(step.sum())
                self.moved[chosen] += np.abs(step)
                if self.centred:
                    self.ra += shared * float(r @ step)
        return total

    def finish(self) -> np.ndarray:
        """Return the coefficients with every constraint made exact."""
        return self.machine.make_feasible(self.tables.coef.copy())
