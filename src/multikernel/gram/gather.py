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


def gather_square(stack: KernelStack, team: Team, out: np.ndarray) -> Sums:
    """Return the sums of the kernels between the rows of a stack.

    Parameters
    ----------
    stack : KernelStack
        Rows of a square stack.
    team : Team
        Threads, a share of the kernels each.
    out : ndarray of shape (p, n, n)
        Set to the kernels.
    """
    rows, cols, (n, _, p) = stack._rows, stack._train_columns(), stack.shape
    rows = np.arange(n) if rows is None else rows
    cols = np.arange(n) if cols is None else cols
    sums, ones = np.empty((p, n)), np.ones(n)

    def some(first: int, last: int) -> None:
        for k in range(first, last):
            K = stack._data[k]
            if _loops_apply(K):
                gather_with_dots(read_only(K), rows, cols, ones, out[k], sums[k])
            else:
                take_block(K, rows, cols, out.dtype, out[k])
                sums[k] = out[k].sum(axis=1, dtype=np.float64)

    team.run(partial(some, *span) for span in team.split(p))
    return Sums(np.array([np.diagonal(K) for K in out], np.float64), sums, np.zeros(p, bool))


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
    ends = ends_of_runs(cols)
    for r in range(rows.shape[0]):
        copy_runs(K[rows[r]], cols, ends, out[r])


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def gather_with_dots(K, rows, cols, weight, out, dots):
    """out[r, c] = K[rows_r, cols_c], and the products of its rows with the weights in float64."""
    ends = ends_of_runs(cols)
    for r in range(rows.shape[0]):
        o = out[r]
        copy_runs(K[rows[r]], cols, ends, o)
        total = 0.0
        for c in range(cols.shape[0]):
            total += weight[c] * o[c]
        dots[r] = total


@njit(cache=True, nogil=True)
def ends_of_runs(cols):
    """Return where runs of consecutive numbers end, at the places where they begin."""
    ends = np.empty(cols.shape[0], np.intp)
    first = 0
    for c in range(cols.shape[0]):
        if c + 1 == cols.shape[0] or cols[c + 1] != cols[c] + 1:
            ends[first] = c + 1
            first = c + 1
    return ends


@njit(cache=True, nogil=True)
def copy_runs(row, cols, ends, out):
    """out[c] = row[cols_c], neighbouring columns together."""
    c = 0
    while c < cols.shape[0]:
        size = ends[c] - c
        source, target = row[cols[c] : cols[c] + size], out[c : c + size]
        for j in range(size):
            target[j] = source[j]
        c += size
