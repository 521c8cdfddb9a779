"""The contract of an outer algorithm, and the loop that steps it.

A solver moves a ``Point`` of a ``Problem``; it never asks which Gram, Machine or Mixing it was given, but declares
which of their abilities it needs (``requires``) and which it takes advantage of (``uses``). Abilities are the methods
beyond the contracts: those of a machine are listed in ``multikernel.machines.base``, those of a mixing in
``multikernel.mixing.base``. The driver in ``multikernel.solve`` records the history and decides when to stop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from multikernel.problem import Best, Certificate, Point, Problem


@dataclass
class Step:
    """What a step reports beside the point it moved.

    Attributes
    ----------
    lower : float
        A rigorous lower bound on the optimum found on the way, such as the minimum of a model of cuts.
    extra : mapping
        Further columns of the history.
    done : bool
        The method has nothing left to do.
    settled : bool
        The weights changed by no more than the solver was told to stop at.
    moved : bool
        False where the step has only certified the point at which it found it; it is then no iteration of the history.
    """

    lower: float = -np.inf
    extra: dict[str, Any] = field(default_factory=dict)
    done: bool = False
    settled: bool = False
    moved: bool = True


class Solver(ABC):
    """Base class: a frozen dataclass of settings; the state of a run lives in what ``start`` returns.

    Attributes
    ----------
    requires : tuple of str
        Abilities without which the solver cannot run, such as "machine.curvature" or "mixing.linear_rows".
    uses : tuple of str
        Abilities that make it faster where a problem offers them.
    scope : str
        Which problems offer what it requires, in the user's words, where that is not plain.
    certifies_start : bool
        Whether the start is certified before the first step. A solver that begins with few of the kernels does it
        in its first step, when it needs the outputs of all of them.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    uses: ClassVar[tuple[str, ...]] = ()
    scope: ClassVar[str] = ""
    certifies_start: ClassVar[bool] = True

    @abstractmethod
    def start(self, point: Point, tol: float) -> Any:
        """Return the state of a run that will stop at relative gap ``tol``."""

    @abstractmethod
    def step(self, point: Point, state: Any, certificate: Certificate) -> Step:
        """Move the point once; ``certificate`` holds the best bounds so far."""


def missing(problem: Problem, *abilities: str) -> list[str]:
    """List the abilities, such as "machine.curvature" or "mixing.newton_step", that the problem does not offer.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.machines.svc import SVC
    >>> from multikernel.mixing.norms import Ball
    >>> problem = Problem(DenseGram(np.eye(2)[None]), SVC(np.array([-1.0, 1.0])), Ball(2.0))
    >>> missing(problem, "machine.partial_solve", "mixing.take_kernels")
    ['mixing.take_kernels']
    """
    absent = []
    for ability in abilities:
        part, name = ability.split(".")
        if not hasattr(getattr(problem, part), name):
            absent.append(ability)
    return absent


def iterate(point: Point, solver: Solver, best: Best) -> Iterator[tuple[Step, Certificate]]:
    """Step a solver for as long as it has something to do; after each step ``best`` takes the point into account.

    Yields the step and the certificate of the point alone.
    """
    state = solver.start(point, best.tol)
    while True:
        step = solver.step(point, state, best.certificate)
        yield step, best.take(point, step.lower)
        if step.done:
            return
