"""The optimum of the joint multiclass problem by a general conic solver (cvxpy with Clarabel), with its own proof.

    maximise   sum_i A_{i,y_i} - 1/2 ||(tr A'K_k A)_k||_{r*}     over  A <= C_i e_{y_i},  A1 = 0,  1'A = 0 (with biases)

Zien & Ong 2007, (9). With K_k = L_k L_k' the penalty is 1/2 s^2, s = ||(||L_k'A||)_k||_{2r*}. The A found is moved into
the set, exactly, which gives a lower bound; a solve whose value is far from it is refused. Best biases come from
a linear programme in HiGHS. Nothing of ``multikernel`` is imported.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from certificates import bounds, dual_exponent, support_value
from reference import factor
from scipy import sparse
from scipy.optimize import linprog


def targets(y, c) -> np.ndarray:
    """E, one where u = y_i."""
    return np.eye(c)[np.asarray(y)]


def trace_forms(stack, A) -> np.ndarray:
    """The forms tr A'K_k A."""
    return np.array([np.sum(A * (K @ A)) for K in stack])


def joint_loss(f, y, C, b=None) -> float:
    """The loss sum_i C_i max_u ([u != y_i] + f_iu + b_u - f_{i,y_i} - b_{y_i})."""
    f = f if b is None else f + b
    rows = np.arange(len(y))
    return float(np.sum(bounds(C, len(y)) * np.max(1.0 - targets(y, f.shape[1]) + f - f[rows, y][:, None], axis=1)))


def joint_biases(f, y, C) -> np.ndarray:
    """The best biases, by the linear programme min sum_i C_i xi_i over xi_i >= [u != y_i] + f_iu - f_iy + b_u - b_y."""
    n, c = f.shape
    rows, E = np.arange(n), targets(y, c)
    D = 1.0 - E + f - f[rows, y][:, None]
    differences = sparse.kron(np.ones((n, 1)), sparse.eye(c)) - sparse.csr_matrix(np.repeat(E, c, axis=0))
    A = sparse.hstack([sparse.kron(-sparse.eye(n), np.ones((c, 1))), differences])
    cost = np.concatenate([bounds(C, n), np.zeros(c)])
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    return linprog(cost, A.tocsr(), -D.ravel(), bounds=[(None, None)] * (n + c), options=options).x[n:]


def joint_infeasibility(A, y, C, fit_intercept=True) -> float:
    """How far A is outside its set, relative to max C_i n."""
    C = bounds(C, len(y))
    worst = max(np.max(A - C[:, None] * targets(y, A.shape[1])), np.abs(A.sum(axis=1)).max())
    if fit_intercept:
        worst = max(worst, np.abs(A.sum(axis=0)).max())
    return float(max(worst, 0.0) / (C.max() * len(y)))


def joint_bounds(stack, y, C, norm, weights, A, b=None, fit_intercept=True) -> tuple[float, float]:
    """The dual value of A and the primal value of (weights, A, b), the best b by default."""
    f = np.tensordot(weights, np.array([K @ A for K in stack]), 1)
    q = trace_forms(stack, A)
    if b is None:
        b = joint_biases(f, y, C) if fit_intercept else np.zeros(A.shape[1])
    lower = float(np.sum(A[np.arange(len(y)), y])) - 0.5 * support_value(q, norm)
    return lower, 0.5 * float(np.dot(weights, q)) + joint_loss(f, y, C, b)


def conic_joint(stack, y, C, norm, n_classes=None, fit_intercept=True) -> float:
    """The row "multiclass, joint" of the design, for one kernel stack (p, n, n) and classes 0 to c - 1."""
    stack, y = np.asarray(stack, dtype=np.float64), np.asarray(y)
    n, c = len(y), int(y.max()) + 1 if n_classes is None else n_classes
    C, norm = bounds(C, n), float(norm)
    # A in units of its own size
    size = max(np.mean(np.diag(K)) for K in stack)
    unit = min(C.max(), 1.0 / size if size > 0 else np.inf)
    A, s = cp.Variable((n, c)), cp.Variable()
    sizes = cp.hstack([cp.norm(np.sqrt(unit) * factor(K, fit_intercept).T @ A, "fro") for K in stack])
    constraints = [C[:, None] / unit * targets(y, c) >= A, cp.sum(A, axis=1) == 0]
    if fit_intercept:
        constraints.append(cp.sum(A, axis=0) == 0)
    order = 2.0 * dual_exponent(norm)
    constraints.append((cp.max(sizes) if np.isinf(order) else cp.pnorm(sizes, order)) <= s)
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(targets(y, c), A)) - 0.5 * cp.square(s)), constraints)
    accuracy = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
    problem.solve(solver=cp.CLARABEL, max_threads=1, **accuracy)
    A = feasible_joint(unit * A.value, y, C, fit_intercept)
    lower = float(np.sum(A[np.arange(n), y])) - 0.5 * support_value(trace_forms(stack, A), norm)
    value = unit * float(problem.value)
    if not abs(value - lower) <= 1e-6 * abs(value):
        raise RuntimeError(f"The conic solver says {value}, its coefficients {lower}.")
    return value


def feasible_joint(A, y, C, fit_intercept=True) -> np.ndarray:
    """A point of the set near A: shrunk towards the interior of the bounds until rows and columns can be made exact."""
    c = A.shape[1]
    E = targets(y, c)
    if fit_intercept:
        A = A - A.mean(axis=1, keepdims=True) - A.mean(axis=0) + A.mean()
        # C_i (e_y - share of the classes) has zero rows and zero columns, and lies below C_i e_y
        inside = C[:, None] * (E - C @ E / C.sum())
    else:
        A = A - A.mean(axis=1, keepdims=True)
        inside = C[:, None] * (E - 1.0 / c)
    room, excess = C[:, None] * E - inside, A - C[:, None] * E
    # A + t (inside - A) <= C E
    over = excess > 0
    t = float(np.max(excess[over] / (excess[over] + room[over]), initial=0.0))
    return A + t * (inside - A)
