"""What a baseline says during a fit: progress on the terminal, the user's callback, and a warning after Ctrl-C."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning

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


def warn_interrupted(owner: str, after: str, worth: str) -> None:
    """Warn of Ctrl-C: after which part of the work it came, and what the result is worth."""
    warnings.warn(f"{owner} was interrupted after {after}. {worth}", ConvergenceWarning, stacklevel=3)
