"""The class blocks of `newton_systems` for kernels far from the host: inverses and sums of them stay where they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from multikernel.machines.joint.newton_systems import ClassBlocksNewtonSystem


class DistantClassBlocksNewtonSystem(ClassBlocksNewtonSystem):
    """The system of class blocks by the linear algebra of the combined kernel.

    Parameters
    ----------
    combined, free, balanced, diagonal, single
        As in `newton_systems`; the precision is that of the storage.
    """

    def __init__(
        self,
        combined: Any,
        free: np.ndarray,
        balanced: bool,
        diagonal: np.ndarray | None = None,
        single: bool = False,
    ) -> None:
        self.rows, self.kind, self.held = np.flatnonzero(free.any(axis=1)), combined.dtype, None
        self.free = free[self.rows]
        self.at = [np.flatnonzero(column) for column in self.free.T]
        D = np.zeros(free.shape) if diagonal is None else diagonal
        self.W = [combined.inverse(self.rows[at], D[self.rows[at], u]) for u, at in enumerate(self.at)]
        self.sums = np.zeros(self.free.shape)
        mean, m = 0.0, len(self.rows)
        T = combined.zeros((m, m))
        for u, (at, W) in enumerate(zip(self.at, self.W, strict=True)):
            self.sums[at, u] = W.sum(axis=1)
            mean += float(W[np.arange(len(at)), np.arange(len(at))].sum()) / m
            T[at[:, None], at] += W
        self.total = None
        if balanced:
            self.total = np.maximum(self.sums.sum(axis=0), 1e-300)
            X = combined.zeros(self.sums.shape)
            X[...] = self.sums / np.sqrt(self.total)
            # made definite along the constants
            T -= X @ X.T - mean / m
        self.factor = combined.cholesky(T, mean)
