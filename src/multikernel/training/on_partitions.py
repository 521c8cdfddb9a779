"""Samples in partitions of Dask: features and normalisations by the workers, and models that are sums over features.

What kernels learn from samples (widths, landmarks, letters) they learn on one worker from samples that are drawn from
all partitions, at most `CombinedFeatures.host_limit` in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from multikernel.gram.dask_blocks import send
from multikernel.gram.features import CombinedFeatures, FeatureGram
from multikernel.gram.partitions import Groups, PartitionedSamples, PartitionGram, StateLost
from multikernel.gram.storage import default_limit, parse_bytes
from multikernel.kernels.bank import KernelBank
from multikernel.kernels.feature_maps import FeatureMaps, FeatureModel
from multikernel.kernels.inputs import as_matrix, is_frame, len_of, take_rows
from multikernel.kernels.normalize import learn_normalizer
from multikernel.kernels.sequences.samples import is_text
from multikernel.kernels.table import as_samples
from multikernel.machines import partition as work
from multikernel.solvers.interleaved import Interleaved
from multikernel.training.core import Prepared, Settings
from multikernel.training.featured import FeatureExpansion, FeatureSource, takes_features
from multikernel.training.partition_point import PartitionPoint
from multikernel.training.prepare import as_numbers
from multikernel.training.repair import no_variance


def as_partition(X: Any) -> Any:
    """Return the samples of one partition as kernels take them."""
    if getattr(X, "ndim", 1) == 2 and not is_frame(X) and X.shape[1] == 1 and is_text(np.asarray(X)[:, 0]):
        X = np.asarray(X)[:, 0]
    if is_text(X):
        return as_samples(X)
    X = as_numbers(X)
    return as_matrix(X, "A partition of X") if isinstance(X, np.ndarray) or sparse.issparse(X) else X


def draw(X: Any, count: int, seed: int) -> Any:
    """Return some of the samples of a partition, in their order."""
    rows = np.sort(np.random.default_rng(seed).permutation(len_of(X))[:count])
    return take_rows(X, rows)


def fit_bank(kernels: Any, parts: Sequence[Any], normalize: Any) -> tuple[KernelBank, FeatureMaps]:
    """Fit the kernels on samples that were drawn from all partitions; return them with their feature maps."""
    first = parts[0]
    if is_frame(first):
        import pandas as pd

        X: Any = pd.concat(parts)
    elif sparse.issparse(first):
        X = sparse.vstack(parts, format="csr")
    else:
        X = np.concatenate([np.asarray(part) for part in parts])
    if is_text(X):
        X = as_samples(X)
    bank = KernelBank.fit(kernels, X, None, normalize)
    return bank, FeatureMaps(bank, as_numbers(X)) if not bank.without_features() else None  # type: ignore[return-value]


def patterns_of(X: Any, maps: FeatureMaps) -> dict[int, list]:
    """Return the patterns that occur in the samples of a partition, by kernel."""
    return FeatureMaps(maps.bank, as_partition(X)).patterns()


def make_partition(X: Any, maps: FeatureMaps, memory: float) -> work.Partition:
    """Compute the features of the samples of a partition."""
    parts = list(maps.sources(as_partition(X), memory))
    with np.errstate(over="ignore"):
        return work.Partition(FeatureGram([source for source, _ in parts], [kernels for _, kernels in parts]))


@dataclass(frozen=True)
class PartitionSource(FeatureSource):
    """Kernels by their features on partitions: the workers sum the features of the support vectors."""

    def model(self, weights: np.ndarray, coef: np.ndarray, offset: np.ndarray) -> FeatureExpansion:
        gram: PartitionGram = self.samples
        vectors: dict[int, np.ndarray] = {}
        tables = np.column_stack([_tables(gram, column) for column in coef.T])
        for k, lo, hi in gram.spans:
            if weights[:, k].any():
                vectors[k] = tables[lo:hi] * (weights[:, k] * self.scale[k])
        nothing = np.zeros(0, np.intp)
        return FeatureExpansion([], offset, nothing, nothing, FeatureModel(self.maps, [], vectors, coef.shape[1]))


def _tables(gram: PartitionGram, coef: np.ndarray) -> np.ndarray:
    """Return Phi' coef."""
    groups = gram.groups
    own = [coef[rows] for rows in gram.samples.cuts()]
    while True:
        try:
            return groups.answers(groups.total(groups.tasks(work.tables_of, own=own)))
        except StateLost:
            groups.find_homes()


