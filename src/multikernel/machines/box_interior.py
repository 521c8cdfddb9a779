"""The box problem by an interior-point method: a few dozen factorisations, whatever the costs and the kernel.

    min_x  1/2 a'Ka + 1/2 sum_j h_j x_j^2 - c'x,     0 <= x <= r,     sum a = total  (where balanced),

a_i the sum of s_j x_j over the variables j of sample i: one for each side of zero that the coefficient may take, of
sign s_j and length r_j, with c_j = s_j p_i - eps. The squared hinge is such a problem too, with h > 0. With multipliers
z of x >= 0 and w of x <= r, and d = z / x + w / (r - x) + h, a step solves

    (K + diag(1 / e)) da + db = g,     e_i = sum over j of 1 / d_j,     sum da = total - sum a,

one factorisation. Given: coefficients that other steps have left, pulled inside their bounds. Returned: the
coefficients of the smallest gap, those that their slopes hold at a bound put exactly there.

Reference: Mehrotra 1992, doi:10.1137/0802028. We differ in one step length for x, z and w, and in stopping on the gap
of the coefficients that are returned.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from multikernel.gram.combined import RIDGES, Cholesky, Combined
from multikernel.machines.base import MOST_FACTORISATIONS, TO_BOUNDARY, inner_gap

# the pull inside may raise the gap so many times; else it is repeated for the new gap, up to the middle of the box. A
# step that raises the complementarity by as much ends the run: a larger number makes hopeless runs longer
_GROWTH = 10.0


def solve_inside(
    machine: Any, combined: Combined, a: np.ndarray, f: np.ndarray, accuracy: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return better coefficients than ``a``, and their outputs.

    Parameters
    ----------
    machine : Machine
        With p, lo, hi, eps, h, balanced and total, as a `BoxMachine` has them.
    combined : Combined
        The kernel.
    a, f : ndarrays of shape (n,)
        Feasible coefficients and their outputs.
    accuracy : float
        Gap to reach.
    """
    best, outputs, least = a, f, inner_gap(machine, a, f)[0]
    if least <= accuracy:
        return a, f
    combined.widen()
    path, left = _InteriorPoint(machine, combined), MOST_FACTORISATIONS
    for near in (True, False):
        path.begin(a, f, near)
        before = smallest = np.inf
        # steps that raise the complementarity again bring nothing but rounding
        while left and least > accuracy and path.complementarity <= _GROWTH * smallest:
            left, smallest = left - 1, min(smallest, path.complementarity)
            if path.complementarity <= accuracy:
                gaps = []
                for coef in (path.a, path.rounded()):
                    now = machine.make_feasible(coef)
                    there = combined.apply(now)
                    gaps.append(inner_gap(machine, now, there)[0])
                    if gaps[-1] < least or gaps[-1] <= accuracy:
                        best, outputs, least = now, there, gaps[-1]
                # coefficients exactly on their bounds are worth further steps, until these bring nothing but rounding
                if gaps[-1] <= accuracy or min(gaps) >= before:
                    break
                before = min(gaps)
            if not path.step():
                break
        if least <= accuracy:
            break
    return best, outputs


