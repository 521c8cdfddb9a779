"""What people have as views: arrays, data frames, AnnData, MuData, texts, files; aligned by their index.

Every view becomes a `View`: float64 numbers in an array or a CSR array, a data frame with categories, texts as an array
of objects, or a `KernelStack`; and a mask of the samples that lack it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from multikernel.gram.stack import KernelStack
from multikernel.kernels.inputs import is_frame, is_numeric
from multikernel.kernels.sequences.fasta import read_fasta
from multikernel.kernels.sequences.samples import is_text
from multikernel.kernels.views.groups import as_pandas, column_groups

_FASTA = (".fa", ".fasta", ".fna", ".faa", ".fa.gz", ".fasta.gz", ".fna.gz", ".faa.gz")


@dataclass(frozen=True, eq=False)
class View:
    """One view of n samples.

    Attributes
    ----------
    name : str
        Its name.
    samples : ndarray or csr_array (n, d), data frame, ndarray of texts (n,), or KernelStack
        The samples; rows of samples that lack the view hold anything.
    missing : ndarray of bool (n,)
        Which samples lack the view.
    kind : str
        What `make_views` takes it for.
    encoder : encoder or None
        Makes numbers of the samples, once it is fitted on training samples.
    kernels : list or None
        Proposed kernels.
    """

    name: str
    samples: Any
    missing: np.ndarray
    kind: str = ""
    encoder: Any = None
    kernels: Any = None

    def take(self, rows: np.ndarray) -> View:
        """Return the view of some samples."""
        samples = self.samples.iloc[rows] if hasattr(self.samples, "iloc") else self.samples[rows]
        return replace(self, samples=samples, missing=self.missing[rows])

    def gaps(self, rows: Any = slice(None)) -> int:
        """Return how many values are missing in samples that have the view."""
        here = ~self.missing[rows]
        if isinstance(self.samples, KernelStack) or sparse.issparse(self.samples) or self.samples.ndim == 1:
            return 0
        samples = self.samples.iloc[rows] if hasattr(self.samples, "iloc") else self.samples[rows]
        return int(np.asarray(_absent(samples))[here].sum())

    def described(self) -> str:
        """Return what it is in two words."""
        if isinstance(self.samples, KernelStack):
            return f"{self.samples.n_kernels} kernel{'s' if self.samples.n_kernels > 1 else ''}"
        if self.samples.ndim == 1:
            return "texts"
        d = self.samples.shape[1]
        return f"{d} column{'s' if d > 1 else ''}"


def is_views(X: Any) -> bool:
    """Whether X is views as people have them: a dict, a list of tables, AnnData or MuData."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(isinstance(v, KernelStack) or is_frame(v) or _is_table(v) for v in X)
    # some sparse matrices are dictionaries
    return (isinstance(X, Mapping) and not sparse.issparse(X)) or is_annotated(X)


def is_annotated(X: Any) -> bool:
    """Whether X is AnnData or MuData, known by what they have."""
    return hasattr(X, "obs_names") and (hasattr(X, "var_names") or hasattr(X, "mod"))


def _is_table(v: Any) -> bool:
    return hasattr(v, "shape") and len(v.shape) == 2


def read_views(data: Any, groups: Any = None) -> tuple[list[View], np.ndarray]:
    """Return the views and the index of their samples; see `multikernel.kernels.views.Views`."""
    named = _named(data, groups)
    if not named:
        raise ValueError("Views must hold at least one view. Got none.")
    read = {}
    for name, samples in named.items():
        if not isinstance(name, str) or not name or "__" in name or ": " in name:
            raise ValueError(f"The names of views must be texts without '__' and ': '. Got {name!r} instead.")
        read[name] = read_view(name, samples)
    index, places = _align(read, list(data.obs_names) if hasattr(data, "mod") and is_annotated(data) else [])
    views = []
    for name, (samples, _) in read.items():
        place = places[name]
        if place is None:
            views.append(View(name, samples, _lacking(samples)))
        else:
            # a sample that is not there has any row, and lacks the view
            own = View(name, samples, _lacking(samples)).take(np.maximum(place, 0))
            views.append(replace(own, missing=own.missing | (place < 0)))
    return views, index


def _named(data: Any, groups: Any) -> dict[str, Any]:
    """Return the views by name."""
    if hasattr(data, "mod") and is_annotated(data):
        return {
            key: view
            for name, part in data.mod.items()
            for key, view in _named(part, None if groups is None else groups.get(name)).items()
            for key in [name if key == "X" else f"{name}.{key}"]
        }
    if is_annotated(data):
        import pandas as pd

        index, names = pd.Index(data.obs_names), list(map(str, data.var_names))
        X = data.X
        if groups is not None:
            frame = pd.DataFrame(X.toarray() if sparse.issparse(X) else np.asarray(X), index, names)
            found = column_groups(frame, groups)
        else:
            found = {} if X is None else {"X": _Indexed(X, index)}
        return {**found, **{str(key): _Indexed(value, index) for key, value in data.obsm.items()}}
    if groups is not None or is_frame(data):
        return column_groups(data, {"X": slice(None)} if groups is None else groups)
    if isinstance(data, Mapping):
        return dict(data)
    if isinstance(data, (list, tuple)):
        return {f"view_{i}": samples for i, samples in enumerate(data)}
    if isinstance(data, np.ndarray) or sparse.issparse(data):
        return {"X": data}
    raise TypeError(
        "Views must be a dict or a list of tables, a data frame with groups of columns, AnnData or MuData. "
        f"Got {type(data).__name__} instead."
    )


