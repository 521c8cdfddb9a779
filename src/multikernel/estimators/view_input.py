"""Views and stacks of kernels as X of an estimator: made from what the user has, and in the order of fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from multikernel.gram.stack import KernelStack, stack_kernels
from multikernel.kernels.views.proposal import make_views
from multikernel.kernels.views.views import Views


def check_views(estimator: Any, X: Any, reset: bool, auto: bool) -> Views:
    """Return `Views`: in fit with the proposal of `make_views` where ``auto``; later those of fit, in that order.

    Sets: ``n_features_in_``, ``feature_names_in_`` (the views) and ``missing_in_`` (how many samples lack each view,
    and how many values others lack) of the estimator when ``reset``.
    """
    views = X if isinstance(X, Views) else make_views(X, verbose=False) if auto else Views(X)
    if not len(views):
        raise ValueError(f"{type(estimator).__name__} needs at least one sample. Got views without rows.")
    if reset:
        estimator.n_features_in_, estimator.feature_names_in_ = views.shape[1], np.array(views.names, dtype=object)
        estimator.missing_in_ = views.missing()
        return make_views(views, verbose=False) if auto and views.kernels is None else views
    known = list(estimator.feature_names_in_) if hasattr(estimator, "feature_names_in_") else None
    if views.names != known:
        absent = [name for name in known or () if name not in views.names]
        if known is None or absent or len(known) < len(views.names):
            raise ValueError(
                f"X of {type(estimator).__name__} must hold the views of fit, {known}. Got {views.names} instead."
            )
        views = views.take_views(known)
    return views


def check_stack(estimator: Any, X: Any, reset: bool) -> KernelStack:
    """Return the stack of kernels; refuse what is none, and other devices where the estimator cannot use them."""
    if isinstance(X, Mapping):
        X = stack_kernels(X)
    if not isinstance(X, KernelStack):
        if not hasattr(X, "__dlpack__") or X.ndim != 3 or (reset and X.shape[1] != X.shape[2]):
            shape = f"an array of shape {X.shape}" if hasattr(X, "shape") else type(X).__name__
            raise ValueError(
                "With kernels='precomputed' X must be stack_kernels(...) of square matrices, or an array of "
                f"shape (n_kernels, n_rows, n_train). Got {shape} instead."
            )
        X = stack_kernels(X)
    if type(X) is not KernelStack and not estimator._on_device:
        got = f"tensors on {X.device}" if hasattr(X, "train_tensors") else "arrays of Dask"
        raise ValueError(
            f"X must be arrays in memory for {type(estimator).__name__}, which works on the host only. "
            f"Got {got} instead."
        )
    if reset:
        estimator.n_features_in_ = X.shape[1]
    return X
