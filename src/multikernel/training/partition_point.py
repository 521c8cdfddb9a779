"""A point of a problem whose samples are in partitions: the client moves it, the workers compute.

    worker      features, targets and coefficients of its partitions         (`multikernel.machines.partition`)
    client      weights, sums over the partitions, and the coefficients of the points that were certified

A certificate is the sum of what the partitions answer: dual values, losses at one intercept, bounds on rounding. When
partitions were lost with a worker, they are made again, and all partitions go back to the coefficients of the last
point that the client has: what is lost are the rounds since then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from multikernel.certificate import Certificate
from multikernel.gram.base import ROUNDINGS
from multikernel.gram.dask_blocks import send
from multikernel.gram.partitions import PartitionGram, StateLost
from multikernel.machines import partition as work
from multikernel.machines.base import BIASES, ROUNDING, STEPS, Machine
from multikernel.problem import Problem
from multikernel.training.partition_rounds import Rounds


class Spread(Machine):
    """A machine whose samples are in partitions; the client asks it for constants only.

    Parameters
    ----------
    machine : SVC, SVR, Ridge with one target, or Smooth with the squared hinge
        The problem of all samples.
    """

    def __init__(self, machine: Machine) -> None:
        self.inner = machine
        self.n_samples, self.scale, self.floor = machine.n_samples, machine.scale, machine.floor
        self.reach, self.total = machine.reach, machine.total
        self.balanced, self.shift = bool(getattr(machine, "balanced", False)), float(getattr(machine, "shift", 0.0))

    @property
    def description(self) -> str:
        return self.inner.description

    def dual(self, a: Any) -> float:
        return a.dual

    def epochs(self, combined: Any, outputs: Any) -> Rounds:
        """Begin rounds between which the weights may change."""
        return Rounds(outputs)

    def start(self) -> np.ndarray:
        return self.inner.start()

    def make_feasible(self, a: np.ndarray) -> np.ndarray:
        return self.inner.make_feasible(a)

    def _never(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("The samples are with the workers.")

    solve = primal = risk = _never


class Coefficients:
    """The coefficients of a certified point, and the sums that the partitions know of them.

    Attributes
    ----------
    array : ndarray of shape (n,) or None
        The coefficients; None for zeros.
    dual : float
        g(a).
    q, sizes : ndarrays of shape (p,)
        Quadratic forms, and sum_j sqrt(K_jj) |a_j|.
    length : float
        sum_j |a_j|.
    """

    def __init__(self, array: np.ndarray | None, point: PartitionPoint) -> None:
        self.array, self.point, self.shape = array, point, (point.gram.n_samples,)
        p = point.gram.n_kernels
        self.dual, self.length, self.q, self.sizes = 0.0, 0.0, np.zeros(p), np.zeros(p)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.zeros(self.shape) if self.array is None else self.array

    def any(self) -> bool:
        """Whether some coefficient is not zero."""
        return self.array is not None

    def contributions(self, beta: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Return cov(f_k, f) / var(f) over the samples, f_k = beta_k K_k a and f their sum."""
        point, cuts = self.point, self.point.gram.samples.cuts()
        point.set_dual(self)
        shares = [None if weight is None else weight[rows] / weight.sum() for rows in cuts]

        def sums() -> list:
            point._settle()
            return point.gram.groups.ask(work.products, point.tables, beta, len(self), point.version, own=shares)

        found = point.safely(sums)
        first, second = (np.sum([each[i] for each in found], axis=0) for i in range(2))
        cov = second - first * first[-1]
        return beta * cov[:-1] / cov[-1] if cov[-1] > 0.0 else np.zeros(len(beta))


