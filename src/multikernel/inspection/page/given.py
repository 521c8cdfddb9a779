"""Checks of what the report is given."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted

from multikernel.estimators.base import BaseMKL
from multikernel.inspection.view_importance import ViewImportance
from multikernel.kernels.views.reading import is_views
from multikernel.kernels.views.views import Views


def checked_model(owner: str, model: Any) -> tuple[Any, Any]:
    """Return the fitted estimator that learned the mix, and what a pipeline does before it, None without."""
    steps = len(getattr(model, "steps", ()))
    last, before = (model[-1], model[:-1] if steps > 1 else None) if steps else (model, None)
    if not isinstance(last, BaseMKL):
        raise ValueError(
            f"The 'model' parameter of {owner} must be a fitted estimator of multikernel, or a Pipeline that ends in "
            f"one. Got {type(last).__name__} instead."
        )
    check_is_fitted(last)
    return last, before


def as_samples_of(last: Any, X: Any) -> Any:
    """Return several tables as `Views`, which have rows; other samples as they are."""
    return Views(X) if is_views(X) and not last._precomputed else X


def checked_targets(owner: str, name: str, X: Any, y: Any) -> np.ndarray:
    """Return the targets, or raise one sentence where there is not one for each sample."""
    n, found = _num_samples(X), np.asarray(y)
    if found.ndim not in (1, 2) or len(found) != n or found.dtype.kind == "c":
        raise ValueError(
            f"The '{name}' parameter of {owner} must be a target for each of {n} samples. Got "
            f"{type(y).__name__} of shape {found.shape} instead."
        )
    return found


def check_importance(owner: str, importance: Any) -> None:
    """Raise one sentence where the importance is not what `view_importance` returns."""
    if importance is not None and not isinstance(importance, ViewImportance):
        raise ValueError(
            f"The 'importance' parameter of {owner} must be what view_importance returns, or None. "
            f"Got {type(importance).__name__} instead."
        )
