"""Kernels that are never stored as a whole: rows are computed when they are asked for.

    K_k[i, :] = compute(k, i),       a bounded number of rows kept, the least recently used forgotten first

The rows of all kernels that are missing are computed together, in parallel over the rows, so that kernels
that share work (the distances of a family of widths) can share it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from multikernel.gram.base import Gram
from multikernel.threads import Team

# rows that a thread computes at least
_GRAIN = 16

Compute = Callable[[np.ndarray, np.ndarray], Iterable[tuple[int, np.ndarray]]]


class LazyGram(Gram):
    """Rows on demand, under a memory budget.

    Parameters
    ----------
    compute : callable
        ``compute(kernels, idx)`` yields (k, block) for each k of ``kernels``, in any order, with block the
        normalised rows K_k[idx], of shape (len(idx), n). It is called from several threads.
    diag : ndarray of shape (p, n)
        Diagonals of the normalised kernels.
    dtype : dtype
        Precision in which rows are kept.
    budget : float
        Bytes of rows to keep.
    n_threads : int
        Threads that compute rows.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.lazy import LazyGram
    >>> K = np.array([[[2.0, 1.0], [1.0, 2.0]]])
    >>> gram = LazyGram(lambda kernels, idx: ((k, K[k, idx]) for k in kernels), np.full((1, 2), 2.0))
    >>> gram.apply(np.array([1.0, 0.0]))
    array([[2., 1.]])
    """

    kind = "lazy"

    def __init__(
        self,
        compute: Compute,
        diag: np.ndarray,
        *,
        dtype: np.dtype | type = np.float64,
        budget: float = 0,
        n_threads: int = 1,
    ) -> None:
        self._compute = compute
        self._diag = np.asarray(diag, np.float64)
        self.n_kernels, self.n_samples = self._diag.shape
        self.dtype = np.dtype(dtype)
        self.team = Team(n_threads)
        self._row_bytes = self.n_samples * self.dtype.itemsize
        self.capacity = int(min(budget, self.n_kernels * self.n_samples * self._row_bytes) // self._row_bytes)
        self._kept: OrderedDict[tuple[int, int], np.ndarray] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that are kept now."""
        return len(self._kept) * self._row_bytes

    def diag(self):
        return self._diag

    def rows(self, idx, kernels=None):
        idx = np.asarray(idx, np.intp)
        kernels = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        out = np.empty((len(kernels), len(idx), self.n_samples), self.dtype)
        missing = np.ones((len(idx), len(kernels)), bool)
        for r, i in enumerate(idx.tolist()):
            for j, k in enumerate(kernels.tolist()):
                row = self._kept.get((k, i))
                if row is not None:
                    self._kept.move_to_end((k, i))
                    out[j, r] = row
                    missing[r, j] = False
        self._fill(out, idx, kernels, missing)
        return out

    def _fill(self, out, idx, kernels, missing) -> None:
        """Compute what is missing; rows that lack the same kernels go together."""
        patterns, group = np.unique(missing, axis=0, return_inverse=True)
        for g, lacks in enumerate(patterns):
            places, rows = np.flatnonzero(lacks), np.flatnonzero(group.ravel() == g)
            if len(places):
                spans = self.team.split(len(rows), _GRAIN)
                self.team.run(partial(self._compute_into, out, idx, kernels, places, rows[lo:hi]) for lo, hi in spans)
                self._keep(out, idx, kernels, places, rows)

    def _compute_into(self, out, idx, kernels, places, rows) -> None:
        place = dict(zip(kernels[places].tolist(), places.tolist(), strict=True))
        for k, block in self._compute(kernels[places], idx[rows]):
            out[place[int(k)], rows] = block

    def _keep(self, out, idx, kernels, places, rows) -> None:
        for r in rows if self.capacity else ():
            for j in places:
                self._kept[int(kernels[j]), int(idx[r])] = out[j, r].copy()
                if len(self._kept) > self.capacity:
                    self._kept.popitem(last=False)
