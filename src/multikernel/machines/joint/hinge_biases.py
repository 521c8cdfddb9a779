"""The best biases of the joint hinge: a transportation problem, by a primal-dual interior-point method.

    min_b  sum_i C_i max_u (D_iu + b_u - b_{y_i}),     D_iu = [u != y_i] + f_iu - f_{i,y_i}

Given: margins D at biases of zero, costs C, classes y. Returned: biases b and the loss there. With h_i = b_{y_i} + the
loss of sample i, and N_u the sum of the costs of class u, the problem is min sum_i C_i h_i - sum_u N_u b_u over
s_iu = h_i - b_u - D_iu >= 0. Its dual has M >= 0 with row sums C and column sums N. C N' / sum C is an interior point
of the dual, and every Newton step is a system of c equations. The steps are Mehrotra's (1992), with one length for s
and one for M.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from multikernel.machines.joint.hinge_loops import MOST_STEPS


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


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _dot(a, b, m):
    """Inner product of the first m entries."""
    x = 0.0
    for k in range(m):
        x += a[k] * b[k]
    return x


@njit(cache=True, nogil=True, error_model="numpy")
def factorise(M, least):
    """Overwrite the lower triangle of M by its Cholesky factor, squared pivots above rounding and ``least``."""
    for u in range(M.shape[0]):
        tiny = 1e-13 * M[u, u] + least
        for v in range(u + 1):
            x = M[u, v] - _dot(M[u], M[v], v)
            M[u, v] = np.sqrt(max(x, tiny)) if u == v else x / M[v, v]


@njit(cache=True, nogil=True, error_model="numpy")
def substitute(L, x):
    """Overwrite x by the solution of LL'x = x."""
    c = L.shape[0]
    for u in range(c):
        x[u] = (x[u] - _dot(L[u], x, u)) / L[u, u]
    for u in range(c - 1, -1, -1):
        x[u] /= L[u, u]
        for k in range(u):
            x[k] -= L[u, k] * x[u]


@njit(cache=True, nogil=True, error_model="numpy")
def _bias_system(w, W, L):
    """Set L to the Cholesky factor of the system of the biases, sum_i diag(w_i) - w_i w_i' / W_i, W_i = sum_u w_iu."""
    c = w.shape[1]
    V = np.empty_like(w)
    for i in range(w.shape[0]):
        root = 1.0 / np.sqrt(W[i])
        for u in range(c):
            V[i, u] = w[i, u] * root
    L[:] = -np.dot(V.T, V)
    # a Laplacian: each diagonal entry is minus the sum of the other entries of its row; summed, it has less rounding
    largest = 0.0
    for u in range(c):
        L[u, u] = 0.0
        L[u, u] = -L[u].sum()
        largest = max(largest, L[u, u])
    # a common shift of the biases changes nothing: the last bias is kept near where it is
    L[c - 1, c - 1] += largest
    factorise(L, 1e-30 * largest + 1e-300)


@njit(cache=True, nogil=True, error_model="numpy")
def _newton(w, W, L, comp, step_h, step_b, ds):
    """Set the steps of h, b and s; ``comp``, on entry (the new s M) / s - M, becomes the step of M."""
    n, c = w.shape
    step_b[:] = 0.0
    for i in range(n):
        total = 0.0
        for u in range(c):
            total += comp[i, u]
        total /= W[i]
        step_h[i] = total
        for u in range(c):
            step_b[u] += w[i, u] * total - comp[i, u]
    substitute(L, step_b)
    for i in range(n):
        mean = 0.0
        for u in range(c):
            mean += w[i, u] * step_b[u]
        step_h[i] += mean / W[i]
        for u in range(c):
            ds[i, u] = step_h[i] - step_b[u]
            comp[i, u] -= w[i, u] * ds[i, u]


@njit(cache=True, nogil=True, error_model="numpy")
def _length(x, inverse, dx):
    """Return the longest step, at most one, that keeps x + t dx positive; ``inverse`` is 1 / x."""
    steepest = 1.0
    for i in range(x.shape[0]):
        for u in range(x.shape[1]):
            steepest = max(steepest, -dx[i, u] * inverse[i, u])
    return 1.0 / steepest


