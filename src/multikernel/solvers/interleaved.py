"""Weights and coefficients in turn, a little of each, after Sonnenburg et al. 2006 and Kloft et al. 2011.

Problem: min over B of J(beta) = max_{a in A} g(a) - 1/2 beta'q(a).
Given: a machine that goes through its samples in epochs, and knows q_k = a'K_k a after each.
Returned: the point after the last epoch of a step; bounds by the driver. The history gains ``epoch_seconds``.

A step is a few epochs, each followed by the closed-form weights, over-relaxed: for norm 1 beta_k <- beta_k q_k /
(beta'q). The outputs of all samples, which the certificate needs, are brought up to date once a step, and the
coefficients give a cut. Where that brings little, steps alternate with in-out steps on the cuts: the inner problem,
solved to the accuracy that the gap asks for, halfway between the best weights and those that minimise the cut model, or
at the weights themselves where there is nothing to learn.

We differ from the papers in the machine (coordinate descent on explicit features) and in the steps on the cuts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import cast

import numpy as np

from multikernel.certificate import Certificate
from multikernel.machines.base import HasEpochs
from multikernel.problem import Point
from multikernel.solvers.base import Solver, Step
from multikernel.solvers.cut_model import InOut, inner_accuracy


@dataclass
class _State:
    tol: float
    memory: InOut
    fixed: bool
    upper: float = np.inf
    gap: float = np.inf
    on_cuts: bool = False
    # the point to which the next closed-form step returns; None where a step on the cuts found a better one
    best: tuple[np.ndarray, np.ndarray] | None = None


@dataclass(frozen=True)
class Interleaved(Solver):
    """Interleaved optimisation.

    Parameters
    ----------
    epochs : int
        Epochs between two certificates.
    relax : float
        Exponent of the closed-form step in units of the exact one.
    little : float
        A step that leaves more than this fraction of the gap is followed by one of the other kind.
    inner : float
        Accuracy of the inner solver in steps on the cuts, as a fraction of the current gap.
    """

    requires = ("machine.epochs",)

    epochs: int = 4
    relax: float = 2.0
    little: float = 0.7
    inner: float = 0.1

    def start(self, point: Point, tol: float) -> _State:
        return _State(tol, InOut(point), len(point.beta) == 1 or point.problem.mixing.is_fixed)

    def step(self, point: Point, state: _State, certificate: Certificate) -> Step:
        accuracy = self.inner * inner_accuracy(certificate, state.tol)
        if state.on_cuts:
            lower = -np.inf
            if state.fixed:
                point.solve(accuracy)
            else:
                lower, _ = state.memory.step(point, accuracy)
            extra = {"epoch_seconds": np.nan}
        else:
            if state.best is not None:
                point.set_weights(state.best[0])
                point.set_dual(state.best[1])
            extra = {"epoch_seconds": self._interleave(point)}
            state.memory.observe(point)
            # a mix of the coefficients met so far certifies better than the last ones
            lower = -np.inf if state.fixed else state.memory.cuts.minimise()[1]
        self._judge(point, state, max(lower, certificate.lower))
        return Step(lower, state.memory.cuts.mix, extra)

    def _interleave(self, point: Point) -> float:
        """Take a few epochs; return the processor seconds of one."""
        machine, mixing = point.problem.machine, point.problem.mixing
        epochs = cast(HasEpochs, machine).epochs(point.combined, point.outputs)
        began = time.thread_time()
        for t in range(self.epochs):
            if t or point.a.any():
                beta = mixing.closed_form(point.beta, epochs.q, relax=self.relax)
                point.set_weights(mixing.scale_to_boundary(beta))
                epochs.refresh()
            epochs.run()
        seconds = (time.thread_time() - began) / self.epochs
        point.wander = point.wander + point.sizes(epochs.moved)
        point.set_dual(epochs.finish())
        return seconds

    def _judge(self, point: Point, state: _State, lower: float) -> None:
        """Keep the best point; where a step brought little, the next is one of the other kind."""
        now = point.certificate
        if state.on_cuts and now.upper < state.upper:
            state.best = None
        state.upper = min(state.upper, now.upper)
        gap = state.upper - max(now.lower, lower)
        if gap > self.little * state.gap:
            state.on_cuts = not state.on_cuts
            if state.on_cuts:
                state.best = point.beta, point.a
        state.gap = min(gap, state.gap)
