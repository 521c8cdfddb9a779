"""Cholesky factorisation of a large symmetric positive definite matrix, in blocks on a team.

Threads of a BLAS library wait for each other by spinning, which costs an order of magnitude whenever the machine is
shared. Here every block product is a single-threaded BLAS call, and the team splits the products between them. Blocks
do not depend on the number of threads, so neither does a bit of the result.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
from scipy.linalg import LinAlgError, get_lapack_funcs

from multikernel.threads import Team

# columns of a block: large blocks multiply faster, small ones leave less to the thread that factorises the diagonal
BLOCK = 128


class BlockCholesky:
    """A = L L', kept as L with the inverses of its diagonal blocks; A is overwritten by L in its lower triangle."""

    def __init__(self, A: np.ndarray, team: Team) -> None:
        self.L, self.team = A, team
        n = len(A)
        self.edges = [*range(0, n, BLOCK), n]
        potrf, trtri = get_lapack_funcs(("potrf", "trtri"), (A,))
        self.inverses: list[np.ndarray] = []
        for lo, hi in pairwise(self.edges):
            # the block column, less what the columns to its left explain of it
            diagonal, info = potrf(A[lo:hi, lo:hi] - A[lo:hi, :lo] @ A[lo:hi, :lo].T, lower=1)
            if info:
                raise LinAlgError("not positive definite")
            inverse = np.ascontiguousarray(trtri(diagonal, lower=1)[0])
            self.inverses.append(inverse)
            A[lo:hi, lo:hi] = diagonal
            # rows of four blocks at a time
            starts = range(hi, n, 4 * BLOCK)
            team.run(partial(self._panel, slice(r, r + 4 * BLOCK), slice(lo, hi), inverse) for r in starts)

    def _panel(self, rows: slice, columns: slice, inverse: np.ndarray) -> None:
        L, lo = self.L, columns.start
        L[rows, columns] = (L[rows, columns] - L[rows, :lo] @ L[columns, :lo].T) @ inverse.T

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Return A^-1 rhs for rhs of shape (n, m)."""
        X = rhs.astype(self.L.dtype)
        spans = list(pairwise(self.edges))
        for (lo, hi), inverse in zip(spans, self.inverses, strict=True):
            X[lo:hi] = inverse @ (X[lo:hi] - self.L[lo:hi, :lo] @ X[:lo])
        for (lo, hi), inverse in zip(spans[::-1], self.inverses[::-1], strict=True):
            X[lo:hi] = inverse.T @ (X[lo:hi] - self.L[hi:, lo:hi].T @ X[hi:])
        return X
