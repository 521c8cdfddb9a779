"""Outputs of a fitted model on new samples, from what it needs and nothing else.

    f_t(x) = sum_k sum_j c_kjt k~_k(x, x_j) + b_t,       c_kjt = beta_tk a_tj

over the kernels of non-zero weight and the support vectors x_j. Divisors of a kernel are part of c. Where
kernels are centred and sum_j a_tj = 0, the mean of a test row cancels,

    sum_j a_j (k(x, x_j) - mean k(x, .) - r_j + m) = sum_j a_j k(x, x_j) - sum_j a_j r_j,

and support vectors suffice as well; they do not where a unit diagonal is asked for after centring, without an
intercept, or for kernels that were clipped or flipped: then all training samples are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from multikernel.gram.names import match_names
from multikernel.gram.stack import KernelStack
from multikernel.kernels.bank import KernelBank, take_rows
from multikernel.kernels.fitted_normalizer import FittedNormalizer
from multikernel.threads import BLOCK_BYTES, Team


@dataclass(frozen=True)
class Term:
    """One kernel of the expansion: its coefficients and, where dividing is not enough, its normalisation.

    Attributes
    ----------
    columns : ndarray of shape (m, T)
        Coefficients of the m training samples kept, for T problems: one array for all kernels where they share it.
    factors : float, or ndarray of shape (T,) or (T, T)
        What this kernel multiplies them with: the columns, or their rows as a matrix.
    normalizer : FittedNormalizer or None
        What is applied to raw test rows first.
    """

    columns: np.ndarray
    factors: float | np.ndarray
    normalizer: FittedNormalizer | None

    @cached_property
    def coef(self) -> np.ndarray:
        """The coefficients of this kernel, of shape (m, T)."""
        matrix = isinstance(self.factors, np.ndarray) and self.factors.ndim == 2
        return self.columns @ self.factors if matrix else self.columns * self.factors


@dataclass(frozen=True)
class Expansion(ABC):
    """The terms of the active kernels on the samples kept.

    Attributes
    ----------
    terms : list of Term
        One for each active kernel.
    offset : ndarray of shape (T,)
        Constants of the outputs.
    active, kept : ndarrays of int
        Which of the kernels the terms belong to, and which of the training samples.
    """

    terms: list[Term]
    offset: np.ndarray
    active: np.ndarray
    kept: np.ndarray

    def evaluate(self, X: Any, n_threads: int = 1) -> np.ndarray:
        """Return the outputs, shape (n_samples, T), a block of samples at a time."""
        X = self.select(X)
        parts = row_parts(X, len(self.kept))
        out = np.tile(self.offset, (parts[-1].stop if parts else 0, 1))
        n_threads = max(1, min(n_threads, len(parts)))
        Team(n_threads).run(partial(self._add, X, parts[t::n_threads], out) for t in range(n_threads))
        return out

    def select(self, X: Any) -> Any:
        """Return of the samples what the terms read: all of them, or the columns of the samples kept."""
        return X

    def _add(self, X: Any, parts: Sequence[slice], out: np.ndarray) -> None:
        """Add the terms on some blocks of the samples to the outputs."""
        for part in parts:
            for j, K, diag in self.raw(take_rows(X, part)):
                term = self.terms[j]
                if term.normalizer is not None:
                    K = term.normalizer.cross(K, diag)
                out[part] += K @ term.coef

    @abstractmethod
    def raw(self, X: Any) -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
        """Yield (number of the term, raw values between X and the samples kept, k(x, x) where the term needs it)."""


@dataclass(frozen=True)
class ComputedExpansion(Expansion):
    """Kernels that are computed from the samples kept."""

    bank: KernelBank
    samples: Any

    def raw(self, X):
        for j, K in self.bank.raw_each(X, self.samples):
            yield j, K, self.bank.raw_diag(j, X) if _needs_diag(self.terms[j]) else None


@dataclass(frozen=True)
class StackedExpansion(Expansion):
    """Kernels that a stack holds: only names of kernels and ids of samples are kept.

    Attributes
    ----------
    names : tuple of str
        Names of the kernels of the training stack.
    train_ids : ndarray of int
        The ids of all training samples, of the ``n_ids`` columns of the training stack.
    """

    names: tuple[str, ...]
    train_ids: np.ndarray
    n_ids: int

    def select(self, X: KernelStack) -> KernelStack:
        """Return the columns of the samples kept, of the kernels in the order of the training stack."""
        X = X.take_kernels(match_names(self.names, X.names))
        columns = X.positions(self.train_ids, self.n_ids)[self.kept]
        return X[np.ix_(np.arange(len(X)), columns)]

    def raw(self, X):
        for j, k in enumerate(self.active):
            K = X.kernel_rows(int(k), X.col_ids)
            require_finite(K, X.names[k])
            yield j, K, stack_diag(X)[k] if _needs_diag(self.terms[j]) else None


def _needs_diag(term: Term) -> bool:
    return term.normalizer is not None and term.normalizer.needs_diag


def row_parts(X: Any, n_columns: int) -> list[slice]:
    """Cut samples into blocks whose rows of one kernel, with so many columns, take a bounded memory."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    size = max(1, BLOCK_BYTES // (8 * max(1, n_columns)))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def require_finite(K: np.ndarray, name: str) -> None:
    """Raise where test rows of a precomputed kernel have NaN or infinity among them."""
    # a finite sum proves that every term is finite; an infinite one may be an overflow
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(K.sum()) and not np.isfinite(K).all():
            raise ValueError(f"The kernel {name!r} must hold finite numbers. Got NaN or infinity among its test rows.")


