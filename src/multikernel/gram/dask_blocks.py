"""Row blocks of kernels with the workers of a Dask cluster, and the client that asks for answers of them.

Every block is a future of a pure function, and so is every answer: when a worker dies, the scheduler has its blocks
computed again by others, and what was asked is asked again.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from multikernel.gram.row_block import RowBlock
from multikernel.gram.storage import parse_bytes, size_text
from multikernel.threads import BLOCK_BYTES

try:
    import dask
    import distributed
except ImportError:  # without Dask only the sentence of `current_client` is needed
    distributed = None


def current_client() -> Any:
    """Return the current client of Dask, or raise one sentence about what is missing."""
    if distributed is None:
        raise ImportError(
            "gram='dask' needs dask.distributed. It is not installed: pip install 'multikernel[distributed]'."
        )
    try:
        distributed.get_worker()
    except ValueError:
        pass
    else:
        raise ValueError(
            "gram='dask' must not be used in a task of Dask, which would wait for workers that wait for it. "
            "Fit in the process of the client: outside of joblib.parallel_config('dask'), and not by client.submit."
        )
    try:
        client = distributed.default_client()
    except ValueError as error:
        raise ValueError(
            "gram='dask' needs a current client of Dask. There is none: make one first, for example by "
            "dask.distributed.Client(), and keep it open until the fit is done."
        ) from error
    if not client.nthreads():
        raise ValueError("gram='dask' needs workers. The current client of Dask has none: start at least one.")
    return client


@dataclass(frozen=True)
class Share:
    """Rows of the kernels, and the worker that is to hold them."""

    start: int
    stop: int
    worker: str


def deal(client: Any, n: int, sizes: Sequence[int] | None = None) -> list[Share]:
    """Deal n rows to the workers, one run of rows to each of their threads; or runs of given sizes in turn."""
    threads = client.nthreads()
    # a worker's first thread before another's second
    places = [name for turn in range(max(threads.values())) for name, count in threads.items() if turn < count]
    if sizes is None:
        parts = min(len(places), n)
        edges = n * np.arange(parts + 1) // parts
    else:
        edges = np.cumsum([0, *sizes])
    owners = sorted(places[i % len(places)] for i in range(len(edges) - 1))
    return [Share(int(lo), int(hi), name) for lo, hi, name in zip(edges[:-1], edges[1:], owners, strict=True)]


def require_room(client: Any, shares: Sequence[Share], row_bytes: float, memory_limit: float | str | None) -> None:
    """Raise where the rows of all kernels, and of the combined one, do not fit into the memory of a worker."""
    try:
        workers = client.scheduler_info(n_workers=-1)["workers"]
    except TypeError:
        # an older version, which tells of all workers
        workers = client.scheduler_info()["workers"]
    # above this part of its memory a worker moves data to its disk
    part = dask.config.get("distributed.worker.memory.target") or 1.0
    for name in {share.worker for share in shares}:
        need = row_bytes * sum(share.stop - share.start for share in shares if share.worker == name)
        own = workers[name]["memory_limit"] if name in workers else 0
        limit = part * own if own else np.inf
        if memory_limit is not None:
            limit = parse_bytes(memory_limit)
        if need > limit:
            raise MemoryError(
                f"The kernels need {size_text(need)} on the worker {name}, where the limit is {size_text(limit)}: use "
                "more workers, workers with more memory, fewer samples or kernels, or a larger 'memory_limit'."
            )


@contextmanager
def clear_errors(what: str) -> Iterator[None]:
    """Turn errors of the cluster into one sentence."""
    try:
        yield
    except MemoryError as error:
        raise MemoryError(
            f"A worker of Dask has run out of memory for {what}: use more workers, workers with more memory, or fewer "
            "samples or kernels."
        ) from error
    except distributed.scheduler.KilledWorker as error:
        raise MemoryError(
            f"Workers of Dask have died again and again over {what}, which is what workers out of memory do: use more "
            "workers, workers with more memory, or fewer samples or kernels."
        ) from error


def send(client: Any, function: Callable, *args: Any, **options: Any) -> Any:
    """Return the future of a call, which the scheduler can repeat wherever its arguments are lost."""
    with warnings.catch_warnings():
        # of large arguments: they are to stay with the scheduler
        warnings.simplefilter("ignore", UserWarning)
        return client.submit(function, *args, pure=False, **options)


def _same(value: Any) -> Any:
    return value


def _ask(block: RowBlock, name: str, *args: Any) -> Any:
    return getattr(block, name)(*args)


class WorkerLost(Exception):
    """A worker is gone, and with it a block that was asked."""


async def _collect(client: Any, tasks: Any, homes: set[str]) -> Any:
    """Wait for answers; raise where one of the workers is gone, for which a task would wait for ever."""
    work = asyncio.ensure_future(client.gather(tasks))
    pause = dask.utils.parse_timedelta(dask.config.get("distributed.client.scheduler-info-interval"))
    while not work.done():
        await asyncio.wait([work], timeout=pause)
        if not work.done() and not homes <= set(await client.nthreads()):
            work.cancel()
            raise WorkerLost
    return work.result()


class Blocks:
    """The row blocks of p kernels on n samples, and the client that asks the workers that hold them.

    A question goes to the very worker that holds a block, since the scheduler would move blocks to idle workers. When
    such a worker dies, the scheduler has its blocks computed elsewhere, and all blocks are asked again.

    Parameters
    ----------
    client : distributed.Client
        Client.
    shares : sequence of Share
        Rows of each block.
    futures : sequence of futures
        The blocks.
    p : int
        Number of kernels.
    dtype : numpy.dtype
        Precision of the kernels.

    Attributes
    ----------
    homes : list of str
        The worker that holds each block; a new list after a loss.
    """

    def __init__(self, client: Any, shares: Sequence[Share], futures: Sequence[Any], p: int, dtype: np.dtype) -> None:
        self.client, self.shares, self.futures, self.p, self.dtype = client, shares, futures, p, dtype
        self.n = shares[-1].stop
        self.nbytes = p * self.n**2 * dtype.itemsize
        self.find_homes()

    def find_homes(self) -> None:
        """Wait until all blocks are there, and learn where."""
        homes: list = []
        with clear_errors(f"{self.p} kernels on {self.n} samples, {size_text(self.nbytes)} in all"):
            while not all(homes) or not homes:
                for future in distributed.wait(self.futures).done:
                    if future.status == "error":
                        future.result()
                found = self.client.who_has(self.futures)
                homes = [next(iter(found.get(future.key, ())), None) for future in self.futures]
        self.homes: list[str] = homes

    def tasks(self, name: str, *args: Any, which: Sequence[int] | None = None) -> list:
        """Return the futures of what the blocks, or some of them, answer to a question."""
        # a large argument once to the cluster, and not once for each block
        args = tuple(
            send(self.client, _same, each) if isinstance(each, np.ndarray) and each.nbytes > BLOCK_BYTES else each
            for each in args
        )
        which = range(len(self.futures)) if which is None else which
        return [send(self.client, _ask, self.futures[b], name, *args, workers=[self.homes[b]]) for b in which]

    def answers(self, question: Callable[[], Any]) -> Any:
        """Return the results of the futures that ``question`` returns; it is called again when a worker was lost."""
        while True:
            try:
                with clear_errors(f"{self.p} kernels on {self.n} samples, {size_text(self.nbytes)} in all"):
                    return self.client.sync(_collect, self.client, question(), set(self.homes))
            except WorkerLost:
                self.find_homes()

    def ask(self, name: str, *args: Any, which: Sequence[int] | None = None) -> list:
        """Return what the blocks, or some of them, answer to a question."""
        return self.answers(lambda: self.tasks(name, *args, which=which))

    def places(self, rows: np.ndarray) -> tuple[list[int], list[np.ndarray]]:
        """Return the blocks that hold some of these rows, and where those rows stand in ``rows``."""
        found = [(b, np.flatnonzero((rows >= each.start) & (rows < each.stop))) for b, each in enumerate(self.shares)]
        return [b for b, at in found if len(at)], [at for _, at in found if len(at)]

    def replaced(self, function: Callable, *args: Any) -> Blocks:
        """Return the blocks that a function makes of these, each where the old one is."""
        made = [
            send(self.client, function, each, *args, workers=[home], allow_other_workers=True)
            for each, home in zip(self.futures, self.homes, strict=True)
        ]
        return Blocks(self.client, self.shares, made, self.p, self.dtype)
