"""One problem: a Gram, a Machine and a Mixing.

    min_{beta in B}  max_{a in A}  g(a) - 1/2 sum_k beta_k a' K_k a

``Problem`` is what every solver gets, ``Start`` what it may begin with, ``Point`` the pair (beta, a) that it moves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from multikernel.certificate import Certificate
from multikernel.gram.base import ROUNDINGS, Gram, Outputs
from multikernel.machines.base import Machine
from multikernel.mixing.base import Mixing

# moves of the coefficients, in units of their size, after which outputs are summed anew: digits against a pass
_STALE = 50.0


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
    wander : float or ndarray of shape (p,)
        Rounding of the known outputs beyond that of one sum, as `Point` counts it.
    """

    weights: np.ndarray
    coef: np.ndarray
    known: tuple[np.ndarray, np.ndarray] | None = None
    wander: float | np.ndarray = 0.0


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
    wander : float or ndarray of shape (p,)
        Rounding of the known outputs beyond that of one sum, in sizes sum_j sqrt(K_jj) |da_j| of the changes da that
        they were updated for: in whatever order sums are taken, an output of sample i is off by at most
        n eps sqrt(K_ii) times their total.
    """

    # whether cuts keep the coefficients, so that they can be mixed
    mixes = True

    def __init__(
        self,
        problem: Problem,
        beta: np.ndarray | None = None,
        a: np.ndarray | None = None,
        known: Outputs | tuple[np.ndarray, np.ndarray] | None = None,
        wander: float | np.ndarray = 0.0,
    ) -> None:
        self.problem = problem
        # accuracy of the last solve, to which intercepts are found as well
        self.accuracy = 0.0
        self.beta = problem.mixing.start(problem.gram.n_kernels) if beta is None else beta
        self.a = problem.machine.start() if a is None else a
        self._outputs = known if isinstance(known, Outputs) else problem.gram.new_outputs(self.a.shape, known)
        if known is None and not self.a.any():
            # outputs of zero are known
            self.a = self._outputs.coef
        self.combined = problem.gram.combined(self.beta)
        self.curvature = np.full(problem.gram.n_kernels, np.inf)
        # how far below zero the quadratic forms are
        self.negative = np.zeros(problem.gram.n_kernels)
        gram = problem.gram
        # the length of each sample in feature space, and the relative rounding of a sum
        self._lengths = np.sqrt(np.maximum(gram.diag() + gram.loose, 0.0))
        self._digit = float(np.finfo(float).eps) * (gram.n_samples + gram.n_kernels + ROUNDINGS)
        # sizes of the coefficients that the outputs are those of, and the total of their changes
        self.size = np.zeros(gram.n_kernels) if known is None else self.sizes(self._outputs.coef)
        self.wander = wander + self.size
        # where outputs were summed precisely: the largest |F_ki| / sqrt(K_ii) of every kernel, at most the size
        self.largest: np.ndarray | None = None

    def sizes(self, a: np.ndarray) -> np.ndarray:
        """Return sum_j sqrt(K_jj) |a_j| of every kernel, shape (p,): no output is longer than sqrt(K_ii) times that."""
        return (np.abs(a) if a.ndim == 1 else np.abs(a).sum(axis=1)) @ self._lengths.T

    @property
    def outputs(self) -> Outputs:
        """Outputs of every kernel, brought up to date with a."""
        if self._outputs.coef is not self.a:
            own, change = np.abs(self.a), np.abs(self.a - self._outputs.coef)
            if own.ndim > 1:
                own, change = own.sum(axis=1), change.sum(axis=1)
            self.size, moved = np.array([own, change]) @ self._lengths.T
            self.wander = self.wander + moved + self.size / len(self.a)
            if (self.wander > _STALE * self.size).any():
                # without the rounding that earlier coefficients have left
                self._outputs, self.wander = self.problem.gram.new_outputs(self.a.shape), self.size
            self._outputs.update(self.a)
        return self._outputs

    @cached_property
    def q(self) -> np.ndarray:
        """Quadratic forms a' K_k a, at least zero, shape (p,)."""
        q = self.outputs.quadratic_forms()
        if size := float(np.vdot(self.a, self.a)):
            # below zero where rounding does not explain it
            below = q < -self._digit * self.size * (self.wander + self.size)
            self.curvature = np.minimum(self.curvature, np.where(below, q, np.maximum(q, 0.0)) / size)
        self.negative = np.maximum(-q, 0.0)
        return q + self.negative

    @cached_property
    def f(self) -> np.ndarray:
        """Outputs of the combined kernel, without intercept."""
        return self.outputs.mix(self.beta)

    @cached_property
    def certificate(self) -> Certificate:
        """Primal value at the best intercept and dual value, as they were computed."""
        machine = self.problem.machine
        quad, dual = float(self.beta @ self.q), machine.dual(self.a)
        primal, intercept = machine.primal(self.f, quad, self.accuracy, self.a)
        lower = dual - 0.5 * self.problem.mixing.support(self.q)[0]
        return Certificate(primal, lower, intercept, machine.floor, primal - (dual - 0.5 * quad))

    @cached_property
    def exact_certificate(self) -> Certificate:
        """The certificate with by how much rounding may have brought the two values together.

        The gap holds in exact arithmetic: losses are taken at the worst outputs that rounding leaves possible, and so
        are quadratic forms; other sums are known up to as many roundings as they have terms. Weights may miss their set
        by rounding: with larger coefficients the same outputs have weights inside, and a larger quadratic form.
        """
        plain, machine, digit, size = self.certificate, self.problem.machine, self._digit, self.size
        quad, dual, b = float(self.beta @ self.q), machine.dual(self.a), plain.intercept
        # rounding of outputs with that of one more sum, and with what adding the intercept loses
        error = digit * (self.wander + (size if self.largest is None else self.largest))
        out, off = self.f + b, (self.beta * error) @ self._lengths
        part = out - self.f
        lost = np.abs(self.f - (out - part)) + np.abs(b - part) + (off if out.ndim == 1 else off[:, None])
        risk = machine.risk(out, b, np.where(lost, lost + digit * np.abs(out), 0.0))
        upper = 0.5 * (quad + float(self.beta @ (size * error))) + risk + digit * (quad + abs(risk))
        support = self.problem.mixing.support(self.q + size * error)[0]
        sums = abs(dual) + float(np.abs(self.a).sum()) * machine.reach + support
        below = plain.lower - (dual - 0.5 * support)
        # kernels that rounding to their storage has made indefinite: the primal value itself may be so much smaller
        negative = 0.5 * float(self.beta @ self.negative)
        return replace(plain, rounding=upper - plain.upper + below + digit * sums + negative)

    def set_weights(self, beta: np.ndarray) -> None:
        """Move to new weights."""
        if not np.array_equal(beta, self.beta):
            self.beta = beta
            self.combined.set_weights(beta)
            for name in ("f", "certificate", "exact_certificate"):
                self.__dict__.pop(name, None)

    def set_dual(
        self, a: np.ndarray, known: tuple[np.ndarray, np.ndarray] | None = None, wander: float | np.ndarray = 0.0
    ) -> None:
        """Move to new coefficients.

        Outputs are updated when they are next read; at once where ``known`` has some kernels, and their outputs with
        the rounding ``wander``.
        """
        if known is not None:
            self.size = self.sizes(a)
            self.wander = self.wander + self.sizes(a - self._outputs.coef) + self.size / len(a)
            others = np.ones(len(self.beta), bool)
            others[known[0]] = False
            self._outputs.update(a, np.flatnonzero(others))
            self._outputs.put(*known)
            self.wander[known[0]] = wander
        self.a, self.largest = a, None
        for name in ("q", "f", "certificate", "exact_certificate"):
            self.__dict__.pop(name, None)

    def take_kernels(self, kernels: np.ndarray, beta: np.ndarray, mixing: Mixing) -> Point:
        """Return a point of some kernels, with their weights, these coefficients, and what is known of the outputs."""
        gram, machine = self.problem.gram.take_kernels(kernels), self.problem.machine
        return Point(Problem(gram, machine, mixing), beta, self.a, self._outputs.take(kernels), self.wander[kernels])

    def refresh(self) -> bool:
        """Sum the outputs anew, more precisely than by `Gram.apply` where the storage can; return whether that helps.

        Sums by `Gram.apply` help where they have at most half of the rounding that earlier coefficients have left.
        """
        rounding = self.outputs.sum_precisely() if self.largest is None else None
        if rounding is None and not np.any(self.wander > 2.0 * self.size):
            return False
        self.set_dual(self.a)
        if rounding is None:
            self._outputs, self.wander = self.problem.gram.new_outputs(self.a.shape), np.zeros(len(self.beta))
            return True
        self.wander = rounding / self._digit * self.size
        most = np.abs(self._outputs.kernel_outputs()).reshape(*self._lengths.shape, -1).max(axis=2)
        self.largest = np.max(np.divide(most, self._lengths, out=most, where=self._lengths > 0), axis=1)
        return True

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
