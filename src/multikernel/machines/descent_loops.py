"""Coordinate descent inside a block of rows, on their own kernel values.

    max over a_i   g_i a_i - eps |a_i| - 1/2 h_i a_i^2 - 1/2 K_ii (a_i - old)^2,      lo_i <= a_i <= hi_i

with g_i = p_i - f_i - b the slope without the sample's own quadratic term.
"""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def own_gaps(g, a, lo, hi, h, eps, out):
    """Gap of each row at slope g, max_u (g u - eps |u| - h u^2 / 2) minus the same at a; return their sum."""
    total = 0.0
    for i in range(len(g)):
        here = g[i] * a[i] - eps * abs(a[i]) - 0.5 * h[i] * a[i] * a[i]
        slope = g[i]
        edge = hi[i] if slope > 0.0 else lo[i]
        rise = abs(slope) - eps
        best = 0.0
        if rise > 0.0 and edge != 0.0:
            if h[i] > 0.0:
                u = min(rise / h[i], abs(edge))
                best = rise * u - 0.5 * h[i] * u * u
            else:
                best = rise * abs(edge)
        out[i] = max(best - here, 0.0)
        total += out[i]
    return total


@njit(cache=True, nogil=True)
def climb(G, g, a, lo, hi, h, eps, passes):
    """Maximise over each coefficient in turn, ``passes`` times over the block. Sets: a, and the slopes g."""
    m = len(a)
    for _ in range(passes):
        moved = False
        for i in range(m):
            k = G[i, i] + h[i]
            slope = g[i] - h[i] * a[i]
            if k > 0.0:
                u = a[i] + slope / k
                cut = eps / k
                u = u - cut if u > cut else (u + cut if u < -cut else 0.0)
                u = min(max(u, lo[i]), hi[i])
            elif slope > eps:
                u = hi[i]
            elif slope < -eps:
                u = lo[i]
            else:
                u = a[i]
            step = u - a[i]
            if step != 0.0:
                moved = True
                a[i] = u
                for j in range(m):
                    g[j] -= step * G[i, j]
        if not moved:
            break
