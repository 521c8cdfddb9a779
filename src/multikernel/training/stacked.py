"""Kernels that the caller computed: a stack, read where it lies.

All checks together read the stack at most four times: the inspection once, the search for negative
eigenvalues once, weighted statistics once for each step of the normalisation that needs them. Scaling, unit
diagonals and centring are affine views; only a kernel that is repaired, and a stack of scattered rows, are
copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from multikernel.gram.base import Gram
from multikernel.gram.dense import DenseGram
from multikernel.gram.dense_loops import read_only
from multikernel.gram.inspect import Inspection
from multikernel.gram.lazy import LazyGram
from multikernel.gram.memmap import MemmapGram, memmap_stack
from multikernel.gram.slices import (
    Sums,
    compose,
    gather,
    gather_with_dots,
    shorten,
    take_block,
)
from multikernel.gram.soundness import examine
from multikernel.gram.stack import KernelStack
from multikernel.gram.storage import choose_storage, row_budget
from multikernel.kernels.fitted_normalizer import FittedNormalizer
from multikernel.kernels.normalize import learn_normalizer
from multikernel.threads import Team
from multikernel.training.core import Prepared, Settings, Source
from multikernel.training.expansion import StackedExpansion, require_finite, stack_diag
from multikernel.training.repair import affine_form, no_variance, refuse_repair, repaired


@dataclass(frozen=True)
class StackSource(Source):
    """Kernels of a stack on its own rows; other samples come as the rows of another stack."""

    stack: KernelStack
    sound: bool

    def expansion(self, terms, offset, active, kept):
        stack = self.stack
        return StackedExpansion(terms, offset, active, kept, tuple(stack.names), stack.row_ids, stack.n_ids)

    def blocks(self, X, kernels, diag, at=None):
        every = stack_diag(X) if diag else None
        for k in kernels:
            K = gather_rows(X, k, self.stack.row_ids)
            if not self.sound:
                require_finite(K, self.stack.names[k])
            yield k, K, None if every is None else every[k]


def prepare_stack(stack: KernelStack, weight: np.ndarray | None, settings: Settings, sound: bool = False) -> Prepared:
    """Return the kernels of a stack on its own rows.

    Parameters
    ----------
    stack : KernelStack
        Square, or rows of a square one.
    weight : ndarray of shape (n,) or None
        Positive sample weights, None for equal ones.
    settings : Settings
        Normalisation, storage, threads.
    sound : bool
        Whether the stack is known to be finite and symmetric, and without negative eigenvalues.
    """
    n, _, p = stack.shape
    in_place = _in_place(stack)
    kind = choose_storage(p, n, stack.dtype.itemsize, settings.memory_limit, settings.gram, stored=in_place)
    source = StackSource(stack, sound)
    if kind == "lazy":
        return _prepare_rows(source, weight, settings)
    if sound and not in_place and kind == "dense":
        matrices: Any = np.empty((p, n, n), stack.dtype)
        found: Any = gather_square(stack, Team(settings.n_threads), matrices)
        indefinite = np.zeros(p, bool)
    else:
        matrices = _matrices(stack, kind, in_place)
        found, indefinite = examine(matrices, stack.names, settings.psd, settings.n_threads)
    raw = DenseGram(matrices, n_threads=settings.n_threads)
    normalizers = [
        _learn(stack, found, k, k, lambda v, k=k: raw.apply(v, np.array([k]))[0], weight, settings) for k in range(p)
    ]
    constant = _are_constant(found, normalizers)
    form = affine_form(normalizers)
    gram: Gram
    if kind == "memmap":
        gram = MemmapGram(matrices, form, n_threads=settings.n_threads)
    else:
        gram = DenseGram(matrices, form, n_threads=settings.n_threads, owned=not in_place)
    names = tuple(stack.names)
    prepared = Prepared(gram, names, tuple(normalizers), weight, source, constant, np.zeros(p, bool))
    return repaired(prepared, np.flatnonzero(indefinite), settings) if indefinite.any() else prepared


def _matrices(stack: KernelStack, kind: str, in_place: bool) -> Any:
    """Return the matrices where they lie, or gathered, in memory or in a file."""
    matrices = _readable(stack) if in_place else stack.train_stack()
    if kind != "memmap":
        return matrices
    file = memmap_stack(len(matrices), len(stack), stack.dtype)
    for k, K in enumerate(matrices):
        file[k] = K
    return file


def _learn(stack, found, k: int, at: int, matvec, weight, settings: Settings) -> FittedNormalizer:
    """Learn the normalisation of kernel k, number ``at`` of what was inspected."""
    diag, product = found.diagonal[at], found.row_sums[at] / len(stack) if weight is None else None
    return learn_normalizer(settings.normalize, diag, matvec, weight, stack.names[k], product=product)


def _are_constant(found: Inspection | Sums, normalizers: list[FittedNormalizer]) -> np.ndarray:
    """Return which of the kernels that were inspected cannot tell samples apart, bool (p,)."""
    n = found.diagonal.shape[1]
    flat = no_variance(found.diagonal, found.row_sums / n, np.full(n, 1.0 / n))
    return found.constant | flat | [each.degenerate for each in normalizers]


def _prepare_rows(source: StackSource, weight: np.ndarray | None, settings: Settings) -> Prepared:
    """Return kernels whose rows are read when they are asked for; the checks take one kernel at a time."""
    stack = source.stack
    names, diag = tuple(stack.names), np.empty((len(stack.names), len(stack)))
    normalizers: list[FittedNormalizer] = []
    constant = np.zeros(len(names), bool)
    for k, name in enumerate(names):
        K = stack.take_kernels([k]).train_kernels()[0]
        found, indefinite = examine([K], [name], settings.psd, settings.n_threads, "lazy")
        if indefinite[0]:
            raise refuse_repair(settings.psd, "lazy")
        normalizers.append(_learn(stack, found, k, 0, lambda v, K=K: K.astype(np.float64) @ v, weight, settings))
        constant[k] = _are_constant(found, normalizers[k:])[0]
        diag[k] = normalizers[k].train_diag(found.diagonal[0])

    def rows(kernels: np.ndarray, idx: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        part, ids = stack[idx], stack.row_ids
        for k in kernels:
            yield k, normalizers[k].train_block(part.kernel_rows(int(k), ids), idx)

    budget = row_budget(len(stack), stack.dtype.itemsize, settings.memory_limit)
    gram = LazyGram(rows, diag, dtype=stack.dtype, budget=budget, n_threads=settings.n_threads)
    return Prepared(gram, names, tuple(normalizers), weight, source, constant, np.zeros(len(names), bool))


def _in_place(stack: KernelStack) -> bool:
    """Whether the kernels between the rows of a stack lie in the caller's memory as they are."""
    rows = stack.row_ids
    if not np.isin(rows, stack.col_ids).all():
        return False
    return bool(np.all(np.diff(rows) == 1) and np.all(np.diff(stack.positions(rows)) == 1))


