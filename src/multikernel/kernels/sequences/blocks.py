"""Families that split a weighted degree kernel into parts, so that the weights of the parts can be learned.

    DegreeBlocks(kernel)              one kernel for each degree d = 1, ..., D
    PositionBlocks(kernel, windows)   one kernel for each window of positions
    PositionBlocks(DegreeBlocks(kernel), windows)     one for each degree and window

The parts of `WeightedDegree` add up to the whole, for windows that cover all positions once. So do those of
`WeightedDegreeShift` by degree. By position they do not: a pair of d-mers on two sides of a border is in no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from sklearn.base import clone

from multikernel.kernels.base import is_integer, kernel_name
from multikernel.kernels.inputs import resolve_columns, take_columns
from multikernel.kernels.sequences.degree import WeightedDegree, WeightedDegreeShift
from multikernel.kernels.sequences.samples import as_sequences
from multikernel.kernels.spec import Family

Piece = tuple[tuple[str, ...], WeightedDegree | WeightedDegreeShift]


class _Blocks(Family):
    """A family of parts of one kernel."""

    def expand(self, X, columns=None):
        """Return one entry for each part."""
        pieces = self._pieces(X, columns)
        name = kernel_name(self._whole())
        return [(f"{name}[{', '.join(labels)}]", kernel, columns) for labels, kernel in pieces]

    def _whole(self):
        """Return the kernel that is split."""
        kernel = self.kernel
        if isinstance(kernel, _Blocks):
            return kernel._whole()
        if not isinstance(kernel, (WeightedDegree, WeightedDegreeShift)):
            raise TypeError(
                f"The 'kernel' parameter of {type(self).__name__} must be a WeightedDegree or WeightedDegreeShift "
                f"kernel, or blocks of one. Got {kernel!r} instead."
            )
        return kernel

    def _pieces(self, X, columns) -> list[Piece]:
        """Return the parts with their labels."""
        self._whole()
        inner = self.kernel._pieces(X, columns) if isinstance(self.kernel, _Blocks) else [((), self.kernel)]
        where = self._where(X, columns)
        return [piece for labels, kernel in inner for piece in self._split(labels, kernel, where)]

    def _where(self, X, columns) -> list[tuple[int, int]]:
        """Return the windows, where there are any."""
        return []

    def _split(self, labels, kernel, windows) -> list[Piece]:
        """Return the parts of one kernel."""
        raise NotImplementedError


class DegreeBlocks(_Blocks):
    """One kernel for each degree of a weighted degree kernel.

    Parameters
    ----------
    kernel : WeightedDegree, WeightedDegreeShift or PositionBlocks
        The kernel, or its parts, to be split.

    Examples
    --------
    >>> from multikernel.kernels import DegreeBlocks, KernelBank, WeightedDegree
    >>> KernelBank.fit(DegreeBlocks(WeightedDegree(3)), ["ACGT", "AAGT"]).names
    ['weighted_degree(degree=3)[d=1]', 'weighted_degree(degree=3)[d=2]', 'weighted_degree(degree=3)[d=3]']
    """

    def __init__(self, kernel):
        self.kernel = kernel

    def _split(self, labels, kernel, windows):
        pieces = []
        for d, beta in enumerate(kernel._beta(), 1):
            part = clone(kernel).set_params(degree=d, weights=[0.0] * (d - 1) + [float(beta)])
            pieces.append(((*labels, f"d={d}"), part))
        return pieces


class PositionBlocks(_Blocks):
    """One kernel for each window of positions of a weighted degree kernel.

    Parameters
    ----------
    kernel : WeightedDegree, WeightedDegreeShift or DegreeBlocks
        The kernel, or its parts, to be split.
    windows : int or sequence of (int, int)
        The number of windows of (nearly) equal length, or the windows [start, stop) themselves.

    Examples
    --------
    >>> from multikernel.kernels import KernelBank, PositionBlocks, WeightedDegree
    >>> KernelBank.fit(PositionBlocks(WeightedDegree(2), 2), ["ACGT", "AAGT"]).names
    ['weighted_degree(degree=2)[0:2]', 'weighted_degree(degree=2)[2:4]']
    """

    def __init__(self, kernel, windows=10):
        self.kernel = kernel
        self.windows = windows

    def _split(self, labels, kernel, windows):
        if kernel.window is not None:
            raise ValueError(
                f"The 'kernel' parameter of PositionBlocks must have no window of its own. Got {kernel!r} instead."
            )
        return [
            ((*labels, f"{start}:{stop}"), clone(kernel).set_params(window=(start, stop))) for start, stop in windows
        ]

    def _where(self, X, columns):
        windows = self.windows
        if is_integer(windows) and windows >= 1:
            positions = resolve_columns(columns, X, "PositionBlocks")
            length = as_sequences(take_columns(X, positions), "PositionBlocks").lengths.min(initial=np.iinfo(int).max)
            if windows <= length:
                edges = np.linspace(0, length, windows + 1).round().astype(int)
                return [(int(a), int(b)) for a, b in pairwise(edges)]
        elif isinstance(windows, (Sequence, np.ndarray)) and len(windows) and all(map(_is_window, windows)):
            return [(int(start), int(stop)) for start, stop in windows]
        raise ValueError(
            "The 'windows' parameter of PositionBlocks must be a positive integer, at most the length of the "
            f"sequences, or pairs (start, stop) with 0 <= start < stop. Got {windows!r} instead."
        )


def _is_window(window) -> bool:
    pair = np.ndim(window) == 1 and len(window) == 2 and all(is_integer(end) for end in window)
    return pair and 0 <= window[0] < window[1]
