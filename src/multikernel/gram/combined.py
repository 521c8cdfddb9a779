"""The combined kernel K_beta = sum_k beta_k K_k of one point: what machines ask of it, and its rows on the host.

Combined is the contract of every storage: products, principal blocks and solutions with them, and rows on the host.
HostCombined forms rows as they are asked for. Its buffer is reserved once and touched only where rows are formed, so
that its memory is that of the support vectors' rows. A single active kernel that lies in memory is read in place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod

import numpy as np
from scipy.linalg import LinAlgError, get_lapack_funcs

from multikernel.gram.cholesky import BLOCK, BlockCholesky
from multikernel.gram.dense_loops import TOGETHER, add_outputs, add_row_products, gather_block, read_only
from multikernel.gram.storage import SINGLE_RANGE
from multikernel.threads import BLOCK_BYTES, ROWS, Team

if TYPE_CHECKING:
    from multikernel.gram.base import Gram
    from multikernel.gram.host import HostGram

# decimal exponent of the first ridge for a singular matrix, by precision: too small a one costs a second factorisation
_RIDGE = {"f": -6, "d": -11}
# ridges to be added to a singular matrix, one after the other, by precision and in units of its mean diagonal
RIDGES = {kind: 10.0 ** np.arange(first, 1) for kind, first in _RIDGE.items()}
# factorisation, solution and inverse of LAPACK, by precision: asking for them each time shows on small matrices
LAPACK = {kind: get_lapack_funcs(("potrf", "potrs", "potri"), dtype=kind) for kind in _RIDGE}
# samples whose block of the combined kernel comes to the host where kernels are elsewhere, and on a side of a tile of a
# device: more make the compiled loops of the host slower and tiles larger, fewer make steps blind and tiles many
WORKING_SET = 4096


class Cholesky:
    """A = L L' of a symmetric positive definite matrix: one call of the library, or blocks shared by a team.

    Solutions are float64, with the accuracy of the precision of A. Sets: A, overwritten.

    Raises
    ------
    scipy.linalg.LinAlgError
        When A is not positive definite in its precision.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.threads import Team
    >>> Cholesky(np.diag([4.0, 2.0]), Team()).solve(np.array([8.0, 2.0]))
    array([2., 1.])
    """

    def __init__(self, A: np.ndarray, team: Team) -> None:
        # a few blocks are not worth sharing; the number of threads does not count, so that results do not depend on it
        self._single = A.dtype == np.float32
        self._blocks = BlockCholesky(A, team) if len(A) > 16 * BLOCK else None
        if self._blocks is None:
            # LAPACK itself, which sees rows of A as columns: what surrounds it in SciPy takes longer on small matrices
            self._factor, failed = LAPACK[A.dtype.char][0](A.T, lower=1, overwrite_a=1, clean=0)
            if failed:
                raise LinAlgError("The matrix is not positive definite in its precision.")

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Return A^-1 rhs, float64, for right-hand sides of shape (n,) or (n, m)."""
        X = rhs.reshape(len(rhs), -1)
        if self._single:
            # columns are brought near one by powers of two: the range of single precision is smaller
            powers = np.frexp(np.abs(X).max(axis=0, initial=0.0))[1]
            X = np.ldexp(X, -powers)
        if self._blocks is not None:
            X = self._blocks.solve(X)
        else:
            own = np.array(X, self._factor.dtype, order="F")
            X = LAPACK[own.dtype.char][1](self._factor, own, lower=1, overwrite_b=1)[0]
        X = X.astype(np.float64, copy=False)
        return (np.ldexp(X, powers) if self._single else X).reshape(rhs.shape)


@dataclass(frozen=True)
class HostRows:
    """Rows of K_beta[idx, idx] on the host, for compiled loops: row i is ``scale * matrix[i]`` wherever ``have[i]``.

    Attributes
    ----------
    matrix : ndarray of shape (m, m)
        Rows, read-only.
    scale : float
        Factor of all rows.
    have : ndarray of bool, shape (m,)
        The rows that are there; changes as rows are formed.
    diag : ndarray of shape (m,)
        Diagonal, float64, known for all rows.
    ensure : callable
        ``ensure(rows)`` forms those of the rows that are missing.
    together : int
        Rows that a caller should ask for at once: those of one block of memory, so that small kernels take one call.
    """

    matrix: np.ndarray
    scale: Any
    have: np.ndarray
    diag: np.ndarray
    ensure: Callable[[np.ndarray], None]
    together: int = field(default=TOGETHER, kw_only=True)


def all_there(rows: np.ndarray) -> None:
    """Do nothing: the `HostRows.ensure` of a matrix that is complete."""


def _fetch_rows(apply: WeakMethod, buffer: np.ndarray, have: np.ndarray, rows: np.ndarray) -> None:
    """Fetch the rows that are missing, as products with unit vectors. Sets: ``buffer`` and ``have``."""
    rows, product = rows[~have[rows]], apply()
    assert product is not None, "rows are read while their kernel is there"
    for start in range(0, len(rows), ROWS):
        some = rows[start : start + ROWS]
        units = np.zeros((len(have), len(some)), buffer.dtype)
        units[some, np.arange(len(some))] = 1.0
        buffer[some] = product(units, exact=False).T
    have[rows] = True


