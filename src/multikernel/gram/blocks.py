"""Products of a stored symmetric matrix with several columns, accumulated in float64 whatever the storage."""

from __future__ import annotations

import numpy as np
from numba import njit

# where fewer rows than this fraction take part, those rows are gathered and multiplied by the library
_FEW = 0.25


def add_products(K: np.ndarray, idx: np.ndarray, D: np.ndarray, out: np.ndarray) -> None:
    """out += K[:, idx] D, the rows of the symmetric K standing for its columns.

    Sets: out, of shape (n, c), float64.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.zeros((2, 1))
    >>> add_products(np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1]), np.array([[2.0]]), out)
    >>> out.ravel()
    array([2., 6.])
    """
    if len(idx) < _FEW * len(K):
        out += K[idx].astype(np.float64, copy=False).T @ D
        return
    columns = np.zeros((D.shape[1], len(K)))
    columns[:, idx] = D.T
    add_row_products(K, columns, out)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def add_row_products(K, V, out):
    """out[i, c] += sum_j K[i, j] V[c, j], four rows and two columns at a time; an odd last column is read twice."""
    n, m, size = K.shape[1], V.shape[0], K.shape[0] // 4 * 4
    for i in range(0, size, 4):
        k0, k1, k2, k3 = K[i], K[i + 1], K[i + 2], K[i + 3]
        for c in range(0, m, 2):
            paired = c + 1 < m
            u, v = V[c], V[c + 1 if paired else c]
            a0, a1, a2, a3 = 0.0, 0.0, 0.0, 0.0
            b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0
            for j in range(n):
                x, y = u[j], v[j]
                p, q, r, s = np.float64(k0[j]), np.float64(k1[j]), np.float64(k2[j]), np.float64(k3[j])
                a0 += p * x
                a1 += q * x
                a2 += r * x
                a3 += s * x
                b0 += p * y
                b1 += q * y
                b2 += r * y
                b3 += s * y
            out[i, c] += a0
            out[i + 1, c] += a1
            out[i + 2, c] += a2
            out[i + 3, c] += a3
            if paired:
                out[i, c + 1] += b0
                out[i + 1, c + 1] += b1
                out[i + 2, c + 1] += b2
                out[i + 3, c + 1] += b3
    for i in range(size, K.shape[0]):
        for c in range(m):
            a0 = 0.0
            for j in range(n):
                a0 += np.float64(K[i, j]) * V[c, j]
            out[i, c] += a0
