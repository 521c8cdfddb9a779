"""What a fit will take, before it is begun: memory and time by storage, from timed fits of parts of the samples.

The parts double in size for as long as there is time for the next one. Their times follow a power of the number of
samples, at least the square where kernel matrices are kept and at least linear on explicit features, at most the cube.
Memory is that of the kernels, which is known, and the rest as it was measured in two of these fits.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from multikernel.gram.stack import KernelStack, stack_kernels
from multikernel.gram.storage import choose_storage, default_limit, parse_bytes, size_text, storage_dtype
from multikernel.kernels.spec import expand_entries
from multikernel.kernels.views.proposal import make_views
from multikernel.kernels.views.reading import is_views
from multikernel.kernels.views.views import Views
from multikernel.threads import ROWS
from multikernel.training.checkpoint import SHARE
from multikernel.training.prepare import LARGE


@dataclass(frozen=True, repr=False)
class Estimate:
    """What a fit will take.

    Attributes
    ----------
    owner : str
        Name of the estimator.
    n_samples, n_kernels : int
        Numbers of samples and kernels.
    storage : str
        What `fit` will choose.
    memory : mapping from str to float
        Bytes that the fit takes beside the samples, by storage; for "memmap" without those on disk, for samples in
        partitions of Dask those of all workers and of the client together, with the samples.
    seconds : mapping from str to float
        Time of the fit, by storage.
    """

    owner: str
    n_samples: int
    n_kernels: int
    storage: str
    memory: Mapping[str, float]
    seconds: Mapping[str, float]

    def __repr__(self) -> str:
        lines = [f"{self.owner} on {self.n_samples} samples, {self.n_kernels} kernels:"]
        for kind in self.memory:
            mark = "   <- fit takes this" if kind == self.storage and len(self.memory) > 1 else ""
            lines.append(f"  {kind:<9} {size_text(self.memory[kind]):>8} {time_text(self.seconds[kind]):>9}{mark}")
        return "\n".join(lines)


def time_text(seconds: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> time_text(0.05), time_text(95.0), time_text(7000.0)
    ('50 ms', '95 s', '1.9 h')
    """
    if seconds < 1.0:
        return f"{1000 * seconds:.2g} ms"
    return (
        f"{seconds:.2g} s"
        if seconds < 120
        else f"{seconds / 60:.2g} min"
        if seconds < 6000
        else f"{seconds / 3600:.2g} h"
    )