class Combined(ABC):
    """K_beta = sum_k beta_k K_k, working memory of one point.

    Attributes
    ----------
    beta : ndarray of shape (p,)
        Weights.
    diag, means : ndarrays of shape (n,)
        Diagonal and row means, float64.
    dtype : numpy.dtype
        Precision in which rows and blocks are formed.
    host_limit : float
        Largest number of samples whose block of K_beta machines should ask for at once.
    by_products : bool
        Whether machines should work by products with K_beta: there are more samples, and products are cheap.
    team : Team
        Threads for work on the host.
    cache : dict
        What a machine made of the whole matrix, such as a factorisation; emptied by new weights.
    """

    beta: np.ndarray
    diag: np.ndarray
    dtype: np.dtype
    team: Team
    cache: dict
    host_limit: float = np.inf
    by_products: bool = False

    _gram: Gram
    _kernel_means: np.ndarray | None = None

    @property
    def means(self) -> np.ndarray:
        """Row means of K_beta; the first time they take a pass over all kernels."""
        if self._kernel_means is None:
            n = self._gram.n_samples
            self._kernel_means = self._gram.apply(np.full(n, 1.0 / n))
        return self.beta @ self._kernel_means

    @abstractmethod
    def set_weights(self, beta: np.ndarray) -> None:
        """Take new weights, and forget what was made of the old ones."""

    @abstractmethod
    def apply(self, delta: np.ndarray, exact: bool = True) -> np.ndarray:
        """Return K_beta delta, delta of shape (n,) or (n, m), from the rows where delta is not zero.

        Accumulated in float64 where ``exact``; else in the precision of delta, or that of the storage.
        """

    def widen(self) -> bool:
        """Keep the combined kernel in double precision from now on; False where that is not possible or done already.

        The sum of kernels in single precision, rounded to single precision, may be less definite than any of them.
        """
        return False

    @abstractmethod
    def block(self, idx: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
        """Return K_beta[idx, idx] on the host, a new array in the storage precision unless told otherwise."""

    def host_rows(self, idx: np.ndarray | None = None) -> HostRows:
        """Return rows of K_beta[idx, idx] on the host; without an index those of K_beta, fetched when asked for."""
        if idx is not None:
            return HostRows(self.block(idx), 1.0, np.ones(len(idx), bool), self.diag[idx], all_there)
        if "rows" not in self.cache:
            n = len(self.diag)
            buffer, have = np.empty((n, n), self.dtype), np.zeros(n, bool)
            # without a strong reference to this object: a cycle would keep the buffer until the collector comes
            ensure = partial(_fetch_rows, WeakMethod(self.apply), buffer, have)
            self.cache["rows"] = HostRows(read_only(buffer), 1.0, have, self.diag, ensure)
        return self.cache["rows"]

    def precision(self, single: bool, diagonal: np.ndarray | float = 0.0) -> np.dtype:
        """Return single precision where it is asked for, else that of the storage, for K_beta + diag(diagonal).

        Double precision where the matrix is not in the range of single precision.
        """
        if not single and self.dtype == np.float64:
            return self.dtype
        smallest, largest = SINGLE_RANGE
        in_range = smallest < self.diag.mean() and max(self.diag.max(), np.max(diagonal)) < largest
        return np.dtype(np.float32 if single else self.dtype) if in_range else np.dtype(np.float64)

    def factor(self, idx: np.ndarray, diagonal: np.ndarray | float, single: bool = False) -> Cholesky | None:
        """Factorise K_beta[idx, idx] + diag(diagonal); None where that is not positive definite in its precision.

        The precision is that of the storage; or single precision, at half the cost, where the caller says that this is
        enough (``single``).
        """
        A = self.block(idx, self.precision(single, diagonal))
        A.flat[:: len(A) + 1] += np.asarray(diagonal, A.dtype)
        try:
            return Cholesky(A, self.team)
        except LinAlgError:
            return None


class HostCombined(Combined):
    """Rows of K_beta on demand.

    Parameters
    ----------
    gram : HostGram
        The kernels.
    beta : ndarray of shape (p,)
        Weights.
    """

    _gram: HostGram

    def __init__(self, gram: HostGram, beta: np.ndarray) -> None:
        self._gram = gram
        self.dtype, self.team = gram.dtype, gram.team
        self._kernel_diag = gram.diag()
        self._buffer: np.ndarray | None = None
        self.set_weights(beta)

    def set_weights(self, beta: np.ndarray) -> None:
        self.beta = beta
        self.cache = {}
        self.diag = beta @ self._kernel_diag
        active = np.flatnonzero(beta)
        stored = self._gram.stored(int(active[0])) if len(active) == 1 else None
        n = self._gram.n_samples
        if stored is not None:
            matrix, factor = stored
            scale = float(beta[active[0]] * factor)
            self._rows = HostRows(matrix, scale, np.ones(n, bool), self.diag, all_there)
            return
        if self._buffer is None:
            self._buffer = np.empty((n, n), self.dtype)
        have = np.zeros(n, bool)
        # without a reference to this object: a cycle would keep the buffer until the collector comes
        ensure = partial(form_rows, self._gram, beta[None], self._buffer[None], have)
        together = max(TOGETHER, BLOCK_BYTES // (len(active) * n * self.dtype.itemsize + 1))
        self._rows = HostRows(read_only(self._buffer), 1.0, have, self.diag, ensure, together=together)

    def widen(self) -> bool:
        wide, n = np.dtype(np.float64), self._gram.n_samples
        if self.dtype == wide or not self._gram.make_room((wide.itemsize - self.dtype.itemsize) * n * n):
            return False
        self.dtype, self._buffer = wide, None
        # the old matrix goes before the new one comes
        del self._rows
        self.set_weights(self.beta)
        return True

    def host_rows(self, idx: np.ndarray | None = None) -> HostRows:
        """Return the matrix itself, without an index; else a compact copy of the rows that are asked for."""
        return self._rows if idx is None else _compact_rows(self._rows, idx)

    def block(self, idx: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
        rows = self._rows
        rows.ensure(idx)
        out = np.empty((len(idx), len(idx)), rows.matrix.dtype if dtype is None else dtype)
        calls = []
        for lo, hi in self.team.split(len(idx), 32, len(idx) * out.itemsize):
            calls.append(partial(gather_block, rows.matrix, rows.scale, idx, lo, hi, out))
        self.team.run(calls)
        return out

    def apply(self, delta: np.ndarray, exact: bool = True) -> np.ndarray:
        idx = np.flatnonzero(delta if delta.ndim == 1 else delta.any(axis=1))
        rows, team, n = self._rows, self.team, len(delta)
        rows.ensure(idx)
        if not exact:
            # by the library
            matrix, scale = rows.matrix, delta.dtype.type(rows.scale)
            if not rows.have.all():
                return matrix[idx].T @ (scale * delta[idx])
            if delta.dtype != matrix.dtype:
                kept = "matrix", delta.dtype
                matrix = (
                    self.cache[kept] if kept in self.cache else self.cache.setdefault(kept, matrix.astype(delta.dtype))
                )
            out = np.empty(delta.shape, delta.dtype)
            team.run(partial(np.matmul, matrix[lo:hi], delta, out[lo:hi]) for lo, hi in team.split(n, 64))
            return np.multiply(out, scale, out=out)
        if delta.ndim > 1:
            return times_columns(rows.matrix, rows.scale, delta, idx, bool(rows.have.all()), team)
        out = np.zeros((1, n))
        D, which, calls = rows.scale * delta[None, idx], np.zeros(1, np.intp), []
        for lo, hi in team.split(n, 256, len(idx) * rows.matrix.itemsize):
            calls.append(partial(add_outputs, rows.matrix[None], which, idx, D, 0, 1, lo, hi, out))
        team.run(calls)
        return out[0]


def form_rows(gram: HostGram, weights: np.ndarray, buffer: np.ndarray, have: np.ndarray, rows: np.ndarray) -> None:
    """Form the rows that are missing of one or more combined kernels, one for each row of ``weights``.

    Sets: ``buffer``, of at least as many matrices, and ``have``.
    """
    rows = rows[~have[rows]]
    if len(rows):
        for beta, out in zip(weights, buffer, strict=False):
            gram.combine(beta, rows, out, rows)
        have[rows] = True


def _compact_rows(whole: HostRows, idx: np.ndarray) -> HostRows:
    """Return K_beta[idx, idx], rows again on demand, for a machine that has set the other samples aside."""
    buffer = np.empty((len(idx), len(idx)), whole.matrix.dtype)
    have = np.zeros(len(idx), bool)

    def ensure(rows: np.ndarray) -> None:
        rows = rows[~have[rows]]
        source = idx[rows]
        whole.ensure(source)
        for row, i in zip(rows, source, strict=True):
            np.take(whole.matrix[i], idx, out=buffer[row])
        have[rows] = True

    return HostRows(read_only(buffer), whole.scale, have, whole.diag[idx], ensure)


def times_columns(
    matrix: np.ndarray, scale: float, delta: np.ndarray, idx: np.ndarray, whole: bool, team: Team
) -> np.ndarray:
    """Return scale M delta, float64, delta (n, c) being zero but for the rows ``idx``.

    Only these rows of the symmetric M are read, unless the ``whole`` of it is there.
    """
    out = np.zeros(delta.shape)
    if whole:
        columns, calls = np.ascontiguousarray(scale * delta.T), []
        for lo, hi in team.split(len(matrix), 64):
            calls.append(partial(add_row_products, matrix[lo:hi], columns, out[lo:hi]))
        team.run(calls)
        return out
    for start in range(0, len(idx), ROWS):
        rows = idx[start : start + ROWS]
        out += matrix[rows].astype(np.float64, copy=False).T @ (scale * delta[rows])
    return out
