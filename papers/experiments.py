"""What the scripts of the papers share: rows that a stopped run takes up again, verdicts, pictures and the page of all.

A script is one table or figure. It has

    title              the paper's name of it
    compared           what differs from the paper, in a sentence or two
    tasks(small)       a list of dicts, the units of work
    work(small, **task) -> dict or list of dicts    the rows of one task
    verdicts(rows)     a list of `Verdict`
    draw(rows, figure) draws into a matplotlib figure

and where needed ``one_at_a_time = True`` (it measures times) and ``long = True`` (only `make papers-full` runs it).
A script that shows the rows of another one names it, ``rows_of = "2009-ying/table2"``, and has neither tasks nor work.
`run` calls `work` for every task whose rows are not there yet, in several processes if asked, and appends the rows of a
task to NAME-rows.csv in one write. `show` writes the verdicts to NAME.csv, and the picture.
"""

from __future__ import annotations

import csv
import fcntl
import importlib.util
import io
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.exceptions import FitFailedWarning

from multikernel import KernelStack, stack_kernels
from multikernel.kernels import learn_normalizer

PAPERS = Path(__file__).parent
PICTURES = PAPERS.parent / "docs" / "papers"
CACHE = PAPERS.parent / "build" / "papers"
# tables and pictures of small runs, which never stand beside those of the full ones
SMALL = PAPERS.parent / "build" / "papers-small"
# verdicts: on a statement; on a number; on a number where other data stand in for the paper's; nothing to compare with
HOLDS, FAILS = "claim holds", "claim fails"
REPRODUCED, BETTER, DIFFERS = "reproduced", "better", "differs"
NEAR = "near, on other data"
ONLY_OURS = "only ours"


@dataclass(frozen=True)
class Verdict:
    """A statement or a number of the paper, ours with its standard error, and what we make of it."""

    what: str
    paper: str
    ours: str
    error: str
    verdict: str
    why: str = ""


def claim(what: str, paper: str, ours: str, holds: Any, why: str = "", error: str = "", remark: str = "") -> Verdict:
    """Return the verdict on a statement: with `why` where it does not hold, with `remark` where it does."""
    return Verdict(what, paper, ours, error, *((HOLDS, remark) if holds else (FAILS, why)))


def sign(what: str, paper: float, values: Any, why: str, above: bool = True) -> Verdict:
    """Return the verdict on the sign of a difference whose size the paper prints; a remark says what of the size.

    It is above 0 by more than two standard errors or, with ``above=False``, not below 0 by more than one.
    """
    mean, error = mean_and_error(values)
    clear, alike = mean > 2.0 * error, abs(mean - paper) <= 2.0 * error
    remark = "a clear difference" if clear else "no clear difference"
    remark += ", and the size within two errors" if alike else "; the size differs"
    texts = f"{paper:.1f} ({'above' if above else 'not below'} 0)", f"{mean:.1f}"
    return claim(what, *texts, clear if above else mean >= -error, why, standard_error(values), remark)


def note(what: str, ours: str, error: str = "") -> Verdict:
    """Return a number of ours about which the paper says nothing."""
    return Verdict(what, "", ours, error, ONLY_OURS)


def number(
    what: str, paper: float, values: Any, why: str = "", spread: float = 0.0, digits: int = 1, same: bool = True
) -> Verdict:
    """Return the verdict on a number of which larger is better.

    The values are repetitions or, of a single split, 0 or 100 for every test sample. The number is reproduced within
    two standard errors of ours, or within the spread that the paper prints. On other data than the paper's
    (``same=False``) it is near or differs, and a larger one is not called better.
    """
    mean, error = mean_and_error(values)
    near = abs(mean - paper) <= max(2.0 * error, spread)
    verdict = (REPRODUCED if same else NEAR) if near else BETTER if mean > paper and same else DIFFERS
    texts = [f"{paper:.{digits}f}", f"{mean:.{digits}f}", standard_error(values, digits + 1)]
    return Verdict(what, *texts, verdict, why if verdict == DIFFERS else "")


def hits(percent: float, n: int) -> np.ndarray:
    """Return 100 for every one of n test samples that a single split got right, and 0 for the others.

    >>> hits(75.0, 4)
    array([100., 100., 100.,   0.])
    """
    right = round(percent * n / 100)
    return np.repeat([100.0, 0.0], [right, n - right])