def _readable(stack: KernelStack) -> np.ndarray | list[np.ndarray]:
    """Return the caller's matrices with contiguous rows: a symmetric matrix may be read by its columns."""
    if isinstance(stack._data, np.ndarray) and stack._data.dtype == stack.dtype:
        whole = stack.train_stack()
        return whole if whole.strides[2] == whole.itemsize else whole.transpose(0, 2, 1)
    return [K if K.strides[1] == K.itemsize else K.T for K in stack.train_kernels()]


def gather_square(stack: KernelStack, team: Team, out: np.ndarray) -> Sums:
    """Return the sums of the kernels between the rows of a stack.

    Parameters
    ----------
    stack : KernelStack
        Rows of a square stack.
    team : Team
        Threads, a share of the kernels each.
    out : ndarray of shape (p, n, n)
        Set to the kernels.
    """
    rows, cols, (n, _, p) = stack._rows, stack._train_columns(), stack.shape
    rows = np.arange(n) if rows is None else rows
    cols = np.arange(n) if cols is None else cols
    sums, ones = np.empty((p, n)), np.ones(n)

    def some(first: int, last: int) -> None:
        for k in range(first, last):
            K = stack._data[k]
            if K.dtype in (np.float32, np.float64):
                gather_with_dots(read_only(K), rows, cols, ones, out[k], sums[k])
            else:
                take_block(K, rows, cols, out.dtype, out[k])
                sums[k] = out[k].sum(axis=1, dtype=np.float64)

    team.run(partial(some, *span) for span in team.split(p))
    return Sums(np.array([np.diagonal(K) for K in out], np.float64), sums, np.zeros(p, bool))


def gather_rows(stack: KernelStack, kernel: int, train_ids: np.ndarray) -> np.ndarray:
    """Return the block of one kernel whose columns are the samples ``train_ids``, a new float64 array."""
    if type(stack) is not KernelStack:
        # kernels that are not in memory
        return stack.kernel_rows(kernel, train_ids).astype(np.float64)
    cols = compose(stack._cols, shorten(stack.positions(train_ids), stack.shape[1]))
    n_rows, n_columns = stack._data[kernel].shape
    rows = np.arange(n_rows) if stack._rows is None else stack._rows
    return gather(stack._data[kernel], rows, np.arange(n_columns) if cols is None else cols)