@njit(cache=True, nogil=True, error_model="numpy")
def _interior_point(D, C, y, N, enough):
    n, c = D.shape
    total = C.sum()
    b, best = np.zeros(c), np.zeros(c)
    value = loss_at(D, C, y, b)
    h, W = np.empty(n), np.empty(n)
    s, M, w = np.empty((n, c)), np.empty((n, c)), np.empty((n, c))
    inverse, over = np.empty((n, c)), np.empty((n, c))
    # a common slack of the size of the mean loss, so that the entries of s M begin of similar size
    slack = max(value / total, 0.1 * np.abs(D).max(), 1e-300)
    for i in range(n):
        most = -np.inf
        for u in range(c):
            most = max(most, D[i, u] + b[u])
        h[i] = most + slack
        for u in range(c):
            M[i, u] = C[i] * N[u] / total
    ds, dM = np.empty((n, c)), np.empty((n, c))
    step_h, step_b, L = np.empty(n), np.empty(c), np.zeros((c, c))
    for _ in range(MOST_STEPS):
        gap, lower, now = 0.0, 0.0, 0.0
        for i in range(n):
            W[i] = 0.0
            least = np.inf
            for u in range(c):
                x = max(h[i] - b[u] - D[i, u], 1e-300)
                s[i, u] = x
                least = min(least, x)
                inverse[i, u] = 1.0 / x
                over[i, u] = 1.0 / M[i, u]
                w[i, u] = M[i, u] * inverse[i, u]
                W[i] += w[i, u]
                gap += x * M[i, u]
                lower += M[i, u] * D[i, u]
                dM[i, u] = -M[i, u]
            now += C[i] * (h[i] - least - b[y[i]])
        if now < value:
            value = now
            best[:] = b
        if value - lower <= enough or not gap > 1e-14 * total * slack:
            break
        _bias_system(w, W, L)
        _newton(w, W, L, dM, step_h, step_b, ds)
        p, d = _length(s, inverse, ds), _length(M, over, dM)
        ahead = 0.0
        for i in range(n):
            for u in range(c):
                ahead += (s[i, u] + p * ds[i, u]) * (M[i, u] + d * dM[i, u])
        target = (ahead / gap) ** 3 * gap / (n * c)
        for i in range(n):
            for u in range(c):
                dM[i, u] = (target - ds[i, u] * dM[i, u]) * inverse[i, u] - M[i, u]
        _newton(w, W, L, dM, step_h, step_b, ds)
        p, d = 0.99 * _length(s, inverse, ds), 0.99 * _length(M, over, dM)
        if not (np.isfinite(step_b.sum()) and np.isfinite(step_h.sum()) and np.isfinite(p * d)):
            break
        for u in range(c):
            b[u] += p * step_b[u]
        for i in range(n):
            h[i] += p * step_h[i]
            for u in range(c):
                M[i, u] += d * dM[i, u]
    # the value without the rounding of the iterations
    return best, loss_at(D, C, y, best)


@njit(cache=True, nogil=True, error_model="numpy")
def best_biases(D, C, y, enough):
    """Return biases whose loss is above the least by at most ``enough``, or by rounding, and their loss.

    Parameters
    ----------
    D : ndarray of shape (n, c)
        Margins, zero at u = y_i.
    C, y : ndarrays of shape (n,)
        Costs and classes.
    enough : float
        Accuracy of the loss.
    """
    n, c = D.shape
    N = np.zeros(c)
    for i in range(n):
        N[y[i]] += C[i]
    if N.min() > 0.0:
        b, value = _interior_point(D, C, y, N, enough)
        return b - b.mean(), value
    # classes without samples: biases so low that these classes cost nothing
    here = np.flatnonzero(N)
    part, b = np.ascontiguousarray(D[:, here]), np.zeros(c)
    b[here], value = _interior_point(part, C, np.searchsorted(here, y), N[here], enough)
    for u in range(c):
        if N[u] == 0.0:
            b[u] = np.inf
            for i in range(n):
                b[u] = min(b[u], (part[i] + b[here]).max() - D[i, u])
    return b, value
