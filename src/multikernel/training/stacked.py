"""Kernels that the caller computed: a stack, read where it lies.

All checks together read the stack at most four times: the inspection once, the search for negative
eigenvalues once, weighted statistics once for each step of the normalisation that needs them. Scaling, unit
diagonals and centring are affine views; only a kernel that is repaired, and a stack of scattered rows, are
copied.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from multikernel.gram.base import Gram
from multikernel.gram.dense import DenseGram
from multikernel.gram.inspect import Inspection
from multikernel.gram.lazy import LazyGram
from multikernel.gram.memmap import MemmapGram, memmap_stack
from multikernel.gram.slices import (
    Sums,
    _loops_apply,
    compose,
    gather,
    gather_with_dots,
    read_only,
    shorten,
    take_block,
)
from multikernel.gram.soundness import examine
from multikernel.gram.stack import KernelStack
from multikernel.gram.storage import choose_storage, row_budget
from multikernel.gram.subset import SubsetGram
from multikernel.kernels.fitted_normalizer import FittedNormalizer
from multikernel.kernels.normalize import learn_normalizer
from multikernel.threads import Team
from multikernel.training.core import TrainingKernels, affine_form, no_variance, refuse_repair
from multikernel.training.expansion import StackedExpansion


class StackedKernels(TrainingKernels):
    """Kernels of a stack on its own rows.

    Parameters
    ----------
    stack : KernelStack
        Square, or rows of a square one.
    weight : ndarray of shape (n,) or None
        Non-negative sample weights, None for equal ones; samples of weight zero do not take part.
    normalize : None, str or list of str
        Steps of the normalisation.
    psd : str
        What to do about indefinite kernels.
    gram : str
        Storage asked for.
    memory_limit : float, str or None
        Memory that may be used beside the stack.
    n_threads : int
        Threads.
    """

    def __init__(
        self,
        stack: KernelStack,
        weight: np.ndarray | None,
        normalize: str | list[str] | None,
        *,
        psd: str = "error",
        gram: str = "auto",
        memory_limit: float | str | None = None,
        n_threads: int = 1,
    ) -> None:
        super().__init__()
        n, _, p = stack.shape
        self.stack, self.weight, self.psd = stack, weight, psd
        self.names = stack.names
        self._steps, self._n_threads = normalize, n_threads
        self._kept = None if weight is None or weight.all() else np.flatnonzero(weight)
        self.known_psd = np.zeros(p, bool)
        self.constant = np.zeros(p, bool)
        self.normalizers = [FittedNormalizer((), n)] * p
        in_place = _in_place(stack)
        kind = choose_storage(p, n, stack.dtype.itemsize, memory_limit, gram, stored=in_place)
        if kind == "lazy":
            whole = self._by_rows(row_budget(n, stack.dtype.itemsize, memory_limit))
        else:
            whole = self._as_matrices(kind, in_place)
        self.gram = whole if self._kept is None else SubsetGram(whole, self._kept)
        self.repair(np.flatnonzero(self._indefinite))

    def _as_matrices(self, kind: str, in_place: bool) -> Gram:
        """Make a Gram of the matrices, with their normalisations as affine forms."""
        matrices, found = self._examined(kind, in_place)
        raw = DenseGram(matrices, n_threads=self._n_threads)
        for k in range(len(self.names)):
            self._learn(k, found, k, lambda v, k=k: raw.apply(v, np.array([k]))[0])
        self._matrices, self._forms = matrices, list(self.normalizers)
        self._kind, self._owned = kind, not in_place
        return self._joined()

    def _examined(self, kind: str, in_place: bool) -> tuple[Any, Inspection]:
        """Take the matrices where they lie, or gather them, and examine them."""
        matrices = _readable(self.stack) if in_place else self.stack.train_stack()
        if kind == "memmap":
            file = memmap_stack(len(matrices), len(self.stack), self.stack.dtype)
            for k, K in enumerate(matrices):
                file[k] = K
            matrices = file
        found, self._indefinite = examine(matrices, self.names, self.psd, self._n_threads)
        return matrices, found

    def _joined(self) -> Gram:
        """Return the matrices and their affine forms as one Gram."""
        form = affine_form(self._forms)
        if self._kind == "memmap":
            return MemmapGram(self._matrices, form, n_threads=self._n_threads)
        return DenseGram(self._matrices, form, n_threads=self._n_threads, owned=self._owned)

    def _by_rows(self, budget: float) -> Gram:
        """Read rows when they are asked for; the checks take one kernel at a time."""
        self._indefinite = np.zeros(len(self.names), bool)
        diag = np.empty((len(self.names), len(self.stack)))
        for k, name in enumerate(self.names):
            K = self.stack.take_kernels([k]).train_kernels()[0]
            found, self._indefinite[[k]] = examine([K], [name], self.psd, self._n_threads)
            if self._indefinite[k]:
                raise refuse_repair(self.psd)
            self._learn(k, found, 0, lambda v, K=K: K.astype(np.float64) @ v)
            diag[k] = self.normalizers[k].train_diag(found.diagonal[0])
        return LazyGram(self._rows, diag, dtype=self.stack.dtype, budget=budget, n_threads=self._n_threads)

    def _rows(self, kernels: np.ndarray, idx: np.ndarray):
        part, ids = self.stack[idx], self.stack.row_ids
        for k in kernels:
            yield k, self.normalizers[k].train_block(part.kernel_rows(int(k), ids), idx)

    def _learn(self, k: int, found: Inspection, at: int, matvec) -> None:
        """Learn the normalisation of kernel k, number ``at`` of what was inspected."""
        diag, sums = found.diagonal[at], found.row_sums[at]
        self.normalizers[k] = learn_normalizer(self._steps, diag, matvec, self.weight, self.names[k], row_sums=sums)
        n = len(diag)
        flat = no_variance(diag[None], sums[None] / n, np.full(n, 1.0 / n))[0]
        self.constant[k] = found.constant[at] or flat or self.normalizers[k].degenerate

    def _replace(self, kernel, matrix):
        if self.gram.kind == "lazy":
            raise refuse_repair(self.psd)
        if self._kept is not None:
            matrix = self._spread(matrix)
        if self._kind != "memmap":
            self._matrices = [*self._matrices]
        self._matrices[kernel] = matrix.astype(self.stack.dtype)
        self._forms[kernel] = FittedNormalizer((), len(self.stack))
        whole = self._joined()
        self.gram = whole if self._kept is None else SubsetGram(whole, self._kept)

    def _spread(self, matrix: np.ndarray) -> np.ndarray:
        """Return a matrix of the samples that take part as one of all samples, zero elsewhere."""
        whole = np.zeros((len(self.stack), len(self.stack)), matrix.dtype)
        whole[np.ix_(self._kept, self._kept)] = matrix
        return whole

    def places(self, idx):
        return idx if self._kept is None else self._kept[idx]

    def whole(self, matrix):
        return matrix if self._kept is None else self._spread(matrix)

    def expansion(self, weights, coef, intercepts, balanced):
        """Return what evaluates the model on the rows of another stack."""
        if self._kept is not None:
            spread = np.zeros((*coef.shape[:-2], len(self.stack), coef.shape[-1]))
            spread[..., self._kept, :] = coef
            coef = spread
            self.projectors = {k: self._spread(P) for k, P in self.projectors.items()}
        return super().expansion(weights, coef, intercepts, balanced)

    def _expansion(self, terms, offset, active, kept):
        stack = self.stack
        return StackedExpansion(terms, offset, active, stack.shape[2], stack.row_ids, stack.n_ids, kept)


def _in_place(stack: KernelStack) -> bool:
    """Whether the kernels between the rows of a stack lie in the caller's memory as they are."""
    rows = stack.row_ids
    if not np.isin(rows, stack.col_ids).all():
        return False
    return bool(np.all(np.diff(rows) == 1) and np.all(np.diff(stack.positions(rows)) == 1))


