"""Newton systems of the free entries of A: by row differences, by blocks of classes, or by iterations.

    min_Z  1/2 tr Z'KZ + 1/2 sum_iu D_iu Z_iu^2 - <R, Z>,   Z zero off the free entries,  Z1 = 0,  1'Z = 0 (with biases)

Given: the combined kernel K, the free entries, the diagonal D (zero for the hinge) and k right-hand sides R. Returned:
Z on the m rows that have free entries, (m, c, k). Rows sum to zero, so a row with j free entries has j - 1 unknowns:

- ``DifferencesNewtonSystem``: one matrix of all these unknowns, x_iu the entry of class u against a base class v of the
  row; fast where few rows have more than two free entries.
- ``ClassBlocksNewtonSystem``: the inverse W_u of K + D on the free rows of each class, and one system over the rows for
  the multipliers of Z1 = 0, sum_u W_u; fast where most entries are free.
- ``ProjectedNewtonSystem``: preconditioned conjugate gradients on the projections, without a factorisation; fast where
  D is large, as it is for the multinomial loss.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from multikernel.gram.combined import LAPACK, RIDGES, Cholesky, Combined, HostRows
from multikernel.gram.dense_loops import complete, gather_block
from multikernel.machines.base import ROUNDING
from multikernel.machines.joint.hinge_loops import add_block, difference_block


def with_ridge(
    matrix: Callable[[], np.ndarray],
    mean: float,
    factorise: Callable[[np.ndarray], Any],
    ridges: np.ndarray | None = None,
) -> Any:
    """Factorise a matrix of mean diagonal ``mean`` plus a ridge, ten times larger until that succeeds."""
    M = matrix()
    for ridge in (RIDGES[M.dtype.char] if ridges is None else ridges) * max(mean, float(np.finfo(np.float32).tiny)):
        M.flat[:: len(M) + 1] += ridge
        try:
            return factorise(M)
        except LinAlgError:
            # the attempt has overwritten the matrix
            M = matrix()
    raise LinAlgError("The combined kernel is not positive semidefinite on the free entries.")


class DifferencesNewtonSystem:
    """The system of row differences, factorised.

    Parameters
    ----------
    combined : Combined
        Kernel K.
    free : ndarray of bool, shape (n, c)
        Free entries, none or at least two in a row.
    balanced : bool
        Whether columns keep their sums.
    diagonal : ndarray of shape (n, c), optional
        D, where the quadratic form is tr Z'KZ + sum_iu D_iu Z_iu^2.
    single : bool
        Whether single precision will do.
    """

    def __init__(
        self,
        combined: Combined,
        free: np.ndarray,
        balanced: bool,
        diagonal: np.ndarray | None = None,
        single: bool = False,
    ) -> None:
        self.kind = combined.precision(single, 0.0 if diagonal is None else diagonal)
        self.rows, self.c = np.flatnonzero(free.any(axis=1)), free.shape[1]
        # the least held entry of a row: a large D_v would drown the differences to it
        base = (free if diagonal is None else np.where(free, -diagonal, -np.inf)).argmax(axis=1)
        rest = free.copy()
        rest[np.arange(len(free)), base] = False
        self.i, self.u = np.nonzero(rest)
        self.v = base[self.i]
        mean = 2.0 * float(combined.diag[self.rows].mean())
        self.factor = with_ridge(partial(self._matrix, combined, diagonal), mean, partial(Cholesky, team=combined.team))
        self.columns = None
        if balanced:
            B = np.zeros((len(self.i), self.c))
            t = np.arange(len(self.i))
            B[t, self.u] = 1.0
            B[t, self.v] -= 1.0
            # independent column sums: all but one of each set of classes that rows connect
            least, before = np.arange(self.c), None
            while before is None or not np.array_equal(least, before):
                before, low = least.copy(), np.minimum(least[self.u], least[self.v])
                np.minimum.at(least, self.u, low)
                np.minimum.at(least, self.v, low)
            B = B[:, least < np.arange(self.c)]
            X = self.factor.solve(B)
            self.columns = B, np.linalg.lstsq(B.T @ X, X.T, rcond=1e-15)[0].T

    def _matrix(self, combined: Combined, diagonal: np.ndarray | None) -> np.ndarray:
        """Return the matrix of the unknowns. In a row D is sum_u D_u x_u^2 + D_v (sum_u x_u)^2."""
        K, team, m = combined.host_rows(), combined.team, len(self.i)
        K.ensure(self.rows)
        M = np.empty((m, m), self.kind)
        calls = []
        for lo, hi in team.split(m, 32):
            calls.append(partial(self._fill, combined, K, lo, hi, M))
        team.run(calls)
        if diagonal is not None:
            first = np.searchsorted(self.i, self.rows)
            for lo, hi in zip(first, [*first[1:], m], strict=True):
                M[lo:hi, lo:hi] += M.dtype.type(diagonal[self.i[lo], self.v[lo]])
            M.flat[:: m + 1] += diagonal[self.i, self.u].astype(M.dtype)
        return M

    def _fill(self, combined: Combined, K: HostRows, lo: int, hi: int, M: np.ndarray) -> None:
        """Set the rows from ``lo`` to ``hi`` of the matrix."""
        difference_block(K.matrix, K.scale, self.i, self.u, self.v, lo, hi, M)

    def solve(self, R: np.ndarray) -> np.ndarray:
        """Return Z of shape (m, c, k) for right-hand sides R of shape (k, n, c)."""
        x = self.factor.solve((R[:, self.i, self.u] - R[:, self.i, self.v]).T)
        if self.columns is not None:
            B, X = self.columns
            # twice, against rounding
            x -= X @ (B.T @ x)
            x -= X @ (B.T @ x)
        Z = np.zeros((len(self.rows), self.c, len(R)))
        at = np.searchsorted(self.rows, self.i)
        Z[at, self.u] = x
        first = np.searchsorted(self.i, self.rows)
        Z[np.arange(len(self.rows)), self.v[first]] = -np.add.reduceat(x, first, axis=0)
        return Z


class ClassBlocksNewtonSystem:
    """The system of class blocks: inverses and one factorisation.

    Parameters
    ----------
    combined, free, balanced, diagonal, single
        As in the class above.
    held : ndarray of shape (n, c), optional
        For entries that are not free and nevertheless move: move by right-hand side, without the kernel's part; in
        double precision.
    """

    def __init__(
        self,
        combined: Combined,
        free: np.ndarray,
        balanced: bool,
        diagonal: np.ndarray | None = None,
        held: np.ndarray | None = None,
        single: bool = False,
    ) -> None:
        self.rows = np.flatnonzero(free.any(axis=1)) if held is None else np.arange(len(free))
        self.free, self.held = free[self.rows], held
        self.kind = np.dtype(np.float64)
        if held is None:
            self.kind = combined.precision(single, 0.0 if diagonal is None else diagonal)
        # positions, among the rows, of each class's free entries
        self.at = [np.flatnonzero(column) for column in self.free.T]
        self.team, K = combined.team, combined.host_rows()
        K.ensure(self.rows)
        self.ridges = RIDGES[min(combined.dtype, self.kind, key=lambda kind: kind.itemsize).char]
        D = np.zeros(free.shape) if diagonal is None else diagonal
        free_rows = [self.rows[at] for at in self.at]
        calls = [partial(self._inverse, combined, K, u, idx, D[idx, u]) for u, idx in enumerate(free_rows)]
        self.W: list[np.ndarray] = []
        for first in range(0, len(calls), self.team.n_threads):
            self.W += self.team.run(calls[first : first + self.team.n_threads])
        self.sums = np.zeros(self.free.shape) if held is None else held.copy()
        for u, (at, W) in enumerate(zip(self.at, self.W, strict=True)):
            self.sums[at, u] = W.sum(axis=1)
        # the sum of each class as a function of its bias
        self.total = np.maximum(self.sums.sum(axis=0), 1e-300) if balanced else None
        extra = 0.0 if held is None else float(held.sum())
        mean = (sum(float(np.trace(W)) for W in self.W) + extra) / len(self.rows)
        # the sums of the rows must be exact: no larger ridge than rounding asks for
        ridges = None if held is None else ROUNDING / RIDGES["d"][0] * RIDGES["d"]
        self.factor = with_ridge(partial(self._row_system, mean), mean, partial(Cholesky, team=self.team), ridges)

    def _row_system(self, mean: float) -> np.ndarray:
        """Return the matrix of the multipliers of the rows, made definite along the constants."""
        m = len(self.rows)
        T = np.zeros((m, m), self.kind)
        for at, W in zip(self.at, self.W, strict=True):
            add_block(W, at, T)
        if self.held is not None:
            T.flat[:: m + 1] += self.held.sum(axis=1)
        if self.total is not None:
            T -= ((self.sums / self.total) @ self.sums.T - mean / m).astype(self.kind)
        return T

    def _block(self, combined: Combined, rows: HostRows, u: int, idx: np.ndarray, out: np.ndarray) -> None:
        """Set ``out`` to the kernel of class u on some rows."""
        gather_block(rows.matrix, rows.scale, idx, 0, len(idx), out)

    def _inverse(self, combined: Combined, rows: HostRows, u: int, idx: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        n, kind = len(idx), self.kind
        if not n:
            return np.zeros((0, 0), kind)
        potrf, _, potri = LAPACK[kind.char]

        def matrix() -> np.ndarray:
            K = np.empty((n, n), kind)
            self._block(combined, rows, u, idx, K)
            K.flat[:: n + 1] += diagonal.astype(kind)
            return K

        def cholesky(K: np.ndarray) -> np.ndarray:
            # a symmetric matrix: its rows are the columns that the library expects
            factor, failed = potrf(K.T, lower=1, overwrite_a=1)
            if failed:
                raise LinAlgError
            return factor

        factor = with_ridge(matrix, float(rows.diag[idx].mean()), cholesky, self.ridges)
        W = potri(factor, lower=1, overwrite_c=1)[0].T
        complete(W)
        return W

    def _times(self, R: np.ndarray) -> np.ndarray:
        """Return the moves of right-hand sides R, (m, c, k), without constraints."""
        out = np.zeros(R.shape) if self.held is None else self.held[..., None] * R
        for u, (at, W) in enumerate(zip(self.at, self.W, strict=True)):
            out[at, u] = W @ R[at, u].astype(self.kind, copy=False)
        return out

    def _balanced_moves(self, R: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return moves with the given column sums, (c, k), and the biases."""
        Z = self._times(R)
        if self.total is None:
            return Z, np.zeros_like(columns)
        b = (Z.sum(axis=0) - columns) / self.total[:, None]
        Z -= self.sums[..., None] * b
        return Z, b

    def saddle(self, R: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> tuple:
        """Return moves, multipliers of the rows and biases, for R of shape (m, c) or (m, c, k) and given sums."""
        single = R.ndim == 2
        if single:
            R, rows, columns = R[..., None], rows[:, None], columns[:, None]
        Z, b = self._balanced_moves(R, columns)
        t = self.factor.solve(Z.sum(axis=1) - rows)
        back, change = self._balanced_moves(np.repeat(t[:, None], R.shape[1], axis=1), 0.0 * columns)
        out = Z - back, t, b - change
        return tuple(each[..., 0] for each in out) if single else out

    def solve(self, R: np.ndarray) -> np.ndarray:
        """Return Z of shape (m, c, k) for right-hand sides R of shape (k, n, c)."""
        R = np.ascontiguousarray(np.moveaxis(R[:, self.rows], 0, -1))
        Z = self.saddle(R, np.zeros((len(R), R.shape[-1])), np.zeros(R.shape[1:]))[0]
        # make the row sums zero, against rounding
        excess = Z.sum(axis=1) / self.free.sum(axis=1)[:, None]
        Z -= self.free[..., None] * excess[:, None]
        return Z


class ProjectedNewtonSystem:
    """The system by conjugate gradients; every entry is free.

    Parameters
    ----------
    combined : Combined
        Kernel K.
    diagonal : ndarray of shape (n, c)
        D, positive and finite.
    balanced : bool
        Whether columns keep their sums.
    single : bool
        Whether single precision will do.
    """

    def __init__(self, combined: Combined, diagonal: np.ndarray, balanced: bool, single: bool = False) -> None:
        self.combined, self.balanced = combined, balanced
        kind = combined.precision(single, diagonal)
        diag = combined.diag
        if balanced:
            means = combined.means
            diag = np.maximum(diag - 2.0 * means + means.mean(), 0.0)
        w = 1.0 / (diag[:, None] + diagonal)
        self.D = diagonal.astype(kind)[..., None]
        shares = w / w.sum(axis=1, keepdims=True)
        # system of the biases once the rows are eliminated: a Laplacian, singular along the constants
        self.laplacian = np.linalg.pinv(np.diag(w.sum(axis=0)) - shares.T @ w, rcond=1e-12, hermitian=True)
        self.exact = w, shares
        self.w, self.shares = (each.astype(kind) for each in self.exact)

    def _reduced(self, R: np.ndarray, w: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return R - tau_i - b_u, with the tau and b that make the weighted row and column sums zero."""
        R = R - np.einsum("nc,nck->nk", shares, R)[:, None]
        if self.balanced:
            b = (self.laplacian @ np.sum(w[..., None] * R, axis=0, dtype=np.float64)).astype(R.dtype)
            R -= b - (shares @ b)[:, None]
        return R

    def _precondition(self, R: np.ndarray) -> np.ndarray:
        return self.w[..., None] * self._reduced(R, self.w, self.shares)

    def _apply(self, Z: np.ndarray) -> np.ndarray:
        return self.combined.apply(Z.reshape(len(Z), -1), exact=False).reshape(Z.shape) + self.D * Z

    def solve(self, R: np.ndarray, accuracy: float, limit: int) -> np.ndarray | None:
        """Return Z of shape (n, c, k) for right-hand sides R of shape (k, n, c); None if the iterations run out.

        Parameters
        ----------
        R : ndarray
            Right-hand sides.
        accuracy : float
            Squared norm of the preconditioned residual at which to stop, relative to that of R.
        limit : int
            Largest number of iterations.
        """
        # R - tau_i - b_u has the same solution, and less rounding
        left = np.ascontiguousarray(self._reduced(np.moveaxis(R, 0, -1), *self.exact).astype(self.w.dtype))
        Z, step = np.zeros_like(left), self._precondition(left)
        energy = _products(left, step)
        enough = accuracy * energy
        P = step
        for _ in range(limit):
            MP = self._apply(P)
            length = _ratio(energy, _products(P, MP)).astype(Z.dtype)
            Z += length * P
            left -= length * MP
            step = self._precondition(left)
            new = _products(left, step)
            if np.all(new <= enough):
                return Z.astype(np.float64)
            P = step + _ratio(new, energy).astype(Z.dtype) * P
            energy = new
        return None


def _products(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return <A_k, B_k> for each right-hand side k, in float64."""
    return np.einsum("nck,nck->k", A, B, dtype=np.float64)


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a / b, zero where b is not positive."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
