"""A team of plain threads for compiled loops that release the interpreter lock.

Work is split by the caller into independent calls; nothing spins while it waits, so the team can be mixed freely
with BLAS threads and with processes started by joblib.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from mmap import mmap
from operator import call
from threading import Lock
from typing import Any

import numpy as np

# bytes that a thread should read at least: waking a thread takes as long as reading some of them
_WORTH_A_THREAD = 4 << 20
# bytes of address space that a new thread takes: its stack, and its first objects
_NEW_THREAD = 16 << 20
# rows of a matrix worked on at once: more rows mean fewer calls, fewer rows smaller temporary arrays
ROWS = 256
# bytes of a temporary block: larger blocks mean fewer calls, smaller ones stay nearer to the cache
BLOCK_BYTES = 2 << 20
# neighbouring samples treated alike where samples are drawn, shuffled or signed: whole cache lines against randomness
RUN = 16


def resolve_threads(n_jobs: int | None = None) -> int:
    """Threads for ``n_jobs``: None and -1 mean all that this process may use, -2 all but one, and so on.

    Those are its CPU affinity, or less where ``OMP_NUM_THREADS`` says so: joblib sets that variable in its workers,
    so that nested parallel work does not oversubscribe the machine.
    """
    if n_jobs is not None and n_jobs >= 0:
        return n_jobs
    affinity = getattr(os, "sched_getaffinity", None)
    cpus = len(affinity(0)) if affinity else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if limit.isdigit() and int(limit) > 0:
        cpus = min(cpus, int(limit))
    return max(1, cpus + 1 + (-1 if n_jobs is None else n_jobs))


@cache
def _controller():
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_holding = Lock()
_holders: list[Any] = []


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS to one thread per call for a while: the team splits the work instead, and its threads never spin.

    The limit is set by the first of those that hold it, in whatever threads, and lifted by the last.
    """
    with _holding:
        _holders.append(None if _holders else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _holding:
            # that of the first is the last to go
            limit = _holders.pop()
            if limit is not None:
                limit.restore_original_limits()


@dataclass(eq=False)
class Team:
    """``n_threads`` workers, started on first use.

    Parameters
    ----------
    n_threads : int
        Number of workers; 1 runs everything in the calling thread.
    """

    n_threads: int = 1
    _pool: ThreadPoolExecutor | None = field(default=None, init=False, repr=False)

    def __getstate__(self) -> dict:
        return {"n_threads": self.n_threads, "_pool": None}

    def run(self, calls: Iterable[Callable[[], object]]) -> list:
        """Run the calls, each thread (this one too) taking the next as soon as it is free; results in order."""
        calls = list(calls)
        others = min(self.n_threads, len(calls)) - 1
        if others < 1:
            return list(map(call, calls))
        if self._pool is None:
            try:
                # Python waits forever for a thread that runs out of memory while it starts
                mmap(-1, others * _NEW_THREAD).close()
            except OSError:
                return list(map(call, calls))
            self._pool = ThreadPoolExecutor(self.n_threads - 1, thread_name_prefix="multikernel")
        results: list = [None] * len(calls)
        queue = enumerate(calls)

        def work() -> None:
            for i, task in queue:
                results[i] = task()

        futures = [self._pool.submit(work) for _ in range(others)]
        try:
            work()
        finally:
            wait(futures)
        for future in futures:
            future.result()
        return results

    def split(self, n: int, grain: int = 1, item_bytes: int | None = None) -> list[tuple[int, int]]:
        """Cut ``range(n)`` into at most ``n_threads`` runs, each worth a thread; cuts are multiples of ``grain``.

        Loops that work on ``grain`` items at a time then give the same bits for any number of threads.
        ``item_bytes`` is what one item reads, where that is little work.
        """
        parts = min(self.n_threads, n // grain)
        if item_bytes is not None:
            parts = min(parts, n * item_bytes // _WORTH_A_THREAD)
        if parts < 2:
            return [(0, n)] if n else []
        cuts = n // grain * np.arange(1, parts) // parts * grain
        return list(pairwise([0, *cuts.tolist(), n]))
