"""Optimality of a binary answer recomputed from the formulas alone; nothing of ``multikernel`` is imported.

    min over beta in B   max over a in A    y'a - 1/2 sum_k beta_k a' K_k a
    A = {a : 0 <= y_i a_i <= C_i, sum_i a_i = 0 (with intercept)}      B = {beta >= 0, ||beta||_r <= 1}

Every function takes the raw stack (p, n, n), labels +-1 and bounds C_i (scalar or array), works in float64,
and returns numbers; the ``assert_*`` functions compare them with a tolerance relative to the problem's scale.
"""

from __future__ import annotations

import numpy as np


def bounds(C, n: int, sample_weight=None) -> np.ndarray:
    """The upper bounds C_i = C * weight_i, as an array of n."""
    upper = np.broadcast_to(np.asarray(C, dtype=np.float64), (n,)).copy()
    return upper if sample_weight is None else upper * np.asarray(sample_weight, dtype=np.float64)


def dual_exponent(norm: float) -> float:
    """The conjugate r* = r / (r - 1), infinite for r = 1 and 1 for r = infinity."""
    if norm == 1:
        return np.inf
    return 1.0 if np.isinf(norm) else norm / (norm - 1.0)


def quadratic_forms(stack, a) -> np.ndarray:
    """The p numbers q_k = a' K_k a."""
    a = np.asarray(a, dtype=np.float64)
    return np.array([a @ (np.asarray(K, dtype=np.float64) @ a) for K in stack])


def support_value(q, norm: float) -> float:
    """The support function sigma_B(q) = max {beta.q : beta in B} = ||max(q, 0)||_{r*}."""
    q = np.maximum(np.asarray(q, dtype=np.float64), 0.0)
    top = q.max(initial=0.0)
    return float(top * np.linalg.norm(q / top, ord=dual_exponent(norm))) if top > 0 else 0.0


def outputs(stack, weights, a) -> np.ndarray:
    """The n outputs without intercept, f = sum_k beta_k K_k a."""
    f = np.zeros(len(a))
    for beta_k, K in zip(weights, stack, strict=True):
        if beta_k != 0:
            f += beta_k * (np.asarray(K, dtype=np.float64) @ np.asarray(a, dtype=np.float64))
    return f


def hinge(f, y, C) -> float:
    """The loss sum_i C_i max(0, 1 - y_i f_i)."""
    return float(np.sum(bounds(C, len(y)) * np.maximum(0.0, 1.0 - np.asarray(y) * f)))


def best_intercept(f, y, C) -> float:
    """A minimiser of the convex b -> sum_i C_i max(0, 1 - y_i (f_i + b)), by its breakpoints.

    With t_i = y_i - f_i the slope at b is -(sum of C_i over y_i = +1 with b < t_i) + (sum over y_i = -1 with
    b > t_i); it grows by C_i at every breakpoint, so the minimiser is where it first becomes non-negative.
    """
    C, t = bounds(C, len(y)), np.asarray(y, dtype=np.float64) - f
    order = np.argsort(t, kind="stable")
    slope = -C[np.asarray(y) > 0].sum() + np.cumsum(C[order])
    first = np.flatnonzero(slope >= -1e-14 * C.sum())
    if len(first) == 0:
        return float(t[order[-1]])
    i = first[0]
    # a flat piece of minimisers: its middle
    flat = slope[i] <= 1e-14 * C.sum() and i + 1 < len(t)
    return float((t[order[i]] + t[order[i + 1]]) / 2 if flat else t[order[i]])


def primal_value(stack, y, C, weights, a, intercept=None, fit_intercept=True) -> float:
    """The primal objective 1/2 sum_k beta_k q_k + sum_i C_i max(0, 1 - y_i (f_i + b)).

    ``intercept=None`` takes the exact best b (0 when ``fit_intercept`` is false).
    """
    f = outputs(stack, weights, a)
    if intercept is None:
        intercept = best_intercept(f, y, C) if fit_intercept else 0.0
    return 0.5 * float(np.dot(weights, quadratic_forms(stack, a))) + hinge(f + intercept, y, C)


def dual_value(stack, y, a, norm: float) -> float:
    """The dual objective g(a) - 1/2 ||q(a)||_{r*} with g(a) = y'a."""
    return float(np.dot(y, a)) - 0.5 * support_value(quadratic_forms(stack, a), norm)


def relative_gap(stack, y, C, weights, a, norm, intercept=None, fit_intercept=True) -> float:
    """The relative gap (primal - dual) / primal of the pair (beta, a)."""
    upper = primal_value(stack, y, C, weights, a, intercept, fit_intercept)
    gap = upper - dual_value(stack, y, a, norm)
    return gap / max(abs(upper), 1e-15 * bounds(C, len(y)).sum())


