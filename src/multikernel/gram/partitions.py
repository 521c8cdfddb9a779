"""Samples in partitions that no process holds together, and the client that asks the workers about them.

A partition is a future of a pure function of its samples, so that the scheduler makes it again where a worker was lost.
The object changes in place all the same: it holds coefficients. Every question says which ones it is about, and a
partition that was made again answers that it has none (`Stale`); `Groups` then raises `StateLost`, and the caller
brings the coefficients back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import add, itemgetter
from typing import Any

import joblib
import numpy as np

from multikernel.gram.base import Gram
from multikernel.gram.dask_blocks import WorkerLost, _collect, clear_errors, current_client, distributed, send
from multikernel.gram.storage import size_text


class StateLost(Exception):
    """Partitions were made again, and are without their coefficients."""


class PartitionedSamples:
    """Samples as an array, a data frame or a series of Dask, by its partitions.

    Parameters
    ----------
    collection : dask array or data frame
        The samples, each partition with whole rows.

    Attributes
    ----------
    client : distributed.Client
        The current client.
    delayed : list
        What computes each partition.
    sizes : list of int
        Numbers of samples.
    """

    def __init__(self, collection: Any) -> None:
        self.client, self.collection = current_client(), collection
        self.ndim = collection.ndim
        if self.ndim == 2 and hasattr(collection, "chunks") and len(collection.chunks[1]) > 1:
            collection = collection.rechunk({1: -1})
        self.delayed = list(np.ravel(np.array(collection.to_delayed(), object)))
        chunks = collection.chunks[0] if hasattr(collection, "chunks") else (np.nan,)
        if np.isnan(chunks).any():
            chunks = self.client.gather([self.client.compute(_size(each)) for each in self.delayed])
        if 0 in chunks:
            self.delayed = [each for each, size in zip(self.delayed, chunks, strict=True) if size]
        self.sizes = [int(size) for size in chunks if size]
        self.names = list(collection.columns) if self.ndim == 2 and hasattr(collection, "columns") else None

    def __len__(self) -> int:
        return sum(self.sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of samples and, where they have any, of columns."""
        return (len(self), *self.collection.shape[1:])

    def cuts(self) -> list[slice]:
        """Return the samples of each partition among all."""
        edges = np.cumsum([0, *self.sizes]).tolist()
        return [slice(lo, hi) for lo, hi in pairwise(edges)]

    def hashes(self) -> list[str]:
        """Return a hash of the samples of each partition; the workers read the samples for that."""
        with clear_errors(f"{len(self.delayed)} partitions of samples"):
            return self.client.gather(
                [send(self.client, joblib.hash, chunk, "sha1") for chunk in self.client.compute(self.delayed)]
            )

    def __getitem__(self, rows: Any) -> Any:
        raise ValueError(
            "Samples in partitions of Dask are trained on as a whole: leave samples out before, for example those of "
            "weight zero, and use multiclass='ovr' instead of 'ovo'."
        )


def _size(delayed: Any) -> Any:
    from dask import delayed as lazily

    return lazily(len)(delayed)


def spans_of(gram: Any) -> list[tuple[int, int, int]]:
    """Return kernel, start and end of each run of features of one kernel in the tables."""
    found, start = [], 0
    for source, kernels in zip(gram.sources, gram.kernels, strict=True):
        edges = np.searchsorted(source.kernel, np.arange(len(kernels) + 1))
        found += [
            (int(k), start + int(lo), start + int(hi)) for k, (lo, hi) in zip(kernels, pairwise(edges), strict=True)
        ]
        start += int(edges[-1])
    return found