def _readable(stack: KernelStack) -> np.ndarray | list[np.ndarray]:
    """Return the caller's matrices with contiguous rows: a symmetric matrix may be read by its columns."""
    kernels = stack.train_kernels()
    if isinstance(stack._data, np.ndarray) and stack._data.dtype == stack.dtype:
        whole = stack.train_stack()
        return whole if whole.strides[2] == whole.itemsize else whole.transpose(0, 2, 1)
    return [K if K.strides[1] == K.itemsize else K.T for K in kernels]


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
            if _loops_apply(K):
                gather_with_dots(read_only(K), rows, cols, ones, out[k], sums[k])
            else:
                take_block(K, rows, cols, out.dtype, out[k])
                sums[k] = out[k].sum(axis=1, dtype=np.float64)

    team.run(partial(some, *span) for span in team.split(p))
    return Sums(np.array([np.diagonal(K) for K in out], np.float64), sums, np.zeros(p, bool))


def gather_rows(stack: KernelStack, kernel: int, train_ids: np.ndarray) -> np.ndarray:
    """Return the block of one kernel whose columns are the samples ``train_ids``, a new float64 array."""
    cols = compose(stack._cols, shorten(stack.positions(train_ids), stack.shape[1]))
    n_rows, n_columns = stack._data[kernel].shape
    rows = np.arange(n_rows) if stack._rows is None else stack._rows
    return gather(stack._data[kernel], rows, np.arange(n_columns) if cols is None else cols)
