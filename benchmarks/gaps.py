"""Bounds and gaps recomputed in float64 from kernels, weights, coefficients and intercepts, by the formulas alone.

For weights beta in the unit ball of the norm r, coefficients a in their set and q_k = a' K_k a,

    primal  1/2 sum_k beta_k q_k + the loss of the outputs sum_k beta_k K_k a + b
    dual    the linear term of a - 1/2 ||q||_{r*}                                      1/r + 1/r* = 1
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

# coefficients may leave their set by rounding, as a fraction of C
ROUNDING = 1e-6


def dual_norm(q: np.ndarray, norm: float) -> float:
    """Return ||q||_{r*}, the largest beta . q over the unit ball of the norm r."""
    order = np.inf if norm == 1 else 1.0 if np.isinf(norm) else norm / (norm - 1.0)
    return float(np.linalg.norm(np.maximum(q, 0.0), order))


def outputs(K: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return K_k a for every kernel."""
    return np.array([each.astype(np.float64) @ a for each in K])


def hinge_bounds(K, y, weights, a, intercept, C: float = 1.0, norm: float = 1.0) -> tuple[float, float]:
    """Return primal and dual value; two classes, y = -1 or 1. Infinite where a or the weights are not in their sets."""
    y, a = np.asarray(y, float), np.asarray(a, float)
    inside = (y * a >= -ROUNDING * C).all() and (y * a <= (1 + ROUNDING) * C).all()
    if not inside or abs(a.sum()) > ROUNDING * C * len(y) or not in_ball(weights, norm):
        return np.inf, -np.inf
    F = outputs(K, a)
    q = F @ a
    upper = 0.5 * float(weights @ q) + C * float(np.maximum(0.0, 1.0 - y * (weights @ F + intercept)).sum())
    return upper, float(y @ a) - 0.5 * dual_norm(q, norm)


def joint_bounds(K, y, weights, A, intercept, C: float = 1.0, norm: float = 1.0) -> tuple[float, float]:
    """The same for the hinge of the largest wrong class; y = 0, 1, ..., A of shape (n, c), intercepts of shape (c,)."""
    n, c = A.shape
    E, at = np.eye(c)[y], np.arange(n)
    sums = np.abs(A.sum(axis=0)).max() + np.abs(A.sum(axis=1)).max()
    if (A > C * E + ROUNDING * C).any() or sums > ROUNDING * C * n or not in_ball(weights, norm):
        return np.inf, -np.inf
    F = outputs(K, A)
    q = np.tensordot(F, A, 2)
    f = np.tensordot(weights, F, 1) + intercept
    upper = 0.5 * float(weights @ q) + C * float((1.0 - E + f - f[at, y][:, None]).max(axis=1).sum())
    return upper, float(np.sum(A * E)) - 0.5 * dual_norm(q, norm)


def squares_bounds(K, Y, weights, C: float = 1.0) -> tuple[float, float]:
    """Return two numbers between which the optimum of least squares with intercepts and norm 1 lies, Y of shape (n, c).

    Coefficients A and intercepts b are the best ones at the weights, by one Cholesky factorisation. The optimum is at
    most the primal value at the weights, A and b, and at least the dual value of A. Both are moved apart by a bound on
    rounding. K is a list of kernels with nonnegative entries, the largest on the diagonal.
    """
    n, c = Y.shape
    if not in_ball(weights, 1):
        return np.inf, -np.inf
    M = np.zeros((n, n))
    for k in np.flatnonzero(weights):
        M += weights[k] * K[k]
    shifted = M.copy()
    shifted[np.diag_indices(n)] += 0.5 / C
    factor = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
    solved = cho_solve(factor, np.column_stack([Y, np.ones(n)]), check_finite=False)
    b = solved[:, :c].sum(axis=0) / solved[:, c].sum()
    A = solved[:, :c] - solved[:, c:] * b
    A -= A.mean(axis=0)
    F, G = M @ A, A @ A.T
    R = Y - F - b
    loss, squares, fit = C * _product(R, R), _product(A, A) / (4.0 * C), _product(A, Y)
    upper = 0.5 * _product(A, F) + loss
    # tr A' K_k A = <K_k, A A'>
    lower = fit - squares - 0.5 * max(_product(each, G) for each in K)
    # sums of at most n or c products at a time, whose sizes add up to these
    own, left, largest = np.abs(A).sum(axis=0), np.abs(R).sum(axis=0), float(np.abs(Y).max())
    top = max(float(np.diagonal(each).max()) for each in K)
    sizes = top * float(own @ own) + 2.0 * C * float(left @ (largest + np.abs(b) + top * own))
    digit = 2.0 * np.finfo(float).eps * (2 * n + c + len(K))
    rounding = digit * (sizes + float(np.abs(A * Y).sum()) + squares + loss)
    # columns of A add up to zero but for this, times intercepts of the optimum: |b| <= max |Y - f|, f^2 <= 2 top upper
    sums = float((np.abs(A.sum(axis=0)) + digit * own).sum())
    return upper + rounding, lower - rounding - sums * (largest + float(np.sqrt(2.0 * top * (upper + rounding))))


def _product(A: np.ndarray, B: np.ndarray) -> float:
    """Return the sum of the products of the entries, by rows."""
    return float(np.einsum("ij,ij->i", A, B).sum())


def in_ball(weights: np.ndarray, norm: float) -> bool:
    """Whether the weights are nonnegative and their norm is at most one, up to rounding."""
    return bool((weights >= 0).all() and np.linalg.norm(weights, norm) <= 1 + ROUNDING)
