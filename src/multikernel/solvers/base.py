"""The contract of an outer algorithm, the registry of algorithms, and the loop that steps one.

A solver moves a ``Point`` of a ``Problem``; it never asks which Gram, Machine or Mixing it was given, but declares
which of their abilities it needs (``requires``) and which it takes advantage of (``uses``). Abilities are the methods
beyond the contracts: those of a machine are listed in ``multikernel.machines.base``, those of a mixing in
``multikernel.mixing.base``. The driver in ``multikernel.solve`` records the history and decides when to stop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, cast

import numpy as np

from multikernel.certificate import Best, Certificate
from multikernel.problem import Point, Problem, Start

# name -> module and class; imported when asked for, so that optional libraries load only where they are used
REGISTRY = {
    "newton": ("multikernel.solvers.newton", "Newton"),
    "active-set": ("multikernel.solvers.active_set", "ActiveSet"),
    "silp": ("multikernel.solvers.silp", "SILP"),
    "sip": ("multikernel.solvers.sip", "SIP"),
    "level": ("multikernel.solvers.level", "Level"),
    "alternating": ("multikernel.solvers.alternating", "Alternating"),
    "simplemkl": ("multikernel.solvers.simplemkl", "SimpleMKL"),
    "interleaved": ("multikernel.solvers.interleaved", "Interleaved"),
    "qcqp": ("multikernel.solvers.qcqp", "QCQP"),
    "qcqp-compact": ("multikernel.solvers.qcqp", "CompactQCQP"),
    "silp-compact": ("multikernel.solvers.silp", "CompactSILP"),
}
# products with kernels on the classes beyond which their curvature costs more than further inner solutions
_MANY_PRODUCTS = 300
# second-order steps to one point that certifies itself, where several together do: most runs need less than five
_LAST = 10
# kernels from which on ``auto`` works on a list of them, not stored or stored, and so does a start with weight
# on some only: fewer gain less than the rechecks take
_MANY, _MANY_STORED = 16, 200


@dataclass
class Step:
    """What a step reports beside the point it moved.

    Attributes
    ----------
    lower : float
        A lower bound on the optimum found on the way, such as the minimum of a model of cuts.
    mix : callable, optional
        Returns coefficients of which it is a bound: those of the cuts, mixed by their multipliers.
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
    mix: Callable[[], np.ndarray] | None = None
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


def solver_names() -> list[str]:
    """Names that ``solver=`` accepts."""
    return ["auto", *REGISTRY]


def get_solver(name: str) -> Solver:
    """Return the solver of that name with its default settings.

    Examples
    --------
    >>> get_solver("newton").patience
    4
    """
    if name not in REGISTRY:
        near = get_close_matches(name, solver_names(), n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"The solver must be one of {', '.join(solver_names())}. Got {name!r} instead.{hint}")
    module, attribute = REGISTRY[name]
    return getattr(import_module(module), attribute)()


def choose_solver(problem: Problem, solver: str | Solver = "auto", start: Start | None = None) -> tuple[str, Solver]:
    """Return the name of a solver and the solver itself; "auto" takes the fastest measured (benchmarks/survey.py).

    A solver that begins with weight on some of many kernels is wrapped by the active set, under its own name. A solver
    that does not apply is an error, whose sentence names those that do.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.machines.svc import SVC
    >>> from multikernel.mixing.norms import Ball
    >>> problem = Problem(DenseGram(np.eye(2)[None]), SVC(np.array([-1.0, 1.0])), Ball(2.0))
    >>> choose_solver(problem)[0]
    'newton'
    >>> choose_solver(problem, "silp")
    Traceback (most recent call last):
    ValueError: The solver 'silp' cannot be used with norm=2: use 'newton', 'sip', ...
    """
    gram = problem.gram
    if solver == "auto":
        solver = "newton"
        if gram.kind == "features":
            solver = getattr(gram, "solver", "interleaved")
        elif gram.n_kernels > _MANY_PRODUCTS and gram.output_kernels is not None:
            solver = "level" if find_spec("clarabel") else "alternating"
        elif gram.n_kernels >= (_MANY if gram.kind == "lazy" else _MANY_STORED) and problem.mixing.is_simplex:
            solver = "newton" if missing(problem, *get_solver("active-set").requires) else "active-set"
    if isinstance(solver, str):
        name, solver = solver, get_solver(solver)
    else:
        kind = type(solver).__name__
        name = next((key for key, (_, attribute) in REGISTRY.items() if attribute == kind), kind.lower())
    if absent := missing(problem, *solver.requires):
        raise ValueError(_refusal(name, solver, problem, absent))
    if start is None or name == "active-set" or gram.kind == "features" or gram.output_kernels is not None:
        return name, solver
    some = gram.n_kernels >= _MANY and 0 < np.count_nonzero(start.weights) < gram.n_kernels
    if some and not missing(problem, "mixing.take_kernels"):
        from multikernel.solvers.active_set import ActiveSet

        return name, ActiveSet(solver)
    return name, solver


