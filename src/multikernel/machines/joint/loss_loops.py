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

from multikernel.losses.joint import MULTINOMIAL, SMOOTH_HINGE, SQUARED_HINGE
from multikernel.machines.joint.hinge_loops import (
    CONVERGED,
    FAR,
    MOST_STEPS,
    NEEDS_ROWS,
    OUT_OF_STEPS,
    subtract_row,
    update_multipliers,
)

# a row is moved when its gap is at least this share of the mean: a smaller one moves rows that hardly matter
_SHARE = 0.3


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
def row_gap(kind, sigma, margin, s, a, C, y):
    """Return C l(s) + C l*(-a / C) + <a, s>."""
    c = s.shape[0]
    inner = 0.0
    top = -np.inf
    for u in range(c):
        if u != y:
            inner += a[u] * (s[u] - s[y])
            top = max(top, s[u] - s[y])
    if kind != MULTINOMIAL:
        value = loss_of_excess(kind, sigma, margin, top)[0] + own_conjugate(kind, sigma, margin, a[y] / C)
        return C * value + inner
    top = max(top, 0.0)
    total = 0.0
    value = xlogx(1.0 - a[y] / C)
    for u in range(c):
        total += np.exp(s[u] - s[y] - top)
        if u != y:
            value += xlogx(-a[u] / C)
    return C * (value + np.log(total) + top) + inner


@njit(cache=True, nogil=True)
def _own_entry(kind, sigma, margin, k, rhs, C):
    """Return a >= 0 with k a + (derivative of the conjugate at u = a / C) = rhs."""
    if kind == SQUARED_HINGE:
        return max(0.0, (rhs + 1.0) / (k + 0.5 / C))
    # x + sigma k C / (1 + exp(-x)) = sigma (rhs + margin), increasing in x
    steep, r = sigma * k * C, sigma * (rhs + margin)
    low, high = r - steep, r
    x = min(max(0.0, low), high)
    for _ in range(MOST_STEPS):
        u = 1.0 / (1.0 + np.exp(-x))
        value = x + steep * u - r
        if value > 0:
            high = x
        else:
            low = x
        new = x - value / (1.0 + steep * u * (1.0 - u))
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - x) <= 1e-14 * (1.0 + abs(x)):
            x = new
            break
        x = new
    return C / (1.0 + np.exp(-x))


@njit(cache=True, nogil=True)
def _conjugate_slope(kind, sigma, margin, a, C):
    """Return the derivative of the conjugate at u = a / C."""
    u = a / C
    if kind == SQUARED_HINGE:
        return 0.5 * u - 1.0
    if u <= 0.0:
        return -np.inf
    return np.inf if u >= 1.0 else -margin + np.log(u / (1.0 - u)) / sigma


@njit(cache=True, nogil=True)
def _largest_margin_step(kind, sigma, margin, z, k, C, y, order, out):
    """Set out to the row step of a loss of the largest wrong class.

    The wrong classes have a_u = min(0, z_u - tau). They become negative in the order of their z; with j of them
    negative tau = (a_y + sum of their z) / j, and a_y solves one equation.
    """
    c = z.shape[0]
    m = 0
    for u in range(c):
        if u != y:
            at = m
            while at > 0 and z[order[at - 1]] > z[u]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = u
            m += 1
    total, own, tau = 0.0, 0.0, 0.0
    for j in range(1, m + 1):
        total += z[order[j - 1]]
        if j < m:
            # a_y at which the next class becomes negative
            own = j * z[order[j]] - total
            if k * (own + z[order[j]] - z[y]) + _conjugate_slope(kind, sigma, margin, own, C) < 0.0:
                continue
        own = _own_entry(kind, sigma, margin, k * (1.0 + 1.0 / j), k * (z[y] - total / j), C)
        tau = (own + total) / j
        break
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
def _multinomial_step(z, k, C, y, x, out):
    """Set out to the row step of the multinomial loss.

    Newton's method on x_u + k C exp(x_u) = k C pi_u - tau, with x = log p and pi = e_y - z / C.
    """
    c = z.shape[0]
    steep = k * C
    top = -np.inf
    for u in range(c):
        x[u] = steep * ((1.0 if u == y else 0.0) - z[u] / C)
        top = max(top, x[u])
    r, p = np.empty(c), np.empty(c)
    total = 0.0
    for u in range(c):
        r[u] = x[u] - top
        x[u] = r[u] / (1.0 + steep)
        p[u] = np.exp(x[u])
        total += p[u]
    shift = np.log(total)
    for u in range(c):
        x[u] -= shift
        p[u] /= total
    tau = 0.0
    for u in range(c):
        tau += p[u] * (r[u] - x[u] - steep * p[u])
    for _ in range(MOST_STEPS):
        above, below, worst = -1.0, 0.0, 0.0
        for u in range(c):
            error = x[u] + steep * p[u] - r[u] + tau
            share = p[u] / (1.0 + steep * p[u])
            above += p[u] - share * error
            below += share
            worst = max(worst, p[u] * abs(error))
        move = above / below
        tau += move
        change = 0.0
        for u in range(c):
            error = x[u] + steep * p[u] - r[u] + tau
            new = min(x[u] - error / (1.0 + steep * p[u]), 0.0)
            change = max(change, abs(new - x[u]) * max(p[u], np.exp(new)))
            x[u] = new
            p[u] = np.exp(new)
        if change <= 1e-15:
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
def row_step(kind, sigma, margin, z, k, C, y, work, order, out):
    """Set out to the minimiser of C l*(-a / C) + k/2 |a - z|^2 over rows that sum to zero."""
    if kind == MULTINOMIAL:
        _multinomial_step(z, k, C, y, work, out)
    else:
        _largest_margin_step(kind, sigma, margin, z, k, C, y, order, out)


