"""What a model learns of its training views before any kernel: how to encode samples, and how to complete them.

A sample that lacks a view, or values in it, is completed from training samples that have them, its donors. The donors
most alike in the views that both have are its neighbours, as many as the root of the number of donors, rounded up:

    numbers                          the mean of the neighbours' values; of all donors where no view is in common
    sequences, categories, kernels   the sample of the nearest donor

Kernels see completed samples c(x), and k(c(x), c(z)) is positive semidefinite where k is. Samples are alike by the
mean, over the views in common, of a kernel between zero and one: a Gaussian of the median width on numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from multikernel.gram.stack import KernelStack
from multikernel.kernels.base import row_blocks
from multikernel.kernels.distances import distances, quantile_distance
from multikernel.kernels.gower import Gower
from multikernel.kernels.sequences.samples import Sequences
from multikernel.kernels.sequences.spectrum import Spectrum
from multikernel.kernels.views.reading import View


@dataclass(frozen=True, eq=False)
class Donors:
    """The training samples that have one view, and how alike other samples are to them.

    Attributes
    ----------
    rows : ndarray of int
        Which of the n training samples have the view.
    samples : samples
        Their encoded samples.
    means, scales : ndarray of shape (d,) or None
        Means and deviations of the columns; None for samples that are no dense numbers.
    width : float
        The square of the median distance of the scaled samples.
    """

    rows: np.ndarray
    samples: Any
    means: np.ndarray | None = None
    scales: np.ndarray | None = None
    width: float = 1.0

    @classmethod
    def learn(cls, rows: np.ndarray, samples: Any) -> Donors:
        """Learn from the encoded samples that have the view."""
        if sparse.issparse(samples):
            return cls(rows, samples, width=quantile_distance("sqeuclidean", samples, 0.5) ** 2)
        if not isinstance(samples, np.ndarray) or samples.dtype == object:
            return cls(rows, samples)
        seen = np.maximum((~np.isnan(samples)).sum(axis=0), 1)
        means = np.nansum(samples, axis=0) / seen
        deviation = np.sqrt(np.nansum((samples - means) ** 2, axis=0) / seen)
        found = cls(rows, samples, means, np.where(deviation > 0, deviation, 1.0))
        return replace(found, width=quantile_distance("sqeuclidean", found.scaled(samples), 0.5) ** 2)

    def scaled(self, samples: np.ndarray) -> np.ndarray:
        """Return numbers in units of the deviations, missing ones at the mean."""
        return np.nan_to_num((samples - self.means) / self.scales, nan=0.0)

    def likeness(self, samples: Any) -> np.ndarray:
        """Return how alike samples are to the donors, from zero to one for most kinds."""
        if self.means is not None:
            left, right = self.scaled(samples), self.scaled(self.samples)
            return np.exp(-distances("sqeuclidean", left, right) / self.width)
        if sparse.issparse(self.samples):
            return np.exp(-distances("sqeuclidean", samples, self.samples) / self.width)
        if isinstance(self.samples, KernelStack):
            K = np.mean([samples.kernel_rows(k, self.samples.row_ids) for k in range(samples.n_kernels)], axis=0)
            return K / max(float(np.abs(K).max(initial=0.0)), np.finfo(float).tiny)
        if hasattr(self.samples, "iloc"):
            return Gower().fit(self.samples)(samples, self.samples)
        kernel = Spectrum().fit(Sequences(self.samples))
        K, own = kernel(samples, self.samples), kernel.diag(self.samples)
        return K / np.sqrt(np.maximum(np.outer(kernel.diag(samples), own), 1.0))


@dataclass(frozen=True, eq=False)
class Preparation:
    """Encoders and donors of every view; called on `Views` it returns them encoded and completed.

    Attributes
    ----------
    names : list of str
        The views.
    encoders : list of (encoder or None)
        Fitted encoders.
    donors : list of Donors
        The training samples that have each view.
    n_samples : int
        The number of training samples.
    """

    names: list[str]
    encoders: list[Any]
    donors: list[Donors]
    n_samples: int

    @classmethod
    def learn(cls, views: list[View]) -> Preparation:
        """Learn from training samples."""
        encoders, donors = [], []
        for view in views:
            rows = np.flatnonzero(~view.missing)
            if not len(rows):
                raise ValueError(f"The view '{view.name}' must have samples to learn from. Got none: all lack it.")
            there = view.take(rows).samples
            encoder = None
            _require_finite(view.name, view.samples)
            if view.encoder is not None:
                encoder = _named(view.name, clone(view.encoder).fit, there)
                there = encoder.transform(there)
            encoders.append(encoder)
            donors.append(Donors.learn(rows, there))
        return cls([view.name for view in views], encoders, donors, len(views[0].missing))

    def __call__(self, X: Any) -> Any:
        return X.prepared(self)

    def apply(self, views: list[View]) -> list[Any]:
        """Return the samples of every view, encoded and completed."""
        encoded = [self._encode(v, view) for v, view in enumerate(views)]
        lacking = np.array([view.missing for view in views])
        gaps = [
            np.isnan(part).any(axis=1) if _is_numbers(part) else own for part, own in zip(encoded, lacking, strict=True)
        ]
        incomplete = np.flatnonzero(np.any(gaps, axis=0))
        if len(incomplete):
            encoded = self._complete(encoded, lacking, np.array(gaps), incomplete)
        return [Sequences(part) if isinstance(part, np.ndarray) and part.dtype == object else part for part in encoded]

    def _encode(self, v: int, view: View) -> Any:
        """Return the encoded samples of a view; those that lack it are NaN where they are numbers."""
        samples, encoder = view.samples, self.encoders[v]
        _require_finite(view.name, samples)
        known = self.donors[v].samples
        if encoder is not None:
            samples = _named(view.name, encoder.transform, samples)
        width = getattr(known, "shape", (0, 0))[1:2]
        if getattr(samples, "shape", (0, 0))[1:2] != width and not isinstance(samples, KernelStack):
            raise ValueError(
                f"The view '{view.name}' must have {width[0]} columns, as in fit. Got {samples.shape[1]} instead."
            )
        if _is_numbers(samples):
            if view.missing.any() and not np.isnan(samples[view.missing]).all():
                samples = np.where(view.missing[:, None], np.nan, samples)
        return samples

    def _complete(self, encoded: list[Any], lacking: np.ndarray, gaps: np.ndarray, incomplete: np.ndarray) -> list[Any]:
        """Return the views with the gaps filled."""
        filled = [_Filled(part) for part in encoded]
        for block in row_blocks(len(incomplete), 8 * self.n_samples):
            rows = incomplete[block]
            total, count = np.zeros((2, len(rows), self.n_samples))
            for part, own, lacks in zip(encoded, self.donors, lacking, strict=True):
                have = np.flatnonzero(~lacks[rows])
                if len(have):
                    at = np.ix_(have, own.rows)
                    total[at] += own.likeness(_rows_of(part, rows[have]))
                    count[at] += 1
            alike = np.where(count > 0, total / np.maximum(count, 1), -np.inf)
            for v, own in enumerate(self.donors):
                wanted = np.flatnonzero(gaps[v, rows])
                if len(wanted):
                    filled[v].fill(rows[wanted], own, alike[np.ix_(wanted, own.rows)])
        return [each.done() for each in filled]


class _Filled:
    """One view, of which some samples are replaced."""

    def __init__(self, samples: Any) -> None:
        self.samples, self.numbers = samples, _is_numbers(samples)
        self.changed: dict[str, list] = {"rows": [], "values": []}

    def fill(self, rows: np.ndarray, donors: Donors, alike: np.ndarray) -> None:
        """Complete some samples by the donors that are most alike."""
        self.changed["rows"].append(rows)
        if not self.numbers and not sparse.issparse(self.samples):
            self.changed["values"].append(_rows_of(donors.samples, alike.argmax(axis=1)))
            return
        number = int(np.ceil(np.sqrt(alike.shape[1])))
        chosen = np.argsort(-alike, axis=1, kind="stable")[:, :number]
        weight = np.zeros(alike.shape)
        np.put_along_axis(weight, chosen, 1.0, axis=1)
        weight[np.isneginf(alike)] = 0.0
        weight[~weight.any(axis=1)] = 1.0
        if sparse.issparse(self.samples):
            weight /= weight.sum(axis=1, keepdims=True)
            self.changed["values"].append(sparse.csr_array(weight) @ donors.samples)
            return
        seen = ~np.isnan(donors.samples)
        count, known = np.maximum(weight @ seen, 1.0), np.where(seen, donors.samples - donors.means, 0.0)
        own, means = self.samples[rows], donors.means + (weight @ known) / count
        self.changed["values"].append(np.where(np.isnan(own), means, own))

    def done(self) -> Any:
        """Return the samples with the changes."""
        if not self.changed["rows"]:
            return self.samples
        rows, values = np.concatenate(self.changed["rows"]), self.changed["values"]
        if isinstance(self.samples, np.ndarray):
            out = np.array(self.samples)
            out[rows] = np.concatenate(values)
            return out
        n = self.samples.shape[0]
        order = np.arange(n)
        order[rows] = n + np.arange(len(rows))
        if sparse.issparse(self.samples):
            return sparse.csr_array(sparse.vstack([self.samples, *values]))[order]
        if isinstance(self.samples, KernelStack):
            raise ValueError("Kernels as a view must have all samples. Got samples that lack them.")
        import pandas as pd

        return pd.concat([self.samples, *values]).iloc[order]


def _require_finite(name: str, samples: Any) -> None:
    """Raise where numbers are infinite, and say where."""
    if _is_numbers(samples) and np.isinf(samples).any():
        row, column = np.argwhere(np.isinf(samples))[0]
        raise ValueError(
            f"The view '{name}' must hold finite numbers, or NaN for missing ones. "
            f"Got {samples[row, column]} in row {row}, column {column}."
        )


def _is_numbers(samples: Any) -> bool:
    return isinstance(samples, np.ndarray) and samples.dtype.kind == "f"


def _rows_of(samples: Any, rows: np.ndarray) -> Any:
    return samples.iloc[rows] if hasattr(samples, "iloc") else samples[rows]


def _named(name: str, function: Any, samples: Any) -> Any:
    """Call the function, and name the view where it raises."""
    try:
        return function(samples)
    except ValueError as error:
        raise ValueError(f"The view '{name}' {error}") from error
