"""Reduced gradient on the simplex, after Rakotomamonjy, Bach, Canu & Grandvalet 2008 (SimpleMKL).

Problem: min over the simplex of J(beta) = max_{a in A} g(a) - 1/2 beta'q(a), convex, with gradient -q/2.
Given: the point at any weights. Each step (their Algorithm 1)

1. takes the reduced gradient with the largest weight as pivot, D, a descent direction whose entries sum to
   zero;
2. goes as far as the first weight that becomes zero, and while J falls there, takes that entry out of D
   (the pivot gets its share) and goes on;
3. searches the last segment for its minimum.

Returned: the point at the best weights met; bounds by the driver, and by cuts where those do not close.

We differ in the line search, which follows the sign of the slope -q'D/2, known at every point for nothing,
and in one safeguard: a method of first order zigzags close to the optimum, and with rank-deficient kernels
no single a certifies it, so that where the gap has not halved for ``patience`` steps, every second one is
an in-out step on the cuts collected so far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multikernel.certificate import Certificate
from multikernel.mixing.base import HasReducedGradient
from multikernel.problem import Point
from multikernel.solvers.base import Solver, Step
from multikernel.solvers.cut_model import FINEST, InOut, inner_accuracy


@dataclass
class _Place:
    """Weights, coefficients, quadratic forms and primal value where the inner problem was solved."""

    beta: np.ndarray
    a: np.ndarray
    q: np.ndarray
    upper: float


@dataclass
class _State:
    tol: float
    memory: InOut
    inner: float
    here: _Place | None = None
    gap: float = np.inf
    waited: int = 0


@dataclass(frozen=True)
class SimpleMKL(Solver):
    """Reduced gradient with line search.

    Parameters
    ----------
    inner : float
        Accuracy of the inner solver as a fraction of the current gap, to begin with.
    searches : int
        Largest number of inner problems of one line search.
    patience : int
        Steps without half the gap before every second step is an in-out step.
    """

    requires = ("mixing.reduced_gradient",)

    inner: float = 0.1
    searches: int = 8
    patience: int = 5

    def start(self, point: Point, tol: float) -> _State:
        return _State(tol, InOut(point), self.inner)

    def step(self, point: Point, state: _State, certificate: Certificate) -> Step:
        accuracy = state.inner * inner_accuracy(certificate, state.tol)
        if certificate.gap < 0.5 * state.gap:
            state.gap, state.waited = certificate.gap, 0
        state.waited += 1
        if state.here is None:
            state.here = _evaluate(point, state, point.beta, accuracy)
            return Step()
        if state.waited > self.patience and state.waited % 2:
            lower, upper = state.memory.step(point, accuracy)
            if upper < state.here.upper:
                state.here = _Place(point.beta, point.a, point.q, upper)
            return Step(lower, state.memory.cuts.mix)
        there = self._descend(point, state, state.here, accuracy)
        if there.upper >= state.here.upper:
            state.inner = max(0.3 * state.inner, FINEST)
        state.here = there
        point.set_weights(there.beta)
        point.set_dual(there.a)
        return Step()

    def _descend(self, point: Point, state: _State, here: _Place, accuracy: float) -> _Place:
        """Phases 1 to 3; return the best place."""
        pivot = int(np.argmax(here.beta))
        mixing = point.problem.mixing
        assert isinstance(mixing, HasReducedGradient)
        D = mixing.reduced_gradient(here.beta, -0.5 * here.q)
        tiny = 1e-13 * here.q.max()
        while len(falling := np.flatnonzero(D < -tiny)):
            # the first weight to become zero along D
            steps = -here.beta[falling] / D[falling]
            first, longest = int(falling[np.argmin(steps)]), float(steps.min())
            beta = np.maximum(here.beta + longest * D, 0.0)
            beta[first] = 0.0
            there = _evaluate(point, state, beta / beta.sum(), accuracy)
            if there.upper >= here.upper:
                return self._search(point, state, here, there, accuracy)
            here = there
            if first == pivot:
                break
            D[pivot] += D[first]
            D[first] = 0.0
        return here

    def _search(self, point: Point, state: _State, here: _Place, end: _Place, accuracy: float) -> _Place:
        """Find the minimum of J between two places by the sign of its slope."""
        D = end.beta - here.beta
        best, low, high = here, 0.0, 1.0
        slope_low, slope_high = -0.5 * float(here.q @ D), -0.5 * float(end.q @ D)
        enough = 0.1 * abs(slope_low)
        for _ in range(self.searches):
            # secant, held away from both ends
            t = slope_low / (slope_low - slope_high) if slope_low < 0 < slope_high else 0.5
            t = low + (high - low) * min(max(t, 0.1), 0.9)
            there = _evaluate(point, state, here.beta + t * D, accuracy)
            if there.upper < best.upper:
                best = there
            slope = -0.5 * float(there.q @ D)
            if abs(slope) <= enough and best is there:
                break
            low, slope_low, high, slope_high = (t, slope, high, slope_high) if slope < 0 else (low, slope_low, t, slope)
        return best


def _evaluate(point: Point, state: _State, beta: np.ndarray, accuracy: float) -> _Place:
    """Solve the inner problem at ``beta``."""
    point.set_weights(beta)
    point.solve(accuracy)
    upper = state.memory.observe(point)
    return _Place(point.beta, point.a, point.q, upper)
