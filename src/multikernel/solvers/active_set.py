"""Many kernels, few of them with weight: another solver works on a list of kernels, and all are rechecked.

Problem: min over the simplex of J(beta) = max_{a in A} g(a) - 1/2 beta'q(a), p large, few beta_k > 0 at the optimum.
Given: a Gram whose products K_k v for all k are what costs, or a start in which few kernels have weight.
Returned: the point at the best weights found; bounds by the driver, over all kernels.

1. First list: the kernels that have weight in the start. Without a start the machine is solved on the identity, a
   kernel for which samples have nothing in common; the kernels of largest q_k at that a are listed, those most alike
   to what is to be learned.
2. List: the problem of the listed kernels, by another solver, as exactly as the gap over all kernels asks for; of the
   other kernels nothing is computed.
3. Recheck: outputs K_k a of all kernels, for the coefficients that changed, so that lower(a) = g(a) - 1/2 max_k q_k
   is a bound over all of them. Kernels whose q_k exceeds the mean q'beta of the list would get weight: they join it,
   and none leaves.

Where no kernel is missing from the list and its solution still does not certify (kinks of J: no single a does), all
kernels are listed, and the other solver goes on with its bounds from several a, which then hold for the whole problem.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np

from multikernel.certificate import Best, Certificate
from multikernel.gram.dense import DenseGram
from multikernel.mixing.base import HasTakeKernels
from multikernel.problem import Point, Problem
from multikernel.solvers.base import Solver, Step, iterate
from multikernel.solvers.newton import Newton

# gap to which a list is solved, in units of the one over all kernels at the last recheck: less solves lists further
# that will not last
_LOOSE = 0.1


class _Run:
    """Another solver at work on some of the kernels.

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

    def improve(self, tol: float, most: int, patience: int) -> int:
        """Take at most so many steps; return their number.

        They end where one point certifies itself to the relative gap ``tol``, so that its coefficients tell about other
        kernels as well; or ``patience`` steps after the bounds of several points together have closed the gap.
        """
        taken = closed = 0
        while self.best.own.relative > tol and taken < most and closed < patience:
            if self.last.done or self.last.settled:
                break
            self.last, _ = next(self._steps)
            taken += 1
            closed += self.best.certificate.relative <= tol
        return taken


@dataclass
class _State:
    tol: float
    listed: np.ndarray
    # relative gap over all kernels at the last recheck
    gap: float = 1.0
    run: _Run | None = None
    # whether the first list came with other coefficients, which count as a step even if they certify at once
    moved: bool = False


@dataclass(frozen=True)
class ActiveSet(Solver):
    """A list of kernels for another solver, all other kernels rechecked.

    Parameters
    ----------
    solver : Solver
        The method on the list.
    steps : int
        Largest number of steps on a list before a recheck.
    patience : int
        Steps on all kernels that take as long as those on a list after its bounds have met, as long as no single point
        certifies itself.
    join : int
        Kernels of the first list, and those that may join at once; as many as are listed, where these are more.

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

    certifies_start = False

    solver: Solver = field(default_factory=Newton)
    steps: int = 60
    patience: int = 5
    join: int = 128

    def __post_init__(self) -> None:
        object.__setattr__(self, "requires", ("mixing.take_kernels", *self.solver.requires))

    def start(self, point: Point, tol: float) -> _State:
        problem, listed = point.problem, point.beta > 0
        gram, cold = problem.gram, np.array_equal(point.a, problem.machine.start())
        if first := cold and bool(listed.all()) and gram.output_kernels is None:
            identity = gram.diag().mean() * np.eye(gram.n_samples, dtype=gram.dtype)
            alone = Point(Problem(DenseGram(identity[None]), problem.machine, problem.mixing))
            alone.solve(_LOOSE * alone.certificate.size)
            point.set_dual(alone.a)
            listed[np.argsort(-point.q, kind="stable")[self.join :]] = False
            point.set_weights(problem.mixing.scale_to_boundary(listed.astype(np.float64)))
        return _State(tol, listed, moved=first)

    def step(self, point: Point, state: _State, certificate: Certificate) -> Step:
        kernels = np.flatnonzero(state.listed)
        if state.run is None:
            mixing = cast(HasTakeKernels, point.problem.mixing).take_kernels(kernels)
            part = point.take_kernels(kernels, mixing.scale_to_boundary(point.beta[kernels]), mixing)
            state.run = _Run(part, self.solver, state.tol)
        run = state.run
        # with all kernels listed each step of the other solver is one of this solver
        most = 1 if state.listed.all() else self.steps
        asked = max(run.best.tol, _LOOSE * state.gap)
        patience = self.patience
        if asked == run.best.tol:
            # all kernels come next, and a step on them takes the time of many on a short list
            patience = min(patience * len(state.listed) // len(kernels), max(most - 1, 1))
        taken = run.improve(asked, most, patience)
        # move to the model of the list, and update the outputs of the other kernels
        weights, model = np.zeros(len(state.listed)), run.best.model
        assert model is not None
        weights[kernels] = model.weights
        point.set_weights(weights)
        point.set_dual(model.coef, (kernels, model.outputs), model.wander)
        point.accuracy = run.point.accuracy
        point.curvature[kernels] = np.minimum(point.curvature[kernels], run.point.curvature)
        # a bound on the problem of the list is one on the whole problem where all kernels are listed
        lower, mix = (run.best.certificate.lower, run.last.mix) if state.listed.all() else (-np.inf, None)
        extra = {"listed": len(kernels), "inner_steps": taken}
        state.gap = min(point.certificate.relative, 1.0)
        missing = np.flatnonzero(~state.listed & (point.q > point.beta @ point.q))
        if len(missing):
            room = max(self.join, len(kernels))
            state.listed[missing[np.argsort(-point.q[missing], kind="stable")][:room]] = True
            state.run = None
        elif taken < most and asked == run.best.tol and not state.listed.all():
            state.listed[:] = True
            state.run = None
        else:
            # no other kernel is to blame for the gap over all of them: the list is solved as exactly as was asked for
            state.gap = 0.0
        same = state.run is run
        done, settled = same and run.last.done, same and run.last.settled
        moved, state.moved = taken > 0 or state.moved, False
        return Step(lower, mix, extra, done, settled, moved=moved)
