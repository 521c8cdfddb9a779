"""Kernels computed from samples: in memory, on disk, or row by row.

Without centring and unit diagonals a normalised kernel is a multiple of the raw one: raw values are stored,
tile by tile and once each, and the factor rides along. Otherwise each kernel is normalised in float64 before
it is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from multikernel.gram.definite import probe_definiteness
from multikernel.gram.dense import AffineForm, DenseGram
from multikernel.gram.dense_loops import add_both_sides
from multikernel.gram.lazy import LazyGram
from multikernel.gram.memmap import MemmapGram, memmap_stack
from multikernel.gram.soundness import examine, indefinite_error
from multikernel.gram.storage import choose_storage, row_budget, storage_dtype
from multikernel.kernels.bank import KernelBank, take_rows
from multikernel.kernels.fitted_normalizer import FittedNormalizer
from multikernel.kernels.inputs import alone
from multikernel.kernels.normalize import learn_normalizer
from multikernel.threads import Team
from multikernel.training.core import TrainingKernels, affine_form, no_variance, refuse_repair
from multikernel.training.expansion import ComputedExpansion


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
    """Compute kernels on the training samples.

    Parameters
    ----------
    bank : KernelBank
        Fitted kernels.
    X : array, sparse matrix or data frame
        The n training samples.
    kernels : sequence of int
        Which of them.
    weight : ndarray of shape (n,) or (n, c)
        A vector w, or several.
    team : Team
        Threads.
    out : sequence of ndarrays of shape (n, n), optional
        Where each kernel goes, in its precision; without it they are not kept.
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
    size = 256 if n <= 4096 else 512
    inside = [slice(i, min(i + size, m)) for i in range(0, m, size)]
    blocks = [*inside, *(slice(i, min(i + size, n)) for i in range(m, n, size))]
    tiles = [(rows, cols) for i, rows in enumerate(inside) for cols in blocks[i:]]
    parts = max(1, min(team.n_threads, len(tiles)))
    work = partial(_some_tiles, bank, X, [int(k) for k in kernels], weight, factors, out, dtype)
    products = sum(team.run(partial(work, tiles[t::parts]) for t in range(parts)))
    if m == n:
        return products
    ordered = np.empty_like(products)
    ordered[:, order] = products
    return ordered


def _some_tiles(bank, X, kernels, weight, factors, out, dtype, tiles) -> np.ndarray:
    products = np.zeros((len(kernels), *weight.shape))
    place = {k: j for j, k in enumerate(kernels)}
    asked = weight.any()
    for rows, cols in tiles:
        left = take_rows(X, rows)
        right = None if rows is cols else take_rows(X, cols)
        for k, K in bank.raw_each(left, right, kernels, np.float64 if out is not None else dtype):
            j = place[k]
            if asked:
                w = _scaled(weight, factors, j)
                _multiply(np.ascontiguousarray(K), w, rows, None if right is None else cols, products[j])
            if out is not None:
                out[j][rows, cols] = K
                if right is not None:
                    out[j][cols, rows] = K.T
    return products


def _scaled(weight: np.ndarray, factors: np.ndarray | None, j: int) -> np.ndarray:
    """Return u_k w for the j-th of the kernels."""
    return weight if factors is None else factors[j].reshape(-1, *[1] * (weight.ndim - 1)) * weight


def _multiply(K: np.ndarray, w: np.ndarray, rows: slice, cols: slice | None, product: np.ndarray) -> None:
    """Add what a tile, and its transpose where it is not on the diagonal (None), brings to a product."""
    if cols is None:
        product[rows] += K.astype(np.float64, copy=False) @ w[rows]
    elif product.ndim == 1:
        add_both_sides(K, w[rows], w[cols], product[cols], product[rows])
    else:
        K = K.astype(np.float64, copy=False)
        product[rows] += K @ w[cols]
        product[cols] += K.T @ w[rows]


# samples on which the symmetry of a kernel that is never stored is checked
_SAMPLE = 256


