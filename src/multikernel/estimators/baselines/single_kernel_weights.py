"""Weights from the validated score of each kernel alone.

BestSingleKernel   beta = 1 at the kernel of the best mean score pi_k, 0 elsewhere
PWMK               beta_k proportional to max(0, pi_k - threshold)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from multikernel.estimators.baselines.each_kernel import validated_scores
from multikernel.estimators.baselines.messages import Tell
from multikernel.estimators.baselines.weights import KernelWeights, Rules, TargetValues, shares
from multikernel.gram.base import Gram
from multikernel.kernels.base import is_integer, is_real
from multikernel.solution import INTERRUPTED


def _is_estimator(value: Any) -> bool:
    return value is None or (hasattr(value, "fit") and hasattr(value, "get_params"))


def _is_cv(value: Any) -> bool:
    return value is None or (is_integer(value) and value >= 2) or hasattr(value, "split") or hasattr(value, "__iter__")


_RULES: Rules = {
    "estimator": (_is_estimator, "None or an estimator that takes a precomputed kernel"),
    "cv": (_is_cv, "None, an integer of at least 2, a splitter or an iterable of splits"),
}


class _Validated(KernelWeights):
    """Base class: the mean score of each kernel."""

    estimator: Any
    cv: Any
    scoring: Any

    def _means(self, gram: Gram, targets: TargetValues, tell: Tell) -> np.ndarray:
        """Return the mean scores, minus infinity for kernels that Ctrl-C left out.

        Sets: ``scores_`` and ``status_``.
        """
        owner = type(self).__name__
        self.scores_, reached = validated_scores(owner, gram, targets, self.estimator, self.cv, self.scoring, tell)
        if not reached.all():
            self.status_ = INTERRUPTED
        return np.where(reached, self.scores_.mean(axis=1), -np.inf)

    def _reached(self) -> str:
        missing = int(np.isnan(self.scores_).all(axis=1).sum())
        worth = "The weights are those of these kernels; the others have the weight zero."
        return f"{len(self.scores_) - missing} of {len(self.scores_)} kernels. {worth}"


class BestSingleKernel(_Validated):
    """The one kernel with the best mean score under cross-validation; the first of equals.

    Parameters
    ----------
    estimator : estimator or None, default=None
        What is trained on each kernel; None for scikit-learn's ``SVC(kernel="precomputed")``, for a regression ``SVR``.
    cv : int, splitter, iterable or None, default=None
        Folds: their number (None for 5, stratified by class), a splitter of scikit-learn, or pairs (train, test).
    scoring : str, callable or None, default=None
        Scorer; None for the estimator's own.

    Attributes
    ----------
    weights_ : ndarray of shape (p,)
        1 for the chosen kernel, 0 for the others.
    best_index_ : int
        The chosen kernel.
    scores_ : ndarray of shape (p, n_splits)
        Scores on the folds; NaN for kernels that Ctrl-C left out.
    status_ : str
        "converged" or "interrupted".

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.estimators.baselines import BestSingleKernel
    >>> x = np.arange(-10.0, 10.0) + 0.5
    >>> BestSingleKernel().fit([np.eye(20), np.outer(x, x)], x > 0).weights_
    array([0., 1.])
    """

    _rules = _RULES

    def __init__(self, estimator=None, *, cv=None, scoring=None):
        self.estimator = estimator
        self.cv = cv
        self.scoring = scoring

    def _learn(self, gram, targets, tell):
        self.best_index_ = int(self._means(gram, targets, tell).argmax())
        return np.eye(1, gram.n_kernels, self.best_index_)[0]


class PWMKWeights(_Validated):
    """Weights proportional to how far each kernel's validated score lies above a threshold [1]_.

        beta_k = max(0, pi_k - threshold) / sum_j max(0, pi_j - threshold)

    pi_k is the mean score of a predictor trained on kernel k alone; equal weights where no kernel is above the
    threshold.

    Parameters
    ----------
    estimator : estimator or None, default=None
        What is trained on each kernel; None for scikit-learn's ``SVC(kernel="precomputed")``, for a regression ``SVR``.
    threshold : float, default=0.0
        Score that counts as nothing; for two balanced classes and accuracies 0.5 is chance.
    cv : int, splitter, iterable or None, default=None
        Folds: their number (None for 5, stratified by class), a splitter of scikit-learn, or pairs (train, test).
    scoring : str, callable or None, default=None
        Scorer; None for the estimator's own.

    Attributes
    ----------
    weights_ : ndarray of shape (p,)
        Weights of sum one.
    scores_ : ndarray of shape (p, n_splits)
        Scores on the folds; NaN for kernels that Ctrl-C left out.
    status_ : str
        "converged" or "interrupted".

    References
    ----------
    .. [1] H. Tanabe, T. B. Ho, C. H. Nguyen, S. Kawasaki, Simple but effective methods for combining kernels in
    computational biology, RIVF 2008; M. Goenen, E. Alpaydin, JMLR 12:2211-2268, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.estimators.baselines import PWMKWeights
    >>> x = np.arange(-10.0, 10.0) + 0.5
    >>> PWMKWeights(threshold=0.5).fit([np.eye(20), np.outer(x, x)], x > 0).weights_
    array([0., 1.])
    """

    _rules = {**_RULES, "threshold": (is_real, "a number")}  # noqa: RUF012

    def __init__(self, estimator=None, *, threshold=0.0, cv=None, scoring=None):
        self.estimator = estimator
        self.threshold = threshold
        self.cv = cv
        self.scoring = scoring

    def _learn(self, gram, targets, tell):
        return shares(self._means(gram, targets, tell) - self.threshold)
