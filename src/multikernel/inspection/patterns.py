"""The weights of counted patterns in a decision function: k-mers, motifs with gaps.

    f(x) = ... + sum_u W_u c_u(x),       W_u = factor * sum_i a_i c_u(x_i)

A window of x that matches u adds W_u, shared equally by the positions of its letters; gaps get nothing. If a pattern
counts once however often it occurs (``presence``), all windows that match it share W_u equally.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from multikernel.kernels.sequences.encode import Encoded
from multikernel.kernels.sequences.kmers import NO_KEY, Pattern, window_keys


@dataclass(frozen=True, eq=False)
class PatternTerm:
    """One counted pattern of one kernel in one output.

    Attributes
    ----------
    kernel : int
        Number of the kernel in the bank; it turns letters into codes.
    letters : str
        The alphabet.
    pattern : Pattern
        The counted pattern.
    keys : uint64 array
        Keys of the patterns that have a weight, in increasing order.
    weights : ndarray
        W_u.
    factor : callable or None
        Returns, for samples, the factor by which ``normalize="cosine"`` multiplies their kernel rows.
    """

    kernel: int
    letters: str
    pattern: Pattern
    keys: np.ndarray
    weights: np.ndarray
    factor: Callable[[Any], np.ndarray] | None = None

    def scores(self, encoded: Encoded, factor: np.ndarray | None, width: int) -> np.ndarray:
        """Return the share of every position of other sequences in the output: (n, width), zero beyond their ends."""
        out = np.zeros((len(encoded), width))
        start, first, keys = window_keys(encoded, self.pattern)
        if not len(self.keys) or not len(keys):
            return out
        rows = np.repeat(np.arange(len(encoded)), np.diff(first))
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        values = np.where(self.keys[place] == keys, self.weights[place], 0.0)
        if self.pattern.presence:
            values /= _occurrences(rows, keys)
        if factor is not None:
            values *= factor[rows]
        offsets = self.pattern.places or tuple(range(self.pattern.span))
        begin = start[rows] + np.arange(len(keys)) - first[rows]
        for offset in offsets:
            np.add.at(out, (rows, begin + offset), values / len(offsets))
        return out

    def text(self, key: int) -> str:
        """Return a pattern as letters, with a point for every gap."""
        out, size = ["."] * self.pattern.span, len(self.letters)
        for place in reversed(self.pattern.places):
            key, code = divmod(int(key), size)
            out[place] = self.letters[code]
        return "".join(out)


def pattern_weights(encoded: Encoded, pattern: Pattern, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys u of the patterns of support sequences, in increasing order, and sum_i a_i c_u(x_i) of each."""
    _, first, keys = window_keys(encoded, pattern)
    a = np.repeat(coef, np.diff(first))
    if pattern.presence:
        a = a / _occurrences(np.repeat(np.arange(len(encoded)), np.diff(first)), keys)
    known = keys != NO_KEY
    distinct, which = np.unique(keys[known], return_inverse=True)
    return distinct, np.bincount(which.ravel(), a[known], len(distinct))


def _occurrences(rows: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return how often the key of each window occurs in its sequence."""
    order = np.lexsort((keys, rows))
    new = np.ones(len(keys), bool)
    new[1:] = (np.diff(rows[order]) != 0) | (keys[order][1:] != keys[order][:-1])
    run = np.cumsum(new) - 1
    out = np.empty(len(keys))
    out[order] = np.bincount(run)[run]
    return out
