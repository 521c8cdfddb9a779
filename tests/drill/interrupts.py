"""Ctrl-C at random moments: always raised again, what is kept is usable and certified, and nothing left behind."""

from __future__ import annotations

import contextlib
import dis
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from drill import Kind
from drill.child import in_child
from drill.jobs import draw_job
from multikernel import __file__ as package

# where Ctrl-C arrives: the library, and how its context managers are entered and left
TRACED = str(Path(package).parent), contextlib.__file__


def leaves_with(frame) -> bool:
    """Whether the next thing is to call the ``__exit__`` of a with statement, before which Python raises no Ctrl-C."""
    left = (each for each in dis.get_instructions(frame.f_code) if each.offset >= frame.f_lasti)
    return all(each.opname == "LOAD_CONST" and each.argval is None for each in islice(left, 3))


def raise_at_line(count: int, job: Callable[[Path], dict]) -> Callable[[Path], dict]:
    """Return a job in which Ctrl-C arrives before the line of the library of this number, as it would by chance."""

    def run(folder: Path) -> dict:
        left, before = [count], sys.gettrace()

        def watch(frame, event, arg):
            if event == "call":
                return watch if frame.f_code.co_filename.startswith(TRACED) else None
            if event == "line":
                left[0] -= 1
                if left[0] == 0 and leaves_with(frame):
                    left[0] = 1
                if left[0] == 0:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return watch

        sys.settrace(watch)
        try:
            found = job(folder)
        finally:
            # a run that measures coverage goes on
            sys.settrace(before)
        return {**found, "lines": count - left[0]}

    return run


def send_after(delay: float) -> Callable[[int], None]:
    """Return a disturbance that sends Ctrl-C after some seconds."""

    def send(pid: int) -> None:
        time.sleep(delay)
        try:
            os.kill(pid, signal.SIGINT)
        except ProcessLookupError:
            pass

    return send


def verdict(result: dict) -> str | None:
    """Return what is wrong after an interrupt."""
    if "hung" in result:
        return f"the process hangs: {result['hung']}"
    if "died" in result:
        # Ctrl-C outside the job, while the process starts or ends
        last = (result["stderr"].strip().splitlines() or [""])[-1]
        return None if last.endswith("KeyboardInterrupt") else f"the process died with {result['died']}: {last}"
    if result.get("end") == "error":
        return result["error"]
    if result.get("wrong"):
        return f"{result['end']}, and then: {result['wrong']}"
    if not result["blas"]:
        return "the limits of BLAS threads are not restored"
    return f"temporary files left: {result['left']}" if result["left"] else None


def case(rng):
    """Interrupt one job, at a random line of the library or after a random time."""
    name, job = draw_job(rng)
    by_line = rng.random() < 0.5
    label = f"{name.split()[0]}, {'line' if by_line else 'signal'}"
    # once in this process: it tells how long the job is, and loads what is compiled
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        whole = raise_at_line(-1, job)(Path(folder)) if by_line else job(Path(folder))
        spent = time.perf_counter() - began
    if whole.get("error", "").startswith("ValueError"):
        return f"{name.split()[0]}, refused", None
    if whole.get("error") or whole["wrong"]:
        return label, f"{name}, not interrupted: {whole}"
    if by_line:
        at = int(rng.integers(1, whole["lines"] + 1))
        result = in_child(raise_at_line(at, job))
        if result.get("end") == "done" and result.get("lines") == at:
            result["wrong"] = "Ctrl-C was swallowed"
        return label, _tell(name, f"line {at} of {whole['lines']}", result)
    delay = float(rng.uniform(0, spent))
    return label, _tell(name, f"{delay:.3f} of {spent:.3f} s", in_child(job, send_after(delay)))


def _tell(name: str, when: str, result: dict) -> str | None:
    wrong = verdict(result)
    return wrong and f"{name}, at {when}: {wrong}"


KIND = Kind(
    "interrupts",
    "A fit of any estimator, search, path, comparison, importance or command in a process of its own is interrupted by "
    "Ctrl-C after a random time, or before a random line of the library. A finding is anything but the interrupt "
    "raised again, with no model or a sound certified one kept: a swallowed Ctrl-C, another exception, a damaged "
    "model, BLAS threads still limited, a temporary file left, results from which a second run cannot go on.",
    share=4,
    full=400,
    case=case,
    absent=lambda: None if hasattr(os, "fork") else "processes cannot be forked here.",
)
