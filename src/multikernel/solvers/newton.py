"""Second-order steps on the weights, after Chapelle & Rakotomamonjy 2008.

Problem: min over B of J(beta) = max_{a in A} g(a) - 1/2 beta'q(a), convex, with gradient -q/2 and, where the set of
free coefficients does not change, the Hessian H that the machine reports.
Returned: the point at the best weights found; bounds by the driver.

Three phases, chosen by the gap:
1. interleaved: short bursts of the inner solver, each followed by an over-relaxed closed-form step on the weights
   (Sonnenburg et al. 2006, Kloft et al. 2011), until the free set means something (a machine without bursts
   solves its problem twice); a given start may begin with all coefficients at once, or with the weights;
2. Newton: the second-order step, the coefficients moved along with it to first order, the inner solver to clean up;
3. closed form: where few coefficients are free, or kernels are rank-deficient, J has kinks, and one a need not certify
   the optimum; after a few steps without progress the alternating method takes over from the best point, with its
   steps on the cuts that certify where no single a does. Newton's method is tried again whenever that has brought the
   gap down tenfold.

The cuts of all phases are kept: they shorten a step where they prove that J would rise above its best value, and on
the simplex, where that takes no time, they bound the optimum after a step whose own a does not.

We differ from the paper in phases 1 and 3, in moving the coefficients with the weights, and in the cuts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from multikernel.certificate import Certificate, certify
from multikernel.problem import Point
from multikernel.solvers.alternating import Alternating
from multikernel.solvers.base import Solver, Step
from multikernel.solvers.cut_model import InOut

# part of the way to where a cut forbids to go on
_SHORT = 0.5
# part of the gap by which J must grow to count as worse, and rounding of a cut relative to J
_WORSE, _ROUNDING = 1e-3, 1e-12
# relative gap above which few digits of a step will do
_ROUGH = 1e-3
# shortest step, and part of the gap that a step with progress leaves at most
_LEAST, _PROGRESS = 1e-3, 0.7
# what kernels that were dropped in error get back together
_BACK = 0.02
# part of the coefficients on their bounds above which a start says more about the weights than they about it
_SETTLED = 0.5
# part of the gap that is that of the coefficients at fixed weights, above which these are right for the coefficients
_BEHIND = 0.85


@dataclass
class _State:
    tol: float
    best: tuple[np.ndarray, np.ndarray]
    memory: InOut
    upper: float = np.inf
    gap: float = np.inf
    epochs: int = 0
    waited: int = 0
    stalled: float = np.inf
    rest: Any = None
    damping: float = 1.0
    interleaving: bool = True


@dataclass(frozen=True)
class Newton(Solver):
    """Newton's method on the weights.

    Parameters
    ----------
    inner : float, optional
        Accuracy of the inner solver as a fraction of the current gap; that of the machine by default.
    epochs, burst : int
        Largest number of interleaved epochs, and size of the working set of each per 2000 samples.
    handover : float
        Relative gap at which interleaving ends.
    patience : int
        Steps without progress before the other method takes over.
    fallback : Alternating
        The other method.
    """

    requires: ClassVar[tuple[str, ...]] = ("machine.curvature", "mixing.newton_step")

    inner: float | None = None
    epochs: int = 4
    burst: int = 600
    handover: float = 0.25
    patience: int = 3
    fallback: Alternating = field(default_factory=lambda: Alternating(patience=2))

    def start(self, point: Point, tol: float) -> _State:
        interleaving = not point.problem.mixing.is_singleton(len(point.beta))
        # the cuts are those of the other method from the beginning
        memory = self.fallback.start(point, tol).memory
        return _State(tol, (point.beta, point.a), memory, interleaving=interleaving)

    def step(self, point: Point, state: _State, certificate: Certificate) -> Step:
        gap = certificate.relative
        machine = point.problem.machine
        inner = machine.inner_accuracy if self.inner is None else self.inner
        accuracy = inner * max(certificate.gap, 0.3 * state.tol * certificate.size)
        lower = -np.inf
        # without bursts an epoch is a whole solution: one at the start, one after a closed-form step
        epochs = self.epochs - (gap > machine.bursts_reach) if machine.bursts else min(2, self.epochs)
        first = state.interleaving and not state.epochs
        behind = first and machine.has_frank_wolfe_step and self._behind(point, certificate)
        if state.interleaving and state.epochs < epochs and (gap > self.handover or behind):
            self._interleave(point, state, accuracy, behind)
        elif state.waited < self.patience:
            state.interleaving = False
            self._newton(point, state, gap, accuracy)
        else:
            if state.waited == self.patience:
                state.rest = self.fallback.take_over(state.memory, state.tol)
                # its steps would leave at zero what second-order ones have dropped
                point.set_weights(point.problem.mixing.reactivate(point.beta, point.q, _BACK))
            lower = self.fallback.step(point, state.rest, certificate).lower
        return Step(self._judge(point, state, max(certificate.lower, lower)))

    def _behind(self, point: Point, certificate: Certificate) -> bool:
        """Whether a start owes its gap to the coefficients, the weights being right for all that they tell."""
        return bool(point.q.any()) and point.inner_gap() > _BEHIND * certificate.gap

    def _interleave(self, point: Point, state: _State, accuracy: float, behind: bool) -> None:
        machine, mixing, n = point.problem.machine, point.problem.mixing, point.problem.gram.n_samples
        start = None
        if behind:
            start = machine.frank_wolfe_step(point.combined, point.a, point.f, point.primal[1])
        elif state.epochs or (point.q.any() and machine.on_bounds(point.a) > _SETTLED):
            # a start whose coefficients are mostly settled tells what the weights should be
            point.set_weights(mixing.closed_form(point.beta, point.q, relax=1.6))
        point.solve(accuracy, max_steps=max(20, self.burst * n // 2000), start=start)
        state.epochs += 1

    def _newton(self, point: Point, state: _State, gap: float, accuracy: float) -> None:
        machine, mixing = point.problem.machine, point.problem.mixing
        if mixing.is_singleton(len(point.beta)):
            point.solve(0.1 * accuracy)
            return
        c = machine.curvature(point.combined, point.a, point.f, point.outputs, rough=gap > _ROUGH)
        move = mixing.newton_step(point.beta, point.q, c.H) - point.beta
        move *= state.damping
        limit = state.upper + _WORSE * state.gap + _ROUNDING * abs(state.upper)
        if (reach := state.memory.cuts.reach(point.beta, move, limit)) < 1.0:
            move *= max(_SHORT * reach, _LEAST)
        a = machine.make_feasible(c.predicted(point.a, move, corrected=gap < 1e-2))
        point.set_weights(mixing.scale_to_boundary(point.beta + move))
        point.solve(accuracy, start=a)

    def _judge(self, point: Point, state: _State, lower: float) -> float:
        """Keep the better of this point and the best one; count the steps that bring neither bound closer.

        Returns the lower bound.
        """
        now = certify(point)
        upper, lower = now.upper, max(lower, now.lower)
        if state.interleaving:
            state.memory.observe(point)
            state.best, state.upper, state.gap = (point.beta, point.a), upper, upper - lower
            return lower
        worse = upper > state.upper + _WORSE * state.gap
        if upper < state.upper:
            state.best, state.upper = (point.beta, point.a), upper
        if state.waited >= self.patience:
            state.gap = min(state.upper - lower, state.gap)
            state.waited += 1
            if state.gap < 0.1 * state.stalled:
                self._return_to_best(point, state)
                state.waited = 0
            return lower
        cuts = state.memory.cuts
        state.memory.observe(point)
        if state.upper - lower >= _PROGRESS * state.gap and cuts.quick:
            lower = max(lower, cuts.minimise()[1])
        gap = state.upper - lower
        progress = gap < _PROGRESS * state.gap
        state.gap = min(gap, state.gap)
        if worse:
            # J grew: the quadratic model reached too far, begin again from the best point with a shorter step
            state.damping = max(0.3 * state.damping, _LEAST)
            self._return_to_best(point, state)
        else:
            state.damping = min(1.0, 3.0 * state.damping)
        state.waited = 0 if progress else state.waited + 1
        if state.waited == self.patience:
            state.stalled = state.gap
            self._return_to_best(point, state)
        return lower

    def _return_to_best(self, point: Point, state: _State) -> None:
        point.set_weights(state.best[0])
        point.set_dual(state.best[1])
