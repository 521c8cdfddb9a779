"""Weighted degree kernels on a million sequences: tries in training, and sums over support vectors at test time.

    f(x) = sum over places l and lengths d of  w_ld sum {a_i : x_i and x agree on the d letters from l on}

At test time the new sequences are sorted together with the support vectors, one place at a time. So every d-mer that a
new sequence shares with a support vector counts, also one that occurs in a single training sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from multikernel.gram.degrees import DegreeSource
from multikernel.gram.trie_loops import add_place, score_place
from multikernel.gram.tries import Walk
from multikernel.kernels.sequences.degree import WeightedDegree
from multikernel.kernels.sequences.planes import count_masked, mirror, pack_mask, pack_planes
from multikernel.threads import BLOCK_BYTES, ROWS

_NO_SHIFT = np.zeros(1, np.int64)


class AgreementSource(DegreeSource):
    """A `DegreeSource` that compares pairs of sequences bit by bit, as the kernels do."""

    def __init__(self, codes, size, weight, kernel=None, n_kernels=None):
        super().__init__(codes, size, weight, kernel, n_kernels)
        self._planes = pack_planes(self.codes, self.size)
        self._like, self._masks = place_groups(self.weight, self.kernel)

    @property
    def nbytes(self):
        return super().nbytes + self._planes.nbytes

    def pairs(self, coef, rows, G):
        m = len(rows)
        weights = (coef[self.kernel[self._like]] * self.weight[self._like])[:, None, 1:]
        out = np.empty((len(self._like), m, m))
        planes = self._planes[rows]
        _count(planes, planes, True, self._masks, weights, out)
        total = out.sum(axis=0) if len(out) > 1 else out[0]
        mirror(total)
        G += total


def _count(left, right, lower: bool, masks: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """out[q] = sum over the places of group q of the weights of the d-mers that agree there."""
    each = np.arange(len(masks) + 1)
    spans = np.array([weights.shape[2]])
    count_masked(left, right, lower, 0, len(left), _NO_SHIFT, masks, weights, each, each[:-1], spans, out)


def place_groups(weight: np.ndarray, kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Group the places whose lengths have the same weights and kernels, up to the lengths that end with the sequence.

    Returns
    -------
    like : ndarray of int
        One place of each group.
    masks : uint64 array (Q, 1, W)
        The places of each group.
    """
    places = len(weight)
    groups: list[list[int]] = []
    for place in range(places):
        full = min(weight.shape[1] - 1, places - place) + 1
        for group in groups:
            first = group[0]
            same = np.array_equal(weight[place, :full], weight[first, :full])
            counted = weight[place, :full] > 0
            if same and np.array_equal(kernel[place, :full][counted], kernel[first, :full][counted]):
                group.append(place)
                break
        else:
            groups.append([place])
    masks = [pack_mask(np.isin(np.arange(places), group)) for group in groups]
    return np.array([group[0] for group in groups]), np.array(masks)[:, None]


def place_weights(kernels: Sequence[WeightedDegree]) -> np.ndarray:
    """Return w_ld of each kernel, shape (p, L, D), D the largest degree."""
    degree = max(kernel.degree for kernel in kernels)
    out = np.zeros((len(kernels), kernels[0].length_, degree))
    for own, kernel in zip(out, kernels, strict=True):
        own[:, : kernel.degree] = np.outer(kernel._inside(), kernel._beta())
    return out


@dataclass(frozen=True)
class PlaceModel:
    """The outputs of a weighted sum of weighted degree kernels on new sequences.

    Attributes
    ----------
    codes : uint8 array (m, L)
        The support vectors.
    size : int
        Number of letters.
    coef : ndarray of shape (m, T)
        Coefficients of the support vectors in T problems.
    weight : ndarray of shape (T, L, D)
        sum_k c_tk w_ld.
    """

    codes: np.ndarray
    size: int
    coef: np.ndarray
    weight: np.ndarray

    def evaluate(self, codes: np.ndarray) -> np.ndarray:
        """Return the outputs, shape (n, T)."""
        # comparing a block of new sequences with all support vectors takes less time than sorting these
        return self._by_pairs(codes) if len(codes) <= ROWS else self._by_sorting(codes)

    def _by_sorting(self, codes: np.ndarray) -> np.ndarray:
        m, out = len(self.codes), np.zeros((self.coef.shape[1], len(codes)))
        cum = np.zeros((*self.weight.shape[:2], self.weight.shape[2] + 1))
        np.cumsum(self.weight, axis=2, out=cum[:, :, 1:])
        coef = np.ascontiguousarray(self.coef.T)
        walk = Walk(np.concatenate([self.codes, codes]), self.size, self.weight.shape[2])
        shape = walk.starts, walk.direct, walk.bits
        for place, leaf, links, _, _ in walk:
            for t, a in enumerate(coef):
                T = np.zeros(int(walk.starts[-1]) + len(links))
                add_place(leaf, links, *shape, a, T)
                score_place(leaf, links, *shape, T, cum[t, place], m, out[t])
        return out.T

    def _by_pairs(self, codes: np.ndarray) -> np.ndarray:
        left, right = pack_planes(codes, self.size), pack_planes(self.codes, self.size)
        out = np.zeros((len(codes), self.coef.shape[1]))
        for t, weight in enumerate(self.weight):
            padded = np.pad(weight, ((0, 0), (1, 0)))
            like, masks = place_groups(padded, np.zeros(padded.shape, int))
            weights = np.ascontiguousarray(weight[like][:, None])
            size = max(1, BLOCK_BYTES // (8 * max(1, len(right)) * len(like)))
            for start in range(0, len(codes), size):
                part = left[start : start + size]
                K = np.empty((len(like), len(part), len(right)))
                if K.size:
                    _count(part, right, False, masks, weights, K)
                out[start : start + size, t] = K.sum(axis=0) @ self.coef[:, t]
        return out
