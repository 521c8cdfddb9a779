"""Bounds and gaps recomputed in float64 from kernels, weights, coefficients and intercepts, by the formulas alone.

For weights beta in the unit ball of the norm r, coefficients a in their set and q_k = a' K_k a,

    primal  1/2 sum_k beta_k q_k + the loss of the outputs sum_k beta_k K_k a + b
    dual    the linear term of a - 1/2 ||q||_{r*}                                      1/r + 1/r* = 1
"""

from __future__ import annotations

import numpy as np

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


def in_ball(weights: np.ndarray, norm: float) -> bool:
    """Whether the weights are nonnegative and their norm is at most one, up to rounding."""
    return bool((weights >= 0).all() and np.linalg.norm(weights, norm) <= 1 + ROUNDING)
