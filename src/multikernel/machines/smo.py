"""Compiled inner loops of the single-kernel machines.

Problem: maximise  p'a - 1/2 a'Ka  over  lo <= a <= hi, with sum a fixed (``smo``) or free (``ascend``), where
K = scale * M and only rows of M marked in ``have`` exist yet.

Given: the gradient G = p - Ka, the current a, and two masks, up_i = 0 where a_i < hi_i (else -inf) and
low_i = 0 where a_i > lo_i (else +inf).
Returned: (status, row, steps, top, bottom): CONVERGED, NEEDS_ROW ``row``, or OUT_OF_STEPS; top = max of G over the
variables that may grow, bottom = min of G over those that may shrink, so that top - bottom bounds the violation.
Sets: a, G, up, low.

Reference: Fan, Chen, Lin 2005, working set selection using second-order information. We differ in layout: signs
live in a, so that classification, regression and one-class share the loops, and both the gradient update and the
search for the next pair are single branch-free passes that the compiler turns into vector code; and steps are
over-relaxed, which still ascends (any factor below two does) and needs about half as many.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from multikernel.machines.vector import vmax, vmin

CONVERGED, NEEDS_ROW, OUT_OF_STEPS = 0, 1, 2
# entries searched at once, then scanned one by one for the place of the best
_BLOCK = 256
_PARTNERS = 128
# step length in units of the exact one: as in successive over-relaxation, about half the steps of exact ones
_RELAX = 1.6
_FLAGS = {"nnan", "nsz", "reassoc", "contract", "arcp"}


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FLAGS)
def _update_block(G, up, low, x, y, t):
    """G -= t (x - y); return max(G + up) and min(G + low)."""
    top, bottom = -np.inf, np.inf
    for k in range(G.shape[0]):
        g = G[k] - t * (np.float64(x[k]) - np.float64(y[k]))
        G[k] = g
        top = vmax(top, g + up[k])
        bottom = vmin(bottom, g + low[k])
    return top, bottom


@njit(cache=True, nogil=True, error_model="numpy")
def _update_and_scan(G, up, low, x, y, t):
    """G -= t (x - y); then the index and value of max(G + up), and the value of min(G + low)."""
    top, bottom, block = -np.inf, np.inf, 0
    for s in range(0, G.shape[0], _BLOCK):
        e = s + _BLOCK
        high, small = _update_block(G[s:e], up[s:e], low[s:e], x[s:e], y[s:e], t)
        if high > top:
            top, block = high, s
        bottom = min(bottom, small)
    best = block
    while best < G.shape[0] - 1 and G[best] + up[best] != top:
        best += 1
    return best, top, bottom


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FLAGS)
def _partner_gain(G, low, x, diag, twice, gi, di, floor):
    """Return the largest (G_i - G_j)^2 / (K_ii + K_jj - 2 K_ij) over the j that may shrink."""
    top = -1.0
    for k in range(G.shape[0]):
        d = vmax(gi - (G[k] + low[k]), 0.0)
        top = vmax(top, d * d / vmax(di + diag[k] - twice * np.float64(x[k]), floor))
    return top


@njit(cache=True, nogil=True, error_model="numpy")
def _best_partner(G, low, x, diag, scale, gi, di, floor):
    """Return the j of largest gain: blocks first, then the place within the best block."""
    top, block = -1.0, 0
    for s in range(0, G.shape[0], _PARTNERS):
        e = s + _PARTNERS
        gain = _partner_gain(G[s:e], low[s:e], x[s:e], diag[s:e], 2.0 * scale, gi, di, floor)
        if gain > top:
            top, block = gain, s
    best, value = block, -1.0
    for k in range(block, min(block + _PARTNERS, G.shape[0])):
        d = gi - (G[k] + low[k])
        if d > 0.0:
            v = d * d / max(di + diag[k] - 2.0 * scale * x[k], floor)
            if v > value:
                best, value = k, v
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def smo(M, scale, have, diag, lo, hi, a, G, up, low, tol, max_steps):
    """Pairs (i, j): a_i grows, a_j shrinks by the same amount, so that sum a stays what it was."""
    floor = 1e-12 * max(diag.max(), 1e-300)
    i, top, bottom = _update_and_scan(G, up, low, M[0], M[0], 0.0)
    step = 0
    while step < max_steps:
        if top - bottom <= tol:
            return CONVERGED, -1, step, top, bottom
        if not have[i]:
            return NEEDS_ROW, i, step, top, bottom
        j = _best_partner(G, low, M[i], diag, scale, G[i], diag[i], floor)
        if not have[j]:
            return NEEDS_ROW, j, step, top, bottom
        eta = max(diag[i] + diag[j] - 2.0 * scale * M[i, j], floor)
        t = _RELAX * (G[i] - G[j]) / eta
        room_i, room_j = hi[i] - a[i], a[j] - lo[j]
        if t >= room_i and room_i <= room_j:
            t = room_i
            a[j] -= t
            a[i] = hi[i]
            if room_j == room_i:
                a[j] = lo[j]
        elif t >= room_j:
            t = room_j
            a[i] += t
            a[j] = lo[j]
        else:
            a[i] += t
            a[j] -= t
        up[i] = 0.0 if a[i] < hi[i] else -np.inf
        up[j] = 0.0 if a[j] < hi[j] else -np.inf
        low[i] = 0.0 if a[i] > lo[i] else np.inf
        low[j] = 0.0 if a[j] > lo[j] else np.inf
        i, top, bottom = _update_and_scan(G, up, low, M[i], M[j], scale * t)
        step += 1
    return OUT_OF_STEPS, -1, step, top, bottom


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FLAGS)
def _single_gain(G, up, low, lo, hi, a, diag, floor):
    """Return the largest gain G_i t - 1/2 K_ii t^2, t clipped to the box, and the largest violation."""
    top, worst = -1.0, 0.0
    for k in range(G.shape[0]):
        d = vmax(diag[k], floor)
        t = vmin(vmax(G[k] / d, lo[k] - a[k]), hi[k] - a[k])
        top = vmax(top, G[k] * t - 0.5 * d * t * t)
        worst = vmax(worst, vmax(G[k] + up[k], -(G[k] + low[k])))
    return top, worst


@njit(cache=True, nogil=True, error_model="numpy")
def _best_single(G, up, low, lo, hi, a, diag, floor):
    """Return the coordinate of largest gain, and the largest violation."""
    top, block, worst = -1.0, 0, 0.0
    for s in range(0, G.shape[0], _BLOCK):
        e = s + _BLOCK
        gain, bad = _single_gain(G[s:e], up[s:e], low[s:e], lo[s:e], hi[s:e], a[s:e], diag[s:e], floor)
        worst = max(worst, bad)
        if gain > top:
            top, block = gain, s
    best, value = block, -1.0
    for k in range(block, min(block + _BLOCK, G.shape[0])):
        d = max(diag[k], floor)
        t = min(max(G[k] / d, lo[k] - a[k]), hi[k] - a[k])
        v = G[k] * t - 0.5 * d * t * t
        if v > value:
            best, value = k, v
    return best, worst


@njit(cache=True, nogil=True, error_model="numpy")
def ascend(M, scale, have, diag, lo, hi, a, G, up, low, tol, max_steps):
    """Single coordinates, for machines without an intercept."""
    floor = 1e-12 * max(diag.max(), 1e-300)
    n = G.shape[0]
    step = 0
    while step < max_steps:
        i, worst = _best_single(G, up, low, lo, hi, a, diag, floor)
        if worst <= tol:
            return CONVERGED, -1, step, worst, 0.0
        if not have[i]:
            return NEEDS_ROW, i, step, worst, 0.0
        old = a[i]
        a[i] = min(max(old + G[i] / max(diag[i], floor), lo[i]), hi[i])
        t = scale * (a[i] - old)
        up[i] = 0.0 if a[i] < hi[i] else -np.inf
        low[i] = 0.0 if a[i] > lo[i] else np.inf
        x = M[i]
        for k in range(n):
            G[k] -= t * x[k]
        step += 1
    return OUT_OF_STEPS, -1, step, worst, 0.0
