"""Progress of a fit on the terminal: iteration, gap and active kernels, or how many parts are done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(verbose: int, tol: float, label: str) -> Iterator[Callable[[dict], None] | None]:
    """Yield what is called after each iteration or part of the work; None where nothing is to be shown.

    A row of an iteration, such as those of `multikernel.solve.solve`, has "gap" and "active"; one about parts, such as
    those of `multikernel.estimators.baselines`, has "done", "of" and "parts", what they are.

    Parameters
    ----------
    verbose : int
        0 for silence.
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
    if not console.is_terminal:
        yield None
        return
    count, began = 0, time.perf_counter()
    with console.status(f"{label}: starting") as status:

        def show(row: dict) -> None:
            nonlocal count
            count += 1
            if "gap" in row:
                line = f"iteration {count}, gap {row['gap']:.1e} of {tol:.0e}, {row['active']} active kernels"
            else:
                line = f"{row['done']} of {row['of']} {row['parts']}"
            status.update(f"{label}: {line}")
            if verbose > 1:
                console.print(f"{label}: {line}, {time.perf_counter() - began:.2f} s", highlight=False)

        yield show
