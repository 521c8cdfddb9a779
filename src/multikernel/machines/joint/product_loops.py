"""Compiled loops of the joint hinge with kernels on the classes, class-major (c, n). Nothing is checked here.

With sum_r M_r (x) W_r the combined kernel, M_r centred where there are biases, the slope of class u at sample j is

    g_ju = G_ju + t_u,      G = E - sum_r (M_r - r_r 1') A W_r,

t holds the parts that are the same for all j: the rest of the centring, the multipliers b and the penalty on S.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from multikernel.machines.joint.hinge_loops import FAR, GO_ON, OUT_OF_STEPS, SHARE, choose_rows, project_row

# projected gradient steps end when one is shorter than this share of the first: more exact rows save no row steps
_NEAR = 0.05


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _add_centred(g, row, scale, mean, step):
    for j in range(g.shape[0]):
        g[j] -= step * (scale * row[j] - mean[j])


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _row_matrix(W, diags, j, H):
    """H = sum_r (M_r)_jj W_r."""
    H[:] = 0.0
    for r in range(W.shape[0]):
        d = diags[r, j]
        for u in range(H.shape[0]):
            for v in range(H.shape[0]):
                H[u, v] += d * W[r, u, v]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _times(H, d, some, m, out):
    """out = H d, d zero but for its entries some[:m]."""
    c = out.shape[0]
    for u in range(c):
        row, x = H[u], 0.0
        if 4 * m > c:
            for v in range(c):
                x += row[v] * d[v]
        else:
            for k in range(m):
                x += row[some[k]] * d[some[k]]
        out[u] = x


@njit(cache=True, nogil=True)
def _nonzero(d, some):
    """Set some[:m] to where d is not zero; return m."""
    m = 0
    for u in range(d.shape[0]):
        if d[u] != 0.0:
            some[m] = u
            m += 1
    return m


@njit(cache=True, nogil=True)
def best_row(H, rho, k, g, old, C, y, within, d, some, slope, z, new):
    """Maximise g'd - 1/2 d'(H + rho)d over the rows old + d of their set, by at most ``within`` projected steps 1 / k.

    Sets: d, and some[:m], where it is not zero; slope, z and new are room to work in. Returns m.
    """
    c = g.shape[0]
    d[:] = 0.0
    first, m = 0.0, 0
    for it in range(within):
        if it:
            _times(H, d, some, m, slope)
        for u in range(c):
            slope[u] = g[u] - rho * d[u] - slope[u] if it else g[u]
        least = slope.min()
        for u in range(c):
            z[u] = old[u] + d[u] + (slope[u] - least) / k
        project_row(z, C, y, new)
        moved = 0.0
        for u in range(c):
            moved = max(moved, abs(new[u] - old[u] - d[u]))
            d[u] = new[u] - old[u]
        m = _nonzero(d, some)
        if not it:
            first = moved
        if moved <= _NEAR * first:
            break
    return m


@njit(cache=True, nogil=True)
def product_row_steps(
    K, which, scale, W, have, diags, steepest, rowmeans, grand, balanced, A, G, mask, C, y, S, t, b, rho, target,
    column_target, max_steps, within, wanted, top, low, r0, S0,
):  # fmt: skip
    """Row steps and multipliers until the gap of the rows is at most ``target``, rho |S|^2 at most ``column_target``.

    Sets: A, G, mask, S, t, b in place; ``wanted``, the rows that are missing; rho, the penalty. r0 and S0 are zero.
    Returns status, steps taken, number of rows wanted, and the gap of the rows.
    """
    c, n = G.shape
    g, z, new, d, old = np.empty(c), np.empty(c), np.empty(c), np.empty(c), np.empty(c)
    slope, H, some = np.empty(c), np.empty((c, c)), np.empty(c, np.intp)
    steps = 0
    while True:
        status, m, gap, worst = choose_rows(
            G, A, mask, r0, S0, S, t, b, rho, steepest, C, y, have, balanced, target, column_target, steps < max_steps,
            wanted, top, low,
        )  # fmt: skip
        if status != GO_ON:
            return status, steps, m, gap
        begun = steps
        for j in range(n):
            if top[j] < SHARE * worst:
                continue
            high, least, most = -np.inf, np.inf, -np.inf
            for u in range(c):
                g[u] = G[u, j] + t[u]
                old[u] = A[u, j]
                least = min(least, g[u])
                most = max(most, g[u])
                if mask[u, j] == 0.0:
                    high = max(high, g[u])
            if high - least < 0.5 * SHARE * worst:
                continue
            k = max(steepest[j] + rho[0], (most - least) / (FAR * C[j]))
            if within > 1:
                _row_matrix(W, diags, j, H)
            m = best_row(H, rho[0], k, g, old, C[j], y[j], within, d, some, slope, z, new)
            for i in range(m):
                u = some[i]
                A[u, j] = new[u]
                mask[u, j] = 0.0 if new[u] < (C[j] if u == y[j] else 0.0) else -np.inf
                if balanced:
                    S[u] += d[u]
                    t[u] -= rho[0] * d[u]
            for r in range(W.shape[0]):
                _times(W[r], d, some, m, z)
                row = K[which[r], j]
                for u in range(c):
                    if z[u] != 0.0:
                        _add_centred(G[u], row, scale[r], rowmeans[r], z[u])
                        if balanced:
                            t[u] += z[u] * (rowmeans[r, j] - grand[r])
            steps += 1
        if steps == begun:
            # all violations are rounding
            return OUT_OF_STEPS, max_steps, 0, gap


@njit(cache=True, nogil=True)
def product_block(K, which, scale, W, rows, u, v, first, last, out):
    """out[t, s] = sum_r M_r[rows_t, rows_s] (e_u_t - e_v_t)' W_r (e_u_s - e_v_s) for t in [first, last)."""
    for t in range(first, last):
        o = out[t]
        o[:] = 0.0
        for r in range(W.shape[0]):
            row, x, y = K[which[r], rows[t]], W[r, u[t]], W[r, v[t]]
            for s in range(rows.shape[0]):
                o[s] += scale[r] * row[rows[s]] * (x[u[s]] - x[v[s]] - y[u[s]] + y[v[s]])
