"""Compiled inner loops of the single-kernel machines.

Problem: maximise  p'a - eps |a|_1 - 1/2 a'Ka  over  lo <= a <= hi, lo <= 0 <= hi, with sum a fixed (``smo``) or free
(``ascend``), where K = scale * M + diag(h) and only rows of M marked in ``have`` exist yet.

Given: G = p - Ka, the diagonal of K, the current a, and what each variable adds to its slope: up_i when it grows (-eps
where a_i >= 0, eps where a_i < 0, -inf at hi_i), low_i when it shrinks (-eps where a_i > 0, eps where a_i <= 0, inf at
lo_i). For classification eps = 0; regression is the usual problem in doubled variables, one of each pair being zero.
Returned: (status, row, steps, top, bottom): CONVERGED, NEEDS_ROW ``row``, or OUT_OF_STEPS; top = max(G + up) and
bottom = min(G + low), so that top - bottom bounds the violation.
Sets: a, G, up, low.

Reference: Fan, Chen, Lin 2005, working set selection using second-order information. We differ in layout: signs
live in a, so that classification, regression and one-class share the loops, and both the gradient update and the
search for the next pair are single branch-free passes that the compiler turns into vector code; and steps may be
over-relaxed by the factor ``relax``, which still ascends (any factor below two does) and on the way to tight
tolerances needs about half as many.
"""

from __future__ import annotations

import math

import numpy as np
from numba import config, njit, types
from numba.extending import intrinsic

from multikernel.machines.base import ON_BOUND, ROUNDING

CONVERGED, NEEDS_ROW, OUT_OF_STEPS = 0, 1, 2

# entries searched at once by vector code, then scanned one by one for the place of the best
_BLOCK = 128

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
    for s in range(0, G.shape[0], _BLOCK):
        e = s + _BLOCK
        gain = _partner_gain(G[s:e], low[s:e], x[s:e], diag[s:e], 2.0 * scale, gi, di, floor)
        if gain > top:
            top, block = gain, s
    best, value = block, -1.0
    for k in range(block, min(block + _BLOCK, G.shape[0])):
        d = gi - (G[k] + low[k])
        if d > 0.0:
            v = d * d / max(di + diag[k] - 2.0 * scale * x[k], floor)
            if v > value:
                best, value = k, v
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def smo(M, scale, have, diag, h, lo, hi, eps, a, G, up, low, tol, relax, max_steps):
    """Pairs (i, j): a_i grows, a_j shrinks by the same amount, so that sum a stays what it was."""
    floor = 1e-12 * max(diag.max(), 1e-300)
    # nothing changes here: rows of M may not be formed yet, and must not be read
    i, top, bottom = _update_and_scan(G, up, low, diag, diag, 0.0)
    step = 0
    while step < max_steps:
        if top - bottom <= tol:
            return CONVERGED, -1, step, top, bottom
        if not have[i]:
            return NEEDS_ROW, i, step, top, bottom
        j = _best_partner(G, low, M[i], diag, scale, top, diag[i], floor)
        if not have[j]:
            return NEEDS_ROW, j, step, top, bottom
        eta = max(diag[i] + diag[j] - 2.0 * scale * M[i, j], floor)
        t = relax * (top - (G[j] + low[j])) / eta
        # neither leaves its piece: a kink lies at zero
        end_i = hi[i] if a[i] >= 0.0 else 0.0
        end_j = lo[j] if a[j] <= 0.0 else 0.0
        room_i, room_j = end_i - a[i], a[j] - end_j
        t = min(t, room_i, room_j)
        a[i] = end_i if t == room_i else a[i] + t
        a[j] = end_j if t == room_j else a[j] - t
        for k in (i, j):
            up[k] = -np.inf if a[k] >= hi[k] else (-eps if a[k] >= 0.0 else eps)
            low[k] = np.inf if a[k] <= lo[k] else (-eps if a[k] > 0.0 else eps)
        G[i] -= h[i] * t
        G[j] += h[j] * t
        i, top, bottom = _update_and_scan(G, up, low, M[i], M[j], scale * t)
        step += 1
    return OUT_OF_STEPS, -1, step, top, bottom


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FLAGS)
def _single_gain(G, up, low, lo, hi, a, diag, floor):
    """Return the largest gain s_i t - 1/2 K_ii t^2, s the slope, t clipped to the piece."""
    top = -1.0
    for k in range(G.shape[0]):
        s = vmax(G[k] + up[k], 0.0) + vmin(G[k] + low[k], 0.0)
        d = vmax(diag[k], floor)
        t = vmin(vmax(s / d, (lo[k] if a[k] <= 0.0 else 0.0) - a[k]), (hi[k] if a[k] >= 0.0 else 0.0) - a[k])
        top = vmax(top, s * t - 0.5 * d * t * t)
    return top


