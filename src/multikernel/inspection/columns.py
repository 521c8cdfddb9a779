"""What a column of a table gives away before any model sees it: indices, ids, constants, sequences."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from multikernel.kernels.sequences.alphabet import infer_alphabet

# names of columns that count the rows, and that identify the samples
_INDEX = re.compile(r"(Unnamed: \d+|index|row|row_?(number|names?))", re.IGNORECASE)
_ID = re.compile(r"(^|[_\W])(id|uuid|guid)($|[_\W])", re.IGNORECASE)
_CAMEL_ID = re.compile(r"[a-z]I[Dd]$")
# names that may belong to either: the values decide
_KEY = re.compile(r"(^|[\W_])(ids|index|idx|key|barcode)$", re.IGNORECASE)
# of what a sequence of DNA, RNA or a protein is made
_LETTERS = re.compile(r"[A-Za-z*\-]+$")


def is_sequence(values: np.ndarray) -> bool:
    """Whether words are sequences of DNA, RNA or a protein, from their letters; words of one or two letters are not."""
    words = values.tolist()
    if not all(isinstance(each, str) and len(each) > 2 and _LETTERS.match(each) for each in words):
        return False
    letters = np.frombuffer("".join(words).encode("latin-1"), np.uint8)
    alphabet = infer_alphabet(letters).letters
    # proteins hold words of any language: they must be longer than words are
    return alphabet in ("ACGT", "ACGU") or (alphabet == "ACDEFGHIKLMNPQRSTVWY" and min(map(len, words)) > len(alphabet))


def why_not(name: Any, column: Any) -> str | None:
    """Return why a column tells nothing about the samples, or too much; None where it may be of use.

    Parameters
    ----------
    name : str
        The name of the column.
    column : Series or array of shape (n,)
        Its values; NaN and None are gaps.

    Examples
    --------
    >>> why_not("row", [0, 1, 2, 3]), why_not("age", [3, 1, 3, 5])
    ('index-like: it counts the rows', None)
    >>> why_not("patient_id", [9, 4, 7, 4]), why_not("number", [7, 9, 8, 6])
    ('id-like: its name', 'index-like: consecutive whole numbers')
    """
    values, known = known_values(column)
    different = len(set(known.tolist()))
    if different <= 1:
        return "constant" if len(known) else "empty"
    number, distinct = known.dtype.kind in "biuf", different == len(values)
    # truth values are no counts
    whole = known.dtype.kind in "iuf" and len(known) == len(values) and bool(np.all(known == np.floor(known)))
    steps = np.unique(np.diff(known)) if whole else np.zeros(0)
    text = str(name)
    if len(steps) == 1 and len(known) > 2:
        return "index-like: it counts the rows"
    if not number and distinct and not is_sequence(known):
        return "id-like: every row has its own word"
    if _INDEX.fullmatch(text):
        return "index-like: its name"
    if _ID.search(text) or _CAMEL_ID.search(text):
        return "id-like: its name"
    if whole and distinct and _KEY.search(text):
        return "id-like: every row has its own number"
    if whole and distinct and len(known) > 2 and known.max() - known.min() == len(known) - 1:
        return "index-like: consecutive whole numbers"
    return None


def known_values(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of a column as numbers where they are numbers, else as objects, and those that are no gaps."""
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    if hasattr(column, "to_numpy") and kind in "biuf":
        # integers with gaps have a type of their own in pandas
        values = column.to_numpy(dtype=float, na_value=np.nan) if column.isna().any() else column.to_numpy()
    else:
        values = np.asarray(column)
    if values.dtype.kind in "biuf":
        return values, values[~np.isnan(values)] if values.dtype.kind == "f" else values
    values = values.astype(object)
    there = [not (each is None or type(each).__name__ in ("NAType", "NaTType") or each != each) for each in values]
    return values, values[np.array(there, bool)]
