"""The optimum of the online learners' objective by a general conic solver (cvxpy with Clarabel), in kernel form.

    minimise   lam/2 ||w||^2_{2,r} + a ||w||_{2,1} + 1/n sum_i c_i max_u ([u != y_i] + f_iu - f_{i,y_i})

With K_j = L_j L_j' block j is (rank_j, c) and its outputs are L_j w_j. Nothing of ``multikernel`` is imported.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from reference import factor
from reference_joint import joint_loss, targets


def online_value(norms, f, y, lam, a, r, cost=None) -> float:
    """The objective of a predictor with these block norms and outputs."""
    cost = np.ones(len(y)) if cost is None else cost
    size = np.linalg.norm(norms, r)
    return 0.5 * lam * size**2 + a * float(np.sum(norms)) + joint_loss(f, y, cost) / len(y)


def conic_online(stack, y, lam, a, r, cost=None) -> tuple[float, np.ndarray]:
    """The least objective and the norms of the blocks there."""
    n, c = len(y), int(np.max(y)) + 1
    cost = np.ones(n) if cost is None else cost
    roots = [factor(K, False) for K in stack]
    blocks = [cp.Variable((L.shape[1], c)) for L in roots]
    norms, size, loss = cp.Variable(len(roots)), cp.Variable(), cp.Variable(n)
    E = targets(y, c)
    f = sum(L @ W for L, W in zip(roots, blocks, strict=True))
    own = cp.reshape(cp.sum(cp.multiply(E, f), axis=1), (n, 1), order="C") @ np.ones((1, c))
    constraints = [cp.reshape(loss, (n, 1), order="C") @ np.ones((1, c)) >= 1.0 - E + f - own]
    constraints += [cp.norm(W, "fro") <= norms[j] for j, W in enumerate(blocks)]
    constraints.append(cp.pnorm(norms, r) <= size)
    goal = 0.5 * lam * cp.square(size) + a * cp.sum(norms) + cost @ loss / n
    accuracy = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
    problem = cp.Problem(cp.Minimize(goal), constraints)
    problem.solve(solver=cp.CLARABEL, max_threads=1, **accuracy)
    found = np.array([np.linalg.norm(W.value) for W in blocks])
    value = online_value(found, sum(L @ W.value for L, W in zip(roots, blocks, strict=True)), y, lam, a, r, cost)
    if not abs(value - problem.value) <= 1e-5 * value:
        raise RuntimeError(f"The conic solver says {problem.value}, its blocks {value}.")
    return value, found
