"""The programmes of the two-stage methods as they are printed, by general solvers (Clarabel and HiGHS).

alignf      min over v >= 0   v'Mv - 2 v'a,   M_kl = <K~_k, K~_l>,  a_k = <K~_k, T T'>,  K~ = P K P
BinaryMKL   min over mu >= 0  reg/2 |mu|^2 + sum_ij c_ij max(0, 1 - t_ij mu'z_ij)
EasyMKL     min over gamma    (1 - lam) gamma'YKY gamma + lam |gamma|^2,   gamma >= 0, both classes of sum one
LP-beta     min over beta, xi, rho   -rho + sum_i xi_i / (nu n),  margins + xi >= rho
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from scipy.optimize import linprog


def centred(K):
    """P K P, P = I - 11'/n."""
    P = np.eye(len(K)) - 1.0 / len(K)
    return P @ np.asarray(K, np.float64) @ P


def alignment_problem(stack, T):
    """M and a of alignf, from centred copies of all kernels."""
    kernels = [centred(K) for K in stack]
    M = np.array([[np.sum(K * L) for L in kernels] for K in kernels])
    return M, np.array([np.sum(K * (T @ T.T)) for K in kernels])


def solve_alignf(M, a):
    """The optimal value and point of v'Mv - 2 v'a over v >= 0."""
    values, U = np.linalg.eigh(M)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * U.T
    v = cp.Variable(len(a), nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(root @ v) - 2 * a @ v))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    v = np.maximum(v.value, 0.0)
    return float(v @ M @ v - 2 * v @ a), v


def solve_binary_mkl(stack, y, reg, balanced):
    """The optimal value and mu of BinaryMKL over all n^2 ordered pairs."""
    t = np.where(np.equal.outer(y, y), 1.0, -1.0).ravel()
    cost = np.full(len(t), 1.0 / len(t))
    if balanced:
        cost = np.where(t > 0, 0.5 / np.sum(t > 0), 0.5 / np.sum(t < 0))
    Z = np.asarray(stack, np.float64).reshape(len(stack), -1).T
    mu = cp.Variable(len(stack), nonneg=True)
    value = reg / 2 * cp.sum_squares(mu) + cost @ cp.pos(1 - cp.multiply(t, Z @ mu))
    problem = cp.Problem(cp.Minimize(value))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(problem.value), mu.value


def solve_hulls(K, y, lam):
    """The optimal gamma of EasyMKL's programme on one kernel."""
    y = np.asarray(y, float)
    Q = (1 - lam) * np.outer(y, y) * K + lam * np.eye(len(y))
    gamma = cp.Variable(len(y), nonneg=True)
    constraints = [cp.sum(gamma[y > 0]) == 1, cp.sum(gamma[y < 0]) == 1]
    problem = cp.Problem(cp.Minimize(cp.quad_form(gamma, cp.psd_wrap(Q))), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return gamma.value


def easy_mkl(stack, y, lam):
    """Weights, coefficients and intercept of EasyMKL, two programmes one after the other."""
    stack = np.asarray(stack, np.float64)
    a = y * solve_hulls(stack.sum(axis=0), y, lam)
    beta = np.einsum("i,kij,j->k", a, stack, a)
    beta /= beta.sum()
    K = np.tensordot(beta, stack, 1)
    gamma = solve_hulls(K, y, lam)
    return beta, y * gamma, -0.5 * gamma @ K @ (y * gamma)


def lp_beta(scores, y, nu, per_class=False):
    """Optimal value of LP-beta or LP-B by linprog, constraint by constraint; scores are (p, n, c)."""
    p, n, c = scores.shape
    blocks = c if per_class else 1
    rows = []
    for i in range(n):
        for u in range(c):
            if u == y[i]:
                continue
            row = np.zeros(blocks * p + n + 1)
            right, wrong = (y[i], u) if per_class else (0, 0)
            row[right * p : (right + 1) * p] += scores[:, i, y[i]]
            row[wrong * p : (wrong + 1) * p] -= scores[:, i, u]
            row[blocks * p + i], row[-1] = 1.0, -1.0
            rows.append(-row)
    sums = np.zeros((blocks, blocks * p + n + 1))
    for b in range(blocks):
        sums[b, b * p : (b + 1) * p] = 1.0
    cost = np.concatenate([np.zeros(blocks * p), np.full(n, 1.0 / (nu * n)), [-1.0]])
    bounds = [(0, None)] * (blocks * p + n) + [(None, None)]
    found = linprog(cost, np.array(rows), np.zeros(len(rows)), sums, np.ones(blocks), bounds=bounds)
    assert found.status == 0
    return found.fun
