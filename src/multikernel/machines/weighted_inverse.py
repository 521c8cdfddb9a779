"""(K + diag(1/w))^-1 for a combined kernel K and weights w >= 0, what every smooth loss asks of linear algebra.

Only the samples of positive weight take part. An intercept asks for columns that sum to zero: with
m = (K + diag(1/w))^-1 1, a multiple of m is taken off each.
"""

from __future__ import annotations

import numpy as np

from multikernel.gram.combined import Combined
from multikernel.threads import ROWS

# relative change of I + S K S, S = diag(sqrt w), below which its inverse still serves for a step, and single precision
# where it changes by the square of that: factorisations against steps
SAME = 0.1


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
        Whether the caller refines what it gets: of many samples single precision is then enough where the matrix,
        scaled to I + S K S with S = diag(sqrt w), is well conditioned.

    Attributes
    ----------
    idx, w : ndarrays
        The samples that take part, and their weights.
    multiplier, total : ndarray of shape (n,), float
        m divided by its sum, and the sum, where balanced.
    single : bool
        Whether it was made in a lower precision than that of the kernels.
    exact : bool
        Whether the factorisation succeeded as it stands; else a ridge was added, and the inverse preconditions only.
    """

    def __init__(self, combined: Combined, w: np.ndarray, balanced: bool = False, refined: bool = False) -> None:
        self.idx = np.flatnonzero(w > 0)
        self.n = len(w)
        self.w, self.exact, self.single = np.zeros(0), True, False
        self.multiplier: np.ndarray | None = None
        self.total = 0.0
        if not len(self.idx):
            return
        self.w = w = w[self.idx]
        # eigenvalues of I + S K S lie between 1 and 1 + size
        size = float(w @ combined.diag[self.idx])
        # on few samples a factorisation in double precision takes less time than refining
        single = refined and len(w) > ROWS and size * float(np.finfo(np.float32).eps) < SAME**2
        self.single = single and combined.dtype != np.float32
        factor = combined.factor(self.idx, 1.0 / w, single)
        if factor is None and combined.widen():
            single, factor = False, combined.factor(self.idx, 1.0 / w)
        ridge, eps = 0.0, float(np.finfo(np.float32 if single else combined.dtype).eps)
        while factor is None:
            self.exact = False
            ridge = 10.0 * ridge if ridge else max(eps * size, eps)
            factor = combined.factor(self.idx, (1.0 + ridge) / w, single)
        self._factor = factor
        if balanced:
            m = self.apply(np.ones(self.n))
            self.total = float(m.sum())
            self.multiplier = m / self.total

    def apply(self, R: np.ndarray, plain: bool = False) -> np.ndarray:
        """Return (K + diag(1/w))^-1 R in float64, R of shape (n,) or (n, m); ``plain`` leaves the sums as they are."""
        out = np.zeros_like(R, float)
        if len(self.idx):
            out[self.idx] = self._factor.solve(R[self.idx])
        if self.multiplier is not None and not plain:
            out -= self.multiplier.reshape(-1, *[1] * (R.ndim - 1)) * out.sum(axis=0, keepdims=True)
        return out
