"""The p named kernels of one model: what the user wrote, made into fitted kernels on resolved columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from sklearn.base import clone

from multikernel.kernels.base import Kernel, as_kernel, len_of, symmetric_blocks
from multikernel.kernels.columns import as_samples, column_names, n_columns, resolve_columns, take_columns
from multikernel.kernels.fitted_normalizer import FittedNormalizer
from multikernel.kernels.inputs import alike, as_weights
from multikernel.kernels.normalize import check_steps, learn_normalizer
from multikernel.kernels.radial import RadialKernel
from multikernel.kernels.spec import expand_entries

ROWS = 512
# bytes of the blocks of kernels that are computed together
SHARED_BYTES = 32 << 20


@dataclass(frozen=True, eq=False)
class KernelBank:
    """Fitted kernels, each with a name and the columns it sees.

    Attributes
    ----------
    names : list of str
        Unique names.
    kernels : list of Kernel
        Fitted kernels.
    columns : list of (tuple of int or None)
        Positions of the columns of each kernel, None for all.
    steps : tuple of str
        The normalisation asked for, in order.
    n_features : int or None
        The number of columns of the training samples, None where they have none.
    feature_names : list of str or None
        Their names, where they came as a data frame.
    """

    names: list[str]
    kernels: list[Kernel]
    columns: list[tuple[int, ...] | None]
    steps: tuple[str, ...] = ()
    n_features: int | None = None
    feature_names: list[str] | None = None

    @classmethod
    def fit(cls, spec, X, sample_weight=None, normalize=None) -> KernelBank:
        """Fit every kernel on its columns; no Gram matrix is computed.

        Parameters
        ----------
        spec : "rbf", Kernel, callable, family, or list of these and of (name, kernel, columns)
            What the user wrote; it is cloned, never changed. "rbf" is `rbf_family()`. A list, or a family,
            may stand where a kernel may.
        X : array, sparse matrix or data frame of shape (n, d)
            Training samples.
        sample_weight : array of shape (n,), optional
            Weights of the samples.
        normalize : None, str or list of str
            The steps of `learn_normalizer`.

        Examples
        --------
        >>> import numpy as np
        >>> from multikernel.kernels import RBF, KernelBank, Linear
        >>> bank = KernelBank.fit([RBF(gamma=0.5), ("shape", Linear(), [0, 1])], np.eye(3))
        >>> bank.names
        ['rbf(gamma=0.5)', 'shape']
        >>> bank.raw(1, np.eye(3))
        array([[1., 0., 0.],
               [0., 1., 0.],
               [0., 0., 0.]])
        """
        X = _as_table(X)
        samples = as_samples(X)
        weight = as_weights(sample_weight, len_of(X))
        entries = expand_entries(spec, X)
        names = [name for name, _, _ in entries]
        kernels, columns = [], []
        # one per choice of columns: what kernels on the same columns learn together
        shared: dict = {}
        for name, kernel, chosen in entries:
            positions = resolve_columns(chosen, X, f"'{name}'")
            kernel = as_kernel(clone(kernel, safe=False))
            with _named(name):
                kernel._fit(take_columns(samples, positions), weight, shared.setdefault(positions, {}))
            kernels.append(kernel)
            columns.append(positions)
        return cls(names, kernels, columns, check_steps(normalize), n_columns(X), column_names(X))

    @property
    def n_kernels(self) -> int:
        """The number p of kernels."""
        return len(self.kernels)

    def raw(self, k: int, X1, X2=None) -> np.ndarray:
        """Return the raw (m, n) block of kernel k between whole samples, float64; by default X2 = X1."""
        with _named(self.names[k]):
            left = self.select(k, X1)
            if X2 is None or X2 is X1:
                return _finite(self.kernels[k](left))
            return _finite(self.kernels[k](left, self.select(k, X2)))

    def raw_diag(self, k: int, X) -> np.ndarray:
        """Return the raw values k(x, x) of kernel k on whole samples, float64 of shape (m,)."""
        with _named(self.names[k]):
            return _finite(self.kernels[k].diag(self.select(k, X)))

    def raw_each(
        self, X1, X2=None, kernels: Sequence[int] | None = None, dtype: np.dtype | type = np.float64
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (k, raw block) for the chosen kernels, one at a time, not necessarily in order.

        The blocks are those of `raw`. Kernels of the same distance on the same columns, such as an
        `rbf_family`, compute it once, and its exponentials in the precision ``dtype``.
        """
        for group in self._groups(range(self.n_kernels) if kernels is None else kernels):
            radial = isinstance(self.kernels[group[0]], RadialKernel)
            if len(group) == 1 and (not radial or dtype == np.float64):
                yield group[0], self.raw(group[0], X1, X2)
                continue
            if not radial:
                yield from self._shared(group, X1, X2)
                continue
            D = self._distances(group[0], X1, X2)
            if all(self.kernels[k]._exponential for k in group) and _moderate(D):  # type: ignore[attr-defined]
                D = D.astype(dtype, copy=False)
            for k in group:
                yield k, self.kernels[k]._profile(D if k == group[-1] else D.copy())

    def claims_psd(self, k: int) -> bool:
        """Whether kernel k is positive semidefinite by construction."""
        return bool(self.kernels[k].positive_semidefinite)

    def normalizer(self, k: int, X, sample_weight=None) -> FittedNormalizer:
        """Learn the normalisation of kernel k on the training samples, a block of rows at a time."""

        def matvec(v):
            Z, n = _as_table(X), len_of(X)
            rows = (slice(i, min(i + ROWS, n)) for i in range(0, n, ROWS))
            return np.concatenate([self.raw(k, take_rows(Z, r), Z) @ v for r in rows])

        weight = as_weights(sample_weight, len_of(X))
        return learn_normalizer(self.steps, self.raw_diag(k, X), matvec, weight, self.names[k])

    def take(self, kernels: Sequence[int]) -> KernelBank:
        """Return the bank of some of the kernels."""
        chosen = list(kernels)
        return replace(
            self,
            names=[self.names[k] for k in chosen],
            kernels=[self.kernels[k] for k in chosen],
            columns=[self.columns[k] for k in chosen],
        )

    def select(self, k: int, X):
        """Return the columns of whole samples that kernel k sees."""
        X = _as_table(X)
        if n_columns(X) != self.n_features:
            known, got = ("no" if d is None else d for d in (self.n_features, n_columns(X)))
            raise ValueError(f"The samples must have {known} columns, as in fit. Got {got} instead.")
        names = column_names(X)
        if self.feature_names is not None and names is not None and names != self.feature_names:
            other = next(name for name, known in zip(names, self.feature_names, strict=True) if name != known)
            raise ValueError(f"The columns must have the names they had in fit, in that order. Got {other!r} instead.")
        return take_columns(X, self.columns[k])

    def _distances(self, k: int, X1, X2) -> np.ndarray:
        """Return the distances of which the radial kernel k is a function, symmetric where X2 = X1."""
        kernel: RadialKernel = self.kernels[k]  # type: ignore[assignment]
        with _named(self.names[k]):
            left = kernel._check(self.select(k, X1))
            if X2 is not None and X2 is not X1:
                return kernel._distances(*alike(left, kernel._check(self.select(k, X2))))
            D = symmetric_blocks(len_of(left), lambda rows, cols: kernel._distances(left[rows], left[cols]))
            np.fill_diagonal(D, 0.0)
            return D

    def _shared(self, group: list[int], X1, X2) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the blocks of kernels that share their work, so many at a time as fit into a bounded memory."""
        symmetric = X2 is None or X2 is X1
        size = max(1, SHARED_BYTES // (8 * max(1, len_of(X1)) * max(1, len_of(X1 if X2 is None else X2))))
        for i in range(0, len(group), size):
            part = group[i : i + size]
            first = self.kernels[part[0]]
            with _named(self.names[part[0]]):
                left = first._check(self.select(part[0], X1))
                right = left if symmetric else first._check(self.select(part[0], X2))
                blocks = first._cross_all([self.kernels[k] for k in part], left, right, symmetric)
            yield from zip(part, blocks, strict=True)

    def _groups(self, kernels) -> list[list[int]]:
        """Group the kernels on the same columns that share a distance, or other work."""
        groups: dict = {}
        for k in kernels:
            kernel = self.kernels[k]
            shared = kernel._metric if isinstance(kernel, RadialKernel) else kernel._together()
            groups.setdefault(k if shared is None else (self.columns[k], shared), []).append(k)
        return list(groups.values())


def take_rows(X, rows):
    """Return some of the samples."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return (X.tocsr() if sparse.issparse(X) else X)[rows]


def _as_table(X):
    return X if hasattr(X, "shape") or hasattr(X, "columns") else _as_array(X)


def _as_array(X):
    array = np.asarray(X)
    return array if array.ndim == 2 else X


def _moderate(D: np.ndarray) -> bool:
    """Whether distances keep their digits in single precision."""
    return 1e-30 < D.max(initial=0.0) < 1e30


def _finite(K: np.ndarray) -> np.ndarray:
    # a finite sum proves that every term is finite; an infinite one may be an overflow
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(K.sum()) and not np.isfinite(K).all():
            raise ValueError("the values have NaN or infinity among them.")
    return K


@contextmanager
def _named(name: str):
    """Let the sentence of an error begin with the name of the kernel."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(f"Kernel '{name}': {error}") from error
