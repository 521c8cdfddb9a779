"""Prediction rules of the classifiers: outputs become scores, and scores become classes and probabilities."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from types import MethodType
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from multikernel.estimators.base import BaseMKL
from multikernel.estimators.calibration import Calibration, as_columns
from multikernel.estimators.docstrings import documented
from multikernel.estimators.partitioned import by_partitions
from multikernel.losses import Logistic, Multinomial


@documented
class ClassifierFace(ClassifierMixin, BaseMKL):
    """A classifier: one output for two classes, one for each of more, or one for each pair of them."""

    multiclass: str = "joint"

    def decision_function(self, X: Any) -> np.ndarray:
        """Return how clearly each sample belongs to each class.

        <samples>

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive values for ``classes_[1]``. More: one column per class; for "ovo" the votes
            of the pairs plus their outputs, squeezed so that they only break ties.
        """
        if hasattr(X, "__dask_graph__"):
            return by_partitions(self, "decision_function", X, () if len(self.classes_) == 2 else (len(self.classes_),))
        outputs = self._outputs(X)
        if len(self.classes_) == 2:
            return outputs[:, 0] if outputs.shape[1] == 1 else outputs[:, 1] - outputs[:, 0]
        return pairwise_votes(outputs, len(self.classes_)) if self.multiclass == "ovo" else outputs

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each sample.

        <samples>

        Returns
        -------
        ndarray of shape (n_samples,)
            Members of ``classes_``.
        """
        if hasattr(X, "__dask_graph__"):
            return by_partitions(self, "predict", X, (), self.classes_.dtype)
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


def _is_loss(estimator: Any, name: str, kind: type) -> bool:
    loss = estimator.loss
    return loss == name if isinstance(loss, str) else isinstance(loss, kind)


def _require_probabilities(estimator: Any) -> None:
    """Raise where the loss of an estimator has no probabilities, and none were learned by folds."""
    if estimator.probability:
        if hasattr(estimator, "model_") and not hasattr(estimator, "calibration_"):
            raise AttributeError(
                f"{type(estimator).__name__} with probability=True has probabilities when its fit has ended, and none "
                "in the folds of a search: choose another 'scoring', or loss='logistic' or 'multinomial'."
            )
        return
    multinomial, owner = _is_loss(estimator, "multinomial", Multinomial), type(estimator).__name__
    if not multinomial and not _is_loss(estimator, "logistic", Logistic):
        raise AttributeError(
            f"The 'loss' parameter of {owner} must be 'logistic' or 'multinomial' for probabilities. "
            f"Got {estimator.loss!r} instead: probability=True learns probabilities for this loss by folds."
        )
    if len(getattr(estimator, "classes_", ())) > 2 and estimator.multiclass != "ovr":
        if multinomial and estimator.multiclass == "joint":
            return
        raise AttributeError(
            f"The 'multiclass' parameter of {owner} must be 'ovr' for probabilities of more than "
            f"two classes, or 'joint' with loss='multinomial', or probability=True, which learns them by folds. Got "
            f"{estimator.multiclass!r} with the loss {estimator.loss!r} instead."
        )


class _IfProbabilities:
    """A method that an estimator lacks where its loss has no probabilities; the AttributeError says why."""

    def __init__(self, method: Callable) -> None:
        self.method = method

    def __get__(self, estimator: Any, owner: type) -> Any:
        if estimator is None:
            return self.method
        _require_probabilities(estimator)
        return MethodType(self.method, estimator)


@documented
class ProbabilityFace(ClassifierFace):
    """A classifier with probabilities: of the multinomial and the logistic loss, or calibrated by folds."""

    loss: Any
    probability: bool = False
    calibration_: Calibration

    @_IfProbabilities
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, with ``probability=True`` or for the multinomial and logistic loss.

        With ``probability=True``: exp(slope f_u + shift_u) divided by their sum, slope and shifts learned by folds; the
        likeliest class may then differ from `predict` in samples near the border. Otherwise, for two classes
        1 / (1 + exp(-f)). More, with ``loss="multinomial"`` and ``multiclass="joint"``: exp(f_u) divided by their sum.
        With ``multiclass="ovr"``: those of each class against the rest, divided by their sum. There are none of pairs,
        and none of the joint logistic loss, which is that of the largest wrong class.

        <samples>

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities; rows sum to one.
        """
        if hasattr(X, "__dask_graph__"):
            return by_partitions(self, "predict_proba", X, (len(self.classes_),))
        return softmax(self._log_shares(X), axis=1)

    @_IfProbabilities
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the probabilities, exact also where those are too small for a number.

        <samples>

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms of `predict_proba`.
        """
        if hasattr(X, "__dask_graph__"):
            return by_partitions(self, "predict_log_proba", X, (len(self.classes_),))
        return log_softmax(self._log_shares(X), axis=1)

    def _log_shares(self, X: Any) -> np.ndarray:
        """Return logarithms of the probabilities, up to a constant in each row."""
        scores = self.decision_function(X)
        if self.probability:
            return self.calibration_.log_shares(scores)
        if scores.ndim == 1:
            return as_columns(scores)
        # jointly the outputs themselves; against the rest 1 / (1 + exp(-f))
        return scores if self.multiclass == "joint" else -np.logaddexp(0.0, -scores)


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
