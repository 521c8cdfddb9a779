"""The optimum of the joint multiclass problem by a general conic solver (cvxpy with Clarabel), with its own proof.

    maximise   sum_i A_{i,y_i} - 1/2 ||(tr A'K_k A)_k||_{r*}     over  A <= C_i e_{y_i},  A1 = 0,  1'A = 0 (with biases)

Zien & Ong 2007, (9). With K_k = L_k L_k' the penalty is 1/2 s^2, s = ||(||L_k'A||)_k||_{2r*}. The A found is moved into
the set, exactly, which gives a lower bound; a solve whose value is far from it is refused. Best biases come from
a linear programme in HiGHS. Nothing of ``multikernel`` is imported.
"""

from __future__ import annotations

import warnings
from contextlib import suppress

import cvxpy as cp
import numpy as np
from certificates import bounds, dual_exponent, support_value
from reference import factor
from scipy import sparse
from scipy.optimize import linprog
from scipy.special import logsumexp, softmax, xlogy


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


# ---- kernels on the classes: q_j = tr A'K_k A Y_m for pairs j = (k, m)


def all_pairs(stack, outputs) -> list[tuple[int, int]]:
    """Every kernel on the samples with every kernel on the classes."""
    return [(k, m) for k in range(len(stack)) for m in range(len(outputs))]


def product_forms(stack, outputs, pairs, A) -> np.ndarray:
    """The forms tr A'K_k A Y_m."""
    return np.array([np.trace(A.T @ stack[k] @ A @ outputs[m]) for k, m in pairs])


def product_bounds(stack, outputs, pairs, y, C, norm, weights, A, b=None, fit_intercept=True) -> tuple[float, float]:
    """The dual value of A and the primal value of (weights, A, b), the best b by default."""
    f = sum(w * (stack[k] @ A @ outputs[m]) for w, (k, m) in zip(weights, pairs, strict=True))
    q = product_forms(stack, outputs, pairs, A)
    if b is None:
        b = joint_biases(f, y, C) if fit_intercept else np.zeros(A.shape[1])
    lower = float(np.sum(A[np.arange(len(y)), y])) - 0.5 * support_value(q, norm)
    return lower, 0.5 * float(np.dot(weights, q)) + joint_loss(f, y, C, b)