@njit(cache=True, nogil=True, error_model="numpy")
def _step_within(G, up, low, lo, hi, a, diag, floor):
    """Return the step of one variable, and its gain."""
    s = max(G + up, 0.0) + min(G + low, 0.0)
    d = max(diag, floor)
    t = min(max(s / d, (lo if a <= 0.0 else 0.0) - a), (hi if a >= 0.0 else 0.0) - a)
    return t, s * t - 0.5 * d * t * t


@njit(cache=True, nogil=True, error_model="numpy")
def _best_single(G, up, low, lo, hi, a, diag, floor):
    """Return the coordinate of largest gain, its step, and the gain."""
    top, block = -1.0, 0
    for s in range(0, G.shape[0], _BLOCK):
        e = s + _BLOCK
        gain = _single_gain(G[s:e], up[s:e], low[s:e], lo[s:e], hi[s:e], a[s:e], diag[s:e], floor)
        if gain > top:
            top, block = gain, s
    best, step, value = block, 0.0, -1.0
    for k in range(block, min(block + _BLOCK, G.shape[0])):
        t, gain = _step_within(G[k], up[k], low[k], lo[k], hi[k], a[k], diag[k], floor)
        if gain > value:
            best, step, value = k, t, gain
    return best, step, value


@njit(cache=True, nogil=True, error_model="numpy")
def ascend(M, scale, have, diag, h, lo, hi, eps, a, G, up, low, tol, relax, max_steps):
    """Single coordinates or pairs with opposite moves, whichever gains more, for machines without an intercept.

    Single coordinates alone are slow where a kernel has a large mean: each then moves all slopes at once.
    """
    floor = 1e-12 * max(diag.max(), 1e-300)
    nothing = np.zeros(G.shape[0], M.dtype)
    i, top, bottom = _update_and_scan(G, up, low, diag, diag, 0.0)
    step, worst = 0, max(top, -bottom)
    while step < max_steps:
        if worst <= tol:
            return CONVERGED, -1, step, worst, 0.0
        k, t, gain = _best_single(G, up, low, lo, hi, a, diag, floor)
        j = i
        if top > -np.inf:
            if not have[i]:
                return NEEDS_ROW, i, step, worst, 0.0
            j = _best_partner(G, low, M[i], diag, scale, top, diag[i], floor)
        d = top - (G[j] + low[j])
        if j != i and d > 0.0:
            eta = max(diag[i] + diag[j] - 2.0 * scale * M[i, j], floor)
            end_i = hi[i] if a[i] >= 0.0 else 0.0
            end_j = lo[j] if a[j] <= 0.0 else 0.0
            room = min(end_i - a[i], a[j] - end_j)
            exact = min(d / eta, room)
            if exact * (d - 0.5 * eta * exact) > gain:
                if not have[j]:
                    return NEEDS_ROW, j, step, worst, 0.0
                t = min(relax * d / eta, room)
                a[i] = end_i if t == end_i - a[i] else a[i] + t
                a[j] = end_j if t == a[j] - end_j else a[j] - t
                k = -1
        if k < 0:
            for v in (i, j):
                up[v] = -np.inf if a[v] >= hi[v] else (-eps if a[v] >= 0.0 else eps)
                low[v] = np.inf if a[v] <= lo[v] else (-eps if a[v] > 0.0 else eps)
            G[i] -= h[i] * t
            G[j] += h[j] * t
            i, top, bottom = _update_and_scan(G, up, low, M[i], M[j], scale * t)
        else:
            if not have[k]:
                return NEEDS_ROW, k, step, worst, 0.0
            a[k] = min(max(a[k] + t, lo[k]), hi[k])
            up[k] = -np.inf if a[k] >= hi[k] else (-eps if a[k] >= 0.0 else eps)
            low[k] = np.inf if a[k] <= lo[k] else (-eps if a[k] > 0.0 else eps)
            G[k] -= h[k] * t
            i, top, bottom = _update_and_scan(G, up, low, M[k], nothing, scale * t)
        step, worst = step + 1, max(top, -bottom)
    return OUT_OF_STEPS, -1, step, worst, 0.0


