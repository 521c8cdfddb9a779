"""Some of the samples of another Gram: K[idx][:, idx] of every kernel, without a copy of them."""

from __future__ import annotations

import numpy as np

from multikernel.gram.base import BLOCK_BYTES, Gram


class SubsetGram(Gram):
    """The kernels restricted to some samples.

    Parameters
    ----------
    parent : Gram
        The kernels on all samples.
    idx : ndarray of int
        The samples, in their new order.
    """

    def __init__(self, parent: Gram, idx: np.ndarray) -> None:
        self.parent = parent
        self.idx = np.asarray(idx, np.intp)
        self.kind, self.dtype, self.team = parent.kind, parent.dtype, parent.team
        self.n_kernels, self.n_samples = parent.n_kernels, len(self.idx)

    @property
    def nbytes(self) -> int:
        """Bytes of the parent."""
        return self.parent.nbytes

    def diag(self):
        return self.parent.diag()[:, self.idx]

    def rows(self, idx, kernels=None):
        return self.parent.rows(self.idx[idx], kernels)[:, :, self.idx]

    def combine(self, beta, rows, out=None, slots=None):
        rows = np.asarray(rows, np.intp)
        slots = np.arange(len(rows)) if slots is None else slots
        if out is None:
            out = np.empty((len(rows), self.n_samples), self.dtype)
        size = max(1, BLOCK_BYTES // (self.parent.n_samples * self.dtype.itemsize))
        for i in range(0, len(rows), size):
            part = slice(i, i + size)
            out[slots[part]] = self.parent.combine(beta, self.idx[rows[part]])[:, self.idx]
        return out

    def add_outputs(self, F, idx, delta):
        whole = np.zeros((self.n_kernels, self.parent.n_samples, *delta.shape[1:]))
        self.parent.add_outputs(whole, self.idx[idx], delta)
        F += whole[:, self.idx]

    def apply(self, v, kernels=None):
        spread = np.zeros((self.parent.n_samples, *v.shape[1:]))
        spread[self.idx] = v
        return self.parent.apply(spread, kernels)[:, self.idx]