def conic_products(stack, outputs, pairs, y, C, norm, fit_intercept=True) -> float:
    """The joint problem with products of kernels on the samples (p, n, n) and on the classes (m, c, c).

    In (9) of Zien & Ong 2007 ||w_j||^2 is |L_k' A V_m|^2 for K_k = L_k L_k' and Y_m = V_m V_m', which may be centred,
    the rows of A summing to zero.
    """
    stack, outputs, y = np.asarray(stack, float), np.asarray(outputs, float), np.asarray(y)
    n, c, norm = len(y), outputs.shape[1], float(norm)
    C = bounds(C, n)
    size = max(np.mean(np.diag(stack[k])) * np.mean(np.diag(outputs[m])) for k, m in pairs)
    unit = min(C.max(), 1.0 / size if size > 0 else np.inf)
    A, s = cp.Variable((n, c)), cp.Variable()
    left, right = [factor(K, fit_intercept) for K in stack], [factor(Y, True) for Y in outputs]
    sizes = cp.hstack([cp.norm(np.sqrt(unit) * left[k].T @ A @ right[m], "fro") for k, m in pairs])
    constraints = [C[:, None] / unit * targets(y, c) >= A, cp.sum(A, axis=1) == 0]
    if fit_intercept:
        constraints.append(cp.sum(A, axis=0) == 0)
    order = 2.0 * dual_exponent(norm)
    constraints.append((cp.max(sizes) if np.isinf(order) else cp.pnorm(sizes, order)) <= s)
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(targets(y, c), A)) - 0.5 * cp.square(s)), constraints)
    with warnings.catch_warnings():
        # what it is worth is decided below
        warnings.simplefilter("ignore", UserWarning)
        problem.solve(solver=cp.CLARABEL, max_threads=1, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    A = feasible_joint(unit * A.value, y, C, fit_intercept)
    forms = product_forms(stack, outputs, pairs, A)
    lower = float(np.sum(A[np.arange(n), y])) - 0.5 * support_value(forms, norm)
    value = unit * float(problem.value)
    if not abs(value - lower) <= 1e-6 * abs(value):
        raise RuntimeError(f"The conic solver says {value}, its coefficients {lower}.")
    return value


# ---- other losses: Zien & Ong 2007, Theorem 1, and the softmax

# name: (expression of the largest f_u - f_y, formula, conjugate at u = A_iy / C_i)
LARGEST = {
    "squared_hinge": (
        lambda t: cp.square(cp.pos(1 + t)),
        lambda t: np.maximum(0.0, 1.0 + t) ** 2,
        lambda u: u**2 / 4 - u,
    ),
    "logistic": (cp.logistic, lambda t: np.logaddexp(0.0, t), lambda u: xlogy(u, u) + xlogy(1 - u, 1 - u)),
    "smooth_hinge": (
        lambda t: cp.logistic(10 * (1 + t)) / 10,
        lambda t: np.logaddexp(0.0, 10 * (1 + t)) / 10,
        lambda u: -u + (xlogy(u, u) + xlogy(1 - u, 1 - u)) / 10,
    ),
}


def other_loss(f, y, C, loss) -> float:
    """The loss sum_i C_i max_{u != y_i} l(f_iy - f_iu), or the softmax loss, biases in f."""
    rows = np.arange(len(y))
    if loss == "multinomial":
        each = logsumexp(f, axis=1) - f[rows, y]
    else:
        wrong = f - np.where(targets(y, f.shape[1]) > 0, np.inf, 0.0)
        each = LARGEST[loss][1](wrong.max(axis=1) - f[rows, y])
    return float(np.sum(bounds(C, len(y)) * each))


def other_dual(A, y, C, loss) -> float:
    """The dual's -sum_i C_i l*(-A_i / C_i): sum p log p of p = e_y - A_i / C_i or, by Theorem 1, of A_iy alone."""
    C = bounds(C, len(y))
    if loss == "multinomial":
        p = np.maximum(targets(y, A.shape[1]) - A / C[:, None], 0.0)
        return -float(np.sum(C * xlogy(p, p).sum(axis=1)))
    u = np.maximum(A[np.arange(len(y)), y] / C, 0.0)
    return -float(np.sum(C * LARGEST[loss][2](u if loss == "squared_hinge" else np.minimum(u, 1.0))))


def conic_other(stack, y, C, norm, loss, fit_intercept=True, accept=1e-6) -> float:
    """The optimum of a joint loss, from the primal; the multipliers of its rows make the dual value that proves it."""
    stack, y = np.asarray(stack, dtype=np.float64), np.asarray(y)
    n, c, norm = len(y), int(y.max()) + 1, float(norm)
    C, E = bounds(C, n), targets(y, c)
    factors = [factor(K, fit_intercept) for K in stack]
    W = [cp.Variable((L.shape[1], c)) for L in factors if L.shape[1]]
    f = sum(L @ w for L, w in zip([L for L in factors if L.shape[1]], W, strict=True)) + np.zeros((n, c))
    b = cp.Variable((1, c))
    f = f + np.ones((n, 1)) @ b if fit_intercept else f + np.zeros((n, c))
    constraints = [cp.sum(b) == 0]
    own = cp.sum(cp.multiply(E, f), axis=1)
    if loss == "multinomial":
        total = C @ (cp.log_sum_exp(f, axis=1) - own)
    else:
        t, i_u = cp.Variable(n), np.nonzero(E == 0)
        pick = sparse.eye(n * c, format="csr")[i_u[0] * c + i_u[1]]
        spread = sparse.eye(n, format="csr")[i_u[0]]
        constraints.append(spread @ (t + own) >= pick @ cp.vec(f, order="C"))
        total = C @ LARGEST[loss][0](t)
    sizes = cp.hstack([cp.norm(cp.vec(w, order="C"), 2) for w in W])
    order = 2.0 if np.isinf(norm) else 2.0 * norm / (norm + 1.0)
    penalty = cp.square(cp.norm(sizes, 1) if norm == 1 else cp.pnorm(sizes, order, max_denom=1024)) / 2
    unit = C.max()
    problem = cp.Problem(cp.Minimize((penalty + total) / unit), constraints)
    best = np.inf, -np.inf
    for tol in (1e-10, 1e-8, 1e-12):
        with warnings.catch_warnings(), suppress(cp.error.SolverError):
            warnings.simplefilter("ignore")
            problem.solve(solver="CLARABEL", max_threads=1, tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
        if f.value is None:
            continue
        out = f.value
        upper = 0.5 * np.linalg.norm([np.linalg.norm(w.value) for w in W], ord=order) ** 2 + other_loss(out, y, C, loss)
        if loss == "multinomial":
            A, most = C[:, None] * (E - softmax(out, axis=1)), C
        else:
            A = np.zeros((n, c))
            A[i_u] = -unit * np.maximum(constraints[1].dual_value, 0.0)
            A[np.arange(n), y] = -A.sum(axis=1)
            most = np.maximum(C, 2 * A.max(axis=1)) if loss == "squared_hinge" else C
        A = feasible_joint(A, y, most, fit_intercept)
        lower = other_dual(A, y, C, loss) - 0.5 * support_value(trace_forms(stack, A), norm)
        best = min(best[0], float(upper)), max(best[1], lower)
        if best[0] - best[1] <= accept * abs(best[0]):
            return best[0]
    raise RuntimeError(f"The conic solver left the bracket {best}.")
