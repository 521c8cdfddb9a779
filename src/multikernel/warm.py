"""Problems that start near their solution: first on the kernels that have weight there, then on all of them.

Along a path the kernels without weight rarely get any. While the problem of the others is solved nothing is read of
them; one product each with the coefficients found then tells, through the certificate, whether they matter. Where they
do the solver goes on with all kernels: from the weights found where these are nearly right, else from weights that let
those in which were missed, since steps in closed form leave a weight of zero where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from multikernel.certificate import relative_gap
from multikernel.mixing.norms import Simplex
from multikernel.problem import Problem, Start
from multikernel.solution import INTERRUPTED, Solution
from multikernel.solve import solve
from multikernel.solvers import Solver

# largest part of the kernels with which it pays to begin, and what is asked of them in units of the tolerance: the
# others may then have a form that exceeds theirs by a little
_PART, _ASKED = 0.6, 0.7
# relative gap above which the weights found are far from right, and what the kernels that were missed get then
_FAR, _SHARE = 0.1, 0.5


def solve_from(
    problem: Problem,
    start: Start | None,
    solver: str | Solver = "auto",
    *,
    tol: float = 1e-3,
    max_iter: int = 500,
    callback: Callable[[dict], None] | None = None,
) -> Solution:
    """Solve a problem from a start, or from nothing where that is None; parameters otherwise as those of `solve`.

    Parameters
    ----------
    start : Start, optional
        Weights and coefficients to begin with.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.machines.svc import SVC
    >>> from multikernel.mixing.norms import Simplex
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> gram = DenseGram(np.stack([np.outer(x, x), np.eye(4)]))
    >>> first = solve(Problem(gram, SVC(np.sign(x), 2.0), Simplex()), tol=1e-6)
    >>> start = Start(first.weights, first.dual_coef, (first.dual_coef, first.outputs))
    >>> second = solve_from(Problem(gram, SVC(np.sign(x)), Simplex()), start)
    >>> second.weights.round(3), second.n_iter
    (array([1., 0.]), 0)
    """
    gram, mixing = problem.gram, problem.mixing
    plain = gram.kind in ("dense", "memmap") and gram.output_kernel(0) is None
    if start is None or not isinstance(mixing, Simplex) or not plain or not _few(start.weights):
        return solve(problem, solver, tol=tol, max_iter=max_iter, start=start, callback=callback)
    beta, a, known = start.weights, start.coef, start.known
    b, F = known or (np.zeros_like(a), np.zeros((len(beta), *a.shape)))
    if known is not None and np.count_nonzero(a - b) <= 1:
        # with the coefficients of before, but for rounding, all kernels are certified at once
        same = solve(problem, solver, tol=tol, max_iter=0, start=start)
        if same.gap <= tol:
            return same
    some, others = np.flatnonzero(beta), np.flatnonzero(beta == 0)
    part = Problem(gram.take_kernels(some), problem.machine, mixing.take_kernels(some))
    first = solve(
        part,
        solver,
        tol=_ASKED * tol,
        max_iter=max_iter,
        start=Start(mixing.scale_to_boundary(beta[some]), a, (b, F[some])),
    )
    weights, outputs = np.zeros_like(beta), np.empty_like(F)
    weights[some], outputs[some] = first.weights, first.outputs
    outputs[others] = F[others] + gram.apply(first.dual_coef - b, others)
    q = gram.new_outputs(a.shape, (first.dual_coef, outputs)).quadratic_forms()
    if relative_gap(first.upper, first.lower - 0.5 * (q.max() - q[some].max()), first.floor) > _FAR:
        weights = mixing.reactivate(weights, q, _SHARE)
    interrupted = first.status == INTERRUPTED
    second = solve(
        problem, solver, tol=tol, max_iter=0 if interrupted else max_iter - first.n_iter,
        start=Start(weights, first.dual_coef, (first.dual_coef, outputs)), callback=callback,
    )  # fmt: skip
    curvature = second.curvature.copy()
    curvature[some] = np.minimum(curvature[some], first.curvature)
    return replace(second, curvature=curvature, status=INTERRUPTED if interrupted else second.status)


def _few(beta: np.ndarray) -> bool:
    """Whether few enough kernels have weight."""
    return bool(0 < np.count_nonzero(beta) <= _PART * len(beta))