class PartitionPoint:
    """Weights and coefficients on partitions; solvers move it as any `multikernel.problem.Point`.

    Parameters
    ----------
    problem : Problem
        A `PartitionGram`, a `Spread` machine, and a mixing.
    beta : ndarray of shape (p,), optional
        Weights.
    a : ndarray or Coefficients, optional
        Feasible coefficients.
    known, wander
        As those of `Point`; not needed here.
    """

    # coefficients are not kept beyond those of the best points
    mixes = False
    # intercepts that are tried at once: fewer questions to the workers against more passes over their outputs
    tried = 9
    # epochs of an inner problem
    epochs = 4

    def __init__(self, problem: Problem, beta: Any = None, a: Any = None, known: Any = None, wander: Any = 0.0) -> None:
        self.problem, self.accuracy = problem, 0.0
        self.gram: PartitionGram = problem.gram  # type: ignore[assignment]
        self.machine: Any = problem.machine
        p, n = self.gram.n_kernels, self.gram.n_samples
        self.beta = problem.mixing.start(p) if beta is None else beta
        self.curvature, self.wander, self.is_stale = np.full(p, np.inf), np.zeros(p), False
        self._digit = float(np.finfo(float).eps) * (n + p + ROUNDINGS)
        self.combined = self.outputs = self
        # number of the coefficients that the partitions have, those of `a` where `_at` is it, and their tables
        self.version, self.tables = 0, None
        self._at: Coefficients | None = None
        # how much larger the changes of a round are together than those of each group by itself
        self.overlap = np.inf
        # weights and coefficients whose outputs the partitions have, and those of the certificate
        self._seen: tuple = ()
        self._certified: tuple = ()
        array = getattr(a, "array", a)
        self.a = Coefficients(None if array is None else np.asarray(array), self)
        self.safely(self._begin)
        self.safely(self._settle)

    # ---- partitions

    def _begin(self) -> None:
        """Give the partitions their targets, one after the other: little of them is on its way at a time."""
        groups, gram = self.gram.groups, self.gram
        self.means = send(groups.client, _same, gram.means_tables)
        cuts = gram.samples.cuts()
        machines: list = [None] * len(cuts)
        for number, rows in enumerate(cuts):
            machines[number] = work.rows_of(self.machine.inner, rows)
        groups.ask(work.begin, gram.scale, self.means, gram.n_samples, own=machines)
        self._at, self._seen, groups.owner = None, (), self

    def safely(self, action: Callable[[], Any]) -> Any:
        """Return what an action returns; where partitions were lost, bring all of them back to ``a`` and repeat it."""
        while True:
            try:
                return action()
            except StateLost:
                self.restore()

    def _settle(self) -> None:
        """Let the partitions have the coefficients of the point, and compute their tables."""
        groups, array = self.gram.groups, self.a.array
        if groups.owner is not self:
            self._begin()
        if self._at is self.a:
            return
        self.version += 1
        own = [None if array is None else array[rows] for rows in self.gram.samples.cuts()]
        self.a.dual = sum(groups.ask(work.put, self.version, own=own))
        self._sum_tables()

    def _sum_tables(self) -> None:
        """Sum the tables of the coefficients that the partitions have, which are now those of the point."""
        groups, gram = self.gram.groups, self.gram
        self.tables = groups.total(groups.tasks(work.sum_tables, self.version))
        squares = groups.answers(send(groups.client, work.inner, gram.spans, self.tables, self.tables))
        self.a.q = np.maximum(gram.scale * squares, 0.0)
        self._at = self.a

    def shared(self) -> float:
        """Return how many times a group is to count its own changes: for all groups, or as the last round has shown."""
        return min(self.overlap, float(len(self.gram.groups.groups)))

    def leave(self) -> None:
        """Remember that the partitions have other coefficients than the point."""
        self._at = None

    def taken(self, array: np.ndarray, dual: float, version: int) -> Coefficients:
        """Move to coefficients that the partitions have already, and sum their tables anew."""
        before, found = self.a, Coefficients(array, self)
        self.a, self.version, found.dual = found, version, dual
        try:
            self._sum_tables()
        except StateLost:
            self.a = before
            raise
        return found

    def restore(self) -> None:
        """Wait until lost partitions were made again, and bring all of them back to the coefficients of the point."""
        while True:
            self.gram.groups.find_homes()
            try:
                self._begin()
                self._settle()
            except StateLost:
                continue
            return

    # ---- what solvers read

    @property
    def q(self) -> np.ndarray:
        """Quadratic forms a' K_k a, shape (p,)."""
        self.safely(self._settle)
        return self.a.q

    def known(self) -> tuple[Coefficients, Coefficients]:
        """Return the coefficients in place of their outputs, which are nowhere together."""
        return self.a, self.a

    def sizes(self, moved: Any) -> float:
        """Return the rounding that changes have left: none, since tables are summed anew."""
        return 0.0

    @property
    def certificate(self) -> Certificate:
        """Primal value at the best intercept and dual value."""
        if not self._certified or self._certified[0] is not self.a or self._certified[1] is not self.beta:
            self._certified = self.a, self.beta, self.safely(self._certify)
        return self._certified[2]

    def _certify(self) -> Certificate:
        machine, a = self.machine, self.a
        best = self._look()
        quad = float(self.beta @ a.q)
        lower = a.dual - 0.5 * self.problem.mixing.support(a.q)[0]
        risk, b = self._best_intercept(best.min(), best.max(), BIASES * self.accuracy, lower - 0.5 * quad)
        primal = 0.5 * quad + risk
        return Certificate(primal, lower, b, machine.floor, primal - (a.dual - 0.5 * quad))

    def _look(self) -> np.ndarray:
        """Let the partitions compute the outputs of the point; return the intercepts that are best for each alone."""
        self._settle()
        a = self.a
        answers = self.gram.groups.ask_each(work.look, self.tables, self.beta, self.version)
        a.sizes, a.length = np.sum([each[0] for each in answers], axis=0), sum(each[1] for each in answers)
        self._seen = a, self.beta
        return np.array([each[2] for each in answers])

    def look_again(self) -> None:
        """Let the partitions compute the outputs of the point, unless they have them."""
        self._settle()
        if not self._seen or self._seen[0] is not self.a or self._seen[1] is not self.beta:
            self._look()

    def _best_intercept(self, low: float, high: float, accuracy: float, lower: float) -> tuple[float, float]:
        """Return the least risk and its intercept, which is between those that are best for single partitions.

        The risk is convex: between neighbours of the best of evenly spaced intercepts it is not smaller than that by
        more than the neighbours are larger.
        """
        if not self.machine.balanced:
            low = high = 0.0
        for _ in range(STEPS):
            grid = np.linspace(low, high, self.tried if high > low else 1)
            values = np.sum(self.gram.groups.ask(work.risks, grid, self.version), axis=0)
            if len(grid) == 1:
                return float(values[0]), low
            best = int(np.argmin(values))
            left, right = max(best - 1, 0), min(best + 1, len(grid) - 1)
            left, right = (right - 2, right) if right == len(grid) - 1 else (left, left + 2)
            doubt = max(values[left], values[right]) - values[best]
            if doubt <= max(accuracy, BIASES * (values[best] - lower), ROUNDING * values[best]):
                break
            if high - low <= ROUNDING * max(-low, high):
                break
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        return float(values[best]), float(grid[best])

    @property
    def exact_certificate(self) -> Certificate:
        """The certificate with by how much rounding may have brought the two values together, as that of `Point`."""
        plain, a, digit = self.certificate, self.a, self._digit
        error = 2.0 * digit * a.sizes
        quad, b = float(self.beta @ a.q), float(plain.intercept)

        def worst() -> float:
            self.look_again()
            return sum(self.gram.groups.ask(work.worst_risk, b, self.beta * error, digit, self.version))

        risk = self.safely(worst)
        upper = 0.5 * (quad + float(self.beta @ (a.sizes * error))) + risk + digit * (quad + abs(risk))
        support = self.problem.mixing.support(a.q + a.sizes * error)[0]
        sums = abs(a.dual) + a.length * self.machine.reach + support
        below = plain.lower - (a.dual - 0.5 * support)
        return replace(plain, rounding=upper - plain.upper + below + digit * sums)

    # ---- moves

    def set_weights(self, beta: np.ndarray) -> None:
        """Move to new weights."""
        if not np.array_equal(beta, self.beta):
            self.beta = beta

    def set_dual(self, a: Coefficients) -> None:
        """Move to other coefficients."""
        self.a = a

    def solve(self, accuracy: float, start: Any = None) -> None:
        """Take some epochs at the current weights: fewer than ``accuracy`` asks for, where these would be many."""
        self.accuracy = accuracy
        if self.certificate.inner_gap > accuracy:
            rounds = Rounds(self)
            for _ in range(self.epochs):
                rounds.run()
            self.set_dual(rounds.finish())


def _same(value: Any) -> Any:
    return value
