"""Checkpoints: the state of a long fit in a file, from which the same call goes on after the process was killed.

One file holds arrays by name, in NumPy's format without pickled objects: nothing in it is ever executed. Its name is a
hash of the samples and of all parameters that change the result, so that clones, folds and points of a grid have files
of their own. Weights and coefficients are only where a fit begins: its certificate is computed anew.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from pickle import PicklingError
from threading import Lock
from typing import Any

import joblib
import numpy as np

from multikernel.gram.stack import KernelStack
from multikernel.problem import Start
from multikernel.training.core import Prepared, Settings, Target

# part of the time of a fit that goes into writing its state, or into an estimate: news against a slower fit
SHARE = 0.02
# parameters that change neither the problem nor its solution, and the folds, which are data
_FREE = frozenset(("callback", "checkpoint", "cv", "memory_limit", "n_jobs", "verbose"))


def fingerprint(owner: str, params: Mapping[str, Any], *data: Any) -> str:
    """Return a hash of data and parameters, the same in every process.

    Parameters
    ----------
    owner : str
        Name of the estimator.
    params : mapping
        Its parameters.
    *data : arrays, tables, stacks of kernels
        Samples, targets, weights.

    Examples
    --------
    >>> import numpy as np
    >>> one, two = (fingerprint("me", {"C": 1.0, "verbose": v}, np.eye(2)) for v in (0, 1))
    >>> one == two, one == fingerprint("me", {"C": 2.0}, np.eye(2))
    (True, False)
    """
    used = {name: value for name, value in params.items() if name not in _FREE}
    try:
        return joblib.hash((owner, used, [_hashed(each) for each in data]), hash_name="sha1")
    except (PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"The 'checkpoint' parameter of {owner} must be None where parameters or samples cannot be pickled, such "
            f"as a function inside another or a lambda: define it at the top of a module. Got: {error.args[0]}"
        ) from None


def _hashed(data: Any) -> Any:
    """Return the data, or the hashes of their parts: kernels of a stack, or partitions, are not in memory at once."""
    if hasattr(data, "hashes"):
        return data.hashes()
    if not isinstance(data, KernelStack):
        return data
    ids = data.row_ids
    return [joblib.hash(np.asarray(data.kernel_rows(k, ids)), hash_name="sha1") for k in range(data.n_kernels)]


@dataclass
class StateFile:
    """Arrays by name in one file, which is replaced as a whole.

    Attributes
    ----------
    path : Path
        The file.
    owner, key : str
        Name of the estimator, and the hash of its data and settings.
    arrays : dict
        What the file held when it was opened, or holds when it is next written.
    stays : bool
        Whether the file is wanted after the fit.
    seconds, written : float
        How long the last write took, and when it was.
    """

    path: Path
    owner: str
    key: str
    arrays: dict[str, Any] = field(default_factory=dict)
    stays: bool = False
    seconds: float = 0.0
    written: float = 0.0
    lock: Any = field(default_factory=Lock, repr=False)

    @classmethod
    def open(cls, folder: Any, owner: str, key: str) -> StateFile:
        """Return the file of a key with the state in it; a damaged file is reported and ignored."""
        file = cls(Path(folder) / f"{owner}-{key}.npz", owner, key)
        # left by a process that was killed while it wrote
        for left in file.path.parent.glob(f"{file.path.stem}.*.tmp"):
            with suppress(OSError):
                left.unlink()
        try:
            # a first write tells whether that works, and how long it takes
            file._replace(file.path.with_suffix(".new"))
            file.path.with_suffix(".new").unlink(missing_ok=True)
        except OSError as error:
            raise ValueError(
                f"The 'checkpoint' parameter of {owner} must be a folder that can be written to. "
                f"Got {str(folder)!r}: {error.strerror}."
            ) from None
        if file.path.exists():
            try:
                with file.path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
                    found = {name: stored[name] for name in stored.files}
                if str(found.pop("key")) != key:
                    raise ValueError("it belongs to another fit")
                file.arrays = found
            except Exception as error:
                file.report(f"{type(error).__name__}: {error}")
        return file

    def report(self, why: str) -> None:
        """Warn of a file that cannot be used."""
        warnings.warn(
            f"The checkpoint {str(self.path)!r} of {self.owner} is damaged and ignored ({why}): the fit begins anew.",
            UserWarning,
            stacklevel=2,
        )

    @property
    def due(self) -> bool:
        """Whether the last write is long enough ago."""
        return time.perf_counter() - self.written > self.seconds / SHARE

    def put(self, arrays: Mapping[str, Any]) -> None:
        """Take a newer state, and write it if the last write is long enough ago."""
        with self.lock:
            self.arrays.update(arrays)
            if self.due:
                self.write()

    def write(self) -> None:
        """Write the state; where that fails the fit goes on, with a warning."""
        try:
            self._replace(self.path)
        except FileNotFoundError:
            # another fit of the same data and settings has removed the temporary file: the next write will do
            self.written = time.perf_counter()
        except OSError as error:
            self.written = np.inf
            warnings.warn(
                f"The checkpoint {str(self.path)!r} of {self.owner} could not be written ({error.strerror}): the fit "
                "goes on without.",
                UserWarning,
                stacklevel=2,
            )

    def _replace(self, path: Path) -> None:
        """Write to a temporary file beside, then put it into place: a reader sees the old state or the new one."""
        began = time.perf_counter()
        handle, temporary = tempfile.mkstemp(".tmp", f"{self.path.stem}.", path.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                # arrays on a device come to the host here
                arrays: dict[str, Any] = {name: np.asarray(each) for name, each in self.arrays.items()}
                np.savez(stream, key=self.key, **arrays)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        self.written = time.perf_counter()
        self.seconds = self.written - began


def remove_states(owner: str, folder: Any, key: str) -> None:
    """Remove the files of all folds of a search."""
    for path in Path(folder).glob(f"{owner}-{key}-*"):
        path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Checkpoint:
    """The part of a file whose names begin with a prefix, such as one point of a grid."""

    file: StateFile
    prefix: str = ""

    def part(self, name: Any) -> Checkpoint:
        """Return a part of this part."""
        return Checkpoint(self.file, f"{self.prefix}{name}/")

    def get(self, *names: str) -> list[np.ndarray] | None:
        """Return arrays by their names; None unless all of them are there."""
        found = [self.file.arrays[self.prefix + name] for name in names if self.prefix + name in self.file.arrays]
        return found if len(found) == len(names) else None

    def all(self) -> dict[str, np.ndarray]:
        """Return all arrays by name."""
        start = len(self.prefix)
        return {name[start:]: each for name, each in self.file.arrays.items() if name.startswith(self.prefix)}

    def put(self, **arrays: Any) -> None:
        """Take a newer state."""
        self.file.put({self.prefix + name: each for name, each in arrays.items()})

    def clear(self) -> None:
        """Forget the state: it belongs to other kernels, or is no longer needed."""
        for name in [name for name in self.file.arrays if name.startswith(self.prefix)]:
            del self.file.arrays[name]

    def starts(
        self, prepared: Prepared, targets: Sequence[Target], begin: Sequence[Start | None]
    ) -> list[Start | None]:
        """Return where the problems begin: at their last state, or at what is given where there is none."""
        starts = list(begin)
        for t, target in enumerate(targets):
            if (found := self.part(t).get("weights", "coef")) is None:
                continue
            weights, coef = found
            p = prepared.gram.n_kernels if target.classes is None else len(target.classes.names)
            right = weights.shape == (p,) and coef.shape == target.machine.start().shape
            if right and np.isfinite(weights).all() and np.isfinite(coef).all():
                starts[t] = Start(weights, target.machine.make_feasible(coef))
            else:
                self.file.report(f"the state of the problem {target.label!r} does not fit")
        return starts


@contextmanager
def checkpointed(settings: Settings, folder: Any, key: str) -> Iterator[Settings]:
    """Yield the settings with the checkpoint of a key: removed when the work is done, written when it breaks off.

    Parameters
    ----------
    settings : Settings
        How to train.
    folder : str or path
        An existing folder.
    key : str
        What `fingerprint` returns.
    """
    file = StateFile.open(folder, settings.owner, key)
    try:
        yield replace(settings, checkpoint=Checkpoint(file))
    except BaseException:
        file.write()
        raise
    if file.stays:
        file.write()
    else:
        file.path.unlink(missing_ok=True)
