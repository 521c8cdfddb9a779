"""Hundreds of kernels, most of them set aside: a short list is solved, and all are rechecked at its solution.

Problem: min over the simplex of J(beta) = max_{a in A} g(a) - 1/2 beta'q(a), p large, few beta_k > 0 at the optimum.
Given: a Gram whose products K_k v for all k are what costs: one sweep is the n^2 p values of all kernels.
Returned: the point at the best weights found; bounds by the driver, over all kernels.

1. draw: a problem of some samples and all kernels, solved loosely, makes the first list: weights that are
   not small (what is missing is found by 3, at less cost than a longer list);
2. list: the problem of all samples and the listed kernels, by another solver; nothing else is computed;
3. recheck: outputs K_k a of all kernels, for the coefficients that changed, so that lower(a) = g(a) - 1/2 max_k q_k
   is a bound over all of them. Kernels with q_k > max over the list would have weight: they join it.

Kernels that are proved to have no weight at the optimum are left out of 3: where g is curved, a* lies in a ball around
a, |sqrt(q_k(a*)) - sqrt(q_k(a))| <= r_k, and every k with weight has q_k(a*) = max_j q_j(a*), so that

    sqrt(q_k(a)) + r_k < max_j (sqrt(q_j(a)) - r_j)      =>      beta_k = 0 at every optimum.

The squared loss has such a ball (`Ridge.deviation`), the hinge has none: there every kernel is rechecked each time.
Once the gap over the others is closed, those left out are rechecked as well: the last bound is over all kernels.

Where the list is complete and its solution does not certify (kinks of J), the other solver goes on with all kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from multikernel.certificate import Certificate, certify, relative_gap
from multikernel.gram.base import Gram
from multikernel.gram.dense import DenseGram
from multikernel.problem import Point, Problem
from multikernel.solvers.base import Solver, Step
from multikernel.solvers.newton import Newton

# steps of the other solver on one list
_STEPS = 60
# a list is solved to what ``tol`` asks for once a fraction of the gap is no more than so many times ``tol``
_LAST = 3.0
# steps of it after its bounds have met, as long as no single point certifies itself
_EXTRA = 5
# a kernel of weight zero leaves the list where q_k is below this fraction of the largest
_DROP = 0.7
# weight, relative to the largest, up to which a kernel is not listed after the draw for its weight alone
_SMALL = 1e-2
# rounding of sqrt(q_k), relative to the largest
_ROUNDING = 1e-6


@dataclass
class _State:
    tol: float
    kept: np.ndarray
    gone: np.ndarray
    finer: float
    gap: float = np.inf
    drawn: bool = False
    waited: int = 0
    rest: Any = None


@dataclass(frozen=True)
class ActiveSet(Solver):
    """A short list of kernels, all others rechecked.

    Parameters
    ----------
    solver : Solver
        The method on the list.
    samples : int
        Samples of the draw; as many of them as a quarter of the memory for kernels holds.
    inner : float
        Gap to which a list is solved, as a fraction of the gap that is left, and at the end of ``tol``.
    near : float
        Fraction of the largest q_k from which on a kernel is listed where the run begins with known outputs.
    patience : int
        Rechecks in a row that find no kernel missing, and no half of the gap gone, before the method goes on with all.

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

    requires: ClassVar[tuple[str, ...]] = ("machine.draw", "mixing.take_kernels", *Newton.requires)

    solver: Solver = field(default_factory=Newton)
    samples: int = 1000
    inner: float = 0.3
    near: float = 0.9
    patience: int = 3

    def start(self, point: Point, tol: float) -> _State:
        kept, q = point.beta > 0, point.q
        drawn = bool(point.a.any())
        if drawn:
            # a start from elsewhere tells by its outputs which kernels matter
            kept = (kept & (not kept.all())) | (q >= self.near * q.max())
        return _State(tol, kept, np.zeros(len(kept), bool), self.inner, drawn=drawn)

    def step(self, point: Point, state: _State, certificate: Certificate) -> Step:
        if state.waited >= self.patience:
            return self._with_all(point, state, certificate)
        beta = point.beta if state.drawn else self._draw(point, state)
        listed = np.flatnonzero(state.kept)
        part = self._part(point, listed, beta)
        target = self.inner * certificate.relative
        lower, steps = improve(part, self.solver, target if target > _LAST * state.tol else state.finer * state.tol)
        beta = np.zeros(len(beta))
        beta[listed] = part.beta
        point.set_weights(beta)
        lower = self._recheck(point, state, part.a, certificate, lower)
        extra = {"listed": len(listed), "left_out": int(state.gone.sum()), "inner_steps": steps}
        self._revise(point, state)
        return Step(lower, extra)

    def _draw(self, point: Point, state: _State) -> np.ndarray:
        """Solve a problem of some samples; return its weights, and list the kernels that mattered there."""
        problem, gram = point.problem, point.problem.gram
        idx, machine = problem.machine.draw(_draw_size(gram, self.samples))
        fits = gram.n_kernels * len(idx) ** 2 * gram.dtype.itemsize <= 0.25 * gram.budget
        threads = point.combined.team.n_threads
        some = DenseGram(gram.block(idx), n_threads=threads) if fits else gram.take_samples(idx)
        small = Point(Problem(some, machine, problem.mixing))
        improve(small, self.solver, 1e-2)
        q = small.q
        state.kept = (small.beta > _SMALL * small.beta.max()) | (q >= q.max())
        state.drawn = True
        return small.beta

    def _part(self, point: Point, listed: np.ndarray, beta: np.ndarray) -> Point:
        """Return the point of the listed kernels; what is known of their outputs is known there."""
        problem, mixing = point.problem, point.problem.mixing.take_kernels(listed)
        part = Problem(problem.gram.take_kernels(listed), problem.machine, mixing)
        return Point(part, mixing.scale_to_boundary(beta[listed]), point.a, point.outputs.take(listed))

    def _recheck(self, point: Point, state: _State, a: np.ndarray, certificate: Certificate, listed: float) -> float:
        """Move to new coefficients; leave out kernels that are proved to have no weight, until the gap is closed.

        Returns ``listed``, the lower bound on the problem of the list, where it is one on the whole problem.
        """
        point.set_dual(a, np.flatnonzero(~state.gone) if state.gone.any() else None)
        now = certify(point)
        upper = min(now.upper, certificate.upper)
        state.gone |= self._proved(point, upper - now.lower)
        point.set_outputs(state.gone, 0.0)
        if point.beta[state.gone].any():
            point.set_weights(point.problem.mixing.scale_to_boundary(np.where(state.gone, 0.0, point.beta)))
        if not (state.kept | state.gone).all():
            listed = -np.inf
        if relative_gap(upper, max(now.lower, certificate.lower, listed), now.floor) <= state.tol:
            self._bring_back(point, state)
        return listed

    def _proved(self, point: Point, gap: float) -> np.ndarray:
        """Kernels without weight at every optimum, bool (p,)."""
        r = point.problem.machine.deviation(max(gap, 0.0), point.problem.gram.diag())
        if not np.isfinite(r).any():
            return np.zeros(len(r), bool)
        s = np.sqrt(point.q)
        return s + r < np.max(s - r) - _ROUNDING * s.max()

    def _bring_back(self, point: Point, state: _State) -> None:
        """Outputs of the kernels that were left out."""
        gone = np.flatnonzero(state.gone)
        if len(gone):
            point.set_outputs(gone, point.problem.gram.apply(point.a, gone))
            state.gone[:] = False

    def _revise(self, point: Point, state: _State) -> None:
        """List the kernels that are missing; drop those that are far from having weight."""
        q = point.q
        largest = q[state.kept].max()
        missing = np.flatnonzero(~state.kept & ~state.gone & (q > largest))
        missing = missing[np.argsort(-q[missing])][: max(32, np.count_nonzero(state.kept))]
        state.kept &= ((point.beta > 0) | (q >= _DROP * largest)) & ~state.gone
        state.kept[missing] = True
        gap = certify(point).gap
        progress = len(missing) > 0 or gap < 0.5 * state.gap
        state.waited = 0 if progress else state.waited + 1
        state.finer = self.inner if progress else 0.3 * state.finer
        state.gap = min(gap, state.gap)

    def _with_all(self, point: Point, state: _State, certificate: Certificate) -> Step:
        if state.rest is None:
            self._bring_back(point, state)
            state.rest = self.solver.start(point, state.tol)
        step = self.solver.step(point, state.rest, certificate)
        return replace(step, extra={"listed": len(point.beta), "left_out": 0, "inner_steps": 1})


