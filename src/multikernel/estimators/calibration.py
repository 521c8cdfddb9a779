"""Probabilities for any loss: a softmax of scaled and shifted scores, learned on samples left out in training.

    log p_u = slope * f_u + shift_u + const

Two classes are Platt's sigmoid of the score; more have one slope for all classes. As in [1]_ the targets are not zero
and one but the chances that a sample more of each class leaves, so that scores that separate the classes do not make
the slope infinite.

.. [1] J. Platt, Probabilistic outputs for support vector machines, Advances in Large Margin Classifiers, 1999.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from multikernel.estimators.splits import splits_of


@dataclass(frozen=True)
class Calibration:
    """From scores to logarithms of probabilities.

    Attributes
    ----------
    slope : float
        Factor of the scores, not negative.
    shifts : ndarray of shape (n_classes,)
        Added to the scaled scores.
    """

    slope: float
    shifts: np.ndarray

    def log_shares(self, scores: np.ndarray) -> np.ndarray:
        """Return logarithms of the probabilities, up to a constant in each row, shape (n_samples, n_classes)."""
        return self.slope * as_columns(scores) + self.shifts


def as_columns(scores: np.ndarray) -> np.ndarray:
    """Return a score for each class: of two classes zero and the score."""
    return np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores


def calibrate(scores: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None) -> Calibration:
    """Learn slope and shifts by maximum likelihood.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
        What a decision function gives for samples that its model has not seen.
    codes : ndarray of int
        The number of each sample's class.
    weight : ndarray of shape (n_samples,), optional
        Weights of the samples.

    Examples
    --------
    >>> import numpy as np
    >>> scores, codes = np.linspace(-3.0, 3.0, 61), np.repeat([0, 1], [31, 30])
    >>> found = calibrate(scores, codes)
    >>> bool(found.slope > 1), bool(found.log_shares(np.array([2.0]))[0, 1] > found.log_shares(np.array([2.0]))[0, 0])
    (True, True)
    """
    F = as_columns(np.asarray(scores, float))
    n, c = F.shape
    unit = float(np.abs(F).max()) or 1.0
    F = F / unit
    w = np.ones(n) if weight is None else np.asarray(weight, float) * n / np.sum(weight)
    counts = np.bincount(codes, w, c)
    targets = np.full((n, c), 1.0) / (counts[codes, None] + c)
    targets[np.arange(n), codes] += (counts / (counts + c))[codes]

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        Z = x[0] * F + x[1:]
        off = w[:, None] * (softmax(Z, axis=1) - targets)
        value = w @ logsumexp(Z, axis=1) - np.sum(w[:, None] * targets * Z)
        return value / n, np.append(np.sum(off * F), off.sum(axis=0)) / n

    found = minimize(
        loss, np.append(1.0, np.zeros(c)), jac=True, method="L-BFGS-B", bounds=[(0, None)] + [(None, None)] * c
    )
    return Calibration(float(found.x[0] / unit), found.x[1:] - found.x[1:].mean())


def calibrate_by_folds(
    estimator: Any, X: Any, y: np.ndarray, codes: np.ndarray, weight: np.ndarray | None, folds: int = 5
) -> Calibration:
    """Train an estimator without each fold in turn, and calibrate the scores of the folds.

    Parameters
    ----------
    estimator : estimator
        With its parameters; it is cloned.
    X, y, codes, weight : samples, classes, their numbers, sample weights or None
        What it was fitted on.
    folds : int
        How many, as many as scikit-learn's `SVC` takes; fewer where a class has fewer samples.
    """
    if hasattr(X, "delayed"):
        raise ValueError(
            f"The 'probability' parameter of {type(estimator).__name__} must be False for samples in partitions: "
            "calibration takes samples in memory. Got True instead."
        )
    smallest = int(np.bincount(codes).min())
    if smallest < 2:
        raise ValueError(
            f"The 'probability' parameter of {type(estimator).__name__} must be False where a class has one sample: "
            "probabilities are calibrated on samples that are left out in training. Got True instead."
        )
    model = clone(estimator).set_params(probability=False, verbose=0, callback=None, checkpoint=None)
    scores = None
    for rows, test in splits_of(type(estimator).__name__, min(folds, smallest), codes, True):
        given = {} if weight is None else {"sample_weight": weight[rows]}
        found = model.fit(_safe_indexing(X, rows), y[rows], **given).decision_function(_safe_indexing(X, test))
        scores = np.zeros((len(y), *found.shape[1:])) if scores is None else scores
        scores[test] = found
    assert scores is not None
    return calibrate(scores, codes, weight)
