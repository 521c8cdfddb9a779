"""Several views of the same samples as one X, of which scikit-learn takes rows and kernels take views.

A view is to kernels what a column of a data frame is: `("rna", RBF(), "rna")` is a kernel on the view "rna", and
several views are taken side by side. Rows share the store of all samples, in which each fitted model keeps what it
made of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from multikernel.gram.stack import KernelStack
from multikernel.kernels.sequences.samples import Sequences
from multikernel.kernels.views.preparation import Preparation
from multikernel.kernels.views.reading import View, read_views


class _Store:
    """All samples of some views, and what the preparations of models made of them."""

    def __init__(self, views: list[View], index: np.ndarray) -> None:
        self.views, self.index = views, index
        self.prepared: WeakKeyDictionary[Preparation, list[Any]] = WeakKeyDictionary()
        self.lock = RLock()


class Views:
    """Several views of the same samples, indexed by rows as any X.

    Parameters
    ----------
    data : dict, list, data frame, AnnData or MuData
        The views by their names: arrays, sparse matrices, data frames (pandas or polars), columns or lists of texts,
        paths of FASTA or ``.npy`` files, or kernels by `stack_kernels`. Views with an index (other than 0, 1, 2, ...)
        are aligned by it: a sample that is not in the index of a view lacks this view. A sample also lacks a view where
        all its values are NaN or None.
    groups : mapping, list, str or path, optional
        For a data frame or AnnData: the columns of each view; see `column_groups`.

    Attributes
    ----------
    names : list of str
        The views.
    index : ndarray
        The samples: the joint index of the views, or 0, 1, 2, ...
    kernels : list or None
        The kernels that `make_views` proposes, None without a proposal.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier, Views
    >>> rng = np.random.default_rng(0)
    >>> rna, protein = rng.normal(size=(60, 8)), rng.normal(size=(60, 3))
    >>> y = protein[:, 0] > 0
    >>> protein[:6] = np.nan
    >>> X = Views({"rna": rna, "protein": protein})
    >>> X
    Views(60 samples: rna 8 columns, protein 3 columns, 6 samples lack it)
    >>> model = MKLClassifier("rbf").fit(X[:40], y[:40])
    >>> model.predict(X[40:]).shape
    (20,)
    """

    ndim = 2
    _store: _Store
    _rows: np.ndarray | None

    def __init__(self, data: Any, groups: Any = None) -> None:
        if isinstance(data, Views):
            self._store, self._rows = data._store, data._rows
            return
        self._store, self._rows = _Store(*read_views(data, groups)), None

    # ---- what it is

    @property
    def names(self) -> list[str]:
        """The names of the views."""
        return [view.name for view in self._store.views]

    @property
    def columns(self) -> list[str]:
        """The names of the views, which kernels choose as they choose columns."""
        return self.names

    @property
    def index(self) -> np.ndarray:
        """The samples."""
        return self._store.index if self._rows is None else self._store.index[self._rows]

    @property
    def kernels(self) -> list | None:
        """The proposed kernels, one entry for each view."""
        entries = [(view.name, view.kernels, view.name) for view in self._store.views if view.kernels is not None]
        return entries or None

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of samples and of views."""
        return len(self), len(self._store.views)

    def __len__(self) -> int:
        return len(self._store.index) if self._rows is None else len(self._rows)

    def __repr__(self) -> str:
        parts = []
        for view in self._store.views:
            rows = slice(None) if self._rows is None else self._rows
            lacking, gaps = int(view.missing[rows].sum()), view.gaps(rows)
            parts.append(f"{view.name} {view.described()}")
            if lacking:
                parts.append(f"{lacking} sample{'s lack' if lacking > 1 else ' lacks'} it")
            if gaps:
                parts.append(f"{gaps} value{'s are' if gaps > 1 else ' is'} missing")
        return f"Views({len(self)} samples: {', '.join(parts)})"

    def missing(self) -> dict[str, dict[str, int]]:
        """Return for each view with gaps how many samples lack it, and how many values others lack.

        Examples
        --------
        >>> import numpy as np
        >>> from multikernel import Views
        >>> Views({"a": [[1.0, np.nan], [np.nan, np.nan]], "b": np.eye(2)}).missing()
        {'a': {'samples': 1, 'values': 1}}
        """
        rows, found = slice(None) if self._rows is None else self._rows, {}
        for view in self._store.views:
            counts = {"samples": int(view.missing[rows].sum()), "values": view.gaps(rows)}
            if any(counts.values()):
                found[view.name] = counts
        return found

    # ---- rows and views

    def __getitem__(self, key: Any) -> Any:
        """Return some of the samples, or, by its name, one view as it was given."""
        if isinstance(key, str):
            view = self._store.views[self._place(key)]
            return view.samples if self._rows is None else rows_of(view.samples, self._rows)
        rows = key[0] if isinstance(key, tuple) else key
        chosen = np.arange(len(self))[rows]
        part = object.__new__(Views)
        part._store = self._store
        part._rows = np.atleast_1d(chosen if self._rows is None else self._rows[chosen])
        return part

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise KeyError(f"There is no view {name!r}. The views are {', '.join(map(repr, self.names))}.")
        return self.names.index(name)

    def take_views(self, names: list[str]) -> Views:
        """Return the same samples with these views, in this order."""
        places = [self._place(name) for name in names]
        part = object.__new__(Views)
        part._store = _Store([self._store.views[place] for place in places], self._store.index)
        part._rows = self._rows
        return part

    def detach(self) -> Views:
        """Return these samples with a store of their own, which holds no others."""
        part, rows = object.__new__(Views), np.arange(len(self)) if self._rows is None else self._rows
        views = self._store.views if self._rows is None else [view.take(rows) for view in self._store.views]
        part._store, part._rows = _Store(views, self.index), None
        return part

    def __getstate__(self) -> dict:
        own = self.detach()._store
        return {"views": own.views, "index": own.index}

    def __setstate__(self, state: dict) -> None:
        self._store, self._rows = _Store(state["views"], state["index"]), None

    # ---- what a bank of kernels asks for

    def kernels_by_view(self, spec: Any) -> Any:
        """Return the kernels that a user wrote with a view for each: those without columns are put on every view."""
        if isinstance(spec, str) and spec == "auto":
            if self.kernels is None:
                raise ValueError("kernels='auto' needs the proposal of make_views. Got Views without it.")
            return self.kernels
        if isinstance(spec, Mapping):
            unknown = [name for name in spec if name not in self.names]
            if unknown:
                raise ValueError(
                    f"The 'kernels' parameter must name views of X: {', '.join(map(repr, self.names))}. "
                    f"Got {unknown[0]!r} instead."
                )
            return spec
        entries = spec if isinstance(spec, list) else [spec]
        given = [entry for entry in entries if isinstance(entry, tuple)]
        # a named entry names its views; None are all of them side by side
        every = [entry for entry in entries if not isinstance(entry, tuple)]
        by_view = [(name, every[0] if len(every) == 1 else every, name) for name in self.names] if every else []
        return [*by_view, *given]

    def learn_preparation(self) -> Preparation:
        """Return what encodes and completes samples, learned on these."""
        rows = np.arange(len(self)) if self._rows is None else self._rows
        return Preparation.learn([view.take(rows) for view in self._store.views])

    @property
    def learns(self) -> bool:
        """Whether samples change by what is learned on the training samples: encoded, or completed."""
        return bool(self.missing()) or any(view.encoder is not None for view in self._store.views)

    def prepared(self, preparation: Preparation) -> PreparedViews:
        """Return the samples as a preparation encodes and completes them; all rows of the store at once, and once."""
        store = self._store
        with store.lock:
            if preparation not in store.prepared:
                store.prepared[preparation] = preparation.apply(store.views)
            return PreparedViews(store.prepared[preparation], self._rows)


class PreparedViews:
    """Views without gaps, as kernels take them."""

    ndim = 2

    def __init__(self, parts: list[Any], rows: np.ndarray | None) -> None:
        self.parts, self.rows = parts, rows

    def take_columns(self, positions: tuple[int, ...] | None) -> Any:
        """Return one view, or several side by side; None for all of them."""
        chosen = range(len(self.parts)) if positions is None else positions
        taken = [self.parts[place] if self.rows is None else rows_of(self.parts[place], self.rows) for place in chosen]
        if len(taken) == 1:
            return taken[0]
        if any(isinstance(part, (Sequences, KernelStack)) or hasattr(part, "iloc") for part in taken):
            raise ValueError("views side by side must be numbers. Got sequences, kernels or categories among them.")
        if any(sparse.issparse(part) for part in taken):
            return sparse.csr_array(sparse.hstack(taken))
        return np.hstack(taken)


def rows_of(samples: Any, rows: np.ndarray) -> Any:
    """Return some rows of the samples of a view."""
    return samples.iloc[rows] if hasattr(samples, "iloc") else samples[rows]
