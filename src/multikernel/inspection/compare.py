"""Several methods on the same kernels and the same splits.

    X, kernels -> one stack -> for every split and method: a slice, a fit, a score -> one table, one plot

Kernels are evaluated once. Normalisations are still learned on the training samples of every split; widths that kernels
learn from samples are learned once, from all inputs (never from targets): give them as numbers where that matters.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples

from multikernel.estimators.splits import splits_of
from multikernel.estimators.validation import check_labels
from multikernel.gram.stack import KernelStack, stack_kernels
from multikernel.gram.storage import storage_dtype
from multikernel.inspection.comparison import Comparison
from multikernel.inspection.methods import learned, make_methods, takes_stack
from multikernel.inspection.records import Records, fingerprint
from multikernel.kernels.bank import KernelBank, take_rows
from multikernel.training.computed import as_numbers

# samples of each class that are fitted before the first timing
_FEW = 9


def compare(
    X: Any,
    y: Any,
    methods: Mapping[str, Any] | Sequence[str] = ("uniform", "alignf", "mkl", "l2"),
    *,
    kernels: Any = "rbf",
    cv: Any = 5,
    scoring: Any = None,
    params: Mapping[str, Any] | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    inner_cv: int = 3,
    groups: Any = None,
    results: str | os.PathLike | None = None,
    resume: bool = True,
    verbose: int = 1,
) -> Comparison:
    """Compare methods by cross-validation, on the same kernels and the same splits.

    Parameters
    ----------
    X : array, sparse matrix, data frame or sequence of samples, or KernelStack
        Samples, or their kernels.
    y : array of shape (n_samples,)
        Targets: classes, or numbers.
    methods : dict from names to estimators, or list of names
        Names: uniform, best, align, alignf, margin, binarymkl, pwmk, fheuristic, mkl, l2, joint, squared, m3k, rkda,
        easymkl, lpbeta, obscure, ufo. An estimator, or one within it, whose ``kernels`` are "rbf" or "precomputed"
        takes the kernels that all share; one with kernels of its own, or without any, takes X.
    kernels : "rbf", kernel or list, default="rbf"
        The kernels, as for `MKLClassifier`; not used where X holds them.
    cv : int, splitter or iterable, default=5
        Splits, as in scikit-learn; stratified for classes.
    scoring : str, callable or None, default=None
        Any scorer of scikit-learn; None for accuracy, or R^2 for numbers.
    params : dict, optional
        Parameters set on every method that has them, such as ``{"C": 10.0, "normalize": ["center", "cosine"]}``.
    grid : dict, optional
        Values, such as ``{"C": [0.1, 1, 10]}``, among which each method that has the parameter chooses by
        cross-validation within its training samples; training time is that of the whole choice.
    inner_cv : int, default=3
        Folds of that.
    groups : array of shape (n_samples,), optional
        Groups for the splitter.
    results : path, optional
        File of JSON lines into which results are written as they come.
    resume : bool, default=True
        Whether results that are in that file are taken up; those of another comparison are refused.
    verbose : int, default=1
        1 shows a progress bar on a terminal.

    Returns
    -------
    Comparison
        With ``table``, ``to_frame()``, ``plot()``, ``save(folder)``; it prints as a table. A method that failed has its
        error there.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.inspection import compare
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> y = X[:, 0] > 0
    >>> found = compare(X, y, ["uniform", "mkl"], kernels="rbf", cv=3)
    >>> [(row["method"], row["splits"], row["accuracy"] > 0.6) for row in found.table]
    [('uniform', 3, True), ('mkl', 3, True)]
    """
    stacked = isinstance(X, KernelStack)
    X = X if hasattr(X, "shape") else np.asarray(X)
    n = len(X) if stacked else _num_samples(X)
    y = check_labels("compare", y, n)
    classification = type_of_target(y) in ("binary", "multiclass")
    estimators = make_methods(methods, classification, stacked, params, grid, inner_cv)
    splits = splits_of("compare", cv, y, classification, groups=groups)
    _check_scoring(scoring)
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    name = ("accuracy" if classification else "r2") if scoring is None else name
    protocol = {
        "data": fingerprint(X, y), "splits": fingerprint(splits), "scoring": fingerprint(name, scoring),
        "kernels": fingerprint("" if stacked else kernels),
    }  # fmt: skip
    keys = {key: fingerprint(repr(each), _parameters(each)) for key, each in estimators.items()}
    records = Records(results, protocol, keys, resume)
    todo = [(fold, key) for fold in range(len(splits)) for key in estimators if not records.known(key, fold)]
    shared: KernelStack | None = X if stacked else None
    n_kernels = len(shared.names) if stacked else 0
    with _bar(verbose, len(todo) + 1) as tell:
        if not stacked and any(takes_stack(each) for each in estimators.values()):
            tell("kernels")
            if todo:
                shared = evaluate(kernels, X)
                n_kernels = len(shared.names)
            else:
                n_kernels = KernelBank.fit(kernels, X).n_kernels
        warm: set[str] = set()
        for fold, key in todo:
            tell(f"{key}, split {fold + 1} of {len(splits)}")
            own = shared if takes_stack(estimators[key]) else X
            if key not in warm:
                _warm_up(estimators[key], own, y, splits[fold][0])
                warm.add(key)
            records.add({"method": key, "fold": fold, **_one(estimators[key], own, y, *splits[fold], scoring)})
    rows = sorted(records.rows, key=lambda row: (list(estimators).index(row["method"]), row["fold"]))
    return Comparison(rows, list(estimators), name, n_kernels, len(splits))


def evaluate(kernels: Any, X: Any) -> KernelStack:
    """Return all kernels between all samples as one stack, in the precision that estimators would store them in."""
    bank = KernelBank.fit(kernels, X)
    numbers = as_numbers(X)
    n, p = _num_samples(X), bank.n_kernels
    stack = np.empty((p, n, n), storage_dtype(p, n))
    for k, K in bank.raw_each(numbers):
        stack[k] = K
    return stack_kernels(stack, names=bank.names)


def _check_scoring(scoring: Any) -> None:
    names = get_scorer_names()
    if scoring is None or callable(scoring) or scoring in names:
        return
    near = get_close_matches(str(scoring), names, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(
        f"The 'scoring' parameter of compare must be a scorer of scikit-learn. Got {scoring!r} instead.{hint}"
    )


def _parameters(estimator: Any) -> list[tuple[str, str]]:
    return sorted((key, repr(value)) for key, value in estimator.get_params().items())


def _warm_up(estimator: Any, X: Any, y: np.ndarray, train: np.ndarray) -> None:
    """Fit a few samples, so that no training time holds what is compiled or imported once in a process."""
    kinds = np.unique(y[train]) if type_of_target(y) in ("binary", "multiclass") else ()
    few = [train[y[train] == kind][:_FEW] for kind in kinds] or [train[:_FEW]]
    _one(estimator, X, y, np.concatenate(few), few[0], None)


def _one(estimator: Any, X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, scoring: Any) -> dict[str, Any]:
    """Fit on one split and score; an error becomes a row."""
    row: dict[str, Any] = {
        "score": None, "fit_time": None, "score_time": None, "active": None, "gap": None, "status": None,
        "warnings": [], "error": None,
    }  # fmt: skip
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model, part = clone(estimator), _take(X, train)
            began = time.perf_counter()
            model.fit(part, y[train])
            fitted = time.perf_counter()
            row |= learned(model)
            if row["status"] == "interrupted":
                raise KeyboardInterrupt
            row["score"] = float(check_scoring(model, scoring)(model, _take(X, test), y[test]))
            row |= {"fit_time": fitted - began, "score_time": time.perf_counter() - fitted}
        row["warnings"] = sorted({str(each.message) for each in caught})
    except Exception as error:
        row |= {"score": None, "error": f"{type(error).__name__}: {error}".splitlines()[0]}
    return row


def _take(X: Any, rows: np.ndarray) -> Any:
    return X[rows] if isinstance(X, KernelStack) else take_rows(X, rows)


@contextmanager
def _bar(verbose: int, total: int) -> Iterator[Callable[[str], None]]:
    """Yield what is told the next step; nothing is shown unless asked for and on a terminal."""
    if verbose:
        from rich.console import Console

        console = Console(stderr=True)
    if not verbose or not console.is_terminal:
        yield lambda text: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)
        begun = False

        def tell(text: str) -> None:
            nonlocal begun
            progress.update(task, advance=int(begun), description=text)
            begun = True

        yield tell
