"""A team of plain threads for compiled loops that release the interpreter lock; and Ctrl-C, which these may hide.

Work is split by the caller into independent calls; nothing spins while it waits, so the team can be mixed freely
with BLAS threads and with processes started by joblib.
"""

from __future__ import annotations

import os
import signal
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from operator import call
from queue import SimpleQueue
from threading import RLock
from types import FrameType
from typing import Any
from weakref import ref

import numpy as np

# bytes that a thread should read at least: waking a thread takes as long as reading some of them
_WORTH_A_THREAD = 4 << 20
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

    return ThreadpoolController().select(user_api="blas")


# the garbage collector may end a holder while the same thread has the lock, so it is one that can be taken twice
_holding = RLock()
# those that hold BLAS to one thread, and the libraries with the numbers of threads that they had before
_holders: list[object] = []
_before: list[tuple[Any, int]] = []


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS to one thread per call for a while: the team splits the work instead, and its threads never spin.

    The limit is set by the first of those that hold it, in whatever threads, and lifted by the last; also where Ctrl-C
    arrives while it is set or lifted.
    """
    holder = object()
    try:
        try:
            with _holding:
                _holders.append(holder)
                if len(_holders) == 1:
                    for library in _controller().lib_controllers:
                        _before.append((library, library.num_threads))
                        library.set_num_threads(1)
            yield
        finally:
            _let_go(holder)
    finally:
        # where Ctrl-C has cut that short
        _let_go(holder)


def _let_go(holder: object) -> None:
    with _holding:
        if _holders == [holder]:
            for library, threads in _before:
                library.set_num_threads(threads)
            _before.clear()
        if holder in _holders:
            _holders.remove(holder)


def _serve(offers: SimpleQueue, team: ref) -> None:
    """Do the work that is offered, nothing where others were faster, until the team that is gone is offered itself."""
    while isinstance(offer := offers.get(), list):
        try:
            work = offer.pop()
        except IndexError:
            continue
        work()
        # a thread that waits keeps no arrays
        del work


@dataclass(eq=False)
class Team:
    """``n_threads`` workers, started on first use.

    Nothing waits for a thread that has not begun to work, and no lock is held in Python code: threads that cannot be
    started, that a fork has left behind, or Ctrl-C at any moment leave the caller with more work, never waiting.

    Parameters
    ----------
    n_threads : int
        Number of workers; 1 runs everything in the calling thread.
    """

    n_threads: int = 1

    def __getstate__(self) -> dict:
        return {"n_threads": self.n_threads}

    def _hire(self) -> SimpleQueue:
        """Return the queue from which threads beside the caller take lists of calls; start them the first time."""
        offers: SimpleQueue = SimpleQueue()
        # another thread may ask at the same time
        if self.__dict__.setdefault("_offers", offers) is offers:
            try:
                for _ in range(self.n_threads - 1):
                    # no Python code runs when the team goes: Ctrl-C would be lost in it
                    start_new_thread(_serve, (offers, ref(self, offers.put)))
            except (RuntimeError, MemoryError):
                # no more of them can be had
                pass
        return self.__dict__["_offers"]

    def run(self, calls: Iterable[Callable[[], object]]) -> list:
        """Run the calls, each thread (this one too) taking the next as soon as it is free; results in order.

        After an error or Ctrl-C no further call is begun, and those that were have ended when it is raised.
        """
        calls = list(calls)
        others = min(self.n_threads, len(calls)) - 1
        if others < 1:
            return list(map(call, calls))
        results: list = [None] * len(calls)
        left = iter(range(len(calls)))
        # of each other thread: whether it works (1), with a lock that is free once it has ended, and its error
        working, ended = bytearray(others), [allocate_lock() for _ in range(others)]
        errors: list[BaseException | None] = [None] * others

        def work() -> None:
            for i in left:
                results[i] = calls[i]()

        def help_out(t: int) -> None:
            working[t] = 1
            try:
                work()
            except BaseException as error:
                errors[t] = error
                deque(left, maxlen=0)
            finally:
                working[t] = 0
                ended[t].release()

        def finish() -> None:
            deque(left, maxlen=0)
            for t in range(others):
                # a thread that begins from here on finds nothing left to do
                while working[t]:
                    ended[t].acquire()

        for lock in ended:
            lock.acquire()
        offer, offers = [partial(help_out, t) for t in range(others)], self._hire()
        try:
            try:
                for _ in range(others):
                    offers.put(offer)
                work()
            finally:
                # nothing is kept for threads that never come
                offer.clear()
                finish()
        finally:
            # where Ctrl-C has cut that short: other threads write to arrays of the caller
            finish()
        for error in filter(None, errors):
            raise error
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


def is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: Numba returns a result all the same, which Python reports as a SystemError."""
    while isinstance(error, SystemError):
        error = error.__cause__
    return isinstance(error, KeyboardInterrupt)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt where Ctrl-C has come, whatever became of it inside: another error, or none at all."""
    heard: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def hear(number: int, frame: FrameType | None) -> None:
        assert callable(before)
        try:
            before(number, frame)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                heard.append(number)
            # at once, since an error that comes while the context is left ends it before its last lines
            if signal.getsignal(signal.SIGINT) is hear:
                signal.signal(signal.SIGINT, before)
            raise

    try:
        # some programs ignore Ctrl-C
        if callable(before):
            # a ValueError: only the main thread of the main interpreter gets Ctrl-C, and may set handlers
            with suppress(ValueError):
                signal.signal(signal.SIGINT, hear)
        yield
    except Exception as error:
        if heard or is_interrupt(error):
            raise KeyboardInterrupt from error
        raise
    finally:
        # a handler that the program has set meanwhile stays
        if signal.getsignal(signal.SIGINT) is hear:
            signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt
