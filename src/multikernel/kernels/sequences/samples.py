"""Sequences as samples, with a store of what kernels derive from them.

    sequences[rows]        some of the sequences, with the same store
    sequences.detach()     the same sequences with a store of their own

The store holds all sequences and what kernels derive from them (codes, bit planes, counts of k-mers), so that neither
the blocks of a Gram matrix nor the kernels of a family derive it again. Nothing is read before a kernel asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any

import numpy as np

from multikernel.kernels.sequences.alphabet import Alphabet, infer_alphabet
from multikernel.kernels.sequences.encode import Encoded, encode_bytes, to_bytes

# Bytes of what is derived from samples and kept with them: what does not fit is computed again, or in single precision.
KEEP_BYTES = 256 << 20


class _Store:
    """All sequences, and what was derived from them."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self.derived: dict[Hashable, Any] = {}
        self.reserved: dict[Hashable, int] = {}
        self.lock = RLock()

    def derive(self, key: Hashable, make: Callable[[], Any]) -> Any:
        with self.lock:
            if key not in self.derived:
                self.derived[key] = make()
            return self.derived[key]


class Sequences:
    """Sequences, as kernels on sequences take them.

    Parameters
    ----------
    values : list of str, 1-D array, Series, data frame of one column, or Encoded
        The sequences.

    Examples
    --------
    >>> from multikernel.kernels.sequences.samples import Sequences
    >>> len(Sequences(["ACGT", "AAAA", "CCCC"])[1:])
    2
    """

    ndim = 1

    def __init__(self, values: Any) -> None:
        self._store = _Store(values)
        self.rows: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self._store.values) if self.rows is None else len(self.rows)

    @property
    def shape(self) -> tuple[int]:
        """The number of sequences, as of an array."""
        return (len(self),)

    def __getitem__(self, rows) -> Any:
        if isinstance(rows, (int, np.integer)):
            return np.asarray(self.original()).ravel()[rows]
        chosen = self.index[rows]
        whole = len(chosen) == len(self._store.values) and np.array_equal(chosen, np.arange(len(chosen)))
        return _view(self._store, None if whole else chosen)

    @property
    def index(self) -> np.ndarray:
        """The places of these sequences in the store."""
        return np.arange(len(self)) if self.rows is None else self.rows

    def reserve(self, key: Hashable, size: int) -> bool:
        """Reserve so many bytes of the store for this key; False where they and those of other keys are too many."""
        store = self._store
        with store.lock:
            if key not in store.reserved and sum(store.reserved.values()) + size > KEEP_BYTES:
                return False
            store.reserved.setdefault(key, size)
            return True

    def prepared(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what the store holds under this key for all its sequences, made by ``make`` at the first call."""
        return self._store.derive(key, make)

    def letters(self, owner: str = "X") -> tuple[np.ndarray, np.ndarray]:
        """Return the characters of all sequences of the store, and where each sequence begins."""
        return self.prepared("letters", lambda: to_bytes(self._store.values, owner))

    @property
    def lengths(self) -> np.ndarray:
        """The lengths of these sequences."""
        lengths = np.diff(self.letters()[1])
        return lengths if self.rows is None else lengths[self.rows]

    def infer_alphabet(self) -> Alphabet:
        """Return the alphabet that these sequences were encoded in, or the one inferred from their letters."""
        if isinstance(self._store.values, Encoded):
            return self._store.values.alphabet
        if self.rows is not None:
            return infer_alphabet(Encoded(*self.letters(), Alphabet("?")).take(self.rows).codes)
        return self.prepared("alphabet", lambda: infer_alphabet(self.letters()[0]))

    def encoded(self, alphabet: Alphabet) -> Encoded:
        """Return the codes of all sequences of the store; these sequences are its rows `index`."""
        return self.prepared(("codes", alphabet), lambda: encode_bytes(*self.letters(), alphabet))

    def original(self) -> Any:
        """Return these sequences as they came: an array of strings, or a data frame of one column."""
        values = self._store.values
        if isinstance(values, Encoded):
            return values.take(self.index)
        if getattr(values, "ndim", 1) == 2 and hasattr(values, "iloc"):
            return values if self.rows is None else values.iloc[self.rows]
        array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
        return array if self.rows is None else array[self.rows]

    def detach(self) -> Sequences:
        """Return these sequences with a store of their own, which holds no other sequences."""
        return Sequences(self.original())

    def __array__(self, dtype=None, copy=None):
        return np.array(self.original(), dtype=dtype)

    def __getstate__(self) -> dict:
        return {"values": self.original()}

    def __setstate__(self, state: dict) -> None:
        self._store, self.rows = _Store(state["values"]), None


def _view(store: _Store, rows: np.ndarray | None) -> Sequences:
    view = object.__new__(Sequences)
    view._store, view.rows = store, rows
    return view


def as_sequences(X: Any, owner: str) -> Sequences:
    """Return samples as `Sequences` that have been read."""
    if not isinstance(X, Sequences):
        if getattr(X, "ndim", 1) == 2 and X.shape[1] != 1:
            raise ValueError(f"{owner} needs one column of strings. Got {X.shape[1]} columns instead.")
        X = Sequences(X)
    X.letters(f"The samples of {owner}")
    return X


def is_text(X: Any) -> bool:
    """Whether samples without columns are texts: strings or bytes, at least one among the first hundred."""
    if isinstance(X, (Sequences, Encoded)):
        return True
    if isinstance(X, (str, bytes)) or not hasattr(X, "__len__") or getattr(X, "ndim", 1) != 1 or len(X) == 0:
        return False
    kind = getattr(getattr(X, "dtype", None), "kind", "O")
    if kind in "US":
        return True
    first = X.iloc[:100] if hasattr(X, "iloc") else X[:100]
    return kind in "OT" and any(isinstance(value, (str, bytes)) for value in first)
