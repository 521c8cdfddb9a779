"""The contracts of a storage: the kernels, and their outputs at one point.

A Gram answers questions about the kernels K_1, ..., K_p on n training samples and hides where and how they are stored:

    apply(v)   K_k v for every k            rows(idx)   rows of every K_k         combined(beta)   sum_k beta_k K_k

Outputs follow the coefficients a of one point: K_k a, a' K_k a and sum_k beta_k K_k a. The third contract, of the
combined kernel, stands in `multikernel.gram.combined`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from multikernel.gram.combined import Combined


# roundings of the last digit that a sum of many terms has beside one for each term: a bound for all formulas
ROUNDINGS = 8


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
    device : Any
        Where the kernels are: "host", a device of PyTorch, or workers of Dask.
    recomputed : bool
        Whether kernels on a device are computed whenever they are read.
    loose : float or ndarray of shape (p, n)
        For bounds on rounding: the sizes of the terms that K_ij is computed from add up to at most sqrt(m_i m_j), with
        m = diag() + loose. Zero where K_ij is one stored number.
    output_kernels : sequence of ndarrays of shape (c, c), or None
        For each kernel the kernel between the columns of a with which it is multiplied, None for the identity.
    """

    kind: str
    n_kernels: int
    n_samples: int
    dtype: np.dtype
    nbytes: int = 0
    budget: float = np.inf
    device: Any = "host"
    recomputed: bool = False
    loose: float | np.ndarray = 0.0
    output_kernels: Sequence[np.ndarray] | None = None

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

    @abstractmethod
    def rescaled(self, factor: float) -> Gram:
        """Return all kernels multiplied by a power of two, which rounds nothing."""

    def stored(self, kernel: int | None = None) -> tuple[np.ndarray, Any] | None:
        """Return the matrix M and factor s with K_kernel = s M, where M lies in the memory of the host; else None.

        Without a kernel the stack M and factors s with K_k = s_k M_k, where all kernels lie in one array; else None.
        """
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

    def sum_precisely(self) -> float | None:
        """Sum the outputs of all kernels anew, with less rounding at a few times the cost of a pass.

        Returns a number r: the output of sample i is then off by at most r sqrt(m_i) sum_j sqrt(m_j) |a_j|, m = diag()
        + loose, and a few roundings of its own value. None, and nothing is done, where a storage has no such sums.
        """
        return None

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
