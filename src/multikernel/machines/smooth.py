"""Any smooth loss on one kernel: Newton's method on the primal, certified by the conjugate.

    max_a  -sum_i l_i*(-a_i) - 1/2 a'Ka,           sum a = 0  (with an intercept)
    min_a,b  1/2 a'Ka + sum_i l_i(f_i + b),        f = Ka,      l_i = C_i l(., y_i)

At the solution a_i = -l_i'(f_i + b). With W = diag(l_i'') the Newton step d of a solves (I + WK) d + W1 db = r,
r = -(a + l'): one solution with M = K + W^-1. The step is shortened until the primal falls.
Nothing is asked of the loss but its methods (see `multikernel.losses.Loss`).

Reference: Sonnenburg et al. 2005, (8) and (9), for strictly convex differentiable losses, without intercept.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from multikernel.gram.base import Outputs
from multikernel.gram.combined import Combined
from multikernel.losses import Huber, Loss, SmoothHinge, SquaredHinge
from multikernel.machines.base import BIASES, FLOOR, MOST_FACTORISATIONS, PATIENCE, ROUNDING, STEPS, Curvature, Machine
from multikernel.machines.box import RELAX, SMO
from multikernel.machines.box_interior import solve_inside
from multikernel.machines.box_loops import settle
from multikernel.machines.smooth_loops import mean_of_slopes, next_root, shift_to_zero_sum, smooth_hinge_intercept
from multikernel.machines.svc import SVC
from multikernel.machines.weighted_inverse import SAME, WeightedInverse


class Smooth(Machine):
    """A differentiable convex loss with per-sample costs.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels -1 and 1, or targets.
    loss : Loss
        The loss at cost one.
    C : float or ndarray of shape (n,)
        Cost of each sample (C times its weight), positive.
    fit_intercept : bool
        Whether f has an intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.losses import Logistic
    >>> from multikernel.mixing.norms import Simplex
    >>> from multikernel.problem import Problem
    >>> from multikernel.solve import solve
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> K = np.stack([np.outer(x, x), np.eye(4)])
    >>> solution = solve(Problem(DenseGram(K), Smooth(np.sign(x), Logistic()), Simplex()), tol=1e-9)
    >>> solution.weights.round(6), round(solution.upper, 6)
    (array([1., 0.]), 1.380331)
    """

    eps, total = 0.0, 0.0

    def __init__(self, y: np.ndarray, loss: Loss, C: float | np.ndarray = 1.0, fit_intercept: bool = False) -> None:
        self.y = np.asarray(y, float)
        self.loss = loss
        self.C = np.ascontiguousarray(np.broadcast_to(np.asarray(C, float), self.y.shape))
        self.balanced = fit_intercept
        self.n_samples = len(self.y)
        # losses with a kink in their slope, whose conjugate is 1/2 h a^2 - p a between bounds
        self.bounded = isinstance(loss, (SquaredHinge, Huber))
        if isinstance(loss, (SquaredHinge, Huber)):
            self.p, self.h = self.y, (1.0 if isinstance(loss, Huber) else 0.5) / (self.C * loss.C)
        lo, hi = loss.domain(self.y)
        # not beyond the domain of the conjugate by the rounding of the product
        self.lo, self.hi = (np.where(np.isinf(end), end, np.nextafter(self.C * end, 0.0)) for end in (lo, hi))
        with np.errstate(over="ignore"):
            # infinite losses are refused by the caller, or leave the gap unknown
            start = float(np.abs(self.value(np.zeros(self.n_samples))).sum())
        self.scale = start if start > 0 else float(self.C.sum())
        self.floor = FLOOR * self.scale
        self.reach = float(np.abs(self.y).max()) + loss.steepness
        # the sum over the samples of the larger second derivative at output zero and at output y, beside which
        # `_inverse` neglects small ones; infinite where the sum is zero or not finite
        with np.errstate(all="ignore"):
            total = np.maximum(*[self.hessian(f) for f in (np.zeros(self.n_samples), self.y)]).sum()
        self.curvature_scale = float(total) if 0.0 < total < np.inf else np.inf

    def value(self, f: np.ndarray) -> np.ndarray:
        """Return the loss of each sample."""
        with np.errstate(over="ignore"):
            return self.C * self.loss.value(f, self.y)

    def gradient(self, f: np.ndarray) -> np.ndarray:
        """Return its derivative."""
        with np.errstate(over="ignore"):
            return self.C * self.loss.gradient(f, self.y)

    def hessian(self, f: np.ndarray) -> np.ndarray:
        """Return its second derivative."""
        with np.errstate(over="ignore"):
            return self.C * self.loss.hessian(f, self.y)

    def start(self):
        return self.make_feasible(np.zeros(self.n_samples))

    def dual(self, a):
        with np.errstate(over="ignore"):
            return -float(np.sum(self.C * self.loss.conjugate(a / self.C, self.y)))

    def primal(self, f, quad, accuracy=0.0, a=None):
        b = self.best_intercept(f, accuracy)
        return 0.5 * quad + float(self.value(f + b).sum()), b

    def risk(self, out, b, error):
        return float(np.maximum(self.value(out - error), self.value(out + error)).sum())

    def make_feasible(self, a):
        if not self.balanced:
            return np.clip(a, self.lo, self.hi)
        a = shift_to_zero_sum(a, self.C, self.lo, self.hi, ROUNDING * float(np.abs(a).sum()))
        settle(a, self.lo, self.hi, 0.0, (a > self.lo) & (a < self.hi))
        return a

    def best_intercept(self, f: np.ndarray, accuracy: float = 0.0, near: float = 0.0) -> float:
        """Return the b that minimises sum_i l_i(f_i + b), looked for from ``near``; zero without an intercept.

        The sum is above the least by a small share of ``accuracy``, or by rounding.
        """
        if not self.balanced:
            return 0.0
        # a quadratic with this slope at b is slope^2 / (2 bend) above its minimum
        enough = math.sqrt(2.0 * max(BIASES * accuracy, FLOOR**2 * self.scale))
        loss = self.loss
        if isinstance(loss, SmoothHinge) and type(loss).gradient is SmoothHinge.gradient:
            costs = self.C if isinstance(loss.C, float) and loss.C == 1.0 else self.C * loss.C
            return smooth_hinge_intercept(f, self.y, costs, loss.sigma, loss.margin, near, enough)

        def slopes(b):
            return float(self.gradient(f + b).sum()), float(self.hessian(f + b).sum())

        return _root(slopes, near, lambda slope, bend: abs(slope) <= enough * math.sqrt(bend))

    def solve(self, combined, a, f, accuracy):
        """Newton steps with line search until the gap of the repaired a is below ``accuracy``.

        The dual of a loss with kinks in its slope is a quadratic programme with bounds: pair steps come first, and
        where a few of Newton's are not enough after them, an interior-point method finishes.
        """
        if type(self.loss) is SmoothHinge and not a.any():
            # the solution of the hinge loss, roughly, is nearer
            hinge = SVC(self.y, self.C * self.loss.C, self.balanced)
            a = hinge.partial_solve(combined, a, f, SAME * hinge.scale, PATIENCE * self.n_samples)
            f = combined.apply(a)
        # near the limit of rounding Newton's steps find more digits of the coefficients than pair steps do
        rows = self.n_samples <= combined.host_limit and not combined.by_products
        if self.bounded and rows and accuracy > self.floor:
            a, f, gap = self._pair_steps(combined, a, f, accuracy)
            if gap <= accuracy:
                return a
        b = self.best_intercept(f, accuracy)
        for _ in range(PATIENCE if self.bounded else MOST_FACTORISATIONS):
            a, f, b, progress = self._newton_step(combined, a, f, b)
            feasible = self.make_feasible(a)
            there = f if np.array_equal(feasible, a) else f + combined.apply(feasible - a)
            if self._inner_gap(feasible, there, b, accuracy) <= accuracy:
                return feasible
            if not progress:
                break
        if self.bounded:
            return solve_inside(self, combined, feasible, combined.apply(feasible), accuracy)[0]
        return feasible

    def _pair_steps(self, combined, a, f, accuracy):
        """Return coefficients, their outputs and their gap, after rounds of n pair steps while these halve it."""
        run, rows, gap = SMO(self, a, f, 0.0), combined.host_rows(), np.inf
        for _ in range(PATIENCE):
            run.run_loop(rows, self.n_samples)
            run.relax = RELAX
            new = self.make_feasible(run.a)
            there = f + combined.apply(new - a)
            before, gap = gap, self._inner_gap(new, there, 0.0, accuracy)
            if gap <= accuracy or not gap <= 0.5 * before:
                break
        return new, there, gap

    def _inner_gap(self, a: np.ndarray, f: np.ndarray, b: float, accuracy: float) -> float:
        """Sum over samples of l_i(f_i + b) + l_i*(-a_i) + a_i f_i, b the best intercept, looked for near ``b``."""
        b = self.best_intercept(f, accuracy, b)
        return float(self.value(f + b).sum() + a @ f) - self.dual(a)

    def _newton_step(self, combined, a, f, b):
        """Return a, f and b after a step, and whether the primal fell by more than rounding."""
        g = self.gradient(f + b)
        r = -(a + g)
        inverse = self._inverse(combined, self._mean_hessian(f + b, a, g))
        d = self._step(combined, inverse, r, plain=True)
        db = 0.0
        if self.balanced:
            # sum d = 0 by the choice of db
            total = float(d.sum())
            if inverse.multiplier is not None and inverse.total > 0:
                db, d = total / inverse.total, d - inverse.multiplier * total
            else:
                d = d - total / self.n_samples
        df = combined.apply(d)
        quad, slope, curvature = 0.5 * float(a @ f), float(d @ f), 0.5 * float(d @ df)
        move = df + db

        def primal(t):
            return quad + t * slope + t**2 * curvature + float(self.value(f + b + t * move).sum())

        def slopes(t):
            at, twice = f + b + t * move, 2.0 * curvature
            bend = twice + float((self.hessian(at) * move) @ move)
            return slope + twice * t + float(self.gradient(at) @ move), bend

        before = primal(0.0)
        descent, rounding = slope + float(g @ move), 1e-15 * abs(before)
        t, now = 1.0, primal(1.0)
        if not self.bounded and not now <= before + 0.25 * descent + rounding:
            # it falls by less than half of what a quadratic function would: the minimum along the step, roughly
            t = _root(slopes, t, lambda value, _: abs(value) <= 0.1 * abs(descent))
            now = primal(t)
        # Armijo along the step, with room for rounding
        while not now <= before + 1e-4 * t * descent + rounding and t > 1e-12:
            t *= 0.5
            now = primal(t)
        return a + t * d, f + t * df, b + t * db, before - now > rounding

    def _step(self, combined: Combined, inverse: WeightedInverse, r: np.ndarray, plain: bool = False) -> np.ndarray:
        """Return d of (I + WK) d = r: d_0 = r_0 where W is zero, and d_1 = M^-1 (W^-1 r_1 - K_10 r_0) elsewhere."""
        if len(inverse.idx) == len(r):
            return inverse.apply(r / inverse.w, plain)
        d = r.copy()
        d[inverse.idx] = 0.0
        rhs = -combined.apply(d)
        rhs[inverse.idx] += r[inverse.idx] / inverse.w
        return d + inverse.apply(rhs, plain)

    def _mean_hessian(self, f: np.ndarray, a: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return the geometric mean of the second derivatives at outputs f, of slope g, and where the slope is -a.

        With f alone a step goes down an exponential tail by one unit, with a alone it hardly goes up; with the mean it
        does both, as in interior-point methods. Second derivatives of the logistic loss and its kin are in proportion
        to (u - lo) (hi - u) at the slope -u.
        """
        w = self.hessian(f)
        # coefficients that are all zero, those of a cold start, say nothing
        if self.bounded or not a.any() or np.isinf(self.lo).any() or np.isinf(self.hi).any():
            return w
        return mean_of_slopes(w, a, g, self.lo, self.hi, SAME)

    def _inverse(self, combined: Combined, w: np.ndarray) -> WeightedInverse:
        """Return the inverse for second derivatives w, or the last one where w has hardly changed since.

        Changes of w by a fraction SAME change I + SKS, S = diag(sqrt w), by that fraction at most, and so do changes
        that add up to SAME beside 1 / K_ii. Second derivatives below this are set to zero. The step of the intercept is
        a mean weighted by them, so with an intercept those set to zero also sum to at most a fraction SAME of
        ``curvature_scale``.
        """
        w = np.where(np.isfinite(w), w, 0.0)
        beside = 1.0 / np.maximum(combined.diag, np.finfo(float).tiny)
        small = SAME / self.n_samples * (np.minimum(beside, self.curvature_scale) if self.balanced else beside)
        w = np.where(w > small, w, 0.0)
        kept = combined.cache.get("inverse")
        if kept is None or np.any(np.abs(kept[0] - w) > SAME * w + small):
            kept = w, WeightedInverse(combined, w, self.balanced, refined=True)
            combined.cache["inverse"] = kept
        return kept[1]

    def curvature(self, combined: Combined, a, f, outputs: Outputs, rough: bool = False) -> Curvature:
        """From a = -l'(f + b): a change of weights moves a by -M^-1 F_k, and H_kl = <F_k, M^-1 F_l>."""
        b = self.best_intercept(f)
        inverse = self._inverse(combined, self.hessian(f + b))
        F = outputs.kernel_outputs()
        Z = inverse.apply(np.ascontiguousarray(F.T))
        H = F @ Z
        r = -(a + self.gradient(f + b))
        correction = self._step(combined, inverse, r)
        return Curvature(0.5 * (H + H.T), np.arange(self.n_samples), Z, correction)


def _root(both: Callable, x: float, done: Callable) -> float:
    """Return where a non-decreasing function of one number becomes zero, so nearly that it is ``done``, or to rounding.

    ``both`` returns the value and the derivative; `next_root` says where to look next.
    """
    low, high, step = -math.inf, math.inf, max(1.0, abs(x))
    for k in range(STEPS):
        value, steep = both(x)
        if done(value, steep) or not math.isfinite(value):
            break
        new, low, high, step = next_root(k, x, value, steep, low, high, step)
        if new == x:
            break
        x = new
    return x
