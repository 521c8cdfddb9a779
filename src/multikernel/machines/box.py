"""Coefficients in a box: what the machines of the hinge, the tube and one class share.

    max_a  p'a - eps |a|_1 - 1/2 a'Ka,     lo <= a <= hi,  lo <= 0 <= hi,     sum a = total  (where balanced)

by sequential minimal optimisation with second-order working sets, warm starts, and shrinking: variables whose slopes
hold them where they are get set aside, the rest is solved as a smaller problem, and all are rechecked.
"""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from itertools import chain, repeat
from typing import Any

import numpy as np

from multikernel.gram.base import Outputs
from multikernel.gram.combined import RIDGES, Combined, HostRows
from multikernel.machines.base import ON_BOUND, PATIENCE, ROUNDING, ConicMachine, Curvature, Machine
from multikernel.machines.box_interior import solve_inside
from multikernel.machines.box_loops import (
    CONVERGED,
    NEEDS_ROW,
    OUT_OF_STEPS,
    ascend,
    centred_rows,
    clipped,
    off_bounds,
    slopes_of_size,
    smo,
    without_sums,
)
from multikernel.threads import ROWS

# length of a pair's step in units of the exact one: fewer steps to tight tolerances against more where few are needed
RELAX = 1.5


class BoxMachine(Machine):
    """A machine whose dual is linear but for eps |a|_1, on a box.

    Attributes
    ----------
    p, lo, hi : ndarrays of shape (n,)
        Linear term and bounds.
    eps : float
        Weight of |a|_1, zero for classification.
    balanced : bool
        Whether sum a = total is asked for, which is what an intercept asks of the dual.
    total : float
        The sum.
    h : float
        Weight of -1/2 a'a, zero for every machine of this kind.
    """

    p: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    eps: float = 0.0
    balanced: bool = True
    total: float = 0.0
    h: float = 0.0

    def start(self):
        return self.make_feasible(np.zeros(self.n_samples))

    def dual(self, a):
        linear = float(self.p @ a)
        return linear - self.eps * float(np.abs(a).sum()) if self.eps else linear

    def conic(self) -> ConicMachine:
        """Return the machine as data for a conic solver."""
        equality = np.ones(self.n_samples) if self.balanced else None
        return ConicMachine(self.p, self.lo, self.hi, equality, self.total, self.eps)

    def free(self, a: np.ndarray) -> np.ndarray:
        """Return which coefficients are strictly inside their bounds, and off the kink where there is one."""
        return off_bounds(a, self.lo, self.hi, self.eps > 0.0)

    def _edge(self, a: np.ndarray) -> np.ndarray:
        """Return the distance from a bound below which coefficients count as being on it."""
        return ON_BOUND * np.minimum(self.hi - self.lo, np.abs(a).max())

    def make_feasible(self, a):
        return clipped(a, self.lo, self.hi, self.balanced, self.total, self.eps > 0.0)

    def _rescale(self, other, coef):
        """Keep the coefficients, those on a bound of ``other`` moved to the bound that is now in its place."""
        edge = other._edge(coef)
        return np.where(coef >= other.hi - edge, self.hi, np.where(coef <= other.lo + edge, self.lo, coef))

    def solve(self, combined, a, f, accuracy):
        if combined.by_products:
            from multikernel.machines.box_ascent import ascent

            a, f, done = ascent(self, combined, a, f, accuracy)
            return a if done else solve_inside(self, combined, a, f, accuracy)[0]
        run = SMO(self, a, f, accuracy)
        run.run(combined)
        return self.make_feasible(run.a)

    def partial_solve(self, combined: Combined, a: np.ndarray, f: np.ndarray, accuracy: float, size: int) -> np.ndarray:
        """Return coefficients of which the ``size`` worst violators were moved, for as many steps."""
        if combined.by_products:
            from multikernel.machines.box_ascent import partial_ascent

            return partial_ascent(self, combined, a, f)
        run = SMO(self, a, f, accuracy)
        if self.n_samples > combined.host_limit:
            for _ in range(int(np.ceil(size / combined.host_limit))):
                some = min(size, int(combined.host_limit))
                run.run_within(combined, run.worst(some), some)
        else:
            rows, chosen = combined.host_rows(), run.worst(size)
            rows.ensure(chosen)
            aside = np.ones(self.n_samples, bool)
            aside[chosen] = False
            run.up[aside], run.low[aside] = -np.inf, np.inf
            run.run_loop(rows, size)
        return self.make_feasible(run.a)

    def curvature(self, combined: Combined, a, f, outputs: Outputs, rough: bool = False) -> Curvature:
        """Linearise the optimality conditions of the free coefficients.

        On the free set p - eps sign(a) - f - b = 0 and sum a = total, so that a change of weights moves a_free by
        -Z dbeta with ``[K_ff 1; 1' 0] [Z; .] = [F_f'; 0]``, and H = F_f Z. Where few digits will do (``rough``) that is
        solved in single precision.
        """
        free = np.flatnonzero(self.free(a))
        Ff = outputs.kernel_outputs(free)
        k = len(Ff)
        if len(free) < 1 + self.balanced:
            return Curvature(np.zeros((k, k)), free[:0], np.zeros((0, k)), np.zeros(0))
        residual = (self.p - f)[free]
        if self.eps:
            residual -= self.eps * np.sign(a[free])
        X = solve_reduced(combined, free, np.vstack([Ff, residual]), self.balanced, rough)
        Z, correction = X[:k], X[k]
        H = Ff @ Z.T
        return Curvature(0.5 * (H + H.T), free, Z.T, correction)


