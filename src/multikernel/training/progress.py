"""Progress of a fit on stderr: what is compiled, iteration, gap and active kernels, or how many parts are done.

A terminal shows one line that changes; a file, or anything else, gets plain lines.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from numba.core import event


@contextmanager
def progress(verbose: int, tol: float, label: str) -> Iterator[Callable[[dict], None] | None]:
    """Yield what is called after each iteration or part of the work; None where nothing is to be shown.

    A row of an iteration, such as those of `multikernel.solve.solve`, has "gap" and "active"; one about parts, such as
    those of `multikernel.estimators.baselines`, has "done", "of" and "parts", what they are.

    Parameters
    ----------
    verbose : int
        0 for silence, 2 for a line after each iteration or part. With 1 a terminal shows the last one, and a file gets
        the first, then one whenever twice the time has passed, and the last.
    tol : float
        The gap to reach.
    label : str
        What is being learned.
    """
    if not verbose:
        yield None
        return
    from rich.console import Console

    console = Console(stderr=True)
    # rows so far, the last line that was not printed, and when the next one is due
    count, left, due, began = 0, "", 0.0, time.perf_counter()

    def show(row: dict) -> None:
        nonlocal count, left, due
        count += 1
        if "gap" in row:
            line = f"iteration {count}, gap {row['gap']:.1e} of {tol:.0e}, {row['active']} active kernels"
        else:
            line = f"{row['done']} of {row['of']} {row['parts']}"
        passed, left = time.perf_counter() - began, ""
        if console.is_terminal:
            status.update(f"{label}: {line}")
        line = f"{label}: {line}, {passed:.2f} s"
        if verbose > 1 or (not console.is_terminal and passed >= due):
            due = 2.0 * passed
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        elif not console.is_terminal:
            left = line

    if not console.is_terminal:
        console.print(f"{label}: starting", highlight=False, markup=False, soft_wrap=True)
        yield show
        if left:
            console.print(left, highlight=False, markup=False, soft_wrap=True)
        return
    with console.status(f"{label}: starting") as status:
        yield show


class TellCompiling(event.Listener):
    """Says on stderr which loops of the library are compiled, a line for each file, while Numba's cache lacks them.

    Parameters
    ----------
    terminal : bool
        Whether it speaks where stderr is a terminal, or where it is not.
    """

    def __init__(self, terminal: bool) -> None:
        self.terminal = terminal
        self.told: set[str] = set()

    def on_start(self, event: Any) -> None:
        """Say which file a function that is compiled now is in."""
        module = event.data["dispatcher"].py_func.__module__
        if module in self.told or not module.startswith("multikernel.") or sys.stderr.isatty() != self.terminal:
            return
        self.told.add(module)
        once = "" if len(self.told) > 1 else ", once for this installation (beforehand: multikernel warm-up)"
        print(f"multikernel: compiling {module.removeprefix('multikernel.')}{once}", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """Nothing is said about the end."""


# on a terminal for every fit; elsewhere for those with ``verbose``
event.register("numba:compile", TellCompiling(terminal=True))


def telling_compiling(verbose: int) -> Any:
    """Return a context in which compiled files are also told to a stderr that is not a terminal, if ``verbose``."""
    return event.install_listener("numba:compile", TellCompiling(terminal=False)) if verbose else nullcontext()
