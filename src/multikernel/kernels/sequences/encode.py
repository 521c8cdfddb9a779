"""Sequences as bytes: one code per letter, all sequences one after the other.

    codes[offsets[i] : offsets[i + 1]] = the letters of sequence i,     code = alphabet.size for an unknown letter

A sequence is a text. Several are a list of str, a 1-D NumPy array (of objects, 'U' or 'S'), a pandas Series, or one
column of a data frame. Blanks at the two ends are not part of a sequence, and an empty one is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from multikernel.kernels.sequences.alphabet import Alphabet, as_alphabet, infer_alphabet, look_up

_BLANK = ord(" ")
# the last character of Latin-1
_LATIN = np.iinfo(np.uint8).max


@dataclass(frozen=True, eq=False)
class Encoded:
    """Sequences in the codes of an alphabet.

    Attributes
    ----------
    codes : uint8 array
        The letters of all sequences; ``alphabet.size`` is an unknown one, which matches nothing, not even itself.
    offsets : int64 array of shape (n + 1,)
        Where each sequence begins.
    alphabet : Alphabet
        The letters.
    """

    codes: np.ndarray
    offsets: np.ndarray
    alphabet: Alphabet

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> np.ndarray:
        """The length of each sequence, int64 of shape (n,)."""
        return np.diff(self.offsets)

    @cached_property
    def length(self) -> int | None:
        """The common length of the sequences, None where they differ or there are none."""
        lengths = self.lengths
        return int(lengths[0]) if len(lengths) and (lengths == lengths[0]).all() else None

    @cached_property
    def has_unknown(self) -> bool:
        """Whether an unknown letter occurs."""
        return bool(len(self.codes)) and int(self.codes.max()) == self.alphabet.size

    def matrix(self) -> np.ndarray:
        """Return the codes of sequences of equal length, a view of shape (n, length)."""
        if self.length is None:
            raise ValueError("Sequences of different lengths have no matrix of codes.")
        return self.codes.reshape(len(self), self.length)

    def take(self, rows: np.ndarray | slice) -> Encoded:
        """Return some of the sequences; those of a slice share the memory."""
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(len(self))
            stop = max(start, stop)
            offsets = self.offsets[start : stop + 1]
            return Encoded(self.codes[offsets[0] : offsets[-1]], offsets - offsets[0], self.alphabet)
        chosen = np.arange(len(self))[rows]
        lengths = self.lengths[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        return Encoded(self.codes[places], offsets, self.alphabet)


def encode(sequences: Any, alphabet: Alphabet | str | None = None, *, owner: str = "X") -> Encoded:
    """Encode sequences.

    Parameters
    ----------
    sequences : list of str, 1-D array, Series, data frame of one column, or Encoded
        The sequences.
    alphabet : Alphabet, str or None
        'dna', 'rna', 'protein', a text of letters, or an `Alphabet`; None infers it from the sequences.
    owner : str
        Who asks, for the error sentences.

    Returns
    -------
    Encoded
        The codes.

    Examples
    --------
    >>> from multikernel.kernels.sequences import encode
    >>> encoded = encode(["ACGT", "ttnc"])
    >>> encoded.matrix()
    array([[0, 1, 2, 3],
           [3, 3, 4, 1]], dtype=uint8)
    >>> encoded.length, encoded.alphabet.letters
    (4, 'ACGT')
    """
    if isinstance(sequences, Encoded) and (alphabet is None or as_alphabet(alphabet) == sequences.alphabet):
        return sequences
    characters, offsets = to_bytes(sequences, owner)
    letters = infer_alphabet(characters) if alphabet is None else as_alphabet(alphabet)
    return encode_bytes(characters, offsets, letters)


def encode_bytes(characters: np.ndarray, offsets: np.ndarray, letters: Alphabet) -> Encoded:
    """Encode what `to_bytes` returned."""
    codes = np.empty(len(characters), np.uint8)
    look_up(letters.table, characters, codes)
    return Encoded(codes, offsets, letters)


def to_bytes(sequences: Any, owner: str = "X") -> tuple[np.ndarray, np.ndarray]:
    """Return the characters of all sequences as bytes of Latin-1, and where each sequence begins."""
    if isinstance(sequences, Encoded):
        letters = np.frombuffer(sequences.alphabet.letters.encode("latin-1") + b"\0", np.uint8)
        return letters[sequences.codes], sequences.offsets
    array = _as_column(sequences, owner)
    if array.dtype.kind == "S":
        found = _from_fixed(array)
    elif array.dtype.kind == "U" and array.dtype.itemsize and _is_latin(array):
        found = _from_fixed(np.char.encode(array, "latin-1"))
    else:
        found = _from_objects(array.astype(object), owner)
    characters, offsets = found
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if len(empty):
        raise ValueError(f"{owner} must be sequences of at least one letter. Got an empty one at index {empty[0]}.")
    return characters, offsets


def _as_column(sequences: Any, owner: str) -> np.ndarray:
    """Return the sequences as a 1-D array of objects, 'U' or 'S'."""
    if isinstance(sequences, (str, bytes)):
        raise ValueError(f"{owner} must be several sequences, such as a list of str. Got one text instead.")
    if isinstance(sequences, np.ndarray):
        array = sequences
    elif hasattr(sequences, "to_numpy"):
        array = sequences.to_numpy(dtype=object)
    else:
        array = np.empty(len(sequences), object)
        for i, sequence in enumerate(sequences):
            array[i] = sequence
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{owner} must be one column of sequences. Got an array of shape {array.shape} instead.")
    if array.dtype.kind not in "OUS":
        raise ValueError(f"{owner} must be strings. Got values of type {array.dtype} instead.")
    return array


def _from_fixed(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Read an 'S' array: rows of one width, filled up with zero bytes."""
    n, width = len(array), array.dtype.itemsize
    rows = np.ascontiguousarray(array).view(np.uint8).reshape(n, width)
    if n and width and rows[:, -1].all() and not _has_blank_ends(rows[:, 0], rows[:, -1]):
        # a row ends before its width only where its last byte is zero
        return rows.reshape(-1), np.arange(0, (n + 1) * width, width, dtype=np.int64)
    lengths = np.char.str_len(array).astype(np.int64)
    filled = np.flatnonzero(lengths)
    last = rows[filled, lengths[filled] - 1] if width else rows[:0]
    if width and _has_blank_ends(rows[filled, 0], last):
        array = np.char.strip(array)
        rows = np.ascontiguousarray(array).view(np.uint8).reshape(n, array.dtype.itemsize)
        lengths, width = np.char.str_len(array).astype(np.int64), array.dtype.itemsize
    inside = np.arange(width) < lengths[:, None]
    return rows[inside], np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _from_objects(array: np.ndarray, owner: str) -> tuple[np.ndarray, np.ndarray]:
    """Read an array of str or bytes."""
    values = array.tolist()
    kinds = set(map(type, values))
    if not all(issubclass(kind, str) for kind in kinds):
        for i, value in enumerate(values):
            if isinstance(value, bytes):
                values[i] = value.decode("latin-1")
            elif not isinstance(value, str):
                raise ValueError(f"{owner} must be strings. Got {value!r} at index {i} instead.")
    values = list(map(str.strip, values))
    try:
        text = "".join(values).encode("latin-1")
    except UnicodeEncodeError:
        i, character = next((i, c) for i, value in enumerate(values) for c in value if ord(c) > _LATIN)
        raise ValueError(
            f"{owner} must be sequences of letters in Latin-1. Got {character!r} at index {i} instead."
        ) from None
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    return np.frombuffer(text, np.uint8), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _is_latin(array: np.ndarray) -> bool:
    return bool(np.ascontiguousarray(array).view(np.uint32).max(initial=0) <= _LATIN)


def _has_blank_ends(first: np.ndarray, last: np.ndarray) -> bool:
    """Whether a first or last character is a blank or a control character, other than the zero byte."""
    return bool(((first <= _BLANK) & (first > 0)).any() or ((last <= _BLANK) & (last > 0)).any())
