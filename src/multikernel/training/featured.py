"""Kernels by their explicit features: a Gram that is never formed, and a model that streams over new samples.

Normalisations that divide a kernel ("variance", "trace") are factors of its features; the others are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from multikernel.gram.features import FeatureGram, FeatureOutputs
from multikernel.gram.storage import default_limit, parse_bytes
from multikernel.kernels.bank import KernelBank
from multikernel.kernels.feature_maps import FeatureMaps, FeatureModel
from multikernel.kernels.inputs import len_of
from multikernel.kernels.normalize import learn_normalizer
from multikernel.training.core import Prepared, Settings, Source
from multikernel.training.expansion import Expansion
from multikernel.training.repair import no_variance

# normalisations that are one factor of the whole kernel
DIVIDING = frozenset({"variance", "trace"})


def takes_features(bank: KernelBank, settings: Settings) -> bool:
    """Whether the kernels of a bank are to be taken by their features, or raise where they are asked for and cannot be.

    Parameters
    ----------
    bank : KernelBank
        Fitted kernels.
    settings : Settings
        Storage asked for, and what is in the way of features.
    """
    needed = settings.features_need()
    without = bank.without_features()
    divided = DIVIDING.issuperset(bank.steps)
    if settings.gram == "auto":
        return needed is None and divided and not without
    if needed is not None:
        raise ValueError(f"gram='features' of {settings.owner} needs {needed}.")
    if without:
        raise ValueError(
            f"gram='features' needs kernels with explicit features. Got {without[0]!r}, which has none: see "
            "RandomFourier and Nystroem for kernels that stand for others."
        )
    if not divided:
        raise ValueError(
            f"gram='features' needs normalize=None, 'variance' or 'trace'. Got {list(bank.steps)!r} instead."
        )
    return True


@dataclass(frozen=True)
class FeatureSource(Source):
    """Kernels by their features: models are sums over features, and no raw kernel value is ever needed."""

    maps: FeatureMaps
    samples: Any
    scale: np.ndarray

    def model(self, weights: np.ndarray, coef: np.ndarray, offset: np.ndarray) -> FeatureExpansion:
        """Return what evaluates sum_k weights_tk k(x, .) coef_t + offset_t, weights of shape (T, p)."""
        nothing = np.zeros(0, np.intp)
        model = self.maps.model(self.samples, weights * self.scale, coef)
        return FeatureExpansion([], offset, nothing, nothing, model)

    def expansion(self, terms, offset, active, kept):
        raise AssertionError("Kernels with features have no terms.")

    def blocks(self, X, kernels, diag, at=None):
        raise AssertionError("Kernels with features have no raw values.")


@dataclass(frozen=True)
class FeatureExpansion(Expansion):
    """Outputs by features: no kernel row of any sample is formed."""

    model: FeatureModel

    def evaluate(self, X: Any, n_threads: int = 1) -> np.ndarray:
        """Return the outputs, shape (n_samples, T)."""
        return self.model.evaluate(X) + self.offset

    def raw(self, X):
        raise AssertionError("Kernels with features have no raw values.")


def prepare_features(bank: KernelBank, X: Any, weight: np.ndarray | None, settings: Settings) -> Prepared:
    """Return the kernels of a bank on training samples, by their features.

    Parameters
    ----------
    bank : KernelBank
        Fitted kernels, with the steps of their normalisation.
    X : samples
        The n training samples.
    weight : ndarray of shape (n,) or None
        Positive sample weights, None for equal ones.
    settings : Settings
        ``memory_limit`` is what dense features may take; above it they are computed whenever they are read.
    """
    n, p = len_of(X), bank.n_kernels
    maps = FeatureMaps(bank, X)
    limit = default_limit() if settings.memory_limit is None else parse_bytes(settings.memory_limit)
    parts = list(maps.sources(X, limit))
    sources, members = [source for source, _ in parts], [kernels for _, kernels in parts]
    with np.errstate(over="ignore"):
        raw = FeatureGram(sources, members, n_threads=settings.n_threads)
        diag = raw.diag()
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    if not np.isfinite(diag).all():
        name = bank.names[int(np.argmin(np.isfinite(diag).all(axis=1)))]
        raise ValueError(f"Kernel '{name}': the values have NaN or infinity among them.")
    # share' K_k share: all that the mean of a kernel asks for
    tables = FeatureOutputs(raw)
    tables.update(share)
    means = tables.q
    # machines with an intercept centre the kernels: now their row means need no tables of their own
    row_means = tables.kernel_outputs() if weight is None else None
    del tables
    normalizers = tuple(
        # a vector whose mean is that of K p: the normalisations that divide ask for no more
        learn_normalizer(bank.steps, d, None, weight, name, product=np.full(n, mean))
        for d, mean, name in zip(diag, means, bank.names, strict=True)
    )
    flat = no_variance(diag, np.repeat(means[:, None], n, axis=1), share)
    constant = flat | [each.degenerate for each in normalizers]
    scale = np.array([each.scale for each in normalizers])
    if row_means is not None:
        row_means *= scale[:, None]
    gram = FeatureGram(sources, members, scale, settings.n_threads, row_means)
    source = FeatureSource(maps, X, scale)
    return Prepared(gram, tuple(bank.names), normalizers, weight, source, constant, np.ones(p, bool))
