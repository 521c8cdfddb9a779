"""The classifier of Proposition 1 of Cortes, Mohri & Rostamizadeh 2013.

    h*(x, y) = mean of K(x, x') over the samples x' of class y,       R(h*) <= 1 - gamma / gamma_max <= 1 - gamma / 2,

gamma the mean kernel margin, gamma_max the largest margin of any sample; the second inequality needs K(x, x) <= 1. Both
inequalities hold for the training samples, with R the share of training errors; for other samples they are estimates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from multikernel.gram.soundness import as_gram
from multikernel.gram.stack import KernelStack, stack_kernels
from multikernel.theory.bounds import proposition_bound
from multikernel.theory.margin import checked_weights, table_of


@dataclass(frozen=True, eq=False)
class HStar:
    """The classifier h*: a sample belongs to the class to which its mean similarity is largest.

    Attributes
    ----------
    classes : ndarray of shape (c,)
        The classes.
    weights : ndarray of shape (p,)
        Weights of the kernels.
    margins : ndarray of shape (n,)
        Kernel margins of the training samples.
    largest_diagonal : float
        Largest K(x, x) of the training samples.
    train_scores : ndarray of shape (n, c)
        h* of the training samples.
    """

    classes: np.ndarray
    weights: np.ndarray
    margins: np.ndarray
    largest_diagonal: float
    train_scores: np.ndarray
    _codes: np.ndarray
    _ids: np.ndarray | None

    @property
    def train_error(self) -> float:
        """Share of the training samples whose margin is zero or less; the paper counts these as errors."""
        return float(np.mean(self.margins <= 0))

    @property
    def bound(self) -> float:
        """1 - gamma / gamma_max, valid for any K(x, x); 1 if no sample has a positive margin."""
        top = float(self.margins.max())
        return 1.0 - float(self.margins.mean()) / top if top > 0 else 1.0

    @property
    def simple_bound(self) -> float:
        """1 - gamma / 2; raises ValueError unless K(x, x) <= 1."""
        return proposition_bound(float(self.margins.mean()), self.largest_diagonal)

    def decision_function(self, stack: Any) -> np.ndarray:
        """Return h* of other samples.

        Parameters
        ----------
        stack : KernelStack or array (p, n_test, n)
            Kernels between the other samples and the training samples.

        Returns
        -------
        ndarray of shape (n_test, c)
            Mean similarities.
        """
        stack = stack if isinstance(stack, KernelStack) else stack_kernels(stack)
        n, p = len(self._codes), len(self.weights)
        if stack.shape[2] != p or (self._ids is None and stack.shape[1] != n):
            raise ValueError(
                f"The kernels of h* must be {p} matrices with a column for each of {n} training samples. "
                f"Got {stack.shape[2]} with {stack.shape[1]} columns."
            )
        share = np.eye(len(self.classes))[self._codes]
        share /= share.sum(axis=0)
        ids = stack.col_ids if self._ids is None else self._ids
        scores = np.zeros((stack.shape[0], len(self.classes)))
        for k in np.flatnonzero(self.weights):
            scores += self.weights[k] * (stack.kernel_rows(int(k), ids).astype(np.float64) @ share)
        if not np.isfinite(scores).all():
            raise ValueError("The kernels of h* must hold finite numbers. Got NaN or infinity among their entries.")
        return scores

    def predict(self, stack: Any) -> np.ndarray:
        """Return the class of largest mean similarity for each sample; parameters as of `decision_function`."""
        return self.classes[self.decision_function(stack).argmax(axis=1)]


def h_star(stack: Any, y: Any, weights: Any = None) -> HStar:
    """Return the classifier of Proposition 1 for a weighted sum of kernels.

    Parameters
    ----------
    stack : KernelStack, array (p, n, n), list of arrays (n, n), or Gram
        Kernels on n training samples.
    y : array of shape (n,)
        Classes, of any type.
    weights : array of shape (p,), optional
        Weights of the kernels; equal ones, of sum one, by default.

    Returns
    -------
    HStar
        The classifier with its margins and bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.theory import h_star
    >>> X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> model = h_star([X @ X.T], ["a", "a", "b", "b"])
    >>> model.predict((X @ X.T)[None]).tolist(), model.train_error, round(model.simple_bound, 3)
    (['a', 'a', 'b', 'b'], 0.0, 0.675)
    """
    gram = as_gram(stack)
    table = table_of(gram, y)
    beta = checked_weights(weights, table.n_kernels)
    scores = np.tensordot(beta, table.means, 1).T
    ids = stack.row_ids if isinstance(stack, KernelStack) else None
    largest = float((beta @ gram.diag()).max())
    margins = table.nearest(beta)[1]
    return HStar(np.unique(np.asarray(y)), beta, margins, largest, scores, table.codes, ids)
