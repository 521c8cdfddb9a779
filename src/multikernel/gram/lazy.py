"""Kernels that are never stored as a whole: rows are computed when they are asked for.

    K_k[i, :] = compute(k, i),       a bounded number of rows kept, the least recently used forgotten first

The rows of all kernels that are missing are computed together, in parallel over the rows, so that kernels
that share work (the distances of a family of widths) can share it. Products K_k v of kernels whose rows are not kept
need no rows at all where the kernels can be multiplied as they are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from multikernel.gram.dense_loops import add_outputs, combine_kept
from multikernel.gram.host import HostGram
from multikernel.gram.row_store import RowStore
from multikernel.threads import BLOCK_BYTES, ROWS, Team

Compute = Callable[[np.ndarray, np.ndarray], Iterable[tuple[int, np.ndarray]]]
Products = Callable[[np.ndarray, np.ndarray], np.ndarray]
Blocks = Callable[[np.ndarray, np.ndarray], None]


class LazyGram(HostGram):
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
        Bytes of rows to keep, and of what `make_room` is asked for.
    n_threads : int
        Threads that compute rows.
    products : callable, optional
        ``products(kernels, v)`` returns K_k v for each k of ``kernels``, in float64.
    blocks : callable, optional
        ``blocks(idx, out)`` writes K_k[idx, idx] of every kernel into ``out``, of shape (p, m, m).

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
        products: Products | None = None,
        blocks: Blocks | None = None,
    ) -> None:
        self._compute, self._products, self._blocks_of = compute, products, blocks
        self._diag = np.asarray(diag, np.float64)
        self.n_kernels, self.n_samples = self._diag.shape
        self.dtype = np.dtype(dtype)
        self.team = Team(n_threads)
        self._row_bytes = self.n_samples * self.dtype.itemsize
        self.budget = budget
        self.capacity = int(min(budget, self.n_kernels * self.n_samples * self._row_bytes) // self._row_bytes)
        self._kept = RowStore(self.n_kernels, self.n_samples, self.dtype, self.capacity)

    @property
    def nbytes(self) -> int:  # type: ignore[override]  # a property: rows are added and forgotten
        """Bytes of the rows that are kept now."""
        return self._kept.n_rows * self._row_bytes

    def make_room(self, nbytes):
        if nbytes > self.budget:
            return False
        left = int((self.budget - nbytes) // self._row_bytes)
        if left < self.capacity:
            # rows that are kept are forgotten
            self.capacity = left
            self._kept = RowStore(self.n_kernels, self.n_samples, self.dtype, left)
        return True

    def diag(self):
        return self._diag

    def combine(self, beta, rows, out, slots):
        active = np.flatnonzero(beta)
        missing: np.ndarray = np.ones(len(rows), bool)
        if (found := self._kept.find(active, rows)) is not None:
            store, at = found
            missing = np.any(at < 0, axis=0)
            there = np.flatnonzero(~missing)
            loop = partial(combine_kept, store, np.ascontiguousarray(at[:, there]), beta[active].astype(out.dtype))
            spans = self.team.split(len(there), 4)
            self.team.run(partial(loop, slots[there], lo, hi, out) for lo, hi in spans)
        if missing.any():
            super().combine(beta, rows[missing], out, slots[missing])

    def apply(self, v, kernels=None):
        kernels = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        idx = np.flatnonzero(v.reshape(len(v), -1).any(axis=1))
        out = np.zeros((len(kernels), *v.shape))
        missing: np.ndarray = np.ones(len(kernels), bool)
        if v.ndim == 1 and len(idx) and (found := self._kept.find(kernels, idx)) is not None:
            store, at = found
            missing = np.any(at < 0, axis=1)
            whole, one, D = store[None], np.zeros(1, np.intp), v[None, idx]
            self.team.run(
                partial(add_outputs, whole, one, at[j], D, 0, 1, 0, self.n_samples, out[j : j + 1])
                for j in np.flatnonzero(~missing)
            )
        if len(idx) and missing.any():
            rest = kernels[missing]
            out[missing] = super().apply(v, rest) if self._products is None else self._products(rest, v)
        return out

    def block(self, idx):
        if self._blocks_of is None:
            return super().block(idx)
        out = np.empty((self.n_kernels, len(idx), len(idx)), self.dtype)
        self._blocks_of(np.asarray(idx, np.intp), out)
        return out

    def rows(self, idx, kernels=None):
        idx = np.asarray(idx, np.intp)
        kernels = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        out = np.empty((len(kernels), len(idx), self.n_samples), self.dtype)
        self._fill(out, idx, kernels, ~self._kept.get(kernels, idx, out).T)
        return out

    def take_kernels(self, kernels):
        # they will be read many times: computed once, where all of their rows fit, as many kernels together as leave
        # blocks of many rows, so that families share what they can
        if len(kernels) * self.n_samples <= self.capacity:
            idx = np.arange(self.n_samples)
            missing = kernels[np.any(self._kept.slot[kernels] < 0, axis=1)]
            size = max(1, BLOCK_BYTES // (ROWS * self._row_bytes))
            for first in range(0, len(missing), size):
                some = missing[first : first + size]
                for part in self._blocks(idx, len(some)):
                    self.rows(idx[part], some)
        return super().take_kernels(kernels)

    def _fill(self, out, idx, kernels, missing) -> None:
        """Compute what is missing; rows that lack the same kernels go together."""
        if not missing.any():
            return
        patterns, group = np.unique(missing, axis=0, return_inverse=True)
        for g, lacks in enumerate(patterns):
            places, rows = np.flatnonzero(lacks), np.flatnonzero(group.ravel() == g)
            if len(places):
                spans = self.team.split(len(rows))
                self.team.run(partial(self._compute_into, out, idx, kernels, places, rows[lo:hi]) for lo, hi in spans)
                if self._kept.open():
                    self._kept.put(kernels[places], idx[rows], out[np.ix_(places, rows)])

    def _compute_into(self, out, idx, kernels, places, rows) -> None:
        place = dict(zip(kernels[places].tolist(), places.tolist(), strict=True))
        for k, block in self._compute(kernels[places], idx[rows]):
            out[place[int(k)], rows] = block
