"""The p named kernels of one model: what the user wrote, made into fitted kernels on resolved columns.

`compute_tiles` evaluates them on the training samples, tile by tile, in parallel. A tile is a block K[I, J] with
I <= J; its transpose is the block K[J, I], so each value is computed once, and kernels of one family share their
distances within a tile. Beside the result no more than a few tiles are in memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from multikernel.gram.dense_loops import add_both_sides
from multikernel.kernels.base import Kernel, as_kernel
from multikernel.kernels.fitted_normalizer import FittedNormalizer
from multikernel.kernels.inputs import (
    alike,
    as_table,
    as_weights,
    columns_of,
    finite,
    len_of,
    resolve_columns,
    take_columns,
    take_rows,
)
from multikernel.kernels.normalize import check_steps, learn_normalizer
from multikernel.kernels.spec import expand_entries
from multikernel.kernels.table import as_samples
from multikernel.threads import ROWS, Team

# parts that tiles are dealt into, whatever the number of threads: more parts share the work more evenly, and each holds
# products of its own until they are added up
_PARTS = 16
_NOT_FINITE = "the values have NaN or infinity among them."


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
        The names of the columns, where the training samples were a data frame.
    preparation : callable or None
        What was learned of training samples that are `Views`: it encodes and completes others.
    """

    names: list[str]
    kernels: list[Kernel]
    columns: list[tuple[int, ...] | None]
    steps: tuple[str, ...] = ()
    n_features: int | None = None
    feature_names: list[str] | None = None
    preparation: Any = None

    @classmethod
    def fit(cls, spec, X, sample_weight=None, normalize=None) -> KernelBank:
        """Fit every kernel on its columns; no Gram matrix is computed.

        Parameters
        ----------
        spec : Kernel, its name, callable, family, list of these and of (name, kernel, columns), or dict by view
            What the user wrote; it is cloned, never changed. "rbf" is `rbf_family()`. A list, or a family,
            may stand where a kernel may.
        X : array, sparse matrix, data frame or Views of shape (n, d)
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
        samples, preparation = X, None
        if not isinstance(X, np.ndarray) or X.dtype.kind not in "biuf":
            X = as_table(X)
            samples = as_samples(X)
            if hasattr(X, "learn_preparation"):
                preparation = X.learn_preparation()
                samples = preparation(X)
        weight = as_weights(sample_weight, X)
        names, kernels, columns = [], [], []
        # for each choice of columns, what the kernels on them learn in common
        shared: dict = {}
        for name, given, chosen in expand_entries(spec, X):
            positions = None if chosen is None else resolve_columns(chosen, X, f"'{name}'")
            kernel = as_kernel(clone(given, safe=False))
            with _named(name):
                kernel._fit(take_columns(samples, positions), weight, shared.setdefault(positions, {}))
            names.append(name)
            kernels.append(kernel)
            columns.append(positions)
        return cls(names, kernels, columns, check_steps(normalize), *columns_of(X), preparation)

    @property
    def n_kernels(self) -> int:
        """The number p of kernels."""
        return len(self.kernels)

    def without_features(self) -> list[str]:
        """Return the names of the kernels that have no explicit features."""
        return [name for name, kernel in zip(self.names, self.kernels, strict=True) if not kernel.has_features]

    def raw(self, k: int, X1, X2=None) -> np.ndarray:
        """Return the raw (m, n) block of kernel k between whole samples, float64; by default X2 = X1."""
        with _named(self.names[k]):
            left = self.select(k, X1)
            if X2 is None or X2 is X1:
                return finite(self.kernels[k](left), _NOT_FINITE)
            return finite(self.kernels[k](left, self.select(k, X2)), _NOT_FINITE)

    def raw_diag(self, k: int, X) -> np.ndarray:
        """Return the raw values k(x, x) of kernel k on whole samples, float64 of shape (m,)."""
        return self.take([k]).raw_diags(X)[0]

    def raw_diags(self, X) -> np.ndarray:
        """Return the raw values k(x, x) of all kernels on whole samples, float64 of shape (p, m)."""
        diags = []
        for k, kernel in enumerate(self.kernels):
            with _named(self.names[k]):
                diags.append(finite(kernel._diag(kernel._check(self.select(k, X))), _NOT_FINITE))
        return np.array(diags)

    def raw_each(
        self, X1, X2=None, kernels: Sequence[int] | None = None, dtype: np.dtype | type = np.float64
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (k, raw block) for the chosen kernels, one at a time, not necessarily in order.

        The blocks are those of `raw`. Kernels on the same columns that have work in common do it once: an
        `rbf_family` computes its distances once, and the exponentials in the precision ``dtype``.
        """
        groups: dict[Hashable, list[int]] = {}
        for k in range(len(self.kernels)) if kernels is None else kernels:
            key = self.kernels[k]._sharing_key()
            groups.setdefault(k if key is None else (self.columns[k], key), []).append(k)
        symmetric = X2 is None or X2 is X1
        for key, group in groups.items():
            first = group[0]
            if key == first:
                yield first, self.raw(first, X1, X2)
                continue
            members = list(map(self.kernels.__getitem__, group))
            with _named(self.names[first]):
                left = right = members[0]._check(self.select(first, X1))
                if not symmetric:
                    left, right = alike(left, members[0]._check(self.select(first, X2)))
                yield from zip(group, members[0]._shared_blocks(members, left, right, symmetric, dtype), strict=True)

    def normalizer(self, k: int, X, sample_weight=None) -> FittedNormalizer:
        """Learn the normalisation of kernel k on the training samples, a block of rows at a time."""
        table = as_table(X)

        def matvec(v):
            starts = range(0, len_of(X), ROWS)
            return np.concatenate([self.raw(k, take_rows(table, slice(i, i + ROWS)), table) @ v for i in starts])

        return learn_normalizer(self.steps, self.raw_diag(k, X), matvec, as_weights(sample_weight, X), self.names[k])

    def take(self, kernels: Sequence[int]) -> KernelBank:
        """Return the bank of some of the kernels."""
        names, members, columns = [], [], []
        for k in kernels:
            names.append(self.names[k])
            members.append(self.kernels[k])
            columns.append(self.columns[k])
        return replace(self, names=names, kernels=members, columns=columns)

    def select(self, k: int, X) -> Any:
        """Return the columns of whole samples that kernel k sees."""
        X = X if isinstance(X, np.ndarray) else as_table(X)
        d, names = columns_of(X)
        if d != self.n_features:
            known, got = ("no" if number is None else number for number in (self.n_features, d))
            raise ValueError(f"The samples must have {known} columns, as in fit. Got {got} instead.")
        if self.feature_names is not None and names is not None and names != self.feature_names:
            other = next(name for name, known in zip(names, self.feature_names, strict=True) if name != known)
            raise ValueError(f"The columns must have the names they had in fit, in that order. Got {other!r} instead.")
        return take_columns(X if self.preparation is None else self.preparation(X), self.columns[k])


