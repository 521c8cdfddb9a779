"""A learned normalisation.

On the training samples all steps together are one affine form of the raw matrix,

    K~_ij = scale * u_i u_j K_ij - sum_t (A_it B_jt + B_it A_jt)

On test rows the steps are applied one after the other, with the statistics of the training samples.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from multikernel.kernels.base import ROUNDING
from multikernel.threads import ROWS


@dataclass(frozen=True)
class _Rows:
    """Test rows K, the diagonal d of the test samples, and the sum of the sizes of the terms that make up d.

    Each is an array, or None where no step needs it.
    """

    K: Any
    d: Any
    size: Any


@dataclass(frozen=True)
class DivideBy:
    """Divide by a number."""

    by: float

    def apply(self, x: _Rows, cols) -> _Rows:
        """Return the normalised test rows."""
        return _Rows(*(None if part is None else part / self.by for part in (x.K, x.d, x.size)))


@dataclass(frozen=True)
class UnitDiagonal:
    """Divide by the lengths of both samples."""

    inverse: np.ndarray  # 1 / sqrt of the training diagonal, 0 where that is zero

    def apply(self, x: _Rows, cols) -> _Rows:
        """Return the normalised test rows."""
        own = inverse_root(x.d, x.size)
        inverse = self.inverse if cols is None else self.inverse[cols]
        K = None if x.K is None else x.K * (own[:, None] * inverse)
        return _Rows(K, x.d * own**2, x.size * own**2)


@dataclass(frozen=True)
class RemoveMean:
    """Remove the mean of the training samples."""

    weight: np.ndarray | None  # p, None for equal weights
    means: np.ndarray  # r = K p
    mean: float  # p' r

    def apply(self, x: _Rows, cols) -> _Rows:
        """Return the normalised test rows."""
        own = x.K.mean(axis=1) if self.weight is None else x.K @ self.weight
        K = x.K - own[:, None] - (self.means - self.mean)
        if x.d is None:
            return _Rows(K, None, None)
        shift = 2 * own - self.mean
        return _Rows(K, x.d - shift, x.size + np.abs(shift))


@dataclass(frozen=True, eq=False)
class FittedNormalizer:
    """The normalisation of one kernel, learned on n training samples; see the module for its form.

    Attributes
    ----------
    steps : tuple of str
        The steps, in order.
    n_samples : int
        The number n of training samples.
    scale : float
        The factor of the raw matrix.
    u : ndarray of shape (n,) or None
        Factors of the samples, None for ones.
    A, B : ndarray of shape (n, m) or None
        Factors of the terms that are subtracted, None for no terms.
    degenerate : bool
        Whether the kernel is constant, or zero, up to rounding: such a kernel is left at its scale, and is
        zero once centred.
    centred : bool
        Whether test rows need all training columns.
    needs_diag : bool
        Whether test rows need the raw diagonal k(x, x) of the test samples.
    """

    steps: tuple[str, ...]
    n_samples: int
    scale: float = 1.0
    u: np.ndarray | None = field(default=None, repr=False)
    A: np.ndarray | None = field(default=None, repr=False)
    B: np.ndarray | None = field(default=None, repr=False)
    degenerate: bool = False
    _parts: tuple = field(default=(), repr=False)
    centred: bool = False
    needs_diag: bool = False

    def train_block(self, K: np.ndarray, rows=slice(None), cols=None) -> np.ndarray:
        """Normalise a block of the raw training matrix.

        Parameters
        ----------
        K : ndarray of shape (m, l)
            The raw block ``K[rows][:, cols]``.
        rows, cols : index array, slice or None
            The training samples of its rows and columns; None for all.

        Returns
        -------
        ndarray of shape (m, l)
            A new array in the precision of K, computed in float64; exactly symmetric where the block is.
        """
        rows = slice(None) if rows is None else rows
        cols = slice(None) if cols is None else cols
        out = np.empty(K.shape, dtype=_precision(K))
        ids = np.arange(self.n_samples)
        rows, cols = ids[rows], ids[cols]
        for i in range(0, K.shape[0], ROWS):
            out[i : i + ROWS] = self._affine(K[i : i + ROWS], rows[i : i + ROWS], cols)
        return out

    def _affine(self, K: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        # products of the two samples' factors come first, so that rounding keeps the symmetry
        if self.u is None:
            block = np.multiply(K, self.scale, dtype=np.float64)
        else:
            block = np.multiply.outer(self.u[rows], self.u[cols])
            block *= self.scale
            block *= K
        if self.A is not None and self.B is not None:
            for a, b in zip(self.A.T, self.B.T, strict=True):
                part = np.multiply.outer(a[rows], b[cols])
                part += np.multiply.outer(b[rows], a[cols])
                block -= part
        return block

    def train_diag(self, diag: np.ndarray) -> np.ndarray:
        """Return the normalised diagonal of the training matrix from the raw one, both of shape (n,)."""
        d = np.asarray(diag, dtype=np.float64) * self.scale
        if self.u is not None:
            d *= self.u**2
        if self.A is not None and self.B is not None:
            d -= 2 * np.einsum("it,it->i", self.A, self.B)
        return d

    def cross(self, K: np.ndarray, diag: np.ndarray | None = None, cols=None) -> np.ndarray:
        """Normalise raw test rows.

        Parameters
        ----------
        K : ndarray of shape (n_test, n)
            The raw values k(x, x_j); with `cols`, of shape (n_test, len(cols)).
        diag : ndarray of shape (n_test,), optional
            The raw values k(x, x); needed where `needs_diag`.
        cols : index array, optional
            The training samples of the columns, where they are not all; not possible where `centred`.

        Returns
        -------
        ndarray
            A new array of the shape and precision of K, computed in float64.
        """
        if cols is not None and self.centred:
            raise ValueError("Centred kernels need all training columns of the test rows. Got some of them.")
        n = self.n_samples if cols is None else len(np.arange(self.n_samples)[cols])
        if K.ndim != 2 or K.shape[1] != n:
            raise ValueError(f"The test rows must have {n} columns, one per training sample. Got shape {K.shape}.")
        diag = self._test_diag(diag, K.shape[0])
        out = np.zeros(K.shape, dtype=_precision(K))
        for i in range(0, K.shape[0] if self.scale != 0 else 0, ROWS):
            chunk = slice(i, i + ROWS)
            out[chunk] = self._apply_steps(K[chunk], None if diag is None else diag[chunk], cols).K
        return out

    def cross_diag(self, diag: np.ndarray, K: np.ndarray | None = None) -> np.ndarray:
        """Return the normalised k~(x, x) of test samples.

        Parameters
        ----------
        diag : ndarray of shape (n_test,)
            The raw values k(x, x).
        K : ndarray of shape (n_test, n), optional
            The raw test rows; needed where `centred`.
        """
        if not self.centred:
            K = None
        elif K is None:
            raise ValueError("Centred kernels need the test rows for the diagonal of test samples. Got None.")
        diag = np.asarray(diag, dtype=np.float64)
        out = np.empty(len(diag))
        for i in range(0, len(diag), ROWS):
            chunk = slice(i, i + ROWS)
            out[chunk] = self._apply_steps(None if K is None else K[chunk], diag[chunk], None).d
        return out

    def without_centring(self) -> FittedNormalizer:
        """Return the normaliser of the other steps, for sums over test rows in which the means cancel."""
        steps = tuple(step for step in self.steps if step != "center")
        parts = tuple(part for part in self._parts if not isinstance(part, RemoveMean))
        return replace(self, A=None, B=None, steps=steps, _parts=parts, centred=False)

    def take(self, cols) -> FittedNormalizer:
        """Return the normaliser of the kernel restricted to some training samples; itself where `centred`."""
        if self.centred:
            return self
        parts = tuple(UnitDiagonal(s.inverse[cols]) if isinstance(s, UnitDiagonal) else s for s in self._parts)
        u = None if self.u is None else self.u[cols]
        return replace(self, n_samples=len(np.arange(self.n_samples)[cols]), u=u, _parts=parts)

    def _apply_steps(self, K, d, cols) -> _Rows:
        """Apply the steps, one after the other, to test rows and their diagonal."""
        K = None if K is None else np.array(K, dtype=np.float64)
        x = _Rows(K, d, None if d is None else np.abs(d))
        for part in self._parts:
            x = part.apply(x, cols)
        return x

    def _test_diag(self, diag, n_test: int):
        if not self.needs_diag:
            return None
        if diag is None:
            raise ValueError("The 'cosine' normalisation needs the values k(x, x) of the test samples. Got None.")
        diag = np.asarray(diag, dtype=np.float64)
        if diag.shape != (n_test,):
            raise ValueError(f"The diagonal of the test samples must have shape ({n_test},). Got {diag.shape} instead.")
        return diag


def inverse_root(d: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return 1 / sqrt(d), and 0 where d is zero up to rounding: ``size`` is the sum of the sizes of its terms."""
    positive = d > ROUNDING * size
    return np.divide(1.0, np.sqrt(np.where(positive, d, 1.0)), out=np.zeros_like(d), where=positive)


def _precision(K: np.ndarray):
    return K.dtype if K.dtype in (np.float32, np.float64) else np.float64
