"""The combined kernel K_beta = sum_k beta_k K_k, formed row by row as the single-kernel machine asks for rows.

The buffer is reserved once and touched only where rows are formed, so that its memory is that of the support
vectors' rows. A single active kernel that lies in memory is read in place: nothing is formed at all.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from multikernel.gram.dense_loops import add_outputs, add_row_products, gather_block
from multikernel.threads import Team

if TYPE_CHECKING:
    from multikernel.gram.host import HostGram

# rows gathered at a time
_ROWS = 256


class Combined:
    """Rows of K_beta on demand: K_beta[i] = ``scale * matrix[i]`` wherever ``have[i]``.

    Parameters
    ----------
    gram : HostGram
        The kernels.
    beta : ndarray of shape (p,)
        Weights.

    Attributes
    ----------
    cache : dict
        What a machine made of the whole matrix, such as a factorisation; emptied by new weights.
    """

    cache: dict

    def __init__(self, gram: HostGram, beta: np.ndarray) -> None:
        self.gram = gram
        self._kernel_diag = gram.diag()
        self._buffer: np.ndarray | None = None
        self._kernel_means: np.ndarray | None = None
        self.set_weights(beta)

    def set_weights(self, beta: np.ndarray) -> None:
        """Forget all rows, and what was made of them, and take new weights."""
        self.beta = beta
        self.cache = {}
        self.diag = beta @ self._kernel_diag
        active = np.flatnonzero(beta)
        stored = self.gram.stored(int(active[0])) if len(active) == 1 else None
        if stored is not None:
            self.matrix, factor = stored
            self.scale = float(beta[active[0]] * factor)
            self.have = np.ones(self.gram.n_samples, bool)
            return
        if self._buffer is None:
            n = self.gram.n_samples
            self._buffer = np.empty((n, n), self.gram.dtype)
        self.matrix = self._buffer.view()
        self.matrix.flags.writeable = False
        self.scale = 1.0
        self.have = np.zeros(self.gram.n_samples, bool)

    def ensure(self, rows: np.ndarray) -> None:
        """Form the rows that are missing."""
        rows = rows[~self.have[rows]]
        if not len(rows):
            return
        self.gram.combine(self.beta, rows, self._buffer, rows)
        self.have[rows] = True

    @property
    def means(self) -> np.ndarray:
        """Row means of K_beta, float64; the first time they take a pass over all kernels."""
        if self._kernel_means is None:
            n = self.gram.n_samples
            self._kernel_means = self.gram.apply(np.full(n, 1.0 / n))
        return self.beta @ self._kernel_means

    def block(self, idx: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
        """Return K_beta[idx, idx], a new array in the storage precision unless told otherwise."""
        self.ensure(idx)
        out = np.empty((len(idx), len(idx)), self.matrix.dtype if dtype is None else dtype)
        team = self.gram.team
        team.run(
            partial(gather_block, self.matrix, self.scale, idx, lo, hi, out)
            for lo, hi in team.split(len(idx), 32, len(idx) * out.itemsize)
        )
        return out

    def apply(self, delta: np.ndarray) -> np.ndarray:
        """Return K_beta delta, delta of shape (n,) or (n, c), from the rows of its non-zero entries."""
        if delta.ndim > 1:
            return self._apply_columns(delta)
        idx = np.flatnonzero(delta)
        self.ensure(idx)
        team, n = self.gram.team, self.gram.n_samples
        out = np.zeros((1, n))
        D = self.scale * delta[None, idx]
        which = np.zeros(1, np.intp)
        team.run(
            partial(add_outputs, self.matrix[None], which, idx, D, 0, 1, lo, hi, out)
            for lo, hi in team.split(n, 256, len(idx) * self.matrix.itemsize)
        )
        return out[0]

    def _apply_columns(self, delta: np.ndarray) -> np.ndarray:
        """K_beta delta for columns, by its non-zero rows: no other row of the matrix is formed."""
        idx = np.flatnonzero(delta.any(axis=1))
        self.ensure(idx)
        return times_columns(self.matrix, self.scale, delta, idx, bool(self.have.all()), self.gram.team)

    def restrict(self, idx: np.ndarray) -> Restricted:
        """Return the combined kernel on a subset of the samples, rows again on demand."""
        return Restricted(self, idx)


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
    for start in range(0, len(idx), _ROWS):
        rows = idx[start : start + _ROWS]
        out += matrix[rows].astype(np.float64).T @ (scale * delta[rows])
    return out


class Restricted:
    """K_beta[idx, idx], compact, for a machine that has set the other samples aside."""

    def __init__(self, combined: Combined, idx: np.ndarray) -> None:
        self.combined, self.idx = combined, idx
        self.scale, self.diag = combined.scale, combined.diag[idx]
        self._buffer = np.empty((len(idx), len(idx)), combined.matrix.dtype)
        self.matrix = self._buffer.view()
        self.matrix.flags.writeable = False
        self.have = np.zeros(len(idx), bool)

    def ensure(self, rows: np.ndarray) -> None:
        """Form the rows that are missing."""
        rows = rows[~self.have[rows]]
        source = self.idx[rows]
        self.combined.ensure(source)
        for row, i in zip(rows, source, strict=True):
            np.take(self.combined.matrix[i], self.idx, out=self._buffer[row])
        self.have[rows] = True
