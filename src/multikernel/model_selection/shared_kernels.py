"""The kernels of one fold: sliced where they are known, learned on the training samples where they are not.

Raw values of a kernel without learned parameters are the same in every fold: those of a stack lie in the caller's
memory, those of fixed kernels are computed once on all samples, and a fold takes its rows and columns. Widths and
normalisations are learned on the training samples of the fold, once for the whole grid. Test rows of a kernel are
evaluated once for all models of the fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from multikernel.gram.slices import gather, gather_with_product
from multikernel.gram.stack import KernelStack
from multikernel.gram.storage import storage_dtype
from multikernel.kernels.bank import KernelBank, take_rows
from multikernel.kernels.base import as_kernel
from multikernel.kernels.fitted_normalizer import FittedNormalizer
from multikernel.kernels.spec import expand_entries
from multikernel.threads import Team
from multikernel.training.computed import ComputedKernels, compute_tiles
from multikernel.training.expansion import ComputedExpansion, Expansion, Term, _check_rows, _stack_diag
from multikernel.training.stacked import StackedKernels, gather_rows, gather_square

# bytes of one kernel's test rows at a time
_BLOCK_BYTES = 64 << 20
# bytes of fresh memory up to which one thread touches every page of it first: threads that do so at the same time, as
# they write, can take several times as long
_TOUCHED, _PAGE = 128 << 20, 4096

Block = tuple[int, np.ndarray, np.ndarray | None]


class Spare:
    """Memory that folds hand on to each other: fresh pages take as long to get as kernels to slice.

    Parameters
    ----------
    largest : int
        Number of training samples of the largest fold.
    """

    def __init__(self, largest: int = 0) -> None:
        self._largest = largest
        self._free: list[np.ndarray] = []

    def take(self, p: int, n: int, dtype: np.dtype) -> np.ndarray:
        """Return an array of shape (p, n, n), to be given back by its ``base``."""
        size = p * max(n, self._largest) ** 2
        try:
            flat = self._free.pop()
        except IndexError:
            flat = np.empty(0, dtype)
        if flat.size < size or flat.dtype != dtype:
            flat = np.empty(size, dtype)
            if flat.nbytes <= _TOUCHED:
                flat[:: _PAGE // flat.itemsize] = 0
        return flat[: p * n * n].reshape(p, n, n)

    def give(self, flat: np.ndarray) -> None:
        """Take back the memory of an array that nobody reads any more."""
        self._free.append(flat)

    def clear(self) -> None:
        """Let go of everything."""
        self._free.clear()


@dataclass(frozen=True)
class FoldExpansion(Expansion):
    """Terms that remember their kernels and samples within the fold, for `evaluate_together`.

    Attributes
    ----------
    active, kept : ndarrays of int
        The kernels of the terms, and the training samples that these refer to.
    other : callable
        Returns the expansion that evaluates any samples.
    """

    active: np.ndarray
    kept: np.ndarray
    other: Callable[[], Expansion]

    def evaluate(self, X, n_threads=1):
        """Return the outputs on samples other than those of the fold."""
        return self.other().evaluate(X, n_threads)


class FoldStack(StackedKernels):
    """The kernels of some rows of a stack; where the whole stack was examined its slices need not be.

    Parameters
    ----------
    stack : KernelStack
        The training rows.
    test : KernelStack
        The test rows.
    clean : bool
        Whether the whole stack is known to be finite, symmetric and without negative eigenvalues.
    spare : Spare
        Memory for the training rows.
    """

    space: np.ndarray | None = None

    def __init__(
        self, stack: KernelStack, test: KernelStack, *args: Any, clean: bool, spare: Spare, **options: Any
    ) -> None:
        self.test, self._clean, self._spare = test, clean, spare
        super().__init__(stack, *args, **options)

    def _examined(self, kind, in_place):
        if not self._clean or in_place or kind != "dense":
            return super()._examined(kind, in_place)
        self._indefinite = np.zeros(len(self.names), bool)
        n, _, p = self.stack.shape
        matrices = self._spare.take(p, n, self.stack.dtype)
        self.space = matrices.base
        return matrices, gather_square(self.stack, Team(self._n_threads), matrices)

    def _expansion(self, terms, offset, active, kept):
        whole = partial(super()._expansion, terms, offset, active, kept)
        return FoldExpansion(terms, offset, active, kept, whole)

    def test_blocks(self, part: slice, kernels: Sequence[int], needs_diag: bool) -> Iterator[Block]:
        """Yield (k, raw test rows, raw test diagonal or None) of a part of the test samples."""
        rows = self.test[part]
        diag = _stack_diag(rows) if needs_diag else None
        for k in kernels:
            K = gather_rows(rows, k, self.stack.row_ids)
            if not self._clean:
                _check_rows(K, self.names[k])
            yield k, K, None if diag is None else diag[k]


class FoldComputed(ComputedKernels):
    """The kernels of a bank on some of the samples.

    Parameters
    ----------
    bank : SlicedBank
        Fitted on the training samples.
    train, test : ndarrays of int
        The samples.
    spare : Spare or None
        Memory for the kernels. None for the last training, after which nobody will need the known kernels: it may have
        theirs.
    """

    bank: SlicedBank  # type: ignore[assignment]
    space: np.ndarray | None = None

    def __init__(
        self, bank: SlicedBank, train: np.ndarray, test: np.ndarray, *args: Any, spare: Spare | None, **options: Any
    ) -> None:
        self.test, self._spare = test, spare
        super().__init__(bank, train, *args, **options)

    def _space(self, p, n, dtype):
        """Return memory for the kernels: that of the known ones, where these are all, between these very samples."""
        if self._spare is not None:
            matrices = self._spare.take(p, n, dtype)
            self.space = matrices.base
            return matrices
        known = [self.bank.whole(k) for k in range(p)]
        stack = None if known[0] is None else known[0].base
        if stack is not None and stack.shape == (p, n, n) and np.array_equal(self.X, np.arange(n)):
            if all(K is not None and np.may_share_memory(K, own) for K, own in zip(known, stack, strict=True)):
                return stack
        return super()._space(p, n, dtype)

    def _tiles(self, kernels, targets):
        products = np.empty((len(kernels), len(self._p)))
        known = [j for j, k in enumerate(kernels) if self.bank.whole(k) is not None]

        def some(first: int, last: int) -> None:
            for j in known[first:last]:
                K = self.bank.whole(kernels[j])
                if np.may_share_memory(K, targets[j]):
                    products[j] = K @ self._p
                else:
                    products[j] = gather_with_product(K, self.X, self._p, targets[j])

        self._team.run(partial(some, *span) for span in self._team.split(len(known)))
        others = [j for j in range(len(kernels)) if j not in known]
        products[others] = super()._tiles([int(kernels[j]) for j in others], [targets[j] for j in others])
        return products

    def _expansion(self, terms, offset, active, kept):
        def whole() -> Expansion:
            samples = take_rows(self.bank.samples, self.X[kept])
            return ComputedExpansion(terms, offset, self.bank.inner.take(active), samples)

        return FoldExpansion(terms, offset, active, kept, whole)

    def test_blocks(self, part: slice, kernels: Sequence[int], needs_diag: bool) -> Iterator[Block]:
        """Yield (k, raw test rows, raw test diagonal or None) of a part of the test samples."""
        for k, K in self.bank.raw_each(self.test[part], self.X, kernels):
            yield k, K, self.bank.raw_diag(k, self.test[part]) if needs_diag else None


@dataclass(frozen=True, eq=False)
class SlicedBank:
    """A bank whose samples are given by their numbers; what is known on all samples is sliced.

    Attributes
    ----------
    inner : KernelBank
        Fitted kernels.
    samples : array, sparse matrix or data frame
        All samples.
    known : dict of ndarrays (n, n)
        Raw values of some kernels between all samples, by name and columns.
    """

    inner: KernelBank
    samples: Any
    known: dict[tuple, np.ndarray] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Names of the kernels."""
        return self.inner.names

    @property
    def n_kernels(self) -> int:
        """Number p of kernels."""
        return self.inner.n_kernels

    @property
    def steps(self) -> tuple[str, ...]:
        """Steps of the normalisation."""
        return self.inner.steps

    @property
    def known_psd(self) -> np.ndarray:
        """Which kernels are positive semidefinite by construction."""
        return self.inner.known_psd

    def whole(self, k: int) -> np.ndarray | None:
        """Return the raw values of kernel k between all samples, None where they are not known."""
        return self.known.get((self.inner.names[k], self.inner.columns[k]))

    def raw(self, k: int, rows: np.ndarray, cols: np.ndarray | None = None) -> np.ndarray:
        """Return the raw block of kernel k between samples, float64."""
        whole = self.whole(k)
        if whole is not None:
            return gather(whole, rows, rows if cols is None else cols)
        return self.inner.raw(k, self._take(rows), None if cols is None or cols is rows else self._take(cols))

    def raw_diag(self, k: int, rows: np.ndarray) -> np.ndarray:
        """Return the raw values k(x, x), float64."""
        whole = self.whole(k)
        if whole is not None:
            return whole[rows, rows].astype(np.float64)
        return self.inner.raw_diag(k, self._take(rows))

    def raw_diags(self, rows: np.ndarray) -> np.ndarray:
        """Return the raw values k(x, x) of all kernels, float64 of shape (p, m)."""
        return np.array([self.raw_diag(k, rows) for k in range(self.n_kernels)])

    def raw_each(self, rows, cols=None, kernels=None, dtype=np.float64) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (k, raw block) for the chosen kernels, not necessarily in order."""
        kernels = range(self.inner.n_kernels) if kernels is None else kernels
        unknown = []
        for k in kernels:
            if self.whole(k) is None:
                unknown.append(k)
            else:
                yield k, self.raw(k, rows, cols)
        if unknown:
            same = cols is None or cols is rows
            yield from self.inner.raw_each(self._take(rows), None if same else self._take(cols), unknown, dtype)

    def normalizer(self, k: int, rows: np.ndarray, sample_weight=None) -> FittedNormalizer:
        """Learn the normalisation of kernel k on some samples."""
        return self.inner.normalizer(k, self._take(rows), sample_weight)

    def _take(self, rows: np.ndarray) -> Any:
        return take_rows(self.samples, rows)


def fixed_kernels(spec: Any, X: Any, numbers: Any, room: float, n_threads: int) -> dict[tuple, np.ndarray]:
    """Compute the kernels that learn nothing from samples, once, between all samples.

    Parameters
    ----------
    spec : kernels
        What the user wrote.
    X, numbers : samples
        As they came, and as kernels take them.
    room : float
        Bytes that they may take.
    n_threads : int
        Threads.

    Returns
    -------
    dict of ndarrays (n, n)
        By name and columns; empty where there is no room, or a kernel fails: then each fold says so in its own words.
    """
    entries = [entry for entry in expand_entries(spec, X) if not as_kernel(entry[1])._learns()]
    n, p = X.shape[0] if hasattr(X, "shape") else len(X), len(entries)
    dtype = storage_dtype(p, n)
    if not p or p * n * n * dtype.itemsize > room:
        return {}
    stack = np.empty((p, n, n), dtype)
    try:
        bank = KernelBank.fit([(f"kernel {j}", kernel, columns) for j, (_, kernel, columns) in enumerate(entries)], X)
        compute_tiles(bank, numbers, range(p), np.zeros(n), Team(n_threads), list(stack))
    except Exception:
        return {}
    return {(name, columns): K for (name, _, _), columns, K in zip(entries, bank.columns, stack, strict=True)}


def evaluate_together(kernels: FoldStack | FoldComputed, expansions: Sequence[FoldExpansion]) -> list[np.ndarray]:
    """Return the outputs of several models on the test samples, each test row of a kernel evaluated once.

    Parameters
    ----------
    kernels : FoldStack or FoldComputed
        The kernels that all models share.
    expansions : sequence of FoldExpansion
        The models.

    Returns
    -------
    list of ndarrays of shape (n_test, T)
        Outputs of each model.
    """
    n_test, n_train = len(kernels.test), kernels.gram.n_samples
    outputs = [np.tile(each.offset, (n_test, 1)) for each in expansions]
    users: dict[int, list[tuple[int, Term]]] = {}
    for i, each in enumerate(expansions):
        for k, term in zip(each.active, each.terms, strict=True):
            users.setdefault(int(k), []).append((i, term))
    wants = any(term.normalizer is not None and term.normalizer.needs_diag for row in users.values() for _, term in row)
    # kernels whose terms are products alone, with all coefficients side by side
    joint = {k: _side_by_side(row, expansions, n_train) for k, row in users.items() if _plain(row)}
    size = max(1, _BLOCK_BYTES // (8 * n_train))
    for start in range(0, n_test, size):
        part = slice(start, min(start + size, n_test))
        for k, K, diag in kernels.test_blocks(part, sorted(users), wants):
            if k in joint:
                values, at = K @ joint[k], 0
                for i, term in users[k]:
                    outputs[i][part] += values[:, at : at + term.coef.shape[1]]
                    at += term.coef.shape[1]
                continue
            for i, term in users[k]:
                rows = K[:, expansions[i].kept]
                if term.normalizer is not None:
                    rows = term.normalizer.cross(rows, diag)
                outputs[i][part] += rows @ term.coef
    return outputs


def _plain(row: Sequence[tuple[int, Term]]) -> bool:
    return all(term.normalizer is None for _, term in row)


def _side_by_side(row, expansions, n_train: int) -> np.ndarray:
    parts = []
    for i, term in row:
        coef = np.zeros((n_train, term.coef.shape[1]))
        coef[expansions[i].kept] = term.coef
        parts.append(coef)
    return np.hstack(parts)
