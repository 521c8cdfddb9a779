"""Outer algorithms, one file each, and their registry."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from multikernel.problem import Problem, Start
from multikernel.solvers.base import Solver, Step, missing_needs, offers

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

__all__ = [
    "REGISTRY", "Solver", "Step", "choose_solver", "get_solver", "missing_needs", "offers", "refusal", "solver_names",
]  # fmt: skip

# products with kernels on the classes beyond which their curvature costs more than further inner solutions
_MANY_PRODUCTS = 300
# kernels that are not stored, from which number on ``auto`` works on a list of them
_MANY = 32
# a start with weight on more than this share of the kernels gains nothing from a list
_FEW = 0.6


def solver_names() -> list[str]:
    """Names that ``solver=`` accepts."""
    return ["auto", *REGISTRY]


def get_solver(name: str) -> Solver:
    """Return the solver of that name with its default settings.

    Examples
    --------
    >>> from multikernel.solvers import get_solver
    >>> get_solver("newton").patience
    3
    """
    if name not in REGISTRY:
        near = get_close_matches(name, solver_names(), n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"The solver must be one of {', '.join(solver_names())}. Got {name!r} instead.{hint}")
    module, attribute = REGISTRY[name]
    return getattr(import_module(module), attribute)()


def choose_solver(problem: Problem, solver: str | Solver = "auto", start: Start | None = None) -> tuple[str, Solver]:
    """Return the name of a solver and the solver itself; "auto" takes the fastest measured (benchmarks/solvers.py).

    A solver that begins with weight on few of the kernels is wrapped by the active set, under its own name.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.machines.svc import SVC
    >>> from multikernel.mixing.norms import Simplex
    >>> problem = Problem(DenseGram(np.eye(2)[None]), SVC(np.array([-1.0, 1.0])), Simplex())
    >>> choose_solver(problem)[0]
    'newton'
    """
    if isinstance(solver, str):
        name = _fastest(problem) if solver == "auto" else solver
        solver = get_solver(name)
    else:
        kind = type(solver).__name__
        name = next((key for key, (_, attribute) in REGISTRY.items() if attribute == kind), kind.lower())
    gram = problem.gram
    if start is None or name == "active-set" or gram.kind == "features" or gram.output_kernels is not None:
        return name, solver
    if 0 < np.count_nonzero(start.weights) <= _FEW * gram.n_kernels and offers(problem, "mixing.take_kernels"):
        from multikernel.solvers.active_set import ActiveSet

        return name, ActiveSet(solver)
    return name, solver


def _fastest(problem: Problem) -> str:
    gram = problem.gram
    if gram.kind == "features":
        return "interleaved"
    if gram.n_kernels > _MANY_PRODUCTS and gram.output_kernels is not None:
        return "level" if find_spec("clarabel") else "alternating"
    lists = offers(problem, "machine.subsample") and not missing_needs(get_solver("active-set"), problem)
    return "active-set" if gram.kind == "lazy" and gram.n_kernels >= _MANY and lists else "newton"


def refusal(name: str, solver: Solver, problem: Problem) -> str | None:
    """Return the sentence about a solver that does not apply, and about those that do; None where it applies.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.machines.svc import SVC
    >>> from multikernel.mixing.norms import Ball
    >>> problem = Problem(DenseGram(np.eye(2)[None]), SVC(np.array([-1.0, 1.0])), Ball(2.0))
    >>> refusal("silp", get_solver("silp"), problem)
    "The solver 'silp' cannot be used with norm=2: use 'newton', 'sip', 'level', 'alternating' or 'qcqp' instead."
    """
    lacking = missing_needs(solver, problem)
    if not lacking:
        return None
    met = " and ".join(dict.fromkeys(_user_words(need, problem) for need in lacking))
    only = f", only with {solver.scope}" if solver.scope else ""
    *most, last = [repr(other) for other in REGISTRY if not missing_needs(get_solver(other), problem)]
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
