"""Outer algorithms, one file each, and their registry."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from multikernel.solvers.base import Solver, Step, missing_needs

# name -> module and class; imported when asked for, so that optional libraries load only where they are used
REGISTRY = {
    "newton": ("multikernel.solvers.newton", "Newton"),
    "shortlist": ("multikernel.solvers.shortlist", "Shortlist"),
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

__all__ = ["REGISTRY", "Solver", "Step", "get_solver", "missing_needs", "solver_names"]


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