class ComputedKernels(TrainingKernels):
    """Kernels of a bank on training samples.

    Parameters
    ----------
    bank : KernelBank
        Fitted kernels, with the steps of their normalisation.
    X : array, sparse matrix, data frame or sequence
        The n training samples.
    weight : ndarray of shape (n,) or None
        Positive sample weights, None for equal ones.
    psd : str
        What to do about indefinite kernels.
    gram : str
        Storage asked for.
    memory_limit : float, str or None
        Memory that may be used.
    n_threads : int
        Threads.
    """

    def __init__(
        self,
        bank: KernelBank,
        X: Any,
        weight: np.ndarray | None,
        *,
        psd: str = "error",
        gram: str = "auto",
        memory_limit: float | str | None = None,
        n_threads: int = 1,
    ) -> None:
        super().__init__()
        self.bank, self.X, self.weight, self.psd = bank, X, weight, psd
        self.names = bank.names
        n, p = X.shape[0] if hasattr(X, "shape") else len(X), bank.n_kernels
        self._p = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
        self._team = Team(n_threads)
        self.known_psd = bank.known_psd
        self.constant = np.zeros(p, bool)
        self.normalizers = [FittedNormalizer((), n)] * p
        self._diag = bank.raw_diags(X)
        dtype = storage_dtype(p, n)
        kind = choose_storage(p, n, dtype.itemsize, memory_limit, gram)
        if kind == "lazy":
            self._keep_nothing(dtype, row_budget(n, dtype.itemsize, memory_limit))
        else:
            self._keep_all(self._space(p, n, dtype) if kind == "dense" else memmap_stack(p, n, dtype))

    def _space(self, p: int, n: int, dtype: np.dtype) -> np.ndarray:
        """Return memory for the kernels."""
        return np.empty((p, n, n), dtype)

    def _divided(self) -> np.ndarray:
        """Kernels whose normalisation is a factor, and which need no check."""
        return self.known_psd & set(self.bank.steps).issubset({"variance", "trace"})

    def _keep_all(self, stack: np.ndarray) -> None:
        """Fill the stack and make it a Gram."""
        self._stack, self._scale = stack, np.ones(len(stack))
        divided = np.flatnonzero(self._divided())
        targets = [stack[k] for k in divided]
        products = self._tiles(divided, targets)
        for k, product in zip(divided, products, strict=True):
            self._learn(k, lambda v, product=product: product, product)
            self._scale[k] = self.normalizers[k].scale
        indefinite = [k for k in range(len(stack)) if k not in divided and not self._store(k)]
        kind = MemmapGram if isinstance(stack, np.memmap) else DenseGram
        owned = {} if kind is MemmapGram else {"owned": True}
        self.gram = kind(stack, AffineForm(self._scale), n_threads=self._team.n_threads, **owned)
        self.repair(indefinite)

    def _store(self, k: int) -> bool:
        """Compute, check, normalise and store one kernel; return whether no negative eigenvalue was found."""
        n, definite = self._stack.shape[1], True
        if self.known_psd[k]:
            K = np.empty((n, n))
            product = self._tiles([k], [K])[0]
        else:
            K = self.bank.raw(k, self.X)
            definite = not examine([K], [self.names[k]], self.psd, self._team.n_threads)[1][0]
            product = K @ self._p
        self._learn(k, K.__matmul__, product)
        self._stack[k] = self.normalizers[k].train_block(K)
        return definite

    def _tiles(self, kernels: Sequence[int], targets: list[np.ndarray]) -> np.ndarray:
        """Compute raw kernels; return their products with the weights of the samples."""
        return compute_tiles(self.bank, self.X, kernels, self._p, self._team, targets)

    def _learn(self, k: int, matvec, product: np.ndarray) -> None:
        self.normalizers[k] = learn_normalizer(self.bank.steps, self._diag[k], matvec, self.weight, self.names[k])
        flat = no_variance(self._diag[[k]], product[None], self._p)[0]
        self.constant[k] = flat or self.normalizers[k].degenerate

    def _keep_nothing(self, dtype: np.dtype, budget: float) -> None:
        """Make a Gram that computes rows when they are asked for."""
        divided = np.flatnonzero(self._divided())
        products = compute_tiles(self.bank, self.X, divided, self._p, self._team, dtype=dtype)
        for k, product in zip(divided, products, strict=True):
            self._learn(k, lambda v, product=product: product, product)
        for k in np.setdiff1d(np.arange(len(self.names)), divided):
            if not self.known_psd[k]:
                self.bank.raw(k, take_rows(self.X, slice(0, _SAMPLE)))
            self.normalizers[k] = self.bank.normalizer(k, self.X, self.weight)
            self.constant[k] = self.normalizers[k].degenerate
        diag = np.array([each.train_diag(d) for each, d in zip(self.normalizers, self._diag, strict=True)])
        self.gram = LazyGram(
            self._rows, diag, dtype=dtype, budget=budget, n_threads=self._team.n_threads,
            products=self._products, blocks=self._blocks,
        )  # fmt: skip
        self._probe_rows(diag)

    def _rows(self, kernels: np.ndarray, idx: np.ndarray):
        """Yield the normalised rows of kernels, as `LazyGram` takes them."""
        for k, K in self.bank.raw_each(take_rows(self.X, idx), self.X, kernels.tolist(), self.gram.dtype):
            yield k, self._normalised(k, K, idx)

    def _normalised(self, k: int, K: np.ndarray, rows: np.ndarray, cols: np.ndarray | None = None) -> np.ndarray:
        """Return raw values as normalised ones, in their place where a factor is all there is to it."""
        normalizer = self.normalizers[k]
        if normalizer.u is None and normalizer.A is None:
            K *= normalizer.scale
            return K
        return normalizer.train_block(K, rows, cols)

    def _products(self, kernels: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the products of normalised kernels with a vector, tile by tile."""
        form, extra = affine_form([self.normalizers[k] for k in kernels]), (1,) * (v.ndim - 1)
        out = compute_tiles(self.bank, self.X, kernels, v, self._team, None, self.gram.dtype, form.u)
        if form.u is not None:
            out *= form.u.reshape(*form.u.shape, *extra)
        out *= form.scale.reshape(-1, 1, *extra)
        if form.A is not None and form.B is not None:
            for k, (A, B) in enumerate(zip(form.A, form.B, strict=True)):
                out[k] -= A @ (B.T @ v) + B @ (A.T @ v)
        return out

    def _blocks(self, idx: np.ndarray, out: np.ndarray) -> None:
        """Write every normalised kernel between some of the samples."""
        compute_tiles(self.bank, take_rows(self.X, idx), range(len(out)), np.zeros(len(idx)), self._team, list(out))
        for k in range(len(out)):
            out[k] = self._normalised(k, out[k], idx, idx)

    def _probe_rows(self, diag: np.ndarray) -> None:
        suspects = np.flatnonzero(~self.known_psd)
        if not len(suspects):
            return

        def product(j: int, V: np.ndarray) -> np.ndarray:
            return self.gram.apply(V, suspects[[j]])[0]

        found = probe_definiteness(product, diagonal=diag[suspects], n_threads=1)
        if found.indefinite.any():
            if self.psd != "error":
                raise refuse_repair(self.psd)
            which = np.zeros(len(self.names), bool)
            which[suspects[found.indefinite]] = True
            first = int(np.argmax(found.indefinite))
            raise indefinite_error(self.names, which, found.smallest[first] / found.largest[first])

    def _replace(self, kernel, matrix):
        if self.gram.kind == "lazy":
            raise refuse_repair(self.psd)
        self._stack[kernel] = matrix
        self._scale[kernel] = 1.0

    def _expansion(self, terms, offset, active, kept):
        return ComputedExpansion(terms, offset, self.bank.take(active), alone(take_rows(self.X, kept)))
