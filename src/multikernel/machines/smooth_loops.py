"""Compiled loops of the machine of smooth losses: intercept, shift to a sum of zero, mean second derivatives.

Intercept and shift are roots of a non-decreasing function with a derivative, by Newton's method within an interval
(`next_root`). On a few hundred samples the same in NumPy takes longer than the factorisation of a Newton step.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from multikernel.losses.base import FAR
from multikernel.machines.base import STEPS


@njit(cache=True, nogil=True)
def next_root(k, x, value, steep, low, high, step):
    """Return the next number to look at, the interval that holds the root, and how far the next step may go.

    ``value`` and ``steep`` are the function and its derivative at x, met at the step ``k``. Where Newton's step leaves
    the interval, and at every fourth step, the interval is halved. A search is at its end where x is returned.
    """
    if value < 0.0:
        low = x
    else:
        high = x
    new = x - value / steep if steep > 0.0 else -math.copysign(np.inf, value)
    if high - low < np.inf:
        if k % 4 == 3 or not low < new < high:
            new = 0.5 * (low + high)
    else:
        # at most twice as far as the step before
        new = min(max(new, x - step), x + step)
        step *= 2.0
    if abs(new - x) <= 2e-16 * abs(x) or abs(new) > FAR:
        new = x
    return new, low, high, step


@njit(cache=True, nogil=True, error_model="numpy")
def smooth_hinge_intercept(f, y, C, sigma, margin, b, enough):
    """Return the intercept of least loss, looked for from ``b``.

    The slope of sum_i C_i / sigma log(1 + exp(sigma (margin - y_i f_i))) there is at most ``enough`` times the root of
    the second derivative, or rounding.
    """
    low, high, step = -np.inf, np.inf, max(1.0, abs(b))
    for k in range(STEPS):
        slope, bend = 0.0, 0.0
        for i in range(f.shape[0]):
            # what is large is in the denominator
            e = math.exp(-abs(sigma * (margin - y[i] * (f[i] + b))))
            small, large = e / (1.0 + e), 1.0 / (1.0 + e)
            slope -= C[i] * y[i] * (large if margin > y[i] * (f[i] + b) else small)
            bend += C[i] * sigma * small * large
        if abs(slope) <= enough * math.sqrt(bend) or not abs(slope) < np.inf:
            break
        new, low, high, step = next_root(k, b, slope, bend, low, high, step)
        if new == b:
            break
        b = new
    return b


@njit(cache=True, nogil=True)
def shift_to_zero_sum(a, C, lo, hi, small):
    """Return a - t C, clipped to the bounds, with the t at which it sums to zero, up to ``small`` or rounding."""
    t, low, high, step = 0.0, -np.inf, np.inf, 1.0
    out = np.empty(a.shape[0])
    for k in range(STEPS):
        total, rate = 0.0, 0.0
        for i in range(a.shape[0]):
            out[i] = min(max(a[i] - t * C[i], lo[i]), hi[i])
            total += out[i]
            if lo[i] < out[i] < hi[i]:
                rate += C[i]
        if abs(total) <= small or not abs(total) < np.inf:
            break
        new, low, high, step = next_root(k, t, -total, rate, low, high, step)
        if new == t:
            break
        t = new
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def mean_of_slopes(w, a, g, lo, hi, least):
    """Return w times the root of the ratio of (u - lo) (hi - u) at u = a to that at u = -g.

    The ratio is clipped to [least, 1 / least], since a may be far outside its domain, and one where it is not a number.
    """
    out = np.empty(w.shape[0])
    for i in range(w.shape[0]):
        ratio = (a[i] - lo[i]) * (hi[i] - a[i]) / ((-g[i] - lo[i]) * (hi[i] + g[i]))
        out[i] = w[i] if np.isnan(ratio) else w[i] * math.sqrt(min(max(ratio, least), 1.0 / least))
    return out
