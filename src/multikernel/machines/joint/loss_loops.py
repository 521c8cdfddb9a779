"""Compiled loops of the joint losses, on class-major arrays of shape (c, n). Nothing is checked here.

With s the outputs of one sample, biases included, and a its coefficients, the gap of its row at cost C is

    C l(s) + C l*(-a / C) + <a, s>  >=  0,       zero where a is minus the gradient of the loss.

A row step minimises C l*(-a / C) + k/2 |a - z|^2 over rows that sum to zero, k the diagonal of the kernel and
z = a_old - s / k. The losses and conjugates, t the largest s_u - s_y over the wrong classes and u = a_y / C:

    MULTINOMIAL     log sum_u exp(s_u) - s_y          sum_u p_u log p_u,  p = e_y - a / C
    SQUARED_HINGE   max(0, 1 + t)^2                   u^2 / 4 - u
    SMOOTH_HINGE    log(1 + exp(sigma (m + t)))/sigma  -m u + (u log u + (1 - u) log(1 - u)) / sigma
"""

from __future__ import annotations

import numpy as np
from numba import njit

from multikernel.gram.dense_loops import TOGETHER
from multikernel.losses.joint import MULTINOMIAL, SMOOTH_HINGE, SQUARED_HINGE
from multikernel.machines.box_loops import vmax
from multikernel.machines.joint.hinge_loops import (
    CONVERGED,
    FAR,
    MOST_STEPS,
    NEEDS_ROWS,
    OUT_OF_STEPS,
    update_multipliers,
)

# a row is moved when its gap is at least this share of the mean: a smaller one moves rows that hardly matter
_SHARE = 0.3
# Newton's method squares its error: a relative change of this size leaves rounding
_ROOT = float(np.sqrt(np.finfo(float).eps))


@njit(cache=True, nogil=True)
def log1pexp(x):
    """log(1 + exp(x)) without overflow."""
    return max(x, 0.0) + np.log1p(np.exp(-abs(x)))


@njit(cache=True, nogil=True)
def xlogx(x):
    """x log x, zero at zero and below."""
    return x * np.log(x) if x > 0.0 else 0.0


@njit(cache=True, nogil=True)
def loss_of_excess(kind, sigma, margin, t):
    """Return loss, first and second derivative at cost one, t the largest wrong output less that of the class."""
    if kind == SQUARED_HINGE:
        e = max(0.0, 1.0 + t)
        return e * e, 2.0 * e, 2.0 if e > 0.0 else 0.0
    x = sigma * (margin + t)
    small = np.exp(-abs(x))
    u = 1.0 / (1.0 + small) if x >= 0 else small / (1.0 + small)
    return log1pexp(x) / sigma, u, sigma * small / (1.0 + small) ** 2


@njit(cache=True, nogil=True)
def own_conjugate(kind, sigma, margin, u):
    """Return the conjugate of a loss of the largest wrong class, at cost one, as a function of u = a_y / C."""
    if kind == SQUARED_HINGE:
        return 0.25 * u * u - u
    return -margin * u + (xlogx(u) + xlogx(1.0 - u)) / sigma


@njit(cache=True, nogil=True)
def row_conjugate(kind, sigma, margin, a, C, y):
    """Return C l*(-a / C)."""
    if kind != MULTINOMIAL:
        return C * own_conjugate(kind, sigma, margin, a[y] / C)
    value = xlogx(1.0 - a[y] / C)
    for u in range(a.shape[0]):
        if u != y:
            value += xlogx(-a[u] / C)
    return C * value


@njit(cache=True, nogil=True)
def row_gap(kind, sigma, margin, s, a, C, y, conjugate):
    """Return C l(s) + C l*(-a / C) + <a, s>, given the conjugate term."""
    c = s.shape[0]
    inner = conjugate
    top = -np.inf
    for u in range(c):
        if u != y:
            inner += a[u] * (s[u] - s[y])
            top = max(top, s[u] - s[y])
    if kind != MULTINOMIAL:
        return C * loss_of_excess(kind, sigma, margin, top)[0] + inner
    top = max(top, 0.0)
    total = 0.0
    for u in range(c):
        total += np.exp(s[u] - s[y] - top)
    return C * (np.log(total) + top) + inner


@njit(cache=True, nogil=True)
def _own_entry(kind, sigma, margin, k, rhs, C, near):
    """Return a >= 0 with k a + (derivative of the conjugate at u = a / C) = rhs; the search begins at ``near``."""
    if kind == SQUARED_HINGE:
        return max(0.0, (rhs + 1.0) / (k + 0.5 / C))
    # x + sigma k C / (1 + exp(-x)) = sigma (rhs + margin), increasing in x
    steep, r = sigma * k * C, sigma * (rhs + margin)
    low, high = r - steep, r
    x = min(max(np.log(near / (C - near)) if 0.0 < near < C else 0.0, low), high)
    for _ in range(MOST_STEPS):
        u = 1.0 / (1.0 + np.exp(-x))
        value = x + steep * u - r
        if value > 0:
            high = x
        else:
            low = x
        new = x - value / (1.0 + steep * u * (1.0 - u))
        if abs(new - x) <= _ROOT * (1.0 + abs(x)):
            x = new
            break
        x = new if low < new < high else 0.5 * (low + high)
    return C / (1.0 + np.exp(-x))


