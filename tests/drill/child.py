"""Runs a job in a forked process, where it may be interrupted, starved or killed, and returns what became of it."""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

from threadpoolctl import threadpool_info

# seconds that a job may take before its process is killed
PATIENCE = 40


def blas_threads() -> list[int]:
    """Return the number of threads of every BLAS library that is loaded."""
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def in_child(job: Callable[[Path], dict], disturb: Callable[[int], None] = lambda pid: None) -> dict:
    """Run ``job`` in a fork of this process with a folder of its own; ``disturb`` gets its process id.

    Returns what the job returns, {"died": signal or exit status} or {"hung": where}; with "left", the files that the
    job left among the temporary ones, and "blas", whether the limits of BLAS threads are as before.
    """
    with tempfile.TemporaryDirectory() as folder:
        work, temporary, errors = (Path(folder) / name for name in ("work", "tmp", "stderr"))
        work.mkdir(), temporary.mkdir()
        ours, theirs = os.pipe()
        sys.stdout.flush(), sys.stderr.flush()
        # Ctrl-C must not reach the fork before it has left the code of its parent
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        pid = os.fork()
        if pid == 0:
            _child(job, work, temporary, errors, theirs)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        os.close(theirs)
        try:
            disturb(pid)
            text = _read_all(ours, PATIENCE)
        finally:
            os.close(ours)
            if hung := _still_runs(pid):
                os.kill(pid, signal.SIGUSR1)
                time.sleep(0.2)
                os.kill(pid, signal.SIGKILL)
            status = hung or os.waitpid(pid, 0)[1]
            if hung:
                os.waitpid(pid, 0)
        result = (
            json.loads(text)
            if text
            else {"hung": errors.read_text(errors="replace")[-2000:]}
            if hung
            else {"died": os.waitstatus_to_exitcode(status)}
        )
        result["left"] = sorted(each.name for each in temporary.iterdir())
        result["stderr"] = errors.read_text(errors="replace")[-2000:] if errors.exists() else ""
        return result


def _child(job, work, temporary, errors, pipe) -> None:
    """Run the job and leave the process, whatever happens."""
    code = 1
    try:
        signal.alarm(0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)
        stream = os.open(errors, os.O_WRONLY | os.O_CREAT)
        os.dup2(stream, 1), os.dup2(stream, 2)
        # a process that hangs is asked where
        faulthandler.register(signal.SIGUSR1, file=stream, all_threads=True)
        warnings.simplefilter("ignore")
        before = blas_threads()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        result = job(work)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        result["blas"] = blas_threads() == before
        os.write(pipe, json.dumps(result).encode())
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)


def _read_all(pipe: int, patience: float) -> str:
    ends, parts = time.monotonic() + patience, b""
    while (left := ends - time.monotonic()) > 0 and select.select([pipe], [], [], left)[0]:
        part = os.read(pipe, 1 << 16)
        if not part:
            break
        parts += part
    return parts.decode()


def _still_runs(pid: int) -> bool:
    ends = time.monotonic() + 2
    while time.monotonic() < ends:
        try:
            # WNOWAIT leaves the status for the caller
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return False
        except ChildProcessError:
            return False
        time.sleep(0.005)
    return True
