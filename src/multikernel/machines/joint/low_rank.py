"""The joint hinge problem on a kernel of low rank, by an interior-point method.

    min_X  1/2 tr A'GG'A + sum_i X_{i,y_i},     A = C E - X,     X >= 0,  X1 = C,  1'A = 0  (with biases)

Given: a factor G of shape (n, r) of the kernel K = GG', classes, costs. Returned: A of shape (n, c). E has a one for
the class of each sample. Row steps are slow here: most rows may have free entries, while r c numbers determine the
solution. A step of this method solves one system of that size, S = I + sum_i g_i g_i' x M_i, and a few dozen steps are
enough, whatever the costs.

The biases are the multipliers of the column sums: one more column of G, of ones, without a quadratic term. The steps
are those of Mehrotra 1992 for quadratic programmes; we differ in one step length for X and Z.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_solve

from multikernel.gram.combined import Combined
from multikernel.machines.base import FLOOR, ON_BOUND
from multikernel.machines.joint.hinge_loops import MOST_STEPS

# largest number of unknowns, squared, in units of n c: with more of them row steps may be faster
_UNKNOWNS = 20.0
# largest diagonal that a factor leaves over, relative to the diagonal of K, by precision: less is rounding
_LEFT_OVER = {"f": 3e-7, "d": 1e-13}
# fraction of the way to the boundary: nearer to one, and the next step may be blocked
_FRACTION = 0.995


def low_rank_factor(combined: Combined, n_classes: int) -> np.ndarray | None:
    """Return G of shape (n, r) with K = GG' by a pivoted Cholesky factorisation, or None where r is too large.

    Only the r rows of the pivots are formed.
    """
    left = combined.diag.astype(np.float64)
    n = len(left)
    most = int(np.sqrt(_UNKNOWNS * n * n_classes) / n_classes)
    enough = _LEFT_OVER[combined.dtype.char] * float(left.max())
    G = np.zeros((n, most))
    for r in range(most + 1):
        pivot = int(np.argmax(left))
        if left[pivot] <= enough and r:
            return G[:, :r]
        if r == most or left[pivot] <= enough:
            break
        row = combined.apply(np.eye(1, n, pivot)[0])
        G[:, r] = (row - G[:, :r] @ G[pivot, :r]) / np.sqrt(left[pivot])
        left -= G[:, r] ** 2
        left[pivot] = 0.0
    return None


def solve_low_rank(G: np.ndarray, y: np.ndarray, C: np.ndarray, n_classes: int, balanced: bool) -> np.ndarray:
    """Return A of the problem; its row and column sums are zero up to rounding.

    Parameters
    ----------
    G : ndarray of shape (n, r)
        Factor of the kernel.
    y, C : ndarrays of shape (n,)
        Classes and costs.
    n_classes : int
        Number c of classes.
    balanced : bool
        Whether the columns of A sum to zero.

    Examples
    --------
    >>> import numpy as np
    >>> solve_low_rank(np.array([[1.0], [-1.0]]), np.array([0, 1]), np.ones(2), 2, True).round(4)
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    path = _InteriorPoint(G, y, C, n_classes, balanced)
    for _ in range(MOST_STEPS):
        # to the last digits, which tell which entries are on their bounds
        if max(path.gap, path.unbalanced) <= FLOOR * float(C.sum()):
            break
        try:
            moved = path.step()
        except LinAlgError:
            break
        if not moved:
            break
    return path.rounded()


