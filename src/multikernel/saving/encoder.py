"""Objects to JSON and arrays.

Numbers, texts, None and lists are JSON's own. Everything else is an object with one key, the kind of what it holds:

    {"float": "nan"}        inf, -inf or nan                {"array": 3}     entry 3 of the list "arrays"
    {"tuple": [...]}                                        {"object": 5}    entry 5 of the list "objects"
    {"dict": {...}}         with keys that are texts        {"items": [[key, value], ...]}    any other dict
    {"number": [dtype, value]}     NumPy's scalars          {"cells": [shape, [...]]}         an array of objects

and so on: `_WRITERS` lists them all, and `multikernel.saving.decoder` reads them. An entry of "objects" holds the short
name of its class (`multikernel.saving.known`) and its attributes; what is shared is stored once and shared again.
"""

from __future__ import annotations

import base64
import math
from collections import UserList
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from multikernel.kernels.base import Kernel, kernel_name
from multikernel.kernels.feature_maps import FeatureMaps, FeatureModel
from multikernel.kernels.function import FunctionKernel
from multikernel.kernels.sequences.encode import Encoded
from multikernel.kernels.sequences.samples import Sequences
from multikernel.kernels.table import Table
from multikernel.kernels.views import Views
from multikernel.saving.container import array_bytes
from multikernel.saving.known import short_names
from multikernel.training.expansion import ComputedExpansion

# attributes that serve a running fit, and what is made again from a parameter
_LEFT_OUT = frozenset({"_known", "callback", "scorer_"})


class CannotSave(ValueError):
    """Something that a file cannot hold; the message says what and what to do."""


