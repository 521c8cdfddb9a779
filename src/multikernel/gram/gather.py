"""Blocks K[rows][:, cols] of scattered samples, gathered by compiled loops, with what normalisations need of them."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit

from multikernel.gram.slices import compose, read_only, shorten, take_block
from multikernel.gram.stack import KernelStack
from multikernel.threads import Team


class Sums(NamedTuple):
    """Diagonals and row sums of p matrices, float64 (p, n), and which are constant as far as was looked."""

    diagonal: np.ndarray
    row_sums: np.ndarray
    constant: np.ndarray


def gather(K: np.ndarray, rows: np.ndarray, cols: np.ndarray, dtype=np.float64) -> np.ndarray:
    """Return K[rows][:, cols] as a new array.

    Examples
    --------
    >>> import numpy as np
    >>> gather(np.arange(9.0).reshape(3, 3), np.array([2, 0]), np.array([1, 2]))
    array([[7., 8.],
           [1., 2.]])
    """
    out = np.empty((len(rows), len(cols)), dtype)
    if _loops_apply(K):
        gather_block_of(read_only(K), rows, cols, out)
    else:
        take_block(K, rows, cols, out.dtype, out)
    return out


def gather_square(stack: KernelStack, team: Team) -> tuple[np.ndarray, Sums]:
    """Return the kernels between the rows of a stack as a new array (p, n, n), and their sums.

    Parameters
    ----------
    stack : KernelStack
        Rows of a square stack.
    team : Team
        Threads, a share of the kernels each.
    """
    rows, cols, (n, _, p) = stack._rows, stack._train_columns(), stack.shape
    rows = np.arange(n) if rows is None else rows
    cols = np.arange(n) if cols is None else cols
    out = np.empty((p, n, n), stack.dtype)
    sums, ones = np.empty((p, n)), np.ones(n)

    def some(first: int, last: int) -> None:
        for k in range(first, last):
            K = stack._data[k]
            if _loops_apply(K):
                gather_with_dots(read_only(K), rows, cols, ones, out[k], sums[k])
            else:
                take_block(K, rows, cols, out.dtype, out[k])
                sums[k] = out[k].sum(axis=1, dtype=np.float64)

    team.run(partial(some, first, last) for first, last in team.split(p))
    diagonal = np.array([np.diagonal(K) for K in out], np.float64)
    return out, Sums(diagonal, sums, np.zeros(p, bool))


def gather_with_product(K: np.ndarray, idx: np.ndarray, weight: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Return K[idx][:, idx] w in float64.

    Sets: out, to K[idx][:, idx].
    """
    product = np.empty(len(idx))
    gather_with_dots(read_only(K), idx, idx, weight, out, product)
    return product


def gather_rows(stack: KernelStack, kernel: int, train_ids: np.ndarray) -> np.ndarray:
    """Return the block of one kernel whose columns are the samples ``train_ids``, a new float64 array."""
    cols = compose(stack._cols, shorten(stack.positions(train_ids), stack.shape[1]))
    n_rows, n_columns = stack._data[kernel].shape
    rows = np.arange(n_rows) if stack._rows is None else stack._rows
    return gather(stack._data[kernel], rows, np.arange(n_columns) if cols is None else cols)


def _loops_apply(K: np.ndarray) -> bool:
    return K.dtype in (np.float32, np.float64)


@njit(cache=True, nogil=True)
def gather_block_of(K, rows, cols, out):
    """out[r, c] = K[rows_r, cols_c]."""
    for r in range(rows.shape[0]):
        row, o = K[rows[r]], out[r]
        for c in range(cols.shape[0]):
            o[c] = row[cols[c]]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def gather_with_dots(K, rows, cols, weight, out, dots):
    """out[r, c] = K[rows_r, cols_c], and the products of its rows with the weights in float64."""
    for r in range(rows.shape[0]):
        row, o = K[rows[r]], out[r]
        total = 0.0
        for c in range(cols.shape[0]):
            o[c] = row[cols[c]]
            total += weight[c] * o[c]
        dots[r] = total
