"""Counts of patterns in sequences, and their inner products by an inverted index.

    k(x, z) = sum_u c_u(x) c_u(z),       c_u(x) = how often the pattern u occurs in x

A row of counts is a list of (id, count); the index lists for every id the rows that have it. Row i of the Gram matrix
is filled by walking through the lists of its own ids: no pair of sequences is ever compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit

from multikernel.kernels.sequences.encode import Encoded

# Possible patterns up to which the id of a pattern is the pattern itself: a larger table of ids saves sorting the keys.
_DIRECT = 1 << 16
# Possible patterns up to which the counts are a dense matrix, of which most entries are not zero only if they are few.
_DENSE = 1024
# the key of a window with an unknown letter
NO_KEY = np.uint64(np.iinfo(np.uint64).max)


@dataclass(frozen=True)
class Pattern:
    """Which letters of a window are read, and where windows lie.

    Attributes
    ----------
    places : tuple of int
        The offsets of the letters that count, increasing from 0; without any, all windows are the same pattern.
    span : int
        The length of a window.
    region : (int or None, int or None)
        The slice of the sequence in which windows lie.
    whole : bool
        Whether a window with an unknown letter at another offset does not count either.
    presence : bool
        Whether a pattern that occurs counts once, however often it does.
    """

    places: tuple[int, ...]
    span: int
    region: tuple[int | None, int | None] = (None, None)
    whole: bool = False
    presence: bool = False


def bytes_of_counts(letters: int, n: int, size: int, pattern: Pattern) -> int:
    """Return the bytes that the counts of n sequences of so many letters, their index and their matrix may take."""
    n_patterns = size ** len(pattern.places)
    # of an entry the id and the count, and in the index its row, its count and its place
    entry = (4 + 8) + (4 + 8 + 8)
    return letters * entry + 8 * min(n_patterns, letters) + (8 * n * n_patterns if n_patterns <= _DENSE else 0)


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each pattern occurs in each of n sequences.

    Attributes
    ----------
    indptr : int64 array of shape (n + 1,)
        Where the row of each sequence begins.
    ids, counts : int32 and float64 arrays
        The entries.
    n_ids : int
        The number of ids.
    keys : uint64 array or None
        The pattern of each id, in increasing order; None where an id is the pattern itself.
    """

    indptr: np.ndarray
    ids: np.ndarray
    counts: np.ndarray
    n_ids: int
    keys: np.ndarray | None

    def take(self, rows: np.ndarray) -> Counts:
        """Return some of the rows."""
        lengths = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], lengths)
        return Counts(indptr, self.ids[places], self.counts[places], self.n_ids, self.keys)

    def mapped(self, other: Counts) -> np.ndarray:
        """Return the ids of the entries among those of other counts, -1 where they have none."""
        if self.keys is None or other.keys is None or self.keys is other.keys:
            return self.ids
        if not len(other.keys):
            return np.full(len(self.ids), -1, np.int32)
        place = np.minimum(np.searchsorted(other.keys, self.keys), len(other.keys) - 1)
        return np.where(other.keys[place] == self.keys, place, -1).astype(np.int32)[self.ids]

    @cached_property
    def index(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The rows of every id: starts, rows, counts, and the place of each entry among them."""
        starts = np.zeros(self.n_ids + 1, np.int64)
        rows, place = np.empty(len(self.ids), np.int32), np.empty(len(self.ids), np.int64)
        values = np.empty(len(self.ids))
        invert(self.indptr, self.ids, self.counts, starts, rows, values, place)
        return starts, rows, values, place

    def squares(self) -> np.ndarray:
        """Return sum_u c_u(x)^2 of every sequence."""
        sums = np.concatenate([[0.0], np.cumsum(self.counts**2)])
        return sums[self.indptr[1:]] - sums[self.indptr[:-1]]

    @cached_property
    def dense(self) -> np.ndarray | None:
        """The counts as a matrix, in the precision that keeps inner products exact; None for many patterns."""
        if self.n_ids > _DENSE or self.keys is not None:
            return None
        total = np.diff(np.concatenate([[0.0], np.cumsum(self.counts)])[self.indptr]).max(initial=0.0)
        exact = total**2 * np.finfo(np.float32).eps < 1
        matrix = np.zeros((len(self.indptr) - 1, self.n_ids), np.float32 if exact else np.float64)
        matrix[np.repeat(np.arange(len(matrix)), np.diff(self.indptr)), self.ids] = self.counts
        return matrix


def window_keys(encoded: Encoded, pattern: Pattern) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read a pattern at every place of sequences.

    Returns
    -------
    start : int array (n,)
        Where the first window of each sequence begins.
    first : int64 array (n + 1,)
        Windows first_i, ..., first_i+1 - 1 are those of sequence i, one after the other.
    keys : uint64 array
        The letters that count of each window as one number, `NO_KEY` where one is unknown.
    """
    start, stop = (np.array([slice(*pattern.region).indices(m)[:2] for m in range(encoded.lengths.max(initial=0) + 1)])
                   .reshape(-1, 2)[encoded.lengths].T)  # fmt: skip
    windows = np.maximum(0, stop - start - pattern.span + 1)
    first = np.concatenate([[0], np.cumsum(windows)]).astype(np.int64)
    keys = np.empty(first[-1], np.uint64)
    places = np.array(pattern.places, np.int64)
    read_windows(encoded.codes, encoded.offsets + np.append(start, 0), first, places, pattern.span,
                 encoded.alphabet.size, pattern.whole, keys)  # fmt: skip
    return start, first, keys


def count_patterns(encoded: Encoded, pattern: Pattern) -> Counts:
    """Count the patterns of sequences."""
    n = len(encoded)
    _, first, keys = window_keys(encoded, pattern)
    n_patterns = encoded.alphabet.size ** len(pattern.places)
    known = None
    if n_patterns > _DIRECT:
        known, keys = _rank(keys)
        n_patterns = len(known)
    indptr, ids = np.zeros(n + 1, np.int64), np.empty(len(keys), np.int32)
    counts = np.empty(len(keys))
    used = merge_rows(keys, first, pattern.presence, np.full(n_patterns, -1, np.int64), indptr, ids, counts)
    return Counts(indptr, ids[:used].copy(), counts[:used].copy(), n_patterns, known)


def _rank(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct keys, and for every key its rank among them."""
    distinct, rank = np.unique(keys, return_inverse=True)
    ranks = rank.astype(np.uint64).reshape(-1)
    if len(distinct) and distinct[-1] == NO_KEY:
        distinct = distinct[:-1]
        ranks[ranks == len(distinct)] = NO_KEY
    return distinct, ranks


@njit(cache=True, nogil=True)
def read_windows(codes, begin, first, places, span, size, whole, keys):
    """keys[first_i + t] = the letters that count of the window at t of sequence i as one number, or NO_KEY."""
    for i in range(first.shape[0] - 1):
        for t in range(first[i + 1] - first[i]):
            at = begin[i] + t
            key = np.uint64(0)
            known = True
            for p in places:
                code = codes[at + p]
                known &= code < size
                key = key * np.uint64(size) + np.uint64(code)
            if whole:
                for p in range(span):
                    known &= codes[at + p] < size
            keys[first[i] + t] = key if known else NO_KEY


@njit(cache=True, nogil=True)
def merge_rows(keys, first, presence, slot, indptr, ids, counts):
    """Count equal keys of a row in one entry; return the number of entries. ``slot`` is -1 for every id."""
    used = 0
    for i in range(first.shape[0] - 1):
        begin = used
        for t in range(first[i], first[i + 1]):
            if keys[t] == NO_KEY:
                continue
            key = np.int64(keys[t])
            if slot[key] >= begin:
                if not presence:
                    counts[slot[key]] += 1.0
            else:
                slot[key] = used
                ids[used] = key
                counts[used] = 1.0
                used += 1
        indptr[i + 1] = used
    return used


@njit(cache=True, nogil=True)
def invert(indptr, ids, counts, starts, rows, values, place):
    """Sort the entries by id, rows in order: starts, rows, values, and the place of each entry."""
    for e in range(ids.shape[0]):
        starts[ids[e] + 1] += 1
    for u in range(starts.shape[0] - 1):
        starts[u + 1] += starts[u]
    filled = starts.copy()
    for i in range(indptr.shape[0] - 1):
        for e in range(indptr[i], indptr[i + 1]):
            p = filled[ids[e]]
            filled[ids[e]] = p + 1
            rows[p] = i
            values[p] = counts[e]
            place[e] = p


@njit(cache=True, nogil=True)
def add_lower(indptr, ids, counts, starts, rows, values, place, coef, first, last, out):
    """out[i, j] += coef sum_u c_u(i) c_u(j) for j <= i, i in [first, last)."""
    for i in range(first, last):
        for e in range(indptr[i], indptr[i + 1]):
            c = coef * counts[e]
            for p in range(starts[ids[e]], place[e] + 1):
                out[i, rows[p]] += c * values[p]


@njit(cache=True, nogil=True)
def add_rows(indptr, ids, counts, starts, rows, values, coef, first, last, out):
    """out[i, j] += coef sum_u c_u(i) c_u(j), i in [first, last); entries of id -1 have no partner."""
    for i in range(first, last):
        for e in range(indptr[i], indptr[i + 1]):
            if ids[e] >= 0:
                c = coef * counts[e]
                for p in range(starts[ids[e]], starts[ids[e] + 1]):
                    out[i, rows[p]] += c * values[p]
