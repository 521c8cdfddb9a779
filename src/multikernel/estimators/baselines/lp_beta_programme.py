"""The linear programmes LP-beta and LP-B over the scores of given classifiers.

    min over beta, xi, rho   -rho + sum_i w_i xi_i / (nu |w|)
    s.t.   sum_k beta_k,y_i f_k,y_i(x_i) - sum_k beta_k,u f_k,u(x_i) + xi_i >= rho     for every u other than y_i,
           xi >= 0,  beta >= 0,  sum_k beta_k,u = 1 for every class u,

with one column of weights for all classes in LP-beta and one for each in LP-B; |w| is the sum of the sample weights.
Gehler & Nowozin, On feature combination for multiclass object classification, ICCV 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class LPBeta:
    """Solution: ``weights`` (p,) or, by class, (c, p), the margin ``rho`` and the ``objective``."""

    weights: np.ndarray
    rho: float
    objective: float


def solve_lp_beta(
    scores: np.ndarray,
    codes: np.ndarray,
    nus: Sequence[float] | np.ndarray,
    weight: np.ndarray,
    per_class: bool = False,
) -> list[LPBeta]:
    """Solve LP-beta, or LP-B, with HiGHS, for each nu from the solution of the one before.

    Parameters
    ----------
    scores : ndarray of shape (p, n, c)
        f_k,u(x_i), of classifiers that were not trained on x_i.
    codes : ndarray of int
        Class of each sample.
    nus : sequence of float
        Fractions of the samples that may fall behind the margin, in (0, 1].
    weight : ndarray of shape (n,)
        Positive sample weights.
    per_class : bool
        Whether each class has weights of its own (LP-B).

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 1, 0, 1])
    >>> right = np.where(y[:, None] == [0, 1], 1.0, -1.0)
    >>> solve_lp_beta(np.stack([right, -right]), y, [0.5], np.ones(4))[0].weights
    array([1., 0.])
    """
    import highspy

    # in units of the largest score, a power of two: the solver takes numbers of moderate size only
    unit = 2.0 ** (np.frexp(np.abs(scores).max())[1] - 1)
    A, n_weights = _margin_rows(scores / unit, codes, per_class)
    p, n, _ = scores.shape
    lp = highspy.Highs()
    lp.setOptionValue("output_flag", False)
    lp.setOptionValue("threads", 1)
    inf = highspy.kHighsInf
    lower = np.append(np.zeros(n_weights + n), -inf)
    lp.addVars(len(lower), lower, np.full(len(lower), inf))
    lp.addRows(
        A.shape[0], np.zeros(A.shape[0]), np.full(A.shape[0], inf), A.nnz,
        A.indptr[:-1].astype(np.int32), A.indices.astype(np.int32), A.data,
    )  # fmt: skip
    for u in range(n_weights // p):
        lp.addRow(1.0, 1.0, p, np.arange(u * p, (u + 1) * p, dtype=np.int32), np.ones(p))
    found = []
    for nu in nus:
        # not above one: at one already, no slack pays for the margin that it allows
        slack = weight / np.maximum(nu * weight.sum(), weight)
        cost = np.concatenate([np.zeros(n_weights), slack, [-1.0]])
        lp.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)
        lp.run()
        if lp.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"HiGHS did not solve LP-beta: {lp.modelStatusToString(lp.getModelStatus())}.")
        x = np.array(lp.getSolution().col_value)
        weights = np.maximum(x[:n_weights].reshape(-1, p), 0.0)
        weights /= weights.sum(axis=1, keepdims=True)
        found.append(LPBeta(weights if per_class else weights[0], unit * float(x[-1]), unit * float(cost @ x)))
    return found


def _margin_rows(scores: np.ndarray, codes: np.ndarray, per_class: bool) -> tuple[sparse.csr_array, int]:
    """Return the rows of the margins, a sample's wrong classes together, and the number of weights."""
    p, n, c = scores.shape
    i = np.repeat(np.arange(n), c - 1)
    wrong = np.array([[u for u in range(c) if u != y] for y in range(c)])
    u = wrong[codes].ravel()
    right, other = scores[:, i, codes[i]].T, scores[:, i, u].T
    if per_class:
        kernels = np.arange(p)
        columns = np.concatenate([codes[i][:, None] * p + kernels, u[:, None] * p + kernels], axis=1)
        values = np.concatenate([right, -other], axis=1)
        n_weights = p * c
    else:
        columns, values, n_weights = np.tile(np.arange(p), (len(i), 1)), right - other, p
    columns = np.column_stack([columns, n_weights + i, np.full(len(i), n_weights + n)])
    values = np.column_stack([values, np.ones(len(i)), -np.ones(len(i))])
    starts = np.arange(len(i) + 1) * columns.shape[1]
    shape = (len(i), n_weights + n + 1)
    return sparse.csr_array((values.ravel(), columns.ravel(), starts), shape=shape), n_weights
