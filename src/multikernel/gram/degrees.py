"""Weighted degree kernels by their explicit features: one indicator for every place l and d-mer, sorted into tries.

    K_k(i, j) = sum over (l, d) of kernel k of  w_ld [x_i and x_j agree on the d letters from l on]

Exact, without hashing: the features that several samples share are nodes of the tries of `multikernel.gram.tries`,
those of one sample alone only touch the diagonal.
"""

from __future__ import annotations

import numpy as np

from multikernel.gram import trie_loops
from multikernel.gram.sources import SAMPLES, Source
from multikernel.gram.tries import MAX_DEGREE, Walk


class DegreeSource(Source):
    """Kernels that are sums over places and lengths.

    Parameters
    ----------
    codes : ndarray of shape (n, L), uint8
        Letters 0, ..., size - 1, and ``size`` for an unknown one, which agrees with nothing.
    size : int
        Number of letters.
    weight : ndarray of shape (L, D)
        w_ld, not negative.
    kernel : ndarray of int, shape (L, D), optional
        The kernel that counts (l, d), -1 for none; one kernel for all by default.
    n_kernels : int, optional
        Number of kernels, where some may count nothing.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.array([[0, 1, 2], [0, 1, 3], [3, 1, 2]], np.uint8)
    >>> source = DegreeSource(codes, 4, np.ones((3, 2)))
    >>> source.cross(np.arange(3))[0]
    array([[5., 3., 3.],
           [3., 5., 1.],
           [3., 1., 5.]])
    """

    batch = 256

    def __init__(
        self,
        codes: np.ndarray,
        size: int,
        weight: np.ndarray,
        kernel: np.ndarray | None = None,
        n_kernels: int | None = None,
    ) -> None:
        self.codes, self.size = np.ascontiguousarray(codes, np.uint8), int(size)
        n, places = self.codes.shape
        degree = weight.shape[1]
        if degree > MAX_DEGREE:
            raise ValueError(
                f"Explicit features of a weighted degree kernel take a degree up to {MAX_DEGREE}. Got {degree} instead."
            )
        kernel = np.zeros(weight.shape, np.intp) if kernel is None else np.asarray(kernel, np.intp)
        # column d for the length d, column 0 for nothing
        self.weight, self.kernel = np.zeros((places, degree + 1)), np.zeros((places, degree + 1), np.intp)
        self.weight[:, 1:] = np.where(kernel >= 0, weight, 0.0)
        self.kernel[:, 1:] = np.maximum(kernel, 0)
        self.n_samples = n
        self.n_kernels = int(kernel.max()) + 1 if n_kernels is None else n_kernels
        self._last: tuple[np.ndarray, np.ndarray] | None = None
        self._make_tries(degree)

    def _make_tries(self, degree: int) -> None:
        """Make the tries, and what single features add to the diagonal."""
        n, places = self.codes.shape
        walk = Walk(self.codes, self.size, degree)
        self.direct, self.bits, self.starts = walk.direct, walk.bits, walk.starts
        self.leaf = np.empty((places, n), np.uint32)
        self.single = np.zeros((self.n_kernels, n))
        whole = ~np.any(self.codes >= self.size, axis=1)
        # without unknown letters every sample has the same diagonal
        self._diag_of_whole = np.zeros(self.n_kernels)
        self._with_unknown = np.flatnonzero(~whole)
        self._unknown_diag = np.zeros((self.n_kernels, len(self._with_unknown)))
        links = [np.empty(0, np.uint32)] * places
        for place, leaf, link, depth, reach in walk:
            self.leaf[place] = leaf
            links[place] = link
            w, k = self.weight[place], self.kernel[place]
            trie_loops.add_lengths(depth, reach, w, k, self.single)
            full = min(degree, places - place)
            np.add.at(self._diag_of_whole, k[1 : full + 1], w[1 : full + 1])
            if len(self._with_unknown):
                zero = np.zeros(len(self._with_unknown), np.uint8)
                trie_loops.add_lengths(zero, reach[self._with_unknown], w, k, self._unknown_diag)
        self._groups, self._stride, self._size = trie_loops.table_layout(self.direct, self.bits)
        self._links = links
        # a pair for every node with a link
        sizes = [self._size + 2 * len(link) for link in links]
        self.at = np.concatenate([[0], np.cumsum(sizes)])

    @property
    def nbytes(self):
        single = 0 if self.single is None else self.single.nbytes
        return self.leaf.nbytes + sum(link.nbytes for link in self._links) + single + self.codes.nbytes

    @property
    def terms(self):
        return self.weight.size

    @property
    def _shape(self) -> tuple:
        return self.at, self._size, self._groups, self._stride, self.starts, self.direct, self.bits

    def diag(self):
        out = np.repeat(self._diag_of_whole[:, None], self.n_samples, axis=1)
        out[:, self._with_unknown] = self._unknown_diag
        return out

    def tables(self):
        T = np.zeros(self.at[-1])
        for place, link in enumerate(self._links):
            T[self.at[place] + self._size + 1 : self.at[place + 1] : 2] = link
        return T

    def _running(self, coef: np.ndarray) -> np.ndarray:
        """Running sums over d of coef_k w_ld, shape (L, D + 1); kept until other coefficients come."""
        if self._last is None or self._last[0] is not coef:
            self._last = coef, np.cumsum(coef[self.kernel] * self.weight, axis=1)
        return self._last[1]

    def score(self, T, coef, rows, out):
        trie_loops.score(self.leaf, T, *self._shape, self._running(coef), rows, out)

    def add(self, T, rows, delta, q):
        growth = np.zeros(self.weight.shape)
        trie_loops.add(self.leaf, T, *self._shape, rows, delta, growth)
        np.add.at(q, self.kernel, self.weight * growth)

    def pairs(self, coef, rows, G):
        trie_loops.pairs(self.codes, self.size, self._running(coef), rows, G)

    def outputs(self, T, lo, hi):
        out = np.empty((self.n_kernels, hi - lo))
        for a in range(lo, hi, SAMPLES):
            b = min(a + SAMPLES, hi)
            F = np.zeros((b - a, self.n_kernels))
            trie_loops.outputs(self.leaf, T, *self._shape, self.weight, self.kernel, a, b, F)
            out[:, a - lo : b - lo] = F.T
        return out

    def take(self, idx):
        return type(self)(self.codes[idx], self.size, self.weight[:, 1:], self.kernel[:, 1:], self.n_kernels)

    def cross(self, rows):
        out = np.zeros((self.n_kernels, len(rows), self.n_samples))
        for r, i in enumerate(rows):
            trie_loops.add_agreements(self.codes, self.size, self.codes[i], self.weight, self.kernel, out[:, r])
        return out