@njit(cache=True, nogil=True)
def centred_rows(R):
    """Return the rows of R without their means, and a row of ones below them."""
    out = np.ones((R.shape[0] + 1, R.shape[1]))
    for k in range(R.shape[0]):
        mean = R[k].sum() / R.shape[1]
        for i in range(R.shape[1]):
            out[k, i] = R[k, i] - mean
    return out


@njit(cache=True, nogil=True)
def without_sums(X):
    """Return all rows of X but the last, each without the multiple of the last by which its sum is zero."""
    ones = X[-1]
    out, total = np.empty((X.shape[0] - 1, X.shape[1])), ones.sum()
    for k in range(X.shape[0] - 1):
        part = X[k].sum() / total
        for i in range(X.shape[1]):
            out[k, i] = X[k, i] - part * ones[i]
        # what rounding has left
        out[k] -= out[k].sum() / X.shape[1]
    return out


@njit(cache=True, nogil=True)
def slopes_of_size(a, lo, hi, eps):
    """Return up and low: what -eps |a| adds to the slope as a grows and as it shrinks, infinite at the bounds."""
    up, low = np.empty(a.shape[0]), np.empty(a.shape[0])
    for i in range(a.shape[0]):
        up[i] = -np.inf if a[i] >= hi[i] else (-eps if a[i] >= 0.0 else eps)
        low[i] = np.inf if a[i] <= lo[i] else (-eps if a[i] > 0.0 else eps)
    return up, low


@njit(cache=True, nogil=True)
def off_bounds(a, lo, hi, kink):
    """Return which coefficients are off their bounds, and off zero where there is a kink, by more than rounding."""
    free, top = np.empty(a.shape[0], np.bool_), np.abs(a).max()
    for i in range(a.shape[0]):
        edge = ON_BOUND * min(hi[i] - lo[i], top)
        free[i] = lo[i] + edge < a[i] < hi[i] - edge and (not kink or abs(a[i]) > edge)
    return free


@njit(cache=True, nogil=True)
def balance(a, lo, hi, total, free):
    """Bring sum a to ``total``: each free coefficient by its share of their room, then all of them by theirs.

    Sums are compensated; `settle` makes the last of them exact.

    Sets: a, of shape (n,), within its bounds lo and hi.
    """
    n = a.shape[0]
    excess = compensated_sum(a, -total)
    # a sum that is zero but for rounding is no reason to move more than one coefficient
    rounding = ROUNDING * np.abs(a).sum()
    for everyone in (False, True):
        if abs(excess) <= rounding:
            break
        room = 0.0
        for i in range(n):
            if everyone or free[i]:
                room += a[i] - lo[i] if excess > 0.0 else hi[i] - a[i]
        part = min(1.0, abs(excess) / room) if room > 0.0 else 1.0
        for i in range(n):
            if everyone or free[i]:
                moved = a[i] - part * (a[i] - lo[i] if excess > 0.0 else a[i] - hi[i])
                a[i] = min(max(moved, lo[i]), hi[i])
        excess = compensated_sum(a, -total)
        if part < 1.0:
            break
    settle(a, lo, hi, total, free)


