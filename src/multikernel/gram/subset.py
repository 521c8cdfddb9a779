"""Other views of a Gram, without a copy of its kernels: some samples, ``K_k[idx][:, idx]``, some kernels, multiples."""

from __future__ import annotations

import numpy as np

from multikernel.gram.host import HostGram
from multikernel.threads import BLOCK_BYTES


class _PartGram(HostGram):
    """View of a Gram: what all kinds have of their parent."""

    def __init__(self, parent: HostGram) -> None:
        self.parent = parent
        self.kind, self.dtype, self.team, self.budget = parent.kind, parent.dtype, parent.team, parent.budget
        self.n_kernels, self.n_samples, self.loose = parent.n_kernels, parent.n_samples, parent.loose

    @property
    def nbytes(self) -> int:  # type: ignore[override]  # a property: the bytes of a lazy parent grow
        """Bytes of the parent."""
        return self.parent.nbytes

    def make_room(self, nbytes: float) -> bool:
        return self.parent.make_room(nbytes)


class SubsetGram(_PartGram):
    """The kernels restricted to some samples.

    Parameters
    ----------
    parent : HostGram
        The kernels on all samples.
    idx : ndarray of int
        The samples, in their new order.
    """

    def __init__(self, parent: HostGram, idx: np.ndarray) -> None:
        super().__init__(parent)
        self.idx = np.asarray(idx, np.intp)
        self.n_samples = len(self.idx)
        self.loose = parent.loose[:, self.idx] if isinstance(parent.loose, np.ndarray) else parent.loose

    def diag(self):
        return self.parent.diag()[:, self.idx]

    def rows(self, idx, kernels=None):
        return self.parent.rows(self.idx[idx], kernels)[:, :, self.idx]

    def combine(self, beta, rows, out, slots):
        size = max(1, BLOCK_BYTES // (self.parent.n_samples * out.itemsize))
        whole = np.empty((min(size, len(rows)), self.parent.n_samples), out.dtype)
        for i in range(0, len(rows), size):
            some = self.idx[rows[i : i + size]]
            self.parent.combine(beta, some, whole, np.arange(len(some)))
            out[slots[i : i + size]] = whole[: len(some), self.idx]

    def block(self, idx):
        return self.parent.block(self.idx[idx])

    def apply(self, v, kernels=None):
        spread = np.zeros((self.parent.n_samples, *v.shape[1:]))
        spread[self.idx] = v
        return self.parent.apply(spread, kernels)[:, self.idx]

    def apply_precisely(self, v, kernels=None):
        spread = np.zeros((self.parent.n_samples, *v.shape[1:]))
        spread[self.idx] = v
        found = self.parent.apply_precisely(spread, kernels)
        return None if found is None else (found[0][:, self.idx], found[1])


class KernelsGram(_PartGram):
    """Some of the kernels.

    Parameters
    ----------
    parent : HostGram
        All kernels.
    kernels : ndarray of int
        Which of them, in their new order.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> KernelsGram(DenseGram(np.array([np.eye(2), np.ones((2, 2))])), np.array([1])).apply(np.array([1.0, 2.0]))
    array([[3., 3.]])
    """

    def __init__(self, parent: HostGram, kernels: np.ndarray) -> None:
        super().__init__(parent)
        self.kernels = np.asarray(kernels, np.intp)
        self.n_kernels = len(self.kernels)
        self.loose = parent.loose[self.kernels] if isinstance(parent.loose, np.ndarray) else parent.loose

    def diag(self):
        return self.parent.diag()[self.kernels]

    def rows(self, idx, kernels=None):
        return self.parent.rows(idx, self.kernels if kernels is None else self.kernels[kernels])

    def combine(self, beta, rows, out, slots):
        spread = np.zeros(self.parent.n_kernels)
        spread[self.kernels] = beta
        self.parent.combine(spread, rows, out, slots)

    def apply(self, v, kernels=None):
        return self.parent.apply(v, self.kernels if kernels is None else self.kernels[kernels])

    def apply_precisely(self, v, kernels=None):
        return self.parent.apply_precisely(v, self.kernels if kernels is None else self.kernels[kernels])

    def stored(self, kernel=None):
        return None if kernel is None else self.parent.stored(int(self.kernels[kernel]))


class RescaledGram(_PartGram):
    """The kernels multiplied by a power of two.

    Parameters
    ----------
    parent : HostGram
        The kernels.
    factor : float
        The power of two.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> RescaledGram(DenseGram(np.eye(2)[None]), 4.0).apply(np.array([1.0, 2.0]))
    array([[4., 8.]])
    """

    def __init__(self, parent: HostGram, factor: float) -> None:
        super().__init__(parent)
        self.factor, self.loose, self.output_kernels = factor, parent.loose * factor, parent.output_kernels

    def diag(self):
        return self.parent.diag() * self.factor

    def rows(self, idx, kernels=None):
        return self.parent.rows(idx, kernels) * self.dtype.type(self.factor)

    def block(self, idx):
        return self.parent.block(idx) * self.dtype.type(self.factor)

    def combine(self, beta, rows, out, slots):
        self.parent.combine(beta * self.factor, rows, out, slots)

    def apply(self, v, kernels=None):
        return self.parent.apply(v, kernels) * self.factor

    def apply_precisely(self, v, kernels=None):
        found = self.parent.apply_precisely(v, kernels)
        return None if found is None else (found[0] * self.factor, found[1])

    def stored(self, kernel=None):
        found = self.parent.stored(kernel)
        return None if found is None else (found[0], found[1] * self.factor)
