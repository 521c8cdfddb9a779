"""Samples in partitions of Dask: what they must be in `fit`, and predictions that are arrays of Dask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from multikernel.gram.partitions import PartitionedSamples


def check_partitions(estimator: Any, X: Any) -> PartitionedSamples:
    """Return samples in partitions of Dask.

    Sets: ``n_features_in_`` and ``feature_names_in_`` of the estimator.
    """
    owner = type(estimator).__name__
    if not estimator._in_partitions:
        raise ValueError(
            f"X must be samples in memory for {owner}. Got partitions of Dask, on which MKLClassifier and MKLRegressor "
            "alone are trained."
        )
    # which imports Dask
    from multikernel.gram.partitions import PartitionedSamples

    found = X if isinstance(X, PartitionedSamples) else PartitionedSamples(X)
    if not len(found):
        raise ValueError(f"{owner} needs at least one sample. Got partitions without rows.")
    if found.ndim == 2:
        estimator.n_features_in_ = found.shape[1]
    if found.names is not None and all(isinstance(name, str) for name in found.names):
        estimator.feature_names_in_ = np.asarray(found.names, object)
    return found


def by_partitions(estimator: Any, name: str, X: Any, tail: tuple[int, ...], dtype: Any = np.float64) -> Any:
    """Return what a method makes of samples in partitions, as an array of Dask with the same partitions.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator.
    name : str
        Its method.
    X : array or data frame of Dask
        Samples.
    tail : tuple of int
        Shape of what the method returns for one sample.
    dtype : dtype
        Type of it.
    """
    import dask.array as da
    from dask import delayed

    check_is_fitted(estimator)
    if X.ndim == 2 and hasattr(X, "chunks"):
        X = X.rechunk({1: -1})
    parts = np.ravel(np.array(X.to_delayed(), object))
    sizes = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(parts)
    model = delayed(estimator, pure=True)
    made = [
        da.from_delayed(getattr(model, name)(part), (size, *tail), dtype)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(made, axis=0, allow_unknown_chunksizes=True)
