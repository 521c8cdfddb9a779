"""Second-order steps on the weights, after Chapelle & Rakotomamonjy 2008.

Problem: min over B of J(beta) = max_{a in A} g(a) - 1/2 beta'q(a), convex, with gradient -q/2 and, where the set of
free coefficients does not change, the Hessian H that the machine reports.
Returned: the point at the best weights found; bounds by the driver.

Three phases, chosen by the gap:
1. interleaved: partial solutions of the inner problem, each followed by an over-relaxed closed-form step on the
   weights (Sonnenburg et al. 2006, Kloft et al. 2011), until the free set is near that of the solution; a machine
   without partial solutions solves its problem twice;
2. Newton: the second-order step in a trust region, the coefficients moved along with it to first order, the inner
   solver to clean up;
3. closed form: where few coefficients are free, or kernels are rank-deficient, J has kinks, and one a need not certify
   the optimum; after a few steps without progress the alternating method takes over from the best point, with its
   steps on the cuts that certify where no single a does. Newton's method is tried again whenever that has brought the
   gap down to a third.

The cuts of all phases are kept: on the simplex, where that takes no time, they bound the optimum after a step whose own
a does not.

We differ from the paper in phases 1 and 3, in moving the coefficients with the weights, and in the cuts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from multikernel.certificate import ROUNDING, Best, Certificate
from multikernel.machines.base import HasCurvature, HasPartialSolve
from multikernel.mixing.base import BACK, HasNewtonStep
from multikernel.mixing.norms import Ball, Simplex
from multikernel.problem import Point
from multikernel.solvers.alternating import Alternating, AlternatingState
from multikernel.solvers.base import Solver, Step, get_solver, iterate, missing
from multikernel.solvers.cut_model import InOut
from multikernel.threads import ROWS

# relative gap above which steps are computed in single precision, which is faster
_SINGLE = 1e-3
# fraction of the gap that a step with progress leaves at most: larger ones keep to Newton's method for longer
_PROGRESS = 0.7
# part of the gap by which J falls in a step with progress, where the bounds have not come closer
_FALL = 0.02
# the other method
_REST = Alternating(patience=2)


@dataclass
class _State:
    tol: float
    best: tuple[np.ndarray, np.ndarray]
    memory: InOut
    # whether the machine has partial solutions, whether there is nothing to learn, whether phase 1 goes on
    partial: bool
    fixed: bool
    interleaving: bool
    upper: float = np.inf
    gap: float = np.inf
    epochs: int = 0
    waited: int = 0
    stalled: float = np.inf
    rest: AlternatingState | None = None
    # part of the way to the bounds that weights may go in one step, and the fall of J that the model expects
    part: float = 1.0
    expected: float = 0.0
    weights_first: bool = False
    # whether the set of the weights is almost the simplex
    near: bool = False


@dataclass(frozen=True)
class Newton(Solver):
    """Newton's method on the weights.

    Parameters
    ----------
    inner : float
        Accuracy of the inner solver as a fraction of the current gap.
    epochs : int
        Largest number of interleaved steps, and one less where the gap is above ``reach`` then.
    size : int
        Coefficients that a partial solution works on, per 2000 samples.
    handover, reach : float
        Relative gap at which interleaving ends, and the one that it should have reached before its last step.
    close : float
        The same as ``handover`` on a device, where a partial solution moves all coefficients and is almost a whole one.
    patience : int
        Steps without progress before the other method takes over; lengths tried of a step that raises its own model.
    """

    requires = ("machine.curvature", "mixing.newton_step")
    uses = ("machine.partial_solve",)

    inner: float = 0.04
    epochs: int = 4
    size: int = 600
    handover: float = 0.25
    close: float = 0.075
    reach: float = 0.85
    patience: int = 4

    def start(self, point: Point, tol: float) -> _State:
        fixed = len(point.beta) == 1 or point.problem.mixing.is_fixed
        # on few samples a partial solution saves less time than the certificate after it takes; not for one class
        few = point.problem.gram.n_samples <= ROWS and not getattr(point.problem.machine, "total", 0.0)
        partial = not few and not missing(point.problem, *self.uses)
        # a machine whose own start is not zero tells about the weights, of which nothing is known yet
        state = _State(tol, (point.beta, point.a), InOut(point), partial, fixed, not fixed)
        state.weights_first = bool(point.q.any() and np.ptp(point.beta) == 0)
        if isinstance(mixing := point.problem.mixing, Ball):
            # weights of norm r sum to at most p^(1 - 1/r)
            state.near = state.interleaving and len(point.beta) ** (1.0 - 1.0 / mixing.norm) - 1.0 < tol
        return state

    def step(self, point: Point, state: _State, certificate: Certificate) -> Step:
        if state.near:
            state.near = False
            self._from_the_simplex(point, state)
            return Step(self._judge(point, state, certificate.lower), state.memory.cuts.mix)
        gap = certificate.relative
        accuracy = self.inner * max(certificate.gap, 0.3 * state.tol * certificate.size)
        # whole solutions are few: one before a closed-form step, one after
        epochs = self.epochs - (gap > self.reach) if state.partial else min(2, self.epochs)
        lower = -np.inf
        handover = self.close if point.combined.by_products else self.handover
        if state.interleaving and state.epochs < epochs and gap > handover:
            self._interleave(point, state, accuracy)
        elif state.waited < self.patience:
            state.interleaving = False
            self._newton(point, state, gap, accuracy)
        else:
            if state.rest is None or state.waited == self.patience:
                state.rest = _REST.take_over(state.memory, state.tol)
                # its steps would leave at zero what second-order ones have dropped
                point.set_weights(point.problem.mixing.reactivate(point.beta, point.q, BACK))
            lower = _REST.step(point, state.rest, certificate).lower
        return Step(self._judge(point, state, max(certificate.lower, lower)), state.memory.cuts.mix)

    def _from_the_simplex(self, point: Point, state: _State) -> None:
        """Move to the solution on the simplex, which every ball contains and a ball of norm near one hardly exceeds."""
        mixing, best = point.problem.mixing, Best(0.5 * state.tol)
        inside = Point(replace(point.problem, mixing=Simplex()))
        for _ in iterate(inside, get_solver("active-set"), best):
            if best.converged or best.idle == self.patience:
                break
        assert best.model is not None
        point.set_weights(mixing.scale_to_boundary(best.model.weights))
        point.set_dual(best.model.coef, (np.arange(len(point.beta)), best.model.outputs), best.model.wander)

    def _interleave(self, point: Point, state: _State, accuracy: float) -> None:
        if state.epochs or state.weights_first:
            point.set_weights(point.problem.mixing.closed_form(point.beta, point.q, relax=1.6))
        if state.partial:
            machine = cast(HasPartialSolve, point.problem.machine)
            size = self.size * point.problem.gram.n_samples // 2000
            point.accuracy = accuracy
            point.set_dual(machine.partial_solve(point.combined, point.a, point.f, accuracy, size))
        else:
            point.solve(accuracy)
        state.epochs += 1

    def _newton(self, point: Point, state: _State, gap: float, accuracy: float) -> None:
        machine, mixing = point.problem.machine, point.problem.mixing
        if state.fixed:
            # the inner problem is the whole one, and its optimum at most the loss of zero coefficients
            point.solve(0.3 * state.tol * min(point.certificate.size, machine.scale))
            return
        curvature, newton_step = cast(HasCurvature, machine).curvature, cast(HasNewtonStep, mixing).newton_step
        try:
            c = curvature(point.combined, point.a, point.f, point.outputs, rough=gap > _SINGLE)
            for part in state.part * 0.5 ** np.arange(self.patience):
                # the model is minimised over beta + part (B - beta): below one, no weight is set to zero at once
                move = part * (newton_step(point.beta, point.q, part * c.H) - point.beta)
                fall = 0.5 * float(move @ (point.q - c.H @ move))
                if fall >= -ROUNDING * point.certificate.size:
                    break
                # a step in the logarithms of the weights may be too long for the quadratic model
        except np.linalg.LinAlgError:
            # no ridge makes the system one that can be solved
            point.set_weights(mixing.closed_form(point.beta, point.q))
            point.solve(accuracy)
            state.expected = 0.0
            return
        state.part = float(part)
        # so exact that the fall of J can be compared with that of the model
        finer = min(max(0.25 * fall, 0.01 * accuracy), accuracy)
        if point.certificate.relative > 1.0:
            # far away J falls with a small weight like its reciprocal, and a second-order step only doubles the weight
            grows = np.where(move > 0, point.q, 0.0)
            least = BACK * grows / max(grows.sum(), np.finfo(float).tiny)
            move = mixing.scale_to_boundary(np.maximum(point.beta + move, least)) - point.beta
        # the coefficients after the weights moved, to first order; close to the optimum with their own Newton step
        a = point.a.copy()
        a[c.free] -= c.response @ move
        if gap < 1e-2:
            a[c.free] += c.correction
        point.set_weights(mixing.scale_to_boundary(point.beta + move))
        point.solve(finer if part < 1.0 else accuracy, start=machine.make_feasible(a))
        if max(state.upper - point.certificate.upper, 0.0) < 0.25 * fall < point.certificate.inner_gap <= accuracy:
            # what the inner problem has left hides the fall of J, and disturbs q by more than the step has changed it
            point.solve(finer)
        state.expected = fall - max(point.certificate.inner_gap, 0.0)

    def _judge(self, point: Point, state: _State, lower: float) -> float:
        """Keep the better of this point and the best one; count the steps that bring neither bound closer.

        Returns the lower bound.
        """
        now = point.certificate
        upper, lower = now.upper, max(lower, now.lower)
        if state.interleaving:
            state.memory.observe(point)
            state.best, state.upper, state.gap = (point.beta, point.a), upper, upper - lower
            return lower
        fall = state.upper - upper
        if fall > 0:
            state.best, state.upper = (point.beta, point.a), upper
        if state.waited >= self.patience:
            state.gap = min(state.upper - lower, state.gap)
            state.waited += 1
            if state.gap < 0.3 * state.stalled:
                self._return_to_best(point, state)
                state.waited = 0
            return lower
        cuts = state.memory.cuts
        state.memory.observe(point)
        if state.upper - lower >= _PROGRESS * state.gap and cuts.mixing.is_simplex:
            lower = max(lower, cuts.minimise()[1])
        gap = state.upper - lower
        progress = gap < _PROGRESS * state.gap or fall > _FALL * state.gap
        state.gap = min(gap, state.gap)
        # a trust region: the next step is longer where J fell by as much as the model, shorter where by much less or if
        # it rose: the same step would be taken again from the best point
        if fall < 0.25 * max(state.expected, 0.0):
            state.part *= 0.5
        elif fall > 0.75 * state.expected:
            state.part = min(1.0, 2.0 * state.part)
        if fall < 0 and not state.fixed:
            self._return_to_best(point, state)
        state.waited = 0 if progress else state.waited + 1
        if state.waited == self.patience:
            state.stalled = state.gap
            self._return_to_best(point, state)
        return lower

    def _return_to_best(self, point: Point, state: _State) -> None:
        point.set_weights(state.best[0])
        point.set_dual(state.best[1])