def stack_diag(X: KernelStack) -> np.ndarray:
    """Return k(x, x) of the rows of a stack, or raise where it has none."""
    diag = X.diag
    if diag is None:
        raise ValueError(
            "The 'cosine' normalisation needs the values k(x, x) of the test samples: "
            "give stack_kernels the parameter 'diag', of shape (n_kernels, n_rows)."
        )
    return diag


def needs_all(normalizers: Sequence[FittedNormalizer], balanced: bool) -> bool:
    """Whether test rows need every training column, with coefficients that sum to zero or not."""
    for normalizer in normalizers:
        if normalizer.centred:
            after = normalizer.steps[normalizer.steps.index("center") :]
            if not balanced or "cosine" in after:
                return True
    return False


def make_term(
    normalizer: FittedNormalizer, coef: np.ndarray, kept: np.ndarray | None, factors: np.ndarray | float
) -> tuple[Term, np.ndarray]:
    """Return the term of one kernel, and what it adds to the offsets.

    Parameters
    ----------
    normalizer : FittedNormalizer
        Learned on all n training samples.
    coef : ndarray of shape (n, T)
        Coefficients.
    kept : ndarray of int or None
        The samples that are kept, None for all of them.
    factors : float, or ndarray of shape (T,) or (T, T)
        What the coefficients are multiplied with, as in `Term`.
    """
    if normalizer.centred and kept is None:
        return Term(coef, factors, replace(normalizer, A=None, B=None)), np.zeros(coef.shape[1])
    shift = np.zeros(coef.shape[1])
    if normalizer.A is not None:
        # B = 1: no unit diagonal was asked for after centring
        shift = -Term(normalizer.A.sum(axis=1)[None] @ coef, factors, None).coef[0]
    if kept is not None and not np.array_equal(kept, np.arange(len(coef))):
        coef = coef[kept]
    if not normalizer.needs_diag:
        return Term(coef, normalizer.scale * factors, None), shift
    slim = normalizer.without_centring()
    return Term(coef, factors, slim if kept is None else slim.take(kept)), shift


def evaluate_together(source: Any, expansions: Sequence[Expansion], X: Any, at: np.ndarray | None) -> list[np.ndarray]:
    """Return the outputs of several models on the same samples, each raw row of a kernel evaluated once.

    Parameters
    ----------
    source : Source
        Raw values between other samples and all training samples, which the models share.
    expansions : sequence of Expansion
        The models.
    X : samples
        Valid samples.
    at : ndarray of int or None
        Their numbers among the samples that the folds of a search share.

    Returns
    -------
    list of ndarrays of shape (n_samples, T)
        Outputs of each model.
    """
    users: dict[int, list[tuple[int, Term]]] = {}
    for i, each in enumerate(expansions):
        for k, term in zip(each.active, each.terms, strict=True):
            users.setdefault(int(k), []).append((i, term))
    diag = any(_needs_diag(term) for row in users.values() for _, term in row)
    # coefficients of all models side by side, for kernels whose terms need no normalisation
    wide: dict[int, np.ndarray] = {}
    n = max((len(each.kept) and int(each.kept.max()) + 1 for each in expansions), default=0)
    parts = row_parts(X, max(n, 1))
    outputs = [np.tile(each.offset, (parts[-1].stop if parts else 0, 1)) for each in expansions]
    for part in parts:
        for k, K, d in source.blocks(take_rows(X, part), sorted(users), diag, None if at is None else at[part]):
            if all(term.normalizer is None for _, term in users[k]):
                if k not in wide:
                    wide[k] = _side_by_side(users[k], expansions, K.shape[1])
                values, column = K @ wide[k], 0
                for i, term in users[k]:
                    outputs[i][part] += values[:, column : column + term.columns.shape[1]]
                    column += term.columns.shape[1]
                continue
            for i, term in users[k]:
                rows = K[:, expansions[i].kept]
                outputs[i][part] += (rows if term.normalizer is None else term.normalizer.cross(rows, d)) @ term.coef
    return outputs


def _side_by_side(row: Sequence[tuple[int, Term]], expansions: Sequence[Expansion], n: int) -> np.ndarray:
    columns = []
    for i, term in row:
        coef = np.zeros((n, term.columns.shape[1]))
        coef[expansions[i].kept] = term.coef
        columns.append(coef)
    return np.hstack(columns)
