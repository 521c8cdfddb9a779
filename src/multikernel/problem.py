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

# moves of the coefficients, in units of their size, after which outputs are summed anew: digits against a pass
_STALE = 50.0
# roundings of the last digit that a sum of many terms has beside one for each term: a bound for all formulas here
_FEW = 64


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
    wander : float
        Rounding of the known outputs beyond that of one sum, as `Point` counts it.
    """

    weights: np.ndarray
    coef: np.ndarray
    known: tuple[np.ndarray, np.ndarray] | None = None
    wander: float = 0.0


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
    wander : float
        Rounding of the known outputs beyond that of one sum, in sizes |da|_1 of changes da that they were updated for:
        in whatever order sums are taken, an output of kernel k is off by at most n eps max_i K_ii times their total.
    """

    def __init__(
        self,
        problem: Problem,
        beta: np.ndarray | None = None,
        a: np.ndarray | None = None,
        known: Outputs | tuple[np.ndarray, np.ndarray] | None = None,
        wander: float = 0.0,
    ) -> None:
        self.problem = problem
        # accuracy of the last solve, to which the best intercepts are found as well
        self.accuracy = 0.0
        self.beta = problem.mixing.start(problem.gram.n_kernels) if beta is None else beta
        self.a = problem.machine.start() if a is None else a
        self._outputs = known if isinstance(known, Outputs) else problem.gram.new_outputs(self.a.shape, known)
        self.combined = problem.gram.combined(self.beta)
        self.curvature = np.full(problem.gram.n_kernels, np.inf)
        self.wander = wander + float(np.abs(self._outputs.coef).sum())
        gram = problem.gram
        # relative rounding of a sum, and what it makes of an output for coefficients of |a|_1 = 1
        self._digit = float(np.finfo(float).eps) * (gram.n_samples + gram.n_kernels + _FEW)
        self._blur = self._digit * gram.diag().max(axis=1) * gram.blur

    @property
    def outputs(self) -> Outputs:
        """Outputs of every kernel, brought up to date with a."""
        if self._outputs.coef is not self.a:
            size = float(np.abs(self.a).sum())
            self.wander += float(np.abs(self.a - self._outputs.coef).sum()) + size / len(self.a)
            if self.wander > _STALE * size:
                # without the rounding that earlier coefficients have left
                self._outputs, self.wander = self.problem.gram.new_outputs(self.a.shape), size
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
        """Bounds on the optimum that this point gives, in exact arithmetic; the upper one is at the best intercept.

        Losses are taken at the worst outputs that rounding leaves possible, and so are quadratic forms. Other sums are
        known up to as many roundings as they have terms. Weights may miss their set by rounding: with larger
        coefficients the same outputs have weights inside, and a quadratic form that is larger by as much.
        """
        machine, digit = self.problem.machine, self._digit
        quad, dual, size = float(self.beta @ self.q), machine.dual(self.a), float(np.abs(self.a).sum())
        primal, intercept = machine.primal(self.f, quad, self.accuracy)
        # rounding of the outputs of each kernel with that of one more sum, then with what adding the intercept loses
        error = self._blur * (self.wander + 2.0 * size)
        out = self.f + intercept
        part = out - self.f
        lost = np.abs(self.f - (out - part)) + np.abs(intercept - part) + float(self.beta @ error)
        risk = machine.risk(out, intercept, np.where(lost, lost + digit * np.abs(out), 0.0))
        upper = 0.5 * (quad + size * float(self.beta @ error)) + risk + digit * (quad + abs(risk))
        support, worst = self.problem.mixing.support(self.q + size * error)
        rest = digit * (abs(dual) + size * machine.reach + support)
        rounding = upper - primal + rest + 0.5 * size * float(worst @ error)
        lower = dual - 0.5 * support - rest
        return Certificate(upper, lower, intercept, machine.floor, primal - (dual - 0.5 * quad), rounding)

    def set_weights(self, beta: np.ndarray) -> None:
        """Move to new weights."""
        if not np.array_equal(beta, self.beta):
            self.beta = beta
            self.combined.set_weights(beta)
            for name in ("f", "certificate"):
                self.__dict__.pop(name, None)

    def set_dual(
        self, a: np.ndarray, known: tuple[np.ndarray, np.ndarray] | None = None, wander: float = 0.0
    ) -> None:
        """Move to new coefficients.

        Outputs are updated when they are next read; at once where ``known`` has some kernels, and their outputs with
        the rounding ``wander``.
        """
        if known is not None:
            self.wander += float(np.abs(a - self._outputs.coef).sum() + np.abs(a).sum() / len(a))
            others = np.setdiff1d(np.arange(len(self.beta)), known[0])
            self._outputs.update(a, others)
            self._outputs.put(*known)
            self.wander = max(self.wander, wander)
        self.a = a
        for name in ("q", "f", "certificate"):
            self.__dict__.pop(name, None)

    def take_kernels(self, kernels: np.ndarray, beta: np.ndarray, mixing: Mixing) -> Point:
        """Return a point of some kernels, with their weights, these coefficients, and what is known of the outputs."""
        gram, machine = self.problem.gram.take_kernels(kernels), self.problem.machine
        return Point(Problem(gram, machine, mixing), beta, self.a, self._outputs.take(kernels), self.wander)

    def refresh(self) -> None:
        """Sum the outputs anew, without the rounding that earlier coefficients have left."""
        self._outputs, self.wander = self.problem.gram.new_outputs(self.a.shape), 0.0
        self.set_dual(self.a)

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