@njit(cache=True, nogil=True)
def _largest_margin_step(kind, sigma, margin, z, k, C, y, near, out):
    """Set out to the row step of a loss of the largest wrong class; the search begins at the row ``near``.

    The wrong classes have a_u = min(0, z_u - tau). If m of them are negative, tau = (a_y + sum of their z) / m, and a_y
    solves one equation. From any set of classes tau is at least the right one, so that classes at or above it can be
    left out; the set of those below it shrinks to the right one.
    """
    c = z.shape[0]
    total, m, own, begun = 0.0, 0, near[y], True
    for u in range(c):
        if u != y and near[u] < 0.0:
            total += z[u]
            m += 1
    if m == 0:
        m, begun = c - 1, False
        for u in range(c):
            if u != y:
                total += z[u]
    while True:
        own = _own_entry(kind, sigma, margin, k * (1.0 + 1.0 / m), k * (z[y] - total / m), C, own)
        tau = (own + total) / m
        below, less, same = 0.0, 0, True
        for u in range(c):
            if u != y:
                if z[u] < tau:
                    below += z[u]
                    less += 1
                same &= (z[u] < tau) == (near[u] < 0.0)
        if less == 0 or (same if begun else less >= m):
            break
        total, m, begun = below, less, False
    out[y] = 0.0
    for u in range(c):
        if u != y:
            out[u] = min(0.0, z[u] - tau)
            out[y] -= out[u]
    if kind == SMOOTH_HINGE and out[y] > C:
        shrink = C / out[y]
        for u in range(c):
            out[u] *= shrink


@njit(cache=True, nogil=True)
def _multinomial_step(z, k, C, y, near, p, x, out):
    """Set out to the row step of the multinomial loss; the search begins at the row ``near``.

    Newton's method on x_u + k C exp(x_u) = r_u - tau, with x = log p, p = e_y - a / C and r = k C (e_y - z / C).
    """
    c = z.shape[0]
    steep = k * C
    tau = 0.0
    for u in range(c):
        own = 1.0 if u == y else 0.0
        out[u] = steep * (own - z[u] / C)
        p[u] = max(own - near[u] / C, _ROOT)
        x[u] = np.log(p[u])
        tau += p[u] * (out[u] - x[u] - steep * p[u])
    for _ in range(MOST_STEPS):
        above, below = -1.0, 0.0
        for u in range(c):
            share = p[u] / (1.0 + steep * p[u])
            above += p[u] - share * (x[u] + steep * p[u] - out[u] + tau)
            below += share
        tau += above / below
        change = 0.0
        for u in range(c):
            move = (x[u] + steep * p[u] - out[u] + tau) / (1.0 + steep * p[u])
            x[u] = min(x[u] - move, 0.0)
            before, p[u] = p[u], np.exp(x[u])
            change = max(change, abs(p[u] - before))
        if change <= _ROOT:
            break
    total = 0.0
    for u in range(c):
        total += p[u]
    out[y] = 0.0
    for u in range(c):
        if u != y:
            out[u] = -C * p[u] / total
            out[y] -= out[u]


@njit(cache=True, nogil=True)
def row_step(kind, sigma, margin, z, k, C, y, near, p, x, out):
    """Set out to the minimiser of C l*(-a / C) + k/2 |a - z|^2 over rows that sum to zero, which may be ``near``."""
    if kind == MULTINOMIAL:
        _multinomial_step(z, k, C, y, near, p, x, out)
    else:
        _largest_margin_step(kind, sigma, margin, z, k, C, y, near, out)


