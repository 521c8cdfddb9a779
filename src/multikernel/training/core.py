"""The kernels of a fit: a Gram for the solver, and what it takes to evaluate them on other samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from multikernel.gram.base import Gram
from multikernel.gram.definite import repair, smallest_eigenvalue_ratio
from multikernel.gram.dense import AffineForm
from multikernel.gram.inspect import trust_of
from multikernel.gram.soundness import indefinite_error
from multikernel.kernels.fitted_normalizer import FittedNormalizer
from multikernel.solution import Solution
from multikernel.training.expansion import Expansion, Term, make_term, needs_all

# a kernel is constant where its variance is below this fraction of its mean diagonal
_NO_VARIANCE = 1e-12


class TrainingKernels(ABC):
    """The p normalised kernels on n training samples.

    Attributes
    ----------
    names : list of str
        Names of the kernels.
    gram : Gram
        The kernels on the training samples.
    normalizers : list of FittedNormalizer
        Their normalisations.
    constant : bool array (p,)
        Kernels that cannot tell samples apart.
    known_psd : bool array (p,)
        Kernels known to be positive semidefinite, by construction or by repair.
    projectors : dict of ndarray
        P_k of the kernels that were clipped or flipped: k(x, .) becomes k(x, .) P_k.
    """

    names: list[str]
    gram: Gram
    normalizers: list[FittedNormalizer]
    constant: np.ndarray
    known_psd: np.ndarray
    psd: str

    def __init__(self) -> None:
        self.projectors: dict[int, np.ndarray] = {}

    def repair(self, kernels: Sequence[int]) -> None:
        """Replace indefinite kernels by positive semidefinite ones, as ``psd`` says."""
        for k in kernels:
            fixed = repair(self._matrix(k), self.psd)
            self._replace(int(k), fixed.matrix)
            if fixed.projector is not None:
                self.projectors[int(k)] = fixed.projector.astype(np.float64)
            self.known_psd[k] = True

    def negative_curvature(self, solution: Solution) -> np.ndarray:
        """Return the kernels with a'K_k a < 0 beyond rounding, for some a that was met in training."""
        rounding = len(solution.dual_coef) * trust_of(self.gram.dtype) * np.abs(self.gram.diag()).max(axis=1)
        return np.flatnonzero((solution.curvature < -rounding) & ~self.known_psd)

    def repair_or_raise(self, suspects: np.ndarray) -> None:
        """Repair kernels found indefinite in training, or raise."""
        if self.psd == "error":
            which = np.isin(np.arange(len(self.names)), suspects)
            raise indefinite_error(self.names, which, smallest_eigenvalue_ratio(self._matrix(int(suspects[0]))))
        self.repair(suspects)

    def expansion(self, weights: np.ndarray, coef: np.ndarray, intercepts: np.ndarray, balanced: bool) -> Expansion:
        """Return what evaluates the model on other samples.

        Parameters
        ----------
        weights : ndarray of shape (T, p) or (p, T, T)
            Kernel weights of T problems; or the kernels between T columns with which each kernel is multiplied.
        coef : ndarray of shape (n, T) or (p, n, T)
            Their coefficients, or those of each kernel.
        intercepts : ndarray of shape (T,)
            Their intercepts.
        balanced : bool
            Whether the coefficients of each problem sum to zero.
        """
        # with coefficients that sum to zero a constant kernel adds nothing
        products = weights.ndim == 3
        useful = weights.any(axis=(1, 2) if products else 0) & ~(self.constant & balanced)
        active = np.flatnonzero(useful) if coef.any() else np.zeros(0, np.intp)
        support = coef.any(axis=-1).reshape(-1, coef.shape[-2]).any(axis=0)
        projected = [k for k in active if k in self.projectors]
        whole = bool(projected) or needs_all([self.normalizers[k] for k in active], balanced)
        kept = None if whole else np.flatnonzero(support)
        terms: list[Term] = []
        offset = np.array(intercepts, float)
        for k in active:
            own = coef if coef.ndim == 2 else coef[k]
            if k in self.projectors:
                own = self.projectors[int(k)] @ own
            own = own @ weights[k] if products else own * weights[:, k]
            term, shift = make_term(self.normalizers[k], own, kept)
            terms.append(term)
            offset += shift
        return self._expansion(terms, offset, active, np.arange(len(support)) if kept is None else kept)

    def places(self, idx: np.ndarray) -> np.ndarray:
        """Return where samples of the Gram stand among all that the kernels were given."""
        return idx

    def whole(self, matrix: np.ndarray) -> np.ndarray:
        """Return a matrix on the samples of the Gram as one on all that the kernels were given."""
        return matrix

    def _matrix(self, kernel: int) -> np.ndarray:
        """Return one normalised kernel as a whole, in float64."""
        return self.gram.rows(np.arange(self.gram.n_samples), np.array([kernel]))[0].astype(np.float64)

    @abstractmethod
    def _replace(self, kernel: int, matrix: np.ndarray) -> None:
        """Put a matrix in the place of a normalised kernel."""

    @abstractmethod
    def _expansion(self, terms: list[Term], offset: np.ndarray, active: np.ndarray, kept: np.ndarray) -> Expansion:
        """Join the terms with what this kind of kernels needs."""


def refuse_repair(psd: str) -> ValueError:
    """Return the error about repairs of kernels that are not stored."""
    return ValueError(
        f"psd={psd!r} repairs a kernel as a whole and needs gram='dense' or 'memmap'. Got 'lazy' instead."
    )


def affine_form(normalizers: Sequence[FittedNormalizer]) -> AffineForm:
    """Return the affine views of all kernels, one normalisation each, as one form."""
    n = normalizers[0].n_samples
    scale = np.array([normalizer.scale for normalizer in normalizers], float)
    u = A = B = None
    if any(normalizer.u is not None for normalizer in normalizers):
        u = np.array([np.ones(n) if each.u is None else each.u for each in normalizers])
    terms = max((0 if each.A is None else each.A.shape[1]) for each in normalizers)
    if terms:
        A, B = np.zeros((2, len(normalizers), n, terms))
        for k, each in enumerate(normalizers):
            if each.A is not None and each.B is not None:
                A[k, :, : each.A.shape[1]], B[k, :, : each.B.shape[1]] = each.A, each.B
    return AffineForm(scale, u, A, B)


def no_variance(diag: np.ndarray, products: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return which kernels are constant: mean diagonal and mean of all entries agree, bool (p,).

    Parameters
    ----------
    diag, products : ndarrays of shape (p, n)
        Diagonals and K_k w.
    weight : ndarray of shape (n,)
        Weights w of sum one.
    """
    return diag @ weight - products @ weight <= _NO_VARIANCE * (np.abs(diag) @ weight)
