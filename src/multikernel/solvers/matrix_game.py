"""A matrix game by the simplex method: the linear programme of cuts over the simplex of weights.

    max over lambda  min over beta  lambda' M beta,     lambda and beta on their simplices

Shifted so that all entries are positive, the weights solve max sum x subject to M x <= 1, x >= 0, with
beta = x / sum x, and lambda are the multipliers; the origin is a feasible start. The method works on a dense tableau,
which is small: there are as many rows as cuts.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# reduced costs above minus this count as not negative: rounding of a tableau with entries between one and two
_ZERO = 1e-11


def matrix_game(M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the strategies (beta, lambda) of the player of the columns, who pays, and of the rows, who gets paid.

    Parameters
    ----------
    M : ndarray of shape (m, p)
        Finite payments.

    Examples
    --------
    >>> import numpy as np
    >>> matrix_game(np.array([[3.0, 1.0], [0.0, 2.0]]))
    (array([0.25, 0.75]), array([0.5, 0.5]))
    """
    m, p = M.shape
    low = M.min()
    spread = M.max() - low
    if spread == 0.0:
        return np.full(p, 1.0 / p), np.eye(1, m)[0]
    tableau = np.zeros((m + 1, p + m + 1))
    tableau[:m, :p] = 1.0 + (M - low) / spread
    tableau[:m, p : p + m] = np.eye(m)
    tableau[:m, -1] = 1.0
    tableau[m, :p] = -1.0
    basis = np.arange(p, p + m)
    pivots(tableau, basis, 20 * (m + p))
    x = np.zeros(p + m)
    x[basis] = tableau[:m, -1]
    beta, multipliers = np.maximum(x[:p], 0.0), np.maximum(tableau[m, p:-1], 0.0)
    return beta / beta.sum(), multipliers / multipliers.sum()


@njit(cache=True, nogil=True)
def pivots(T, basis, limit):
    """Exchange variables until no reduced cost is negative: the most negative one first, then by Bland's rule."""
    m, n = T.shape[0] - 1, T.shape[1] - 1
    for step in range(limit):
        column, least = -1, -_ZERO
        for j in range(n):
            if T[m, j] < least:
                column, least = j, T[m, j]
                if 2 * step > limit:
                    break
        if column < 0:
            return
        row, ratio = -1, np.inf
        for i in range(m):
            if T[i, column] > _ZERO:
                t = T[i, n] / T[i, column]
                if t < ratio or (t == ratio and basis[i] < basis[row]):
                    row, ratio = i, t
        if row < 0:
            return
        pivot = T[row, column]
        for j in range(n + 1):
            T[row, j] /= pivot
        for i in range(m + 1):
            factor = T[i, column]
            if i != row and factor != 0.0:
                for j in range(n + 1):
                    T[i, j] -= factor * T[row, j]
        basis[row] = column
