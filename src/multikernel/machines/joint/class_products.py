"""The support vector machine of several classes with kernels on the classes, Zien & Ong 2007, (9) and (12).

    max_A  sum_i A_{i,y_i} - 1/2 sum_r tr A'M_r A W_r,     A <= C_i e_{y_i} row by row,  A1 = 0,  1'A = 0  (with biases)

Everything but the steps is as without kernels on the classes. In a row the objective now has the c x c matrix
H_i = sum_r (M_r)_ii W_r, so that the best row is no projection: a few projected gradient steps of length one over
sum_r (M_r)_ii lmax(W_r) + rho, which are cheap beside the slopes of all other rows, come near to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from multikernel.gram.product import ProductRows
from multikernel.machines.joint.crammer_singer import CrammerSinger
from multikernel.machines.joint.newton_systems import DifferencesNewtonSystem
from multikernel.machines.joint.product_loops import climb_products, product_block
from multikernel.machines.joint.rows import Ascent

# largest number of projected gradient steps within a row
_WITHIN = 10
# largest number of free entries, above one in a row, that are moved together
_TOGETHER = 4000


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

    @property
    def _ascent(self):
        return _ProductAscent

    def _by_rank(self, combined):
        # products have the ranks of kernels on the samples times those on the classes
        return None

    def _step(self, combined, free, R):
        blocks = ProductDifferences(combined, _some(free), self.balanced)
        return blocks.rows, blocks.solve(R)


def _some(free: np.ndarray) -> np.ndarray:
    """Return the free entries, or those of evenly spread rows where all would be too many for one matrix."""
    rows = np.flatnonzero(free.any(axis=1))
    counts = free[rows].sum(axis=1) - 1
    if counts.sum() <= _TOGETHER:
        return free
    order = np.random.default_rng(0).permutation(len(rows))
    kept = order[: max(1, np.searchsorted(np.cumsum(counts[order]), _TOGETHER))]
    some = np.zeros_like(free)
    some[rows[kept]] = free[rows[kept]]
    return some


class ProductDifferences(DifferencesNewtonSystem):
    """Newton steps on the free entries, the kernel being sum_r M_r (x) W_r."""

    def _fill(self, combined, K, lo, hi, M):
        product_block(K.matrix, K.which, K.scale, combined.W, self.i, self.u, self.v, lo, hi, M)


class _ProductAscent(Ascent):
    """Row steps on centred slopes, so that no sums of columns enter them."""

    combined: Any
    rows: ProductRows

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
        # a step within a row is c^2 operations, the slopes of the others n c
        self.within = min(_WITHIN, max(1, n // len(self.S)))

    def _climb(self, max_steps, wanted, top, low):
        machine, rows = self.machine, self.rows
        return climb_products(
            rows.matrix, rows.which, rows.scale, self.combined.W, rows.have, self.diags, self.steepest,
            self.rowmeans, self.grand, machine.balanced, self.A, self.G, self.mask, machine.C, machine.y, self.S,
            self.t, self.b, self.rho, self.target, self.tight, max_steps, self.within, wanted, top, low, self.r,
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
