"""Teams of threads and the limit of BLAS, also where Ctrl-C arrives in the middle or threads cannot be had."""

import os
import pickle
from contextlib import suppress
from queue import SimpleQueue
from threading import Event, Thread, Timer, get_ident
from types import SimpleNamespace

import pytest
from drill.interrupts import raise_at_line
from threadpoolctl import threadpool_info, threadpool_limits

from multikernel import threads
from multikernel.threads import Team, _serve, resolve_threads, single_threaded_blas


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_a_team_returns_results_in_order_and_splits_everything(n_threads):
    team = Team(n_threads)
    assert team.run(lambda i=i: i * i for i in range(7)) == [i * i for i in range(7)]
    for n in (0, 1, 5, 100):
        spans = team.split(n, 3)
        assert [i for lo, hi in spans for i in range(lo, hi)] == list(range(n))
        assert all(hi % 3 == 0 for _, hi in spans[:-1])
        assert team.split(n, 3, item_bytes=10) == team.split(n, max(1, n))
        assert team.split(n, 3, item_bytes=1 << 30) == spans
    assert pickle.loads(pickle.dumps(team)).run([lambda: 1, lambda: 2]) == [1, 2]


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_the_limit_of_blas_is_lifted_by_the_last_that_holds_it():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = single_threaded_blas(), single_threaded_blas()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        with pytest.raises(RuntimeError), single_threaded_blas():
            raise RuntimeError
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == before


def test_a_hold_of_blas_that_the_garbage_collector_ends_waits_for_nothing():
    # an interrupted hold in a cycle of frames may be collected while the same thread takes or leaves another one
    def collected():
        hold = single_threaded_blas()
        hold.__enter__()
        with threads._holding:
            hold.gen.close()
        done.append(1)

    done: list[int] = []
    thread = Thread(target=collected, daemon=True)
    thread.start()
    thread.join(10)
    assert done == [1]


def test_an_error_in_a_thread_reaches_the_caller():
    def fail():
        raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        Team(2).run([lambda: None, fail])


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError()])
def test_a_team_without_room_for_threads_works_in_the_calling_one(monkeypatch, error):
    def refuse(*_):
        raise error

    monkeypatch.setattr("multikernel.threads.start_new_thread", refuse)
    team = Team(3)
    for _ in range(2):
        assert team.run([get_ident] * 4) == [get_ident()] * 4


def test_threads_that_never_begin_are_not_waited_for(monkeypatch):
    # as after a fork, or where memory runs out in the new thread itself
    monkeypatch.setattr("multikernel.threads.start_new_thread", lambda *_: 0)
    offers = []
    monkeypatch.setattr("multikernel.threads.SimpleQueue", lambda: SimpleNamespace(put=offers.append))
    assert Team(3).run([get_ident] * 4) == [get_ident()] * 4
    # and nothing is kept for them, nor done once they come
    assert offers[:2] == [[], []]
    queue = SimpleQueue()
    for offer in (offers[0], None):
        queue.put(offer)
    _serve(queue, None)


def test_ctrl_c_waits_for_calls_that_have_begun_and_begins_no_other():
    begun, ended, ready, go_on = [], [], Event(), Event()

    def long():
        begun.append(1)
        ready.set()
        go_on.wait(10)
        ended.append(1)

    def stop():
        ready.wait(10)
        Timer(0.05, go_on.set).start()
        raise KeyboardInterrupt

    team, caller = Team(2), get_ident()
    with pytest.raises(KeyboardInterrupt):
        team.run([lambda: stop() if get_ident() == caller else long()] * 50)
    assert begun == ended == [1]
    assert team.run([lambda: 1] * 3) == [1, 1, 1]


@pytest.mark.parametrize("nested", [False, True])
def test_ctrl_c_at_any_line_leaves_no_thread_waiting_and_no_limit(nested):
    """Before every line that a hold of BLAS and the work of a team cross, where Python can deliver Ctrl-C."""

    def hold(folder=None):
        with single_threaded_blas():
            if folder == "outer":
                hold()
            return {"sum": sum(Team(2).run([lambda: 1] * 3))}

    folder = "outer" if nested else "inner"
    with threadpool_limits(2, user_api="blas"):
        before, swallowed = blas_threads(), []
        for at in range(1, raise_at_line(-1, hold)(folder)["lines"] + 1):
            with suppress(KeyboardInterrupt):
                raise_at_line(at, hold)(folder)
                swallowed.append(at)
            assert blas_threads() == before, at
            assert hold() == {"sum": 3}
        assert not swallowed


def test_threads_follow_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert resolve_threads() == resolve_threads(None) == resolve_threads(-1) == resolve_threads(-9) == 1
    monkeypatch.delenv("OMP_NUM_THREADS")
    cpus = len(os.sched_getaffinity(0))
    assert resolve_threads() == resolve_threads(-1) == cpus and resolve_threads(-2) == max(1, cpus - 1)
    assert resolve_threads(5) == 5
