"""A data frame as samples: numbers and sequences in its columns, each choice of columns converted once."""

from __future__ import annotations

from threading import RLock
from typing import Any

import numpy as np

from multikernel.kernels.inputs import is_frame, is_numeric
from multikernel.kernels.sequences.samples import Sequences, is_text


class Table:
    """A data frame with columns that are not numbers, of which kernels take columns and rows.

    What a choice of columns is converted to is kept and shared with the tables of some of the rows.

    Parameters
    ----------
    frame : data frame
        The samples.

    Examples
    --------
    >>> import pandas as pd
    >>> from multikernel.kernels.table import Table
    >>> table = Table(pd.DataFrame({"dna": ["AC", "GT"], "age": [1, 2]}))
    >>> table.take_columns((1,)), len(table[:1].take_columns((0,)))
    (array([[1.],
           [2.]]), 1)
    """

    ndim = 2

    def __init__(self, frame: Any) -> None:
        self._frame, self._rows = frame, None
        self._converted: dict[tuple[int, ...], Any] = {}
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
        view._frame, view._converted, view._lock = self._frame, self._converted, self._lock
        view._rows = (np.arange(len(self)) if self._rows is None else self._rows)[rows]
        return view

    def take_columns(self, positions: tuple[int, ...] | None) -> Any:
        """Return the columns at these positions, None for all of them."""
        chosen = tuple(range(self._frame.shape[1])) if positions is None else tuple(positions)
        with self._lock:
            if chosen not in self._converted:
                self._converted[chosen] = _convert(self._frame.iloc[:, list(chosen)])
            part = self._converted[chosen]
        if self._rows is None:
            return part
        return part.iloc[self._rows] if hasattr(part, "iloc") else part[self._rows]

    def detach(self) -> Table:
        """Return a table of these rows alone, which shares nothing with others."""
        return Table(self._frame if self._rows is None else self._frame.iloc[self._rows])

    def __getstate__(self) -> dict:
        return {"frame": self.detach()._frame}

    def __setstate__(self, state: dict) -> None:
        self._frame, self._rows, self._converted, self._lock = state["frame"], None, {}, RLock()


def as_samples(X: Any) -> Any:
    """Return texts as `Sequences`, a data frame with columns that are no numbers as a `Table`, others as they are."""
    if isinstance(X, (Sequences, Table)):
        return X
    if is_text(X):
        return Sequences(X)
    return Table(X) if is_frame(X) and not is_numeric(X) else X


def _convert(frame: Any) -> Any:
    """Return numbers as an array, one column of texts as `Sequences`, other columns as they are."""
    if is_numeric(frame):
        return np.ascontiguousarray(frame, dtype=np.float64)
    return Sequences(frame) if frame.shape[1] == 1 and is_text(frame.iloc[:, 0]) else frame
