"""The support vector machine of several classes with kernels on the classes, Zien & Ong 2007, (9) and (12).

    max_A  sum_i A_{i,y_i} - 1/2 sum_r tr A'M_r A W_r,     A <= C_i e_{y_i} row by row,  A1 = 0,  1'A = 0  (with biases)

Given: classes, costs, and the combined kernel sum_r M_r (x) W_r, M_r on the samples and W_r on the classes. Returned: A
as from `crammer_singer`. In a row the objective now has the c x c matrix H_i = sum_r (M_r)_ii W_r, so that the best row
is no projection. A few projected gradient steps of length 1 / (sum_r (M_r)_ii lmax(W_r) + rho) come near to it; they
are cheap beside the update of the slopes of all other rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from multikernel.gram.dense_loops import gather_block
from multikernel.machines.joint.crammer_singer import CrammerSinger
from multikernel.machines.joint.newton_systems import ClassBlocksNewtonSystem, DifferencesNewtonSystem
from multikernel.machines.joint.product_loops import product_block, product_row_steps
from multikernel.machines.joint.rows import RowSteps

# largest number of projected gradient steps within a row: more of them cost c^2 operations each and save row steps
_WITHIN = 10
# largest number of unknowns of a Newton system: with more of them the moves of the other rows are left out
_TOGETHER = 4000


class ProductNewtonSystem(DifferencesNewtonSystem):
    """The Newton system of row differences for the kernel sum_r M_r (x) W_r; D is zero."""

    def __init__(self, combined, free, balanced, diagonal=None, single=False):
        super().__init__(combined, _limited(free), balanced)

    def _fill(self, combined, K, lo, hi, M):
        product_block(K.matrix, K.which, K.scale, combined.W, self.i, self.u, self.v, lo, hi, M)


class ProductClassBlocks(ClassBlocksNewtonSystem):
    """The class blocks of the kernel sum_r M_r (x) W_r, without its parts between classes."""

    def _block(self, combined, rows, u, idx, out):
        out[:] = 0.0
        part = np.empty_like(out)
        for at, scale, W in zip(rows.which, rows.scale, combined.W, strict=True):
            gather_block(rows.matrix[at], float(scale * W[u, u]), idx, 0, len(idx), part)
            out += part


class ProductRowSteps(RowSteps):
    """Row steps on slopes of the centred kernels, into which the column sums do not enter."""

    combined: Any
    rows: Any

    def __init__(self, machine, combined, a, f, target):
        super().__init__(machine, combined, a, f, target)
        n, R = machine.n_samples, len(combined.W)
        self.r = np.zeros(n)
        self.rowmeans, self.grand, self.diags = np.zeros((R, n)), np.zeros(R), combined.diags
        if machine.balanced:
            self.rowmeans = combined.rowmeans
            self.grand = self.rowmeans.mean(axis=1)
            self.diags = np.maximum(self.diags - 2.0 * self.rowmeans + self.grand[:, None], 0.0)
        self.steepest = np.linalg.eigvalsh(combined.W)[:, -1] @ self.diags
        self.zero = np.zeros_like(self.S)
        # a projected gradient step is c^2 operations, the update of the slopes n c
        self.within = min(_WITHIN, max(1, n // len(self.S)))

    def _loop(self, max_steps, wanted, top, low):
        machine, rows = self.machine, self.rows
        return product_row_steps(
            rows.matrix, rows.which, rows.scale, self.combined.W, rows.have, self.diags, self.steepest,
            self.rowmeans, self.grand, machine.balanced, self.A, self.G, self.mask, machine.C, machine.y, self.S,
            self.t, self.b, self.rho, self.target, self.column_target, max_steps, self.within, wanted, top, low, self.r,
            self.zero,
        )  # fmt: skip

    def gap(self, a):
        machine, change = self.machine, a - self.A.T
        g, t = self.G.T, self.t
        if change.any():
            g = g - self.combined.apply(change)
            if machine.balanced:
                sums = change.sum(axis=0)
                for r, m, W in zip(self.rowmeans, self.grand, self.combined.W, strict=True):
                    g = g + np.outer(r, sums @ W)
                    t = t + ((r - m) @ change) @ W
        g = g + t
        return float(machine.C @ (g[machine._own] - g.min(axis=1)) - np.vdot(a, g))


class ProductCrammerSinger(CrammerSinger):
    """The hinge of the largest wrong class, for a Gram of products; parameters as of `CrammerSinger`.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.gram.product import ProductGram
    >>> from multikernel.mixing.norms import Simplex
    >>> from multikernel.problem import Problem
    >>> from multikernel.solve import solve
    >>> X = np.repeat(np.eye(3), 2, axis=0)
    >>> gram = ProductGram(DenseGram((X @ X.T)[None]), np.array([np.eye(3), np.diag([1.0, 1.0, 0.0])]))
    >>> solution = solve(Problem(gram, ProductCrammerSinger(np.array([0, 0, 1, 1, 2, 2])), Simplex()), tol=1e-6)
    >>> solution.weights.round(3), round(solution.upper, 4)
    (array([1., 0.]), 1.0)
    """

    description = "output_kernels"
    row_steps = ProductRowSteps
    blocks = ProductClassBlocks
    newton_systems = (ProductNewtonSystem, ProductNewtonSystem)
    separable = False


def _limited(free: np.ndarray) -> np.ndarray:
    """Return the free entries, or those of randomly drawn rows where all are too many for one matrix."""
    rows = np.flatnonzero(free.any(axis=1))
    counts = free[rows].sum(axis=1) - 1
    if counts.sum() <= _TOGETHER:
        return free
    order = np.random.default_rng(0).permutation(len(rows))
    kept = order[: max(1, np.searchsorted(np.cumsum(counts[order]), _TOGETHER))]
    limited = np.zeros_like(free)
    limited[rows[kept]] = free[rows[kept]]
    return limited