class Encoder:
    """What a document is made of while objects are encoded.

    Parameters
    ----------
    single : bool
        Whether arrays of float64 are stored in float32 where that loses digits only.
    """

    def __init__(self, single: bool) -> None:
        self.single = single
        self.objects: list[Any] = []
        self.arrays: list[dict[str, Any]] = []
        # bytes of an array -> number of its member
        self.members: dict[bytes, int] = {}
        # what was encoded already, by identity; the objects are held so that no identity is used twice
        self.seen: dict[int, tuple[Any, dict[str, int]]] = {}
        self.left_out: list[str] = []

    def encode(self, value: Any) -> Any:
        """Return the JSON of a value."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is list:
            return [self.encode(each) for each in value]
        if id(value) in self.seen:
            return self.seen[id(value)][1]
        for kind, write in _WRITERS:
            if isinstance(value, kind):
                return write(self, value)
        if isinstance(value, type) and issubclass(value, np.generic):
            return {"type": value.__name__}
        if hasattr(value, "iloc") and hasattr(value, "columns"):
            return self.frame(value)
        if (name := short_names().get(type(value))) is not None:
            return self.remember(value, "object", self.objects, self.state(name, value))
        raise CannotSave(_refusal(value))

    def remember(self, value: Any, kind: str, entries: list, entry: Any) -> dict[str, int]:
        """Add an entry, and return the reference to it, also for the next time the same object is met."""
        entries.append(entry)
        reference = {kind: len(entries) - 1}
        self.seen[id(value)] = (value, reference)
        return reference

    def state(self, name: str, value: Any) -> dict[str, Any]:
        """Return the entry of an object: its class and its attributes."""
        if is_dataclass(value):
            own = {each.name: getattr(value, each.name) for each in fields(value)}
        else:
            own = {key: each for key, each in vars(value).items() if key not in _LEFT_OUT}
        if not (name.startswith("estimators.") and isinstance(value, BaseEstimator)):
            return {"class": name, "state": {key: self.encode(each) for key, each in own.items()}}
        state, parameters = {}, value.get_params(deep=False)
        for key, each in own.items():
            try:
                state[key] = self.encode(each)
            except CannotSave:
                # a parameter that only a fit needs, such as a scorer of the user's
                if key == "kernels" or key not in parameters:
                    raise
                self.left_out.append(key)
        return {"class": name, "state": state}

    # ---- arrays

    def array(self, value: np.ndarray) -> Any:
        """Encode an array: numbers and texts as a member of the archive, objects one by one."""
        if isinstance(value, np.ma.MaskedArray):
            return {"masked": [self.encode(value.data), self.encode(np.ma.getmaskarray(value))]}
        if value.dtype.kind not in "biufcSUmM":
            return {"cells": [list(value.shape), [self.encode(each) for each in value.astype(object).ravel().tolist()]]}
        # the order in memory decides how products are rounded
        turned = value.flags.f_contiguous and not value.flags.c_contiguous
        stored = np.ascontiguousarray(value.T if turned else value)
        entry: dict[str, Any] = {"transposed": True} if turned else {}
        if self.single and value.dtype == np.float64 and _fits_single(stored):
            stored, entry["dtype"] = stored.astype(np.float32), "<f8"
        data = array_bytes(stored)
        entry["member"] = self.members.setdefault(data, len(self.members))
        return self.remember(value, "array", self.arrays, entry)

    def sequences(self, value: Sequences) -> Any:
        """Encode sequences by their letters."""
        if isinstance(value._store.values, Encoded):
            return {"encoded": self.encode(value.original())}
        letters, offsets = value.detach().letters()
        return {"sequences": [self.encode(np.asarray(letters)), self.encode(np.asarray(offsets))]}

    def frame(self, frame: Any) -> Any:
        """Encode the columns of a data frame; whatever is missing becomes None."""
        columns = []
        for k in range(frame.shape[1]):
            column = frame.iloc[:, k]
            numbers = getattr(column.dtype, "kind", "O") in "biuf"
            columns.append(
                column.to_numpy() if numbers else column.astype(object).where(column.notna(), None).to_numpy()
            )
        return {"frame": [self.encode(list(frame.columns)), [self.encode(each) for each in columns]]}

    def expansion(self, value: ComputedExpansion) -> Any:
        """Encode what the active kernels read of the samples kept; a model on a device becomes one of the host."""
        chosen, samples = value.bank.columns, value.samples
        state = {each.name: getattr(value, each.name) for each in fields(ComputedExpansion) if each.name != "samples"}
        encoded = {key: self.encode(each) for key, each in state.items()}
        used = None if any(each is None for each in chosen) else sorted({c for each in chosen for c in each or ()})
        if used is None or isinstance(samples, (Sequences, Views)) or len(used) == samples.shape[1]:
            encoded["samples"] = self.encode(samples)
        elif isinstance(samples, Table):
            frame = samples.detach()._frame
            encoded["samples"] = {"table": [self.encode(list(frame.columns)), used, self.frame(frame.iloc[:, used])]}
        else:
            encoded["samples"] = {"columns": [samples.shape[1], used, self.encode(samples[:, used])]}
        return self.remember(value, "object", self.objects, {"class": "models.ComputedExpansion", "state": encoded})

    def feature_model(self, value: FeatureModel) -> Any:
        """Encode the feature maps of the kernels that are in use, and no others."""
        maps, bank = value.maps, value.maps.bank
        used = sorted({*(k for k, _ in value.places), *value.vectors})
        place = {k: j for j, k in enumerate(used)}
        slim = object.__new__(FeatureMaps)
        slim.bank = replace(
            bank,
            names=[bank.names[k] for k in used],
            kernels=[bank.kernels[k] for k in used],
            columns=[bank.columns[k] for k in used],
        )
        slim.degrees, slim._examples = [], {}
        slim.matrices = {place[k]: maps.matrices[k] for k in used if k in maps.matrices}
        places = [(place[k], model) for k, model in value.places]
        vectors = {place[k]: w for k, w in value.vectors.items()}
        entry = self.state("models.FeatureModel", FeatureModel(slim, places, vectors, value.n_problems))
        return self.remember(value, "object", self.objects, entry)


def _fits_single(array: np.ndarray) -> bool:
    """Whether float32 keeps the range of the numbers: none becomes infinite, or loses digits by being tiny."""
    size = np.abs(array[np.isfinite(array) & (array != 0)])
    kind = np.finfo(np.float32)
    return not size.size or bool(size.max() <= kind.max and size.min() >= kind.tiny)


def _refusal(value: Any) -> str:
    """Return why an object cannot be saved."""
    instead = "save the model with pickle or skops where it is read by you alone"
    if isinstance(value, FunctionKernel) or (callable(value) and not isinstance(value, (type, BaseEstimator))):
        name = kernel_name(value) if isinstance(value, FunctionKernel) else getattr(value, "__name__", repr(value))
        return f"A model file holds no code, and {name!r} is a function of yours: {instead}."
    if isinstance(value, Kernel):
        return (
            f"A model file holds kernels of multikernel only. Got {kernel_name(value)!r}, a kernel of yours: {instead}."
        )
    return f"A model file cannot hold an object of type {type(value).__module__}.{type(value).__qualname__}: {instead}."


def _dict(encoder: Encoder, value: Mapping) -> Any:
    if all(type(key) is str for key in value):
        return {"dict": {key: encoder.encode(each) for key, each in value.items()}}
    return {"items": [[encoder.encode(key), encoder.encode(each)] for key, each in value.items()]}


def _csr(encoder: Encoder, value: Any) -> Any:
    matrix = value.tocsr()
    parts = [encoder.encode(part) for part in (matrix.data, matrix.indices, matrix.indptr)]
    return {"csr": [list(matrix.shape), isinstance(value, sparse.sparray), *parts]}


def _list(encoder: Encoder, value: UserList) -> Any:
    # ColumnTransformer of scikit-learn 1.6 keeps columns in a list of its own, which warns when it is read
    if not type(value).__module__.startswith("sklearn."):
        raise CannotSave(_refusal(value))
    return encoder.encode(list(value.data))


# in this order: NumPy's numbers and texts are also Python's
_WRITERS: tuple[tuple[type | tuple[type, ...], Callable[[Encoder, Any], Any]], ...] = (
    (np.ndarray, Encoder.array),
    (np.generic, lambda encoder, value: {"number": [value.dtype.str, encoder.encode(value.item())]}),
    (tuple, lambda encoder, value: {"tuple": [encoder.encode(each) for each in value]}),
    (Mapping, _dict),
    (UserList, _list),
    ((set, frozenset), lambda encoder, value: {"set": [encoder.encode(each) for each in sorted(value, key=repr)]}),
    (slice, lambda encoder, value: {"slice": [encoder.encode(each) for each in (value.start, value.stop, value.step)]}),
    (range, lambda encoder, value: {"range": [value.start, value.stop, value.step]}),
    (bytes, lambda encoder, value: {"bytes": base64.b64encode(value).decode("ascii")}),
    (PurePath, lambda encoder, value: str(value)),
    (np.dtype, lambda encoder, value: {"dtype": value.str}),
    ((sparse.sparray, sparse.spmatrix), _csr),
    (Sequences, Encoder.sequences),
    (Table, lambda encoder, value: {"table": [None, None, encoder.frame(value.detach()._frame)]}),
    (Views, lambda encoder, value: {"views": [encoder.encode(each) for each in value.__getstate__().values()]}),
    (ComputedExpansion, Encoder.expansion),
    (FeatureModel, Encoder.feature_model),
)


def encode(value: Any, single: bool) -> tuple[dict[str, Any], list[bytes], list[str]]:
    """Return the document of an object, its arrays, and the names of the parameters that were left out.

    Parameters
    ----------
    value : object
        A fitted estimator.
    single : bool
        Whether arrays are stored in float32.
    """
    encoder = Encoder(single)
    root = encoder.encode(value)
    document = {"root": root, "objects": encoder.objects, "arrays": encoder.arrays}
    return document, list(encoder.members), encoder.left_out
