"""Newton steps of matrix-valued coefficients with some entries free, rows and columns keeping their sums.

    min_Z  1/2 tr Z'KZ - <R, Z>     over  Z zero off the free entries,  Z1 = 0,  1'Z = 0  (where balanced)

In each row the free entries u are measured against one of them, v: Z_i = sum_u x_iu (e_u - e_v). In the x the rows are
settled, the matrix has entries K_ij <e_u - e_v, e_u' - e_v'>, and the c column sums are removed by their multipliers.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import LinAlgError
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from multikernel.gram.combined import Combined
from multikernel.machines.crammer_loops import difference_block
from multikernel.spd import factorise


class Differences:
    """The factorised problem for one set of free entries.

    Parameters
    ----------
    combined : Combined
        The kernel K.
    free : ndarray of bool, shape (n, c)
        Free entries, none or at least two in a row.
    balanced : bool
        Whether columns keep their sums.
    diagonal : ndarray of shape (n, c), optional
        D, where the quadratic form is tr Z'KZ + sum_iu D_iu Z_iu^2.
    """

    def __init__(
        self, combined: Combined, free: np.ndarray, balanced: bool, diagonal: np.ndarray | None = None
    ) -> None:
        self.rows, self.c = np.flatnonzero(free.any(axis=1)), free.shape[1]
        base = free.argmax(axis=1)
        rest = free.copy()
        rest[np.arange(len(free)), base] = False
        self.i, self.u = np.nonzero(rest)
        self.v = base[self.i]
        self.diagonal = diagonal
        self.factor = self._factorise(combined)
        self.columns = None
        if balanced:
            B = np.zeros((len(self.i), self.c))
            t = np.arange(len(self.i))
            B[t, self.u] = 1.0
            B[t, self.v] -= 1.0
            B = B[:, self._independent()]
            X = self.factor.solve(B).astype(np.float64)
            self.columns = B, np.linalg.lstsq(B.T @ X, X.T, rcond=1e-15)[0].T

    def _independent(self) -> np.ndarray:
        """Return the classes without one of each set that rows connect: its column sum follows from the others."""
        links = coo_array((np.ones(len(self.u)), (self.u, self.v)), shape=(self.c, self.c))
        first = np.unique(connected_components(links, directed=False)[1], return_index=True)[1]
        return np.setdiff1d(np.arange(self.c), first)

    def _factorise(self, combined: Combined):
        combined.ensure(self.rows)
        team, m = combined.gram.team, len(self.i)
        mean = 2.0 * max(float(combined.diag[self.rows].mean()), float(np.finfo(np.float32).tiny))
        for power in range(-6 if combined.matrix.dtype == np.float32 else -11, 1):
            M = np.empty((m, m), combined.matrix.dtype)
            team.run(partial(self._fill, combined, lo, hi, M) for lo, hi in team.split(m, 32))
            if self.diagonal is not None:
                self._add_diagonal(M)
            M.flat[:: m + 1] += mean * 10.0**power
            try:
                return factorise(M, team)
            except LinAlgError:
                continue
        raise LinAlgError("The combined kernel is not positive semidefinite on the free entries.")

    def _fill(self, combined: Combined, lo: int, hi: int, M: np.ndarray) -> None:
        """Set the rows from ``lo`` to ``hi`` of the matrix."""
        difference_block(combined.matrix, combined.scale, self.i, self.u, self.v, lo, hi, M)

    def _add_diagonal(self, M: np.ndarray) -> None:
        """D in the x: sum_u D_u x_u^2 + D_v (sum_u x_u)^2 in each row."""
        assert self.diagonal is not None
        first = np.searchsorted(self.i, self.rows)
        for lo, hi in zip(first, [*first[1:], len(self.i)], strict=True):
            M[lo:hi, lo:hi] += M.dtype.type(self.diagonal[self.i[lo], self.v[lo]])
        M.flat[:: len(M) + 1] += self.diagonal[self.i, self.u].astype(M.dtype)

    def solve(self, R: np.ndarray) -> np.ndarray:
        """Return Z for k right-hand sides R of shape (k, n, c), on the rows that have free entries: (m, c, k)."""
        x = self.factor.solve((R[:, self.i, self.u] - R[:, self.i, self.v]).T).astype(np.float64)
        if self.columns is not None:
            B, X = self.columns
            # twice, for rounding
            x -= X @ (B.T @ x)
            x -= X @ (B.T @ x)
        Z = np.zeros((len(self.rows), self.c, len(R)))
        at = np.searchsorted(self.rows, self.i)
        Z[at, self.u] = x
        first = np.searchsorted(self.i, self.rows)
        Z[np.arange(len(self.rows)), self.v[first]] = -np.add.reduceat(x, first, axis=0)
        return Z
