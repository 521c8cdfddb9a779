"""Newton systems of the free entries of A: one matrix of row differences, one block a class, or a projection."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, get_lapack_funcs
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from multikernel.gram.base import Combined, HostRows
from multikernel.gram.cholesky import factorise
from multikernel.gram.dense_loops import gather_block
from multikernel.machines.joint.hinge_loops import add_block, complete, difference_block


class DifferencesNewtonSystem:
    """The factorised problem for one set of free entries.

    Parameters
    ----------
    combined : Combined
        The kernel K.
    free : ndarray of bool, shape (n, c)
        Free entries, none or at least two in a row.
    balanced : bool
        Whether columns keep their sums.
    diagonal : ndarray of shape (n, c), optional
        D, where the quadratic form is tr Z'KZ + sum_iu D_iu Z_iu^2.
    """

    def __init__(
        self, combined: Combined, free: np.ndarray, balanced: bool, diagonal: np.ndarray | None = None
    ) -> None:
        self.rows, self.c = np.flatnonzero(free.any(axis=1)), free.shape[1]
        base = free.argmax(axis=1)
        rest = free.copy()
        rest[np.arange(len(free)), base] = False
        self.i, self.u = np.nonzero(rest)
        self.v = base[self.i]
        self.diagonal = diagonal
        self.factor = self._factorise(combined)
        self.columns = None
        if balanced:
            B = np.zeros((len(self.i), self.c))
            t = np.arange(len(self.i))
            B[t, self.u] = 1.0
            B[t, self.v] -= 1.0
            B = B[:, self._independent()]
            X = self.factor.solve(B).astype(np.float64)
            self.columns = B, np.linalg.lstsq(B.T @ X, X.T, rcond=1e-15)[0].T

    def _independent(self) -> np.ndarray:
        """Return the classes without one of each set that rows connect: its column sum follows from the others."""
        links = coo_array((np.ones(len(self.u)), (self.u, self.v)), shape=(self.c, self.c))
        first = np.unique(connected_components(links, directed=False)[1], return_index=True)[1]
        return np.setdiff1d(np.arange(self.c), first)

    def _factorise(self, combined: Combined):
        K = combined.host_rows()
        K.ensure(self.rows)
        team, m = combined.team, len(self.i)
        mean = 2.0 * max(float(combined.diag[self.rows].mean()), float(np.finfo(np.float32).tiny))
        for power in range(-6 if combined.dtype == np.float32 else -11, 1):
            M = np.empty((m, m), combined.dtype)
            team.run(partial(self._fill, combined, K, lo, hi, M) for lo, hi in team.split(m, 32))
            if self.diagonal is not None:
                self._add_diagonal(M)
            M.flat[:: m + 1] += mean * 10.0**power
            try:
                return factorise(M, team)
            except LinAlgError:
                continue
        raise LinAlgError("The combined kernel is not positive semidefinite on the free entries.")

    def _fill(self, combined: Combined, K: HostRows, lo: int, hi: int, M: np.ndarray) -> None:
        """Set the rows from ``lo`` to ``hi`` of the matrix."""
        difference_block(K.matrix, K.scale, self.i, self.u, self.v, lo, hi, M)

    def _add_diagonal(self, M: np.ndarray) -> None:
        """D in the x: sum_u D_u x_u^2 + D_v (sum_u x_u)^2 in each row."""
        assert self.diagonal is not None
        first = np.searchsorted(self.i, self.rows)
        for lo, hi in zip(first, [*first[1:], len(self.i)], strict=True):
            M[lo:hi, lo:hi] += M.dtype.type(self.diagonal[self.i[lo], self.v[lo]])
        M.flat[:: len(M) + 1] += self.diagonal[self.i, self.u].astype(M.dtype)

    def solve(self, R: np.ndarray) -> np.ndarray:
        """Return Z for k right-hand sides R of shape (k, n, c), on the rows that have free entries: (m, c, k)."""
        x = self.factor.solve((R[:, self.i, self.u] - R[:, self.i, self.v]).T).astype(np.float64)
        if self.columns is not None:
            B, X = self.columns
            # twice, for rounding
            x -= X @ (B.T @ x)
            x -= X @ (B.T @ x)
        Z = np.zeros((len(self.rows), self.c, len(R)))
        at = np.searchsorted(self.rows, self.i)
        Z[at, self.u] = x
        first = np.searchsorted(self.i, self.rows)
        Z[np.arange(len(self.rows)), self.v[first]] = -np.add.reduceat(x, first, axis=0)
        return Z


# ridge of the system over the rows, which is singular along constants and consistent, by precision
_RIDGE = {"f": 1e-6, "d": 1e-11}


class ClassBlocksNewtonSystem:
    """The inverses and the factorised system for one set of free entries; parameters as in the class above."""

    def __init__(
        self, combined: Combined, free: np.ndarray, balanced: bool, diagonal: np.ndarray | None = None
    ) -> None:
        self.rows = np.flatnonzero(free.any(axis=1))
        self.free = free[self.rows]
        self.balanced = balanced
        # positions, among the rows, of each class's free entries
        self.at = [np.flatnonzero(column) for column in self.free.T]
        self.team = combined.team
        extra = np.zeros(free.shape) if diagonal is None else diagonal
        free_rows = [self.rows[at] for at in self.at]
        K = combined.host_rows()
        K.ensure(self.rows)
        calls = [partial(self._inverse, K, idx, extra[idx, u]) for u, idx in enumerate(free_rows)]
        self.W: list[np.ndarray] = []
        for first in range(0, len(calls), self.team.n_threads):
            self.W += self.team.run(calls[first : first + self.team.n_threads])
        m = len(self.rows)
        T = np.zeros((m, m), combined.dtype)
        for at, W in zip(self.at, self.W, strict=True):
            add_block(W, at, T)
        mean = max(float(np.trace(T)) / m, 1e-300)
        if balanced:
            T += T.dtype.type(mean / m)
        T.flat[:: m + 1] += _RIDGE[T.dtype.char] * mean
        self.factor = factorise(T, self.team)

    def _inverse(self, rows: HostRows, idx: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        n, kind = len(idx), rows.matrix.dtype
        if not n:
            return np.zeros((0, 0), kind)
        potrf, potri = get_lapack_funcs(("potrf", "potri"), dtype=kind)
        mean = max(float(rows.diag[idx].mean()), float(np.finfo(np.float32).tiny))
        for power in range(-6 if kind == np.float32 else -11, 1):
            # a symmetric matrix: its rows are the columns that the library expects
            K = np.empty((n, n), kind)
            gather_block(rows.matrix, rows.scale, idx, 0, n, K)
            K.flat[:: n + 1] += (mean * 10.0**power + diagonal).astype(kind)
            factor, failed = potrf(K.T, lower=1, overwrite_a=1)
            if not failed:
                break
        else:
            raise LinAlgError("The combined kernel is not positive semidefinite on the free entries.")
        W = potri(factor, lower=1, overwrite_c=1)[0].T
        complete(W, self.balanced)
        return W

    def solve(self, R: np.ndarray) -> np.ndarray:
        """Return Z for k right-hand sides R of shape (k, n, c), on the rows that have free entries: (m, c, k)."""
        R = np.ascontiguousarray(np.moveaxis(R[:, self.rows], 0, -1))
        kind = self.W[0].dtype
        sums = np.zeros((len(self.rows), R.shape[-1]))
        parts = [W @ R[at, u].astype(kind) for u, (at, W) in enumerate(zip(self.at, self.W, strict=True))]
        for at, part in zip(self.at, parts, strict=True):
            sums[at] += part
        multipliers = self.factor.solve(sums.astype(kind))
        Z = np.zeros_like(R)
        for u, (at, W, part) in enumerate(zip(self.at, self.W, parts, strict=True)):
            Z[at, u] = part - W @ multipliers[at]
        # rows exactly, against rounding
        excess = Z.sum(axis=1) / self.free.sum(axis=1)[:, None]
        Z -= self.free[..., None] * excess[:, None]
        return Z


class ProjectedNewtonSystem:
    """The problem for one D.

    Parameters
    ----------
    combined : Combined
        The kernel K.
    diagonal : ndarray of shape (n, c)
        D, positive and finite.
    balanced : bool
        Whether columns keep their sums.
    """

    def __init__(self, combined: Combined, diagonal: np.ndarray, balanced: bool) -> None:
        self.combined, self.balanced = combined, balanced
        kind = combined.dtype
        diag = combined.diag
        if balanced:
            means = combined.means
            diag = np.maximum(diag - 2.0 * means + means.mean(), 0.0)
        w = 1.0 / (diag[:, None] + diagonal)
        self.D = diagonal.astype(kind)[..., None]
        shares = w / w.sum(axis=1, keepdims=True)
        # the biases b, rows being settled: a Laplacian, whose constants are left out
        self.laplacian = np.linalg.pinv(np.diag(w.sum(axis=0)) - shares.T @ w, rcond=1e-12, hermitian=True)
        self.exact = w[..., None], shares[..., None]
        self.w, self.shares = (each.astype(kind) for each in self.exact)

    def _reduced(self, R: np.ndarray, w: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """R - tau_i - b_u."""
        R = R - np.sum(shares * R, axis=1, keepdims=True)
        if self.balanced:
            b = (self.laplacian @ np.sum(w * R, axis=0, dtype=np.float64)).astype(R.dtype)
            R -= b - np.sum(shares * b, axis=1, keepdims=True)
        return R

    def _precondition(self, R: np.ndarray) -> np.ndarray:
        return self.w * self._reduced(R, self.w, self.shares)

    def _apply(self, Z: np.ndarray) -> np.ndarray:
        return self.combined.apply(Z.reshape(len(Z), -1), exact=False).reshape(Z.shape) + self.D * Z

    def solve(self, R: np.ndarray, accuracy: float, limit: int) -> np.ndarray | None:
        """Return Z of shape (n, c, k) for k right-hand sides R of shape (k, n, c), None where they take too long.

        Parameters
        ----------
        R : ndarray
            Right-hand sides.
        accuracy : float
            What the energy of the residual is to fall to, relative to that of R.
        limit : int
            Largest number of iterations.
        """
        # constants of rows and columns change nothing but the rounding
        left = np.ascontiguousarray(self._reduced(np.moveaxis(R, 0, -1), *self.exact).astype(self.w.dtype))
        Z, step = np.zeros_like(left), self._precondition(left)
        energy = np.sum(left * step, axis=(0, 1), dtype=np.float64)
        enough = accuracy * energy
        P = step
        for _ in range(limit):
            MP = self._apply(P)
            length = _ratio(energy, np.sum(P * MP, axis=(0, 1), dtype=np.float64)).astype(Z.dtype)
            Z += length * P
            left -= length * MP
            step = self._precondition(left)
            new = np.sum(left * step, axis=(0, 1), dtype=np.float64)
            if np.all(new <= enough):
                return Z.astype(np.float64)
            P = step + _ratio(new, energy).astype(Z.dtype) * P
            energy = new
        return None


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
