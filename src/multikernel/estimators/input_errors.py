"""Sentences about samples and targets that a fit cannot take: what was found where, and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from multikernel.kernels.inputs import find_gaps, first_gap, resolve_columns


def naming_gaps(estimator: Any, X: Any, error: ValueError) -> ValueError:
    """Return the error about X, for values that are not finite with their row, column and views."""
    text = str(error)
    if not text.startswith("Input X contains"):
        return error
    try:
        gaps = find_gaps(X if sparse.issparse(X) else np.asarray(X, np.float64))
    except (TypeError, ValueError):
        gaps = []
    if not gaps:
        return error
    readers = [repr(name) for name, _, columns in estimator._entries if gaps[0][1] in _positions(columns, X)]
    views = f" The column belongs to the view{'s' if len(readers) > 1 else ''} {', '.join(readers)}." if readers else ""
    return ValueError(
        f"{text.splitlines()[0]} Got {first_gap(X, gaps)}.{views} {type(estimator).__name__} needs finite numbers: "
        "fill the gaps before, for example by sklearn.impute.SimpleImputer in a pipeline, or leave these samples out."
    )


def _positions(columns: Any, X: Any) -> Any:
    """Return the positions of the columns of a view."""
    try:
        found = resolve_columns(columns, X)
    except ValueError:
        return ()
    return range(X.shape[1]) if found is None else found


def require_numbers(owner: str, y: Any) -> None:
    """Raise where the targets of a regression are texts that are no numbers."""
    array = np.asarray(y)
    if array.dtype.kind not in "OUS":
        return
    for value in array.flat:
        if isinstance(value, (str, bytes)):
            try:
                float(value)
            except ValueError:
                kind = owner.replace("Regressor", "Classifier")
                raise ValueError(
                    f"y of {owner} must hold numbers. Got the text {str(value)!r} instead: for classes take {kind}."
                ) from None