class SMO:
    """One inner solution: coefficients a, gradient G, and the masks of what may grow and shrink.

    The machine is a `BoxMachine`, or has p, h, lo, hi, eps and balanced as one: the squared hinge and Huber's loss do,
    with h > 0 for the quadratic part of their conjugates.
    """

    def __init__(self, machine: Any, a: np.ndarray, f: np.ndarray, accuracy: float, relax: float = 1.0) -> None:
        self.machine, self.accuracy, self.relax = machine, accuracy, relax
        self.balanced = machine.balanced
        self.loop = smo if self.balanced else ascend
        self.lo, self.hi, self.eps = machine.lo, machine.hi, machine.eps
        # with slopes within tol of optimal the gap is at most tol times the length of the box
        self.tol = max(accuracy / float((self.hi - self.lo).sum()), 1e-15)
        self.h = np.broadcast_to(np.asarray(machine.h, float), a.shape)
        self.a, self.G = a.copy(), machine.p - f - self.h * a
        self._set_masks()

    def _set_masks(self) -> None:
        """Set what -eps |a| adds to the slope as a grows and as it shrinks, infinite where a bound forbids it."""
        self.up, self.low = slopes_of_size(self.a, self.lo, self.hi, self.eps)

    def worst(self, size: int) -> np.ndarray:
        """Return the worst violators, half of them able to grow and half to shrink, ties broken at random, sorted."""
        noise = _tie_breakers(len(self.G))
        half = min(size // 2, len(self.G))
        grow = np.argpartition(-(self.G + self.up) - noise, half - 1)[:half]
        shrink = np.argpartition(self.G + self.low - noise, half - 1)[:half]
        return np.unique(np.concatenate([grow[np.isfinite(self.up[grow])], shrink[np.isfinite(self.low[shrink])]]))

    def run(self, combined: Combined) -> None:
        """SMO to the tolerance, on all variables and on those that shrinking leaves, in turn.

        Where the host takes fewer rows than there are variables, a round solves the problem of the worst violators.
        Where a number of steps in proportion to the samples is not enough, an interior-point method finishes.
        """
        n = len(self.a)
        budget = PATIENCE * n
        rows = combined.host_rows() if n <= combined.host_limit else None
        if rows is not None and rows.together >= n:
            rows.ensure(np.arange(n))
        best, stuck = np.inf, 0
        while budget > 0:
            if rows is None:
                status, used, top, bottom = self._run_worst(combined, budget)
            else:
                status, used, top, bottom = self.run_loop(rows, min(n, budget))
            budget -= used
            stuck = 0 if top - bottom < 0.9 * best else stuck + 1
            best = min(best, top - bottom)
            self.relax = RELAX
            if status == CONVERGED:
                return
            # slopes are sums of many terms: below some point they are rounding, and no step makes them smaller
            terms = 1.0 + combined.diag.max() * np.abs(self.a).sum()
            if stuck > 5 and best < ROUNDING * terms:
                break
            # a variable that neither grows nor shrinks with a gain cannot be chosen while top and bottom close in
            held = (self.G + self.up < bottom) & (self.G + self.low > top)
            if rows is not None and n > 2 * np.count_nonzero(~held) > 2:
                budget -= self.run_within(combined, np.flatnonzero(~held), budget)
        f = self.machine.p - self.G - self.h * self.a
        self.a, f = solve_inside(self.machine, combined, self.a, f, self.accuracy)
        self.G = self.machine.p - f - self.h * self.a

    def _run_worst(self, combined: Combined, budget: int) -> tuple[int, int, float, float]:
        """Solve the problem of as many of the worst violators as the host takes; return as `run_loop`."""
        size = int(combined.host_limit)
        used = self.run_within(combined, self.worst(size), min(budget, 100 * size))
        top, bottom = float(np.max(self.G + self.up)), float(np.min(self.G + self.low))
        if not self.balanced:
            top, bottom = max(top, -bottom), 0.0
        return CONVERGED if top - bottom <= self.tol else OUT_OF_STEPS, used, top, bottom

    def run_within(self, combined: Combined, keep: np.ndarray, budget: int) -> int:
        """Solve the problem restricted to ``keep``, then bring all gradients up to date; return the steps used."""
        part = copy(self)
        for name in ("h", "lo", "hi", "a", "G", "up", "low"):
            setattr(part, name, getattr(self, name)[keep].copy())
        used = part.run_loop(combined.host_rows(keep), budget)[1]
        change = np.zeros(len(self.a))
        change[keep] = part.a - self.a[keep]
        self.a[keep] = part.a
        self.G -= combined.apply(change) + self.h * change
        self._set_masks()
        return max(used, 1)

    def run_loop(self, rows: HostRows, budget: int) -> tuple[int, int, float, float]:
        """Run the compiled loop, forming rows as it asks for them; return (status, steps, top, bottom)."""
        # after so many steps back to Python, where Ctrl-C is heard
        used, chunk, diag = 0, PATIENCE * len(self.a), rows.diag + self.h
        while True:
            status, row, steps, top, bottom = self.loop(
                rows.matrix, rows.scale, rows.have, diag, self.h,
                self.lo, self.hi, self.eps, self.a, self.G, self.up, self.low, self.tol,
                self.relax, min(budget - used, chunk),
            )  # fmt: skip
            used += steps
            if status == NEEDS_ROW:
                # with it the other missing rows that violate optimality most
                middle = 0.5 * (top + bottom)
                violation = np.maximum(self.G + self.up - middle, middle - (self.G + self.low))
                violation[rows.have] = -np.inf
                violation[row] = np.inf
                m = min(rows.together, len(violation))
                worst = np.argpartition(-violation, m - 1)[:m]
                rows.ensure(np.sort(worst[violation[worst] > 0]))
            elif status == CONVERGED or used >= budget:
                return status, used, top, bottom


@lru_cache(maxsize=4)
def _tie_breakers(n: int) -> np.ndarray:
    return np.random.default_rng(n).random(n) * 1e-6


def solve_reduced(
    combined: Combined, idx: np.ndarray, rhs: np.ndarray, balanced: bool, rough: bool = False
) -> np.ndarray:
    """Solve K_beta[idx, idx] x = r for the rows r of rhs; where balanced [K 1; 1' 0] [x; .] = [r; 0]: then sum x = 0.

    A ridge is added to K, as small as a factorisation allows. Single precision, half the cost, is tried first of many
    samples where few digits will do (``rough``). Where balanced, constants in r change nothing, and are taken out
    first: on low ranks they would be divided by the ridge, and what is left after they cancel would be rounding.
    """
    if balanced:
        rhs = centred_rows(rhs)
    mean = max(float(combined.diag[idx].mean()), float(np.finfo(np.float32).tiny))
    rough = rough and len(combined.diag) > ROWS and (combined.dtype != np.float32 or combined.by_products)
    single = [RIDGES["f"][0]] if rough else []
    for ridge, roughly in chain(zip(single, repeat(True)), zip(RIDGES[combined.dtype.char], repeat(False))):
        factor = combined.factor(idx, ridge * mean, roughly)
        if factor is not None:
            break
    else:
        return np.zeros((len(rhs) - balanced, len(idx)))
    X = factor.solve(rhs.T).T
    return without_sums(X) if balanced else X
