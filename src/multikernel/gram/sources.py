"""Feature maps as the Gram of explicit features takes them: K_k = Phi_k Phi_k', never formed.

A source holds the features of some kernels on n samples and answers, a few rows at a time, with the tables T_k =
Phi_k' a:

    score   sum_k c_k Phi_k[rows] T_k          add     T_k += Phi_k[rows]' delta, and how |T_k|^2 grows
    pairs   sum_k c_k Phi_k[rows] Phi_k[rows]' outputs Phi_k[rows] T_k for every k
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numba import njit
from scipy import sparse

# samples that pass through the tables together: few enough that the entries of one place stay in the cache
SAMPLES = 1 << 16


class Source(ABC):
    """Base class of the maps.

    Attributes
    ----------
    n_samples, n_kernels : int
        Numbers of samples and of kernels.
    batch : int
        Rows that coordinate descent should take at a time: more rows share one visit of the tables, and need more
        kernel values between them.
    single : ndarray of shape (p, n) or None
        What features that only one sample has add to the diagonal; such features are in no table.
    """

    n_samples: int
    n_kernels: int
    batch: int = 64
    single: np.ndarray | None = None

    @abstractmethod
    def diag(self) -> np.ndarray:
        """K_k(i, i), shape (p, n), float64."""

    @abstractmethod
    def tables(self) -> np.ndarray:
        """Return the tables of a = 0."""

    @abstractmethod
    def score(self, T: np.ndarray, coef: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
        """out += sum_k coef_k Phi_k[rows] T_k, without single features."""

    @abstractmethod
    def add(self, T: np.ndarray, rows: np.ndarray, delta: np.ndarray, q: np.ndarray) -> None:
        """T_k += Phi_k[rows]' delta; q_k += the growth of |T_k|^2."""

    @abstractmethod
    def pairs(self, coef: np.ndarray, rows: np.ndarray, G: np.ndarray) -> None:
        """G += sum_k coef_k K_k[rows, rows], off the diagonal at least; the diagonal is set by the caller."""

    @abstractmethod
    def outputs(self, T: np.ndarray, lo: int, hi: int) -> np.ndarray:
        """Phi_k[lo:hi] T_k without single features, shape (p, hi - lo)."""

    @abstractmethod
    def take(self, idx: np.ndarray) -> Source:
        """Return the map on some of the samples."""

    @abstractmethod
    def cross(self, rows: np.ndarray) -> np.ndarray:
        """K_k[rows, :], shape (p, len(rows), n)."""

    @property
    def nbytes(self) -> int:
        """Bytes held, without the tables."""
        return 0

    @property
    def terms(self) -> int:
        """Features of one sample at most: an output is a sum of so many entries of the tables."""
        return self.tables().size


