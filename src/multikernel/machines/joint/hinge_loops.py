"""Compiled loops of the joint hinge, on class-major arrays of shape (c, n). Nothing is checked here.

With K the combined kernel, r its row means and m their mean, the slope of class u at sample j is

    g_ju = G_ju + r_j S_u + t_u,      G = E - f of the kernel as it is, S the column sums of A,

the slope of the dual value with the centred kernel K - r1' - 1r' + m, the multipliers b of the column sums and the
penalty rho |S|^2 / 2. t holds the parts that are the same for all j.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from multikernel.machines.base import ON_BOUND, ROUNDING
from multikernel.machines.box_loops import last_digit, vmax, vmin

CONVERGED, NEEDS_ROWS, OUT_OF_STEPS, GO_ON = 0, 1, 2, 3

# a row is moved when its violation is at least this share of the largest: a smaller one scans less and moves more
SHARE = 0.6
# a row moves by at most about this many times its cost: further, and rounding shows in the projection
FAR = 1e6
# iterations after which any Newton or interior-point method of the room gives up: all but a few end in less than 50
MOST_STEPS = 200


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def row_violations(G, A, mask, r, S, t, C, y, top, low):
    """Return the gap of the rows, the sum of C (g_y - min g) - <A_j, g_j>.

    Sets: top, the largest slope of each row off its bounds; low, the least slope of each row.
    """
    c, n = G.shape
    top[:] = -np.inf
    low[:] = np.inf
    total = 0.0
    for u in range(c):
        Gu, Au, mu, Su, tu = G[u], A[u], mask[u], S[u], t[u]
        for j in range(n):
            g = Gu[j] + r[j] * Su + tu
            top[j] = vmax(top[j], g + mu[j])
            low[j] = vmin(low[j], g)
            total -= Au[j] * g
    for j in range(n):
        total += C[j] * (G[y[j], j] + r[j] * S[y[j]] + t[y[j]] - low[j])
    return total


@njit(cache=True, nogil=True)
def project_row(z, C, y, out):
    """Set out to the projection of z onto {a : a_y <= C, a_u <= 0 elsewhere, sum a = 0}."""
    c = z.shape[0]
    free = c
    total = 0.0
    for u in range(c):
        total += z[u]
        out[u] = np.inf
    while True:
        tau = total / free
        changed = False
        for u in range(c):
            bound = C if u == y else 0.0
            if out[u] == np.inf and z[u] - tau >= bound:
                out[u] = bound
                total += bound - z[u]
                free -= 1
                changed = True
        if free <= 0:
            # all entries are on their bounds, by rounding only: the one furthest below its bound takes what is left
            least = 0
            for u in range(c):
                if z[u] - (C if u == y else 0.0) < z[least] - (C if least == y else 0.0):
                    least = u
            rest = 0.0
            for u in range(c):
                if u != least:
                    rest += out[u]
            out[least] = -rest
            return
        if not changed:
            break
    # the sum once more: z may be much larger than the sum, which then has its rounding
    rest = 0.0
    for u in range(c):
        if out[u] == np.inf:
            rest += z[u] - tau
        else:
            rest += out[u]
    rest /= free
    for u in range(c):
        if out[u] == np.inf:
            out[u] = z[u] - tau - rest


@njit(cache=True, nogil=True)
def project_rows(Z, C, y, out):
    """Project every row of Z, of shape (n, c)."""
    for i in range(Z.shape[0]):
        project_row(Z[i], C[i], y[i], out[i])


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def subtract_row(g, row, step):
    """g -= step row."""
    for j in range(g.shape[0]):
        g[j] -= step * row[j]


@njit(cache=True, nogil=True)
def update_multipliers(b, t, S, rho, columns):
    """Step of the augmented Lagrangian: b += rho S. The slopes hold -b - rho S and so fall by another rho S.

    rho holds the penalty, and rho |S|^2 (``columns``) at the last step. Sets: b, t, rho; the penalty is doubled unless
    ``columns`` is at most a quarter of its last value.
    """
    for u in range(len(S)):
        b[u] += rho[0] * S[u]
        t[u] -= rho[0] * S[u]
    if columns > 0.25 * rho[1]:
        for u in range(len(S)):
            t[u] -= rho[0] * S[u]
        rho[0] *= 2.0
        columns *= 2.0
    rho[1] = columns


@njit(cache=True, nogil=True)
def choose_rows(
    G, A, mask, r, s, S, t, b, rho, diag, C, y, have, balanced, target, column_target, more, wanted, top, low
):  # fmt: skip
    """Update the multipliers where the gap of the rows is small, and find the rows of large violation.

    Slopes are G + r s' + t; S are the column sums. Sets: b, t, rho; top, the violations, and low; ``wanted``, the rows
    of large violation whose kernel row is missing. Returns the status, how many are wanted, the gap of the rows and
    the largest violation.
    """
    c, n = G.shape
    gap = row_violations(G, A, mask, r, s, t, C, y, top, low)
    columns, gain = 0.0, gap
    if balanced:
        for u in range(c):
            columns += rho[0] * S[u] * S[u]
        # what row steps can still gain: at large costs much less than the gap
        gain = 0.0
        for j in range(n):
            violation = max(top[j] - low[j], 0.0)
            gain += violation * violation / (diag[j] + rho[0])
    if gap <= target or min(gain, gap) <= 0.3 * columns:
        if columns <= rho[0] * column_target and gap <= target:
            return CONVERGED, 0, gap, 0.0
        if columns > rho[0] * column_target:
            update_multipliers(b, t, S, rho, columns)
            gap = row_violations(G, A, mask, r, s, t, C, y, top, low)
    if not more:
        return OUT_OF_STEPS, 0, gap, 0.0
    worst = 0.0
    for j in range(n):
        top[j] -= low[j]
        worst = max(worst, top[j])
    if worst <= 0.0:
        return CONVERGED, 0, gap, worst
    m = 0
    for j in range(n):
        if top[j] >= SHARE * worst and not have[j]:
            wanted[m] = j
            m += 1
    return NEEDS_ROWS if m else GO_ON, m, gap, worst


@njit(cache=True, nogil=True)
def hinge_row_steps(
    K, scale, have, diag, r, mean, balanced, A, G, mask, C, y, S, t, b, rho, target, column_target, max_steps, wanted,
    top, low,
):  # fmt: skip
    """Row steps and multipliers until the gap of the rows is at most ``target``, |S|^2 at most ``column_target``.

    Sets: A, G, mask, S, t, b in place; ``wanted``, the rows that are missing; rho, the penalty.
    Returns status, steps taken, number of rows wanted, and the gap of the rows.
    """
    c, n = G.shape
    g, z, new = np.empty(c), np.empty(c), np.empty(c)
    steps = 0
    while True:
        status, m, gap, worst = choose_rows(
            G, A, mask, r, S, S, t, b, rho, diag, C, y, have, balanced, target, column_target, steps < max_steps,
            wanted, top, low,
        )  # fmt: skip
        if status != GO_ON:
            return status, steps, m, gap
        begun = steps
        m = 0
        for j in range(n):
            m += top[j] >= SHARE * worst
        # if few rows stand out, the scan takes longer than the steps: rows of a third of that violation are moved too
        level = worst * (SHARE if 100 * m >= n else SHARE / 3.0)
        for j in range(n):
            if top[j] < level or not have[j]:
                continue
            high, least = -np.inf, np.inf
            for u in range(c):
                g[u] = G[u, j] + r[j] * S[u] + t[u]
                least = min(least, g[u])
                if mask[u, j] == 0.0:
                    high = max(high, g[u])
            if high - least < 0.5 * level:
                continue
            k = diag[j] + rho[0]
            spread = -np.inf
            for u in range(c):
                spread = max(spread, g[u] - least)
            k = max(k, spread / (FAR * C[j]))
            for u in range(c):
                z[u] = A[u, j] + (g[u] - least) / k
            project_row(z, C[j], y[j], new)
            row = K[j]
            for u in range(c):
                d = new[u] - A[u, j]
                if d != 0.0:
                    A[u, j] = new[u]
                    mask[u, j] = 0.0 if new[u] < (C[j] if u == y[j] else 0.0) else -np.inf
                    subtract_row(G[u], row, d * scale)
                    if balanced:
                        S[u] += d
                        t[u] += d * (r[j] - mean - rho[0])
            steps += 1
        if steps == begun:
            # all violations are rounding
            return OUT_OF_STEPS, max_steps, 0, gap


@njit(cache=True, nogil=True)
def difference_block(K, scale, rows, u, v, first, last, out):
    """out[t, s] = K[rows_t, rows_s] <e_u_t - e_v_t, e_u_s - e_v_s> for t in [first, last)."""
    for t in range(first, last):
        row, o = K[rows[t]], out[t]
        for s in range(rows.shape[0]):
            weight = 0.0
            if u[t] == u[s]:
                weight += 1.0
            if v[t] == v[s]:
                weight += 1.0
            if u[t] == v[s]:
                weight -= 1.0
            if v[t] == u[s]:
                weight -= 1.0
            o[s] = weight * scale * row[rows[s]] if weight != 0.0 else 0.0


@njit(cache=True, nogil=True)
def add_block(W, at, T):
    """T[at_r, at_s] += W[r, s]."""
    for r in range(at.shape[0]):
        row, w = T[at[r]], W[r]
        for s in range(at.shape[0]):
            row[at[s]] += w[s]


@njit(cache=True, nogil=True)
def bias_system(A, upper, C, weights, G):
    """Return L and r, L b = r the biases b for which the slopes G - b of each row are most nearly equal.

    Entries count by their weights where they are free: off their bounds, in rows with at least two of them.
    """
    n, c = A.shape
    L, rhs, w = np.zeros((c, c)), np.zeros(c), np.empty(c)
    for i in range(n):
        total, mean, free = 0.0, 0.0, 0
        for u in range(c):
            off = A[i, u] < upper[i, u] - ON_BOUND * C[i]
            w[u] = weights[i, u] if off else 0.0
            free += off
            if w[u] != 0.0:
                total += w[u]
                mean += w[u] * G[i, u]
        if free < 2:
            continue
        total = max(total, ROUNDING * C[i])
        for u in range(c):
            if w[u] != 0.0:
                L[u, u] += w[u]
                rhs[u] += w[u] * (G[i, u] - mean / total)
                for v in range(c):
                    L[u, v] -= w[u] * w[v] / total
    return L, rhs


@njit(cache=True, nogil=True)
def settle_rows(A, upper, columns):
    """Round A so that all its rows, and its ``columns`` if asked for, sum to zero in exact arithmetic.

    Entries become multiples of the last digit of the largest, a power of two, and are added up as whole numbers modulo
    2^64. What is left in a row goes to the entry furthest below its bound; what is left in a column to the roomiest
    row, of those that have both entries off their bounds where these have room.

    Sets: A, of shape (n, c), at most ``upper``, whose sums were zero up to rounding.
    """
    n, c = A.shape
    top = np.abs(A).max()
    if not 0.0 < top < np.inf:
        return
    # with a digit to spare where no bound keeps the largest entry from growing
    unit, most = last_digit(2.0 * top if upper.max() == np.inf else top), 2.0**53
    sums = np.zeros(c, np.int64)
    for i in range(n):
        rest = np.int64(0)
        for u in range(c):
            x = np.rint(A[i, u] / unit)
            if x * unit > upper[i, u]:
                x -= 1.0
            A[i, u] = x * unit
            rest += np.int64(x)
        while rest != 0:
            low = np.argmin(A[i] - upper[i])
            move = float(rest) if rest > 0 else max(float(rest), -np.floor((upper[i, low] - A[i, low]) / unit))
            A[i, low] -= move * unit
            rest -= np.int64(move)
        for u in range(c):
            sums[u] += np.int64(A[i, u] / unit)
    inner = True
    while columns and sums.any():
        give, take = np.argmax(sums), np.argmin(sums)
        roomiest, best = 0, 0.0
        for i in range(n):
            if (
                not inner
                or (A[i, give] < upper[i, give] and A[i, take] < 0.0)
                or (A[i, take] > 0.0 and A[i, give] < 0.0)
            ):
                room = min(
                    np.floor((upper[i, take] - A[i, take]) / unit), most + A[i, give] / unit, most - A[i, take] / unit
                )
                if room > best:
                    roomiest, best = i, room
        if best >= 1.0:
            move = min(best, float(min(sums[give], -sums[take])))
            A[roomiest, give] -= move * unit
            A[roomiest, take] += move * unit
            sums[give] -= np.int64(move)
            sums[take] += np.int64(move)
        elif not inner:
            return
        inner = best >= 1.0
