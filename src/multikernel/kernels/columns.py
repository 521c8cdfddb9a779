"""Which columns of the samples a kernel sees: by position, slice, name, mask or selector.

A choice is resolved once, on the training samples, to positions; `take_columns` then applies it to any
samples.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse


def n_columns(X) -> int | None:
    """Return the number of columns of the samples, None where they have none (a list of strings, say)."""
    return X.shape[1] if getattr(X, "ndim", 1) == 2 else None


def column_names(X) -> list[str] | None:
    """Return the column names of a data frame whose names are all strings, otherwise None."""
    names = list(X.columns) if hasattr(X, "columns") and n_columns(X) is not None else []
    return names if names and all(isinstance(name, str) for name in names) else None


def resolve_columns(columns, X, owner: str = "the kernel") -> tuple[int, ...] | None:
    """Return the positions of the chosen columns in X, None for all of them.

    Parameters
    ----------
    columns : None, int, str, slice, sequence of int, str or bool, or callable
        Positions (negative ones count from the end), names of a data frame's columns, a slice of either (a
        slice of names includes its end), a mask with one truth value per column, or a callable that takes X
        and returns one of these, such as `sklearn.compose.make_column_selector`.
    X : array, sparse matrix or data frame of shape (n, d)
        The training samples.
    owner : str
        The name of the kernel, for the error sentences.
    """
    if callable(columns):
        columns = columns(X)
    if columns is None:
        return None
    d = n_columns(X)
    if d is None:
        raise ValueError(
            f"The columns of {owner} must be None for samples without columns. Got {columns!r} instead."
        )
    if isinstance(columns, slice):
        positions = _from_slice(columns, X, d, owner)
    else:
        single = isinstance(columns, (str, int, np.integer)) and not isinstance(columns, bool)
        chosen = [columns] if single else _as_list(columns)
        if chosen and all(isinstance(c, (bool, np.bool_)) for c in chosen):
            if len(chosen) != d:
                raise ValueError(
                    f"The mask of columns of {owner} must have {d} entries, one per column. "
                    f"Got {len(chosen)} instead."
                )
            positions = [i for i, wanted in enumerate(chosen) if wanted]
        else:
            positions = [_position(c, X, d, owner) for c in chosen]
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


def _as_list(columns) -> list:
    several = isinstance(columns, (list, tuple)) or np.ndim(columns) == 1
    return list(columns) if several else [columns]


def _position(column, X, d: int, owner: str) -> int:
    if isinstance(column, str):
        return _named(column, X, owner)
    if isinstance(column, (int, np.integer)) and not isinstance(column, (bool, np.bool_)):
        if not -d <= column < d:
            raise ValueError(
                f"The columns of {owner} must be between {-d} and {d - 1}. Got {column} instead."
            )
        return int(column) % d
    raise ValueError(
        f"The columns of {owner} must be positions, names, a slice, a mask or a callable. "
        f"Got {column!r} instead."
    )


def _named(name: str, X, owner: str) -> int:
    if not hasattr(X, "columns"):
        raise ValueError(
            f"The columns of {owner} may be named only in a data frame. Got {name!r} and no data frame."
        )
    places = [i for i, other in enumerate(X.columns) if isinstance(other, str) and other == name]
    if not places:
        raise ValueError(f"The columns of {owner} must be columns of the data frame. Got {name!r} instead.")
    if len(places) > 1:
        raise ValueError(
            f"The columns of {owner} must have unique names. Got {name!r}, of which there are several."
        )
    return places[0]


def _from_slice(columns: slice, X, d: int, owner: str) -> list[int]:
    start, stop = columns.start, columns.stop
    if isinstance(start, str):
        start = _named(start, X, owner)
    if isinstance(stop, str):
        stop = _named(stop, X, owner) + 1
    try:
        positions = list(range(d))[start : stop : columns.step]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The columns of {owner} must be a slice of positions or names. Got {columns!r}."
        ) from error
    for end in (columns.start, columns.stop):
        if isinstance(end, (int, np.integer)) and not -d <= end <= d:
            raise ValueError(
                f"The columns of {owner} must be between {-d} and {d - 1}. Got {columns!r} instead."
            )
    return positions