class DenseSource(Source):
    """Features in a matrix, or computed a few rows at a time.

    Parameters
    ----------
    features : ndarray of shape (n, M), or callable
        Features of all kernels side by side; or rows -> such a matrix of these rows, rows an index array or slice.
    kernel : ndarray of int, shape (M,)
        Kernel of each column, ascending.
    n_samples : int, optional
        n, where ``features`` is a callable.

    Examples
    --------
    >>> import numpy as np
    >>> source = DenseSource(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([0, 1]))
    >>> source.diag()
    array([[1., 0.],
           [4., 1.]])
    """

    def __init__(
        self, features: np.ndarray | Callable[..., np.ndarray], kernel: np.ndarray, n_samples: int | None = None
    ) -> None:
        self.features = features
        self.kernel = np.asarray(kernel, np.intp)
        self.n_kernels = int(self.kernel.max(initial=-1)) + 1
        self.edges = np.searchsorted(self.kernel, np.arange(self.n_kernels + 1))
        self.n_samples = len(features) if isinstance(features, np.ndarray) else int(n_samples or 0)

    def _rows(self, rows) -> np.ndarray:
        part = self.features[rows] if isinstance(self.features, np.ndarray) else self.features(rows)
        return part.astype(np.float64, copy=False)

    def _by_kernel(self, x: np.ndarray) -> np.ndarray:
        """Sums over the columns of each kernel, (..., M) -> (p, ...)."""
        out = np.zeros((self.n_kernels, *x.shape[:-1]))
        for k in range(self.n_kernels):
            out[k] = x[..., self.edges[k] : self.edges[k + 1]].sum(axis=-1)
        return out

    @property
    def nbytes(self):
        return self.features.nbytes if isinstance(self.features, np.ndarray) else 0

    def _spans(self, lo: int, hi: int) -> list[tuple[int, int]]:
        size = max(64, (8 << 20) // (8 * max(1, len(self.kernel))))
        return [(a, min(a + size, hi)) for a in range(lo, hi, size)]

    def diag(self):
        parts = [self._by_kernel(self._rows(slice(lo, hi)) ** 2) for lo, hi in self._spans(0, self.n_samples)]
        return np.concatenate(parts, axis=1)

    def tables(self):
        return np.zeros(len(self.kernel))

    def score(self, T, coef, rows, out):
        out += self._rows(rows) @ (coef[self.kernel] * T)

    def add(self, T, rows, delta, q):
        step = delta @ self._rows(rows)
        q += self._by_kernel(step * (2.0 * T + step))
        T += step

    def pairs(self, coef, rows, G):
        Phi = self._rows(rows)
        G += (Phi * coef[self.kernel]) @ Phi.T

    def outputs(self, T, lo, hi):
        out = np.empty((self.n_kernels, hi - lo))
        for a, b in self._spans(lo, hi):
            Phi = self._rows(slice(a, b))
            for k in range(self.n_kernels):
                part = slice(self.edges[k], self.edges[k + 1])
                out[k, a - lo : b - lo] = Phi[:, part] @ T[part]
        return out

    def take(self, idx):
        if isinstance(self.features, np.ndarray):
            return DenseSource(self.features[idx], self.kernel)
        features = self.features
        ids = np.asarray(idx)
        return DenseSource(lambda rows: features(ids[rows]), self.kernel, len(ids))

    def cross(self, rows):
        own = self._rows(rows)
        out = np.empty((self.n_kernels, len(rows), self.n_samples))
        for lo, hi in self._spans(0, self.n_samples):
            Phi = self._rows(slice(lo, hi))
            for k in range(self.n_kernels):
                part = slice(self.edges[k], self.edges[k + 1])
                out[k, :, lo:hi] = own[:, part] @ Phi[:, part].T
        return out


class SparseSource(Source):
    """Features in a sparse matrix, those of all kernels side by side.

    Parameters
    ----------
    features : sparse array of shape (n, M)
        Features.
    kernel : ndarray of int, shape (M,)
        Kernel of each column, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> source = SparseSource(sparse.csr_array(np.array([[1.0, 0.0], [2.0, 3.0]])), np.array([0, 0]))
    >>> source.diag()
    array([[ 1., 13.]])
    """

    batch = 32

    def __init__(self, features, kernel: np.ndarray) -> None:
        self.features = sparse.csr_array(features, dtype=np.float64)
        self.kernel = np.asarray(kernel, np.intp)
        self.n_samples = self.features.shape[0]
        self.n_kernels = int(self.kernel.max(initial=-1)) + 1
        # few bytes for each column: the loops read the kernel of every entry beside its table
        narrow = self.kernel.astype(np.min_scalar_type(self.n_kernels))
        self._parts = self.features.indptr, self.features.indices, self.features.data, narrow
        self._scratch = np.zeros(len(self.kernel))

    @property
    def nbytes(self):
        return sum(part.nbytes for part in self._parts)

    @property
    def terms(self):
        return int(np.diff(self.features.indptr).max(initial=0))

    def diag(self):
        return square_rows(*self._parts, np.zeros((self.n_kernels, self.n_samples)))

    def tables(self):
        return np.zeros(len(self.kernel))

    def score(self, T, coef, rows, out):
        score_rows(*self._parts, coef, T, rows, out)

    def add(self, T, rows, delta, q):
        add_rows(*self._parts, T, rows, delta, q)

    def pairs(self, coef, rows, G):
        pair_rows(*self._parts, coef, rows, self._scratch, G)

    def outputs(self, T, lo, hi):
        return kernel_rows(*self._parts, T, lo, np.zeros((self.n_kernels, hi - lo)))

    def take(self, idx):
        return SparseSource(self.features[idx], self.kernel)

    def cross(self, rows):
        own = self.features[rows]
        parts = [self.kernel == k for k in range(self.n_kernels)]
        return np.stack([(own[:, part] @ self.features[:, part].T).toarray() for part in parts])


@njit(cache=True, nogil=True)
def score_rows(start, column, value, kernel, coef, T, rows, out):
    """out[r] += sum_j coef[kernel_j] value_ij T_j over the features j of row i."""
    for r in range(len(rows)):
        i = rows[r]
        total = 0.0
        for t in range(start[i], start[i + 1]):
            j = column[t]
            total += coef[kernel[j]] * value[t] * T[j]
        out[r] += total


@njit(cache=True, nogil=True)
def kernel_rows(start, column, value, kernel, T, lo, out):
    """out[k, r] += sum_j value_ij T_j over the features j of kernel k, for the rows i = lo + r; return out."""
    for r in range(out.shape[1]):
        for t in range(start[lo + r], start[lo + r + 1]):
            j = column[t]
            out[kernel[j], r] += value[t] * T[j]
    return out


@njit(cache=True, nogil=True)
def square_rows(start, column, value, kernel, out):
    """out[k, i] += sum_j value_ij^2 over the features j of kernel k; return out."""
    for i in range(out.shape[1]):
        for t in range(start[i], start[i + 1]):
            out[kernel[column[t]], i] += value[t] ** 2
    return out


@njit(cache=True, nogil=True)
def add_rows(start, column, value, kernel, T, rows, delta, q):
    """T_j += delta value_ij, and q the growth of the sums of T_j^2 by kernel."""
    for r in range(len(rows)):
        i = rows[r]
        for t in range(start[i], start[i + 1]):
            j = column[t]
            v = delta[r] * value[t]
            q[kernel[j]] += v * (2.0 * T[j] + v)
            T[j] += v


@njit(cache=True, nogil=True)
def pair_rows(start, column, value, kernel, coef, rows, scratch, G):
    """G[r, s] += sum_j coef[kernel_j] value_rj value_sj; scratch is zero before and after."""
    for r in range(len(rows)):
        i = rows[r]
        for t in range(start[i], start[i + 1]):
            scratch[column[t]] = coef[kernel[column[t]]] * value[t]
        for s in range(r):
            k = rows[s]
            total = 0.0
            for t in range(start[k], start[k + 1]):
                total += scratch[column[t]] * value[t]
            G[r, s] += total
            G[s, r] += total
        for t in range(start[i], start[i + 1]):
            scratch[column[t]] = 0.0
