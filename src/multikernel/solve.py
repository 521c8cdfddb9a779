"""The one outer loop: step, certify, record, stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec

import numpy as np

from multikernel.certificate import Certificate, certify, relative_gap
from multikernel.problem import Point, Problem, Start
from multikernel.solution import CONVERGED, INTERRUPTED, MAX_ITER, SETTLED, STALLED, Solution
from multikernel.solvers import Solver, get_solver, missing_needs, refusal
from multikernel.threads import single_threaded_blas

# outer steps in a row that improve neither bound before a run counts as stalled: so many, and more for each kernel
# (a cutting-plane method may need several cuts a kernel before its first useful bound)
_STALL, _STALL_PER_KERNEL = 40, 10
# products with kernels on the classes beyond which their curvature is dearer than more solutions
_MANY_PRODUCTS = 300
# kernels that are not stored, from which number on most of them are set aside
_MANY = 32


def choose_solver(problem: Problem) -> str:
    """Return the solver that ``auto`` stands for: the fastest measured one that applies (benchmarks/solvers.py)."""
    gram = problem.gram
    if gram.kind == "features":
        return "interleaved"
    if gram.n_kernels > _MANY_PRODUCTS and gram.output_kernel(0) is not None:
        return "level" if find_spec("clarabel") else "alternating"
    if gram.kind == "lazy" and gram.n_kernels >= _MANY and not missing_needs(get_solver("active-set"), problem):
        return "active-set"
    return "newton"


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
        A name of the registry, "auto", or a solver with its own settings.
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
    >>> K = np.stack([np.outer(x, x), np.eye(4)])
    >>> solution = solve(Problem(DenseGram(K), SVC(np.sign(x)), Simplex()), tol=1e-6)
    >>> solution.weights.round(3), round(solution.upper, 3)
    (array([1., 0.]), 0.5)
    """
    name = solver if isinstance(solver, str) else type(solver).__name__.lower()
    if name == "auto":
        name = choose_solver(problem)
    algorithm = get_solver(name) if isinstance(solver, str) else solver
    if sentence := refusal(name, algorithm, problem):
        raise ValueError(sentence)
    run = _Run(problem, tol, callback, start)
    status = MAX_ITER
    patience = _STALL + _STALL_PER_KERNEL * problem.gram.n_kernels
    try:
        with single_threaded_blas():
            state = algorithm.start(run.point, tol)
            for _ in range(max_iter):
                if run.converged:
                    break
                step = algorithm.step(run.point, state, run.best)
                run.record(step)
                if step.settled:
                    status = SETTLED
                    break
                if run.idle >= patience or (step.done and not run.converged):
                    status = STALLED
                    break
    except KeyboardInterrupt:
        status = INTERRUPTED
    return run.solution(CONVERGED if run.converged else status, name)


class _Run:
    """The best bounds and model of a run, and its history."""

    def __init__(self, problem: Problem, tol: float, callback, start: Start | None) -> None:
        self.began = time.perf_counter()
        self.tol, self.callback = tol, callback
        self.point = Point(problem) if start is None else Point(problem, start.weights, start.coef, start.known)
        self.best = certify(self.point)
        self.history: dict[str, list] = {"time": [], "upper": [], "lower": [], "gap": [], "active": []}
        self.idle = 0
        self.curvature = np.full(problem.gram.n_kernels, np.inf)
        self._keep(self.best.gap)

    def _keep(self, own_gap: float) -> None:
        self.own_gap = own_gap
        self.model = (self.point.beta, self.point.a, self.point.outputs.known()[1])

    @property
    def converged(self) -> bool:
        return self.best.relative <= self.tol

    def record(self, step) -> None:
        now: Certificate = certify(self.point)
        if size := float(np.vdot(self.point.a, self.point.a)):
            self.curvature = np.minimum(self.curvature, self.point.quadratic_forms / size)
        lower = max(self.best.lower, now.lower, step.lower)
        # the least primal value; once the gap is small enough, the model whose own coefficients certify it best
        arrived = relative_gap(now.upper, lower, now.floor) <= self.tol
        better = now.upper < self.best.upper or (arrived and now.gap < self.own_gap)
        eps = 1e-12 * abs(self.best.upper)
        progress = now.upper < self.best.upper - eps or lower > self.best.lower + eps
        self.idle = 0 if progress else self.idle + 1
        if better:
            self._keep(now.gap)
        self.best = replace(now if better else self.best, lower=lower)
        row = {
            "time": time.perf_counter() - self.began,
            # the least value met, of which the model's own may be short by less than the gap
            "upper": min([self.best.upper, *self.history["upper"][-1:]]),
            "lower": self.best.lower,
            "gap": self.best.relative,
            "active": int(np.count_nonzero(self.point.beta)),
            "primal": now.upper,
            "weights": self.point.beta,
            **step.extra,
        }
        for key, value in row.items():
            self.history.setdefault(key, []).append(value)
        if self.callback:
            self.callback({**row, "coef": self.point.a, "intercept": now.intercept})

    def solution(self, status: str, name: str) -> Solution:
        beta, a, F = self.model
        best = self.best
        return Solution(
            beta, a, best.intercept, best.upper, min(best.lower, best.upper), best.floor, F,
            self.curvature, len(self.history["gap"]), status, name, self.history,
        )  # fmt: skip


class Recorder:
    """Temporary."""

    def __init__(self, callback: Callable[[dict], None] | None = None, columns: tuple[str, ...] = ()) -> None:
        self.history: dict[str, list] = {column: [] for column in columns}
        self.interrupted = False
        self.n_rows = 0
        self._callback, self._began = callback, time.perf_counter()

    def record(self, row: dict, **shown: object) -> None:
        row = {"time": time.perf_counter() - self._began, **row}
        for key, value in row.items():
            self.history.setdefault(key, []).append(value)
        self.n_rows += 1
        if self._callback:
            self._callback({**row, **shown})

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace) -> bool:
        self.interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        return self.interrupted
