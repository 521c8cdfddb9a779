"""What a fit on samples in partitions of Dask will take, from timed fits of parts of all partitions.

A fit asks the workers some hundred questions, which take their time however few the samples are. So the time of the
preparation and that of a step are taken as a constant and a multiple of the number of samples, and the number of steps
as that of the largest timed fit. Memory is that of the features, and the rest likewise.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from multikernel.estimators.estimate import Estimate, Probes, memory_of
from multikernel.estimators.partitioned import check_partitions
from multikernel.kernels.inputs import take_rows
from multikernel.training.checkpoint import SHARE


class PartitionProbes(Probes):
    """Timed fits of an estimator on parts of its samples, rows of all partitions in each."""

    def __init__(self, estimator: Any, X: Any, y: Any, weight: Any) -> None:
        y, weight = (np.asarray(each) if hasattr(each, "__dask_graph__") else each for each in (y, weight))
        super().__init__(estimator, check_partitions(clone(estimator), X), y, weight)
        # sizes far apart: few samples show what the questions take, many the work
        far = self.sizes[::-1][::4][::-1]
        self.sizes = far if len(far) > 1 else sorted({self.sizes[0], self.sizes[-1]})

    def part(self, rows: np.ndarray) -> Any:
        from dask import delayed

        found, taken = (
            copy(self.X),
            [rows[(rows >= cut.start) & (rows < cut.stop)] - cut.start for cut in self.X.cuts()],
        )
        kept = [(chunk, own) for chunk, own in zip(self.X.delayed, taken, strict=True) if len(own)]
        found.delayed = [delayed(take_rows)(chunk, own) for chunk, own in kept]
        found.sizes = [len(own) for _, own in kept]
        return found

    def timed(self, limit: float | None) -> tuple[list[int], list[tuple[float, float, int]], Any]:
        """Return sizes, for each the times of preparation and of a step and the number of steps, and the last model."""
        sizes: list[int] = []
        found: list[tuple[float, float, int]] = []
        spent = 0.0
        # the first fit may compile or load loops on the workers
        model = self.fit(self.sizes[0])
        for size in self.sizes:
            allowed = SHARE * _whole(sizes, found, self.n_samples) if limit is None else limit
            if len(sizes) > 1 and spent + _whole(sizes, found, size) > allowed:
                break
            began = time.perf_counter()
            model = self.fit(size)
            took = time.perf_counter() - began
            histories = model.history_ if isinstance(model.history_, list) else [model.history_]
            steps, inside = int(np.sum(model.n_iter_)), sum(float(each["time"][-1]) for each in histories)
            sizes.append(size)
            found.append((max(took - inside, 0.0), inside / max(steps, 1), steps))
            spent += took
        return sizes, found, model

    def peak(self, size: int, gram: Any) -> tuple[float, float]:
        """Return the bytes that a fit of so many samples takes in all processes at most, and those of its features."""
        client = self.X.client
        before = {**client.run(_start_tracing), "client": _start_tracing()}
        try:
            kept = self.fit(size).gram_.nbytes
            after = {**client.run(_traced), "client": _traced()}
        finally:
            client.run(tracemalloc.stop)
            tracemalloc.stop()
        # workers may be threads of the client's process
        peaks = {after[name][0]: after[name][1] - before[name][1] for name in before if name in after}
        return float(sum(peaks.values())), float(kept)


def _start_tracing() -> tuple[int, int]:
    """Follow the memory of this process; return its number and the bytes in use."""
    tracemalloc.start()
    return os.getpid(), tracemalloc.get_traced_memory()[0]


def _traced() -> tuple[int, int]:
    """Return the number of this process and the largest number of bytes in use."""
    return os.getpid(), tracemalloc.get_traced_memory()[1]


def line_at(sizes: Sequence[int], values: Sequence[float], n: int) -> float:
    """Return the value at n of the line through the last three sizes, between a constant and a multiple of n.

    Examples
    --------
    >>> line_at([100, 200, 400], [2.0, 3.0, 5.0], 1000), line_at([100], [2.0], 1000)
    (11.0, 20.0)
    """
    most = values[-1] / sizes[-1]
    slope = float(np.polyfit(sizes[-3:], values[-3:], 1)[0]) if len(sizes) > 1 else most
    return float(values[-1] + round(min(max(slope, 0.0), most), 12) * (n - sizes[-1]))


def _whole(sizes: Sequence[int], found: Sequence[tuple[float, float, int]], n: int) -> float:
    """Return the time of a fit of n samples."""
    if not sizes:
        return np.inf
    preparation, step, steps = (list(each) for each in zip(*found, strict=True))
    return line_at(sizes, preparation, n) + steps[-1] * line_at(sizes, step, n)


def estimate_partitions(estimator: Any, X: Any, y: Any, weight: Any, seconds: float | None) -> Estimate:
    """Return what a fit on samples in partitions will take; the parameters are those of `estimate_fit`."""
    probes = PartitionProbes(estimator, X, y, weight)
    sizes, found, model = probes.timed(seconds)
    n, p = probes.n_samples, model.weights_.shape[-1]
    memory = memory_of(probes, "features", "features", p, sizes)
    return Estimate(
        type(estimator).__name__, n, p, "features", {"features": memory}, {"features": _whole(sizes, found, n)}
    )
