"""Samples, as kernels take them: numbers in a matrix, their rows, their columns and their weights.

Kernels on vectors take a dense float64 array, or a CSR array in canonical form. A choice of columns (by position,
slice, name, mask or selector) is resolved to positions once, on the training samples; `take_columns` applies the
positions to any samples.
"""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

# a dense float64 array or a CSR array
Matrix: TypeAlias = Any


def len_of(X) -> int:
    """Return the number of samples."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def as_matrix(X: ArrayLike, owner: str = "The kernel") -> Matrix:
    """Return finite real samples of shape (n, d) in float64; the caller's array is not changed.

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
    array: Any = X if isinstance(X, np.ndarray) or sparse.issparse(X) else np.asarray(X)
    if np.iscomplexobj(array):
        raise ValueError(f"{owner} needs real numbers. Got complex ones instead.")
    if sparse.issparse(array):
        matrix = _canonical(array)
    else:
        if array.dtype.kind in "USO" and any(isinstance(value, (str, bytes)) for value in array.flat[:1]):
            raise ValueError(f"{owner} needs numeric columns. Got strings instead.")
        try:
            matrix = np.ascontiguousarray(array, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{owner} needs numeric columns ({error}).") from error
        if array.ndim != 2:
            raise ValueError(f"{owner} needs samples of shape (n, d). Got an array of shape {array.shape} instead.")
    try:
        finite(matrix.data if sparse.issparse(array) else matrix, "")
    except ValueError:
        place = first_gap(X, find_gaps(matrix))
        raise ValueError(f"{owner} got NaN or infinity in its columns: {place} among these.") from None
    return matrix


def find_gaps(matrix: Matrix) -> list[tuple[int, int, float]]:
    """Return row, column and value of all entries that are not finite, in the order of the rows."""
    if sparse.issparse(matrix):
        rows, columns, values = sparse.find(matrix)
    else:
        rows, columns = np.nonzero(~np.isfinite(matrix))
        values = matrix[rows, columns]
    found = zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True)
    return sorted((gap for gap in found if not np.isfinite(gap[2])), key=lambda gap: gap[:2])


def first_gap(X: Any, gaps: list[tuple[int, int, float]]) -> str:
    """Say where the first value that is not finite is, and how many more there are.

    Parameters
    ----------
    X : samples
        As the caller gave them: a data frame has names of columns.
    gaps : list
        What `find_gaps` found.

    Examples
    --------
    >>> first_gap(None, find_gaps(np.array([[0.0, 1.0], [2.0, np.nan], [np.inf, 3.0]])))
    'NaN in row 1, column 1, and 1 more'
    """
    row, column, value = gaps[0]
    name = repr(X.columns[column]) if hasattr(X, "columns") else column
    more = f", and {len(gaps) - 1} more" if len(gaps) > 1 else ""
    return f"{'NaN' if np.isnan(value) else 'infinity'} in row {row}, column {name}{more}"


def finite(values: np.ndarray, otherwise: str) -> np.ndarray:
    """Return the values, or raise the error with the message ``otherwise`` where one of them is not finite."""
    # a finite sum proves that every term is finite; an infinite sum may be an overflow of finite terms
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(values.sum()) and not np.isfinite(values).all():
            raise ValueError(otherwise)
    return values


def as_weights(sample_weight: ArrayLike | None, X) -> np.ndarray | None:
    """Return non-negative float64 weights, one for each sample of X, or None for equal weights."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (len_of(X),):
        raise ValueError(f"The sample weights must have shape ({len_of(X)},). Got {weight.shape} instead.")
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


def _canonical(X) -> sparse.csr_array:
    """Return a sparse matrix as a CSR array without duplicate entries, with 32-bit indices where they suffice."""
    result = sparse.csr_array(X, dtype=np.float64)
    if not result.has_canonical_format:
        # summing duplicates works in place, and `result` may still share the caller's arrays
        result = result.copy()
        result.sum_duplicates()
    if result.indices.dtype != np.int32 and max(result.nnz, *result.shape) <= np.iinfo(np.int32).max:
        # compiled routines take 32-bit indices
        parts = (result.data, result.indices.astype(np.int32), result.indptr.astype(np.int32))
        result = sparse.csr_array(parts, shape=result.shape)
    return result


def is_frame(X: Any) -> bool:
    """Tell whether samples are a data frame."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and not sparse.issparse(X)


def is_numeric(frame: Any) -> bool:
    """Tell whether all columns of a data frame are numbers."""
    return all(getattr(kind, "kind", "O") in "biuf" for kind in frame.dtypes)


def as_table(X: Any) -> Any:
    """Return nested lists of numbers as an array of shape (n, d), other samples as they are."""
    if hasattr(X, "shape") or hasattr(X, "columns"):
        return X
    array = np.asarray(X)
    return array if array.ndim == 2 else X