def two_errors(first: float, second: float, n: int) -> float:
    """Return two standard errors of the difference of two percentages of n samples, counted as independent.

    >>> two_errors(50.0, 50.0, 200)
    10.0
    """
    return float(2.0 * np.sqrt((first * (100.0 - first) + second * (100.0 - second)) / n))


def mean_and_error(values: Any) -> tuple[float, float]:
    """Return the mean and its standard error (zero for one value).

    >>> mean_and_error([1.0, 2.0, 3.0])
    (2.0, 0.5773502691896258)
    """
    values = np.asarray(values, float)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def standard_error(values: Any, digits: int = 2) -> str:
    """Return the standard error as it is printed, nothing for one value."""
    return f"{mean_and_error(values)[1]:.{digits}f}" if np.size(values) > 1 else ""


# ---- rows


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, numbers as numbers; a last line that a stopped run left unfinished is dropped."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return [{key: _value(value) for key, value in row.items()} for row in csv.DictReader(io.StringIO(whole))]


def append_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Append rows in one write, so that a file holds all rows of a task or none."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    if not path.exists():
        writer.writeheader()
    else:
        header = path.read_text(encoding="utf-8").split("\n", 1)[0].split(",")
        if header != list(rows[0]):
            raise ValueError(
                f"'{path}' has the columns {', '.join(header)}, and this script writes {', '.join(rows[0])}: "
                "the rows are those of another version. Delete the file to begin anew."
            )
    writer.writerows([{key: _text(value) for key, value in row.items()} for row in rows])
    with open(path, "ab", buffering=0) as file:
        file.write(text.getvalue().encode())
        os.fsync(file.fileno())


def numbers(text: Any) -> np.ndarray:
    """Return an array that a row holds, such as weights."""
    return np.array(str(text).split(), float)


def column(rows: list[dict], key: str, **where: Any) -> np.ndarray:
    """Return one column of the rows that have the given values."""
    return np.array([row[key] for row in rows if all(row[name] == value for name, value in where.items())])


def values(rows: list[dict], key: str) -> list:
    """Return the different values of a column, in order of appearance."""
    return list(dict.fromkeys(row[key] for row in rows))


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray | list | tuple):
        return " ".join(f"{each:.4g}" for each in value)
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def cached(name: str, compute: Callable[[], np.ndarray]) -> np.ndarray:
    """Return an array that several runs and processes share, computed once and kept in a file that is mapped."""
    path = CACHE / f"{name}.npy"
    path.parent.mkdir(parents=True, exist_ok=True)
    # one process computes, the others wait; the lock ends with the process
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            part = path.with_suffix(".part")
            with open(part, "wb") as file:
                np.save(file, compute())
            os.replace(part, path)
    return np.load(path, mmap_mode="r")


def normalised(K: np.ndarray, *steps: str, dtype: Any = np.float32) -> np.ndarray:
    """Return a kernel with the library's normalisation, over all its samples."""
    K = np.asarray(K, float)
    return learn_normalizer(steps, np.diag(K), K.dot).train_block(K).astype(dtype)


def average(stack: KernelStack, weights: Any = None) -> KernelStack:
    """Return the mean of the kernels, with the given weights or equal ones, as a stack of one kernel."""
    weights = np.ones(stack.n_kernels) if weights is None else np.asarray(weights, float)
    shares = weights / weights.sum()
    mean = sum(share * K for share, K in zip(shares, stack.train_kernels(), strict=True) if share)
    return stack_kernels([mean.astype(stack.dtype)])


# ---- scripts


def names() -> list[str]:
    """Return the names of all scripts, such as '2005-sonnenburg/figure1'."""
    return sorted(f"{path.parent.name}/{path.stem}" for path in PAPERS.glob("[0-9]*/*.py"))


