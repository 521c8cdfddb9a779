"""The combined kernel K_beta = sum_k beta_k K_k of a storage on the host, formed row by row as rows are asked for.

The buffer is reserved once and touched only where rows are formed, so that its memory is that of the support
vectors' rows. A single active kernel that lies in memory is read in place: nothing is formed at all.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from multikernel.gram.base import Combined, HostRows, all_there
from multikernel.gram.dense_loops import add_outputs, add_row_products, gather_block
from multikernel.gram.slices import read_only
from multikernel.threads import ROWS, Team

if TYPE_CHECKING:
    from multikernel.gram.host import HostGram


class HostCombined(Combined):
    """Rows of K_beta on demand.

    Parameters
    ----------
    gram : HostGram
        The kernels.
    beta : ndarray of shape (p,)
        Weights.
    """

    def __init__(self, gram: HostGram, beta: np.ndarray) -> None:
        self._gram = gram
        self.dtype, self.team = gram.dtype, gram.team
        self._kernel_diag = gram.diag()
        self._buffer: np.ndarray | None = None
        self._kernel_means: np.ndarray | None = None
        self.set_weights(beta)

    def set_weights(self, beta: np.ndarray) -> None:
        self.beta = beta
        self.cache = {}
        self.diag = beta @ self._kernel_diag
        active = np.flatnonzero(beta)
        stored = self._gram.stored(int(active[0])) if len(active) == 1 else None
        n = self._gram.n_samples
        if stored is not None:
            matrix, factor = stored
            scale = float(beta[active[0]] * factor)
            self._rows = HostRows(matrix, scale, np.ones(n, bool), self.diag, all_there)
            return
        if self._buffer is None:
            self._buffer = np.empty((n, n), self.dtype)
        have = np.zeros(n, bool)
        # without a reference to this object: a cycle would keep the buffer until the collector comes
        ensure = partial(_form_rows, self._gram, beta, self._buffer, have)
        self._rows = HostRows(read_only(self._buffer), 1.0, have, self.diag, ensure)

    @property
    def means(self) -> np.ndarray:
        """Row means of K_beta, float64; the first time they take a pass over all kernels."""
        if self._kernel_means is None:
            n = self._gram.n_samples
            self._kernel_means = self._gram.apply(np.full(n, 1.0 / n))
        return self.beta @ self._kernel_means

    def host_rows(self, idx: np.ndarray | None = None) -> HostRows:
        """Return the matrix itself, without an index; else a compact copy of the rows that are asked for."""
        return self._rows if idx is None else _compact_rows(self._rows, idx)

    def block(self, idx: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
        rows = self._rows
        rows.ensure(idx)
        out = np.empty((len(idx), len(idx)), rows.matrix.dtype if dtype is None else dtype)
        self.team.run(
            partial(gather_block, rows.matrix, rows.scale, idx, lo, hi, out)
            for lo, hi in self.team.split(len(idx), 32, len(idx) * out.itemsize)
        )
        return out

    def apply(self, delta: np.ndarray, exact: bool = True) -> np.ndarray:
        idx = np.flatnonzero(delta if delta.ndim == 1 else delta.any(axis=1))
        rows, team = self._rows, self.team
        rows.ensure(idx)
        if not exact:
            return times_columns_roughly(rows.matrix, rows.scale, delta, idx, bool(rows.have.all()), team)
        if delta.ndim > 1:
            return times_columns(rows.matrix, rows.scale, delta, idx, bool(rows.have.all()), team)
        n = len(delta)
        out = np.zeros((1, n))
        D = rows.scale * delta[None, idx]
        which = np.zeros(1, np.intp)
        team.run(
            partial(add_outputs, rows.matrix[None], which, idx, D, 0, 1, lo, hi, out)
            for lo, hi in team.split(n, 256, len(idx) * rows.matrix.itemsize)
        )
        return out[0]


def _form_rows(gram: HostGram, beta: np.ndarray, buffer: np.ndarray, have: np.ndarray, rows: np.ndarray) -> None:
    """Form the rows of K_beta that are missing. Sets: ``buffer`` and ``have``."""
    rows = rows[~have[rows]]
    if len(rows):
        gram.combine(beta, rows, buffer, rows)
        have[rows] = True


def _compact_rows(whole: HostRows, idx: np.ndarray) -> HostRows:
    """Return K_beta[idx, idx], rows again on demand, for a machine that has set the other samples aside."""
    buffer = np.empty((len(idx), len(idx)), whole.matrix.dtype)
    have = np.zeros(len(idx), bool)

    def ensure(rows: np.ndarray) -> None:
        rows = rows[~have[rows]]
        source = idx[rows]
        whole.ensure(source)
        for row, i in zip(rows, source, strict=True):
            np.take(whole.matrix[i], idx, out=buffer[row])
        have[rows] = True

    return HostRows(read_only(buffer), whole.scale, have, whole.diag[idx], ensure)


def times_columns(
    matrix: np.ndarray, scale: float, delta: np.ndarray, idx: np.ndarray, whole: bool, team: Team
) -> np.ndarray:
    """Return scale M delta, float64, delta (n, c) being zero but for the rows ``idx``.

    Only these rows of the symmetric M are read, unless the ``whole`` of it is there.
    """
    out = np.zeros(delta.shape)
    if whole:
        columns = np.ascontiguousarray(scale * delta.T)
        spans = team.split(len(matrix), 64)
        team.run(partial(add_row_products, matrix[lo:hi], columns, out[lo:hi]) for lo, hi in spans)
        return out
    for start in range(0, len(idx), ROWS):
        rows = idx[start : start + ROWS]
        out += matrix[rows].astype(np.float64).T @ (scale * delta[rows])
    return out


def times_columns_roughly(
    matrix: np.ndarray, scale: float, delta: np.ndarray, idx: np.ndarray, whole: bool, team: Team
) -> np.ndarray:
    """Return scale M delta in the precision of M, by the library; parameters as of `times_columns`."""
    delta = delta.astype(matrix.dtype, copy=False)
    if not whole:
        return matrix[idx].T @ (matrix.dtype.type(scale) * delta[idx])
    out = np.empty(delta.shape, matrix.dtype)

    def rows(lo: int, hi: int) -> None:
        np.matmul(matrix[lo:hi], delta, out=out[lo:hi])

    team.run(partial(rows, lo, hi) for lo, hi in team.split(len(matrix), 64))
    out *= matrix.dtype.type(scale)
    return out
