"""The explicit features of kernels that have them: k(x, z) = <phi(x), phi(z)>.

    Linear                        x itself
    Polynomial                    the monomials up to its degree, each with the square root of its coefficient
    RandomFourier, Nystroem,      the features that define them
    HashedDegree
    Spectrum, GappedSpectrum,     the counts of their patterns
    GappedKmer
    WeightedDegree                places and d-mers, exactly, by tries (`multikernel.kernels.degree_features`)

`FeatureMaps` holds the feature maps of the kernels of one bank: sources of features for `FeatureGram` in training, and
outputs on other samples afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial
from typing import Any

import numpy as np
from scipy import sparse

from multikernel.gram.sources import DenseSource, Source, SparseSource
from multikernel.kernels.approximate import FeatureKernel, code_matrix
from multikernel.kernels.bank import KernelBank
from multikernel.kernels.base import row_blocks
from multikernel.kernels.degree_features import AgreementSource, PlaceModel, place_weights
from multikernel.kernels.inputs import dense, len_of, take_rows
from multikernel.kernels.sequences.degree import WeightedDegree
from multikernel.kernels.sequences.kmers import count_patterns
from multikernel.kernels.sequences.samples import KEEP_BYTES
from multikernel.kernels.sequences.spectrum import PatternKernel
from multikernel.kernels.vectors import Polynomial


class _Matrix:
    """Features of one kernel as the columns of a matrix."""

    def __init__(self, kernel, X) -> None:
        self.kernel = kernel
        self.keys: list = []
        if isinstance(kernel, PatternKernel):
            X = kernel._check(X)
            # only patterns of the training samples have a weight
            self.keys = [self._count(X, pattern) for pattern, _ in kernel._patterns()]
            self.keys = [(counts.n_ids, counts.keys) for counts in self.keys]

    def _count(self, X, pattern):
        encoded = self.kernel._codes(X)
        return count_patterns(encoded if X.rows is None else encoded.take(X.rows), pattern)

    def __call__(self, X):
        """Return the features of samples, a dense array or a CSR array."""
        kernel = self.kernel
        X = kernel._check(X)
        if isinstance(kernel, FeatureKernel):
            return kernel._features(X)
        if isinstance(kernel, Polynomial):
            return _monomials(dense(X), kernel)
        return self._counts(X) if isinstance(kernel, PatternKernel) else X

    def _counts(self, X):
        parts = []
        for (pattern, factor), (n_ids, keys) in zip(self.kernel._patterns(), self.keys, strict=True):
            counts = self._count(X, pattern)
            ids, values = counts.ids.astype(np.int64), np.sqrt(factor) * counts.counts
            if keys is not None:
                place = np.minimum(np.searchsorted(keys, counts.keys), max(len(keys) - 1, 0))
                known = keys[place] == counts.keys if len(keys) else np.zeros(len(counts.keys), bool)
                values = np.where(known[ids], values, 0.0)
                ids = np.where(known, place, 0)[ids]
            parts.append(sparse.csr_array((values, ids, counts.indptr), (len(X), max(n_ids, 1))))
        return sparse.hstack(parts, format="csr")


def _union(keys: Sequence[np.ndarray]) -> tuple[int, np.ndarray]:
    """Return how many patterns there are in several lists, and which."""
    every = np.unique(np.concatenate(keys))
    return len(every), every


def _monomials(X: np.ndarray, kernel: Polynomial) -> np.ndarray:
    """x^j times the root of r! / (prod j_c! (r - |j|)!) gamma^|j| coef0^(r - |j|), for every |j| <= r, the degree."""
    n, d = X.shape
    columns = []
    for size in range(kernel.degree + 1):
        constant = kernel.gamma_**size * kernel.coef0 ** (kernel.degree - size)
        for chosen in combinations_with_replacement(range(d), size):
            counts = np.bincount(np.array(chosen, np.intp), minlength=1)
            ways = factorial(kernel.degree) / factorial(kernel.degree - size)
            ways /= np.prod([factorial(int(c)) for c in counts])
            monomial = np.prod(X[:, chosen], axis=1) if size else np.ones(n)
            columns.append(np.sqrt(ways * constant) * monomial)
    return np.column_stack(columns)


@dataclass(frozen=True)
class _Degrees:
    """Weighted degree kernels on the same sequences, no two of which count the same (place, length)."""

    kernels: list[int]
    weight: np.ndarray


class FeatureMaps:
    """The feature maps of the kernels of a bank.

    Parameters
    ----------
    bank : KernelBank
        Fitted kernels, all with features.
    X : samples
        The training samples.
    """

    def __init__(self, bank: KernelBank, X: Any) -> None:
        self.bank = bank
        self.degrees = self._degree_groups()
        taken = {k for group in self.degrees for k in group.kernels}
        others = [k for k in range(bank.n_kernels) if k not in taken]
        self.matrices = {k: _Matrix(bank.kernels[k], bank.select(k, X)) for k in others}
        # features of two samples: whether they are sparse, and how many there are
        self._examples = {k: self._features(k, take_rows(X, slice(0, 2))) for k in others}

    def _degree_groups(self) -> list[_Degrees]:
        alike: dict = {}
        for k, kernel in enumerate(self.bank.kernels):
            if isinstance(kernel, WeightedDegree):
                alike.setdefault((self.bank.columns[k], kernel.alphabet_, kernel.length_), []).append(k)
        groups: list[_Degrees] = []
        for members in alike.values():
            weights = place_weights([self.bank.kernels[k] for k in members])
            left = list(range(len(members)))
            while left:
                chosen, counted = [], np.zeros(weights.shape[1:], bool)
                for j in left:
                    if not np.any(counted & (weights[j] > 0)):
                        chosen.append(j)
                        counted |= weights[j] > 0
                groups.append(_Degrees([members[j] for j in chosen], weights[chosen]))
                left = [j for j in left if j not in chosen]
        return groups

    def sources(self, X: Any, memory: float = np.inf) -> Iterator[tuple[Source, np.ndarray]]:
        """Yield the sources on training samples, each with the numbers of its kernels.

        Dense features are kept as long as they take no more than ``memory`` bytes, in float32 where they would take
        more than `KEEP_BYTES` in float64; otherwise they are computed whenever they are read.
        """
        for group in self.degrees:
            first = self.bank.kernels[group.kernels[0]]
            codes = code_matrix(first, self.bank.select(group.kernels[0], X))
            # the kernel that counts each place and length
            kernel = np.where(group.weight.any(axis=0), group.weight.argmax(axis=0), -1)
            source = AgreementSource(codes, first.alphabet_.size, group.weight.sum(axis=0), kernel, len(group.kernels))
            yield source, np.array(group.kernels)
        for make, is_sparse in ((self._sparse, True), (self._dense, False)):
            kernels = [k for k, example in self._examples.items() if sparse.issparse(example) == is_sparse]
            if kernels:
                column = np.repeat(np.arange(len(kernels)), [self._examples[k].shape[1] for k in kernels])
                yield make(X, kernels, column, memory), np.array(kernels)

    @property
    def grows(self) -> bool:
        """Whether there are features that only samples bring: patterns that are too many to be counted beforehand."""
        return any(keys is not None for matrix in self.matrices.values() for _, keys in matrix.keys)

    def patterns(self) -> dict[int, list]:
        """Return the patterns that are counted, by kernel: for each kind how many, and which."""
        return {k: matrix.keys for k, matrix in self.matrices.items() if matrix.keys}

    def with_patterns(self, found: Sequence[dict[int, list]]) -> FeatureMaps:
        """Return the maps that count all patterns that were found in several parts of the training samples."""
        new = copy(self)
        new.matrices, new._examples = dict(self.matrices), dict(self._examples)
        for k, own in self.patterns().items():
            new.matrices[k] = copy(self.matrices[k])
            new.matrices[k].keys = [
                pair if pair[1] is None else _union([part[k][kind][1] for part in found])
                for kind, pair in enumerate(own)
            ]
            columns = sum(max(count, 1) for count, _ in new.matrices[k].keys)
            new._examples[k] = sparse.csr_array((2, columns))
        return new

    def _features(self, k: int, X: Any):
        return self.matrices[k](self.bank.select(k, X))

    def _sparse(self, X, kernels, column, memory) -> Source:
        return SparseSource(sparse.hstack([self._features(k, X) for k in kernels], format="csr"), column)

    def _dense(self, X, kernels, column, memory) -> Source:
        n = len_of(X)
        kind = np.float64 if n * len(column) * 8 <= KEEP_BYTES else np.float32

        def features(rows):
            part = take_rows(X, rows)
            return np.hstack([self._features(k, part) for k in kernels]).astype(kind, copy=False)

        if n * len(column) * np.dtype(kind).itemsize > memory:
            return DenseSource(features, column, n)
        kept = np.empty((n, len(column)), kind)
        for rows in row_blocks(n, 8 * len(column)):
            kept[rows] = features(rows)
        return DenseSource(kept, column)

    def model(self, X: Any, weights: np.ndarray, coef: np.ndarray) -> FeatureModel:
        """Return what evaluates sum_k weights_tk K_k(., X) coef_t on other samples.

        Parameters
        ----------
        X : samples
            The training samples.
        weights : ndarray of shape (T, p)
            Weights of the raw kernels in T problems.
        coef : ndarray of shape (n, T)
            Coefficients.
        """
        kept = np.flatnonzero(coef.any(axis=1))
        places, vectors = [], {}
        for group in self.degrees:
            own = weights[:, group.kernels]
            if own.any() and len(kept):
                first = self.bank.kernels[group.kernels[0]]
                codes = code_matrix(first, self.bank.select(group.kernels[0], X))[kept]
                mixed = np.tensordot(own, group.weight, 1)
                places.append((group.kernels[0], PlaceModel(codes, first.alphabet_.size, coef[kept], mixed)))
        for k in self.matrices:
            if weights[:, k].any() and len(kept):
                w: Any = 0.0
                for part in row_blocks(len(kept), 8 * self._examples[k].shape[1]):
                    rows = kept[part]
                    w = w + self._features(k, take_rows(X, rows)).T @ coef[rows]
                vectors[k] = np.asarray(w) * weights[:, k]
        return FeatureModel(self, places, vectors, coef.shape[1])


@dataclass(frozen=True)
class FeatureModel:
    """A function of explicit features: weight vectors, and support vectors of weighted degree kernels."""

    maps: FeatureMaps
    places: list[tuple[int, PlaceModel]]
    vectors: dict[int, np.ndarray]
    n_problems: int

    def evaluate(self, X: Any) -> np.ndarray:
        """Return the outputs, shape (n, T)."""
        n, bank = len_of(X), self.maps.bank
        out = np.zeros((n, self.n_problems))
        for k, model in self.places:
            out += model.evaluate(code_matrix(bank.kernels[k], bank.select(k, X)))
        for k, w in self.vectors.items():
            for rows in row_blocks(n, 8 * len(w)):
                out[rows] += self.maps._features(k, take_rows(X, rows)) @ w
        return out
