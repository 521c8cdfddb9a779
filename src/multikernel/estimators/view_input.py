"""Views as X of an estimator: made from what the user has, and in the order of fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from multikernel.kernels.views.container import Views
from multikernel.kernels.views.proposal import make_views


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