class _InteriorPoint:
    """An interior point: x > 0 and v = r - x > 0, with their multipliers z and w, and b, the multiplier of the sum."""

    def __init__(self, machine: Any, combined: Combined) -> None:
        self.machine, self.combined = machine, combined
        grow, shrink = np.flatnonzero(machine.hi > 0), np.flatnonzero(machine.lo < 0)
        self.row = np.concatenate([grow, shrink])
        self.sign = np.repeat([1.0, -1.0], [len(grow), len(shrink)])
        self.r = np.concatenate([machine.hi[grow], -machine.lo[shrink]])
        self.h = np.broadcast_to(machine.h, machine.p.shape)[self.row]
        if np.isinf(self.r).any():
            # no loss is larger than that of zero coefficients: h x^2 / 2 <= scale
            self.r = np.sqrt(2.0 * machine.scale / self.h)
        self.c = self.sign * machine.p[self.row] - machine.eps

    def begin(self, a: np.ndarray, f: np.ndarray, near: bool) -> None:
        """Set x to the coefficients, pulled inside so far that multipliers mu / x are no larger than the slopes.

        ``near``: with multipliers by the slopes before the pull. What the pull changes in the slopes is left to the
        steps; few are needed, and in rare cases they are blocked. Else with those of the new slopes, and a larger mu.
        """
        x = np.clip(self.sign * a[self.row], 0.0, self.r)
        self.x, self.v, self.f, mu = x, self.r - x, f, 0.0
        before, inside = None, np.zeros(len(x))
        while True:
            self.b = self.machine.primal(self.f, 0.0)[1] - getattr(self.machine, "shift", 0.0)
            slope = self._slopes()
            grown = float(self.x @ np.maximum(slope, 0.0) + self.v @ np.maximum(-slope, 0.0)) / (2 * len(x))
            # numbers beyond the range of floats end the loop too
            if before is not None and (near or not grown > _GROWTH * mu or np.all(inside == 0.5 * self.r)):
                break
            mu, before = grown, slope
            inside = np.minimum(0.5 * self.r, mu / max(float(np.abs(slope).mean()), 1e-300))
            self.x = np.clip(x, inside, self.r - inside)
            # beside the upper bound the difference may be lost in rounding
            self.v, self.f = np.maximum(self.r - self.x, inside), self.combined.apply(self.a)
        slope, mu = (before, mu) if near else (slope, max(mu, grown))
        # without a gap (mu = 0) nothing is pulled inside, and a variable on its bound has the multiplier of its slope
        x, v = np.maximum(self.x, 1e-300), np.maximum(self.v, 1e-300)
        self.z, self.w = np.maximum(slope, 0.0) + mu / x, np.maximum(-slope, 0.0) + mu / v

    @property
    def a(self) -> np.ndarray:
        """The coefficients."""
        return self._by_row(self.sign * self.x)

    @property
    def complementarity(self) -> float:
        """The duality gap, where x and the multipliers satisfy their equations."""
        return float(self.x @ self.z + self.v @ self.w)

    def _by_row(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.row, values, self.machine.n_samples)

    def _slopes(self) -> np.ndarray:
        """Slope of the objective in each variable; z - w at the solution."""
        return self.sign * (self.f + self.b)[self.row] + self.h * self.x - self.c

    def rounded(self) -> np.ndarray:
        """The coefficients, variables put on a bound where their multiplier is larger than the slope this adds."""
        diag = self.combined.diag[self.row] + self.h
        x = np.where(self.z > diag * self.x, 0.0, np.where(self.w > diag * self.v, self.r, self.x))
        return self._by_row(self.sign * x)

    def step(self) -> bool:
        """Predictor and corrector step; return whether the point could move."""
        x, v, z, w = self.x, self.v, self.z, self.w
        mu = self.complementarity / (2 * len(x))
        if not mu > 0:
            # on the bounds to rounding
            return False
        with np.errstate(over="ignore"):
            d = z / x + w / v + self.h
        if not np.isfinite(d).all():
            # slacks so small that their multipliers in units of them overflow
            return False
        e = self._by_row(1.0 / d)
        residual = self._slopes() - z + w
        factor = self._factor(1.0 / e)
        if factor is None:
            return False
        ones = factor.solve(np.ones(len(e))) if self.machine.balanced else None
        if ones is not None and not ones.sum() > 0:
            # the system is singular to rounding
            return False

        def solve(comp_z, comp_w):
            rhs = comp_z / x - comp_w / v - residual
            g = self._by_row(self.sign * rhs / d) / e
            da, db = factor.solve(g), 0.0
            if ones is not None:
                db = (float(da.sum()) - (self.machine.total - float(self.a.sum()))) / float(ones.sum())
                da = da - db * ones
            # variables that add up to da exactly: what the system leaves over stays in the slopes, undivided by d
            dx = (rhs - self.sign * (g - da / e)[self.row]) / d
            return dx, (comp_z - z * dx) / x, (comp_w + w * dx) / v, db

        dx, dz, dw, _ = solve(-x * z, -v * w)
        t = self._longest(dx, dz, dw)
        after = float((x + t * dx) @ (z + t * dz) + (v - t * dx) @ (w + t * dw)) / (2 * len(x))
        target = (after / mu) ** 3 * mu
        dx, dz, dw, db = solve(target - x * z - dx * dz, target - v * w + dx * dw)
        t = min(1.0, TO_BOUNDARY * self._longest(dx, dz, dw))
        self.x, self.v, self.z, self.w, self.b = x + t * dx, v - t * dx, z + t * dz, w + t * dw, self.b + t * db
        self.f = self.combined.apply(self.a)
        return t > 1e-8

    def _factor(self, diagonal: np.ndarray) -> Cholesky | None:
        """Factorise K + diag(diagonal), with a ridge as small as the factorisation allows; None where none does."""
        idx, mean = np.arange(len(diagonal)), float(self.combined.diag.mean())
        for ridge in (0.0, *RIDGES[self.combined.dtype.char]):
            factor = self.combined.factor(idx, diagonal + ridge * mean)
            if factor is not None:
                return factor
        return None

    def _longest(self, dx: np.ndarray, dz: np.ndarray, dw: np.ndarray) -> float:
        """Longest step that keeps everything positive, at most one."""
        with np.errstate(divide="ignore", invalid="ignore"):
            pairs = (self.x, dx), (self.v, -dx), (self.z, dz), (self.w, dw)
            return min(1.0, *(float(np.where(d < 0, -u / d, np.inf).min()) for u, d in pairs))
