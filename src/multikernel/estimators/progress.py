"""Progress of a fit on the terminal: iteration, gap, active kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(verbose: int, tol: float, label: str) -> Iterator[Callable[[dict], None] | None]:
    """Yield what `multikernel.solve.solve` calls after each iteration; None where nothing is to be shown.

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
    count = 0
    with console.status(f"{label}: starting") as status:

        def show(row: dict) -> None:
            nonlocal count
            count += 1
            line = f"iteration {count}, gap {row['gap']:.1e} of {tol:.0e}, {row['active']} active kernels"
            status.update(f"{label}: {line}")
            if verbose > 1:
                console.print(f"{label}: {line}, {row['time']:.2f} s", highlight=False)

        yield show