def _described(groups: Groups, shares: Sequence[Any], n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, list]:
    """Return the tables of the shares of the samples, means and largest entries of the diagonals, bytes, and spans."""
    while True:
        try:
            tasks = groups.tasks(work.describe, n, own=shares)
            means, told, sizes = groups.answers(
                [groups.total(tasks, 0), groups.rest(tasks, 1), groups.tasks(work.size_of)]
            )
            break
        except StateLost:
            groups.find_homes()
    mean, top = sum(each[0] for each in told), np.concatenate([each[1] for each in told]).T
    return means, mean, top, sum(each[0] for each in sizes), sizes[0][1]


def _same(value: Any) -> Any:
    return value


def prepare_partitions(kernels: Any, X: PartitionedSamples, weight: np.ndarray | None, settings: Settings) -> Prepared:
    """Return the kernels on samples in partitions, by their features."""
    client, n, cuts = X.client, len(X), X.cuts()
    if settings.gram not in ("auto", "features"):
        raise ValueError(
            f"The 'gram' parameter of {settings.owner} must be 'auto' or 'features' for samples in partitions of Dask. "
            f"Got {settings.gram!r} instead."
        )
    # steps on cuts ask for exact inner solutions, which take many rounds: only where little else is left
    solver = Interleaved(little=0.9)
    if settings.solver not in ("auto", "interleaved") and not isinstance(settings.solver, Interleaved):
        raise ValueError(
            f"The 'solver' parameter of {settings.owner} must be 'auto' or 'interleaved' for samples in partitions of "
            f"Dask. Got {settings.solver!r} instead."
        )
    chunks = client.compute(X.delayed)
    share = -(-CombinedFeatures.host_limit // len(chunks))
    drawn = [send(client, draw, chunk, share, number) for number, chunk in enumerate(chunks)]
    bank, maps = send(client, fit_bank, kernels, drawn, settings.normalize).result()
    takes_features(bank, replace(settings, gram="features"))
    if maps.degrees:
        name = bank.names[maps.degrees[0].kernels[0]]
        raise ValueError(
            f"Samples in partitions of Dask need kernels with a fixed number of features. Got {name!r}, whose tables "
            "grow with the samples: use HashedDegree of it."
        )
    limit = default_limit() if settings.memory_limit is None else parse_bytes(settings.memory_limit)
    if maps.grows:
        sent = send(client, _same, maps)
        maps = maps.with_patterns(client.gather([send(client, patterns_of, chunk, sent) for chunk in chunks]))
    sent = send(client, _same, maps)
    threads = client.nthreads()
    places = [name for turn in range(max(threads.values())) for name, count in threads.items() if turn < count]
    made = [
        send(client, make_partition, chunk, sent, limit / len(chunks), workers=[places[number % len(places)]],
             allow_other_workers=True)
        for number, chunk in enumerate(chunks)
    ]  # fmt: skip
    groups = Groups(client, made, work.Stale)
    del chunks
    shares = [None] * len(cuts) if weight is None else [weight[rows] / weight.sum() for rows in cuts]
    means, mean, top, size, spans = _described(groups, shares, n)
    for name, own in zip(bank.names, top, strict=True):
        if not np.isfinite(own).all():
            raise ValueError(f"Kernel '{name}': the values have NaN or infinity among them.")
    squares = work.inner(spans, means, means)
    normalizers = tuple(
        # the mean of the diagonal and of all entries: the normalisations that divide ask for no more
        learn_normalizer(bank.steps, np.array([d]), None, None, name, product=np.array([r]))
        for d, r, name in zip(mean, squares, bank.names, strict=True)
    )
    constant = no_variance(mean[:, None], squares[:, None], np.ones(1)) | [each.degenerate for each in normalizers]
    scale = np.array([each.scale for each in normalizers])
    gram = PartitionGram(groups, X, scale, spans, means, (mean, squares), top, size, PartitionPoint, solver)
    source = PartitionSource(maps, gram, scale)
    return Prepared(gram, tuple(bank.names), normalizers, weight, source, constant, np.ones(bank.n_kernels, bool))
