"""Tables from files, what their columns are, and which of them a model can use.

read_tables     CSV, Parquet, FASTA, npz, HDF5, h5ad and h5mu files as one data frame with groups of columns
choose_columns  the columns to use, and the others with the reason
take_task       classification or regression, and why
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from multikernel.datasets.loaders import open_archive
from multikernel.inspection.columns import is_sequence, why_not
from multikernel.inspection.methods import TASKS, choose_task, did_you_mean

NUMBER, WORDS, SEQUENCE = "number", "words", "sequence"


@dataclass(frozen=True)
class Tables:
    """A data frame, the columns that came from one file or array, and the names of the rows where they have some."""

    frame: Any
    groups: Mapping[str, list[str]]
    rows: np.ndarray | None = None


@dataclass(frozen=True)
class Columns:
    """What is made of the columns of a table.

    Attributes
    ----------
    kinds : dict
        The columns used, each with its kind: "number", "words" or "sequence".
    views : dict
        The columns of each view.
    dropped : dict
        The other columns, each with the reason.
    """

    kinds: dict[str, str]
    views: dict[str, list[str]]
    dropped: dict[str, str]


def pandas() -> Any:
    """Return the module, or raise one sentence where it is missing."""
    try:
        import pandas as pd
    except ImportError:
        raise ValueError("Tables are read by pandas, which is missing: pip install 'multikernel[data]'.") from None
    return pd


def read_tables(paths: Sequence[Path], index: str | None = None) -> Tables:
    """Read files whose rows are the same samples, side by side.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    index : str or None
        The column that names the samples in every file; without it rows are matched by their order.
    """
    frames: list[Any] = []
    groups: dict[str, list[str]] = {}
    for path in paths:
        frame, own = _read(path)
        if index is not None:
            frame = _by_index(path, frame, index)
        if frames:
            frame = _like_first(path, frame, paths[0], frames[0], index)
        # a column that other files have too is taken once where its values are the same
        taken = {name: other[name] for other in frames for name in other.columns}
        frame = frame[[name for name in frame.columns if name not in taken or not frame[name].equals(taken[name])]]
        if index is None and (odd := [name for name in frame.columns if name in taken and frame[name].is_unique]):
            raise ValueError(
                f"The rows of '{path}' must be in the order of the other files. Got the column {odd[0]!r} in another "
                f"order: --index {odd[0]} matches rows by it."
            )
        new = {name: f"{path.stem}:{name}" if name in taken else name for name in frame.columns}
        frames.append(frame.rename(columns=new))
        for group, names in (own or {path.stem: list(frame.columns)}).items():
            members = [new[each] for each in names if each in new]
            groups[group if group not in groups else f"{path.stem}:{group}"] = members
    whole = frames[0] if len(frames) == 1 else pandas().concat(frames, axis=1)
    if not len(whole) or not len(whole.columns):
        raise ValueError(
            f"The file '{paths[0]}' must hold samples. Got {len(whole)} rows and {len(whole.columns)} columns."
        )
    several = len(paths) > 1 or len(groups) > 1
    rows = None if index is None else whole.index.to_numpy()
    return Tables(whole.reset_index(drop=True), groups if several else {}, rows)


def _by_index(path: Path, frame: Any, index: str) -> Any:
    """Return a table whose rows have the names in one of its columns."""
    if index not in frame.columns:
        there = absent("column", index, list(frame.columns), path)
        raise ValueError(f"The option --index names no column: {there}")
    if frame[index].duplicated().any():
        raise ValueError(f"The option --index must name a column without repetitions. Got {index!r} in '{path}'.")
    return frame.set_index(index)


def _like_first(path: Path, frame: Any, first: Path, wanted: Any, index: str | None) -> Any:
    """Return a table with the rows of the first one, in its order."""
    if len(frame) != len(wanted) or (index is not None and set(frame.index) != set(wanted.index)):
        how = "as many rows as" if index is None else f"the same values of {index!r} as"
        raise ValueError(f"The file '{path}' must have {how} '{first}'. Got {len(frame)} and {len(wanted)} rows.")
    return frame if index is None else frame.loc[wanted.index]


def _read(path: Path) -> tuple[Any, dict[str, list[str]]]:
    """Return the data frame of one file, and the columns of each of its arrays."""
    if not path.is_file():
        raise ValueError(f"The file '{path}' does not exist.")
    kind = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    try:
        frame, groups = _READERS.get(kind.lower(), _read_csv)(path)
    except ImportError as error:
        raise ValueError(f"The file '{path}' needs a package that is missing: {one_line(error)}") from None
    except Exception as error:
        # parsers of damaged files raise errors of many classes; our own sentences name the file, or the missing package
        if isinstance(error, ValueError) and (str(path) in str(error) or "pip install" in str(error)):
            raise
        raise ValueError(f"The file '{path}' could not be read. Got: {one_line(error)}") from None
    frame.columns = [str(name) for name in frame.columns]
    if frame.columns.duplicated().any():
        name = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"The columns of '{path}' must have names of their own. Got {name!r} twice.")
    return frame, groups


def _read_csv(path: Path) -> tuple[Any, dict]:
    try:
        return pandas().read_csv(path, sep=separator(path), skipinitialspace=True), {}
    except (ValueError, OSError) as error:
        if "pip install" in str(error):
            raise
        # pandas' parser errors and encoding errors are ValueErrors too
        raise ValueError(f"The file '{path}' must be a table with a line of names. Got: {one_line(error)}") from None


def separator(path: Path) -> str:
    """Return the column separator: the most frequent of , ; tab | in the header, or blanks if it has none of them."""
    import gzip

    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        names = file.readline().strip()
    found = max(",;\t|", key=names.count)
    return found if found in names or " " not in names else r"\s+"


def _read_fasta(path: Path) -> tuple[Any, dict]:
    from multikernel.datasets import read_fasta

    records = read_fasta(path, errors="raise")
    columns = {"id": records.ids, "description": records.descriptions, "sequence": records.sequences}
    return pandas().DataFrame({name: list(values) for name, values in columns.items()}), {}


def _read_arrays(path: Path) -> tuple[Any, dict[str, list[str]]]:
    if path.suffix == ".npz":
        with open_archive(path) as stored:
            return _side_by_side(path, {name: stored[name] for name in stored})
    import h5py

    arrays: dict[str, Any] = {}
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: arrays.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return _side_by_side(path, arrays)


def _side_by_side(path: Path, arrays: Mapping[str, Any]) -> tuple[Any, dict[str, list[str]]]:
    """Return arrays of as many rows as the longest of them as one frame: tables of numbers are groups of columns."""
    pd = pandas()
    tables = {name: np.asarray(each) for name, each in arrays.items() if np.ndim(each) in (1, 2) and np.size(each)}
    n = max((len(each) for each in tables.values()), default=0)
    frames, groups = [], {}
    for name, each in tables.items():
        if len(each) != n:
            continue
        each = np.char.decode(each.astype("S"), "utf-8") if each.dtype.kind == "S" else each
        if each.dtype.kind == "O":
            each = np.array([v.decode() if isinstance(v, bytes) else v for v in each.ravel()], object).reshape(
                each.shape
            )
        names = [name] if each.ndim == 1 else [f"{name}[{j}]" for j in range(each.shape[1])]
        frames.append(pd.DataFrame(each.reshape(n, -1), columns=names))
        if each.ndim == 2:
            groups[name] = names
    if not frames:
        raise ValueError(f"The file '{path}' must hold arrays of one or two dimensions. Got {sorted(arrays)}.")
    return pd.concat(frames, axis=1), groups


def _read_parquet(path: Path) -> tuple[Any, dict]:
    return pandas().read_parquet(path), {}


def _read_annotated(path: Path) -> tuple[Any, dict[str, list[str]]]:
    pd = pandas()
    if path.suffix == ".h5mu":
        import mudata

        whole = mudata.read_h5mu(path)
        parts, obs = dict(whole.mod), whole.obs
    else:
        import anndata

        whole = anndata.read_h5ad(path)
        parts, obs = {"X": whole}, whole.obs
    frames, groups = [obs.reset_index(drop=True)], {}
    for part, data in parts.items():
        tables = {part: (data.X, list(data.var_names)), **{key: (data.obsm[key], None) for key in data.obsm}}
        for name, (values, names) in tables.items():
            dense = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
            if dense.ndim == 2 and len(dense) == len(obs):
                names = [f"{name}[{j}]" for j in range(dense.shape[1])] if names is None else names
                groups[name] = [each if part == "X" else f"{part}:{each}" for each in names]
                frames.append(pd.DataFrame(dense, columns=groups[name]))
    return pd.concat(frames, axis=1), groups


_READERS = {
    **dict.fromkeys((".parquet", ".pq"), _read_parquet),
    **dict.fromkeys((".fasta", ".fa", ".faa", ".fna", ".fasta.gz", ".fa.gz"), _read_fasta),
    **dict.fromkeys((".npz", ".h5", ".hdf5"), _read_arrays),
    **dict.fromkeys((".h5ad", ".h5mu"), _read_annotated),
}


def one_line(error: BaseException) -> str:
    """Return the message of an error as one line that ends with a full stop."""
    text = " ".join(str(error).split()).rstrip(".")
    return f"{text}." if text else f"{type(error).__name__}."


def absent(kind: str, name: str, there: Sequence[str], path: Any) -> str:
    """Return the sentence about a column or array that is not there."""
    first = list(there[:12])
    shown = ", ".join(" ".join(each.split()) for each in first)
    more = f" and {len(there) - len(first)} more" if len(there) > len(first) else ""
    return f"The {kind} '{name}' is not in '{path}', which holds {shown}{more}.{did_you_mean(name, list(there))}"


# ---- columns


def choose_columns(tables: Tables, target: str | None, views: Mapping[str, Sequence[str]], drop: Sequence[str] = (),
                   keep: Sequence[str] = ()) -> Columns:  # fmt: skip
    """Return the columns to use, by kind and by view, and the others with the reason.

    Parameters
    ----------
    tables : Tables
        What `read_tables` returned.
    target : str or None
        The column of the targets.
    views : mapping
        The names, or patterns of names such as "gene_*", of the columns of each view; empty for the groups of the
        tables, or one view of all columns.
    drop, keep : sequences of str
        Names or patterns of columns that are not used, or used although they look like an index or an id.
    """
    frame = tables.frame
    names = [str(name) for name in frame.columns if name != target]
    if views:
        chosen = {view: _match(patterns, names, f"--view {view}") for view, patterns in views.items()}
    elif tables.groups:
        chosen = {view: [each for each in own if each != target] for view, own in tables.groups.items()}
    else:
        chosen = {"all": list(names)}
    asked = {each for patterns in views.values() for each in patterns}
    asked |= set(_match(keep, names, "--keep"))
    unwanted = set(_match(drop, names, "--drop"))
    dropped, kinds = {}, {}
    in_views = {each for own in chosen.values() for each in own}
    for name in names:
        column = frame[name]
        reason = why_not(name, column)
        if name in unwanted:
            reason = "asked for by --drop"
        elif reason is not None and name in asked and reason not in ("constant", "empty"):
            reason = None
        elif reason is None and name not in in_views and tables.groups:
            chosen.setdefault("others", []).append(name)
        elif reason is None and name not in in_views:
            reason = "in no view"
        if reason is not None:
            dropped[name] = reason
        elif getattr(column.dtype, "kind", "O") in "biuf":
            kinds[name] = NUMBER
        else:
            texts = column.dropna().to_numpy(dtype=object)
            kinds[name] = SEQUENCE if len(texts) == len(column) and is_sequence(texts) else WORDS
    kept = {view: [each for each in own if each in kinds] for view, own in chosen.items()}
    kept = {view: own for view, own in kept.items() if own or view in views}
    empty = next((view for view, own in kept.items() if not own), None)
    if not kinds or empty is not None:
        what = "The data" if empty is None else f"The view {empty!r}"
        reasons = "; ".join(f"{name!r} is {why}" for name, why in list(dropped.items())[:3]) or "there are none"
        raise ValueError(f"{what} must have columns that a model can use. Got none: {reasons}. See --keep.")
    return Columns(kinds, kept, dropped)


def _match(patterns: Sequence[str], names: Sequence[str], option: str) -> list[str]:
    found = []
    for pattern in patterns:
        own = [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]
        if not own:
            hint = did_you_mean(pattern, list(names))
            raise ValueError(
                f"The option {option} must name columns of the data. Got {pattern!r}, which none has.{hint}"
            )
        found += [name for name in own if name not in found]
    return found


def take_task(y: Any, task: str = "auto") -> tuple[str, str]:
    """Return "classification" or "regression", and the reason.

    Words and truth values are classes. Numbers are classes where they are whole and have at most as many values as the
    root of the number of samples.

    Examples
    --------
    >>> import pandas as pd
    >>> take_task(pd.Series(["a", "b", "a"]))
    ('classification', 'the targets are words')
    >>> take_task(pd.Series(range(100)))[0], take_task(pd.Series([0, 1, 2] * 30))[0]
    ('regression', 'classification')
    """
    if task not in TASKS:
        raise ValueError(f"The option --task must be one of {', '.join(TASKS)}. Got {task!r} instead.")
    number = getattr(y.dtype, "kind", "O") in "iuf"
    if task != "auto":
        if task == "regression" and not number:
            raise ValueError("The option --task must be 'classification' for targets that are words. Got 'regression'.")
        return task, "as asked for by --task"
    if not number:
        return "classification", "the targets are words" if y.dtype.kind != "b" else "the targets are truth values"
    taken = choose_task(y.to_numpy())
    kind = "whole numbers" if taken == "classification" else "numbers"
    return taken, f"the targets are {kind} of {y.nunique()} values"
