"""Which columns of the samples a kernel sees: by position, slice, name, mask or selector.

A choice is resolved once, on the training samples, to positions; `take_columns` then applies it to any
samples.
"""

from __future__ import annotations

from threading import RLock
from typing import Any

import numpy as np
from scipy import sparse

from multikernel.kernels.sequences.samples import Sequences, is_text


class Table:
    """A data frame of which kernels take columns, and blocks of a Gram matrix rows.

    Parameters
    ----------
    frame : data frame
        The samples.

    Examples
    --------
    >>> import pandas as pd
    >>> from multikernel.kernels.columns import Table
    >>> table = Table(pd.DataFrame({"dna": ["AC", "GT"], "age": [1, 2]}))
    >>> table.take_columns((1,)), len(table[:1].take_columns((0,)))
    (array([[1.],
           [2.]]), 1)
    """

    ndim = 2

    def __init__(self, frame: Any) -> None:
        self._frame, self._rows = frame, None
        self._made: dict[tuple[int, ...], Any] = {}
        self._lock = RLock()

    @property
    def columns(self) -> Any:
        """The names of the columns."""
        return self._frame.columns

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        return len(self), self._frame.shape[1]

    def __len__(self) -> int:
        return len(self._frame) if self._rows is None else len(self._rows)

    def __getitem__(self, rows) -> Table:
        view = object.__new__(Table)
        view._frame, view._made, view._lock = self._frame, self._made, self._lock
        view._rows = (np.arange(len(self)) if self._rows is None else self._rows)[rows]
        return view

    def take_columns(self, positions: tuple[int, ...] | None) -> Any:
        """Return the columns at these positions, None for all of them."""
        chosen = tuple(range(self._frame.shape[1])) if positions is None else tuple(positions)
        with self._lock:
            if chosen not in self._made:
                self._made[chosen] = _convert(self._frame.iloc[:, list(chosen)])
            part = self._made[chosen]
        if self._rows is None:
            return part
        return part.iloc[self._rows] if hasattr(part, "iloc") else part[self._rows]

    def detach(self) -> Table:
        """Return these rows alone."""
        return Table(self._frame if self._rows is None else self._frame.iloc[self._rows])

    def __getstate__(self) -> dict:
        return {"frame": self.detach()._frame}

    def __setstate__(self, state: dict) -> None:
        self._frame, self._rows, self._made, self._lock = state["frame"], None, {}, RLock()


def is_frame(X: Any) -> bool:
    """Whether samples are a data frame."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and not sparse.issparse(X)


def is_numeric(frame: Any) -> bool:
    """Whether all columns of a data frame are numbers."""
    return all(getattr(kind, "kind", "O") in "biuf" for kind in frame.dtypes)


def as_samples(X: Any) -> Any:
    """Return texts as `Sequences`, a data frame with columns that are no numbers as a `Table`, others as they are."""
    if isinstance(X, (Sequences, Table)):
        return X
    if is_text(X):
        return Sequences(X)
    return Table(X) if is_frame(X) and not is_numeric(X) else X


def alone(X: Any) -> Any:
    """Return samples without others that share their preparation."""
    return X.detach() if hasattr(X, "detach") else X


def _convert(frame: Any) -> Any:
    if is_numeric(frame):
        return np.ascontiguousarray(frame, dtype=np.float64)
    return Sequences(frame) if frame.shape[1] == 1 and is_text(frame.iloc[:, 0]) else frame


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
        raise ValueError(f"The columns of {owner} must be None for samples without columns. Got {columns!r} instead.")
    if isinstance(columns, slice):
        positions = _from_slice(columns, X, d, owner)
    else:
        single = isinstance(columns, (str, int, np.integer)) and not isinstance(columns, bool)
        chosen = [columns] if single else _as_list(columns)
        if chosen and all(isinstance(c, (bool, np.bool_)) for c in chosen):
            if len(chosen) != d:
                raise ValueError(
                    f"The mask of columns of {owner} must have {d} entries, one per column. Got {len(chosen)} instead."
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
            raise ValueError(f"The columns of {owner} must be between {-d} and {d - 1}. Got {column} instead.")
        return int(column) % d
    raise ValueError(
        f"The columns of {owner} must be positions, names, a slice, a mask or a callable. Got {column!r} instead."
    )


def _named(name: str, X, owner: str) -> int:
    if not hasattr(X, "columns"):
        raise ValueError(f"The columns of {owner} may be named only in a data frame. Got {name!r} and no data frame.")
    places = [i for i, other in enumerate(X.columns) if isinstance(other, str) and other == name]
    if not places:
        raise ValueError(f"The columns of {owner} must be columns of the data frame. Got {name!r} instead.")
    if len(places) > 1:
        raise ValueError(f"The columns of {owner} must have unique names. Got {name!r}, of which there are several.")
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
        raise ValueError(f"The columns of {owner} must be a slice of positions or names. Got {columns!r}.") from error
    for end in (columns.start, columns.stop):
        if isinstance(end, (int, np.integer)) and not -d <= end <= d:
            raise ValueError(f"The columns of {owner} must be between {-d} and {d - 1}. Got {columns!r} instead.")
    return positions
