"""(K + diag(1/w))^-1 for a combined kernel K and weights w >= 0, what every smooth loss asks of linear algebra.

With S = diag(sqrt w) it is S (I + S K S)^-1 S, whose inner matrix has no eigenvalue below one, and which needs only
the samples of positive weight. An intercept asks for columns that sum to zero: with m = (K + diag(1/w))^-1 1, a
multiple of m is taken off each.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError

from multikernel.gram.cholesky import factorise
from multikernel.gram.combined import Combined

# single precision, half the cost, from this size on and up to this condition number
_LARGE, _SINGLE = 1000, 1e5


class WeightedInverse:
    """The inverse as a factorisation in the storage precision of the kernels, or in single precision.

    Parameters
    ----------
    combined : Combined
        The kernel K.
    w : ndarray of shape (n,)
        Weights; samples of weight zero drop out.
    balanced : bool
        Whether the results are to sum to zero: the inverse of [K + diag(1/w), 1; 1', 0] in its first block.
    refined : bool
        Whether the caller refines what it gets: then single precision will do where I + S K S is well conditioned.

    Attributes
    ----------
    multiplier, total : ndarray of shape (n,), float
        m divided by its sum, and the sum, where balanced.
    single : bool
        Whether it was made in a lower precision than that of the kernels.
    exact : bool
        Whether the factorisation succeeded as it stands; else a ridge was added, and the inverse preconditions only.
    """

    def __init__(self, combined: Combined, w: np.ndarray, balanced: bool = False, refined: bool = False) -> None:
        self.idx = np.flatnonzero(w > 0)
        self.root = np.sqrt(w[self.idx])
        self.n = len(w)
        self.exact, self.single = True, False
        self.multiplier: np.ndarray | None = None
        self.total = 0.0
        if not len(self.idx):
            return
        self._factorise(combined, refined)
        if balanced:
            m = self.apply(np.ones(self.n))
            self.total = float(m.sum())
            self.multiplier = m / self.total

    def _factorise(self, combined: Combined, refined: bool) -> None:
        # eigenvalues lie between 1 and 1 + size
        size = float(self.root**2 @ combined.diag[self.idx])
        rough = refined and size < _SINGLE and len(self.idx) >= _LARGE
        dtype = np.dtype(np.float32) if rough else combined.matrix.dtype
        self.single = dtype != combined.matrix.dtype
        eps = float(np.finfo(dtype).eps)
        ridge = 0.0
        while True:
            B = combined.block(self.idx, dtype)
            B *= self.root.astype(B.dtype)
            B *= self.root.astype(B.dtype)[:, None]
            B.flat[:: len(B) + 1] += 1.0 + ridge
            try:
                self._factor = factorise(B, combined.gram.team)
                return
            except LinAlgError:
                self.exact = False
                ridge = 10.0 * ridge if ridge else max(eps * size, eps)

    def apply(self, R: np.ndarray, plain: bool = False) -> np.ndarray:
        """Return (K + diag(1/w))^-1 R in float64, R of shape (n,) or (n, m); ``plain`` leaves the sums as they are."""
        out = np.zeros(R.shape)
        if len(self.idx):
            root = self.root if R.ndim == 1 else self.root[:, None]
            part = root * R[self.idx]
            solved = self._factor.solve(part.reshape(len(part), -1)).reshape(part.shape)
            out[self.idx] = root * solved
        if self.multiplier is not None and not plain:
            total = out.sum(axis=0)
            out -= self.multiplier * total if R.ndim == 1 else np.outer(self.multiplier, total)
        return out
