"""Many kernels, few of them with weight: another solver works on a list of kernels, and all are rechecked.

Problem: min over the simplex of J(beta) = max_{a in A} g(a) - 1/2 beta'q(a), p large, few beta_k > 0 at the optimum.
Given: a Gram whose products K_k v for all k are what costs, or a start in which few kernels have weight.
Returned: the point at the best weights found; bounds by the driver, over all kernels.

1. First list: the kernels that have weight in the start. Without a start a problem of some samples and all kernels is
   solved loosely, and the kernels that have weight there are listed (all kernels, for a machine without subsamples).
2. List: the problem of all samples and the listed kernels, by another solver; of the other kernels nothing is computed.
3. Recheck: outputs K_k a of all kernels, for the coefficients that changed, so that lower(a) = g(a) - 1/2 max_k q_k
   is a bound over all of them. Kernels with q_k > max over the list would have weight: they join it.

Where no kernel is missing from the list and its solution still does not certify (kinks of J: no single a does), all
kernels are listed, and the other solver goes on with its bounds from several a, which then hold for the whole problem.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np

from multikernel.certificate import Best, Certificate
from multikernel.gram.base import Gram
from multikernel.gram.dense import DenseGram
from multikernel.gram.host import HostGram
from multikernel.machines.base import HasSubsample
from multikernel.mixing.base import HasTakeKernels
from multikernel.problem import Point, Problem
from multikernel.solvers.base import Solver, Step, iterate, missing
from multikernel.solvers.newton import Newton

# gap to which a list is solved, in units of the one asked for: other kernels may then exceed the listed ones a little
_ASKED = 0.7
# relative gap of the problem of some samples: enough to tell which kernels have weight
_ROUGHLY = 1e-2
# part of the memory for kernel values that the problem of some samples may take
_MEMORY = 0.25
# relative gap above which kernels that join the list get weight at once, and how much of it together
_FAR, _SHARE = 0.1, 0.5


class _Run:
    """Another solver at work on some of the kernels, or on some of the samples.

    Attributes
    ----------
    best : Best
        Its bounds and its best model.
    last : Step
        The last step.
    """

    def __init__(self, point: Point, solver: Solver, tol: float) -> None:
        self.point, self.best = point, Best(tol)
        self.best.take(point)
        self.last = Step()
        self._steps = iterate(point, solver, self.best)

    def improve(self, most: int, patience: int) -> int:
        """Take at most so many steps; return their number.

        They end where one point certifies itself, so that its coefficients tell about other kernels as well; or
        ``patience`` steps after the bounds of several points together have closed the gap.
        """
        taken = closed = 0
        while self.best.own_gap > self.best.tol * self.best.certificate.size and taken < most and closed < patience:
            if self.last.done or self.last.settled:
                break
            self.last, _ = next(self._steps)
            taken += 1
            closed += self.best.converged
        return taken


@dataclass
class _State:
    tol: float
    weights: np.ndarray
    listed: np.ndarray
    gap: float = np.inf
    run: _Run | None = None


@dataclass(frozen=True)
class ActiveSet(Solver):
    """A list of kernels for another solver, all other kernels rechecked.

    Parameters
    ----------
    solver : Solver
        The method on the list.
    samples : int
        Samples of the problem that makes the first list; fewer where their kernels exceed a quarter of the memory.
    steps : int
        Largest number of steps on a list before a recheck.
    patience : int
        Steps after the bounds on a list have met, as long as no single point certifies itself.
    join : int
        Kernels that may join a list at once; as many as are listed, where these are more.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.machines.svc import SVC
    >>> from multikernel.mixing.norms import Simplex
    >>> from multikernel.problem import Problem
    >>> from multikernel.solve import solve
    >>> X = np.random.default_rng(0).normal(size=(100, 40))
    >>> K = np.array([np.exp(-((x[:, None] - x) ** 2)) for x in X.T])
    >>> solution = solve(Problem(DenseGram(K), SVC(np.sign(X[:, 3])), Simplex()), "active-set", tol=1e-4)
    >>> solution.status, int(solution.weights.argmax())
    ('converged', 3)
    """

    uses = ("machine.subsample",)
    certifies_start = False

    solver: Solver = field(default_factory=Newton)
    samples: int = 1000
    steps: int = 60
    patience: int = 5
    join: int = 32

    def __post_init__(self) -> None:
        object.__setattr__(self, "requires", ("mixing.take_kernels", *self.solver.requires))

    def start(self, point: Point, tol: float) -> _State:
        weights, cold = point.beta, np.array_equal(point.a, point.problem.machine.start())
        if cold and weights.all() and not missing(point.problem, *self.uses):
            weights = self._first_weights(point.problem)
        return _State(tol, weights, weights > 0)

    def _first_weights(self, problem: Problem) -> np.ndarray:
        """Return the weights of a problem of some samples."""
        gram = problem.gram
        idx, part = cast(HasSubsample, problem.machine).subsample(_subsample_size(gram, self.samples))
        fits = gram.n_kernels * len(idx) ** 2 * gram.dtype.itemsize <= _MEMORY * gram.budget
        n_threads = gram.team.n_threads if isinstance(gram, HostGram) else 1
        some = DenseGram(gram.block(idx), n_threads=n_threads) if fits else gram.take_samples(idx)
        run = _Run(Point(Problem(some, part, problem.mixing)), self.solver, _ROUGHLY)
        run.improve(self.steps, self.patience)
        assert run.best.model is not None
        return run.best.model.weights

    def step(self, point: Point, state: _State, certificate: Certificate) -> Step:
        kernels = np.flatnonzero(state.listed)
        if state.run is None:
            mixing = cast(HasTakeKernels, point.problem.mixing).take_kernels(kernels)
            part = point.take_kernels(kernels, mixing.scale_to_boundary(state.weights[kernels]), mixing)
            state.run = _Run(part, self.solver, _ASKED * state.tol)
        run = state.run
        # with all kernels listed each step of the other solver is one of this solver
        most = 1 if state.listed.all() else self.steps
        taken = run.improve(most, self.patience)
        # move to the model of the list, and update the outputs of the other kernels
        weights, model = np.zeros(len(state.listed)), run.best.model
        assert model is not None
        weights[kernels] = model.weights
        point.set_weights(weights)
        point.set_dual(model.coef, (kernels, model.outputs))
        point.accuracy = run.point.accuracy
        point.curvature[kernels] = np.minimum(point.curvature[kernels], run.point.curvature)
        # a bound on the problem of the list is one on the whole problem where all kernels are listed
        lower = run.best.certificate.lower if state.listed.all() else -np.inf
        extra = {"listed": len(kernels), "inner_steps": taken}
        self._revise(point, state, exhausted=taken == most)
        same = state.run is run
        done, settled = same and run.last.done, same and run.last.settled
        return Step(lower, extra, done, settled, moved=taken > 0)

    def _revise(self, point: Point, state: _State, exhausted: bool) -> None:
        """List the kernels that are missing, and drop those without weight while the gap halves."""
        now, q, before = point.certificate, point.q, state.listed.copy()
        state.weights = point.beta
        missing = np.flatnonzero(~state.listed & (q > q[state.listed].max()))
        if len(missing):
            missing = missing[np.argsort(-q[missing])][: max(self.join, np.count_nonzero(state.listed))]
            if now.gap < 0.5 * state.gap:
                state.listed &= point.beta > 0
            state.listed[missing] = True
            if now.relative > _FAR:
                state.weights = point.problem.mixing.reactivate(point.beta, np.where(state.listed, q, 0.0), _SHARE)
        elif not exhausted:
            state.listed[:] = True
        state.gap = min(now.gap, state.gap)
        if not np.array_equal(before, state.listed):
            state.run = None


def _subsample_size(gram: Gram, samples: int) -> int:
    """Return how many samples: kernels of so many fit into memory, a quarter of all samples at most, at least fifty."""
    fit = int(np.sqrt(_MEMORY * min(gram.budget, 2**40) / (gram.n_kernels * gram.dtype.itemsize)))
    return max(min(samples, gram.n_samples // 4, fit), min(50, gram.n_samples))
