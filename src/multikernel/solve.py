"""The one outer loop: step, certify, record, stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from types import TracebackType

import numpy as np

from multikernel.certificate import Best
from multikernel.problem import Point, Problem, Start
from multikernel.solution import CONVERGED, INTERRUPTED, MAX_ITER, SETTLED, STALLED, Solution
from multikernel.solvers import Solver, choose_solver, refusal
from multikernel.solvers.base import iterate
from multikernel.threads import single_threaded_blas

# a run has stalled after this many steps without a better bound, times the number of kernels plus four:
# a cutting-plane method may need several cuts a kernel before its first useful bound
_STALL = 10


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
        A name of the registry, "auto", or a solver with its own settings. From a start in which few of the kernels
        have weight the solver first works on these (`multikernel.solvers.active_set`).
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Largest number of outer iterations.
    start : Start, optional
        Feasible weights and coefficients to begin with; by default uniform weights and the machine's own start.
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
    if sentence := refusal(name, algorithm, problem):
        raise ValueError(sentence)
    recorder = Recorder(callback, ("time", "upper", "lower", "gap", "active"))
    point = _point(problem, start)
    best = Best(point, tol)
    if algorithm.certifies_start or max_iter == 0 or _mostly_known(start):
        best.take(point)
    status = MAX_ITER
    with recorder, single_threaded_blas():
        for step, now in islice(iterate(point, algorithm, best), 0 if best.converged else max_iter):
            row = {
                "upper": best.upper, "lower": best.certificate.lower, "gap": best.certificate.relative,
                "active": int(np.count_nonzero(point.beta)), "primal": now.upper, "weights": point.beta, **step.extra,
            }  # fmt: skip
            recorder.record(row, coef=point.a, intercept=now.intercept)
            if best.converged or step.settled:
                status = SETTLED
                break
            if step.done or best.idle >= _STALL * (problem.gram.n_kernels + 4):
                status = STALLED
                break
    if best.model is None:
        # interrupted before the first certificate, perhaps in the middle of an update of the outputs
        best.take(_point(problem, start))
    return _solution(best, recorder, status, name)


def _point(problem: Problem, start: Start | None) -> Point:
    return Point(problem) if start is None else Point(problem, start.weights, start.coef, start.known)


def _mostly_known(start: Start | None) -> bool:
    """Whether the outputs of a start are known, but for one coefficient that rounding may have changed."""
    return start is None or start.known is None or bool(np.count_nonzero(start.coef - start.known[0]) <= 1)


def _solution(best: Best, recorder: Recorder, status: str, name: str) -> Solution:
    model, found = best.model, best.certificate
    assert model is not None
    status = CONVERGED if best.converged else INTERRUPTED if recorder.interrupted else status
    return Solution(
        model.weights, model.coef, found.intercept, found.upper, min(found.lower, found.upper), found.floor,
        model.outputs, best.curvature, recorder.n_rows, status, name, recorder.history,
    )  # fmt: skip


class Recorder:
    """History of a run, its callback, and Ctrl-C: what the outer loop shares with learners that run in epochs.

    Used as a context manager it ends the block at Ctrl-C, and `interrupted` says so afterwards: whatever the run had
    found by then can still be returned.

    Parameters
    ----------
    callback : callable, optional
        Called with every row.
    columns : tuple of str
        Columns that the history has even without rows.

    Attributes
    ----------
    history : dict of lists
        One entry per row in every column.
    interrupted : bool
        Whether Ctrl-C ended the block.

    Examples
    --------
    >>> with Recorder(lambda row: print(row["gap"])) as recorder:
    ...     for gap in (0.5, 0.1):
    ...         recorder.record({"gap": gap})
    ...     raise KeyboardInterrupt
    0.5
    0.1
    >>> recorder.history["gap"], recorder.n_rows, recorder.interrupted
    ([0.5, 0.1], 2, True)
    """

    def __init__(self, callback: Callable[[dict], None] | None = None, columns: tuple[str, ...] = ()) -> None:
        self.history: dict[str, list] = {column: [] for column in columns}
        self.interrupted = False
        self.n_rows = 0
        self._callback, self._began = callback, time.perf_counter()

    def record(self, row: dict, **shown: object) -> None:
        """Add a row and the time since the beginning to the history; the callback also gets what is ``shown``."""
        row = {"time": time.perf_counter() - self._began, **row}
        for key, value in row.items():
            self.history.setdefault(key, []).append(value)
        self.n_rows += 1
        if self._callback:
            self._callback({**row, **shown})

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        return self.interrupted
