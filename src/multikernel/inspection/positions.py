"""Sums of coefficients over matching support sequences, by position and length: for scores, motifs and profiles.

    s_ld(x) = sum_i a_i [x and x_i agree on the d letters from l on]

For l = L - 1, ..., 0 the sequences are sorted by their letters from l on (`multikernel.gram.tries`). Sequences that
agree on d letters are then neighbours, and one pass gives all sums. A shift by r moves the letters of the support
sequence: the letter at t of x_i is compared with the letter at t + r of x, and the match counts for t + r, the position
in the scored sequence.
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
    """One weighted degree kernel, or several with the same coefficients, in one output.

    Attributes
    ----------
    coef : ndarray of shape (m,)
        a_i times the weight of the kernel and its normalisation.
    weight : ndarray of shape (L, D)
        Weight of a d-mer at each position of the scored sequence.
    shift_factors : ndarray of shape (R, L)
        Factor of each shift at each position of the scored sequence.
    dual : ndarray of shape (m,)
        a_i, times the factor of ``normalize="cosine"`` for sequence i.
    factor : callable or None
        Returns, for samples, the factor by which ``normalize="cosine"`` multiplies their kernel rows.
    """

    coef: np.ndarray
    weight: np.ndarray
    shift_factors: np.ndarray
    dual: np.ndarray
    factor: Callable[[Any], np.ndarray] | None = None


@dataclass(frozen=True, eq=False)
class PositionSums:
    """Sums s_ld of a layer at one position, for the lengths ``degrees``, sequences in sorted order."""

    layer: Layer
    degrees: np.ndarray
    sums: np.ndarray


# position l; order of the sequences; lcp; reach (see `PositionTerms.walk`); sums of every layer
Step = tuple[int, np.ndarray, np.ndarray, np.ndarray, list[PositionSums]]


@dataclass(frozen=True, eq=False)
class PositionTerms:
    """The weighted degree kernels of one column in one output.

    Attributes
    ----------
    kernel : int
        Number of one of them in the bank; it turns letters into codes.
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

        The sequences are the support sequences at every shift, then those of ``other`` (n, L). ``lcp`` (longest common
        prefix) counts the letters from l on on which a sequence agrees with the one before it in the order, ``reach``
        the letters from l on before an unknown one; both stop at D. The arrays order and lcp are overwritten in the
        next step.
        """
        size, (m, length) = len(self.letters), self.codes.shape
        parts = [_moved(self.codes, int(r), size) for r in self.shifts]
        codes = np.concatenate(parts if other is None else [*parts, other])
        n = len(codes)
        order, lcp = np.arange(n, dtype=np.uint32), np.zeros(n, np.uint8)
        next_order, next_lcp = np.empty_like(order), np.empty_like(lcp)
        reach, a = np.zeros(n, np.uint8), np.zeros(n)
        for place in range(length - 1, -1, -1):
            column = np.ascontiguousarray(codes[:, place])
            sort_place(column, size, self.degree, order, lcp, next_order, next_lcp)
            order, lcp, next_order, next_lcp = next_order, next_lcp, order, lcp
            reach = np.where(column < size, np.minimum(reach, self.degree - 1) + 1, 0).astype(np.uint8)
            here = []
            for layer in self.layers:
                degrees = np.flatnonzero(layer.weight[place]) + 1
                if len(degrees) and layer.shift_factors[:, place].any():
                    a[: m * len(self.shifts)] = np.multiply.outer(layer.shift_factors[:, place], layer.coef).ravel()
                    sums = np.empty((len(degrees), n))
                    run_sums(lcp, reach[order], a[order], degrees, sums)
                    here.append(PositionSums(layer, degrees, sums))
            yield place, order, lcp, reach, here

    def scores(self, codes: np.ndarray, factors: Sequence[np.ndarray | None]) -> np.ndarray:
        """Return the share of every position of other sequences in the output, shape (n, L).

        Parameters
        ----------
        codes : uint8 array (n, L)
            The sequences.
        factors : sequence of ndarray or None
            For every layer, a factor of each sequence; None for one.
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
            # letter j (from zero) belongs to the d-mers of every length d > j, and gets 1 / d of each
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
    """Return the letters moved r positions to the right; positions without a letter become unknown letters."""
    if r == 0:
        return codes
    out = np.full_like(codes, size)
    if r > 0:
        out[:, r:] = codes[:, :-r]
    else:
        out[:, :r] = codes[:, -r:]
    return out


def _ranks(order: np.ndarray) -> np.ndarray:
    """Return the rank of every sequence in the order."""
    out = np.empty(len(order), np.intp)
    out[order] = np.arange(len(order))
    return out


@njit(cache=True, nogil=True)
def run_sums(lcp, reach, a, degrees, out):
    """out[k, i] = sum of a over the sequences that agree with i on degrees_k letters, 0 if i has fewer known letters.

    All arrays are in sorted order; lcp[i] counts the letters on which i agrees with i - 1.
    """
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
