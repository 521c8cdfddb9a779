"""Newton steps of matrix-valued coefficients, as in ``differences``, by inverses of the classes and one system of rows.

    min_Z  1/2 tr Z'KZ - <R, Z>     over  Z zero off the free entries,  Z1 = 0,  1'Z = 0  (where balanced)

With W_u the inverse of K on the rows where class u is free (its constant projected out where balanced) and lambda the
multipliers of the rows, Z_u = W_u (R_u - lambda), and the rows sum to zero where sum_u W_u lambda = sum_u W_u R_u. For
many free entries this is much less work than one matrix of all of them.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, get_lapack_funcs

from multikernel.gram.combined import Combined
from multikernel.gram.loops import gather_block
from multikernel.machines.crammer_loops import add_block, complete
from multikernel.spd import factorise

# ridge of the system over the rows, which is singular along constants and consistent, by precision
_RIDGE = {"f": 1e-6, "d": 1e-11}


class ClassBlocks:
    """The inverses and the factorised system for one set of free entries; parameters as in ``Differences``."""

    def __init__(
        self, combined: Combined, free: np.ndarray, balanced: bool, diagonal: np.ndarray | None = None
    ) -> None:
        self.rows = np.flatnonzero(free.any(axis=1))
        self.free = free[self.rows]
        self.balanced = balanced
        combined.ensure(self.rows)
        # positions, among the rows, of each class's free entries
        self.at = [np.flatnonzero(column) for column in self.free.T]
        self.team = combined.gram.team
        extra = np.zeros(free.shape) if diagonal is None else diagonal
        free_rows = [self.rows[at] for at in self.at]
        calls = [partial(self._inverse, combined, idx, extra[idx, u]) for u, idx in enumerate(free_rows)]
        self.W: list[np.ndarray] = []
        for first in range(0, len(calls), self.team.n_threads):
            self.W += self.team.run(calls[first : first + self.team.n_threads])
        m = len(self.rows)
        T = np.zeros((m, m), combined.matrix.dtype)
        for at, W in zip(self.at, self.W, strict=True):
            add_block(W, at, T)
        mean = max(float(np.trace(T)) / m, 1e-300)
        if balanced:
            T += T.dtype.type(mean / m)
        T.flat[:: m + 1] += _RIDGE[T.dtype.char] * mean
        self.factor = factorise(T, self.team)

    def _inverse(self, combined: Combined, idx: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        n, kind = len(idx), combined.matrix.dtype
        if not n:
            return np.zeros((0, 0), kind)
        potrf, potri = get_lapack_funcs(("potrf", "potri"), dtype=kind)
        mean = max(float(combined.diag[idx].mean()), float(np.finfo(np.float32).tiny))
        for power in range(-6 if kind == np.float32 else -11, 1):
            # a symmetric matrix: its rows are the columns that the library expects
            K = np.empty((n, n), kind)
            gather_block(combined.matrix, combined.scale, idx, 0, n, K)
            K.flat[:: n + 1] += (mean * 10.0**power + diagonal).astype(kind)
            factor, failed = potrf(K.T, lower=1, overwrite_a=1)
            if not failed:
                break
        else:
            raise LinAlgError("The combined kernel is not positive semidefinite on the free entries.")
        W = potri(factor, lower=1, overwrite_c=1)[0].T
        complete(W, self.balanced)
        return W

    def solve(self, R: np.ndarray) -> np.ndarray:
        """Return Z for k right-hand sides R of shape (k, n, c), on the rows that have free entries: (m, c, k)."""
        R = np.ascontiguousarray(np.moveaxis(R[:, self.rows], 0, -1))
        kind = self.W[0].dtype
        sums = np.zeros((len(self.rows), R.shape[-1]))
        parts = [W @ R[at, u].astype(kind) for u, (at, W) in enumerate(zip(self.at, self.W, strict=True))]
        for at, part in zip(self.at, parts, strict=True):
            sums[at] += part
        multipliers = self.factor.solve(sums.astype(kind))
        Z = np.zeros_like(R)
        for u, (at, W, part) in enumerate(zip(self.at, self.W, parts, strict=True)):
            Z[at, u] = part - W @ multipliers[at]
        # rows exactly, against rounding
        excess = Z.sum(axis=1) / self.free.sum(axis=1)[:, None]
        Z -= self.free[..., None] * excess[:, None]
        return Z