@njit(cache=True, nogil=True)
def row_conjugates(kind, sigma, margin, A, C, y):
    """Return the conjugate term of each row."""
    n = A.shape[1]
    conjugates = np.empty(n)
    for j in range(n):
        conjugates[j] = row_conjugate(kind, sigma, margin, A[:, j], C[j], y[j])
    return conjugates


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def row_gaps(kind, sigma, margin, G, A, r, S, t, C, y, conjugates, gaps):
    """Set the gap of each row as `row_gap` does, s_ju = -(G_ju + r_j S_u + t_u); return their sum."""
    c, n = G.shape
    own, top, sums = np.empty(n), np.full(n, -np.inf), np.zeros(n)
    for j in range(n):
        own[j] = G[y[j], j] + r[j] * S[y[j]] + t[y[j]]
        gaps[j] = conjugates[j]
    for u in range(c):
        Gu, Au, Su, tu = G[u], A[u], S[u], t[u]
        for j in range(n):
            excess = own[j] - (Gu[j] + r[j] * Su + tu)
            gaps[j] += Au[j] * excess
            top[j] = vmax(top[j], -np.inf if y[j] == u else excess)
    total = 0.0
    if kind == MULTINOMIAL:
        for u in range(c):
            for j in range(n):
                excess = own[j] - (G[u, j] + r[j] * S[u] + t[u])
                sums[j] += np.exp(excess - max(top[j], 0.0))
    for j in range(n):
        if kind == MULTINOMIAL:
            loss = np.log(sums[j]) + max(top[j], 0.0)
        else:
            loss = loss_of_excess(kind, sigma, margin, top[j])[0]
        gaps[j] = max(gaps[j] + C[j] * loss, 0.0)
        total += gaps[j]
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def pending(K, scale, rows, D, m, j, g):
    """g_u -= scale sum_i D[i, u] K[rows_i, j] over the first m rows: what `subtract_rows` is yet to do to column j."""
    for i in range(m):
        x = scale * K[rows[i], j]
        for u in range(g.shape[0]):
            g[u] -= x * D[i, u]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def subtract_rows(K, scale, rows, D, m, G):
    """G[u] -= scale sum_i D[i, u] K[rows_i] over the first m rows, four at a time, so that G is read less often."""
    n = G.shape[1]
    at, w = np.empty(m, np.intp), np.empty(m)
    for u in range(G.shape[0]):
        g, q = G[u], 0
        for i in range(m):
            at[q], w[q] = rows[i], scale * D[i, u]
            q += D[i, u] != 0.0
        k = 0
        while k + 4 <= q:
            x0, x1, x2, x3 = K[at[k]], K[at[k + 1]], K[at[k + 2]], K[at[k + 3]]
            w0, w1, w2, w3 = w[k], w[k + 1], w[k + 2], w[k + 3]
            for j in range(n):
                g[j] -= (w0 * x0[j] + w1 * x1[j]) + (w2 * x2[j] + w3 * x3[j])
            k += 4
        while k < q:
            x0, w0 = K[at[k]], w[k]
            for j in range(n):
                g[j] -= w0 * x0[j]
            k += 1


@njit(cache=True, nogil=True)
def loss_row_steps(
    kind, sigma, margin, K, scale, have, diag, r, mean, balanced, A, G, C, y, S, t, b, rho, conjugates, target,
    column_target, max_steps, wanted, gaps,
):  # fmt: skip
    """Row steps and multipliers until the gap of the rows is at most ``target``, |S|^2 at most ``column_target``.

    Sets: A, G, S, t, b, ``conjugates`` in place; ``wanted``, the rows that are missing; rho, the penalty.
    Returns status, steps taken, number of rows wanted, and the gap of the rows.
    """
    c, n = G.shape
    s, z, old, new, p, x = np.empty(c), np.empty(c), np.empty(c), np.empty(c), np.empty(c), np.empty(c)
    rows, D = np.empty(TOGETHER, np.intp), np.empty((TOGETHER, c))
    steps = 0
    while True:
        gap = row_gaps(kind, sigma, margin, G, A, r, S, t, C, y, conjugates, gaps)
        columns = 0.0
        if balanced:
            for u in range(c):
                columns += rho[0] * S[u] * S[u]
        if gap <= target or gap <= 0.3 * columns:
            if columns <= rho[0] * column_target and gap <= target:
                return CONVERGED, steps, 0, gap
            if columns > rho[0] * column_target:
                update_multipliers(b, t, S, rho, columns)
                gap = row_gaps(kind, sigma, margin, G, A, r, S, t, C, y, conjugates, gaps)
        if steps >= max_steps:
            return OUT_OF_STEPS, steps, 0, gap
        level = _SHARE * gap / n
        m = 0
        for j in range(n):
            if gaps[j] >= level and not have[j]:
                wanted[m] = j
                m += 1
        if m:
            return NEEDS_ROWS, steps, m, gap
        moved, m = False, 0
        for j in range(n):
            if gaps[j] < level or gaps[j] == 0.0:
                continue
            if m == TOGETHER:
                subtract_rows(K, scale, rows, D, m, G)
                m = 0
            for u in range(c):
                s[u] = G[u, j] + r[j] * S[u] + t[u]
                old[u] = A[u, j]
            pending(K, scale, rows, D, m, j, s)
            for u in range(c):
                s[u] = -s[u]
            if row_gap(kind, sigma, margin, s, old, C[j], y[j], conjugates[j]) < 0.5 * level:
                continue
            spread = 0.0
            for u in range(c):
                spread = max(spread, abs(s[u] - s[y[j]]))
            # a larger k than the diagonal makes a shorter step
            k = max(diag[j] + rho[0], (1.0 + spread) / (FAR * C[j]))
            for u in range(c):
                z[u] = old[u] - (s[u] - s[y[j]]) / k
            row_step(kind, sigma, margin, z, k, C[j], y[j], old, p, x, new)
            conjugates[j] = row_conjugate(kind, sigma, margin, new, C[j], y[j])
            rows[m] = j
            for u in range(c):
                d = D[m, u] = new[u] - old[u]
                if d != 0.0:
                    moved = True
                    A[u, j] = new[u]
                    if balanced:
                        S[u] += d
                        t[u] += d * (r[j] - mean - rho[0])
            m += 1
            steps += 1
        subtract_rows(K, scale, rows, D, m, G)
        if not moved:
            return OUT_OF_STEPS, max_steps, 0, gap
