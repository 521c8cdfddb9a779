"""Weights and contributions of a fitted model by name, kernel by kernel or view by view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from multikernel.kernels.spec import view_of

# view of kernels without a name of their own
_WHOLE = "all columns"


def kernels_of(estimator: Any) -> list[str]:
    """Return the names of the kernels of a fitted estimator, without those of kernels on the classes."""
    products = getattr(estimator, "output_kernel_", None) is not None
    return [name.split(" x ")[0] if products else name for name in estimator.kernel_names_]


def views_of(estimator: Any) -> list[str]:
    """Return the view that each kernel of a fitted estimator belongs to.

    It is the name of an entry (name, kernel, columns) or of a view of `Views`; of other kernels what `view_of` finds in
    their names: a group, a column, or the part before the colon. A precomputed kernel is a view of its own.
    """
    by_view = isinstance(estimator.kernels, Mapping)
    given = set(estimator.kernels) if by_view else {name for name, _ in estimator._named_kernels}
    if hasattr(estimator, "missing_in_"):
        # the samples were `Views`
        given |= set(estimator.feature_names_in_)
    found = []
    for name in kernels_of(estimator):
        view = next((own for own in (name, name.partition(": ")[0]) if own in given), view_of(name))
        alone = view == name and name not in given and not estimator._precomputed
        found.append(_WHOLE if alone else view)
    return found


def weight_columns(estimator: Any) -> dict[str, list]:
    """Return the columns of the table: problem (where there are several), view, kernel, weight, contribution."""
    weights = np.atleast_2d(estimator.weights_)
    parts = np.atleast_2d(getattr(estimator, "kernel_contributions_", np.full(weights.shape[1], np.nan)))
    parts = np.broadcast_to(parts, weights.shape)
    names, views, T = estimator.kernel_names_, views_of(estimator), len(weights)
    table: dict[str, list] = {}
    if T > 1:
        labels = getattr(estimator, "pairs_", getattr(estimator, "classes_", range(T)))
        labels = [str(label) for label in labels] if len(labels) == T else [str(t) for t in range(T)]
        table["problem"] = np.repeat(labels, len(names)).tolist()
    table |= {"view": views * T, "kernel": list(names) * T}
    return table | {"weight": weights.ravel().tolist(), "contribution": parts.ravel().tolist()}


def view_columns(estimator: Any) -> dict[str, list]:
    """Return the columns of the table with one row for each view: number of kernels, sums of the other columns."""
    table = weight_columns(estimator)
    keys = list(zip(*(table[name] for name in ("problem", "view") if name in table), strict=True))
    order = list(dict.fromkeys(keys))
    rows = [[i for i, key in enumerate(keys) if key == wanted] for wanted in order]
    out: dict[str, list] = {"problem": [key[0] for key in order]} if "problem" in table else {}
    out |= {"view": [key[-1] for key in order], "kernels": [len(at) for at in rows]}
    for name in ("weight", "contribution"):
        out[name] = [float(sum(table[name][i] for i in at)) for at in rows]
    return out


def named_weights(estimator: Any, by: str) -> dict[str, float]:
    """Return the weights by "view" or "kernel"; none before a fit, and none of several problems."""
    if not hasattr(estimator, "weights_") or np.ndim(estimator.weights_) > 1:
        return {}
    table = view_columns(estimator) if by == "view" else weight_columns(estimator)
    return dict(zip(table[by], table["weight"], strict=True))


def as_frame(table: dict[str, list]) -> Any:
    """Return a pandas data frame, or the columns as a dict where pandas is not installed."""
    try:
        import pandas as pd
    except ImportError:
        return table
    return pd.DataFrame(table)


class AsTable:
    """A result that can be read as a table: ``_columns`` returns its columns by name."""

    def _columns(self) -> dict[str, list]:
        raise NotImplementedError

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict for each row, by the names of the columns."""
        columns = self._columns()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def frame(self) -> Any:
        """Return a pandas data frame of the same rows, or a dict of lists without pandas."""
        return as_frame(self._columns())
