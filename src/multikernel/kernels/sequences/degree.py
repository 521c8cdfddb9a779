"""Weighted degree kernels: d-mers that agree in place.

    k(x, z) = sum_{d=1..D} beta_d sum_l [x_l..x_{l+d-1} = z_l..z_{l+d-1}],        beta_d = 2 (D - d + 1) / (D (D + 1))

and with shifts up to S, delta_s = 1 / (2 (s + 1)),

    k(x, z) = sum_d beta_d sum_l sum_{s=0..S(l)} delta_s ([x at l + s, z at l agree] + [x at l, z at l + s agree])

on sequences of one length. The Gram matrices are computed bit by bit (`multikernel.kernels.sequences.planes`).

Without shift the features are the d-mers with their places. With one shift S for all places the matrix over places is
Toeplitz with the symbol 1 + sum_{s=1..S} cos(s t) / (s + 1) >= 1/2 (Rogosinski and Szegoe 1928), hence both kernels are
positive semidefinite. With a shift for each place that matrix is formed and its smallest eigenvalue decides.

References
----------
G. Raetsch, S. Sonnenburg. Accurate splice site detection for C. elegans. Kernel Methods in Computational Biology, 2004.
G. Raetsch, S. Sonnenburg, B. Schoelkopf. RASE. Bioinformatics 21, 2005. doi:10.1093/bioinformatics/bti1053.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from multikernel.kernels.base import ROUNDING, is_integer, is_real, require
from multikernel.kernels.sequences.base import SequenceKernel, share_rows
from multikernel.kernels.sequences.planes import (
    LANES,
    count_masked,
    count_plain,
    mirror,
    n_words,
    pack_mask,
    pack_planes,
)
from multikernel.kernels.sequences.samples import Sequences
from multikernel.threads import BLOCK_BYTES


class _DegreeKernel(SequenceKernel):
    """A kernel that counts d-mers which agree, at some shifts."""

    _one_length = True

    def _learn(self, X, sample_weight, shared):
        require(self, "degree", is_integer(self.degree) and self.degree >= 1, "a positive integer")
        weights = self.weights
        if weights is not None:
            values = list(np.ravel(weights)) if np.ndim(weights) == 1 else []
            valid = len(values) == self.degree and all(is_real(v) and v >= 0 for v in values)
            require(self, "weights", valid, f"None or {self.degree} non-negative numbers, one for each degree")
        if self.window is not None:
            pair = isinstance(self.window, (tuple, list)) and len(self.window) == 2
            valid = pair and all(is_integer(v) for v in self.window) and 0 <= self.window[0] < self.window[1]
            require(self, "window", valid, "None or a pair (start, stop) of positions with 0 <= start < stop")

    def _beta(self) -> np.ndarray:
        """Return the weights of the degrees 1, ..., D."""
        if self.weights is not None:
            return np.asarray(self.weights, np.float64)
        D = self.degree
        return 2.0 * (D - np.arange(D)) / (D * (D + 1.0))

    def _inside(self) -> np.ndarray:
        """Return which positions are in the window."""
        start, stop = (0, self.length_) if self.window is None else self.window
        places = np.arange(self.length_)
        return (places >= start) & (places < stop)

    def _shifts(self) -> np.ndarray:
        """Return the shifts r: x at t + r is compared with z at t."""
        raise NotImplementedError

    def _starts(self, r: int) -> np.ndarray:
        """Return where the d-mers of z may begin at shift r."""
        raise NotImplementedError

    def _factor(self, r: int) -> float:
        """Return the weight of shift r."""
        raise NotImplementedError

    def _key(self) -> tuple:
        """Return the type and the parameters: kernels with one key are the same."""
        weights = None if self.weights is None else tuple(float(weight) for weight in self.weights)
        return type(self), self.degree, weights, None if self.window is None else tuple(self.window)

    @classmethod
    def _of(cls, length, degree, weights, window, *shift):
        """Return a kernel with these parameters, as if fitted on sequences of this length."""
        kernel = cls(degree, *shift, weights=weights, window=window)
        kernel.length_ = length
        return kernel

    def _anywhere(self) -> bool:
        """Whether d-mers may begin at every place."""
        return bool(self._inside().all())

    def _sharing_key(self):
        """Kernels with the same key count the same d-mers."""
        return type(self), self.alphabet_, self.length_, tuple(self._shifts())

    def _shared_blocks(self, kernels, X, Y, symmetric, dtype):
        size = max(1, BLOCK_BYTES // (8 * max(1, len(X)) * max(1, len(Y))))
        for i in range(0, len(kernels), size):
            yield from agreements(kernels[i : i + size], X, Y, symmetric)

    def _train(self, X):
        return agreements([self], X, X, True)[0]

    def _cross(self, X, Y):
        return agreements([self], X, Y, False)[0]

    def _diag(self, X):
        parts = [X[i : i + LANES] for i in range(0, len(X), LANES)]
        return np.concatenate([np.diagonal(self._cross(part, part)) for part in parts] or [np.empty(0)])


class WeightedDegree(_DegreeKernel):
    """The weighted degree kernel: d-mers, d = 1, ..., `degree`, that agree at the same place.

    Parameters
    ----------
    degree : int, default=20
        The largest length D of a d-mer.
    weights : sequence of float, optional
        beta_1, ..., beta_D; by default 2 (D - d + 1) / (D (D + 1)).
    window : (int, int), optional
        Count only d-mers that begin at a position in [start, stop).
    alphabet : 'dna', 'rna', 'protein', str or Alphabet, optional
        The letters; by default they are inferred from the training samples.

    Examples
    --------
    >>> from multikernel.kernels import WeightedDegree
    >>> WeightedDegree(2, weights=[1, 1])(["ACGT", "ACGA"])
    array([[7., 5.],
           [5., 7.]])
    """

    positive_semidefinite = True
    has_features = True

    def __init__(self, degree=20, weights=None, *, window=None, alphabet=None):
        self.degree = degree
        self.weights = weights
        self.window = window
        self.alphabet = alphabet

    def _shifts(self):
        return np.zeros(1, np.int64)

    def _diag(self, X):
        if len(X) and not self._codes(X).has_unknown:
            # where all letters are known k(x, x) is the same for every sequence
            return np.full(len(X), super()._diag(X[:1])[0])
        return super()._diag(X)

    def _starts(self, r):
        return self._inside()

    def _factor(self, r):
        return 1.0


class WeightedDegreeShift(_DegreeKernel):
    """The weighted degree kernel with shifts: d-mers that agree at places up to `shift` apart.

    Parameters
    ----------
    degree : int, default=20
        The largest length D of a d-mer.
    shift : int or sequence of int, default=5
        The largest shift S, or one for each position; a pair of places belongs to the first of the two.
    weights : sequence of float, optional
        beta_1, ..., beta_D; by default 2 (D - d + 1) / (D (D + 1)).
    window : (int, int), optional
        Count only pairs of d-mers that both begin at a position in [start, stop).
    alphabet : 'dna', 'rna', 'protein', str or Alphabet, optional
        The letters; by default they are inferred from the training samples.

    Examples
    --------
    >>> from multikernel.kernels import WeightedDegreeShift
    >>> WeightedDegreeShift(1, shift=1)(["AC", "CA"])
    array([[2. , 0.5],
           [0.5, 2. ]])
    """

    def __init__(self, degree=20, shift=5, weights=None, *, window=None, alphabet=None):
        self.degree = degree
        self.shift = shift
        self.weights = weights
        self.window = window
        self.alphabet = alphabet

    def _learn(self, X, sample_weight, shared):
        super()._learn(X, sample_weight, shared)
        single = is_integer(self.shift) and self.shift >= 0
        several = np.ndim(self.shift) == 1 and all(is_integer(s) and s >= 0 for s in self.shift)
        require(self, "shift", single or several, "a non-negative integer, or one for each position")
        if several and len(self.shift) != self.length_:
            raise ValueError(
                f"The 'shift' parameter of {type(self).__name__} must hold one shift for each of the {self.length_} "
                f"positions. Got {len(self.shift)} instead."
            )

    @property
    def positive_semidefinite(self) -> bool:
        """True for one shift; otherwise whether the matrix over places is positive semidefinite."""
        if np.ndim(self.shift) == 0:
            return True
        reach = np.asarray(self.shift)
        L = len(reach)
        T = np.eye(L)
        for s in range(1, min(L, int(reach.max(initial=0)) + 1)):
            places = np.flatnonzero(reach[: L - s] >= s)
            T[places, places + s] = T[places + s, places] = 0.5 / (s + 1)
        return bool(np.linalg.eigvalsh(T)[0] >= -ROUNDING)

    def _key(self):
        return *super()._key(), int(self.shift) if np.ndim(self.shift) == 0 else tuple(int(s) for s in self.shift)

    def _anywhere(self):
        return np.ndim(self.shift) == 0 and super()._anywhere()

    def _reach(self) -> np.ndarray:
        """Return the largest shift of each position."""
        return np.broadcast_to(np.asarray(self.shift, np.int64), (self.length_,))

    def _shifts(self):
        largest = min(int(self._reach().max(initial=0)), self.length_ - 1)
        return np.array([r for s in range(largest + 1) for r in ((s, -s) if s else (0,))])

    def _starts(self, r):
        s, inside = abs(int(r)), self._inside()
        allowed = np.zeros(self.length_, bool)
        # l and l + s, in the positions of z: l for r >= 0, l + s for r < 0
        pair = (self._reach() >= s)[: self.length_ - s] & inside[: self.length_ - s] & inside[s:]
        allowed[max(0, -r) : max(0, -r) + len(pair)] = pair
        return allowed

    def _factor(self, r):
        return 0.5 / (abs(r) + 1.0) if r else 1.0


@dataclass(frozen=True)
class _Plan:
    """The arguments of `count_masked`, or `count_plain`, for kernels that count the same d-mers."""

    shifts: np.ndarray
    weights: np.ndarray
    spans: np.ndarray
    masks: np.ndarray
    group: np.ndarray
    order: np.ndarray
    # whether `count_plain` suffices: there is one kernel, and its d-mers may begin at every place
    plain: bool


@lru_cache(maxsize=64)
def _plan(length: int, keys: tuple) -> _Plan:
    """Make the plan of kernels of these types and parameters."""
    kernels = [kind._of(length, *parameters) for kind, *parameters in keys]
    shifts = kernels[0]._shifts()
    weights = np.zeros((len(kernels), len(shifts), max(kernel.degree for kernel in kernels)))
    masks = []
    for m, kernel in enumerate(kernels):
        weights[m, :, : kernel.degree] = np.outer([kernel._factor(r) for r in shifts], kernel._beta())
        masks.append(np.array([pack_mask(kernel._starts(r)) for r in shifts]))
    used = np.flatnonzero(weights.any(axis=(0, 1)))
    spans = np.full(len(shifts), used[-1] + 1 if len(used) else 1)
    # kernels of one mask stand together
    words = [mask.tobytes() for mask in masks]
    order = np.array(sorted(range(len(words)), key=words.__getitem__))
    borders = [i for i in range(1, len(order)) if words[order[i]] != words[order[i - 1]]]
    group = np.array([0, *borders, len(order)])
    plain = len(kernels) == 1 and n_words(length) % 4 == 0 and kernels[0]._anywhere()
    return _Plan(shifts, weights[order], spans, np.array(masks)[order[group[:-1]]], group, order, plain)


def agreements(kernels: Sequence[_DegreeKernel], X: Sequences, Y: Sequences, symmetric: bool) -> np.ndarray:
    """Return the values of several kernels that count the same d-mers, shape (M, len(X), len(Y)).

    Parameters
    ----------
    kernels : sequence of kernels
        Fitted kernels of one `_sharing_key`.
    X, Y : Sequences
        Samples.
    symmetric : bool
        Whether Y is X.
    """
    left = _planes(kernels[0], X)
    right = left if symmetric else _planes(kernels[0], Y)
    plan = _plan(kernels[0].length_, tuple(kernel._key() for kernel in kernels))
    out = np.empty((len(kernels), len(left), len(right)))

    def work(first: int, last: int) -> None:
        where = (left, right, symmetric, first, last, plan.shifts)
        if plan.plain:
            count_plain(*where, plan.weights[0], plan.spans, out[0])
        else:
            count_masked(*where, plan.masks, plan.weights, plan.group, plan.order, plan.spans, out)

    if out.size:
        share_rows(len(left), work, lower=symmetric)
    if symmetric:
        for K in out:
            mirror(K)
    return out


def _planes(kernel: _DegreeKernel, X: Sequences) -> np.ndarray:
    """Return the planes of the chosen sequences."""
    if not len(X):
        return np.zeros((0, 3, n_words(kernel.length_)), np.uint64)
    codes = kernel._codes(X)
    if codes.length is None:
        # the store also holds sequences of other lengths
        chosen = codes.take(X.index)
        return pack_planes(chosen.matrix(), chosen.alphabet.size)
    planes = X.prepared(("planes", codes.alphabet), lambda: pack_planes(codes.matrix(), codes.alphabet.size))
    return planes if X.rows is None else planes[X.rows]