def improve(point: Point, solver: Solver, tol: float) -> tuple[float, int]:
    """Run a solver on a part of a problem; return the lower bound on the part, and the steps taken.

    It ends where one point certifies itself to the relative gap ``tol``, so that its coefficients tell about other
    kernels as well; or a few steps after the bounds of several points together have closed the gap.
    """
    best = now = certify(point)
    own, model = now.gap, (point.beta, point.a)
    state = solver.start(point, tol)
    steps = extra = 0
    while own > tol * best.size and steps < _STEPS and extra < _EXTRA:
        step = solver.step(point, state, best)
        now = certify(point)
        if now.gap < own:
            own, model = now.gap, (point.beta, point.a)
        lower = max(best.lower, now.lower, step.lower)
        best = replace(now if now.upper < best.upper else best, lower=lower)
        steps += 1
        extra += best.relative <= tol
        if step.done:
            break
    point.set_weights(model[0])
    point.set_dual(model[1])
    return best.lower, steps


def _draw_size(gram: Gram, samples: int) -> int:
    """Samples of which all kernels fit into a quarter of the memory, a tenth of all of them, at least fifty."""
    fit = int(np.sqrt(0.25 * min(gram.budget, 2**40) / (gram.n_kernels * gram.dtype.itemsize)))
    return max(min(samples, gram.n_samples // 4, fit), min(50, gram.n_samples))
