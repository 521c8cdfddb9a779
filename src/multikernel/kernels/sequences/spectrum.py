"""Kernels of counted patterns: k-mers, motifs with gaps, k-mers with mismatches.

    Spectrum(k)             c_u(x) over all k-mers u
    GappedSpectrum(mask)    c_u(x) over the letters at the chosen places of a window
    GappedKmer(l, k)        sum of GappedSpectrum over the masks of k places among l, the first and last not special
    Mismatch(k, m)          c_u(x) = number of k-mers of x that differ from u in at most m letters

All are inner products of explicit counts, hence positive semidefinite. The last two depend on two windows through the
number t of letters that agree: binom(t, k) for gapped k-mers; for mismatches some f(t), and as

    f(t) = sum_j a_j binom(t, j),      a_j = sum_{i<=j} (-1)^(j-i) binom(j, i) f(i),      a_j = 0 for j < k - 2m,

it is a weighted sum of gapped spectra too, whatever the size of the alphabet.

References
----------
C. Leslie, E. Eskin, W. S. Noble. The spectrum kernel. PSB 2002.
C. Leslie et al. Mismatch string kernels. Bioinformatics 20, 2004. doi:10.1093/bioinformatics/btg431.
M. Ghandi et al. Enhanced regulatory sequence prediction using gapped k-mer features. PLoS Comput. Biol. 10, 2014.
C. S. Ong, A. Zien. An automated combination of kernels for predicting protein subcellular localization. WABI 2008.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb, factorial

import numpy as np

from multikernel.kernels.base import is_integer, require, require_truth
from multikernel.kernels.sequences.base import SequenceKernel, share_rows
from multikernel.kernels.sequences.kmers import Counts, Pattern, add_lower, add_rows, bytes_of_counts, count_patterns
from multikernel.kernels.sequences.planes import mirror
from multikernel.kernels.sequences.samples import Sequences


class PatternKernel(SequenceKernel):
    """A weighted sum of inner products of counts."""

    positive_semidefinite = True

    @property
    def has_features(self) -> bool:
        """Whether no factor is negative: a sum with negative factors is no inner product of its counts."""
        return all(factor >= 0 for _, factor in self._patterns())

    def _patterns(self) -> list[tuple[Pattern, float]]:
        """Return the patterns that are counted, each with the factor of its inner product."""
        raise NotImplementedError

    def _counts(self, X: Sequences, pattern: Pattern) -> Counts:
        """Return the counts of the chosen sequences."""
        encoded = self._codes(X)
        key = (encoded.alphabet, pattern)
        if not X.reserve(key, bytes_of_counts(len(encoded.codes), len(encoded), encoded.alphabet.size, pattern)):
            return count_patterns(encoded if X.rows is None else encoded.take(X.rows), pattern)
        counts = X.prepared(key, lambda: count_patterns(encoded, pattern))
        return counts if X.rows is None else counts.take(X.rows)

    def _learn(self, X, sample_weight, shared):
        size = self.alphabet_.size
        for pattern, _ in self._patterns():
            if size ** len(pattern.places) >= 2**63:
                most = int(63 / np.log2(size))
                raise ValueError(
                    f"{type(self).__name__} counts patterns of at most {most} letters in an alphabet of {size}. "
                    f"Got {len(pattern.places)} instead."
                )

    def _train(self, X):
        K = np.zeros((len(X), len(X)))
        scattered = False
        for pattern, factor in self._patterns():
            counts = self._counts(X, pattern)
            if counts.dense is not None:
                K += _scaled(counts.dense @ counts.dense.T, factor)
                continue
            scattered = True

            def work(first, last, counts=counts, factor=factor):
                add_lower(counts.indptr, counts.ids, counts.counts, *counts.index, factor, first, last, K)

            share_rows(len(X), work, lower=True)
        if scattered:
            mirror(K)
        return K

    def _cross(self, X, Y):
        K = np.zeros((len(X), len(Y)))
        for pattern, factor in self._patterns():
            left, right = self._counts(X, pattern), self._counts(Y, pattern)
            if left.dense is not None and right.dense is not None:
                K += _scaled(left.dense @ right.dense.T, factor)
                continue
            ids = left.mapped(right)

            def work(first, last, left=left, ids=ids, index=right.index[:3], factor=factor):
                add_rows(left.indptr, ids, left.counts, *index, factor, first, last, K)

            share_rows(len(X), work, lower=False)
        return K

    def _diag(self, X):
        terms = (factor * self._counts(X, pattern).squares() for pattern, factor in self._patterns())
        return sum(terms, np.zeros(len(X)))


class Spectrum(PatternKernel):
    """The spectrum kernel: the inner product of the counts of all k-mers.

    Sequences may differ in length; one shorter than k has no k-mers.

    Parameters
    ----------
    k : int, default=3
        The length of the k-mers.
    presence : bool, default=False
        Whether a k-mer counts once, however often it occurs.
    all_orders : bool, default=False
        Whether to add the kernels of the orders 1, ..., k.
    alphabet : 'dna', 'rna', 'protein', str or Alphabet, optional
        The letters; by default they are inferred from the training samples.

    Examples
    --------
    >>> from multikernel.kernels import Spectrum
    >>> Spectrum(2)(["ACAC", "CACA", "AC"])
    array([[5., 4., 2.],
           [4., 5., 1.],
           [2., 1., 1.]])
    """

    def __init__(self, k=3, presence=False, all_orders=False, *, alphabet=None):
        self.k = k
        self.presence = presence
        self.all_orders = all_orders
        self.alphabet = alphabet

    def _learn(self, X, sample_weight, shared):
        require(self, "k", is_integer(self.k) and self.k >= 1, "a positive integer")
        require_truth(self, "presence", "all_orders")
        super()._learn(X, sample_weight, shared)

    def _patterns(self):
        orders = range(1, self.k + 1) if self.all_orders else (self.k,)
        return [(Pattern(tuple(range(k)), k, presence=bool(self.presence)), 1.0) for k in orders]


class GappedSpectrum(PatternKernel):
    """The motif kernel: the inner product of the counts of the letters at the chosen places of a window.

    Parameters
    ----------
    mask : str or sequence of bool
        The window: '1' for a chosen place, '0' where any letter will do; zeros at the two ends are dropped.
    region : int, (int or None, int or None), optional
        Where to look: the first `region` letters, the last `-region` letters, or a slice; by default everywhere.
    presence : bool, default=False
        Whether a motif counts once, however often it occurs.
    alphabet : 'dna', 'rna', 'protein', str or Alphabet, optional
        The letters; by default they are inferred from the training samples.

    Examples
    --------
    >>> from multikernel.kernels import GappedSpectrum
    >>> GappedSpectrum("101", alphabet="dna")(["ACG", "ATG", "ATC"])
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """

    def __init__(self, mask="1", region=None, *, presence=False, alphabet=None):
        self.mask = mask
        self.region = region
        self.presence = presence
        self.alphabet = alphabet

    def _learn(self, X, sample_weight, shared):
        require_truth(self, "presence")
        try:
            chosen = _chosen(self.mask)
        except (TypeError, ValueError):
            chosen = np.empty(0, int)
        require(self, "mask", len(chosen) > 0, "zeros and ones with at least one 1, such as '11011'")
        region = self.region
        pair = isinstance(region, (tuple, list)) and len(region) == 2
        valid = region is None or (is_integer(region) and region != 0)
        valid = valid or (pair and all(end is None or is_integer(end) for end in region))
        require(self, "region", valid, "None, a non-zero integer or a pair (start, stop)")
        super()._learn(X, sample_weight, shared)

    def _patterns(self):
        chosen = _chosen(self.mask)
        places = tuple(int(p) for p in chosen - chosen[0])
        region = self.region
        if region is None or is_integer(region):
            region = (None, region) if region is None or region > 0 else (region, None)
        start, stop = (None if end is None else int(end) for end in region)
        return [(Pattern(places, places[-1] + 1, (start, stop), presence=bool(self.presence)), 1.0)]


class GappedKmer(PatternKernel):
    """The gapped k-mer kernel: every choice of k letters out of each window of l.

    Two windows of which t letters agree add binom(t, k).

    Parameters
    ----------
    l : int, default=10
        The length of a window.
    k : int, default=6
        The number of letters chosen from a window.
    alphabet : 'dna', 'rna', 'protein', str or Alphabet, optional
        The letters; by default they are inferred from the training samples.

    Examples
    --------
    >>> from multikernel.kernels import GappedKmer
    >>> GappedKmer(3, 2)(["ACG", "ACT", "AGT"])
    array([[3., 1., 0.],
           [1., 3., 1.],
           [0., 1., 3.]])
    """

    def __init__(self, l=10, k=6, *, alphabet=None):  # noqa: E741
        self.l = l
        self.k = k
        self.alphabet = alphabet

    def _learn(self, X, sample_weight, shared):
        require(self, "l", is_integer(self.l) and self.l >= 1, "a positive integer")
        require(self, "k", is_integer(self.k) and 1 <= self.k <= self.l, "an integer from 1 to l")
        super()._learn(X, sample_weight, shared)

    def _patterns(self):
        return [(Pattern(places, self.l), 1.0) for places in combinations(range(self.l), self.k)]


class Mismatch(PatternKernel):
    """The mismatch kernel: k-mers up to m mismatches.

    A k-mer that holds an unknown letter does not count.

    Parameters
    ----------
    k : int, default=5
        The length of the k-mers.
    m : int, default=1
        The number of mismatches.
    alphabet : 'dna', 'rna', 'protein', str or Alphabet, optional
        The letters; by default they are inferred from the training samples.

    Examples
    --------
    >>> from multikernel.kernels import Mismatch
    >>> Mismatch(2, 1, alphabet="dna")(["AA", "AC", "CC"])
    array([[7., 4., 2.],
           [4., 7., 4.],
           [2., 4., 7.]])
    """

    def __init__(self, k=5, m=1, *, alphabet=None):
        self.k = k
        self.m = m
        self.alphabet = alphabet

    def _learn(self, X, sample_weight, shared):
        require(self, "k", is_integer(self.k) and self.k >= 1, "a positive integer")
        require(self, "m", is_integer(self.m) and 0 <= self.m < self.k, "a non-negative integer below k")
        super()._learn(X, sample_weight, shared)

    def _patterns(self):
        k = self.k
        shared = [common_neighbours(k, self.m, k - t, self.alphabet_.size) for t in range(k + 1)]
        patterns = []
        for j in range(max(0, k - 2 * self.m), k + 1):
            factor = sum((-1) ** (j - t) * comb(j, t) * shared[t] for t in range(j + 1))
            patterns += [(Pattern(places, k, whole=True), float(factor)) for places in combinations(range(k), j)]
        return patterns


def motif_kernels(alphabet="protein") -> list[GappedSpectrum]:
    """Return the 64 motif kernels of Ong and Zien: 16 patterns of up to five places in 4 regions.

    The patterns are all masks of five places that begin with a chosen one; the regions are the whole sequence,
    its first 15, its first 60 and its last 15 letters.

    Examples
    --------
    >>> from multikernel.kernels import motif_kernels
    >>> len(motif_kernels()), motif_kernels()[17]
    (64, GappedSpectrum(alphabet='protein', mask='10001', region=15))
    """
    masks = ["1" + "".join(rest) for rest in product("01", repeat=4)]
    return [GappedSpectrum(mask, region, alphabet=alphabet) for region in (None, 15, 60, -15) for mask in masks]


def common_neighbours(k: int, m: int, h: int, size: int) -> int:
    """Return how many k-mers differ in at most m letters from each of two k-mers that differ in h.

    Examples
    --------
    >>> from multikernel.kernels.sequences.spectrum import common_neighbours
    >>> [common_neighbours(5, 1, h, 4) for h in range(4)]
    [16, 4, 2, 0]
    """
    total = 0
    for i in range(k - h + 1):  # other than both where they agree
        both = comb(k - h, i) * (size - 1) ** i
        for p in range(h + 1):  # as the first where they differ
            for q in range(h - p + 1):  # as the second
                if i + h - p <= m and i + h - q <= m:
                    r = h - p - q
                    ways = factorial(h) // (factorial(p) * factorial(q) * factorial(r))
                    total += both * ways * (size - 2) ** r
    return total


def _chosen(mask) -> np.ndarray:
    """Return the chosen places of a mask."""
    values = [int(value) for value in mask]
    if not set(values) <= {0, 1}:
        raise ValueError("A mask must hold zeros and ones.")
    return np.flatnonzero(values)


def _scaled(K: np.ndarray, factor: float) -> np.ndarray:
    return K if factor == 1.0 else factor * K.astype(np.float64)