def dual_infeasibility(y, C, a, fit_intercept=True) -> float:
    """How far a is outside A, relative to max C_i: the box 0 <= y_i a_i <= C_i and sum_i a_i = 0."""
    a, C = np.asarray(a, dtype=np.float64), bounds(C, len(y))
    alpha = np.asarray(y) * a
    if not np.all(np.isfinite(a)):
        return np.inf
    worst = max(np.max(-alpha), np.max(alpha - C), 0.0)
    if fit_intercept:
        worst = max(worst, abs(a.sum()))
    return float(worst / C.max())


def weights_infeasibility(weights, norm: float, boundary=True) -> float:
    """How far beta is outside B; with ``boundary``, how far from {beta >= 0, ||beta||_r = 1}."""
    weights = np.asarray(weights, dtype=np.float64)
    if not np.all(np.isfinite(weights)):
        return np.inf
    excess = np.linalg.norm(weights, ord=norm) - 1.0
    return float(max(np.max(-weights), abs(excess) if boundary else excess, 0.0))


def complementarity(stack, y, C, weights, a, intercept) -> float:
    """The gap of the pair (a, b) for these weights, sample by sample, relative to the primal value.

    With m_i = y_i (f_i + b) the sum of C_i max(0, 1 - m_i) - y_i a_i (1 - m_i) over samples; each term is
    non-negative for a in the box, and all vanish when m_i > 1 => a_i = 0, m_i < 1 => y_i a_i = C_i.
    """
    C = bounds(C, len(y))
    slack = 1.0 - np.asarray(y) * (outputs(stack, weights, a) + intercept)
    terms = C * np.maximum(slack, 0.0) - np.asarray(y) * np.asarray(a) * slack
    return float(np.abs(terms).sum() / max(primal_value(stack, y, C, weights, a, intercept), 1e-15 * C.sum()))


def margin_violation(stack, y, C, weights, a, fit_intercept=True, room=1e-9) -> float:
    """The largest violation of the optimality of a for these weights, in units of the margin.

    With gradient G = y - f: max of G over {a may grow} minus min of G over {a may shrink}, at most 0 at the
    optimum (the interval between them holds every optimal b); without intercept the largest projected |G|.
    A coefficient closer than ``room`` * max C_i to a bound counts as being there.
    """
    C, y, a = bounds(C, len(y)), np.asarray(y), np.asarray(a, dtype=np.float64)
    low, high = np.minimum(0.0, y * C), np.maximum(0.0, y * C)
    room = room * C.max()
    G = y - outputs(stack, weights, a)
    grow, shrink = G[a < high - room], G[a > low + room]
    if not fit_intercept:
        return float(max(grow.max(initial=0.0), -shrink.min(initial=0.0)))
    if len(grow) == 0 or len(shrink) == 0:
        return 0.0
    return float(max(0.0, grow.max() - shrink.min()))


def weights_stationarity(stack, weights, a, norm: float) -> float:
    """The regret 1 - beta.q / sigma_B(q) >= 0 of the weights against the best in B for this a."""
    q = quadratic_forms(stack, a)
    top = support_value(q, norm)
    return (top - float(np.dot(weights, q))) / top if top > 0 else 0.0


def assert_feasible(y, C, a, weights, norm, tol=1e-9, fit_intercept=True, boundary=True) -> None:
    """The dual coefficients are in A and the weights in B (on its boundary)."""
    outside = dual_infeasibility(y, C, a, fit_intercept)
    assert outside <= tol, f"dual_coef leaves its set by {outside:.2e} of max C (tolerance {tol:.0e})"
    outside = weights_infeasibility(weights, norm, boundary)
    assert outside <= tol, f"the weights leave their set by {outside:.2e} (tolerance {tol:.0e})"


def assert_gap(stack, y, C, weights, a, norm, tol, intercept=None, fit_intercept=True) -> None:
    """The recomputed relative gap lies in [-rounding, tol]."""
    gap = relative_gap(stack, y, C, weights, a, norm, intercept, fit_intercept)
    assert -1e-9 <= gap <= tol, f"the relative gap is {gap:.3e}, outside [0, {tol:.0e}]"


def assert_machine_optimal(stack, y, C, weights, a, intercept, tol=1e-6) -> None:
    """The pair (a, b) solves the single-kernel problem at these weights."""
    residual = complementarity(stack, y, C, weights, a, intercept)
    assert residual <= tol, f"complementary slackness fails by {residual:.3e} (tolerance {tol:.0e})"


def assert_weights_optimal(stack, weights, a, norm, tol=1e-6) -> None:
    """The weights attain the support function at q(a)."""
    residual = weights_stationarity(stack, weights, a, norm)
    assert residual <= tol, f"the weights miss the support function by {residual:.3e} (tolerance {tol:.0e})"


def assert_objective(value, reference, tol=1e-5) -> None:
    """Two optimum values agree relatively."""
    error = abs(value - reference) / max(abs(reference), np.finfo(float).tiny)
    assert error <= tol, f"{value!r} differs from {reference!r} by {error:.3e} (tolerance {tol:.0e})"