def take_rows(X, rows):
    """Return some of the samples."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return (X.tocsr() if sparse.issparse(X) else X)[rows]


def alone(X: Any) -> Any:
    """Return the samples without the store that they may share with other samples."""
    return X.detach() if hasattr(X, "detach") else X


def columns_of(X) -> tuple[int | None, list[str] | None]:
    """Return the number of columns, None for samples without columns, such as a list of strings, and their names.

    The names are None unless the samples are a data frame and every name is a string.
    """
    if getattr(X, "ndim", 1) != 2:
        return None, None
    names = list(X.columns) if hasattr(X, "columns") else []
    return X.shape[1], names if names and all(isinstance(name, str) for name in names) else None


def resolve_columns(columns, X, owner: str = "the kernel") -> tuple[int, ...] | None:
    """Return the positions of the chosen columns in X, None for all of them.

    Parameters
    ----------
    columns : None, int, str, slice, sequence of int, str or bool, or callable
        Positions (negative ones count from the end), names of a data frame's columns, patterns of names
        ("gene_*", or "gene_", a beginning that ends in a sign), a slice of positions or names (a slice of names
        includes its end), a mask with one truth value per column, or a callable that takes X and returns one of
        these, such as `sklearn.compose.make_column_selector`.
    X : array, sparse matrix or data frame of shape (n, d)
        The training samples.
    owner : str
        The name of the kernel, for the error sentences.
    """
    if callable(columns):
        columns = columns(X)
    if columns is None:
        return None
    d, _ = columns_of(X)
    if d is None:
        raise ValueError(f"The columns of {owner} must be None for samples without columns. Got {columns!r} instead.")
    if isinstance(columns, slice):
        positions = _from_slice(columns, X, d, owner)
    else:
        chosen = list(columns) if isinstance(columns, (list, tuple)) or np.ndim(columns) == 1 else [columns]
        if chosen and all(isinstance(c, (bool, np.bool_)) for c in chosen):
            if len(chosen) != d:
                raise ValueError(
                    f"The mask of columns of {owner} must have {d} entries, one per column. Got {len(chosen)} instead."
                )
            positions = [i for i, wanted in enumerate(chosen) if wanted]
        else:
            # names that occur once, so that many of them are found in one pass over the columns
            named = list(X.columns) if hasattr(X, "columns") and any(isinstance(c, str) for c in chosen) else []
            counts = Counter(name for name in named if isinstance(name, str))
            known = {name: [i] for i, name in enumerate(named) if counts[name] == 1}
            positions = [
                at
                for c in chosen
                for at in (isinstance(c, str) and known.get(c)) or _matching(c, X) or [_position(c, X, d, owner)]
            ]
    if not positions:
        raise ValueError(f"The columns of {owner} must be at least one column. Got none.")
    return tuple(positions)


def take_columns(X, positions: tuple[int, ...] | None):
    """Return the columns at these positions, as a view of an array where they are evenly spaced."""
    if hasattr(X, "take_columns"):
        return X.take_columns(positions)
    if positions is None:
        return X
    if hasattr(X, "iloc"):
        return X.iloc[:, list(positions)]
    if sparse.issparse(X):
        X = X if X.format in ("csr", "csc") else X.tocsr()
        return X[:, list(positions)]
    steps = set(np.diff(positions))
    if len(positions) == 1 or (len(steps) == 1 and next(iter(steps)) > 0):
        return X[:, positions[0] : positions[-1] + 1 : next(iter(steps), 1)]
    return X[:, list(positions)]


def _matching(pattern, X) -> list[int]:
    """Return the columns of a data frame whose names match a pattern; none where a column has this very name."""
    names = list(X.columns) if isinstance(pattern, str) and hasattr(X, "columns") else []
    if pattern in names or not names:
        return []
    if pattern and not pattern[-1].isalnum() and not set("*?[") & set(pattern):
        pattern += "*"
    found = [i for i, name in enumerate(names) if isinstance(name, str) and fnmatchcase(name, pattern)]
    return found if set("*?[") & set(pattern) else []


def _position(column, X, d: int, owner: str) -> int:
    """Return the position of a column that is given by its position or its name."""
    if isinstance(column, str):
        return _position_of_name(column, X, owner)
    if isinstance(column, (int, np.integer)) and not isinstance(column, (bool, np.bool_)):
        if not -d <= column < d:
            raise ValueError(f"The columns of {owner} must be between {-d} and {d - 1}. Got {column} instead.")
        return int(column) % d
    raise ValueError(
        f"The columns of {owner} must be positions, names, a slice, a mask or a callable. Got {column!r} instead."
    )


def _position_of_name(name: str, X, owner: str) -> int:
    """Return the position of a data frame's column."""
    if not hasattr(X, "columns"):
        raise ValueError(
            f"The columns of {owner} may be named only in a data frame. Got {name!r} and no data frame. After a "
            "transformer such as StandardScaler, set_output(transform='pandas') of the transformer keeps the names."
        )
    places = [i for i, other in enumerate(X.columns) if isinstance(other, str) and other == name]
    if not places:
        raise ValueError(f"The columns of {owner} must be columns of the data frame. Got {name!r} instead.")
    if len(places) > 1:
        raise ValueError(f"The columns of {owner} must have unique names. Got {name!r}, of which there are several.")
    return places[0]


def _from_slice(columns: slice, X, d: int, owner: str) -> list[int]:
    """Return the positions of the columns in a slice of positions or names."""
    start, stop = columns.start, columns.stop
    if isinstance(start, str):
        start = _position_of_name(start, X, owner)
    if isinstance(stop, str):
        stop = _position_of_name(stop, X, owner) + 1
    try:
        positions = list(range(d))[start : stop : columns.step]
    except (TypeError, ValueError) as error:
        raise ValueError(f"The columns of {owner} must be a slice of positions or names. Got {columns!r}.") from error
    for end in (columns.start, columns.stop):
        if isinstance(end, (int, np.integer)) and not -d <= end <= d:
            raise ValueError(f"The columns of {owner} must be between {-d} and {d - 1}. Got {columns!r} instead.")
    return positions
