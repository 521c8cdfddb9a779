"""One kernel at a time under cross-validation: a predictor trained on K_k[train, train], judged on K_k[test, train].

Kernels that lie in memory are read where they lie and shared among threads; of the others one at a time is formed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isqrt
from threading import Lock
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.svm import SVC, SVR
from sklearn.utils.validation import has_fit_parameter

from multikernel.estimators.baselines.messages import Tell, silent
from multikernel.estimators.baselines.weights import TargetValues, team_of
from multikernel.estimators.splits import splits_of
from multikernel.gram.base import Gram
from multikernel.gram.slices import take_block
from multikernel.threads import Team

# iterations of scikit-learn's machines, LIBSVM's own limit: without one they go on where rounding hides the optimum
_MOST_ITERATIONS = 10_000_000


def each_kernel(
    gram: Gram,
    call: Callable[[int, Callable[[np.ndarray, np.ndarray], np.ndarray]], Any],
    dtype: np.dtype | type = np.float64,
    tell: Tell = silent,
) -> list:
    """Return call(k, block) for every kernel, ``block(rows, columns)`` giving a copy of entries of kernel k.

    Ctrl-C ends the work: what is returned is then None for the kernels that were left out. It passes through where none
    or all of them were done. ``tell`` is told how many kernels are done.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> every = np.arange(2)
    >>> each_kernel(DenseGram(np.stack([np.eye(2), np.ones((2, 2))])), lambda k, block: block(every, every).sum())
    [np.float64(2.0), np.float64(4.0)]
    """
    p = gram.n_kernels
    direct = [gram.stored(k) for k in range(p)]
    everything = np.arange(gram.n_samples)
    found: dict[int, Any] = {}
    one_at_a_time = Lock()

    def stored(K: np.ndarray, factor: float, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        out = np.empty((len(rows), len(columns)), dtype)
        take_block(K, rows, columns, np.dtype(dtype), out)
        if factor != 1.0:
            out *= factor
        return out

    def one(k: int) -> None:
        result = call(k, partial(stored, *(direct[k] or (gram.rows(everything, np.array([k]))[0], 1.0))))
        with one_at_a_time:
            found[k] = result
            tell({"done": len(found), "of": p, "parts": "kernels"})

    formed = any(matrix is None for matrix in direct)
    # each thread holds a copy of its kernel: the root of p of them are few beside all p
    at_once = 1 if formed else min(team_of(gram).n_threads, isqrt(p))
    try:
        Team(at_once).run(partial(one, k) for k in range(p))
    except KeyboardInterrupt:
        if len(found) in (0, p):
            raise
    return [found.get(k) for k in range(p)]


def default_estimator(classification: bool) -> Any:
    """Return scikit-learn's support vector machine for the task, on a precomputed kernel, that ends in any case."""
    return (SVC if classification else SVR)(kernel="precomputed", max_iter=_MOST_ITERATIONS)


def validated_scores(
    owner: str, gram: Gram, targets: TargetValues, estimator: Any, cv: Any, scoring: Any, tell: Tell = silent
) -> tuple[np.ndarray, np.ndarray]:
    """Return the score of the estimator on each kernel and fold, (p, n_splits), and which kernels were reached, (p,).

    The scores of kernels that Ctrl-C left out are NaN.

    Parameters
    ----------
    owner : str
        Who is named where the folds will not do.
    gram : Gram
        The kernels.
    targets : TargetValues
        The targets.
    estimator : estimator or None
        Takes a precomputed kernel; None for `default_estimator`.
    cv : int, splitter, iterable or None
        Folds, as scikit-learn takes them; stratified by class.
    scoring : str, callable or None
        Scorer; None for the estimator's own.
    tell : callable
        Told how many kernels are done.
    """
    estimator = default_estimator(bool(targets.n_classes)) if estimator is None else estimator
    y = targets.values
    splits = splits_of(owner, cv, y, targets.n_classes > 0)
    scorer = check_scoring(estimator, scoring)
    weighted = targets.weighted and has_fit_parameter(estimator, "sample_weight")

    def scores(k: int, block: Callable) -> list[float]:
        values = []
        for train, test in splits:
            options = {"sample_weight": targets.weight[train]} if weighted else {}
            model = clone(estimator).fit(block(train, train), y[train], **options)
            options = {"sample_weight": targets.weight[test]} if targets.weighted else {}
            values.append(float(scorer(model, block(test, train), y[test], **options)))
        return values

    found = each_kernel(gram, scores, tell=tell)
    values = np.array([[np.nan] * len(splits) if row is None else row for row in found])
    return values, np.array([row is not None for row in found])
