"""Products of a stored symmetric matrix with several columns, in float64 whatever the storage, block by block."""

from __future__ import annotations

import numpy as np

# rows converted to float64 at a time
_ROWS = 256


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
    n = len(K)
    whole = len(idx) == n and np.array_equal(idx, np.arange(n))
    for start in range(0, len(idx), _ROWS):
        part = slice(start, start + _ROWS)
        if whole:
            # all columns: rows of the product one block after the other
            out[part] += K[part].astype(np.float64, copy=False) @ D
        else:
            out += K[idx[part]].astype(np.float64, copy=False).T @ D[part]