class Probes:
    """Timed fits of an estimator on parts of its samples.

    Parameters
    ----------
    estimator : estimator
        Cloned for each fit, silent and without checkpoint.
    X, y, weight : samples, targets or None, sample weights or None
        Everything that `fit` will get.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, weight: Any) -> None:
        if estimator._precomputed and not isinstance(X, KernelStack):
            X = stack_kernels(X)
        auto = isinstance(estimator.kernels, str) and estimator.kernels == "auto"
        if auto or (not estimator._precomputed and is_views(X)):
            X = make_views(X, verbose=False) if auto else Views(X)
        self.estimator, self.X, self.y, self.weight = estimator, X, y, weight
        self.n_samples = _num_samples(X)
        self.order = _spread(None if y is None or not is_classifier(estimator) else np.asarray(y), self.n_samples)
        n = self.n_samples
        self.sizes = [n >> k for k in range(n.bit_length(), 0, -1) if n >> k >= ROWS] or [n]

    def fit(self, size: int, **options: Any) -> Any:
        """Fit on so many samples."""
        rows, own = np.sort(self.order[:size]), self.estimator.get_params(deep=False)
        silent = {"verbose": 0, "callback": None, "checkpoint": None, **options}
        if isinstance(own.get("cv"), (list, tuple)):
            # positions of samples that a part does not have
            silent["cv"] = len(own["cv"])
        model = clone(self.estimator).set_params(**{name: value for name, value in silent.items() if name in own})
        X = self.part(rows)
        given = {} if self.y is None else {"y": _safe_indexing(self.y, rows)}
        if self.weight is not None:
            given["sample_weight"] = _safe_indexing(np.asarray(self.weight), rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X, **given)

    def part(self, rows: np.ndarray) -> Any:
        """Return some of the samples."""
        return _safe_indexing(self.X, rows)

    def seconds(self, gram: Any, power: int, limit: float | None) -> tuple[list[int], list[float]]:
        """Return sizes and their times, as many as ``limit`` allows, or a small share of the fit where it is None."""
        sizes: list[int] = []
        times: list[float] = []
        spent, allowed = 0.0, 0.0 if limit is None else limit
        # the first fit may compile or load loops
        self.fit(self.sizes[0], gram=gram)
        for size in self.sizes:
            if sizes:
                if limit is None:
                    allowed = SHARE * times[-1] * (self.n_samples / sizes[-1]) ** power
                if spent + times[-1] * (size / sizes[-1]) ** power > allowed:
                    break
            took = np.inf
            # the shorter of two while that is quick: other work on the machine adds to a time
            for _ in range(2):
                began = time.perf_counter()
                self.fit(size, gram=gram)
                took = min(took, time.perf_counter() - began)
                spent += took
                if 16.0 * spent > allowed:
                    break
            sizes.append(size)
            times.append(took)
        return sizes, times

    def peak(self, size: int, gram: Any) -> tuple[float, float]:
        """Return the bytes that a fit of so many samples takes at most, and those of its kernels or features."""
        import tracemalloc

        running = tracemalloc.is_tracing()
        if not running:
            tracemalloc.start()
        try:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            model = self.fit(size, gram=gram)
            # a search without a last training has no model
            kept = getattr(getattr(model, "gram_", None), "nbytes", 0)
            return float(tracemalloc.get_traced_memory()[1] - before), float(kept)
        finally:
            if not running:
                tracemalloc.stop()


def _spread(y: np.ndarray | None, n: int) -> np.ndarray:
    """Return a random order in which every beginning has all classes in about their shares, two of each at least."""
    order = np.random.default_rng(0).permutation(n)
    if y is None:
        return order
    codes = np.unique(y[order], return_inverse=True)[1].ravel()
    by_class = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    rank = np.empty(n)
    rank[by_class] = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts)
    return order[np.argsort(np.where(rank < 2, rank - 2, rank / counts[codes]), kind="stable")]


def extrapolated(sizes: Sequence[int], times: Sequence[float], n: int, power: int) -> float:
    """Return the time of n samples by the power law of the last three sizes, the exponent from ``power`` to 3.

    Examples
    --------
    >>> extrapolated([100, 200, 400], [1.0, 4.0, 16.0], 800, 1)
    64.0
    """
    exponent = float(power)
    if len(sizes) > 1:
        exponent = float(np.polyfit(np.log(sizes[-3:]), np.log(times[-3:]), 1)[0])
    return float(times[-1] * (n / sizes[-1]) ** round(min(max(exponent, power), 3.0), 6))


def estimate_fit(
    estimator: Any, X: Any, y: Any = None, weight: Any = None, seconds: float | None = 2.0, every: bool = True
) -> Estimate:
    """Return what a fit will take.

    Parameters
    ----------
    estimator : estimator
        With its parameters; it is not fitted.
    X, y, weight : samples, targets or None, sample weights or None
        What `fit` will get.
    seconds : float or None
        Time for the timed fits of one storage; None for a small share of the fit itself.
    every : bool
        Whether other storages than the one that `fit` will choose are estimated as well.
    """
    if hasattr(X, "__dask_graph__") or hasattr(X, "delayed"):
        from multikernel.estimators.estimate_partitions import estimate_partitions

        return estimate_partitions(estimator, X, y, weight, seconds)
    probes = Probes(estimator, X, y, weight)
    n, stacked = probes.n_samples, isinstance(probes.X, KernelStack)
    p = probes.X.n_kernels if stacked else len(expand_entries(estimator.kernels, probes.X))
    first = probes.fit(probes.sizes[0])
    kind = getattr(getattr(first, "gram_", None), "kind", "dense")
    auto = estimator.gram == "auto" and kind != "torch"
    kinds = ["dense", "lazy", "memmap", "features"] if auto else [kind]
    if auto and n >= LARGE and kind != "features" and _works(probes, "features"):
        kind = "features"
    elif auto and kind != "features":
        kind = choose_storage(p, n, _itemsize(probes, p, n), estimator.memory_limit, "auto", stored=stacked)
    memory, times = {}, {}
    for each in kinds if every else [kind]:
        gram = each if auto else estimator.gram
        if each != kind and not (_fits(probes, each, p) and _works(probes, gram)):
            continue
        power = 1 if each == "features" else 2
        sizes, spent = probes.seconds(gram, power, seconds)
        times[each] = extrapolated(sizes, spent, n, power)
        memory[each] = memory_of(probes, each, gram, p, sizes)
    return Estimate(type(estimator).__name__, n, p, kind, memory, times)


def _works(probes: Probes, gram: str) -> bool:
    """Whether the estimator takes a storage with these kernels and this problem."""
    try:
        probes.fit(probes.sizes[0], gram=gram)
    except (ValueError, MemoryError):
        return False
    return True


def _fits(probes: Probes, kind: str, p: int) -> bool:
    """Whether there is memory for all samples."""
    n, stored = probes.n_samples, isinstance(probes.X, KernelStack)
    try:
        choose_storage(p, n, _itemsize(probes, p, n), probes.estimator.memory_limit, kind, stored)
    except MemoryError:
        return False
    except ValueError:
        # features need none
        pass
    return True


def _itemsize(probes: Probes, p: int, n: int) -> int:
    """Return the bytes of an entry of p kernels on n samples."""
    return (probes.X.dtype if isinstance(probes.X, KernelStack) else storage_dtype(p, n)).itemsize


def _kernels(probes: Probes, kind: str, p: int, n: int) -> float:
    """Return the bytes of kernel matrices that a storage keeps in memory."""
    one = float(n * n * _itemsize(probes, p, n))
    # a stack is read where it lies, and part of its rows are copied
    in_place = isinstance(probes.X, KernelStack) and n == probes.n_samples
    if kind == "memmap" or (kind == "dense" and in_place):
        return one
    if kind != "lazy":
        return (p + 1) * one
    given = probes.estimator.memory_limit
    return min((p + 1) * one, default_limit() if given is None else parse_bytes(given))


def memory_of(probes: Probes, kind: str, gram: Any, p: int, sizes: Sequence[int]) -> float:
    """Return the bytes of the fit: those of the kernels or features, and the rest by a constant and a power of n."""
    n, power = probes.n_samples, 1 if kind == "features" else 2
    # not the largest, so that this takes less time than the timed fits; a half beside a single size
    pair, rest, kept = sizes[-3:-1] if len(sizes) > 2 else sizes, [], 0.0
    pair = [pair[0] // 2, pair[0]] if len(pair) == 1 and pair[0] < n else pair
    for m in pair:
        peak, features = probes.peak(m, gram)
        kept = features if kind == "features" else _kernels(probes, kind, p, m)
        rest.append(max(peak - kept, 0.0))
    whole = kept * n / pair[-1] if kind == "features" else _kernels(probes, kind, p, n)
    slope = max(rest[-1] - rest[0], 0.0) / max(float(pair[-1] ** power - pair[0] ** power), 1.0)
    return whole + rest[-1] + slope * float(n**power - pair[-1] ** power)


def show_estimate(estimator: Any, X: Any, y: Any, weight: Any) -> None:
    """Show on a terminal what a long fit will take; nothing elsewhere, and nothing for short ones."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal or _num_samples(X) < 2 * ROWS:
        return
    with console.status(f"{type(estimator).__name__}: estimating time and memory"):
        found = estimate_fit(estimator, X, y, weight, None, every=False)
    size, took = size_text(found.memory[found.storage]), time_text(found.seconds[found.storage])
    console.print(f"{found.owner}: about {took} and {size} ({found.storage})", highlight=False)