def load_script(name: str) -> ModuleType:
    """Import a script by its name."""
    if name not in names():
        raise ValueError(f"There is no script {name!r}. There are: {', '.join(names())}.")
    key = "paper_" + name.replace("/", "_").replace("-", "_")
    if key not in sys.modules:
        spec = importlib.util.spec_from_file_location(key, PAPERS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[key] = module
        spec.loader.exec_module(module)
    return sys.modules[key]


def rows_of(name: str) -> str:
    """Return the name of the script whose rows a script shows: its own, or that of another one."""
    return getattr(load_script(name), "rows_of", name)


def stored_rows(name: str, small: bool = False, folder: Path = PAPERS) -> tuple[list[dict[str, Any]], list[dict]]:
    """Return the rows that a script shows, in the order of the tasks, and the tasks that are left."""
    source = rows_of(name)
    return progress(load_script(source).tasks(small), folder / f"{source}-rows.csv")


def run(name: str, small: bool = False, output: Path | None = None, jobs: int = 1) -> list[dict[str, Any]]:
    """Compute what is missing of one script, then write its verdicts and its picture; return its rows."""
    compute(rows_of(name), small, output or PAPERS, jobs)
    return show(name, small, output)


def show(name: str, small: bool = False, output: Path | None = None) -> list[dict[str, Any]]:
    """Write the verdicts and the picture of the rows that are there; return these."""
    script, folder = load_script(name), output or PAPERS
    picture = (output or PICTURES) / f"{name.replace('/', '-')}.png"
    for each in (folder / name, picture):
        each.parent.mkdir(parents=True, exist_ok=True)
    rows, left = stored_rows(name, small, folder)
    if left:
        print(f"{name}: {len(left)} tasks have no rows yet")
    if not rows:
        return rows
    write_verdicts(folder / f"{name}.csv", script.verdicts(rows))
    try:
        draw(script, rows, picture)
    except ModuleNotFoundError:
        print(f"{name}: no picture without matplotlib; the same command draws it where matplotlib is installed.")
    return rows


def compute(name: str, small: bool, folder: Path, jobs: int) -> None:
    """Append the rows of the tasks that are left."""
    script, path = load_script(name), folder / f"{name}-rows.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    _, todo = stored_rows(name, small, folder)
    if getattr(script, "one_at_a_time", False):
        jobs = 1
    bar, began = Bar(name, len(todo)), sum(os.times()[:4])
    for rows in _results(name, small, todo, jobs):
        append_rows(path, rows)
        bar.step()
    if todo:
        # of this process and of its children
        seconds = sum(os.times()[:4]) - began
        print(f"{name}: {len(todo)} of {len(script.tasks(small))} tasks, {seconds:.0f} s of processor time", flush=True)


def progress(tasks: list[dict], path: Path) -> tuple[list[dict[str, Any]], list[dict]]:
    """Return the rows of the tasks that are done, in the order of the tasks, and the tasks that are left."""
    place = {tuple(_text(value) for value in task.values()): i for i, task in enumerate(tasks)}
    found = [(place.get(tuple(_text(row[key]) for key in tasks[0])), row) for row in read_rows(path)]
    done = sorted([(i, row) for i, row in found if i is not None], key=lambda pair: pair[0])
    left = set(place.values()).difference(i for i, _ in done)
    return [row for _, row in done], [task for i, task in enumerate(tasks) if i in left]


def _results(name: str, small: bool, todo: list[dict], jobs: int) -> Iterator[list[dict]]:
    if jobs == 1 or len(todo) < 2:
        yield from (work_one(name, small, task) for task in todo)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(work_one, name, small, task) for task in todo]):
            yield done.result()


def work_one(name: str, small: bool, task: dict) -> list[dict]:
    """Return the rows of one task, each with the values that name the task."""
    with warnings.catch_warnings():
        # a search goes on without the fits that fail; an experiment does not
        warnings.simplefilter("error", FitFailedWarning)
        found = load_script(name).work(small, **task)
    return [task | row for row in (found if isinstance(found, list) else [found])]


def write_verdicts(path: Path, found: list[Verdict]) -> None:
    """Write a table of verdicts."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Verdict)])
        writer.writerows(astuple(each) for each in found)


def draw(script: ModuleType, rows: list[dict], path: Path) -> None:
    """Save the picture of a script."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=getattr(script, "size", (7, 4)), layout="constrained")
    script.draw(rows, figure)
    figure.savefig(path, dpi=90, metadata={"Software": None})


class Bar:
    """A progress bar on a terminal; elsewhere a line every tenth of the way."""

    def __init__(self, name: str, total: int):
        self.name, self.total, self.done, self.began = name, total, 0, time.monotonic()
        if not total:
            print(f"{name}: all rows are there", flush=True)

    def step(self) -> None:
        """Count one task as done."""
        self.done += 1
        left = (time.monotonic() - self.began) / self.done * (self.total - self.done)
        filled = 30 * self.done // self.total
        text = f"{self.name} [{'#' * filled}{'-' * (30 - filled)}] {self.done}/{self.total}, {left:.0f} s left"
        if sys.stderr.isatty():
            print(f"\r{text} ", end="\n" if self.done == self.total else "", file=sys.stderr, flush=True)
        elif self.done * 10 // self.total > (self.done - 1) * 10 // self.total:
            print(text, flush=True)
