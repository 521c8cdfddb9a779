"""Compiled loops of the online learners. Nothing is checked here.

One visit of sample i, with theta_j the dual vector of block j (all classes), z_j = phi_j(x_i) (e_y - e_u) and u the
most dangerous wrong class:

    w_j = m_j theta_j,   m_j = factor / ||theta_j||  v_j (v_j / ||v||_q)^(q-2),   v_j = max(0, ||theta_j|| - threshold)
    if 1 + f_u - f_y > 0:    theta <- decay theta + eta z

theta is ``state[SIZE]`` times the stored array, so that decay is one product. Squared norms of the blocks
are kept up to date from the outputs of the sample visited. Features: theta is (c, D). Kernels: theta_j is
sum_i phi_j(x_i) A_i, and its outputs are read from what is stored of kernel j, K~ = s u u' K - L R' - R L':

    outputs of class c at sample i = u_i F_ci - L_i sum_l R_l A_lc - R_i sum_l L_l A_lc,     F_c = s sum_l A_lc u_l K_l

A violation waits in a short list, whose rows are added to F together.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# entries of ``state``: steps t, factor of theta, sum of the taus, sum of the coefficients of the violations
STEPS, SIZE, TAUS, TOTAL = 0, 1, 2, 3
# entries of ``limits``: lambda, a, q, R
LAM, SPARSE, POWER, RADIUS = 0, 1, 2, 3
# the learners: UFO-MKL over a sample and over a stream, the first and the second stage of OBSCURE
UFO, STREAM, FIRST, SECOND = 0, 1, 2, 3
# violations whose rows are added to the outputs together: more rows share a pass over the outputs, but wait longer
_WAITING = 8
_REASSOC = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True)
def block_norm(squares, size, threshold, q):
    """|| (max(0, size sqrt(squares_j) - threshold))_j ||_q."""
    top = 0.0
    for j in range(squares.shape[0]):
        top = max(top, size * np.sqrt(max(squares[j], 0.0)) - threshold)
    if top <= 0.0:
        return 0.0
    total = 0.0
    for j in range(squares.shape[0]):
        v = size * np.sqrt(max(squares[j], 0.0)) - threshold
        if v > 0.0:
            total += (v / top) ** q
    return top * total ** (1.0 / q)


@njit(cache=True, nogil=True)
def mirror(squares, size, threshold, factor, q, m):
    """Set m_j with w_j = m_j times the stored theta_j; return ||v||_q."""
    norm = block_norm(squares, size, threshold, q)
    for j in range(squares.shape[0]):
        theta = size * np.sqrt(max(squares[j], 0.0))
        v = theta - threshold
        m[j] = size * factor * (v / theta) * (v / norm) ** (q - 2.0) if v > 0.0 else 0.0
    return norm


@njit(cache=True, nogil=True)
def current(rule, state, limits, squares, m):
    """Set m_j of the current predictor; return the norm of theta.

    UFO minimises t h(w) - <theta, w>; a stream has lambda = 1/(C t), whatever its length.
    """
    t = max(state[STEPS], 1.0)
    lam, sparse, q = limits[LAM], limits[SPARSE], limits[POWER]
    if rule == UFO:
        return mirror(squares, state[SIZE], sparse * t, 1.0 / (lam * t), q, m)
    if rule == STREAM:
        return mirror(squares, state[SIZE], sparse * t, 1.0 / lam, q, m)
    return mirror(squares, state[SIZE], 0.0, 1.0 / q, q, m)


@njit(cache=True, nogil=True)
def worst_class(f, y):
    """Return the wrong class of the largest output, and the hinge 1 + f_u - f_y."""
    u = 1 if y == 0 else 0
    for k in range(f.shape[0]):
        if k != y and f[k] > f[u]:
            u = k
    return u, 1.0 + f[u] - f[y]


@njit(cache=True, nogil=True)
def rates(rule, state, limits, loss, cost, diag, norm):
    """Return decay and eta of this step; ``norm`` is ||theta||_{2,q}, ``diag`` holds k_j(x_i, x_i).

    Sets: the number of steps and the sum of the taus in ``state``.
    """
    lam, q, radius = limits[LAM], limits[POWER], limits[RADIUS]
    state[STEPS] += 1.0
    if rule == UFO or rule == STREAM:
        return 1.0, cost if loss > 0.0 else 0.0
    # ||z||_{2,q}, the blocks of z having squared norm 2 k_j(x_i, x_i)
    length = block_norm(diag, np.sqrt(2.0), 0.0, q) if loss > 0.0 else 0.0
    if rule == FIRST:
        if length == 0.0:
            return 1.0, 0.0
        return 1.0, cost * max(0.0, min(1.0, 1.0 - 2.0 * (1.0 - loss) / length**2))
    # Do, Le, Foo 2009: tau adds as much strong convexity as the slope requires
    slope = cost * length + lam / q * norm
    known = lam * state[STEPS] + state[TAUS]
    state[TAUS] += 0.5 * (np.sqrt(known * known + q * (slope / radius) ** 2) - known)
    eta = q / (lam * state[STEPS] + state[TAUS])
    return 1.0 - eta * lam / q, cost * eta if loss > 0.0 else 0.0


@njit(cache=True, nogil=True)
def update(rule, state, limits, loss, cost, diag, norm, g, y, u, squares):
    """Move theta in size and norm; return the coefficient of z in units of the stored theta."""
    decay, eta = rates(rule, state, limits, loss, cost, diag, norm)
    if decay > 0.0:
        state[SIZE] *= decay
    step = 0.0
    if eta > 0.0:
        step = eta / state[SIZE]
        state[TOTAL] += step
        for j in range(squares.shape[0]):
            squares[j] += 2.0 * step * (g[j, y] - g[j, u]) + 2.0 * step * step * diag[j]
    if rule == SECOND:
        # ||w||_{2,r} <= R
        reach = block_norm(squares, state[SIZE], 0.0, limits[POWER])
        if reach > limits[POWER] * limits[RADIUS]:
            state[SIZE] *= limits[POWER] * limits[RADIUS] / reach
    return step


@njit(cache=True, nogil=True, fastmath=_REASSOC)
def _add_row(f, x, d):
    for i in range(f.shape[0]):
        f[i] += d * x[i]


@njit(cache=True, nogil=True, fastmath=_REASSOC)
def _add_four(f, x0, x1, x2, x3, d0, d1, d2, d3):
    for i in range(f.shape[0]):
        f[i] += (d0 * x0[i] + d1 * x1[i]) + (d2 * x2[i] + d3 * x3[i])


@njit(cache=True, nogil=True, fastmath=_REASSOC)
def _add_eight(f, x0, x1, x2, x3, x4, x5, x6, x7, d0, d1, d2, d3, d4, d5, d6, d7):
    for i in range(f.shape[0]):
        f[i] += ((d0 * x0[i] + d1 * x1[i]) + (d2 * x2[i] + d3 * x3[i])) + (
            (d4 * x4[i] + d5 * x5[i]) + (d6 * x6[i] + d7 * x7[i])
        )


@njit(cache=True, nogil=True)
def add_violations(K, scale, unit, rows, ids, up, down, d, m, F):
    """F[j, u] += scale_j sum_s d_s u_j,ids_s ([u = up_s] - [u = down_s]) K_j[rows_s] over the m violations."""
    at, by = np.empty(m + 7, np.intp), np.empty(m + 7)
    for j in range(F.shape[0]):
        Kj = K[j]
        for u in range(F.shape[1]):
            k = 0
            for s in range(m):
                if up[s] == u or down[s] == u:
                    at[k] = rows[s]
                    by[k] = scale[j] * d[s] if up[s] == u else -scale[j] * d[s]
                    if unit.shape[0]:
                        by[k] *= unit[j, ids[s]]
                    k += 1
            # eight or four rows at a time, the last of them with coefficients zero where there are fewer
            for s in range(k, k + 7):
                at[s], by[s] = at[0], 0.0
            s = 0
            while s < k:
                if k - s > 4:
                    _add_eight(
                        F[j, u], Kj[at[s]], Kj[at[s + 1]], Kj[at[s + 2]], Kj[at[s + 3]],
                        Kj[at[s + 4]], Kj[at[s + 5]], Kj[at[s + 6]], Kj[at[s + 7]],
                        by[s], by[s + 1], by[s + 2], by[s + 3], by[s + 4], by[s + 5], by[s + 6], by[s + 7],
                    )  # fmt: skip
                    s += 8
                else:
                    _add_four(
                        F[j, u], Kj[at[s]], Kj[at[s + 1]], Kj[at[s + 2]], Kj[at[s + 3]],
                        by[s], by[s + 1], by[s + 2], by[s + 3],
                    )  # fmt: skip
                    s += 4


@njit(cache=True, nogil=True)
def visit_kernels(
    rule, K, scale, unit, left, right, slots, order, y, cost, diag, state, limits, squares, F, low, A, sums, late
):
    """Visit the samples ``order``, whose rows of kernel j are ``K[j][slots]``, in this order.

    The normalisations are scale (p,), unit (p, n), left and right (p, n, t), the last three empty where there are none.

    Sets: state, squares, F (p, c, n), the products low (2, p, c, t) of left and right with the coefficients, and the
    coefficients A (n, c); where ``late`` (n, c, p) is not empty, the sums of m_j over the visits and, in ``late``, A
    times the sums at the time of its changes.
    """
    p, c, _ = F.shape
    g, f, m = np.empty((p, c)), np.empty(c), np.empty(p)
    rows, ids = np.empty(_WAITING, np.intp), np.empty(_WAITING, np.intp)
    up, down, d = np.empty(_WAITING, np.intp), np.empty(_WAITING, np.intp), np.empty(_WAITING)
    waiting = 0
    for v in range(order.shape[0]):
        i = order[v]
        for j in range(p):
            Kj = K[j]
            for u in range(c):
                g[j, u] = F[j, u, i]
            for s in range(waiting):
                x = scale[j] * d[s] * Kj[rows[s], i]
                if unit.shape[0]:
                    x *= unit[j, ids[s]]
                g[j, up[s]] += x
                g[j, down[s]] -= x
            for u in range(c):
                if unit.shape[0]:
                    g[j, u] *= unit[j, i]
                for k in range(left.shape[2]):
                    g[j, u] -= left[j, i, k] * low[1, j, u, k] + right[j, i, k] * low[0, j, u, k]
        norm = current(rule, state, limits, squares, m)
        f[:] = 0.0
        for j in range(p):
            if m[j] != 0.0:
                for u in range(c):
                    f[u] += m[j] * g[j, u]
        u, loss = worst_class(f, y[i])
        step = update(rule, state, limits, loss, cost[i], diag[i], norm, g, y[i], u, squares)
        if late.shape[0]:
            for j in range(p):
                sums[j] += m[j]
        if step > 0.0:
            A[i, y[i]] += step
            A[i, u] -= step
            if late.shape[0]:
                for j in range(p):
                    late[i, y[i], j] += step * sums[j]
                    late[i, u, j] -= step * sums[j]
            for k in range(left.shape[2]):
                for j in range(p):
                    low[0, j, y[i], k] += step * left[j, i, k]
                    low[0, j, u, k] -= step * left[j, i, k]
                    low[1, j, y[i], k] += step * right[j, i, k]
                    low[1, j, u, k] -= step * right[j, i, k]
            rows[waiting], ids[waiting], up[waiting], down[waiting], d[waiting] = slots[v], i, y[i], u, step
            waiting += 1
            if waiting == _WAITING:
                add_violations(K, scale, unit, rows, ids, up, down, d, waiting, F)
                waiting = 0
    add_violations(K, scale, unit, rows, ids, up, down, d, waiting, F)


@njit(cache=True, nogil=True, fastmath=_REASSOC)
def _dot(x, w):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * w[i]
    return total


@njit(cache=True, nogil=True)
def visit_features(rule, X, starts, order, y, cost, diag, state, limits, squares, theta, A, sums, late):
    """Visit the samples ``order`` of the features X (n, D), block j being the columns starts_j to starts_{j+1}.

    Sets: state, squares, theta (c, D) and the coefficients A (n, c), where it is not empty; where ``late`` (c, D) is
    not empty, the sums of m_j over the visits and, in ``late``, theta times the sums at the time of its changes.
    """
    c, p = theta.shape[0], starts.shape[0] - 1
    g, f, m = np.empty((p, c)), np.empty(c), np.empty(p)
    for v in range(order.shape[0]):
        i = order[v]
        x = X[i]
        for j in range(p):
            lo, hi = starts[j], starts[j + 1]
            for u in range(c):
                g[j, u] = _dot(x[lo:hi], theta[u, lo:hi])
        norm = current(rule, state, limits, squares, m)
        f[:] = 0.0
        for j in range(p):
            for u in range(c):
                f[u] += m[j] * g[j, u]
        u, loss = worst_class(f, y[i])
        step = update(rule, state, limits, loss, cost[i], diag[i], norm, g, y[i], u, squares)
        if late.shape[0]:
            for j in range(p):
                sums[j] += m[j]
        if step > 0.0:
            if A.shape[0]:
                A[i, y[i]] += step
                A[i, u] -= step
            _add_row(theta[y[i]], x, step)
            _add_row(theta[u], x, -step)
            if late.shape[0]:
                for j in range(p):
                    lo, hi = starts[j], starts[j + 1]
                    _add_row(late[y[i], lo:hi], x[lo:hi], step * sums[j])
                    _add_row(late[u, lo:hi], x[lo:hi], -step * sums[j])
