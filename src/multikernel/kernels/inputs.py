"""Samples as kernels on vectors take them: a dense float64 array, or a CSR array in canonical form."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

# a dense float64 array or a CSR array
Matrix: TypeAlias = Any


def as_matrix(X: ArrayLike, owner: str = "The kernel") -> Matrix:
    """Return finite real samples of shape (n, d), in float64, without changing the caller's.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, d)
        Samples.
    owner : str
        Who asks, for the error sentences.

    Returns
    -------
    ndarray or csr_array of shape (n, d)
        The same numbers; possibly the caller's array itself, so never to be written to.
    """
    if sparse.issparse(X):
        values = _canonical(X, owner)
        _check_finite(values.data, owner)
        return values
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    if array.dtype.kind in "USO" and any(isinstance(value, (str, bytes)) for value in array.flat[:1]):
        raise ValueError(f"{owner} needs numeric columns. Got strings instead.")
    if np.iscomplexobj(array):
        raise ValueError(f"{owner} needs real numbers. Got complex ones instead.")
    try:
        array = np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{owner} needs numeric columns ({error}).") from error
    if array.ndim != 2 or np.ndim(X) != 2:
        raise ValueError(f"{owner} needs samples of shape (n, d). Got an array of shape {np.shape(X)} instead.")
    _check_finite(array, owner)
    return array


def as_weights(sample_weight: ArrayLike | None, n: int) -> np.ndarray | None:
    """Return non-negative float64 weights of shape (n,), or None for equal weights."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"The sample weights must have shape ({n},). Got {weight.shape} instead.")
    if not np.isfinite(weight).all() or weight.min(initial=0.0) < 0 or weight.sum() <= 0:
        raise ValueError("The sample weights must be finite and non-negative, and not all zero.")
    return weight


def alike(X, Y):
    """Return both samples sparse or both dense."""
    if sparse.issparse(X) and isinstance(Y, np.ndarray):
        return X.toarray(), Y
    if sparse.issparse(Y) and isinstance(X, np.ndarray):
        return X, Y.toarray()
    return X, Y


def dense(X: Matrix) -> np.ndarray:
    """Return the samples as a dense array."""
    return X.toarray() if sparse.issparse(X) else X


def check_non_negative(X: Matrix, owner: str) -> None:
    """Raise unless every value is at least zero."""
    values = X.data if sparse.issparse(X) else X
    if values.size and values.min() < 0:
        raise ValueError(f"{owner} needs non-negative columns. Got the value {values.min():.3g} instead.")


def _canonical(X, owner: str) -> sparse.csr_array:
    if np.iscomplexobj(X):
        raise ValueError(f"{owner} needs real numbers. Got complex ones instead.")
    result = sparse.csr_array(X, dtype=np.float64)
    if not result.has_canonical_format:
        # summing duplicates works in place, and `result` may still share the caller's arrays
        result = result.copy()
        result.sum_duplicates()
    if result.indices.dtype != np.int32 and max(result.nnz, *result.shape) < 2**31:
        # compiled routines take 32-bit indices
        parts = (result.data, result.indices.astype(np.int32), result.indptr.astype(np.int32))
        result = sparse.csr_array(parts, shape=result.shape)
    return result


def _check_finite(values: np.ndarray, owner: str) -> None:
    # a finite sum proves that every term is finite; an infinite one may be an overflow
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(values.sum()) and not np.isfinite(values).all():
            raise ValueError(f"{owner} got NaN or infinity in its columns.")
