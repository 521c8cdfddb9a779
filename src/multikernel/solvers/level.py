"""The extended level method, after Xu, Jin, King & Lyu 2009.

Problem: min over B of J(beta) = max_{a in A} g(a) - 1/2 beta'q(a), convex, one inner solution a cut
g(a) - 1/2 beta'q(a) below it.
Given: the point at any weights. Each step

1. minimises the largest cut over B (lower), and takes the best primal value met (upper);
2. projects the current weights onto {beta in B : every cut <= lower + fraction (upper - lower)}, the level
   set;
3. solves the single-kernel problem there, which gives the next cut.

Returned: the point at the best weights met; the master's multipliers give the lower bound.

Reference: Xu, Jin, King & Lyu 2009, An extended level method for efficient multiple kernel learning. We
differ in taking every set of weights that has rows for a conic solver, in scaling the projected weights
back to the boundary of B, where J is no larger, and in solving inner problems only as exactly as the gap
asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multikernel.certificate import Certificate
from multikernel.problem import Point
from multikernel.solvers.base import Solver, Step
from multikernel.solvers.conic_cuts import project_to_level
from multikernel.solvers.cut_model import InOut, inner_accuracy


@dataclass
class _State:
    tol: float
    memory: InOut


@dataclass(frozen=True)
class Level(Solver):
    """Level method.

    Parameters
    ----------
    fraction : float
        Where between the lower and the upper bound the level lies.
    inner : float
        Accuracy of the inner solver as a fraction of the current gap.
    """

    requires = ("mixing.cone_rows",)

    fraction: float = 0.5
    inner: float = 0.1

    def start(self, point: Point, tol: float) -> _State:
        return _State(tol, InOut(point))

    def step(self, point: Point, state: _State, certificate: Certificate) -> Step:
        memory, mixing = state.memory, point.problem.mixing
        lower = -np.inf
        if memory.cuts.g:
            target, lower = memory.cuts.minimise(memory.beta)
            floor = max(lower, certificate.lower)
            level = floor + self.fraction * (certificate.upper - floor)
            g, Q = np.array(memory.cuts.g), np.array(memory.cuts.q)
            beta = project_to_level(point.beta, g, Q, level, mixing, memory.cuts.kept)
            if beta is None or np.max(g - 0.5 * Q @ beta) > 0.5 * (level + certificate.upper):
                # the projection failed: this point is in the level set, the model being convex
                beta = mixing.scale_to_boundary((1.0 - self.fraction) * target + self.fraction * memory.beta)
            point.set_weights(beta)
        point.solve(self.inner * inner_accuracy(certificate, state.tol))
        memory.observe(point)
        return Step(lower, memory.cuts.mix)
