"""The optimum for any loss by a general conic solver (cvxpy with Clarabel), from the primal; nothing of ours is used.

    minimise  1/2 ||(||W_k||)_k||_m^2 + sum_i C_i l(f_i + b, y_i),     f = sum_k L_k W_k,  K_k = L_k L_k',  m = 2r/(r+1)

with the norm of W_k over all columns where y has several. The losses are written down here once more, as numpy and as
cvxpy expressions, and the value returned is that of the numpy formulas at the solver's W: an upper bound on the optimum
that is above it by no more than the solver's tolerance.
"""

from __future__ import annotations

import warnings
from contextlib import suppress

import cvxpy as cp
import numpy as np

# name: (expression, formula) of (f, y); a new loss is one entry here and inherits the battery of tests/losses
LOSSES = {
    "squared": (lambda f, y: cp.square(y - f), lambda f, y: (y - f) ** 2),
    "squared_hinge": (
        lambda f, y: cp.square(cp.pos(1 - cp.multiply(y, f))),
        lambda f, y: np.maximum(0, 1 - y * f) ** 2,
    ),
    "smooth_hinge": (
        lambda f, y: cp.logistic(10 * (1 - cp.multiply(y, f))) / 10,
        lambda f, y: np.logaddexp(0, 10 * (1 - y * f)) / 10,
    ),
    "logistic": (lambda f, y: cp.logistic(-cp.multiply(y, f)), lambda f, y: np.logaddexp(0, -y * f)),
    "huber": (
        lambda f, y: cp.huber(f - y, 1.0) / 2,
        lambda f, y: np.where(np.abs(f - y) <= 1, (f - y) ** 2 / 2, np.abs(f - y) - 0.5),
    ),
    "logcosh": (
        lambda f, y: cp.logistic(2 * (f - y)) - (f - y) - np.log(2),
        lambda f, y: np.logaddexp(f - y, y - f) - np.log(2),
    ),
    "quartic": (lambda f, y: cp.power(f - y, 4), lambda f, y: (f - y) ** 4),
}


def factor(K) -> np.ndarray:
    """L with K = L L' up to rounding."""
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    keep = values > 1e-13 * values[-1]
    return vectors[:, keep] * np.sqrt(values[keep])


def conic_loss(stack, y, C, norm, loss, fit_intercept=False) -> float:
    """The optimum for one loss of ``LOSSES``, kernels (p, n, n), targets (n,) or (n, c) and costs C."""
    expression, formula = LOSSES[loss]
    Y = y[:, None] if y.ndim == 1 else y
    C = np.broadcast_to(np.asarray(C, float), (len(Y),))
    factors = [factor(K) for K in stack]
    W = [cp.Variable((L.shape[1], Y.shape[1])) for L in factors]
    b = cp.Variable((1, Y.shape[1])) if fit_intercept else np.zeros((1, Y.shape[1]))
    f = sum(L @ w for L, w in zip(factors, W, strict=True)) + np.ones((len(Y), 1)) @ b
    sizes = cp.hstack([cp.norm(cp.vec(w, order="C"), 2) for w in W])
    order = 2.0 if np.isinf(norm) else 2.0 * norm / (norm + 1.0)
    penalty = cp.square(cp.norm(sizes, 1) if norm == 1 else cp.pnorm(sizes, order, max_denom=1024)) / 2
    problem = cp.Problem(cp.Minimize(penalty + cp.sum(cp.multiply(C[:, None], expression(f, Y)))))
    for tol in (1e-10, 1e-8, 1e-7):
        with warnings.catch_warnings(), suppress(cp.error.SolverError):
            warnings.simplefilter("ignore")
            problem.solve(solver="CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
            if problem.status == "optimal":
                break
    if f.value is None:
        raise cp.error.SolverError("The conic solver found no solution at any tolerance.")
    lengths = np.array([np.linalg.norm(w.value) for w in W])
    value = 0.5 * np.linalg.norm(lengths, ord=order) ** 2
    return float(value + np.sum(C[:, None] * formula(f.value, Y)))
