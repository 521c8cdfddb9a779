"""``multikernel compare``: a table and a plot of several methods on the data of a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from multikernel.cli.tables import absent, one_line, pandas, separator
from multikernel.datasets.loaders import open_archive
from multikernel.inspection.columns import why_not
from multikernel.inspection.methods import did_you_mean

KERNELS = ("rbf", "linear", "polynomial", "laplacian", "cosine")


def load_table(
    path: Path,
    target: str,
    standardize: bool = True,
    keep: Sequence[str] = (),
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[Any, np.ndarray]:
    """Read samples and targets from a CSV or an npz file.

    Parameters
    ----------
    path : Path
        A table with one row per sample; or an archive with X (n, d), or kernels K (p, n, n), and the targets.
    target : str
        The column, or the array, of the targets.
    standardize : bool
        Whether to scale every column of samples to mean zero and variance one.
    keep : sequence of str
        Columns of a table that are used whatever they look like; others that look like an index or an id, or are
        constant, are dropped.
    tell : callable
        Told in a line each which columns are used, and which are dropped and why.

    Returns
    -------
    X : ndarray of shape (n, d), or KernelStack
        Samples; columns of words become one column of zeros and ones per word.
    y : ndarray of shape (n,)
        Targets.
    """
    if not path.is_file():
        raise ValueError(f"The file '{path}' does not exist.")
    if path.suffix == ".npz":
        return _load_archive(path, target, standardize)
    pd = pandas()
    try:
        frame = pd.read_csv(path, sep=separator(path), skipinitialspace=True)
    except (ValueError, OSError) as error:
        # pandas' parser errors and encoding errors are ValueErrors too
        raise ValueError(f"The file '{path}' must be a table with a line of names. Got: {one_line(error)}") from error
    if target not in frame.columns:
        raise ValueError(absent("column", target, list(map(str, frame.columns)), path))
    y = frame.pop(target)
    if not len(frame) or not len(frame.columns):
        got = f"{len(frame)} rows and {len(frame.columns)} columns"
        raise ValueError(f"The file '{path}' must hold samples and columns beside '{target}'. Got {got}.")
    frame = frame[_chosen(frame, keep, path, tell)]
    if y.isna().any():
        raise ValueError(f"The column '{target}' of '{path}' must not have gaps. Got {int(y.isna().sum())} of them.")
    gaps = frame.columns[frame.isna().any()].tolist()
    if gaps:
        raise ValueError(f"The columns of '{path}' must not have gaps. Got some in {', '.join(map(repr, gaps[:5]))}.")
    X = pd.get_dummies(frame, dtype=float).to_numpy(dtype=np.float64)
    if not np.isfinite(X).all():
        raise ValueError(f"The columns of '{path}' must hold finite numbers or words. Got infinity.")
    return _scaled(X, standardize), y.to_numpy()


def _chosen(frame: Any, keep: Sequence[str], path: Path, tell: Callable[[str], None]) -> list[str]:
    """Return the columns to use; tell which, and which are dropped and why."""
    unknown = [name for name in keep if name not in frame.columns]
    if unknown:
        raise ValueError(f"--keep: {absent('column', unknown[0], list(map(str, frame.columns)), path)}")
    why = {name: reason for name in frame.columns if name not in keep and (reason := why_not(name, frame[name]))}
    used = [name for name in frame.columns if name not in why]
    # a name may hold line breaks
    plain = {name: " ".join(str(name).split()) for name in frame.columns}
    dropped = ", ".join(f"'{plain[name]}' ({reason})" for name, reason in why.items())
    if not used:
        raise ValueError(f"The file '{path}' must hold columns to learn from. Got only {dropped}: --keep uses them.")
    shown = ", ".join(plain[name] for name in used[:12]) + (f" and {len(used) - 12} more" if len(used) > 12 else "")
    tell(f"Columns used ({len(used)}): {shown}.")
    if why:
        tell(f"Columns dropped ({len(why)}): {dropped}. --keep NAME uses one nevertheless.")
    return used


def _load_archive(path: Path, target: str, standardize: bool) -> tuple[Any, np.ndarray]:
    from multikernel.gram.stack import stack_kernels

    with open_archive(path) as stored:
        names = list(stored)
        wanted = {target, "X" if "X" in names else "K"}
        arrays = {name: stored[name] for name in names if name in wanted}
    if target not in names:
        raise ValueError(absent("array", target, names, path))
    y = arrays[target]
    if "X" in names:
        X = arrays["X"]
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise ValueError(f"The array X of '{path}' must be a table of numbers. Got shape {X.shape}.")
        return _scaled(X.astype(np.float64), standardize), y
    if "K" in names:
        return stack_kernels(arrays["K"]), y
    raise ValueError(f"The file '{path}' must hold the samples X (n, d) or the kernels K (p, n, n). Got {names}.")


def _scaled(X: np.ndarray, standardize: bool) -> np.ndarray:
    if not standardize:
        return X
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def make_kernels(names: Sequence[str], widths: Sequence[float], factors: Sequence[float]) -> list[Any]:
    """Return the kernels of these names; Gaussian ones at the given widths or multiples of the median distance."""
    from multikernel import kernels

    chosen: list[Any] = []
    for name in names:
        if name not in KERNELS:
            hint = did_you_mean(name, KERNELS)
            raise ValueError(f"The kernels must be among {', '.join(KERNELS)}. Got {name!r} instead.{hint}")
        if name == "rbf":
            chosen += kernels.rbf_family(widths) if widths else kernels.rbf_family(factors=list(factors) or None)
        else:
            chosen.append(getattr(kernels, name.capitalize())())
    return chosen


def words(text: str) -> list[str]:
    """Return the parts of a list such as 'a,b, c'."""
    return [part.strip() for part in text.split(",") if part.strip()]


def numbers(text: str, option: str) -> list[float]:
    """Return the positive numbers of a list such as '0.1,1,10'."""
    try:
        found = [float(part) for part in words(text)]
    except ValueError:
        found = [-1.0]
    if any(not 0 < each < np.inf for each in found):
        raise ValueError(f"The option {option} must be positive numbers, separated by commas. Got {text!r} instead.")
    return found


def run_compare(
    path: Path,
    target: str,
    methods: str,
    kernels: str = "rbf",
    widths: str = "",
    factors: str = "",
    cv: int = 5,
    scoring: str | None = None,
    C: str = "",
    normalize: str = "",
    sample: int | None = None,
    seed: int = 0,
    standardize: bool = True,
    output: Path | None = None,
    resume: bool = True,
    verbose: int = 1,
    task: str = "auto",
    keep: str = "",
    tell: Callable[[str], None] = lambda line: None,
) -> Any:
    """Read the data, compare the methods, write the results; return the comparison.

    Parameters are those of the command (`multikernel.cli.app.compare`). ``output`` gets results.jsonl, table.csv,
    fits.csv and comparison.png; among several values of C each method chooses by inner cross-validation. ``tell`` is
    told which columns are used and dropped, and which task the targets are taken for.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    from multikernel.inspection import compare
    from multikernel.inspection.methods import TASKS, choose_task

    costs = numbers(C, "--C")
    if output is not None and output.exists() and not output.is_dir():
        raise ValueError(f"The option --output must be a folder. Got the file '{output}' instead.")
    if task not in TASKS:
        raise ValueError(f"The option --task must be {', '.join(TASKS[:-1])} or {TASKS[-1]}. Got {task!r} instead.")
    X, y = load_table(path, target, standardize, words(keep), tell)
    if sample is not None and sample < len(y):
        rows = np.sort(np.random.default_rng(seed).permutation(len(y))[:sample])
        X, y = X[rows], y[rows]
    params: dict[str, Any] = {}
    if normalize:
        params["normalize"] = None if normalize == "none" else words(normalize)
    if len(costs) == 1:
        params["C"] = costs[0]
    taken = choose_task(y, task=task)
    tell(_task_line(y, target, taken, task))
    found = compare(
        X, y, words(methods),
        kernels=make_kernels(words(kernels), numbers(widths, "--widths"), numbers(factors, "--factors")),
        task=taken,
        cv=(StratifiedKFold if taken == "classification" else KFold)(cv, shuffle=True, random_state=seed),
        scoring=scoring, params=params, grid={"C": costs} if len(costs) > 1 else None,
        results=None if output is None else output / "results.jsonl", resume=resume, verbose=verbose,
    )  # fmt: skip
    if output is not None:
        found.save(output)
    return found


def _task_line(y: np.ndarray, target: str, taken: str, task: str) -> str:
    """Say for which task the targets are taken and, where that was a guess, what else they may be."""
    if task != "auto":
        return f"Task: {taken}, as --task says."
    numbers, count = y.dtype.kind in "iuf", len(np.unique(y))
    whole = numbers and bool(np.all(y == np.floor(y)))
    held = f"{count} different {'whole numbers' if whole else 'numbers' if numbers else 'labels'} in {len(y)} rows"
    other = "regression" if taken == "classification" else "classification"
    hint = f"; --task {other} takes them for {'numbers' if other == 'regression' else 'classes'}" if whole else ""
    return f"Task: {taken}, since '{target}' holds {held}{hint}."
