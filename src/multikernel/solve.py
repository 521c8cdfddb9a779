"""The one outer loop: step, certify, record, stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from multikernel.certificate import STALL, Best, Model
from multikernel.machines.base import BIASES
from multikernel.problem import Point, Problem, Start
from multikernel.solution import CONVERGED, INTERRUPTED, MAX_ITER, SETTLED, STALLED, Solution
from multikernel.solvers import Solver, choose_solver
from multikernel.solvers.base import iterate
from multikernel.threads import is_interrupt, single_threaded_blas


def solve(
    problem: Problem,
    solver: str | Solver = "auto",
    *,
    tol: float = 1e-3,
    max_iter: int = 500,
    start: Start | None = None,
    callback: Callable[[dict], None] | None = None,
) -> Solution:
    """Solve a problem to a relative duality gap.

    Parameters
    ----------
    problem : Problem
        Gram, machine and mixing.
    solver : str or Solver
        A name of the registry, "auto", or a solver with its own settings. From a start in which not all of many kernels
        have weight the solver first works on those that have (`multikernel.solvers.active_set`).
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Largest number of outer iterations.
    start : Start, optional
        Feasible weights and coefficients to begin with; by default, and where both of their bounds are worse, uniform
        weights and the machine's own start.
    callback : callable, optional
        Called after each iteration with its row of the history, and the coefficients ("coef") and the intercept of it.

    Returns
    -------
    Solution
        The best certified model; also after Ctrl-C, with ``status="interrupted"``.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.machines.svc import SVC
    >>> from multikernel.mixing.norms import Simplex
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> gram = DenseGram(np.stack([np.outer(x, x), np.eye(4)]))
    >>> solution = solve(Problem(gram, SVC(np.sign(x)), Simplex()), tol=1e-6)
    >>> solution.weights.round(3), round(solution.upper, 3)
    (array([1., 0.]), 0.5)

    A start from that solution, for a larger cost of the same samples:

    >>> machine = SVC(np.sign(x), 2.0)
    >>> a, b, F = machine.warm_start(SVC(np.sign(x)), solution.dual_coef, solution.outputs)
    >>> solve(Problem(gram, machine, Simplex()), start=Start(solution.weights, a, (b, F))).n_iter
    0
    """
    name, algorithm = choose_solver(problem, solver, start)
    recorder = Recorder(callback, {"time": [], "upper": [], "lower": [], "gap": [], "active": []})
    given = () if start is None else (start.weights, start.coef, start.known, start.wander)
    # samples in partitions have points of their own
    begin: Callable[..., Point] = getattr(problem.gram, "point", Point)
    point = begin(problem, *given)
    best = Best(tol)
    if algorithm.certifies_start or max_iter == 0:
        if start is None and point.a.any() and not problem.machine.total:
            _shorten(point)
        # the intercepts of a start need no more digits than the result, those of a cold one a share of its gap
        dual = problem.machine.dual(point.a) - 0.5 * problem.mixing.support(point.q)[0]
        point.accuracy = max(tol * dual, BIASES * (problem.machine.scale - dual) if start is None else 0.0)
        best.take(point)
        if start is not None and max_iter and best.certificate.relative > 1.0:
            # a lower bound below zero: the start is dropped if its upper bound is not better than the cold one either
            if best.certificate.upper >= begin(problem).certificate.upper:
                return solve(problem, solver, tol=tol, max_iter=max_iter, callback=callback)
    status = MAX_ITER
    try:
        with single_threaded_blas():
            for step, now in islice(iterate(point, algorithm, best), 0 if best.converged else max_iter):
                row = {
                    "upper": best.certificate.upper, "lower": best.certificate.lower, "gap": best.certificate.relative,
                    "active": int(np.count_nonzero(point.beta)), "primal": now.upper, "weights": point.beta,
                }  # fmt: skip
                if step.moved:
                    recorder.record({**row, **step.extra}, coef=point.a, intercept=now.intercept)
                if best.converged or step.settled:
                    status = SETTLED
                    break
                # where weights are known, or rounding alone leaves a larger gap than was asked for, cuts do not help
                no_cuts = problem.mixing.is_fixed or now.rounding > tol * now.size
                patience = 1 if no_cuts else problem.gram.n_kernels + 4
                if step.done or best.idle >= STALL * patience:
                    status = STALLED
                    break
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error):
            raise
        status = INTERRUPTED
    if best.model is None:
        # interrupted before the first certificate, perhaps in the middle of an update of the outputs
        point = begin(problem, *given)
        best.take(point)
    # the point that certifies itself, were it not for rounding; else the one of the smallest primal value
    model, found = best.model if best.own.computed <= tol else best.lowest or best.model, best.own
    assert model is not None
    if not best.converged:
        alone = begin(problem, model.weights, model.coef, (model.coef, model.outputs), model.wander)
        alone.accuracy = tol * found.size
        found = alone.exact_certificate
        if found.relative > tol >= found.computed and alone.refresh():
            found = alone.exact_certificate
        if found.relative > 1.0 and begin is Point:
            # a cost beyond what float64 can work with: nothing may be better than what was found
            zero = begin(problem, None, problem.machine.make_feasible(np.zeros_like(model.coef)))
            if zero.exact_certificate.gap < found.gap:
                model = Model(zero.beta, zero.a, zero.outputs.known()[1], zero.wander)
                found = zero.exact_certificate
    if found.relative <= tol and status != INTERRUPTED:
        status = CONVERGED
    return Solution(
        model.weights, model.coef, found.intercept, found.upper, min(found.lower, found.upper), found.relative,
        model.outputs, point.curvature, recorder.n_rows, status, name,
        recorder.history, model.wander,
    )  # fmt: skip


def _shorten(point: Point) -> None:
    """Halve the coefficients of a cold start for as long as that raises the dual value.

    A start in proportion to the costs knows nothing of the kernels, and is far too long where costs are large.
    """
    dual, a, quad = point.problem.machine.dual, point.a, 0.5 * point.problem.mixing.support(point.q)[0]
    value, part = dual(a) - quad, 1.0
    while (shorter := dual(0.5 * part * a) - (0.5 * part) ** 2 * quad) > value:
        value, part = shorter, 0.5 * part
    if part < 1.0:
        outputs = part * point.outputs.known()[1]
        point.set_dual(part * a, (np.arange(len(point.beta)), outputs), part * point.wander)


@dataclass
class Recorder:
    """History of a run and its callback: what the outer loop shares with learners that run in epochs.

    Attributes
    ----------
    callback : callable, optional
        Called with every row.
    history : dict of lists
        One entry per row in every column; columns given to begin with are there even without rows.
    n_rows : int
        Number of rows.
    began : float
        When the run began.

    Examples
    --------
    >>> recorder = Recorder(lambda row: print(row["gap"]))
    >>> for gap in (0.5, 0.1):
    ...     recorder.record({"gap": gap})
    0.5
    0.1
    >>> recorder.history["gap"], recorder.n_rows
    ([0.5, 0.1], 2)
    """

    callback: Callable[[dict], None] | None = None
    history: dict[str, list] = field(default_factory=dict)
    n_rows: int = 0
    began: float = field(default_factory=time.perf_counter)

    def record(self, row: dict, **shown: object) -> None:
        """Add a row and the time since the beginning to the history; the callback also gets what is ``shown``."""
        row = {"time": time.perf_counter() - self.began, **row}
        for key, value in row.items():
            self.history.setdefault(key, []).append(value)
        self.n_rows += 1
        if self.callback:
            self.callback({**row, **shown})
