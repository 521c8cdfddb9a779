"""Real data sets, read from a folder that the user names: files ``<group>/<name>.npz``, described in ``<group>.md``.

The library ships no data and downloads none. The folder is the argument ``data_dir`` or the environment
variable ``MULTIKERNEL_DATA``; `available` lists what is there, `load` reads one set.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

VARIABLE = "MULTIKERNEL_DATA"


def available(data_dir: str | os.PathLike | None = None) -> list[str]:
    """The names that `load` takes, in alphabetical order.

    Parameters
    ----------
    data_dir : path, default=None
        The folder with the data; None takes the one named by the environment variable ``MULTIKERNEL_DATA``.

    Returns
    -------
    names : list of str
        One name for every ``.npz`` file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from multikernel.datasets import available
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (pathlib.Path(folder) / "points").mkdir()
    ...     np.savez(pathlib.Path(folder) / "points" / "points.npz", X=np.eye(2), y=[0, 1])
    ...     available(folder)
    ['points']
    """
    return sorted(_files(_folder(data_dir)))


def load_dataset(name: str, data_dir: str | os.PathLike | None = None) -> Bunch:
    """Read one data set.

    Parameters
    ----------
    name : str
        One of `available()`.
    data_dir : path, default=None
        The folder with the data; None takes the one named by the environment variable ``MULTIKERNEL_DATA``.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Every array of the file under its own name (names and identifiers as text, sequences as bytes), and

        data : ndarray, or list of ndarrays
            ``X``; with several views of the same samples their list ``X_0, X_1, ...``; otherwise ``seq``.
        target : ndarray
            ``y``.
        target_names, view_names : ndarray of str
            Where the file names them.
        DESCR : str
            The description: source, licence, checks and caveats. Read it before use.
        filename : str
            The file.

        ``data`` and ``target`` are absent where a file holds several tasks.

    Raises
    ------
    FileNotFoundError
        When no folder is named, when it does not exist, or when it does not hold the set.
    ValueError
        When the file is damaged.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from multikernel.datasets import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (pathlib.Path(folder) / "points").mkdir()
    ...     np.savez(pathlib.Path(folder) / "points" / "points.npz", X=np.eye(2), y=[0, 1])
    ...     points = load("points", data_dir=folder)
    >>> points.data.shape, points.target.tolist()
    ((2, 2), [0, 1])
    """
    folder = _folder(data_dir)
    files = _files(folder)
    if name not in files:
        raise FileNotFoundError(_absent(name, folder, files))
    path = files[name]
    with open_archive(path) as stored:
        arrays = {key: _text(key, array) for key, array in stored.items()}
    data = Bunch(**arrays)
    views = [arrays[f"X_{i}"] for i in range(len(arrays)) if f"X_{i}" in arrays]
    for key, value in (("data", arrays.get("seq")), ("data", views or None), ("data", arrays.get("X"))):
        if value is not None:
            data[key] = value
    if "y" in arrays:
        data["target"] = arrays["y"]
    for key in ("class_names", "fold_names"):
        if key in arrays:
            data["target_names"] = arrays[key]
    data["DESCR"] = _description(path)
    data["filename"] = str(path)
    return data


load = load_dataset


@contextmanager
def open_archive(path: Path) -> Iterator[Mapping[str, np.ndarray]]:
    """Open an npz file to read arrays from it; whatever is wrong with the file becomes a ValueError of one sentence."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            yield stored
    except Exception as error:
        # damaged archives and headers raise errors of a dozen classes, from zipfile, zlib, ast, struct and NumPy
        text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise ValueError(f"The file '{path}' must be an npz archive of numbers and words. Got: {text}.") from error


def _folder(data_dir) -> Path:
    """The folder with the data."""
    named = data_dir if data_dir is not None else os.environ.get(VARIABLE)
    if not named:
        raise FileNotFoundError(
            f"The environment variable {VARIABLE} is not set: set it to the folder that holds the data sets "
            "(one folder for each), or pass that folder as 'data_dir'."
        )
    folder = Path(named).expanduser()
    if not folder.is_dir():
        origin = "given as 'data_dir'" if data_dir is not None else f"named by {VARIABLE}"
        raise FileNotFoundError(f"The folder '{folder}' {origin} does not exist.")
    return folder


def _files(folder: Path) -> dict[str, Path]:
    """The ``.npz`` files one level down, by their stem."""
    return {path.stem: path for path in sorted(folder.glob("*/*.npz"))}


def _absent(name: str, folder: Path, files: dict[str, Path]) -> str:
    """What to say when a set is not there."""
    members = [stem for stem, path in files.items() if path.parent.name == name]
    if members:
        return f"The data set '{name}' is in several parts; load one of {', '.join(map(repr, members))}."
    near = difflib.get_close_matches(str(name), files, n=1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    there = ", ".join(files) if files else "nothing"
    return f"The data set '{name}' is not in the folder '{folder}'{hint}. It holds: {there}."


def _text(key: str, array: np.ndarray) -> np.ndarray:
    """Bytes as text, except sequences, which would take four times the memory."""
    return np.char.decode(array, "utf-8") if array.dtype.kind == "S" and not key.startswith("seq") else array


def _description(path: Path) -> str:
    """The text beside the file, named after the set or its folder."""
    for candidate in (path.with_suffix(".md"), path.parent / f"{path.parent.name}.md"):
        if candidate.is_file():
            return candidate.read_text(encoding="utf-8")
    return ""