class _InteriorPoint:
    """An interior point: X > 0 and its multipliers Z > 0."""

    def __init__(self, G: np.ndarray, y: np.ndarray, C: np.ndarray, c: int, balanced: bool) -> None:
        self.G = np.column_stack([G, np.ones(len(G))]) if balanced else G
        self.ridge = np.ones(self.G.shape[1])
        self.balanced = balanced
        if balanced:
            self.ridge[-1] = 0.0
        self.E = np.eye(c)[y]
        self.top = C[:, None] * self.E
        self.X = np.repeat(C[:, None] / c, c, axis=1)
        slack = self.E - self._outputs(self.A)
        spread = float(np.ptp(slack, axis=1).max())
        self.Z = slack - slack.min(axis=1, keepdims=True) + max(spread, 1.0)

    @property
    def A(self) -> np.ndarray:
        """Coefficients."""
        return self.top - self.X

    @property
    def gap(self) -> float:
        """Duality gap, where the columns sum to zero."""
        return float(np.vdot(self.X, self.Z))

    @property
    def unbalanced(self) -> float:
        """Largest sum of a column that should be zero."""
        return float(np.abs(self.A.sum(axis=0)).max()) if self.balanced else 0.0

    def rounded(self) -> np.ndarray:
        """Coefficients; an entry very near to its bound, and nearer than its slope is to zero, is put on it."""
        near = self.X < np.minimum(self.Z, 0.1 * ON_BOUND) * self.X.sum(axis=1, keepdims=True)
        X = np.where(near, 0.0, self.X)
        row = np.arange(len(X))
        X[row, self.X.argmax(axis=1)] += self.X.sum(axis=1) - X.sum(axis=1)
        return self.top - X

    def _outputs(self, A: np.ndarray) -> np.ndarray:
        return self.G @ (self.ridge[:, None] * (self.G.T @ A))

    def step(self) -> bool:
        """Predictor and corrector step (Mehrotra 1992); return whether the point could move."""
        solve = self._system()
        X, Z, mu = self.X, self.Z, self.gap / self.X.size
        dX, dZ = solve(-X * Z)
        t = self._longest_step(dX, dZ)
        after = float(np.vdot(X + t * dX, Z + t * dZ)) / X.size
        dX, dZ = solve((after / mu) ** 3 * mu - X * Z - dX * dZ)
        t = _FRACTION * self._longest_step(dX, dZ)
        self.X, self.Z = X + t * dX, Z + t * dZ
        return t > 1e-8

    def _longest_step(self, dX: np.ndarray, dZ: np.ndarray) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = [np.where(d < 0, -x / d, np.inf).min() for x, d in ((self.X, dX), (self.Z, dZ))]
        return min(1.0, *ratios)

    def _system(self):
        """Factorise S; return the function from the right-hand side of X dZ + Z dX = ... to dX and dZ."""
        G = self.G
        c, k = self.X.shape[1], G.shape[1]
        e = self.X / self.Z
        share = e / e.sum(axis=1, keepdims=True)
        blocks = np.empty((c, k, c, k))
        for u in range(c):
            for v in range(u + 1):
                weight = (e[:, u] if u == v else 0.0) - e[:, u] * share[:, v]
                blocks[u, :, v] = (G * weight[:, None]).T @ G
                blocks[v, :, u] = blocks[u, :, v].T
        S = blocks.reshape(c * k, c * k)
        S.flat[:: c * k + 1] += np.tile(np.where(self.ridge > 0, 1.0, 1e-12 * np.trace(S) / len(S)), c)
        factor = np.linalg.cholesky(S)
        sums = self.A.sum(axis=0) if self.balanced else None

        def solve(complement: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            R = complement / self.X
            rhs = (G.T @ self._centred(e, share, R)).T
            if sums is not None:
                rhs[:, -1] -= sums
            V = cho_solve((factor, True), rhs.ravel(), check_finite=False).reshape(c, k)
            dX = self._centred(e, share, R - G @ V.T)
            return dX, R - dX / e

        return solve

    @staticmethod
    def _centred(e: np.ndarray, share: np.ndarray, R: np.ndarray) -> np.ndarray:
        """M_i R_i for every row, M_i = diag(e_i) - e_i e_i' / sum e_i."""
        return e * (R - np.sum(share * R, axis=1, keepdims=True))
