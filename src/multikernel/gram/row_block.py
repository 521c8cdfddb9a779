"""Some rows of all kernels, as one process of a cluster holds them.

    K_k[start : stop, :]        for every kernel k

Rows stand for columns, since kernels are symmetric: from its own rows a block computes what they add to the outputs of
all samples, K_k v = sum over blocks of K_k[rows]' v[rows], so that each loop reads contiguous memory. Rows of the
combined kernel are formed when they are first read, and kept until the weights change. Answers depend on the arguments
alone, never on what was asked before: a block that is lost and computed again elsewhere gives the same answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from multikernel.gram.combined import Cholesky
from multikernel.gram.dense_loops import add_combined_rows, add_outputs, add_row_products, read_only
from multikernel.threads import ROWS, Team


class RowBlock:
    """Rows of p kernels on n samples.

    Parameters
    ----------
    stacks : sequence of arrays of shape (p_g, m, n)
        Rows of the kernels, in order; several kernels in one array where they were computed together.
    start : int
        Number of the first row.
    owned : bool
        Whether the arrays were made for this block, and may be written to.

    Examples
    --------
    >>> import numpy as np
    >>> block = RowBlock([np.array([[[2.0, 1.0]]])], 0)  # the first row of one kernel on two samples
    >>> block.outputs(np.array([3.0, 5.0]), np.array([0]))
    array([[6., 3.]])
    """

    def __init__(self, stacks: Sequence[np.ndarray], start: int, owned: bool = True) -> None:
        self.stacks, self.start, self.owned = list(stacks), start, owned
        self.stop, self.n = start + self.stacks[0].shape[1], self.stacks[0].shape[2]
        self.dtype = np.result_type(*self.stacks)
        self.normalised: set[int] = set()
        self._forget()

    def _forget(self) -> None:
        self._lock = Lock()
        self._weights: np.ndarray | None = None
        self._buffer: np.ndarray | None = None
        self._have = np.zeros(self.stop - self.start, bool)

    def __getstate__(self) -> dict:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._forget()

    def __sizeof__(self) -> int:
        return sum(stack.nbytes for stack in self.stacks)

    def _members(self, kernels: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Split kernel numbers by array: (positions in ``kernels``, numbers within the array, the array)."""
        first = 0
        for stack in self.stacks:
            at = np.flatnonzero((kernels >= first) & (kernels < first + len(stack)))
            if len(at):
                yield at, kernels[at] - first, read_only(stack)
            first += len(stack)

    def _matrix(self, k: int) -> np.ndarray:
        """Return the rows of one kernel."""
        return next(stack[at[0]] for _, at, stack in self._members(np.array([k])))

    def outputs(self, v: np.ndarray, kernels: np.ndarray) -> np.ndarray:
        """Return what these rows add to K_k v, float64 of shape (p', n) or (p', n, c)."""
        own = np.asarray(v[self.start : self.stop], np.float64)
        idx = np.flatnonzero(own if v.ndim == 1 else own.any(axis=1))
        F = np.zeros((len(kernels), self.n, *v.shape[1:]))
        for at, members, stack in self._members(kernels):
            if v.ndim == 1:
                part = np.zeros((len(at), self.n))
                D = np.ascontiguousarray(np.broadcast_to(own[idx], (len(at), len(idx))))
                add_outputs(stack, members, idx, D, 0, len(at), 0, self.n, part)
                F[at] = part
            else:
                for j, member in zip(at, members, strict=True):
                    F[j] = _columns(stack[member], idx, own)
        return F

    def _combined(self, weights: np.ndarray, idx: np.ndarray) -> tuple[np.ndarray, float]:
        """Return a matrix whose rows ``idx``, times a factor, are those of sum_k weights_k K_k."""
        active = np.flatnonzero(weights)
        if len(active) == 1:
            return self._matrix(int(active[0])), float(weights[active[0]])
        if self._weights is None or not np.array_equal(self._weights, weights):
            self._weights = weights
            self._have[:] = False
        if self._buffer is None:
            self._buffer = np.empty((self.stop - self.start, self.n), self.dtype)
        rows = idx[~self._have[idx]]
        fresh = True
        for at, members, stack in self._members(active):
            coef = weights[active[at]].astype(self.dtype)
            add_combined_rows(stack, members, coef, rows, rows, 0, len(rows), fresh, self._buffer)
            fresh = False
        if fresh:
            self._buffer[rows] = 0.0
        self._have[rows] = True
        return self._buffer, 1.0

    def mixed_outputs(self, v: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return what these rows add to sum_k weights_k K_k v, float64 of shape (1, n) or (1, n, c)."""
        own = np.asarray(v[self.start : self.stop], np.float64)
        idx = np.flatnonzero(own if v.ndim == 1 else own.any(axis=1))
        with self._lock:
            matrix, factor = self._combined(weights, idx)
            if v.ndim > 1:
                return factor * _columns(matrix, idx, own)[None]
            out = np.zeros((1, self.n))
            add_outputs(
                read_only(matrix)[None], np.zeros(1, np.intp), idx, factor * own[None, idx], 0, 1, 0, self.n, out
            )
        return out

    def mixed_rows(self, rows: np.ndarray, columns: np.ndarray | None, weights: np.ndarray) -> np.ndarray:
        """Return those of the rows of sum_k weights_k K_k that are here, at some columns or at all, (1, m, n)."""
        with self._lock:
            idx = self._here(rows)
            matrix, factor = self._combined(weights, idx)
            out = _take(matrix, idx, columns)[None]
        return out if factor == 1.0 else out * self.dtype.type(factor)

    def rows(self, rows: np.ndarray, columns: np.ndarray | None, kernels: np.ndarray) -> np.ndarray:
        """Return those of the rows of some kernels that are here, at some columns or at all, (p', m, n)."""
        idx = self._here(rows)
        return np.array([_take(self._matrix(k), idx, columns) for k in kernels], self.dtype)

    def _here(self, rows: np.ndarray) -> np.ndarray:
        return rows[(rows >= self.start) & (rows < self.stop)] - self.start

    def inspect(self, probe: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return diagonals, row sums, products with a vector, each (p, m), and smallest and largest entries, (p, 2)."""
        own, found = np.arange(self.start, self.stop), []
        vectors = np.ascontiguousarray([np.ones(self.n), probe])
        for k in range(sum(map(len, self.stacks))):
            K, sums = self._matrix(k), np.zeros((self.stop - self.start, 2))
            add_row_products(K, vectors, sums)
            found.append((K[own - self.start, own], sums[:, 0], sums[:, 1], (K.min(), K.max())))
        diagonal, row_sums, products, ranges = zip(*found, strict=True)
        return tuple(np.array(each, np.float64) for each in (diagonal, row_sums, products, ranges))

    def normalise(self, normalizers: Sequence[Any]) -> RowBlock:
        """Return the block with every kernel normalised: this one, where its arrays may be written to, else a new one.

        A kernel that was normalised here is not normalised again.
        """
        rows, stacks, k = np.arange(self.start, self.stop), [], 0
        for stack in self.stacks:
            new = stack if self.owned else np.empty_like(stack)
            for j in range(len(stack)):
                if k not in self.normalised:
                    new[j] = normalizers[k].train_block(stack[j], rows)
                if self.owned:
                    self.normalised.add(k)
                k += 1
            stacks.append(new)
        return self if self.owned else RowBlock(stacks, self.start)


def assemble(parts: Sequence[np.ndarray], places: Sequence[np.ndarray], out: np.ndarray) -> np.ndarray:
    """Put rows from several blocks where they belong. Sets: ``out``, of shape (p', m, n)."""
    for part, at in zip(parts, places, strict=True):
        out[:, at] = part
    return out


def factorise(
    parts: Sequence[np.ndarray], places: Sequence[np.ndarray], diagonal: np.ndarray | float, dtype: np.dtype
) -> Cholesky | None:
    """Factorise a matrix given by its rows, plus a diagonal; None where that is not positive definite."""
    m = sum(map(len, places))
    A = assemble(parts, places, np.empty((1, m, m), dtype))[0]
    A.flat[:: m + 1] += np.asarray(diagonal, dtype)
    try:
        return Cholesky(A, Team())
    except LinAlgError:
        return None


def _take(matrix: np.ndarray, rows: np.ndarray, columns: np.ndarray | None) -> np.ndarray:
    """Return a copy of some rows, at some columns or at all, row by row."""
    if columns is None:
        return matrix[rows]
    out = np.empty((len(rows), len(columns)), matrix.dtype)
    for row, i in zip(out, rows, strict=True):
        np.take(matrix[i], columns, out=row)
    return out


def _columns(matrix: np.ndarray, idx: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return matrix[idx]' v[idx], float64, for v of several columns."""
    out = np.zeros((matrix.shape[1], v.shape[1]))
    for first in range(0, len(idx), ROWS):
        rows = idx[first : first + ROWS]
        out += matrix[rows].astype(np.float64, copy=False).T @ v[rows]
    return out
