"""The p Gram matrices of one problem as one operator.

A Gram answers four questions about kernels K_1, ..., K_p on n training samples and hides how they are stored:

    combine(beta, rows)   rows of sum_k beta_k K_k            apply(v)   K_k v for every k
    rows(idx)             rows of every K_k                   quad(v)    v' K_k v for every k

The base class answers all of them from ``rows`` in blocks under a memory budget; a storage that can do better
overrides what it can do better.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from multikernel.threads import Team

# bytes of kernel rows held at once by the block-wise default methods
BLOCK_BYTES = 64 << 20


class Gram(ABC):
    """Base class of the storages.

    Attributes
    ----------
    n_kernels, n_samples : int
        Numbers p of kernels and n of training samples.
    dtype : numpy.dtype
        Precision in which entries are stored or combined.
    kind : str
        Name of the storage, as shown by a fitted model.
    team : Team
        Threads for the passes over the kernels.
    budget : float
        Bytes of kernel values that may be held beside those that are stored.
    """

    budget: float = np.inf
    kind: str
    n_kernels: int
    n_samples: int
    dtype: np.dtype
    team: Team

    @abstractmethod
    def rows(self, idx: np.ndarray, kernels: np.ndarray | None = None) -> np.ndarray:
        """Rows ``idx`` of the chosen kernels (all by default), shape (p', len(idx), n)."""

    @abstractmethod
    def diag(self) -> np.ndarray:
        """Diagonals of all kernels, shape (p, n), float64."""

    @property
    def nbytes(self) -> int:
        """Bytes this Gram holds beyond what the caller handed in."""
        return 0

    def _blocks(self, idx: np.ndarray, n_kernels: int):
        size = max(1, BLOCK_BYTES // (self.n_samples * self.dtype.itemsize * max(1, n_kernels)))
        for start in range(0, len(idx), size):
            yield slice(start, min(start + size, len(idx)))

    def combine(
        self,
        beta: np.ndarray,
        rows: np.ndarray,
        out: np.ndarray | None = None,
        slots: np.ndarray | None = None,
    ) -> np.ndarray:
        """Rows of sum_k beta_k K_k in the storage precision; kernels of weight zero are not touched.

        Sets: ``out[slots]`` when given, else a new array of shape (len(rows), n).
        """
        active = np.flatnonzero(beta)
        slots = np.arange(len(rows)) if slots is None else slots
        if out is None:
            out = np.empty((len(rows), self.n_samples), self.dtype)
        for part in self._blocks(rows, len(active)):
            block = self.rows(rows[part], active)
            out[slots[part]] = np.tensordot(beta[active].astype(block.dtype), block, 1)
        return out

    def apply(self, v: np.ndarray, kernels: np.ndarray | None = None) -> np.ndarray:
        """K_k v for the chosen kernels, float64; v is (n,) or (n, c) and only its non-zero rows are touched."""
        p = self.n_kernels if kernels is None else len(kernels)
        idx = np.flatnonzero(v if v.ndim == 1 else v.any(axis=1))
        out = np.zeros((p, self.n_samples, *v.shape[1:]))
        for part in self._blocks(idx, p):
            block = self.rows(idx[part], kernels)
            for k in range(p):
                out[k] += block[k].T.astype(np.float64) @ v[idx[part]]
        return out

    def add_outputs(self, F: np.ndarray, idx: np.ndarray, delta: np.ndarray) -> None:
        """F_k += K_k[:, idx] delta for every kernel; delta is (m,) or, with columns, (m, c).

        Sets: F, of shape (p, n) or (p, n, c), float64.
        """
        v = np.zeros((self.n_samples, *delta.shape[1:]))
        v[idx] = delta
        F += self.apply(v)

    def update_outputs(self, F: np.ndarray, old: np.ndarray, new: np.ndarray) -> None:
        """Bring the outputs F_k = K_k old to those of other coefficients, by the rows that changed.

        Sets: F, of shape (p, n) or (p, n, c), float64.
        """
        changed = np.flatnonzero(new != old if new.ndim == 1 else (new != old).any(axis=1))
        self.add_outputs(F, changed, new[changed] - old[changed])

    def take_samples(self, idx: np.ndarray) -> Gram:
        """Return the kernels on some of the samples."""
        from multikernel.gram.subset import SubsetGram

        return SubsetGram(self, idx)

    def block(self, idx: np.ndarray) -> np.ndarray:
        """Return K_k[idx, idx] for every kernel, a new array of shape (p, m, m)."""
        out = np.empty((self.n_kernels, len(idx), len(idx)), self.dtype)
        for part in self._blocks(idx, self.n_kernels):
            out[:, part] = self.rows(idx[part])[:, :, idx]
        return out

    def take_kernels(self, kernels: np.ndarray) -> Gram:
        """Return some of the kernels."""
        from multikernel.gram.subset import KernelsGram

        return KernelsGram(self, kernels)

    def quad(self, v: np.ndarray) -> np.ndarray:
        """v' K_k v (trace over columns for v of shape (n, c)), shape (p,)."""
        axes = "kn,n->k" if v.ndim == 1 else "knc,nc->k"
        return np.einsum(axes, self.apply(v), v)

    def direct(self, kernel: int) -> tuple[np.ndarray, float] | None:
        """Return the matrix M and factor s with K_kernel = s M, where M lies in memory; None where it does not."""
        return None

    def stacked(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the stack M and factors s with K_k = s_k M_k, where M lies in memory as one array; else None."""
        return None

    # ---- what a point keeps of every kernel: F, and what follows from it

    def no_outputs(self, shape: tuple[int, ...]) -> np.ndarray:
        """Outputs of coefficients that are zero, of the shape that ``add_outputs`` updates."""
        return np.zeros((self.n_kernels, *shape))

    def quadratic_forms(self, F: np.ndarray, a: np.ndarray) -> np.ndarray:
        """<K_k b, a> for every kernel, shape (p,), F the outputs of b."""
        return F @ a if a.ndim == 1 else np.tensordot(F, a, a.ndim)

    def mix(self, beta: np.ndarray, F: np.ndarray) -> np.ndarray:
        """Outputs of the combined kernel, sum_k beta_k F_k."""
        return beta @ F if F.ndim == 2 else np.tensordot(beta, F, 1)

    def kernel_outputs(self, F: np.ndarray) -> np.ndarray:
        """Outputs of every kernel, shape (p, n) or (p, n, c)."""
        return F

    def output_kernel(self, kernel: int) -> np.ndarray | None:
        """Return the kernel between the columns of a with which this one is multiplied, None for the identity."""
        return None

    def combined(self, beta: np.ndarray) -> Any:
        """Return the combined kernel as the machine reads it."""
        from multikernel.gram.combined import Combined

        return Combined(self, beta)
