"""The best biases of several classes: a transportation problem, by a primal-dual interior-point method.

    min_b  sum_i C_i max_u (D_iu + b_u - b_{y_i}),     D_iu = [u != y_i] + f_iu - f_{i,y_i}

With h_i = b_{y_i} + the loss of sample i it is min sum_i C_i h_i - sum_u N_u b_u over s_iu = h_i - b_u - D_iu >= 0, N_u the
costs of class u; its dual has M >= 0 with row sums C and column sums N. Both have interior points to begin with,
C N' / sum C for M, and every Newton step is a system of c equations.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_ITERATIONS = 60


def best_biases(D: np.ndarray, C: np.ndarray, y: np.ndarray, b: np.ndarray, accuracy: float = 1e-9, size: float = 0.0):
    """Return biases b of sum zero, to ``accuracy`` relative to the loss plus ``size``, and the loss there.

    Parameters
    ----------
    D : ndarray of shape (n, c)
        Margins, zero at u = y_i.
    C, y : ndarrays of shape (n,)
        Costs and classes.
    b : ndarray of shape (c,)
        Where to begin.
    accuracy, size : float
        When to stop.

    Examples
    --------
    >>> import numpy as np
    >>> b, loss = best_biases(np.array([[0.0, 1.0], [3.0, 0.0]]), np.ones(2), np.array([0, 1]), np.zeros(2))
    >>> round(loss, 6)
    4.0
    """
    N = np.bincount(y, C, D.shape[1])
    if N.all():
        b, value = _descend(D, C, y, N, b, accuracy, size)
        return b - b.mean(), value
    # classes without samples: as low as it takes for them to cost nothing
    here = np.flatnonzero(N)
    part, codes = np.ascontiguousarray(D[:, here]), np.searchsorted(here, y)
    b = b.copy()
    b[here], value = _descend(part, C, codes, N[here], b[here], accuracy, size)
    levels = (part + b[here]).max(axis=1)
    for u in np.flatnonzero(N == 0):
        b[u] = (levels - D[:, u]).min()
    return b, value


@njit(cache=True, nogil=True)
def loss_at(D, C, y, b):
    """Return sum_i C_i max_u (D_iu + b_u - b_y)."""
    total = 0.0
    for i in range(D.shape[0]):
        most = 0.0
        for u in range(D.shape[1]):
            most = max(most, D[i, u] + b[u] - b[y[i]])
        total += C[i] * most
    return total


@njit(cache=True, nogil=True)
def _newton(s, M, C, target, cross, step_h, step_b, ds, dM, fresh, L):
    """Set the step towards s M + cross = target; the matrix is formed and factorised where ``fresh``."""
    n, c = s.shape
    rhs = np.zeros(c)
    sums = np.empty(n)
    if fresh:
        L[:] = 0.0
    for i in range(n):
        total, W = 0.0, 0.0
        for u in range(c):
            comp = (target - cross[i, u]) / s[i, u] - M[i, u]
            dM[i, u] = comp
            total += comp
            W += M[i, u] / s[i, u]
        sums[i] = total / W
        for u in range(c):
            w = M[i, u] / s[i, u]
            rhs[u] += w * sums[i] - dM[i, u]
            if fresh:
                for v in range(u):
                    L[u, v] += w * (M[i, v] / s[i, v]) / W
    if fresh:
        # a Laplacian: each diagonal is the sum of the other entries of its row, and is formed as such
        for u in range(c):
            for v in range(u):
                L[u, u] += L[u, v]
                L[v, v] += L[u, v]
        largest = 0.0
        for u in range(c):
            largest = max(largest, L[u, u])
            for v in range(u):
                L[u, v] = -L[u, v]
        # the last bias stays near where it is; Cholesky in place
        L[c - 1, c - 1] += largest
        for u in range(c):
            tiny = 1e-13 * L[u, u] + 1e-30 * largest + 1e-300
            for v in range(u + 1):
                x = L[u, v]
                for k in range(v):
                    x -= L[u, k] * L[v, k]
                if u == v:
                    L[u, u] = np.sqrt(max(x, tiny))
                else:
                    L[u, v] = x / L[v, v]
    for u in range(c):
        x = rhs[u]
        for k in range(u):
            x -= L[u, k] * step_b[k]
        step_b[u] = x / L[u, u]
    for u in range(c - 1, -1, -1):
        x = step_b[u]
        for k in range(u + 1, c):
            x -= L[k, u] * step_b[k]
        step_b[u] = x / L[u, u]
    for i in range(n):
        W, mean = 0.0, 0.0
        for u in range(c):
            w = M[i, u] / s[i, u]
            W += w
            mean += w * step_b[u]
        step_h[i] = sums[i] + mean / W
        for u in range(c):
            ds[i, u] = step_h[i] - step_b[u]
            dM[i, u] -= M[i, u] / s[i, u] * ds[i, u]


@njit(cache=True, nogil=True)
def _length(x, dx):
    longest = 1.0
    for i in range(x.shape[0]):
        for u in range(x.shape[1]):
            if dx[i, u] < 0.0:
                longest = min(longest, -x[i, u] / dx[i, u])
    return longest


@njit(cache=True, nogil=True)
def _descend(D, C, y, N, b, accuracy, size):
    n, c = D.shape
    total = C.sum()
    best, value = b.copy(), loss_at(D, C, y, b)
    b = b.copy()
    h = np.empty(n)
    s, M = np.empty((n, c)), np.empty((n, c))
    # a common slack of the size of the mean loss, so that s M is not too unlike from the start
    slack = max(value / total, 0.1 * np.abs(D).max(), 1e-300)
    for i in range(n):
        most = -np.inf
        for u in range(c):
            most = max(most, D[i, u] + b[u])
        h[i] = most + slack
        for u in range(c):
            M[i, u] = C[i] * N[u] / total
    ds, dM, cross = np.empty((n, c)), np.empty((n, c)), np.zeros((n, c))
    step_h, step_b, L = np.empty(n), np.empty(c), np.zeros((c, c))
    for _ in range(_ITERATIONS):
        gap, lower = 0.0, 0.0
        for i in range(n):
            for u in range(c):
                s[i, u] = max(h[i] - b[u] - D[i, u], 1e-300)
                gap += s[i, u] * M[i, u]
                lower += M[i, u] * D[i, u]
        now = loss_at(D, C, y, b)
        if now < value:
            value = now
            best[:] = b
        if value - lower <= accuracy * (abs(value) + size) or not gap > 1e-14 * total * slack:
            break
        mu = gap / (n * c)
        cross[:] = 0.0
        _newton(s, M, C, 0.0, cross, step_h, step_b, ds, dM, True, L)
        p, d = _length(s, ds), _length(M, dM)
        ahead = 0.0
        for i in range(n):
            for u in range(c):
                ahead += (s[i, u] + p * ds[i, u]) * (M[i, u] + d * dM[i, u])
                cross[i, u] = ds[i, u] * dM[i, u]
        sigma = (ahead / gap) ** 3
        _newton(s, M, C, sigma * mu, cross, step_h, step_b, ds, dM, False, L)
        p, d = 0.99 * _length(s, ds), 0.99 * _length(M, dM)
        if not (np.isfinite(step_h).all() and np.isfinite(dM).all()):
            break
        for u in range(c):
            b[u] += p * step_b[u]
        for i in range(n):
            h[i] += p * step_h[i]
            for u in range(c):
                M[i, u] += d * dM[i, u]
    return best, value
