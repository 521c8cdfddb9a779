"""One problem: a Gram, a Machine and a Mixing.

    min_{beta in B}  max_{a in A}  g(a) - 1/2 sum_k beta_k a' K_k a

``Problem`` is what every solver gets, ``Start`` what it may begin with, ``Point`` the pair (beta, a) that it moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from multikernel.certificate import Certificate
from multikernel.gram.base import Gram, Outputs
from multikernel.machines.base import Machine
from multikernel.mixing.base import Mixing

# sum of the coefficients, in units of the largest so far, below which outputs are summed anew: digits against a pass
_SHRUNK = 0.03


@dataclass(frozen=True)
class Problem:
    """The three nouns; nothing else makes a problem."""

    gram: Gram
    machine: Machine
    mixing: Mixing


@dataclass(frozen=True)
class Start:
    """Weights and coefficients to begin with.

    Attributes
    ----------
    weights : ndarray of shape (p,)
        Kernel weights in B.
    coef : ndarray of shape (n,) or (n, c)
        Coefficients in A.
    known : (ndarray, ndarray), optional
        Other coefficients b, of which few differ from ``coef``, and their outputs K_k b, shape (p, n) or (p, n, c):
        only the rows where the two differ are then multiplied with the kernels.
    """

    weights: np.ndarray
    coef: np.ndarray
    known: tuple[np.ndarray, np.ndarray] | None = None


class Point:
    """Weights beta and coefficients a, with the outputs F_k = K_k a of every kernel in float64.

    Where several outputs share the weights, a has a column for each: a is (n, c), F is (p, n, c), and q_k the
    trace of a' K_k a.

    Outputs are updated when they are read, for the coefficients that changed since; q_k = a'F_k and
    f = sum_k beta_k F_k follow from them, so that what is reported of a point never depends on the precision of the
    combined matrix. What follows is kept until the point moves: readers must not write into it. ``curvature``, shape
    (p,), is the smallest a'F_k / a'a met so far; it is clearly negative for a kernel that is not positive semidefinite.

    Parameters
    ----------
    problem : Problem
        The problem.
    beta, a : ndarray, optional
        Start; by default the uniform weights and the machine's own start.
    known : Outputs or (ndarray, ndarray), optional
        Outputs of other coefficients, from which those of a are updated instead of from zero. Outputs become the
        point's own; arrays, as `Outputs.known` returns them, are copied.
    """

    def __init__(
        self,
        problem: Problem,
        beta: np.ndarray | None = None,
        a: np.ndarray | None = None,
        known: Outputs | tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        self.problem = problem
        # accuracy of the last solve, to which intercepts are found as well
        self.accuracy = 0.0
        self.beta = problem.mixing.start(problem.gram.n_kernels) if beta is None else beta
        self.a = problem.machine.start() if a is None else a
        self._outputs = known if isinstance(known, Outputs) else problem.gram.new_outputs(self.a.shape, known)
        self.combined = problem.gram.combined(self.beta)
        self.curvature = np.full(problem.gram.n_kernels, np.inf)
        # largest |a|_1 that the outputs were computed for
        self._largest = float(np.abs(self._outputs.coef).sum())

    @property
    def outputs(self) -> Outputs:
        """Outputs of every kernel, brought up to date with a."""
        if self._outputs.coef is not self.a:
            size = float(np.abs(self.a).sum())
            if size < _SHRUNK * self._largest:
                # without the rounding that larger coefficients have left
                self._outputs, self._largest = self.problem.gram.new_outputs(self.a.shape), size
            self._largest = max(self._largest, size)
            self._outputs.update(self.a)
        return self._outputs

    @cached_property
    def q(self) -> np.ndarray:
        """Quadratic forms a' K_k a, at least zero, shape (p,)."""
        q = self.outputs.quadratic_forms()
        if size := float(np.vdot(self.a, self.a)):
            self.curvature = np.minimum(self.curvature, q / size)
        return np.maximum(q, 0.0)

    @cached_property
    def f(self) -> np.ndarray:
        """Outputs of the combined kernel, without intercept."""
        return self.outputs.mix(self.beta)

    @cached_property
    def certificate(self) -> Certificate:
        """Bounds on the optimum that this point gives; the upper one is the primal value at the best intercept.

        Outputs keep the rounding of the largest coefficients a that they were computed for: 1/2 eps K_ii |a|_1 each.
        Signs of rounding are as good as random, so that sums over the samples add up squares. Losses change by a times
        the error, and by C times the error at the kinks of piecewise linear ones. This is an order of magnitude.
        """
        machine = self.problem.machine
        quad, dual = float(self.beta @ self.q), machine.dual(self.a)
        primal, intercept = machine.primal(self.f, quad, self.accuracy, self.a)
        lower = dual - 0.5 * self.problem.mixing.support(self.q)[0]
        error = 0.5 * np.finfo(float).eps * self.combined.diag.max() * self._largest
        kinks = machine.scale / np.sqrt(machine.n_samples) if hasattr(machine, "conic") else 0.0
        rounding = float(error * (kinks + np.linalg.norm(self.a)))
        return Certificate(primal, lower, intercept, machine.floor, primal - (dual - 0.5 * quad), rounding)

    def set_weights(self, beta: np.ndarray) -> None:
        """Move to new weights."""
        if not np.array_equal(beta, self.beta):
            self.beta = beta
            self.combined.set_weights(beta)
            for name in ("f", "certificate"):
                self.__dict__.pop(name, None)

    def set_dual(self, a: np.ndarray, known: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        """Move to new coefficients.

        Outputs are updated when they are next read; at once where ``known`` has some kernels and their outputs.
        """
        if known is not None:
            others = np.setdiff1d(np.arange(len(self.beta)), known[0])
            self._outputs.update(a, others)
            self._outputs.put(*known)
            self._largest = max(self._largest, float(np.abs(a).sum()))
        self.a = a
        for name in ("q", "f", "certificate"):
            self.__dict__.pop(name, None)

    def take_kernels(self, kernels: np.ndarray, beta: np.ndarray, mixing: Mixing) -> Point:
        """Return a point of some kernels, with their weights, these coefficients, and what is known of the outputs."""
        gram, machine = self.problem.gram.take_kernels(kernels), self.problem.machine
        return Point(Problem(gram, machine, mixing), beta, self.a, self._outputs.take(kernels))

    def solve(self, accuracy: float, start: np.ndarray | None = None) -> None:
        """Let the machine improve a at the current weights, to ``accuracy`` in units of the objective.

        The machine begins at ``start`` (feasible; the current a by default), whose outputs are the current ones plus
        what the combined rows of the changed coefficients add. The machine sees the combined kernel in storage
        precision; where that left a larger gap than was asked for, the machine is called again with outputs from all
        kernels, as in iterative refinement.
        """
        machine = self.problem.machine
        a, f = self.a, self.f
        self.accuracy = accuracy
        if start is not None:
            f = f + self.combined.apply(start - a)
            a = start
        self.set_dual(machine.solve(self.combined, a, f, accuracy))
        gap = np.inf
        # again where rounding kept the machine from the accuracy asked for, as long as that halves the gap
        while 2.0 * accuracy < (now := self.certificate.inner_gap) < 0.5 * gap:
            gap = now
            self.set_dual(machine.solve(self.combined, self.a, self.f, accuracy))
