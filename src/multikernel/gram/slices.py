"""The matrices of a stack and selections of their rows and columns.

A selection is an array of positions along an axis; None stands for all of them, in order.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from multikernel.gram.dense_loops import read_only
from multikernel.threads import ROWS


def _elsewhere(K: Any) -> bool:
    """Whether an array is one of another library, perhaps on another device."""
    return hasattr(K, "__dlpack__") and not isinstance(K, np.ndarray)


def as_data(kernels: Any) -> np.ndarray | tuple[np.ndarray, ...] | list:
    """One (p, n_rows, n_train) array where the kernels lie in one buffer, otherwise a tuple of matrices.

    Arrays of other libraries come back as a list of matrices.
    """
    if _elsewhere(kernels) and kernels.ndim == 3 and len(kernels):
        return list(kernels)
    if isinstance(kernels, (list, tuple)) and kernels and all(_elsewhere(K) for K in kernels):
        return list(kernels)
    what = "The 'kernels' parameter of stack_kernels must be 2-D arrays or an array (p, n_rows, n_train). "
    if isinstance(kernels, np.ndarray) and kernels.dtype != object:
        if kernels.ndim != 3 or len(kernels) == 0:
            raise ValueError(f"{what}Got an array of shape {kernels.shape} instead.")
        matrices = list(np.asarray(kernels))
    elif isinstance(kernels, (str, bytes)) or not np.iterable(kernels):
        raise ValueError(f"{what}Got {kernels!r} instead.")
    else:
        matrices = [K if hasattr(K, "toarray") else np.asarray(K) for K in kernels]
    if not matrices:
        raise ValueError(f"{what}Got an empty list instead.")
    for k, K in enumerate(matrices):
        if hasattr(K, "toarray"):
            raise ValueError(f"Kernel {k} must be a dense 2-D array. Got a sparse matrix of shape {K.shape} instead.")
        if K.ndim != 2:
            raise ValueError(f"Kernel {k} must be a 2-D array. Got an array of shape {K.shape} instead.")
        if K.dtype.kind not in "fiub":
            raise ValueError(f"Kernel {k} must hold real numbers. Got an array of dtype {K.dtype} instead.")
        if K.shape != matrices[0].shape:
            raise ValueError(
                f"All kernels of a stack must have the same shape, {matrices[0].shape} as kernel 0. "
                f"Got shape {K.shape} for kernel {k} instead."
            )
    if isinstance(kernels, np.ndarray) and kernels.ndim == 3 and kernels.dtype != object:
        return np.asarray(kernels)
    return one_buffer(matrices)


def one_buffer(matrices: list[np.ndarray]) -> np.ndarray | tuple[np.ndarray, ...]:
    """View evenly spaced matrices of one buffer, such as ``list(K)``, as the 3-D array they came from."""
    first = matrices[0]
    if len(matrices) == 1:
        return first[None]
    address = [K.__array_interface__["data"][0] for K in matrices]
    step = address[1] - address[0]
    alike = all(K.base is first.base and K.strides == first.strides and K.dtype == first.dtype for K in matrices)
    even = all(b - a == step for a, b in pairwise(address))
    if first.base is None or not alike or not even:
        return tuple(matrices)
    shape, strides = (len(matrices), *first.shape), (step, *first.strides)
    return np.lib.stride_tricks.as_strided(first, shape, strides, writeable=False)


def axis_positions(index: Any, size: int) -> np.ndarray | None:
    """Positions that an index of one axis selects; None for all of them in order."""
    if index is None:
        return None
    if isinstance(index, slice):
        return shorten(np.arange(size)[index], size)
    index = np.asarray(index)
    index = index.reshape(-1).astype(np.intp) if index.size == 0 else index.reshape(-1)
    if index.dtype == bool:
        if len(index) != size:
            raise IndexError(f"A mask for a KernelStack axis must have {size} entries. Got {len(index)} instead.")
        return shorten(np.flatnonzero(index), size)
    if index.dtype.kind not in "iu":
        raise IndexError(f"A KernelStack is indexed by integers, slices or masks. Got {index!r} instead.")
    if len(index) and (index.min() < -size or index.max() >= size):
        worst = index.min() if index.min() < -size else index.max()
        raise IndexError(f"An index of a KernelStack axis of size {size} must be below {size}. Got {worst} instead.")
    return shorten(np.where(index < 0, index + size, index).astype(np.intp), size)


def shorten(positions: np.ndarray, size: int) -> np.ndarray | None:
    """None where the positions are all of them, in order."""
    return None if len(positions) == size and np.array_equal(positions, np.arange(size)) else positions


def compose(outer: np.ndarray | None, inner: np.ndarray | None) -> np.ndarray | None:
    """Select ``inner`` of the selection ``outer``."""
    if inner is None:
        return outer
    return inner if outer is None else outer[inner]


def as_slice(positions: np.ndarray | None) -> slice | None:
    """Slice that selects consecutive positions, None where they are not consecutive."""
    if positions is None:
        return slice(None)
    if len(positions) == 0 or np.any(np.diff(positions) != 1):
        return None
    return slice(int(positions[0]), int(positions[-1]) + 1)


def take_block(K, rows, cols, dtype, out=None) -> np.ndarray:
    """``K[rows][:, cols]``, a view where both are consecutive and the dtype agrees."""
    run_r, run_c = as_slice(rows), as_slice(cols)
    if run_r is not None and run_c is not None:
        if out is None:
            return K[run_r, run_c].astype(dtype, copy=False)
        out[...] = K[run_r, run_c]
        return out
    rows = np.arange(len(K)) if rows is None else rows
    if out is None:
        out = np.empty((len(rows), K.shape[1] if cols is None else len(cols)), dtype=dtype)
    for start in range(0, len(rows), ROWS):
        some = rows[start : start + ROWS]
        part = K[some] if run_c is None else K[some, run_c]
        out[start : start + len(some)] = np.take(part, cols, axis=1) if run_c is None else part
    return out


class Sums(NamedTuple):
    """Diagonals and row sums of p matrices, float64 (p, n), and which of them may be constant."""

    diagonal: np.ndarray
    row_sums: np.ndarray
    constant: np.ndarray


def gather(K: np.ndarray, rows: np.ndarray, cols: np.ndarray, dtype=np.float64) -> np.ndarray:
    """Return ``K[rows][:, cols]`` as a new array.

    Examples
    --------
    >>> import numpy as np
    >>> gather(np.arange(9.0).reshape(3, 3), np.array([2, 0]), np.array([1, 2]))
    array([[7., 8.],
           [1., 2.]])
    """
    out = np.empty((len(rows), len(cols)), dtype)
    if K.dtype in (np.float32, np.float64):
        gather_block_of(read_only(K), rows, cols, out)
    else:
        take_block(K, rows, cols, out.dtype, out)
    return out


def gather_with_product(K: np.ndarray, idx: np.ndarray, weight: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Return ``K[idx][:, idx] @ w`` in float64.

    Sets: out, to ``K[idx][:, idx]``.
    """
    product = np.empty(len(idx))
    gather_with_dots(read_only(K), idx, idx, weight, out, product)
    return product


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
    """Return, at the first number of each run of consecutive numbers, where the run ends."""
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
