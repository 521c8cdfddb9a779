"""Kernels by rows with the workers of a Dask cluster.

    worker b    K_k[rows_b, :] for every kernel, and rows of K_beta as they are needed    (`multikernel.gram.row_block`)
    client      vectors, diagonals, and blocks of K_beta on some samples for the compiled loops of the machines

Every block is a future of a pure function, and so is every answer: when a worker dies, the scheduler has its blocks
computed again by others, and what was asked is asked again.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from multikernel.gram.combined import WORKING_SET, Combined, HostRows, all_there
from multikernel.gram.dense_loops import read_only
from multikernel.gram.host import HostGram
from multikernel.gram.row_block import RowBlock, assemble, factorise
from multikernel.gram.storage import parse_bytes, size_text
from multikernel.threads import BLOCK_BYTES, ROWS, Team

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


class DaskGram(HostGram):
    """p kernels with the workers of a cluster, or some of them on some of the samples.

    Parameters
    ----------
    blocks : Blocks
        Rows of all kernels.
    diag : ndarray of shape (p, n)
        Diagonals of what is stored.
    scale : ndarray of shape (p,)
        Factors of the kernels.
    n_threads : int
        Threads for work on the client.
    kernels, samples : ndarrays of int, optional
        The kernels and samples of this Gram among those of the blocks; all by default.
    """

    kind = "dask"

    def __init__(
        self,
        blocks: Blocks,
        diag: np.ndarray,
        scale: np.ndarray,
        *,
        n_threads: int = 1,
        kernels: np.ndarray | None = None,
        samples: np.ndarray | None = None,
    ) -> None:
        self.blocks, self.scale, self._raw_diag, self.team = blocks, scale, diag, Team(n_threads)
        self.kernels, self.samples = np.arange(blocks.p) if kernels is None else kernels, samples
        self.n_kernels, self.n_samples = len(self.kernels), blocks.n if samples is None else len(samples)
        self.dtype, self.nbytes = blocks.dtype, blocks.nbytes
        self.device = f"{len({share.worker for share in blocks.shares})} workers of Dask"

    def diag(self):
        d = (self.scale[:, None] * self._raw_diag)[self.kernels]
        return d if self.samples is None else d[:, self.samples]

    def weights(self, beta: np.ndarray) -> np.ndarray:
        """Return the weights of what is stored."""
        weights = np.zeros(self.blocks.p)
        weights[self.kernels] = beta
        return weights * self.scale

    def numbers(self, idx: np.ndarray) -> np.ndarray:
        """Return the numbers of samples among all that are stored."""
        return np.asarray(idx, np.intp) if self.samples is None else self.samples[idx]

    def sums(self, name: str, v: np.ndarray, of: np.ndarray) -> np.ndarray:
        """Return the sum over all blocks of what their rows add to products with v."""
        if self.samples is not None:
            whole = np.zeros((self.blocks.n, *v.shape[1:]))
            whole[self.samples] = v
            v = whole
        total = reduce(np.add, self.blocks.ask(name, v, of))
        return total if self.samples is None else total[:, self.samples]

    def apply(self, v, kernels=None):
        chosen = self.kernels if kernels is None else self.kernels[kernels]
        if not v.any():
            return np.zeros((len(chosen), *v.shape))
        return self.sums("outputs", v, chosen) * self.scale[chosen].reshape(-1, *(1,) * v.ndim)

    def gather(self, name: str, idx: np.ndarray, columns: np.ndarray | None, of: np.ndarray, out: np.ndarray) -> None:
        """Bring rows to the client, at some columns or at all, some at a time, so that little is in memory twice.

        Sets: ``out``, of shape (p', len(idx), len(columns)).
        """
        rows, columns = self.numbers(idx), self.samples if columns is None else self.numbers(columns)
        blocks, size = self.blocks, max(1, ROWS * WORKING_SET // (len(out) * out.shape[2]))
        cuts = [slice(start, start + size) for start in range(0, len(rows), size)]
        found = [blocks.places(rows[cut]) for cut in cuts]

        def tasks(i: int) -> list:
            first = asked.pop(i, None)
            if first is not None and blocks.homes is homes:
                return first
            return blocks.tasks(name, rows[cuts[i]], columns, of, which=found[i][0])

        homes: list[str] = blocks.homes
        asked: dict[int, list] = {}
        # all are asked for at once, and come one after the other
        asked.update({i: tasks(i) for i in range(len(cuts))})
        for i, cut in enumerate(cuts):
            assemble(blocks.answers(partial(tasks, i)), found[i][1], out[:, cut])

    def combine(self, beta, rows, out, slots):
        part = np.empty((1, len(rows), self.n_samples), self.dtype)
        self.gather("mixed_rows", rows, None, self.weights(beta), part)
        out[slots] = part[0]

    def rows(self, idx, kernels=None):
        chosen = self.kernels if kernels is None else self.kernels[kernels]
        return self._raw_rows(chosen, idx, None, self.n_samples)

    def block(self, idx):
        return self._raw_rows(self.kernels, idx, idx, len(idx))

    def _raw_rows(self, chosen: np.ndarray, idx: np.ndarray, columns: np.ndarray | None, width: int) -> np.ndarray:
        out = np.empty((len(chosen), len(idx), width), self.dtype)
        self.gather("rows", idx, columns, chosen, out)
        out *= self.scale[chosen, None, None].astype(self.dtype)
        return out

    def combined(self, beta):
        return DaskCombined(self, beta)

    def _view(self, scale: np.ndarray, kernels: np.ndarray, samples: np.ndarray | None) -> DaskGram:
        return DaskGram(
            self.blocks, self._raw_diag, scale, n_threads=self.team.n_threads, kernels=kernels, samples=samples
        )

    def take_samples(self, idx):
        return self._view(self.scale, self.kernels, self.numbers(idx))

    def take_kernels(self, kernels):
        return self._view(self.scale, self.kernels[kernels], self.samples)

    def rescaled(self, factor):
        return self._view(self.scale * factor, self.kernels, self.samples)


class DaskCombined(Combined):
    """K_beta whose rows are with the workers.

    A block of K_beta comes to the client for at most ``host_limit`` samples. Factorisations stay with a worker.
    """

    # half of what comes from a device: the client is often a small machine, and smaller blocks come sooner
    host_limit = WORKING_SET // 2
    _gram: DaskGram

    def __init__(self, gram: DaskGram, beta: np.ndarray) -> None:
        self._gram, self.dtype, self.team = gram, gram.dtype, gram.team
        self._kernel_diag = gram.diag()
        self.set_weights(beta)

    def set_weights(self, beta):
        self.beta, self.cache = beta, {}
        self._weights, self.diag = self._gram.weights(beta), beta @ self._kernel_diag

    def apply(self, delta, exact=True):
        if not delta.any():
            return np.zeros(delta.shape)
        return self._gram.sums("mixed_outputs", delta, self._weights)[0]

    def block(self, idx, dtype=None):
        out = np.empty((1, len(idx), len(idx)), self.dtype if dtype is None else dtype)
        self._gram.gather("mixed_rows", idx, idx, self._weights, out)
        return out[0]

    def host_rows(self, idx=None):
        if idx is not None:
            return super().host_rows(idx)
        if "rows" not in self.cache:
            # all at once, which takes less time than some rows many times
            n = self._gram.n_samples
            matrix = read_only(self.block(np.arange(n)))
            self.cache["rows"] = HostRows(matrix, 1.0, np.ones(n, bool), self.diag, all_there)
        return self.cache["rows"]

    def factor(self, idx, diagonal, single=False):
        blocks, rows, weights = self._gram.blocks, self._gram.numbers(idx), self._weights
        which, places = blocks.places(rows)
        dtype = self.precision(single, diagonal)

        def make() -> Any:
            parts = blocks.tasks("mixed_rows", rows, rows, weights, which=which)
            return send(blocks.client, factorise, parts, places, diagonal, dtype)

        made = DaskCholesky(blocks, make)
        return made if blocks.answers(lambda: send(blocks.client, _is_there, made.future())) else None


def _is_there(value: Any) -> bool:
    return value is not None


def _solve(factor: Any, rhs: np.ndarray) -> np.ndarray:
    return factor.solve(rhs)


class DaskCholesky:
    """A factorisation that a worker holds; made again when a worker was lost."""

    def __init__(self, blocks: Blocks, make: Callable[[], Any]) -> None:
        self._blocks, self._make = blocks, make
        self._made: tuple[list[str], Any] | None = None

    def future(self) -> Any:
        """Return the factorisation."""
        if self._made is None or self._made[0] is not self._blocks.homes:
            self._made = self._blocks.homes, self._make()
        return self._made[1]

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Return A^-1 rhs, float64, for right-hand sides of shape (n,) or (n, m)."""
        return self._blocks.answers(lambda: send(self._blocks.client, _solve, self.future(), rhs))