@njit(cache=True, nogil=True)
def clipped(a, lo, hi, balanced, total, kink):
    """Return a within its bounds; where balanced with the sum ``total``, which the free coefficients bring first."""
    out = np.empty(a.shape[0])
    for i in range(a.shape[0]):
        out[i] = min(max(a[i], lo[i]), hi[i])
    if balanced:
        balance(out, lo, hi, total, off_bounds(out, lo, hi, kink))
    return out


@njit(cache=True, nogil=True)
def settle(a, lo, hi, total, free):
    """Round a so that its sum is ``total`` in exact arithmetic, where it was so up to rounding.

    Coefficients become multiples of the last digit of the largest of them, a power of two, within their bounds, and are
    added up as whole numbers, modulo 2^64. What is left goes to the roomiest, of the free ones where these have room.

    Sets: a, of shape (n,), within its bounds lo <= 0 <= hi.
    """
    top = 0.0
    for i in range(a.shape[0]):
        top = max(top, abs(a[i]))
        if not abs(a[i]) < np.inf:
            return
    if top == 0.0:
        return
    unit, most = last_digit(top), 2.0**53
    whole = np.rint(np.fmod(total / unit, 2.0**64))
    rest = -np.int64(whole - math.copysign(2.0**64, whole) if abs(whole) >= 2.0**63 else whole)
    for i in range(a.shape[0]):
        x = np.rint(a[i] / unit)
        if x * unit > hi[i]:
            x -= 1.0
        elif x * unit < lo[i]:
            x += 1.0
        a[i] = x * unit
        rest += np.int64(x)
    everyone = False
    while rest != 0:
        roomiest, best = 0, 0.0
        for i in range(a.shape[0]):
            if everyone or free[i]:
                room = a[i] - lo[i] if rest > 0 else hi[i] - a[i]
                room = min(np.floor(room / unit), most + (a[i] if rest > 0 else -a[i]) / unit)
                if room > best:
                    roomiest, best = i, room
        if best >= 1.0:
            move = min(best, float(abs(rest)))
            a[roomiest] -= move * unit if rest > 0 else -move * unit
            rest -= np.int64(move) if rest > 0 else -np.int64(move)
        elif everyone:
            return
        everyone = best < 1.0


@njit(cache=True, nogil=True)
def last_digit(top):
    """Return the power of two of which ``top``, and smaller numbers rounded to it, have at most 2^53."""
    return math.ldexp(1.0, max(math.frexp(top)[1] - 53, -1074))


@njit(cache=True, nogil=True)
def compensated_sum(a, start):
    """Return start + sum a, exact but for its last digit (Neumaier 1974)."""
    total, lost = start, 0.0
    for i in range(a.shape[0]):
        x = a[i]
        new = total + x
        lost += (total - new) + x if abs(total) >= abs(x) else (x - new) + total
        total = new
    return total + lost


def _vector_op(name: str, plain):
    """Return the vector instruction of this name as a compiled function of two numbers, ``plain`` without compilation.

    Unlike ``max`` and ``min`` it does not care for NaN, which lets the compiler turn loops into vector code.
    """
    if config.DISABLE_JIT:
        return plain

    @intrinsic
    def op(typingctx, a, b):
        def codegen(context, builder, signature, args):
            from llvmlite import ir

            kind = args[0].type
            function = builder.module.declare_intrinsic(name, [kind], ir.FunctionType(kind, [kind, kind]))
            return builder.call(function, args, fastmath=("nnan", "nsz"))

        return types.float64(types.float64, types.float64), codegen

    return op


vmax = _vector_op("llvm.maxnum", max)
vmin = _vector_op("llvm.minnum", min)