def compute_tiles(
    bank: KernelBank,
    X,
    kernels: Sequence[int],
    weight: np.ndarray,
    team: Team,
    out: Sequence[np.ndarray] | None = None,
    dtype: np.dtype | type = np.float64,
    factors: np.ndarray | None = None,
) -> np.ndarray:
    """Compute raw kernels on the training samples, and their products with vectors.

    Without ``out`` only the tiles that a product needs are computed: samples of zero weight come last, and tiles
    between two of them are left out.

    Parameters
    ----------
    bank : KernelBank
        Fitted kernels.
    X : array, sparse matrix or data frame
        The n training samples.
    kernels : sequence of int
        Numbers of the kernels.
    weight : ndarray of shape (n,) or (n, c)
        A vector w, or several.
    team : Team
        Threads.
    out : sequence of ndarrays of shape (n, n), optional
        Arrays that the kernels are written to, in their precision; without them no kernel is kept.
    dtype : dtype
        Precision of the values that are not kept.
    factors : ndarray of shape (len(kernels), n), optional
        Factors u_k of the samples, one by default.

    Returns
    -------
    ndarray of shape (len(kernels), n) or (len(kernels), n, c)
        The products K_k (u_k w), accumulated in float64.
    """
    n, p = len(weight), len(kernels)
    if not p:
        return np.zeros((0, *weight.shape))
    weight = np.array(weight, np.float64)
    order, m = np.arange(n), n
    if out is None:
        some = weight.reshape(n, -1).any(axis=1)
        order, m = np.argsort(~some, kind="stable"), int(some.sum())
    if m < n:
        X, weight = take_rows(X, order), weight[order]
        factors = None if factors is None else factors[:, order]
    # blocks of samples with a weight, then of the others; tile (i, j) lies between blocks i and j
    edges = [*range(0, m, ROWS), *range(m, n, ROWS), n]
    i, j = np.triu_indices(-(-m // ROWS), 0, len(edges) - 1)
    n_parts = max(1, min(_PARTS, len(i)))
    work = partial(_some_tiles, bank, X, np.array(kernels).tolist(), weight, factors, out, dtype, edges)
    parts = []
    for t in range(n_parts):
        parts.append(partial(work, zip(i[t::n_parts], j[t::n_parts], strict=True)))
    products = sum(team.run(parts))
    if m == n:
        return products
    ordered = np.empty_like(products)
    ordered[:, order] = products
    return ordered


def _some_tiles(bank, X, kernels, weight, factors, out, dtype, edges, tiles) -> np.ndarray:
    """Compute some of the tiles, write them to ``out`` where it is given, and return their share of the products."""
    products = np.zeros((len(kernels), *weight.shape))
    position = dict(zip(kernels, range(len(kernels)), strict=True))
    weighted = weight.any()
    for i, j in tiles:
        rows, cols = slice(edges[i], edges[i + 1]), slice(edges[j], edges[j + 1])
        left = take_rows(X, rows)
        right = None if i == j else take_rows(X, cols)
        for k, K in bank.raw_each(left, right, kernels, np.float64 if out is not None else dtype):
            at = position[k]
            if out is not None:
                out[at][rows, cols] = K
                if i != j:
                    out[at][cols, rows] = K.T
            if not weighted:
                continue
            w, product = weight, products[at]
            if factors is not None:
                w = factors[at].reshape(-1, *[1] * (weight.ndim - 1)) * weight
            if i != j and weight.ndim == 1:
                add_both_sides(np.ascontiguousarray(K), w[rows], w[cols], product[cols], product[rows])
                continue
            K = K.astype(np.float64, copy=False)
            product[rows] += K @ w[cols]
            if i != j:
                product[cols] += K.T @ w[rows]
    return products


@contextmanager
def _named(name: str):
    """Let the message of an error begin with the name of the kernel; values that overflow are found in the result."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except (ValueError, TypeError) as error:
        # a subclass, such as UnicodeDecodeError, may take other arguments
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"Kernel '{name}': {error}") from error
