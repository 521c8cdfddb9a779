"""What a baseline says during a fit: progress on the terminal, and the user's callback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from multikernel.training.core import Settings
from multikernel.training.progress import progress

# receives a row: a dict with "gap" and "active" after an iteration, or "done", "of" and "parts" after part of the work
Tell = Callable[[dict], None]


def silent(row: dict) -> None:
    """Ignore the row."""


@contextmanager
def telling(settings: Settings, label: str) -> Iterator[Tell]:
    """Yield a function of rows: it shows the progress, then hands the row with its label to the user's callback.

    Parameters
    ----------
    settings : Settings
        ``verbose``, ``tol`` and ``callback`` are read.
    label : str
        What is being learned; "problem" of the rows that the callback gets.
    """
    with progress(settings.verbose, settings.tol, label) as show:

        def tell(row: dict) -> None:
            if show is not None:
                show(row)
            if settings.callback is not None:
                settings.callback({"problem": label, **row})

        yield tell
