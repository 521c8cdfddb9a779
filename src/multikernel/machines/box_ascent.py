"""The box problem by products with the whole kernel, for a device where these are cheap and rows are far away.

    max_a  p'a - eps |a|_1 - 1/2 a'Ka,     lo <= a <= hi,     sum a = total  (where balanced)

A projected step of length t goes to the point of the set nearest to a + t G, G = p - Ka, |x|_1 counted with t eps,

    x = argmin 1/2 |x - a - t G|^2 + t eps |x|_1,

and on along x - a to the best point; one product a step. The lengths t are those of Barzilai & Borwein 1988. Some steps
find out which coefficients are on their bounds; then a Newton step moves the others, projected as well.

References: Birgin, Martinez, Raydan 2000, doi:10.1137/S1052623497330963; Dai & Fletcher 2006,
doi:10.1007/s10107-005-0595-2. We differ in the Newton steps, and in the kink of |a|_1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from multikernel.gram.combined import Combined
from multikernel.machines.base import PATIENCE, STEPS, inner_gap
from multikernel.machines.box import solve_reduced


class ProjectedAscent:
    """One run: coefficients a, outputs f = Ka, and the length of the next step.

    Parameters
    ----------
    machine : BoxMachine
        Machine.
    combined : Combined
        Kernel.
    a, f : ndarrays of shape (n,)
        Feasible coefficients and their outputs.
    """

    def __init__(self, machine: Any, combined: Combined, a: np.ndarray, f: np.ndarray) -> None:
        self.machine, self.combined, self.a, self.f = machine, combined, a, f
        self.known = a, f
        # of the next projection: how far to go, and the shift of the last one
        self.length, self.shift = 1.0 / max(float(combined.diag.mean()), 1e-300), 0.0

    def steps(self, count: int) -> None:
        """Take so many projected steps, or fewer where none ascends."""
        machine = self.machine
        for i in range(count):
            x, t = np.empty_like(self.a), self.length
            self.shift = nearest(
                self.a + t * (machine.p - self.f), machine.lo, machine.hi, t * machine.eps, machine.total,
                machine.balanced, t * self.shift, x,
            ) / t  # fmt: skip
            found = self._search(x)
            if found is None:
                return
            step, image, bend = found
            # the two lengths of Barzilai & Borwein in turn
            self.length = float(step @ step) / bend if i % 2 else bend / float(image @ image)

    def _search(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, float] | None:
        """Move towards x as long as that ascends; return the step, its image and their product, None if it does not."""
        machine, step = self.machine, x - self.a
        slope = float(step @ (machine.p - self.f))
        if machine.eps:
            # |a|_1 on the way is at most its mean of both ends
            slope -= machine.eps * float(np.abs(x).sum() - np.abs(self.a).sum())
        if not slope > 0.0:
            return None
        image = self.combined.apply(step, exact=False).astype(np.float64)
        bend = float(step @ image)
        if not bend > 0.0:
            return None
        t = min(1.0, slope / bend)
        self.a = x if t == 1.0 else self.a + t * step
        self.f = self.f + t * image
        return step, image, bend

    def newton(self) -> None:
        """Newton's step of the coefficients off their bounds, within the bounds; shorter ones where it is too long."""
        machine, a = self.machine, self.a
        free = np.flatnonzero(machine.free(a))
        if len(free) < 1 + machine.balanced:
            return
        residual = (machine.p - self.f)[free] - machine.eps * np.sign(a[free])
        move = solve_reduced(self.combined, free, residual[None], machine.balanced, rough=True)[0]
        lo, hi = machine.lo, machine.hi
        if machine.eps:
            # not beyond the kink at zero
            lo, hi = np.where(a > 0, 0.0, lo), np.where(a < 0, 0.0, hi)
        for part in (1.0, 0.3, 0.1):
            goal, x = self.a.copy(), np.empty_like(a)
            goal[free] += part * move
            nearest(goal, lo, hi, 0.0, machine.total, machine.balanced, 0.0, x)
            before = self.a
            found = self._search(x)
            if found is not None and (
                self.a is x or float(np.abs(self.a - before).sum()) > 0.5 * np.abs(x - before).sum()
            ):
                return

    def refresh(self) -> None:
        """Make a feasible to the last digit, and its outputs exact but for the precision of the stored kernel."""
        self.a = self.machine.make_feasible(self.a)
        self.f = self.known[1] + self.combined.apply(self.a - self.known[0])
        self.known = self.a, self.f


def partial_ascent(machine: Any, combined: Combined, a: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return better coefficients, after a fixed number of projected steps."""
    run = ProjectedAscent(machine, combined, a, f)
    run.steps(2 * PATIENCE)
    return machine.make_feasible(run.a)


def ascent(
    machine: Any, combined: Combined, a: np.ndarray, f: np.ndarray, accuracy: float
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return coefficients, their outputs, and whether they are within ``accuracy`` of the optimum, from feasible ones.

    Projected and Newton steps in turn, until the gap is small enough or has not halved for some time.
    """
    run = ProjectedAscent(machine, combined, a, f)
    best, outputs, least, target, waited = a, f, inner_gap(machine, a, f)[0], np.inf, 0
    while least > accuracy and waited < PATIENCE // 4:
        for move in (run.newton, lambda: run.steps(PATIENCE)):
            move()
            run.refresh()
            gap = inner_gap(machine, run.a, run.f)[0]
            if gap < least:
                best, outputs, least = run.a, run.f, gap
            if least <= accuracy:
                break
        waited = 0 if least < target else waited + 1
        target = min(target, 0.5 * least)
    return best, outputs, least <= accuracy


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def nearest(v, lo, hi, soft, total, balanced, b, x):
    """Set x to clip(s(v - b), lo, hi), s shrinking by ``soft`` towards zero, with sum x = total by the choice of b.

    The sum falls in b, at the rate of the coefficients inside their bounds: Newton's method from the ``b`` given,
    halving where it leaves the interval that holds b. Without ``balanced``, b = 0. Returns b.
    """
    if not balanced:
        b = 0.0
    low, high = -np.inf, np.inf
    n = v.shape[0]
    if balanced:
        low, high = np.inf, -np.inf
        for i in range(n):
            low = min(low, v[i] - hi[i])
            high = max(high, v[i] - lo[i])
        low, high = low - soft, high + soft
        b = min(max(b, low), high)
    size = 0.0
    for i in range(n):
        size += hi[i] - lo[i]
    for _ in range(STEPS):
        excess, inside = -total, 0
        for i in range(n):
            # soft thresholding, then the box; without branches, so that several are computed at once
            u = v[i] - b
            u = min(max(max(u - soft, 0.0) + min(u + soft, 0.0), lo[i]), hi[i])
            inside += (u > lo[i]) & (u < hi[i]) & ((u != 0.0) | (soft == 0.0))
            x[i] = u
            excess += u
        if not balanced or abs(excess) <= 1e-12 * size or high - low <= 1e-15 * max(abs(low), abs(high)):
            break
        if excess > 0.0:
            low = b
        else:
            high = b
        new = b + excess / inside if inside > 0 else np.inf
        b = new if low < new < high else 0.5 * (low + high)
    return b
