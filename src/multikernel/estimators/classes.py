"""What classifiers share before and after training: samples with their classes, and scores that become classes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets

from multikernel.estimators.base import BaseMKL
from multikernel.estimators.validation import check_samples, check_targets, check_weight
from multikernel.kernels.bank import take_rows


@dataclass(frozen=True)
class ClassSamples:
    """Training samples of a classifier.

    Attributes
    ----------
    X : samples or KernelStack
        What kernels are made of; a stack keeps its rows of weight zero, other samples do not.
    weight : ndarray or None
        The weights of these, None for equal ones.
    kept : ndarray of int
        Which of the caller's samples have a positive weight.
    y, codes : ndarrays
        Their classes, as the caller named them and as numbers.
    own : ndarray
        Their weights, ones without weights.
    """

    X: Any
    weight: np.ndarray | None
    kept: np.ndarray
    y: np.ndarray
    codes: np.ndarray
    own: np.ndarray


def check_classes(estimator: Any, X: Any, y: Any, sample_weight: Any) -> ClassSamples:
    """Return valid samples of at least two classes.

    Sets: ``classes_`` of the estimator, and what `check_samples` sets.
    """
    X = check_samples(estimator, X, reset=True)
    y = check_targets(estimator, X, y)
    check_classification_targets(y)
    weight = check_weight(X, sample_weight)
    kept = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    estimator.classes_, codes = np.unique(y[kept], return_inverse=True)
    if len(estimator.classes_) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs samples of at least 2 classes. "
            f"Got one class only: {estimator.classes_.tolist()[0]!r}."
        )
    own = np.ones(len(kept)) if weight is None else weight[kept]
    if weight is not None and not estimator._precomputed and len(kept) < len(y):
        X, weight = take_rows(X, kept), own
    return ClassSamples(X, weight, kept, y[kept], codes, own)


class ScoreClassifier(ClassifierMixin, BaseMKL):
    """A classifier with one output for two classes and one for each of more."""

    classes_: np.ndarray

    def decision_function(self, X: Any) -> np.ndarray:
        """Return how clearly each sample belongs to each class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive values for ``classes_[1]``. More: one column per class.
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each sample.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Members of ``classes_``.
        """
        scores = self.decision_function(X)
        winners = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[winners]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: the part of the samples, or of their weight, that gets its own class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Samples.
        y : array of shape (n_samples,)
            Their classes.
        sample_weight : array of shape (n_samples,), optional
            Weights.

        Returns
        -------
        float
            From zero to one.
        """
        predicted = self.predict(X)
        if sample_weight is None and _plain_classes(y, self.classes_, len(predicted)):
            # what scikit-learn checks before it compares takes longer than a warm start of a small problem
            return float(np.mean(predicted == y))
        return accuracy_score(y, predicted, sample_weight=sample_weight)


def _plain_classes(y: Any, classes: np.ndarray, n: int) -> bool:
    """Whether y is an array of n known classes, of their own type."""
    if not isinstance(y, np.ndarray) or y.shape != (n,) or y.dtype != classes.dtype or y.dtype.kind not in "biufU":
        return False
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return bool(np.array_equal(classes[places], y))


def pairwise_votes(outputs: np.ndarray, n_classes: int) -> np.ndarray:
    """Turn the outputs of all pairs into one score per class: votes, plus outputs squeezed into (-1/3, 1/3).

    Parameters
    ----------
    outputs : ndarray of shape (n_samples, n_pairs)
        Positive where the second class of the pair is the likelier.
    n_classes : int
        Number of classes.
    """
    votes = np.zeros((len(outputs), n_classes))
    sums = np.zeros_like(votes)
    for column, (i, j) in zip(outputs.T, combinations(range(n_classes), 2), strict=True):
        votes[:, i] += column <= 0
        votes[:, j] += column > 0
        sums[:, i] -= column
        sums[:, j] += column
    return votes + sums / (3 * (np.abs(sums) + 1))
