"""What storages on the host share: answers from blocks of rows, and outputs as one array.

A storage that can do better than forming rows overrides what it can do better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from multikernel.gram.base import Gram, Outputs
from multikernel.gram.combined import HostCombined
from multikernel.threads import BLOCK_BYTES, Team


class HostGram(Gram):
    """Base class of the storages whose rows can be formed on the host; a subclass brings ``rows`` and ``diag``.

    Attributes
    ----------
    team : Team
        Threads for the passes over the kernels.
    """

    team: Team

    def _blocks(self, idx: np.ndarray, n_kernels: int) -> Iterator[slice]:
        """Split rows into blocks that fit into BLOCK_BYTES for so many kernels."""
        size = max(1, BLOCK_BYTES // (self.n_samples * self.dtype.itemsize * max(1, n_kernels)))
        for start in range(0, len(idx), size):
            yield slice(start, min(start + size, len(idx)))

    def combine(self, beta: np.ndarray, rows: np.ndarray, out: np.ndarray, slots: np.ndarray) -> None:
        """Form rows of sum_k beta_k K_k; kernels of weight zero are not touched.

        Sets: ``out[slots]``.
        """
        active = np.flatnonzero(beta)
        for part in self._blocks(rows, len(active)):
            block = self.rows(rows[part], active)
            # in the precision asked for
            out[slots[part]] = np.tensordot(beta[active].astype(out.dtype), block, 1)

    def apply(self, v: np.ndarray, kernels: np.ndarray | None = None) -> np.ndarray:
        p = self.n_kernels if kernels is None else len(kernels)
        idx = np.flatnonzero(v if v.ndim == 1 else v.any(axis=1))
        out = np.zeros((p, self.n_samples, *v.shape[1:]))
        for part in self._blocks(idx, p):
            block = self.rows(idx[part], kernels)
            for k in range(p):
                out[k] += block[k].T.astype(np.float64) @ v[idx[part]]
        return out

    def apply_precisely(self, v: np.ndarray, kernels: np.ndarray | None = None) -> tuple[np.ndarray, float] | None:
        """Return K_k v with the rounding that `Outputs.sum_precisely` returns; None where entries are not stored."""
        return None

    def new_outputs(self, shape: tuple[int, ...], known: tuple[np.ndarray, np.ndarray] | None = None) -> Outputs:
        if known is None:
            return HostOutputs(self, np.zeros(shape), np.zeros((self.n_kernels, *shape)))
        return HostOutputs(self, known[0], known[1].copy())

    def block(self, idx: np.ndarray) -> np.ndarray:
        out = np.empty((self.n_kernels, len(idx), len(idx)), self.dtype)
        for part in self._blocks(idx, self.n_kernels):
            out[:, part] = self.rows(idx[part])[:, :, idx]
        return out

    def combined(self, beta: np.ndarray) -> HostCombined:
        return HostCombined(self, beta)

    def take_samples(self, idx: np.ndarray) -> HostGram:
        from multikernel.gram.subset import SubsetGram

        return SubsetGram(self, idx)

    def take_kernels(self, kernels: np.ndarray) -> HostGram:
        from multikernel.gram.subset import KernelsGram

        return KernelsGram(self, kernels)

    def make_room(self, nbytes: float) -> bool:
        """Whether so many bytes may be held beside the kernels that are stored."""
        return nbytes <= self.budget

    def rescaled(self, factor: float) -> HostGram:
        from multikernel.gram.subset import RescaledGram

        return RescaledGram(self, factor)


@dataclass(eq=False)
class HostOutputs(Outputs):
    """Outputs as one array F of shape (p, n) or (p, n, c), which is written to when coefficients change.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> outputs = DenseGram(np.array([np.eye(2), np.ones((2, 2))])).new_outputs((2,))
    >>> outputs.update(np.array([1.0, 2.0]))
    >>> outputs.quadratic_forms(), outputs.mix(np.array([1.0, 1.0]))
    (array([5., 9.]), array([4., 5.]))
    """

    gram: HostGram
    coef: np.ndarray
    F: np.ndarray

    def update(self, coef: np.ndarray, kernels: np.ndarray | None = None) -> None:
        self.F[slice(None) if kernels is None else kernels] += self.gram.apply(coef - self.coef, kernels)
        self.coef = coef

    def sum_precisely(self) -> float | None:
        found = self.gram.apply_precisely(self.coef)
        if found is None:
            return None
        self.F, rounding = found
        return rounding

    def put(self, kernels: np.ndarray, part: Outputs | np.ndarray | float) -> None:
        self.F[kernels] = part.kernel_outputs() if isinstance(part, Outputs) else part

    def take(self, kernels: np.ndarray) -> Outputs:
        return HostOutputs(self.gram.take_kernels(kernels), self.coef, self.F[kernels])

    def quadratic_forms(self) -> np.ndarray:
        return self.F @ self.coef if self.coef.ndim == 1 else np.tensordot(self.F, self.coef, 2)

    def mix(self, beta: np.ndarray) -> np.ndarray:
        return beta @ self.F if self.F.ndim == 2 else np.tensordot(beta, self.F, 1)

    def kernel_outputs(self, rows: np.ndarray | None = None) -> np.ndarray:
        return self.F if rows is None else self.F[:, rows]

    def known(self) -> tuple[np.ndarray, np.ndarray]:
        return self.coef, self.F.copy()
