"""Kernels of a fit on its training samples: read from a stack, or computed: in memory, on disk, or row by row.

Without centring and unit diagonals a normalised kernel is a multiple of the raw one: raw values are stored,
tile by tile and once each, and the factor is applied when they are read. Otherwise each kernel is normalised in
float64 before it is stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from multikernel.gram.base import Gram
from multikernel.gram.dense import AffineForm, DenseGram
from multikernel.gram.lazy import LazyGram
from multikernel.gram.memmap import MemmapGram, memmap_stack
from multikernel.gram.names import listed
from multikernel.gram.slices import gather, gather_with_product
from multikernel.gram.soundness import examine
from multikernel.gram.stack import KernelStack
from multikernel.gram.storage import TorchStorage, choose_storage, row_budget, storage_dtype
from multikernel.kernels.bank import KernelBank, compute_tiles, take_rows
from multikernel.kernels.fitted_normalizer import FittedNormalizer
from multikernel.kernels.inputs import alone, is_frame, is_numeric
from multikernel.kernels.normalize import learn_normalizer
from multikernel.kernels.table import as_samples
from multikernel.threads import ROWS, Team, interruptible
from multikernel.training.core import Prepared, Settings, Source
from multikernel.training.expansion import ComputedExpansion
from multikernel.training.featured import DIVIDING, prepare_features, takes_features
from multikernel.training.repair import affine_form, no_variance, repaired, require_definite
from multikernel.training.stacked import prepare_stack

# samples from which on "auto" takes features where all kernels have them: below it a stored Gram is faster
LARGE = 20_000


@dataclass(frozen=True)
class Shared:
    """What the folds of a search know beforehand.

    Attributes
    ----------
    stack : ndarray of shape (p, N, N) or None
        Raw values of some kernels between all N samples.
    places : mapping from (name, columns) to int
        Where each of these kernels is in the stack.
    rows : ndarray of int or None
        The training samples among all; None for all of them.
    sound : bool
        Whether a precomputed stack was examined as a whole, and no kernel is indefinite.
    """

    stack: np.ndarray | None = None
    places: Mapping[tuple, int] = field(default_factory=dict)
    rows: np.ndarray | None = None
    sound: bool = False

    def known(self, bank: KernelBank) -> dict[int, np.ndarray]:
        """Return the matrices of the kernels of a bank that are known."""
        assert self.stack is not None
        keys = enumerate(zip(bank.names, bank.columns, strict=True))
        return {k: self.stack[self.places[key]] for k, key in keys if key in self.places}


@dataclass(frozen=True)
class BankSource(Source):
    """Kernels of a bank between other samples and the training samples.

    Attributes
    ----------
    bank : KernelBank
        Fitted kernels.
    samples : array, sparse matrix, table or sequences
        The training samples.
    known : mapping from int to ndarray (N, N)
        Raw values of some kernels between all samples of a search.
    rows : ndarray of int
        The training samples among these.
    """

    bank: KernelBank
    samples: Any
    known: Mapping[int, np.ndarray]
    rows: np.ndarray

    def expansion(self, terms, offset, active, kept):
        bank = replace(
            self.bank,
            names=[self.bank.names[k] for k in active],
            kernels=[self.bank.kernels[k] for k in active],
            columns=[self.bank.columns[k] for k in active],
        )
        plain = isinstance(self.samples, np.ndarray)
        samples = self.samples[kept] if plain else alone(take_rows(self.samples, kept))
        return ComputedExpansion(terms, offset, active, kept, bank, samples)

    def blocks(self, X, kernels, diag, at=None):
        known = {} if at is None else self.known
        for k in kernels:
            if k in known:
                yield k, gather(known[k], at, self.rows), known[k][at, at].astype(np.float64) if diag else None
        others = [k for k in kernels if k not in known]
        for k, K in self.bank.raw_each(X, self.samples, others) if others else ():
            yield k, K, self.bank.raw_diag(k, X) if diag else None


def prepare(
    kernels: Any, X: Any, weight: np.ndarray | None, settings: Settings, shared: Shared | None = None
) -> Prepared:
    """Fit the kernels and evaluate them on the training samples.

    Parameters
    ----------
    kernels : "rbf", kernel or list
        What the user wrote; not read where X is a stack.
    X : samples or KernelStack
        Valid training samples.
    weight : ndarray of shape (n,) or None
        Positive sample weights.
    settings : Settings
        Normalisation, repairs, storage, memory, threads.
    shared : Shared, optional
        What the folds of a search know beforehand.
    """
    if weight is not None and np.all(weight == weight[0]):
        weight = None
    shared = Shared() if shared is None else shared
    with interruptible():
        if settings.gram == "torch" or isinstance(settings.gram, TorchStorage) or hasattr(X, "train_tensors"):
            prepared = _prepare_on_device(kernels, X, weight, settings)
        elif settings.gram == "dask" or hasattr(X, "row_blocks") or hasattr(X, "delayed"):
            prepared = _prepare_on_workers(kernels, X, weight, settings)
        elif isinstance(X, KernelStack):
            prepared = prepare_stack(X, weight, settings, shared.sound)
        else:
            prepared = _prepare_computed(kernels, X, weight, settings, shared)
    gram = prepared.gram
    if gram.kind in ("dense", "memmap") and gram.dtype != np.float64:
        # what is left for a combined kernel in double precision; the free memory is less by what is stored already
        stored = gram.nbytes if gram.kind == "dense" and settings.memory_limit is not None else 0
        gram.budget = row_budget(gram.n_samples, gram.dtype.itemsize, settings.memory_limit) - stored
    if prepared.constant.any():
        warn_constant(prepared.names, prepared.constant)
    return prepared


def _prepare_on_device(kernels: Any, X: Any, weight: np.ndarray | None, settings: Settings) -> Prepared:
    """Return the kernels on a device of PyTorch, which is not imported before."""
    from multikernel.training.on_torch import prepare_on_device, prepare_tensors

    if isinstance(X, KernelStack):
        return prepare_tensors(X, weight, settings)
    return prepare_on_device(KernelBank.fit(kernels, X, weight, settings.normalize), as_numbers(X), weight, settings)


def _prepare_on_workers(kernels: Any, X: Any, weight: np.ndarray | None, settings: Settings) -> Prepared:
    """Return the kernels with the workers of a Dask cluster, which is imported here and nowhere else."""
    if hasattr(X, "delayed"):
        from multikernel.training.on_partitions import prepare_partitions

        return prepare_partitions(kernels, X, weight, settings)
    from multikernel.training.on_dask import prepare_arrays, prepare_on_workers

    if isinstance(X, KernelStack):
        return prepare_arrays(X, weight, settings)
    return prepare_on_workers(KernelBank.fit(kernels, X, weight, settings.normalize), as_numbers(X), weight, settings)


def warn_constant(names: Sequence[str], constant: np.ndarray) -> None:
    """Warn of kernels that cannot tell samples apart."""
    found = [name for name, flat in zip(names, constant, strict=True) if flat]
    if not found:
        return
    one = len(found) == 1
    warnings.warn(
        f"The kernel{'' if one else 's'} {listed(found)} {'is' if one else 'are'} constant on the training samples, so "
        f"that nothing can be learned from {'it' if one else 'them'}.",
        UserWarning,
        stacklevel=4,
    )


def _prepare_computed(kernels: Any, X: Any, weight: np.ndarray | None, settings: Settings, shared: Shared) -> Prepared:
    """Return the kernels that the user wrote, by their features, a few rows at a time, or stored as a whole."""
    bank = KernelBank.fit(kernels, X, weight, settings.normalize)
    samples = as_numbers(X)
    n, p = samples.shape[0] if hasattr(samples, "shape") else len(samples), len(bank.names)
    by_features = settings.gram == "features" or (settings.gram == "auto" and n >= LARGE)
    if by_features and takes_features(bank, settings):
        return prepare_features(bank, samples, weight, settings)
    diag = bank.raw_diags(samples)
    dtype = storage_dtype(p, n, diag.max(axis=1))
    kind = choose_storage(p, n, dtype.itemsize, settings.memory_limit, settings.gram)
    known = shared.known(bank) if kind == "dense" and shared.stack is not None else {}
    source = BankSource(bank, samples, known, np.arange(n) if shared.rows is None else shared.rows)
    share, team = np.full(n, 1.0 / n) if weight is None else weight / weight.sum(), Team(settings.n_threads)
    known_psd = np.array([kernel.positive_semidefinite for kernel in bank.kernels], bool)
    # kernels that are stored as they are, their normalisation a factor, and need no check
    plain = known_psd & DIVIDING.issuperset(bank.steps)
    if kind == "lazy":
        return _prepare_rows(source, diag, known_psd, plain, share, weight, settings, dtype)
    if known:
        stack, products = _gather_known(source, shared, plain, share, team, dtype)
    else:
        stack = np.empty((p, n, n), dtype) if kind == "dense" else memmap_stack(p, n, dtype)
        products = np.zeros((p, n))
    others = [int(k) for k in np.flatnonzero(plain) if k not in source.known]
    products[others] = compute_tiles(bank, samples, others, share, team, [stack[k] for k in others])
    normalizers: list[FittedNormalizer] = []
    indefinite = []
    for k, name in enumerate(bank.names):
        if plain[k]:
            normalizers.append(learn_normalizer(bank.steps, diag[k], None, weight, name, product=products[k]))
            continue
        K, definite = _checked_matrix(source, k, settings, bool(known_psd[k]))
        products[k] = K @ share
        normalizers.append(learn_normalizer(bank.steps, diag[k], K.__matmul__, weight, name))
        stack[k] = normalizers[k].train_block(K)
        if not definite:
            indefinite.append(k)
    form = AffineForm(np.array([each.scale if own else 1.0 for each, own in zip(normalizers, plain, strict=True)]))
    gram: Gram
    if kind == "memmap":
        gram = MemmapGram(stack, form, n_threads=settings.n_threads)
    else:
        gram = DenseGram(stack, form, n_threads=settings.n_threads, owned=True)
    constant = no_variance(diag, products, share) | [each.degenerate for each in normalizers]
    prepared = Prepared(gram, tuple(bank.names), tuple(normalizers), weight, source, constant, known_psd)
    return repaired(prepared, indefinite, settings) if indefinite else prepared


def as_numbers(X: Any) -> Any:
    """Return a data frame of numbers as an array, one of texts as well as a table, anything else as it is."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        return X
    return np.ascontiguousarray(X, dtype=np.float64) if is_frame(X) and is_numeric(X) else as_samples(X)


