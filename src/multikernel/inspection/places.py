"""What support sequences say of every place and length: the sums behind scores, motifs and profiles.

    s_ld(x) = sum_i a_i [x and x_i agree on the d letters from l on]

The samples are sorted by their letters from l on, for l = L - 1, ..., 0 (`multikernel.gram.tries`); those that agree
on d letters are then neighbours, and a sum over them is one pass. A shift by r moves the letters of the support
sequence: what is at t of x_i is compared with what is at t + r of x, and belongs to t + r, the place in the sequence
that is scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from multikernel.gram.tries import sort_place


@dataclass(frozen=True, eq=False)
class Layer:
    """One kernel, or several of the same coefficients, in one output.

    Attributes
    ----------
    coef : ndarray of shape (m,)
        a_i times what multiplies the kernel.
    weight : ndarray of shape (L, D)
        Weight of a d-mer at each place of the sequence that is scored.
    reach : ndarray of shape (R, L)
        Factor of each shift there.
    dual : ndarray of shape (m,)
        a_i, times what a unit diagonal divides the i-th sequence by.
    factor : callable or None
        Returns of samples what a unit diagonal divides each of them by.
    """

    coef: np.ndarray
    weight: np.ndarray
    reach: np.ndarray
    dual: np.ndarray
    factor: Callable[[Any], np.ndarray] | None = None


@dataclass(frozen=True, eq=False)
class Here:
    """What is known of one place: sums s_ld of a layer for some lengths, samples in sorted order."""

    layer: Layer
    degrees: np.ndarray
    sums: np.ndarray


# place, samples sorted by their letters from there on, agreements of neighbours, letters up to an unknown one, sums
Step = tuple[int, np.ndarray, np.ndarray, np.ndarray, list[Here]]


@dataclass(frozen=True, eq=False)
class PlaceTerms:
    """The weighted degree kernels of one column in one output.

    Attributes
    ----------
    kernel : int
        One of them in the bank: it reads the letters.
    codes : uint8 array (m, L)
        The support sequences.
    letters : str
        The alphabet.
    shifts : int array (R,)
        The shifts, 0 first.
    layers : list of Layer
        The kernels.
    """

    kernel: int
    codes: np.ndarray
    letters: str
    shifts: np.ndarray
    layers: Sequence[Layer]

    @property
    def degree(self) -> int:
        """The largest length D of a d-mer."""
        return max(layer.weight.shape[1] for layer in self.layers)

    def walk(self, other: np.ndarray | None = None) -> Iterator[Step]:
        """Yield (l, order, lcp, reach, sums of the layers) for l = L - 1, ..., 0.

        Samples are the support sequences at every shift, then those of ``other`` (n, L). Order and agreements are
        written over in the next step.
        """
        size, (m, length) = len(self.letters), self.codes.shape
        parts = [_moved(self.codes, int(r), size) for r in self.shifts]
        codes = np.concatenate(parts if other is None else [*parts, other])
        n = len(codes)
        order, lcp = np.arange(n, dtype=np.uint32), np.zeros(n, np.uint8)
        fresh_order, fresh_lcp = np.empty_like(order), np.empty_like(lcp)
        reach, a = np.zeros(n, np.uint8), np.zeros(n)
        for place in range(length - 1, -1, -1):
            column = np.ascontiguousarray(codes[:, place])
            sort_place(column, size, self.degree, order, lcp, fresh_order, fresh_lcp)
            order, lcp, fresh_order, fresh_lcp = fresh_order, fresh_lcp, order, lcp
            reach = np.where(column < size, np.minimum(reach, self.degree - 1) + 1, 0).astype(np.uint8)
            here = []
            for layer in self.layers:
                degrees = np.flatnonzero(layer.weight[place]) + 1
                if len(degrees) and layer.reach[:, place].any():
                    a[: m * len(self.shifts)] = np.multiply.outer(layer.reach[:, place], layer.coef).ravel()
                    sums = np.empty((len(degrees), n))
                    run_sums(lcp, reach[order], a[order], degrees, sums)
                    here.append(Here(layer, degrees, sums))
            yield place, order, lcp, reach, here

    def scores(self, codes: np.ndarray, factors: Sequence[np.ndarray | None]) -> np.ndarray:
        """Return what every position of other sequences adds to the output, shape (n, L).

        Parameters
        ----------
        codes : uint8 array (n, L)
            The sequences.
        factors : sequence of ndarray or None
            For every layer, what multiplies each of them.
        """
        length = codes.shape[1]
        own = dict(zip(map(id, self.layers), factors, strict=True))
        out = np.zeros(codes.shape)
        for place, order, _, _, here in self.walk(codes):
            at = _ranks(order)[len(order) - len(codes) :]
            total = np.zeros((self.degree, len(codes)))
            for each in here:
                part = each.sums[:, at] * (each.layer.weight[place, each.degrees - 1] / each.degrees)[:, None]
                factor = own[id(each.layer)]
                total[each.degrees - 1] += part if factor is None else part * factor
            # the j-th letter of a d-mer has its d-th part, for every d > j
            width = min(self.degree, length - place)
            out[:, place : place + width] += np.cumsum(total[width - 1 :: -1], axis=0)[::-1].T
        return out

    def energies(self) -> np.ndarray:
        """Return sum_i a_i w_ld s_ld(x_i) over the layers, shape (L, D)."""
        out = np.zeros((self.codes.shape[1], self.degree))
        for place, order, _, _, here in self.walk():
            at = _ranks(order)[: len(self.codes)]
            for each in here:
                weight = each.layer.weight[place, each.degrees - 1]
                out[place, each.degrees - 1] += weight * (each.sums[:, at] @ each.layer.dual)
        return out


def _moved(codes: np.ndarray, r: int, size: int) -> np.ndarray:
    """Return the letters moved by r places to the right, unknown ones in their place."""
    if r == 0:
        return codes
    out = np.full_like(codes, size)
    if r > 0:
        out[:, r:] = codes[:, :-r]
    else:
        out[:, :r] = codes[:, -r:]
    return out


def _ranks(order: np.ndarray) -> np.ndarray:
    """Return the place of every sample in the order."""
    out = np.empty(len(order), np.intp)
    out[order] = np.arange(len(order))
    return out


@njit(cache=True, nogil=True)
def run_sums(lcp, reach, a, degrees, out):
    """out[k, i] = the sum of a over all that agree with i on degrees_k letters, else 0; in sorted order."""
    n = len(lcp)
    for k in range(len(degrees)):
        d = degrees[k]
        row = out[k]
        begin, total = 0, 0.0
        for i in range(n + 1):
            if i == n or lcp[i] < d:
                value = total if begin < n and reach[begin] >= d else 0.0
                for j in range(begin, i):
                    row[j] = value
                begin, total = i, 0.0
            if i < n:
                total += a[i]
