"""The contracts of a storage: the kernels, their outputs at one point, and their combination.

A Gram answers questions about the kernels K_1, ..., K_p on n training samples and hides where and how they are stored:

    apply(v)   K_k v for every k            rows(idx)   rows of every K_k         combined(beta)   sum_k beta_k K_k

Outputs follow the coefficients a of one point: K_k a, a' K_k a and sum_k beta_k K_k a. Combined is the kernel K_beta of
one point as machines read it: products, principal blocks and solutions with them, and rows on the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakMethod

import numpy as np

from multikernel.gram.cholesky import Factor, factor_or_none
from multikernel.gram.slices import read_only
from multikernel.threads import ROWS, Team


class Gram(ABC):
    """The p kernels of one problem on n training samples. Immutable.

    Attributes
    ----------
    kind : str
        Name of the storage, as shown by a fitted model.
    n_kernels, n_samples : int
        Numbers p of kernels and n of training samples.
    dtype : numpy.dtype
        Precision in which entries are stored or combined.
    nbytes : int
        Bytes this Gram holds beyond what the caller handed in.
    budget : float
        Bytes of kernel values that may be held beside those that are stored.
    """

    kind: str
    n_kernels: int
    n_samples: int
    dtype: np.dtype
    budget: float = np.inf

    @property
    def nbytes(self) -> int:
        return 0

    @abstractmethod
    def diag(self) -> np.ndarray:
        """Diagonals of all kernels, shape (p, n), float64."""

    @abstractmethod
    def apply(self, v: np.ndarray, kernels: np.ndarray | None = None) -> np.ndarray:
        """K_k v for the chosen kernels (all by default), float64; v is (n,) or (n, c), rows of zeros cost nothing."""

    @abstractmethod
    def new_outputs(self, shape: tuple[int, ...], known: tuple[np.ndarray, np.ndarray] | None = None) -> Outputs:
        """Return the outputs of zero coefficients of this shape, or those that `Outputs.known` returned elsewhere."""

    @abstractmethod
    def rows(self, idx: np.ndarray, kernels: np.ndarray | None = None) -> np.ndarray:
        """Rows ``idx`` of the chosen kernels (all by default), shape (p', len(idx), n), on the host."""

    @abstractmethod
    def block(self, idx: np.ndarray) -> np.ndarray:
        """Return K_k[idx, idx] for every kernel, a new array of shape (p, m, m) on the host."""

    @abstractmethod
    def combined(self, beta: np.ndarray) -> Combined:
        """Return the combined kernel sum_k beta_k K_k as machines read it."""

    @abstractmethod
    def take_samples(self, idx: np.ndarray) -> Gram:
        """Return the kernels on some of the samples."""

    @abstractmethod
    def take_kernels(self, kernels: np.ndarray) -> Gram:
        """Return some of the kernels."""

    def stored(self, kernel: int | None = None) -> tuple[np.ndarray, Any] | None:
        """Return the matrix M and factor s with K_kernel = s M, where M lies in the memory of the host; else None.

        Without a kernel the stack M and factors s with K_k = s_k M_k, where all kernels lie in one array; else None.
        """
        return None

    def output_kernel(self, kernel: int) -> np.ndarray | None:
        """Return the kernel between the columns of a with which this one is multiplied, None for the identity."""
        return None


class Outputs(ABC):
    """The outputs F_k = K_k a of every kernel, float64, kept where the kernels are.

    Attributes
    ----------
    coef : ndarray of shape (n,) or (n, c)
        The coefficients a that the outputs belong to.
    """

    coef: np.ndarray

    @abstractmethod
    def update(self, coef: np.ndarray, kernels: np.ndarray | None = None) -> None:
        """Move to other coefficients, at the cost of the rows that changed.

        With ``kernels`` the outputs of these kernels alone are updated: the caller has to `put` those of the others.
        """

    @abstractmethod
    def put(self, kernels: np.ndarray, part: Outputs | np.ndarray | float) -> None:
        """Replace the outputs of some kernels: by those of the Gram ``take_kernels(kernels)``, or by numbers."""

    @abstractmethod
    def take(self, kernels: np.ndarray) -> Outputs:
        """Return a copy of the outputs of some kernels, as outputs of the Gram ``take_kernels(kernels)``."""

    @abstractmethod
    def quadratic_forms(self) -> np.ndarray:
        """Return <K_k a, a> for every kernel, shape (p,)."""

    @abstractmethod
    def mix(self, beta: np.ndarray) -> np.ndarray:
        """Return the outputs of the combined kernel, sum_k beta_k F_k, shape (n,) or (n, c)."""

    @abstractmethod
    def kernel_outputs(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Return F_k of every kernel on some samples, (p, m) or (p, m, c), on the host and not to be written to."""

    @abstractmethod
    def known(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients and a copy of their outputs, as `Gram.new_outputs` takes them."""


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
    """

    matrix: np.ndarray
    scale: Any
    have: np.ndarray
    diag: np.ndarray
    ensure: Callable[[np.ndarray], None]


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

    @property
    @abstractmethod
    def means(self) -> np.ndarray:
        """Row means of K_beta."""

    @abstractmethod
    def set_weights(self, beta: np.ndarray) -> None:
        """Take new weights, and forget what was made of the old ones."""

    @abstractmethod
    def apply(self, delta: np.ndarray, exact: bool = True) -> np.ndarray:
        """Return K_beta delta, delta of shape (n,) or (n, m), from the rows where delta is not zero.

        Accumulated in float64 where ``exact``; else in the storage precision, for delta of that precision.
        """

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

    def factor(self, idx: np.ndarray, diagonal: np.ndarray | float, single: bool = False) -> Factor | None:
        """Factorise K_beta[idx, idx] + diag(diagonal); None where that is not positive definite in its precision.

        The precision is that of the storage; or single precision, at half the cost, where the caller says that this is
        enough (``single``) and K_beta is in its range.
        """
        info, mean = np.finfo(np.float32), float(self.diag[idx].mean())
        in_range = info.tiny / info.eps < mean < info.max * info.eps
        A = self.block(idx, np.dtype(np.float32) if single and in_range else None)
        A.flat[:: len(A) + 1] += np.asarray(diagonal, A.dtype)
        return factor_or_none(A, self.team)
