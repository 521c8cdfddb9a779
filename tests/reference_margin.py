"""Kernel margins, their largest value and M3K by general solvers; nothing of ``multikernel`` is imported.

    max  sum_i A_{i,y_i} - 1/2 s    over  A <= C_i e_{y_i},  A1 = 0,  w >= 0,  sum_u w_iu = lambda for each i,
    ||z||_{q*} - gamma0 lambda <= s,      z_k >= tr A'K_k A + (1/n) sum_{i, u != y_i} w_iu eta_iuk,  z >= 0

Cortes, Mohri & Rostamizadeh 2013, (7): the multipliers w of all rows g_i <= beta . eta_iu, and lambda of
(1/n) sum g_i >= gamma0, stand beside A. The whole programme at once.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from certificates import bounds, dual_exponent, support_value
from reference import factor
from reference_joint import conic_joint, feasible_joint, trace_forms
from scipy import sparse
from scipy.optimize import linprog

ACCURACY = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


def eta_of(stack, y, c=None, weight=None) -> np.ndarray:
    """eta_iuk of (4), entry by entry, shape (n, c, p)."""
    y = np.asarray(y)
    n, c = len(y), int(y.max()) + 1 if c is None else c
    weight = np.ones(n) if weight is None else np.asarray(weight, float)
    eta = np.zeros((n, c, len(stack)))
    for k, K in enumerate(stack):
        for i in range(n):
            mean = [np.average(K[i, y == u], weights=weight[y == u]) for u in range(c)]
            eta[i, :, k] = mean[y[i]] - np.array(mean)
    return eta


def rows_of(eta, y) -> tuple[np.ndarray, np.ndarray]:
    """The rows eta_iu with u != y_i, and their samples."""
    sample, wrong = np.nonzero(np.arange(eta.shape[1]) != np.asarray(y)[:, None])
    return eta[sample, wrong], sample


def margins_at(eta, y, beta) -> np.ndarray:
    """The margins of all samples at these weights."""
    values = eta @ beta
    values[np.arange(len(y)), y] = np.inf
    return values.min(axis=1)


def margin_programme(eta, y, cost, gamma0=None, weight=None) -> tuple[float, np.ndarray]:
    """Maximise cost . beta (the margin for None) over the simplex with margin at least gamma0: value and weights."""
    n, _, p = eta.shape
    rows, sample = rows_of(eta, y)
    weight = np.full(n, 1.0 / n) if weight is None else np.asarray(weight) / np.sum(weight)
    A = sparse.hstack([-sparse.csr_matrix(rows), sparse.csr_matrix(np.eye(n)[sample])])
    b = np.zeros(len(rows))
    if gamma0 is not None:
        A, b = sparse.vstack([A, np.append(np.zeros(p), -weight)[None]]), np.append(b, -gamma0)
    c = -np.append(np.zeros(p), weight) if cost is None else -np.append(cost, np.zeros(n))
    simplex = np.append(np.ones(p), np.zeros(n))[None]
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    limits = [(0, None)] * p + [(None, None)] * n
    result = linprog(c, A.tocsr(), b, A_eq=simplex, b_eq=[1.0], bounds=limits, options=options)
    return -result.fun, result.x[:p]


def smallest_programme(eta, y) -> float:
    """The largest smallest margin over the simplex."""
    rows, _ = rows_of(eta, y)
    A = np.hstack([-rows, np.ones((len(rows), 1))])
    limits = [(0, None)] * eta.shape[2] + [(None, None)]
    cost = -np.eye(1, eta.shape[2] + 1, eta.shape[2])[0]
    return -linprog(cost, A, np.zeros(len(rows)), A_eq=(1.0 + cost)[None], b_eq=[1.0], bounds=limits).fun


def _weights(p, norm) -> tuple[cp.Variable, list]:
    beta = cp.Variable(p, nonneg=True)
    return beta, [cp.sum(beta) == 1 if norm == 1 else cp.pnorm(beta, norm) <= 1]


def _margin(eta, y, beta) -> tuple[cp.Expression, list]:
    rows, sample = rows_of(eta, y)
    g = cp.Variable(len(eta))
    return cp.sum(g) / len(eta), [rows @ beta >= np.eye(len(eta))[sample] @ g]


def conic_largest(eta, y, norm) -> float:
    """The largest margin of weights of a norm."""
    beta, inside = _weights(eta.shape[2], norm)
    mean, below = _margin(eta, y, beta)
    return float(cp.Problem(cp.Maximize(mean), inside + below).solve(solver=cp.CLARABEL, max_threads=1, **ACCURACY))


def conic_m3k(stack, y, C, norm, gamma0, c=None, certain=False) -> float:
    """The optimum of (7), from its dual.

    Its coefficients prove that the optimum is not smaller. Where ``certain``, an answer that the conic solver itself
    calls inaccurate is an error: its coefficients may be far from the best.
    """
    if gamma0 == -np.inf:
        return conic_joint(stack, y, C, norm, c, fit_intercept=False)
    stack, y = np.asarray(stack, dtype=np.float64), np.asarray(y)
    n, c, p = len(y), int(y.max()) + 1 if c is None else c, len(stack)
    eta = eta_of(stack, y, c)
    rows, sample = rows_of(eta / np.abs(eta).max(), y)
    level = gamma0 / np.abs(eta).max()
    C, E = bounds(C, n), np.eye(c)[y]
    # A in units of its own size
    spread = max(np.mean(np.diag(K)) for K in stack)
    unit = min(C.max(), 1.0 / spread)
    A, s, z = cp.Variable((n, c)), cp.Variable(), cp.Variable(p, nonneg=True)
    w, lam = cp.Variable(len(rows), nonneg=True), cp.Variable(nonneg=True)
    forms = cp.hstack([cp.sum_squares(np.sqrt(unit) * factor(K, False).T @ A) for K in stack])
    order = dual_exponent(float(norm))
    constraints = [
        C[:, None] / unit * E >= A,
        cp.sum(A, axis=1) == 0,
        np.eye(n)[sample].T @ w == lam,
        forms + rows.T @ w / n <= z,
        (cp.max(z) if np.isinf(order) else cp.pnorm(z, order)) - level * lam <= s,
    ]
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(E, A)) - 0.5 * s), constraints)
    problem.solve(solver=cp.CLARABEL, max_threads=1, **ACCURACY)
    if certain and problem.status != "optimal":
        raise RuntimeError(f"The conic solver ends with the status {problem.status}.")
    value = unit * float(problem.value)
    # its own proof: A moved into the set, multipliers of equal sums for all samples
    A = feasible_joint(unit * A.value, y, C, False)
    w = np.maximum(w.value, 0.0)
    sums = np.bincount(sample, w, n)
    top = float(sums.max())
    w = w * (top / np.maximum(sums, 1e-300))[sample] if top > 0 else w
    forms = trace_forms(stack, A) / unit + rows.T @ w / n
    lower = float(np.sum(E * A)) - 0.5 * unit * (support_value(forms, norm) - level * top)
    if not abs(value - lower) <= 1e-6 * abs(value):
        raise RuntimeError(f"The conic solver says {value}, its coefficients {lower}.")
    return value
