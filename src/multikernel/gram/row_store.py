"""Rows of kernels that were computed, as many as memory allows, the least recently used forgotten first.

    K_k[i] = store[slot[k, i]],      slot[k, i] = -1 where the row is not kept

The store is one array, reserved when the first row is kept and touched only where rows are. Once it is full, only one
call in eight has its rows kept: where more rows than fit are read in turn, keeping all of them would replace each row
before it is read again.
"""

from __future__ import annotations

import numpy as np

# once the store is full, one call in so many has its rows kept: new rows against rows that may be read again
_RARE = 8


class RowStore:
    """Rows of length n of p kernels.

    Parameters
    ----------
    p, n : int
        Numbers of kernels and of samples.
    dtype : dtype
        Precision of the rows.
    capacity : int
        Number of rows that are kept.

    Examples
    --------
    >>> import numpy as np
    >>> store = RowStore(1, 3, np.float64, 2)
    >>> store.put(np.array([0]), np.array([2]), np.array([[[1.0, 2.0, 3.0]]]))
    >>> out = np.zeros((1, 2, 3))
    >>> store.get(np.array([0]), np.array([0, 2]), out)
    array([[False,  True]])
    >>> out[0, 1], store.n_rows
    (array([1., 2., 3.]), 1)
    """

    def __init__(self, p: int, n: int, dtype: np.dtype | type, capacity: int) -> None:
        self.capacity, self.n_rows = capacity, 0
        self.slot = np.full((p, n), -1) if capacity else np.empty((0, 0), int)
        self._shape, self._dtype = (capacity, n), dtype
        self._store: np.ndarray | None = None
        self._clock = self._refused = 0

    def get(self, kernels: np.ndarray, idx: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Copy the rows that are kept; return which, of shape (len(kernels), len(idx)).

        Sets: ``out`` of shape (len(kernels), len(idx), n), where rows are kept.
        """
        if self._store is None:
            return np.zeros((len(kernels), len(idx)), bool)
        self._clock += 1
        slots = self.slot[np.ix_(kernels, idx)]
        there = slots >= 0
        self._used[slots[there]] = self._clock
        for j in np.flatnonzero(there.any(axis=1)):
            if there[j].all():
                # no slot is out of range; with mode="clip" NumPy needs no temporary copy
                np.take(self._store, slots[j], axis=0, out=out[j], mode="clip")
            else:
                out[j, there[j]] = self._store[slots[j, there[j]]]
        return there

    def find(self, kernels: np.ndarray, idx: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the store and the slots of these rows, (len(kernels), len(idx)), -1 where not kept; None if empty."""
        if self._store is None:
            return None
        slots = self.slot[np.ix_(kernels, idx)]
        self._clock += 1
        self._used[slots[slots >= 0]] = self._clock
        return self._store, slots

    def open(self) -> bool:
        """Whether the next rows are to be kept."""
        if 0 < self.n_rows == self.capacity:
            self._refused += 1
            return self._refused % _RARE == 1
        return self.capacity > 0

    def put(self, kernels: np.ndarray, idx: np.ndarray, rows: np.ndarray) -> None:
        """Keep rows that are not kept yet, of shape (len(kernels), len(idx), n); the last of them where not all fit."""
        if not self.capacity or not rows.size:
            return
        if self._store is None:
            self._store = np.empty(self._shape, self._dtype)
            self._used = np.zeros(self.capacity, np.int64)
            # (kernel, sample) of each slot, as one number
            self._owner = np.full(self.capacity, -1)
        self._clock += 1
        n = self.slot.shape[1]
        names = (kernels[:, None] * n + idx).ravel()[-self.capacity :]
        chosen = self._free(len(names))
        old = self._owner[chosen]
        self.slot.flat[old[old >= 0]] = -1
        self._owner[chosen], self._used[chosen] = names, self._clock
        self.slot.flat[names] = chosen
        self._store[chosen] = rows.reshape(-1, rows.shape[-1])[-self.capacity :]
        self.n_rows = max(self.n_rows, int(chosen.max()) + 1)

    def _free(self, count: int) -> np.ndarray:
        """Return slots that were never used, then those that were used longest ago."""
        fresh = np.arange(self.n_rows, min(self.n_rows + count, self.capacity))
        if len(fresh) == count:
            return fresh
        missing = count - len(fresh)
        oldest = np.argpartition(self._used[: self.n_rows], missing - 1)[:missing]
        return np.concatenate([fresh, oldest])
