"""Outputs of a fitted model on new samples, from what it needs and nothing else.

    f_t(x) = sum_k sum_j c_kjt k~_k(x, x_j) + b_t,       c_kjt = beta_tk a_tj

over the kernels of non-zero weight and the support vectors x_j. Divisors of a kernel are part of c. Where
kernels are centred and sum_j a_tj = 0, the mean of a test row cancels,

    sum_j a_j (k(x, x_j) - mean k(x, .) - r_j + m) = sum_j a_j k(x, x_j) - sum_j a_j r_j,

and support vectors suffice as well; they do not where a unit diagonal is asked for after centring, without an
intercept, or for kernels that were clipped or flipped: then all training samples are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from multikernel.gram.stack import KernelStack
from multikernel.kernels.bank import KernelBank, take_rows
from multikernel.kernels.fitted_normalizer import FittedNormalizer
from multikernel.threads import Team

# bytes of one kernel's test rows at a time
_BLOCK_BYTES = 16 << 20


@dataclass(frozen=True)
class Term:
    """One kernel of the expansion: its coefficients and, where dividing is not enough, its normalisation.

    Attributes
    ----------
    coef : ndarray of shape (m, T)
        Coefficients of the m training samples kept, for T problems.
    normalizer : FittedNormalizer or None
        What is applied to raw test rows first.
    """

    coef: np.ndarray
    normalizer: FittedNormalizer | None


@dataclass(frozen=True)
class Expansion:
    """The terms of the active kernels on the samples kept."""

    terms: list[Term]
    offset: np.ndarray

    def evaluate(self, X: Any, n_threads: int = 1) -> np.ndarray:
        """Return the outputs, shape (n_samples, T), a block of samples at a time."""
        X = self.select(X)
        parts = row_parts(X, self.n_kept)
        out = np.tile(self.offset, (parts[-1].stop if parts else 0, 1))
        n_threads = max(1, min(n_threads, len(parts)))
        Team(n_threads).run(partial(self._some, X, parts[t::n_threads], out) for t in range(n_threads))
        return out

    def select(self, X: Any) -> Any:
        """Return of the samples what the terms read: all of them, or the columns of the samples kept."""
        return X

    def _some(self, X, parts, out) -> None:
        for part in parts:
            block = take_rows(X, part)
            for j, K, diag in self._raw(block):
                term = self.terms[j]
                if term.normalizer is not None:
                    K = term.normalizer.cross(K, diag)
                out[part] += K @ term.coef

    @property
    def n_kept(self) -> int:
        """The number of training samples kept."""
        return len(self.terms[0].coef) if self.terms else 0

    def _raw(self, X) -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
        raise NotImplementedError


@dataclass(frozen=True)
class ComputedExpansion(Expansion):
    """Kernels that are computed from the samples kept."""

    bank: KernelBank
    samples: Any

    def _raw(self, X):
        for j, K in self.bank.raw_each(X, self.samples):
            normalizer = self.terms[j].normalizer
            needs = normalizer is not None and normalizer.needs_diag
            yield j, K, self.bank.raw_diag(j, X) if needs else None


@dataclass(frozen=True)
class StackedExpansion(Expansion):
    """Kernels that a stack holds: only numbers of kernels and ids of samples are kept.

    Attributes
    ----------
    kernels : ndarray of int
        The active kernels among the ``n_kernels`` of the training stack.
    train_ids : ndarray of int
        The ids of all training samples, of the ``n_ids`` columns of the training stack.
    kept : ndarray of int
        The training samples that the terms refer to.
    """

    kernels: np.ndarray
    n_kernels: int
    train_ids: np.ndarray
    n_ids: int
    kept: np.ndarray

    def select(self, X: KernelStack) -> KernelStack:
        """Return the columns of the samples kept."""
        if X.shape[2] != self.n_kernels:
            raise ValueError(
                f"X must hold {self.n_kernels} kernels, as the stack that the model was fitted on. "
                f"Got {X.shape[2]} instead."
            )
        columns = X.positions(self.train_ids, self.n_ids)[self.kept]
        return X[np.ix_(np.arange(len(X)), columns)]

    def _raw(self, X):
        for j, k in enumerate(self.kernels):
            K = X.kernel_rows(int(k), X.col_ids)
            _check_rows(K, X.names[k])
            normalizer = self.terms[j].normalizer
            diag = None
            if normalizer is not None and normalizer.needs_diag:
                diag = _stack_diag(X)[k]
            yield j, K, diag


def row_parts(X: Any, n_columns: int) -> list[slice]:
    """Cut samples into blocks whose rows of one kernel, with so many columns, take a bounded memory."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    size = max(1, _BLOCK_BYTES // (8 * max(1, n_columns)))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def _check_rows(K: np.ndarray, name: str) -> None:
    # a finite sum proves that every term is finite; an infinite one may be an overflow
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(K.sum()) and not np.isfinite(K).all():
            raise ValueError(f"The kernel {name!r} must hold finite numbers. Got NaN or infinity among its test rows.")


def _stack_diag(X: KernelStack) -> np.ndarray:
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


def make_term(normalizer: FittedNormalizer, coef: np.ndarray, kept: np.ndarray | None) -> tuple[Term, np.ndarray]:
    """Return the term of one kernel, and what it adds to the offsets.

    Parameters
    ----------
    normalizer : FittedNormalizer
        Learned on all n training samples.
    coef : ndarray of shape (n, T)
        Coefficients.
    kept : ndarray of int or None
        The samples that are kept, None for all of them.
    """
    if normalizer.centred and kept is None:
        return Term(coef, replace(normalizer, A=None, B=None)), np.zeros(coef.shape[1])
    shift = np.zeros(coef.shape[1])
    if normalizer.A is not None:
        # B = 1: no unit diagonal was asked for after centring
        shift = -(normalizer.A.sum(axis=1) @ coef)
    if kept is not None:
        coef = coef[kept]
    if not normalizer.needs_diag:
        return Term(normalizer.scale * coef, None), shift
    slim = normalizer.without_centring()
    return Term(coef, slim if kept is None else slim.take(kept)), shift
