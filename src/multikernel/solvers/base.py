"""The contract of an outer algorithm.

A solver moves a ``Point`` of a ``Problem``; it never asks which Gram, Machine or Mixing it was given, but declares
what it needs of them in ``requires``. The driver in ``multikernel.solve`` certifies the point after every step, keeps
the best, records the history and decides when to stop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from multikernel.certificate import Certificate
from multikernel.problem import Point


@dataclass
class Step:
    """What a step reports beside the point it moved.

    Attributes
    ----------
    lower : float
        A rigorous lower bound on the optimum found on the way, such as the value of a master over cuts.
    extra : dict
        Further columns of the history.
    done : bool
        The method has nothing left to do.
    settled : bool
        The weights changed by no more than the solver was told to stop at.
    """

    lower: float = -np.inf
    extra: dict[str, float] = field(default_factory=dict)
    done: bool = False
    settled: bool = False


class Solver(ABC):
    """Base class: a frozen dataclass of settings; the state lives in what ``start`` returns.

    Attributes
    ----------
    requires : tuple of str
        Capabilities such as "machine.curvature" or "mixing.linear_rows".
    scope : str
        Which problems have them, in the user's words, where that is not plain.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    scope: ClassVar[str] = ""

    @abstractmethod
    def start(self, point: Point, tol: float) -> Any:
        """Return the state of a run that will stop at relative gap ``tol``."""

    @abstractmethod
    def step(self, point: Point, state: Any, certificate: Certificate) -> Step:
        """Move the point once; ``certificate`` holds the best bounds so far."""


def missing_needs(solver: Solver, problem) -> list[str]:
    """List the requirements that the problem's parts do not offer."""
    return [need for need in solver.requires if not hasattr(getattr(problem, need.split(".")[0]), need.split(".")[1])]
