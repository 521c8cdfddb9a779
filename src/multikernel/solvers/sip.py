"""The exchange method with the norm of the weights as a cone, after Kloft et al. 2008.

Problem: min over B of J(beta) = max_{a in A} g(a) - 1/2 beta'q(a), written as the semi-infinite programme

    min theta   over  theta >= g(a) - 1/2 beta'q(a)  for all a in A,   ||beta||_r <= 1, beta >= 0     (OP 1)

Given: the point at any weights. Each step adds the a of the single-kernel problem at the current weights,
and moves to the optimum of the master over the rows so far, a conic programme solved by Clarabel: a
second-order cone for norm 2, power cones for the others, linear rows for the simplex and the plain sum.
Returned: the point at the best weights met; the master's multipliers give the lower bound.

Reference: Kloft, Brefeld, Laskov, Sonnenburg 2008, Optimization Problem 1 (its "1'alpha <= eta 1'" reads
alpha <= eta 1). We differ in taking every norm, in stopping on the duality gap, in scaling the master's
weights to norm one (an optimum is there: their Theorem 1, which for uniqueness needs positive definite
kernels), and in solving the inner problem only as exactly as the gap asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multikernel.certificate import Certificate
from multikernel.problem import Point
from multikernel.solvers.base import Solver, Step
from multikernel.solvers.conic_cuts import minimise_conic
from multikernel.solvers.cut_model import CutModel, inner_accuracy


@dataclass
class _State:
    tol: float
    cuts: CutModel


@dataclass(frozen=True)
class SIP(Solver):
    """Exchange method with a conic master.

    Parameters
    ----------
    inner : float
        Accuracy of the inner solver as a fraction of the current gap.
    """

    requires = ("mixing.cone_rows",)

    inner: float = 0.1

    def start(self, point: Point, tol: float) -> _State:
        return _State(tol, CutModel(point.problem.mixing, point.problem.gram.n_kernels))

    def step(self, point: Point, state: _State, certificate: Certificate) -> Step:
        cuts, mixing = state.cuts, point.problem.mixing
        lower = -np.inf
        if cuts.g:
            found = minimise_conic(np.array(cuts.g), np.array(cuts.q), mixing, cuts.kept)
            # where the conic solver fails, other programmes of the same cuts
            beta, lower = cuts.minimise(point.beta) if found is None else (found[0], cuts.bound(found[1]))
            point.set_weights(beta)
        point.solve(self.inner * inner_accuracy(certificate, state.tol))
        cuts.add(point.problem.machine.dual(point.a), point.q, point.a)
        return Step(lower, cuts.mix)
