"""Newton steps of matrix-valued coefficients whose matrix has a diagonal of its own, by conjugate gradients.

    min_Z  1/2 tr Z'KZ + 1/2 sum_iu D_iu Z_iu^2 - <R, Z>     over  Z1 = 0,  1'Z = 0  (where balanced)

The preconditioner is the same problem with the diagonal of K (centred where balanced) in place of K, whose solution is
Z_iu = w_iu (R_iu - tau_i - b_u), w = 1 / (K_ii + D_iu): exact in the rows and columns, so that every iterate keeps
their sums. Where D is not small beside K a few iterations do, each one product with K, where a factorisation for each
class takes as much as hundreds of them.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from multikernel.gram.combined import Combined


class Projected:
    """The problem for one D.

    Parameters
    ----------
    combined : Combined
        The kernel K.
    diagonal : ndarray of shape (n, c)
        D, positive and finite.
    balanced : bool
        Whether columns keep their sums.
    """

    def __init__(self, combined: Combined, diagonal: np.ndarray, balanced: bool) -> None:
        n = len(diagonal)
        combined.ensure(np.arange(n))
        self.combined, self.balanced = combined, balanced
        kind = combined.matrix.dtype
        diag = combined.diag
        if balanced:
            means = combined.means
            diag = np.maximum(diag - 2.0 * means + means.mean(), 0.0)
        w = 1.0 / (diag[:, None] + diagonal)
        self.D = diagonal.astype(kind)[..., None]
        shares = w / w.sum(axis=1, keepdims=True)
        # the biases b, rows being settled: a Laplacian, whose constants are left out
        self.laplacian = np.linalg.pinv(np.diag(w.sum(axis=0)) - shares.T @ w, rcond=1e-12, hermitian=True)
        self.exact = w[..., None], shares[..., None]
        self.w, self.shares = (each.astype(kind) for each in self.exact)

    def _reduced(self, R: np.ndarray, w: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """R - tau_i - b_u."""
        R = R - np.sum(shares * R, axis=1, keepdims=True)
        if self.balanced:
            b = (self.laplacian @ np.sum(w * R, axis=0, dtype=np.float64)).astype(R.dtype)
            R -= b - np.sum(shares * b, axis=1, keepdims=True)
        return R

    def _precondition(self, R: np.ndarray) -> np.ndarray:
        return self.w * self._reduced(R, self.w, self.shares)

    def _apply(self, Z: np.ndarray) -> np.ndarray:
        combined, team = self.combined, self.combined.gram.team
        n = len(Z)
        flat, out = Z.reshape(n, -1), np.empty((n, Z[0].size), Z.dtype)

        def rows(lo: int, hi: int) -> None:
            np.matmul(combined.matrix[lo:hi], flat, out=out[lo:hi])

        team.run(partial(rows, lo, hi) for lo, hi in team.split(n, 64))
        out *= out.dtype.type(combined.scale)
        return out.reshape(Z.shape) + self.D * Z

    def solve(self, R: np.ndarray, accuracy: float, limit: int) -> np.ndarray | None:
        """Return Z of shape (n, c, k) for k right-hand sides R of shape (k, n, c), None where they take too long.

        Parameters
        ----------
        R : ndarray
            Right-hand sides.
        accuracy : float
            What the energy of the residual is to fall to, relative to that of R.
        limit : int
            Largest number of iterations.
        """
        # constants of rows and columns change nothing but the rounding
        left = np.ascontiguousarray(self._reduced(np.moveaxis(R, 0, -1), *self.exact).astype(self.w.dtype))
        Z, step = np.zeros_like(left), self._precondition(left)
        energy = np.sum(left * step, axis=(0, 1), dtype=np.float64)
        enough = accuracy * energy
        P = step
        for _ in range(limit):
            MP = self._apply(P)
            length = _ratio(energy, np.sum(P * MP, axis=(0, 1), dtype=np.float64)).astype(Z.dtype)
            Z += length * P
            left -= length * MP
            step = self._precondition(left)
            new = np.sum(left * step, axis=(0, 1), dtype=np.float64)
            if np.all(new <= enough):
                return Z.astype(np.float64)
            P = step + _ratio(new, energy).astype(Z.dtype) * P
            energy = new
        return None


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