def _refusal(name: str, solver: Solver, problem: Problem, absent: list[str]) -> str:
    """Return the sentence about a solver that does not apply, and about those that do."""
    met = " and ".join(dict.fromkeys(_user_words(need, problem) for need in absent))
    only = f", only with {solver.scope}" if solver.scope else ""
    *most, last = [repr(other) for other in REGISTRY if not missing(problem, *get_solver(other).requires)]
    instead = f"{', '.join(most)} or {last}" if most else last
    return f"The solver {name!r} cannot be used with {met}{only}: use {instead} instead."


def _user_words(need: str, problem: Problem) -> str:
    """Return which of the user's choices does not offer what a solver needs."""
    if need.startswith("mixing."):
        return problem.mixing.description
    # machines on explicit features have epochs, and nothing else beyond the contract
    if need == "machine.epochs" or problem.gram.kind == "features":
        return f"gram={problem.gram.kind!r}"
    return problem.machine.description


def iterate(point: Point, solver: Solver, best: Best) -> Iterator[tuple[Step, Certificate]]:
    """Step a solver for as long as it has something to do; after each step ``best`` takes the point into account.

    Where the bounds of several points have met and no single point certifies itself, `_finish` looks for one. A step
    that fails in LAPACK is the last.

    Yields the step and the certificate of the point alone.
    """
    state = solver.start(point, best.tol)
    while True:
        try:
            step = solver.step(point, state, best.certificate)
        except np.linalg.LinAlgError:
            yield Step(done=True, moved=False), best.own
            return
        before = best.own.gap
        now = best.take(point, step.lower)
        # where steps still bring the own gap down by much, the next one does what is asked for
        if best.met and best.own.computed > best.tol and best.own.gap > 0.3 * before and step.mix is not None:
            # one attempt counts as one step
            idle, gap = best.idle, best.own.gap
            _finish(point.problem, step.mix(), best)
            best.idle = idle if best.own.gap > 0.9 * gap else 0
        yield step, now
        if step.done:
            return


def _finish(problem: Problem, mix: np.ndarray, best: Best) -> None:
    """Look for a point that certifies itself near one that several points together certify.

    It begins at the best weights with the mix of coefficients of which the lower bound is one: at a kink of J that is
    what certifies. Second-order steps follow where the problem has them, else closed-form ones.
    """
    assert best.lowest is not None
    weights, newton = best.lowest.weights, cast(Any, get_solver("newton"))
    point = Point(problem, weights, problem.machine.make_feasible(mix))
    best.take(point)
    if missing(problem, *newton.requires):
        for _ in range(_LAST):
            point.solve(0.1 * best.tol * best.certificate.size)
            best.take(point)
            if best.converged:
                break
            point.set_weights(problem.mixing.scale_to_boundary(problem.mixing.closed_form(point.beta, point.q)))
        return
    state = newton.start(point, best.tol)
    for _ in range(_LAST):
        if best.converged:
            break
        # not judged by J, which is flat where q is not yet balanced
        newton._newton(point, state, best.own.relative, 0.03 * best.tol * best.certificate.size)
        best.take(point)
