"""Alternating minimisation with closed-form weights, after Ying et al. 2009 and, for norms, Kloft et al.

Problem: min over B of J(beta) = max_{a in A} g(a) - 1/2 beta'q(a). With w_k the vector of kernel k the same
problem is

    min over w, beta in B   1/2 sum_k |w_k|^2 / beta_k + loss(sum_k w_k),

convex in both. Given the weights, the single-kernel problem has |w_k| = beta_k sqrt(q_k); given the norms
s_k = |w_k|, the weights have the closed form beta_k ~ s_k^{2/(r+1)} (norm 1: beta = s / sum s).
Given: the point at positive weights. A weight that is zero stays zero.
Returned: the point after the last closed-form step; bounds by the driver, and by cuts where those do not
close.

Each step is cheap and J falls at every one, but the convergence is linear at best: weights that belong at
zero shrink towards it geometrically, so exact zeros are not to be expected, and close to an l1 optimum
thousands of steps may be needed. Weights under 1e-9 of the largest are set to zero.

Reference: Ying, Campbell, Damoulas, Girolami 2009 (MCKL-EM, with the squared loss shared by all classes); Kloft et al.
2008. We differ in one safeguard: where the gap has not halved for ``patience`` steps, the closed form takes turns with
an in-out step on the cuts collected so far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multikernel.certificate import Certificate
from multikernel.mixing.base import NEGLIGIBLE
from multikernel.problem import Point
from multikernel.solvers.base import Solver, Step
from multikernel.solvers.cut_model import FINEST, InOut, inner_accuracy


@dataclass
class AlternatingState:
    """The state of a run."""

    tol: float
    memory: InOut
    inner: float
    gap: float = np.inf
    waited: int = 0
    upper: float = np.inf
    # weights and quadratic forms from which the next closed-form step is taken
    last: tuple[np.ndarray, np.ndarray] | None = None


@dataclass(frozen=True)
class Alternating(Solver):
    """Closed-form weights.

    Parameters
    ----------
    inner : float
        Accuracy of the inner solver as a fraction of the current gap, to begin with.
    patience : int
        Steps without half the gap before every second step is an in-out step.
    change : float
        Where positive, the method as it is stated (no in-out steps), which ends when sum_k |beta_k - beta_k^old| is
        at most this number, or at the gap asked for, whichever comes first; Ying et al. take 1e-4.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.machines.svc import SVC
    >>> from multikernel.mixing.norms import Ball
    >>> from multikernel.problem import Problem
    >>> from multikernel.solve import solve
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> K = np.stack([np.outer(x, x), np.eye(4)])
    >>> solve(Problem(DenseGram(K), SVC(np.sign(x)), Ball(2.0)), "alternating", tol=1e-6).status
    'converged'
    """

    inner: float = 0.1
    patience: int = 50
    change: float = 0.0

    def start(self, point: Point, tol: float) -> AlternatingState:
        return self.take_over(InOut(point), tol)

    def take_over(self, memory: InOut, tol: float) -> AlternatingState:
        """Return the state of a run that goes on with the cuts of another method."""
        return AlternatingState(tol, memory, self.inner)

    def step(self, point: Point, state: AlternatingState, certificate: Certificate) -> Step:
        mixing, memory = point.problem.mixing, state.memory
        accuracy = state.inner * inner_accuracy(certificate, state.tol)
        if certificate.gap < 0.5 * state.gap:
            state.gap, state.waited = certificate.gap, 0
        state.waited += 1
        if not self.change and state.waited > self.patience and state.waited % 2:
            lower, upper = memory.step(point, accuracy)
            if upper < state.upper:
                state.last, state.upper = (point.beta, point.q), upper
            return Step(lower, memory.cuts.mix)
        old = None if state.last is None else state.last[0]
        if state.last is not None:
            beta = mixing.closed_form(*state.last)
            beta[beta < NEGLIGIBLE * beta.max()] = 0.0
            point.set_weights(mixing.scale_to_boundary(beta))
        point.solve(accuracy)
        upper = memory.observe(point)
        if upper >= state.upper:
            # an exact step makes J fall: the inner solution was not exact enough to see it
            state.inner = max(0.5 * state.inner, FINEST)
        state.last, state.upper = (point.beta, point.q), upper
        return Step(settled=old is not None and float(np.abs(point.beta - old).sum()) <= self.change > 0)