@dataclass
class _Indexed:
    """Samples with the names of their rows."""

    samples: Any
    index: Any


def read_view(name: str, samples: Any) -> tuple[Any, Any]:
    """Return the samples of one view in one of the forms of `View`, and their index, None without one."""
    index = None
    if isinstance(samples, _Indexed):
        samples, index = samples.samples, samples.index
    if isinstance(samples, (str, os.PathLike)):
        path = Path(samples)
        if path.name.lower().endswith(_FASTA):
            records = read_fasta(path)
            return np.array(records.sequences, dtype=object), records.ids
        if path.suffix == ".npy":
            samples = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            raise ValueError(
                f"The view '{name}' must be samples, or the path of a FASTA or .npy file. Got {str(samples)!r} instead."
            )
    if isinstance(samples, KernelStack):
        return samples, index
    if is_frame(samples):
        samples = as_pandas(samples)
    if hasattr(samples, "iloc") and index is None and type(samples.index).__name__ != "RangeIndex":
        index = samples.index
    if hasattr(samples, "to_numpy") and samples.ndim == 1 and not is_text(samples.dropna()):
        # one column of numbers or categories
        samples = samples.to_frame()
    if is_frame(samples):
        return (samples.to_numpy(np.float64, na_value=np.nan) if is_numeric(samples) else samples), index
    if sparse.issparse(samples):
        return sparse.csr_array(samples, dtype=np.float64), index
    array = np.asarray(samples, dtype=object if _is_text_list(samples) else None)
    if array.dtype.kind in "USOT" and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 1 and array.dtype.kind in "USO":
        return _texts(name, array), index
    if array.ndim != 2:
        raise ValueError(f"The view '{name}' must have shape (n, d). Got an array of shape {array.shape} instead.")
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"The view '{name}' must be numbers, texts, or a data frame where columns are categories. "
                f"Got an array of {array.dtype} instead."
            ) from None
    return np.asarray(array, np.float64), index


def _is_text_list(samples: Any) -> bool:
    return isinstance(samples, (list, tuple)) and any(isinstance(value, (str, bytes)) for value in samples)


def _texts(name: str, values: np.ndarray) -> np.ndarray:
    """Return texts as an array of objects, None where there is none."""
    out = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        if isinstance(value, bytes):
            value = value.decode("latin-1")
        if isinstance(value, str):
            out[i] = value
        elif value is not None and not _absent(np.array([value], dtype=object))[0]:
            raise ValueError(f"The view '{name}' must be texts. Got {value!r} in row {i} instead.")
    return out


def _absent(values: Any) -> Any:
    """Return where values are None or NaN."""
    if hasattr(values, "isna"):
        return values.isna()
    if values.dtype.kind == "f":
        return np.isnan(values)
    return np.array([value is None or value != value for value in values.ravel()], bool).reshape(values.shape)


def _lacking(samples: Any) -> np.ndarray:
    """Return which samples lack a view, all their values being absent; infinite values are left to the kernels."""
    if isinstance(samples, KernelStack) or sparse.issparse(samples):
        return np.zeros(samples.shape[0], bool)
    absent = np.asarray(_absent(samples), bool)
    return absent if absent.ndim == 1 else np.asarray(absent.all(axis=1))


def _align(read: Mapping[str, tuple[Any, Any]], first: list) -> tuple[np.ndarray, dict[str, np.ndarray | None]]:
    """Return the joint index, and for each view where its samples are: -1 for none, None for all in order.

    The joint index begins with ``first``, then follows the views in their order.
    """
    indexed = {name: list(index) for name, (_, index) in read.items() if index is not None}
    sizes = {name: samples.shape[0] for name, (samples, _) in read.items()}
    for name, index in indexed.items():
        if len(set(index)) < len(index):
            twice = next(each for each in index if index.count(each) > 1)
            raise ValueError(f"The index of the view '{name}' must name each sample once. Got {twice!r} again.")
    joint = list(dict.fromkeys(each for index in [first, *indexed.values()] for each in index))
    plain = [name for name in read if name not in indexed]
    n = len(joint) if indexed else sizes[plain[0]]
    for name in plain:
        if sizes[name] != n:
            among = "the joint index of the others has" if indexed else f"the view '{plain[0]}' has"
            raise ValueError(
                f"The view '{name}' must have {n} samples, as {among}. Got {sizes[name]} instead: give every view an "
                "index (a data frame) where samples lack views."
            )
    if not indexed:
        return np.arange(n), dict.fromkeys(read)
    places: dict[str, np.ndarray | None] = {}
    for name in read:
        at = {each: i for i, each in enumerate(indexed[name])} if name in indexed else None
        places[name] = None if at is None else np.array([at.get(each, -1) for each in joint], np.intp)
    ids = np.empty(n, dtype=object)
    ids[:] = joint
    return ids, places
