"""The table of a search, `cv_results_`, as scikit-learn's GridSearchCV lays it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.ma import MaskedArray
from scipy.stats import rankdata

from multikernel.estimators.path import FoldResult


def results_table(points: Sequence[Mapping[str, Any]], folds: Sequence[FoldResult]) -> dict[str, Any]:
    """Return times, parameters and scores, one row for each point of the grid.

    Parameters
    ----------
    points : sequence of dict
        The grid.
    folds : sequence of FoldResult
        What each fold found.
    """
    table: dict[str, Any] = {}
    for name, values in (
        ("fit_time", [fold.fit_seconds for fold in folds]),
        ("score_time", [fold.score_seconds for fold in folds]),
    ):
        table[f"mean_{name}"], table[f"std_{name}"] = np.mean(values, axis=0), np.std(values, axis=0)
    for name in sorted({name for point in points for name in point}):
        table[f"param_{name}"] = _column([point[name] for point in points])
    table["params"] = list(points)
    scores = np.array([fold.scores for fold in folds])
    for s, row in enumerate(scores):
        table[f"split{s}_test_score"] = row
    mean = scores.mean(axis=0)
    table["mean_test_score"], table["std_test_score"] = mean, scores.std(axis=0)
    table["rank_test_score"] = _ranks(mean)
    return table


def _column(values: list) -> MaskedArray:
    kind = np.result_type(*[np.asarray(value).dtype for value in values])
    return MaskedArray(np.array(values, dtype=kind), mask=np.zeros(len(values), bool))


def _ranks(mean: np.ndarray) -> np.ndarray:
    """1 for the best; what has no score shares the last place."""
    if np.isnan(mean).all():
        return np.ones(len(mean), np.int32)
    worst = np.nanmin(mean) - 1
    return rankdata(-np.where(np.isnan(mean), worst, mean), method="min").astype(np.int32)


def weights_path(folds: Sequence[FoldResult], n_points: int) -> np.ndarray:
    """Return the weights of every fold and point, (n_splits, n_points, ..., p), NaN where a fit failed.

    A fold that lacks a class has fewer problems than the others, and its weights are left out.
    """
    shapes = [np.shape(weights) for fold in folds for weights in fold.weights if weights is not None]
    shape = max(shapes, key=lambda shape: (len(shape), shape), default=(0,))
    path = np.full((len(folds), n_points, *shape), np.nan)
    for s, fold in enumerate(folds):
        for i, weights in enumerate(fold.weights):
            if weights is not None and np.shape(weights) == shape:
                path[s, i] = weights
    return path
