"""Samples and their weights as estimators take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_sample_weight, _check_y, _num_samples, validate_data

from multikernel.gram.stack import KernelStack, stack_kernels
from multikernel.kernels.sequences.samples import is_text
from multikernel.kernels.table import as_samples, is_frame, is_numeric
from multikernel.twostage.base import require_one_kind


def check_samples(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return valid samples: a float64 array, a CSR matrix, a data frame, `Sequences`, a `Table` or a stack.

    Data frames stay what they are in fit, where kernels may name their columns; later those of numbers
    become arrays, and others tables.

    Sets: ``n_features_in_`` and ``feature_names_in_`` of the estimator when ``reset``.
    """
    owner = type(estimator).__name__
    if estimator._precomputed:
        return _check_stack(estimator, X, reset)
    if isinstance(X, KernelStack):
        raise ValueError(
            f"The 'kernels' parameter of {owner} must be 'precomputed' for a KernelStack. "
            f"Got {estimator.kernels!r} instead."
        )
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1 and is_text(X[:, 0]):
        X = X[:, 0]
    if is_text(X):
        return as_samples(X)
    if is_frame(X) and not is_numeric(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if _num_samples(X) < 1:
            raise ValueError(f"{owner} needs at least one sample. Got a data frame without rows.")
        return X if reset else as_samples(X)
    checked = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=np.float64)
    return X if reset and is_frame(X) else checked


def as_numbers(X: Any) -> Any:
    """Return a data frame of numbers as an array, one of texts as well as a table, anything else as it is."""
    return np.ascontiguousarray(X, dtype=np.float64) if is_frame(X) and is_numeric(X) else as_samples(X)


def check_targets(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """Return the targets as a 1-D array, one per sample."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    y = column_or_1d(y, warn=True)
    require_one_kind(type(estimator).__name__, y)
    assert_all_finite(y, input_name="y")
    check_consistent_length(X, y)
    return y


def check_numbers(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """Return the targets of a regression in float64: 1-D for one target, else one column for each."""
    if y is None or getattr(y := np.asarray(y), "ndim", 1) < 2 or y.shape[1] < 2:
        y = _check_y(check_targets(estimator, X, y), y_numeric=True, estimator=estimator)
        return y.astype(np.float64)
    y = check_array(y, dtype=np.float64, input_name="y")
    check_consistent_length(X, y)
    return y


def check_weight(X: Any, sample_weight: Any) -> np.ndarray | None:
    """Return non-negative sample weights, None for none."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("The sample weights must not all be zero. Got only zeros.")
    return weight


def _check_stack(estimator: Any, X: Any, reset: bool) -> KernelStack:
    if not isinstance(X, KernelStack):
        if not isinstance(X, np.ndarray) or X.ndim != 3 or (reset and X.shape[1] != X.shape[2]):
            shape = f"an array of shape {X.shape}" if isinstance(X, np.ndarray) else type(X).__name__
            raise ValueError(
                "With kernels='precomputed' X must be stack_kernels(...) of square matrices, or an array of "
                f"shape (n_kernels, n_rows, n_train). Got {shape} instead."
            )
        X = stack_kernels(X)
    if reset:
        estimator.n_features_in_ = X.shape[1]
    return X