def _gather_known(
    source: BankSource, shared: Shared, plain: np.ndarray, share: np.ndarray, team: Team, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Return memory for all kernels, those that are known written into it, and the products of these with ``share``.

    Where all kernels are known between these very samples, they are read where they lie.
    """
    n, p = len(share), len(plain)
    all_known = list(source.known) == list(shared.places.values()) == list(range(p))
    if shared.stack is not None and shared.rows is None and plain.all() and all_known:
        return shared.stack, np.array([K @ share for K in shared.stack])
    stack, products = np.empty((p, n, n), dtype), np.zeros((p, n))
    known = [k for k in source.known if plain[k]]

    def some(first: int, last: int) -> None:
        for k in known[first:last]:
            products[k] = gather_with_product(source.known[k], source.rows, share, stack[k])

    team.run([partial(some, *span) for span in team.split(len(known))])
    return stack, products


def _checked_matrix(source: BankSource, k: int, settings: Settings, known_psd: bool) -> tuple[np.ndarray, bool]:
    """Return one raw kernel as a whole, in float64, and whether no negative eigenvalue was found."""
    rows, bank, n_threads = source.rows, source.bank, settings.n_threads
    if k in source.known:
        K = gather(source.known[k], rows, rows)
    elif known_psd:
        K = np.empty((len(rows), len(rows)))
        compute_tiles(bank, source.samples, [k], np.zeros(len(rows)), Team(n_threads), [K])
    else:
        K = bank.raw(k, source.samples)
    if known_psd:
        return K, True
    return K, not examine([K], [bank.names[k]], settings.psd, n_threads)[1][0]


def _prepare_rows(
    source: BankSource,
    diag: np.ndarray,
    known_psd: np.ndarray,
    plain: np.ndarray,
    share: np.ndarray,
    weight: np.ndarray | None,
    settings: Settings,
    dtype: np.dtype,
) -> Prepared:
    """Return kernels of which no more than some rows are ever kept."""
    bank, X, team = source.bank, source.samples, Team(settings.n_threads)
    products = compute_tiles(bank, X, np.flatnonzero(plain).tolist(), share, team, dtype=dtype)
    constant = np.zeros(len(plain), bool)
    constant[plain] = no_variance(diag[plain], products, share)
    left = iter(products)
    normalizers = []
    for k, name in enumerate(bank.names):
        if plain[k]:
            normalizers.append(learn_normalizer(bank.steps, diag[k], None, weight, name, product=next(left)))
            continue
        if not known_psd[k]:
            bank.raw(k, take_rows(X, slice(0, ROWS)))
        normalizers.append(bank.normalizer(k, X, weight))
    constant |= [each.degenerate for each in normalizers]
    values = LazyValues(bank, X, tuple(normalizers), team, dtype)
    own = np.array([each.train_diag(d) for each, d in zip(normalizers, diag, strict=True)])
    gram = LazyGram(
        values.rows, own, dtype=dtype, budget=row_budget(len(share), dtype.itemsize, settings.memory_limit),
        n_threads=settings.n_threads, products=values.products, blocks=values.blocks,
    )  # fmt: skip
    require_definite(gram, bank.names, known_psd, settings.psd)
    return Prepared(gram, tuple(bank.names), tuple(normalizers), weight, source, constant, known_psd)


@dataclass(frozen=True)
class LazyValues:
    """Normalised kernel values of a bank between training samples, computed when they are asked for."""

    bank: KernelBank
    samples: Any
    normalizers: tuple[FittedNormalizer, ...]
    team: Team
    dtype: np.dtype

    def rows(self, kernels: np.ndarray, idx: np.ndarray):
        """Yield the rows of kernels, as `LazyGram` takes them."""
        for k, K in self.bank.raw_each(take_rows(self.samples, idx), self.samples, kernels.tolist(), self.dtype):
            yield k, self._normalised(k, K, idx)

    def products(self, kernels: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the products of kernels with a vector, tile by tile."""
        form, extra = affine_form([self.normalizers[k] for k in kernels]), (1,) * (v.ndim - 1)
        out = compute_tiles(self.bank, self.samples, kernels.tolist(), v, self.team, None, self.dtype, form.u)
        if form.u is not None:
            out *= form.u.reshape(*form.u.shape, *extra)
        out *= form.scale.reshape(-1, 1, *extra)
        if form.A is not None and form.B is not None:
            for k, (A, B) in enumerate(zip(form.A, form.B, strict=True)):
                out[k] -= A @ (B.T @ v) + B @ (A.T @ v)
        return out

    def blocks(self, idx: np.ndarray, out: np.ndarray) -> None:
        """Write every kernel between some of the samples."""
        nothing = np.zeros(len(idx))
        compute_tiles(self.bank, take_rows(self.samples, idx), range(len(out)), nothing, self.team, list(out))
        for k in range(len(out)):
            out[k] = self._normalised(k, out[k], idx, idx)

    def _normalised(self, k: int, K: np.ndarray, rows: np.ndarray, cols: np.ndarray | None = None) -> np.ndarray:
        """Return raw values as normalised ones, in their place where a factor is all there is to it."""
        normalizer = self.normalizers[k]
        if normalizer.u is None and normalizer.A is None:
            K *= normalizer.scale
            return K
        return normalizer.train_block(K, rows, cols)
