"""The combined kernel between new samples and training samples, for predictors that take a precomputed kernel.

    k(x, x_j) = sum_k beta_k k~_k(x, x_j)

for the training samples x_j that the predictor reads; the columns of the others are left at zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isqrt
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from multikernel.gram.base import Gram
from multikernel.gram.host import HostGram
from multikernel.kernels.bank import take_rows
from multikernel.threads import Team
from multikernel.training.core import Prepared
from multikernel.training.expansion import Expansion, make_term, needs_all, row_parts

# predictors that read the columns of their support vectors only
SPARSE = (SVC, NuSVC, SVR, NuSVR)


@dataclass(frozen=True)
class Mixture:
    """The mix of kernels with fixed weights.

    Attributes
    ----------
    expansion : Expansion
        Raw kernels and normalisations; the one column of coefficients holds the weight of the kernel.
    projectors : dict of ndarray
        P of the terms whose kernel was clipped or flipped.
    columns : ndarray of int
        The columns of the expansion that are read.
    places : ndarray of int
        The training samples that they stand for, of ``n_train``.
    n_train : int
        Number of training samples.
    """

    expansion: Expansion
    projectors: dict[int, np.ndarray]
    columns: np.ndarray
    places: np.ndarray
    n_train: int

    def map(self, X: Any, call: Callable[[np.ndarray], np.ndarray], n_threads: int = 1) -> np.ndarray:
        """Return ``call`` of the combined kernel between new samples and training samples, a block at a time.

        Parameters
        ----------
        X : samples or KernelStack
            New samples.
        call : callable
            Takes an array (m, n_train), returns an array whose first axis is m.
        n_threads : int
            Threads.
        """
        X = self.expansion.select(X)
        parts = row_parts(X, self.n_train)
        return np.concatenate(Team(n_threads).run(partial(self._one, X, part, call) for part in parts))

    def _one(self, X: Any, part: slice, call: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        block = take_rows(X, part)
        mixed = np.zeros((part.stop - part.start, len(self.columns)))
        for j, K, diag in self.expansion.raw(block):
            term = self.expansion.terms[j]
            if term.normalizer is not None:
                K = term.normalizer.cross(K, diag)
            if j in self.projectors:
                K = K @ self.projectors[j]
            mixed += (K * term.coef[:, 0])[:, self.columns]
        out = np.zeros((len(mixed), self.n_train))
        out[:, self.places] = mixed
        return call(out)


def make_mixture(prepared: Prepared, weights: np.ndarray, wanted: np.ndarray | None = None) -> Mixture:
    """Return the mix of the kernels of a fit, for other samples.

    Parameters
    ----------
    prepared : Prepared
        The kernels.
    weights : ndarray of shape (p,)
        Their weights.
    wanted : ndarray of int, optional
        The training samples whose columns are read; all by default.
    """
    n = prepared.gram.n_samples
    wanted = np.arange(n) if wanted is None else np.asarray(wanted, np.intp)
    active = np.flatnonzero(weights)
    normalizers = [prepared.normalizers[k] for k in active]
    projectors = {j: prepared.projectors[k] for j, k in enumerate(active.tolist()) if k in prepared.projectors}
    whole = bool(projectors) or needs_all(normalizers, False)
    coef = np.ones((n, 1))
    terms = [
        make_term(normalizer, coef, None if whole else wanted, weight)[0]
        for normalizer, weight in zip(normalizers, weights[active], strict=True)
    ]
    kept = np.arange(n) if whole else wanted
    expansion = prepared.source.expansion(terms, np.zeros(1), active, kept)
    return Mixture(expansion, projectors, wanted if whole else np.arange(len(wanted)), wanted, n)


def combined_kernel(gram: Gram, weights: np.ndarray, dtype: np.dtype | type = np.float64) -> np.ndarray:
    """Return sum_k beta_k K_k as a whole, formed in the precision asked for, a block of rows at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> combined_kernel(DenseGram(np.stack([np.eye(2), np.ones((2, 2))])), np.array([1.0, 2.0]))
    array([[3., 2.],
           [2., 3.]])
    """
    assert isinstance(gram, HostGram)
    n = gram.n_samples
    out = np.empty((n, n), dtype)
    # beside the result no array of its size is formed
    for lo in range(0, n, size := isqrt(n)):
        rows = np.arange(lo, min(lo + size, n))
        gram.combine(weights, rows, out, rows)
    return out


def linear_coefficients(model: Any, n: int) -> np.ndarray | None:
    """Return A of shape (n, T), with outputs K A + b, of a predictor on a precomputed kernel; None where there is none.

    For support vector classification one column per pair of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_ridge import KernelRidge
    >>> linear_coefficients(KernelRidge(alpha=1.0, kernel="precomputed").fit(np.eye(2), [2.0, 4.0]), 2)
    array([[1.],
           [2.]])
    """
    found = getattr(model, "dual_coef_", None)
    if not isinstance(found, np.ndarray):
        return None
    if not isinstance(model, SPARSE):
        return found.reshape(n, -1) if len(found) == n else None
    classes = len(model.n_support_) if is_classifier(model) else 2
    if classes <= 2:
        A = np.zeros((n, 1))
        A[model.support_, 0] = found[0]
        return A
    # the support vectors of class i against class j: row j - 1 for i < j, row j for i > j
    own = np.repeat(np.arange(classes), model.n_support_)
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    A = np.zeros((n, len(pairs)))
    for t, (i, j) in enumerate(pairs):
        A[model.support_[own == i], t] = found[j - 1, own == i]
        A[model.support_[own == j], t] = found[i, own == j]
    return A