@njit(cache=True, nogil=True)
def row_gaps(kind, sigma, margin, G, A, r, S, t, C, y, gaps):
    """Set the gap of each row, s_ju = -(G_ju + r_j S_u + t_u); return their sum."""
    c, n = G.shape
    s, a = np.empty(c), np.empty(c)
    total = 0.0
    for j in range(n):
        for u in range(c):
            s[u] = -(G[u, j] + r[j] * S[u] + t[u])
            a[u] = A[u, j]
        gaps[j] = max(row_gap(kind, sigma, margin, s, a, C[j], y[j]), 0.0)
        total += gaps[j]
    return total


@njit(cache=True, nogil=True)
def loss_row_steps(
    kind, sigma, margin, K, scale, have, diag, r, mean, balanced, A, G, C, y, S, t, b, rho, target, column_target,
    max_steps, wanted, gaps,
):  # fmt: skip
    """Row steps and multipliers until the gap of the rows is at most ``target``, rho |S|^2 at most ``column_target``.

    Sets: A, G, S, t, b in place; ``wanted``, the rows that are missing; rho, the penalty.
    Returns status, steps taken, number of rows wanted, and the gap of the rows.
    """
    c, n = G.shape
    s, z, old, new, work = np.empty(c), np.empty(c), np.empty(c), np.empty(c), np.empty(c)
    order = np.empty(c, np.intp)
    steps = 0
    while True:
        gap = row_gaps(kind, sigma, margin, G, A, r, S, t, C, y, gaps)
        columns = 0.0
        if balanced:
            for u in range(c):
                columns += rho[0] * S[u] * S[u]
        if gap <= target or gap <= 0.3 * columns:
            if columns <= column_target and gap <= target:
                return CONVERGED, steps, 0, gap
            if columns > column_target:
                update_multipliers(b, t, S, rho, columns)
                gap = row_gaps(kind, sigma, margin, G, A, r, S, t, C, y, gaps)
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
        moved = False
        for j in range(n):
            if gaps[j] < level or gaps[j] == 0.0:
                continue
            for u in range(c):
                s[u] = -(G[u, j] + r[j] * S[u] + t[u])
                old[u] = A[u, j]
            if row_gap(kind, sigma, margin, s, old, C[j], y[j]) < 0.5 * level:
                continue
            spread = 0.0
            for u in range(c):
                spread = max(spread, abs(s[u] - s[y[j]]))
            # a larger k than the diagonal makes a shorter step
            k = max(diag[j] + rho[0], (1.0 + spread) / (FAR * C[j]))
            for u in range(c):
                z[u] = old[u] - (s[u] - s[y[j]]) / k
            row_step(kind, sigma, margin, z, k, C[j], y[j], work, order, new)
            row = K[j]
            for u in range(c):
                d = new[u] - old[u]
                if d != 0.0:
                    moved = True
                    A[u, j] = new[u]
                    subtract_row(G[u], row, d * scale)
                    if balanced:
                        S[u] += d
                        t[u] += d * (r[j] - mean - rho[0])
            steps += 1
        if not moved:
            return OUT_OF_STEPS, max_steps, 0, gap
