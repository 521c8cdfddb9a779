"""Cholesky factorisation of a large symmetric positive definite matrix, in blocks on a team.

Threads of a BLAS library wait for each other by spinning, which costs an order of magnitude whenever the machine is
shared. Here every block product is a single-threaded BLAS call, and the team splits the products between them.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
from scipy.linalg import LinAlgError, get_lapack_funcs

from multikernel.threads import Team

# rows of a block: large blocks multiply faster, small ones are shared more evenly among the threads
BLOCK = 192


class BlockCholesky:
    """A = L L', kept as L with the inverses of its diagonal blocks; A is overwritten by L in its lower triangle."""

    def __init__(self, A: np.ndarray, team: Team) -> None:
        self.L, self.team = A, team
        n = len(A)
        self.edges = [*range(0, n, BLOCK), n]
        potrf, trtri = get_lapack_funcs(("potrf", "trtri"), (A,))
        self.inverses: list[np.ndarray] = []
        for b, (lo, hi) in enumerate(pairwise(self.edges)):
            diagonal, info = potrf(A[lo:hi, lo:hi], lower=1)
            if info:
                raise LinAlgError("not positive definite")
            inverse = np.ascontiguousarray(trtri(diagonal, lower=1)[0])
            self.inverses.append(inverse)
            A[lo:hi, lo:hi] = diagonal
            below = list(pairwise(self.edges[b + 1 :]))
            team.run(partial(self._panel, part, lo, hi, inverse) for part in self._deal(below))
            team.run(partial(self._trailing, part, lo, hi) for part in self._deal(below))

    def _deal(self, blocks: list) -> list[list]:
        """Deal blocks to the threads in turn, so that long and short rows are shared fairly."""
        shares = [blocks[i :: self.team.n_threads] for i in range(self.team.n_threads)]
        return [share for share in shares if share]

    def _panel(self, blocks, lo, hi, inverse) -> None:
        for r0, r1 in blocks:
            self.L[r0:r1, lo:hi] = self.L[r0:r1, lo:hi] @ inverse.T

    def _trailing(self, blocks, lo, hi) -> None:
        for r0, r1 in blocks:
            self.L[r0:r1, hi:r1] -= self.L[r0:r1, lo:hi] @ self.L[hi:r1, lo:hi].T

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Return A^-1 rhs for rhs of shape (n, m)."""
        X = rhs.astype(self.L.dtype)
        spans = list(pairwise(self.edges))
        for (lo, hi), inverse in zip(spans, self.inverses, strict=True):
            X[lo:hi] = inverse @ (X[lo:hi] - self.L[lo:hi, :lo] @ X[:lo])
        for (lo, hi), inverse in zip(spans[::-1], self.inverses[::-1], strict=True):
            X[lo:hi] = inverse.T @ (X[lo:hi] - self.L[hi:, lo:hi].T @ X[hi:])
        return X
