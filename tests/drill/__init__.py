"""An attack on the library as a tool: kinds of cases, each case drawn from a seed, run for as long as there is time.

A kind is one module of this folder with a ``KIND``; a new one is its file and one name in ``MODULES``.
``python -m tests.drill --help`` shows how to run them, and test_drill.py runs a slice of each in the suite.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# in the order in which a run works through them
MODULES = (
    "agreement",
    "exactness",
    "invariance",
    "extremes",
    "bad_input",
    "files",
    "model_files",
    "interrupts",
    "kills",
    "scarcity",
    "growth",
    "concurrency",
)


@dataclass(frozen=True)
class Kind:
    """A kind of attack.

    Attributes
    ----------
    name : str
        How it is called in the results.
    what : str
        What a case does and what counts as a finding, in a sentence or two.
    share : float
        Part of the time budget, relative to the other kinds.
    full : int
        Number of cases of a run without a budget.
    case : callable
        Draws and runs one case: returns what was tried, in few words that can be counted, and what is wrong or None.
        An exception is a finding too.
    absent : callable
        Returns why the kind cannot run here, or None.
    alone : bool
        Whether all cases belong to one process, however many there are.
    """

    name: str
    what: str
    share: float
    full: int
    case: Callable[[np.random.Generator], tuple[str, str | None]]
    absent: Callable[[], str | None] = lambda: None
    alone: bool = False


def load_kinds() -> dict[str, Kind]:
    """Return all kinds by name, in the order of ``MODULES``."""
    found = [importlib.import_module(f"drill.{module}").KIND for module in MODULES]
    return {kind.name: kind for kind in found}
