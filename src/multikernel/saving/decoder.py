"""Objects from JSON and arrays, as `multikernel.saving.encoder` wrote them.

Only classes of `multikernel.saving.known` are made, without calling them: their attributes are set.
"""

from __future__ import annotations

import base64
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from multikernel.kernels.sequences.samples import Sequences
from multikernel.kernels.table import Table
from multikernel.kernels.views import Views
from multikernel.saving.known import classes


class Decoder:
    """Objects from a document.

    Parameters
    ----------
    document : mapping
        What `encode` returned, from a file.
    members : list of ndarray
        The arrays of the file.
    """

    def __init__(self, document: Mapping[str, Any], members: list[np.ndarray]) -> None:
        self.document, self.members = document, members
        self.used: set[int] = set()
        self.done: dict[tuple[str, int], Any] = {}

    def decode(self, node: Any) -> Any:
        """Return the value of some JSON."""
        if isinstance(node, list):
            return [self.decode(each) for each in node]
        if not isinstance(node, dict):
            return node
        ((kind, inside),) = node.items()
        if kind in ("array", "object"):
            if (kind, inside) not in self.done:
                make = self.array if kind == "array" else self.object
                make(inside)
            return self.done[kind, inside]
        return _READERS[kind](self, inside)

    def array(self, number: int) -> None:
        """Make an array."""
        entry = self.document["arrays"][number]
        member = entry["member"]
        array = self.members[member]
        if "dtype" in entry:
            array = array.astype(np.dtype(entry["dtype"]))
        elif member in self.used:
            array = array.copy()
        self.used.add(member)
        self.done["array", number] = array.T if entry.get("transposed") else array

    def object(self, number: int) -> None:
        """Make an object and set its attributes."""
        entry = self.document["objects"][number]
        name = entry["class"]
        if name not in classes():
            raise ValueError(f"it names the class {name!r}, which this version does not know")
        cls = classes()[name]
        made: Any = object.__new__(cls)
        self.done["object", number] = made
        state = {key: self.decode(each) for key, each in entry["state"].items()}
        if is_dataclass(cls):
            known = {each.name for each in fields(cls)}
            if set(state) != known:
                odd = ", ".join(sorted(set(state) ^ known))
                raise ValueError(f"the attributes of {name!r} are not those of this version ({odd})")
        if name.startswith("estimators."):
            # parameters that were left out, and those that are younger than the file
            defaults = inspect.signature(cls).parameters.values()
            vars(made).update({each.name: each.default for each in defaults})
        vars(made).update(state)

    # ---- what is not JSON's own

    def texts(self, inside: Any) -> Sequences:
        """Return sequences from their letters."""
        letters, offsets = (self.decode(each) for each in inside)
        text = letters.tobytes().decode("latin-1")
        ends = offsets.tolist()
        return Sequences([text[a:b] for a, b in pairwise(ends)])

    def columns(self, inside: Any) -> Any:
        """Return samples whose other columns, which no active kernel reads, are zero."""
        d, used, values = inside[0], np.array(inside[1], np.intp), self.decode(inside[2])
        if sparse.issparse(values):
            return type(values)((values.data, used[values.indices], values.indptr), (values.shape[0], d))
        samples = np.zeros((len(values), d), values.dtype)
        samples[:, used] = values
        return samples

    def table(self, inside: Any) -> Table:
        """Return a table whose other columns, which no active kernel reads, are empty."""
        columns, used, frame = inside[0], inside[1], self.decode(inside[2])
        if used is None:
            return Table(frame)
        import pandas as pd

        names, empty = self.decode(columns), np.full(len(frame), None, object)
        at = {k: frame.iloc[:, j] for j, k in enumerate(used)}
        whole = pd.concat([at.get(k, pd.Series(empty)) for k in range(len(names))], axis=1)
        return Table(whole.set_axis(names, axis=1))

    def views(self, inside: Any) -> Views:
        """Return samples of several views."""
        made = object.__new__(Views)
        made.__setstate__(dict(zip(("views", "index"), map(self.decode, inside), strict=True)))
        return made

    def frame(self, inside: Any) -> Any:
        """Return a data frame."""
        try:
            import pandas as pd
        except ImportError:
            raise ValueError("its support vectors are a data frame: pip install 'multikernel[data]'") from None
        names, columns = self.decode(inside[0]), [pd.Series(self.decode(each)) for each in inside[1]]
        return pd.concat(columns, axis=1).set_axis(names, axis=1)

    def cells(self, inside: Any) -> np.ndarray:
        """Return an array of objects."""
        shape, values = inside
        array = np.empty(len(values), object)
        array[:] = self.decode(values) if values else []
        return array.reshape(shape)


def _number_types(cls: Any) -> dict[str, type]:
    """Return NumPy's classes of numbers and texts by name, such as "float64" and "number"."""
    found = {cls.__name__: cls}
    for below in cls.__subclasses__():
        found |= _number_types(below)
    return found


def _number(decoder: Decoder, inside: Any) -> Any:
    return np.array(decoder.decode(inside[1]), np.dtype(inside[0]))[()]


def _csr_matrix(decoder: Decoder, inside: Any) -> Any:
    shape, is_array, *parts = inside
    return (sparse.csr_array if is_array else sparse.csr_matrix)(tuple(map(decoder.decode, parts)), tuple(shape))


_READERS: dict[str, Callable[[Decoder, Any], Any]] = {
    "float": lambda decoder, inside: {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[inside],
    "tuple": lambda decoder, inside: tuple(map(decoder.decode, inside)),
    "dict": lambda decoder, inside: {key: decoder.decode(each) for key, each in inside.items()},
    "items": lambda decoder, inside: {decoder.decode(key): decoder.decode(each) for key, each in inside},
    "set": lambda decoder, inside: set(map(decoder.decode, inside)),
    "slice": lambda decoder, inside: slice(*map(decoder.decode, inside)),
    "range": lambda decoder, inside: range(*inside),
    "bytes": lambda decoder, inside: base64.b64decode(inside, validate=True),
    "dtype": lambda decoder, inside: np.dtype(inside),
    "type": lambda decoder, inside: _number_types(np.generic)[inside],
    "number": _number,
    "masked": lambda decoder, inside: np.ma.MaskedArray(*map(decoder.decode, inside)),
    "cells": Decoder.cells,
    "csr": _csr_matrix,
    "sequences": Decoder.texts,
    "encoded": lambda decoder, inside: Sequences(decoder.decode(inside)),
    "frame": Decoder.frame,
    "table": Decoder.table,
    "columns": Decoder.columns,
    "views": Decoder.views,
}


def decode(document: Mapping[str, Any], members: list[np.ndarray]) -> Any:
    """Return the object of a document."""
    return Decoder(document, members).decode(document["root"])
