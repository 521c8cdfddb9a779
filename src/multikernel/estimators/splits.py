"""Splits of the samples into training and test parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from multikernel.kernels.base import is_integer

Split = tuple[np.ndarray, np.ndarray]


def splits_of(owner: str, cv: Any, y: np.ndarray, classifier: bool, X: Any = None, groups: Any = None) -> list[Split]:
    """Return the folds of ``cv`` as positions among the samples, or raise one sentence where it has none.

    Parameters
    ----------
    owner : str
        Who is named in the sentence.
    cv : int, splitter, iterable or None
        Folds, as scikit-learn takes them.
    y : ndarray of shape (n,)
        Targets.
    classifier : bool
        Whether a number of folds is stratified by class.
    X, groups : samples and array of shape (n,), optional
        For a splitter that takes them.

    Examples
    --------
    >>> import numpy as np
    >>> [test.tolist() for _, test in splits_of("me", 2, np.array([0, 0, 1, 1]), True)]
    [[0, 2], [1, 3]]
    """
    n, splits = len(y), []
    listed = hasattr(cv, "__iter__") and not isinstance(cv, str) and not hasattr(cv, "split")
    try:
        if not (is_integer(cv) and cv < 2):
            found = check_cv(cv, y, classifier=classifier).split(np.zeros((n, 1)) if X is None else X, y, groups)
            splits = [(_positions(train, n), _positions(test, n)) for train, test in found]
    except (TypeError, ValueError, IndexError):
        if not listed:
            raise
    if not splits:
        shown = "a list" if listed and len(repr(cv)) > 80 else repr(cv)
        raise ValueError(
            f"The 'cv' parameter of {owner} must be None, an integer of at least 2, a splitter or a list of pairs "
            f"(train, test) of sample numbers, not empty. Got {shown} instead."
        )
    return splits


def _positions(idx: Any, n: int) -> np.ndarray:
    idx = np.asarray(idx)
    return np.flatnonzero(idx) if idx.dtype == bool else np.arange(n)[idx]
