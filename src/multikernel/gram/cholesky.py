"""Cholesky factorisation of a symmetric positive definite matrix: one call of the library, or blocks on a team.

Threads of a BLAS library wait for each other by spinning, which costs an order of magnitude whenever the machine is
shared. Here every block product is a single-threaded BLAS call, and the team splits the products between them; on one
thread, and for matrices that are small for the team, the library's own single-threaded factorisation is faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, get_lapack_funcs

from multikernel.threads import Team

# rows of a block: large blocks multiply faster, small ones are shared more evenly among the threads
_BLOCK = 192


class Factor:
    """A factorised matrix that answers in float64, with the accuracy of the precision in which it was factorised."""

    def __init__(self, cholesky: LibraryCholesky | BlockCholesky) -> None:
        self._cholesky = cholesky

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Return the solution for right-hand sides of shape (n,) or (n, m), float64."""
        return self._cholesky.solve(rhs.reshape(len(rhs), -1)).astype(np.float64, copy=False).reshape(rhs.shape)


# first ridge that is added to a singular matrix, by precision: too small a ridge costs a second factorisation
_RIDGE = {"f": 1e-6, "d": 1e-11}


def ridges(mean: float, dtype: np.dtype) -> Iterator[float]:
    """Yield ridges for a matrix of this mean diagonal and precision: the smallest that may do, then ten times as much.

    Examples
    --------
    >>> import numpy as np
    >>> [f"{ridge:.0e}" for ridge in ridges(10.0, np.dtype("float32"))][:2]
    ['1e-05', '1e-04']
    """
    ridge = _RIDGE[dtype.char]
    mean = max(mean, float(np.finfo(np.float32).tiny))
    while ridge <= 1.0:
        yield ridge * mean
        ridge *= 10.0


def factor_or_none(A: np.ndarray, team: Team) -> Factor | None:
    """Return a factorisation of the whole symmetric A, None where A is not positive definite in its precision.

    Sets: A, overwritten.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.cholesky import factor_or_none
    >>> from multikernel.threads import Team
    >>> factor_or_none(np.diag([4.0, 2.0]), Team()).solve(np.array([8.0, 2.0]))
    array([2., 1.])
    >>> factor_or_none(np.diag([4.0, -2.0]), Team()) is None
    True
    """
    try:
        return Factor(factorise(A, team))
    except LinAlgError:
        return None


def factorise(A: np.ndarray, team: Team) -> LibraryCholesky | BlockCholesky:
    """Return a factorisation of the whole symmetric A that solves with many right-hand sides, in its precision.

    Sets: A, overwritten.

    Raises
    ------
    scipy.linalg.LinAlgError
        When A is not positive definite in its precision.
    """
    # a few blocks are not worth sharing
    small = team.n_threads == 1 or len(A) <= 8 * _BLOCK
    return LibraryCholesky(A) if small else BlockCholesky(A, team)


class LibraryCholesky:
    """A = L L' by one call of the library, which sees the rows of A as columns."""

    def __init__(self, A: np.ndarray) -> None:
        self._factor = cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Return A^-1 rhs."""
        own = np.array(rhs, self._factor[0].dtype, order="F")
        return cho_solve(self._factor, own, overwrite_b=True, check_finite=False)


class BlockCholesky:
    """A = L L', kept as L with the inverses of its diagonal blocks; A is overwritten by L in its lower triangle."""

    def __init__(self, A: np.ndarray, team: Team) -> None:
        self.L, self.team = A, team
        n = len(A)
        self.edges = [*range(0, n, _BLOCK), n]
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