def inner(spans: Sequence[tuple[int, int, int]], T: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Return <T_k, U_k> of every kernel."""
    out = np.zeros(len(spans))
    for k, lo, hi in spans:
        out[k] += float(T[lo:hi] @ U[lo:hi])
    return out


class Groups:
    """Partitions on the workers, in groups of which each is worked on by one thread.

    Parameters
    ----------
    client : distributed.Client
        Client.
    futures : sequence of futures
        The partitions.
    stale : type
        The exception of a partition without the right coefficients.

    Attributes
    ----------
    groups : list of list of int
        Numbers of the partitions of each group.
    homes : list of str
        The worker of each group.
    """

    def __init__(self, client: Any, futures: Sequence[Any], stale: type[Exception]) -> None:
        self.client, self.futures, self.stale = client, list(futures), stale
        # the point whose problem the partitions have
        self.owner: Any = None
        self.find_homes()

    def find_homes(self) -> None:
        """Wait until all partitions are there, and deal those of each worker to its threads."""
        found: dict[str, list[int]] = {}
        with clear_errors(f"{len(self.futures)} partitions of samples"):
            while sum(map(len, found.values())) < len(self.futures):
                for future in distributed.wait(self.futures).done:
                    if future.status == "error":
                        future.result()
                found, places = {}, self.client.who_has(self.futures)
                for number, future in enumerate(self.futures):
                    for name in sorted(places.get(future.key, ()))[:1]:
                        found.setdefault(name, []).append(number)
        threads = self.client.nthreads()
        self.homes, self.groups = [], []
        for name, members in found.items():
            count = min(len(members), threads.get(name, 1))
            for turn in range(count):
                self.homes.append(name)
                self.groups.append(members[turn::count])

    def tasks(self, function: Callable, *args: Any, own: Sequence[Any] | None = None) -> list:
        """Return the futures of what a function makes of each group; ``own`` has an argument for each partition."""
        made = []
        for home, members in zip(self.homes, self.groups, strict=True):
            given = () if own is None else ([own[number] for number in members],)
            parts = [self.futures[number] for number in members]
            made.append(send(self.client, function, parts, *given, *args, workers=[home]))
        return made

    def answers(self, tasks: Any) -> Any:
        """Return the results of futures; raise `StateLost` where a worker was lost, or partitions are new."""
        try:
            with clear_errors(f"{len(self.futures)} partitions of samples"):
                return self.client.sync(_collect, self.client, tasks, set(self.homes))
        except (WorkerLost, asyncio.CancelledError, distributed.client.FutureCancelledError) as error:
            raise StateLost from error
        except self.stale as error:
            raise StateLost from error

    def ask(self, function: Callable, *args: Any, own: Sequence[Any] | None = None) -> list:
        """Return what a function makes of each group."""
        return self.answers(self.tasks(function, *args, own=own))

    def ask_each(self, function: Callable, *args: Any, own: Sequence[Any] | None = None) -> list:
        """Return what a function makes of each partition, where it returns one answer for each of its group."""
        out: list = [None] * len(self.futures)
        for members, answers in zip(self.groups, self.ask(function, *args, own=own), strict=True):
            for number, answer in zip(members, answers, strict=True):
                out[number] = answer
        return out

    def total(self, tasks: Sequence[Any], item: int | None = None) -> Any:
        """Return the future of the sum of vectors, added up by the workers two at a time."""
        left = list(tasks) if item is None else [send(self.client, itemgetter(item), task) for task in tasks]
        while len(left) > 1:
            pairs = [send(self.client, add, one, two) for one, two in zip(left[::2], left[1::2], strict=False)]
            left = pairs + left[2 * len(pairs) :]
        return left[0]

    def rest(self, tasks: Sequence[Any], item: int) -> list:
        """Return the futures of one item of what each group returned."""
        return [send(self.client, itemgetter(item), task) for task in tasks]


class PartitionGram(Gram):
    """p kernels by their explicit features, on samples in partitions.

    Parameters
    ----------
    groups : Groups
        The partitions.
    samples : PartitionedSamples
        Their sizes.
    scale : ndarray of shape (p,)
        Factors of the raw kernels.
    spans : list of tuple
        Kernel, start and end of its features in the tables.
    means : ndarray
        The tables of 1/n for every sample.
    moments : (ndarray, ndarray)
        Means of the raw diagonals (p,), and |means_k|^2.
    top : ndarray of shape (p, partitions)
        The largest entry of each raw diagonal.
    nbytes : int
        Bytes of the features.
    point : callable
        Makes the points that solvers move.
    solver : Solver
        What `solver="auto"` takes.
    """

    kind = "features"
    dtype = np.dtype(np.float64)

    def __init__(
        self, groups: Groups, samples: PartitionedSamples, scale: np.ndarray, spans: list, means: np.ndarray,
        moments: tuple[np.ndarray, np.ndarray], top: np.ndarray, nbytes: int, point: Callable, solver: Any,
    ) -> None:  # fmt: skip
        self.groups, self.samples, self.scale, self.spans, self.means_tables = groups, samples, scale, spans, means
        self.moments, self.top, self.nbytes, self.point, self.solver = moments, top, nbytes, point, solver
        self.n_kernels, self.n_samples = len(scale), len(samples)
        self.device = f"{len(set(groups.homes))} workers of Dask"

    def diag(self) -> np.ndarray:
        """Return the largest entry of each diagonal in each partition, (p, partitions), in place of all entries."""
        return self.scale[:, None] * self.top

    def rescaled(self, factor: float) -> PartitionGram:
        return PartitionGram(
            self.groups, self.samples, self.scale * factor, self.spans, self.means_tables, self.moments, self.top,
            self.nbytes, self.point, self.solver,
        )  # fmt: skip

    def take_samples(self, idx):
        return self.samples[idx]

    def _never(self, *args: Any, **options: Any) -> Any:
        raise AssertionError(f"Kernels of {size_text(self.nbytes)} in partitions have no values on the client.")

    apply = new_outputs = rows = block = combined = take_kernels = _never
