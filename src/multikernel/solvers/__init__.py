"""Outer algorithms, one file each, and their registry."""

from multikernel.solvers.base import REGISTRY, Solver, Step, choose_solver, get_solver, missing, solver_names

__all__ = ["REGISTRY", "Solver", "Step", "choose_solver", "get_solver", "missing", "solver_names"]
