"""Several methods on the same kernels and the same splits.

    X, kernels -> one stack -> for every split and method: a slice, a fit, a score -> one table, one plot

Kernels are evaluated once. Normalisations are still learned on the training samples of every split. A width that a
kernel learns from samples is learned once, from all inputs and from no targets: give widths as numbers if test inputs
must not influence them.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.utils.validation import _num_samples

from multikernel.estimators.splits import splits_of
from multikernel.estimators.validation import check_labels
from multikernel.gram.stack import KernelStack, stack_kernels
from multikernel.gram.storage import storage_dtype
from multikernel.inspection.comparison import Comparison
from multikernel.inspection.methods import TASKS, choose_task, did_you_mean, learned, make_methods, takes_stack
from multikernel.inspection.records import Records, fingerprint
from multikernel.kernels.bank import KernelBank, take_rows
from multikernel.kernels.base import is_integer
from multikernel.threads import interruptible
from multikernel.training.prepare import as_numbers

# Samples of each class in the fit before the first timing: enough for three folds within three folds, few to be quick.
_WARM_UP_SAMPLES = 9


def compare(
    X: Any,
    y: Any,
    methods: Mapping[str, Any] | Sequence[str] = ("uniform", "alignf", "mkl", "l2"),
    *,
    kernels: Any = "rbf",
    task: str = "auto",
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
    task : {"auto", "classification", "regression"}, default="auto"
        What y is. "auto" takes the task of the estimators where ``methods`` is a dict; else numbers with fractions, and
        whole numbers of which there are more than the root of the number of samples, for a regression.
    cv : int, splitter or iterable, default=5
        Splits, as in scikit-learn; stratified for classes.
    scoring : str, callable or None, default=None
        Any scorer of scikit-learn; None for accuracy, or R^2 for numbers.
    params : dict, optional
        Parameters set on every method that has them, such as ``{"C": 10.0, "normalize": ["center", "cosine"]}``.
    grid : dict, optional
        Values, such as ``{"C": [0.1, 1, 10]}``, among which each method that has the parameter chooses by
        cross-validation within its training samples; the training time includes this search.
    inner_cv : int, default=3
        Folds of the search over ``grid``.
    groups : array of shape (n_samples,), optional
        Groups for the splitter.
    results : path, optional
        File of JSON lines; each result is appended as soon as it is known.
    resume : bool, default=True
        Whether to keep the results already in that file and compute only the missing ones. Results of another
        comparison raise an error. False begins the file anew.
    verbose : int, default=1
        1 shows a progress bar on a terminal.

    Returns
    -------
    Comparison
        With ``table``, ``to_frame()``, ``plot()``, ``save(folder)``; it prints as a table. The row of a method that
        failed holds its error.

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
    for key, value, right, what in (
        ("inner_cv", inner_cv, is_integer(inner_cv) and inner_cv >= 2, "an integer of at least 2"),
        ("results", results, results is None or isinstance(results, str | os.PathLike), "None or a path"),
        ("task", task, isinstance(task, str) and task in TASKS, f"one of {', '.join(map(repr, TASKS))}"),
        ("resume", resume, isinstance(resume, bool), "True or False"),
        (
            "verbose",
            verbose,
            isinstance(verbose, bool) or (is_integer(verbose) and verbose >= 0),
            "a non-negative integer",
        ),
    ):
        if not right:
            raise ValueError(f"The '{key}' parameter of compare must be {what}. Got {value!r} instead.")
    stacked = isinstance(X, KernelStack)
    X = X if hasattr(X, "shape") else np.asarray(X)
    n = len(X) if stacked else _num_samples(X)
    y = check_labels("compare", y, n)
    classification = choose_task(y, methods, task) == "classification"
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
    stack: KernelStack | None = X if stacked else None
    n_kernels = X.shape[2] if stacked else 0

    def found() -> Comparison:
        rows = sorted(records.rows, key=lambda row: (list(estimators).index(row["method"]), row["fold"]))
        return Comparison(rows, list(estimators), name, n_kernels, len(splits))

    with _keeping(records, found, len(estimators) * len(splits)), _progress_bar(verbose, len(todo) + 1) as show:
        if not stacked and any(takes_stack(each) for each in estimators.values()):
            show("kernels")
            if todo:
                stack = evaluate(kernels, X)
                n_kernels = stack.shape[2]
            else:
                n_kernels = KernelBank.fit(kernels, X).n_kernels
        warmed_up: set[str] = set()
        for fold, key in todo:
            show(f"{key}, split {fold + 1} of {len(splits)}")
            data = stack if takes_stack(estimators[key]) else X
            if key not in warmed_up:
                _warm_up(estimators[key], data, y, splits[fold][0], classification)
                warmed_up.add(key)
            result = _fit_and_score(estimators[key], data, y, *splits[fold], scoring)
            records.add({"method": key, "fold": fold, **result})
    return found()


@contextmanager
def _keeping(records: Records, found: Callable[[], Comparison], total: int) -> Iterator[None]:
    """Keep the finished fits where Ctrl-C ends the comparison: it is raised again, with the attribute `comparison`."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if not records.rows:
            raise
        interrupt.comparison = found()  # type: ignore[attr-defined]
        kept = "They are the 'comparison' of this KeyboardInterrupt (sys.last_value.comparison)."
        if records.path is not None:
            kept = f"They are in '{records.path}': the same call goes on from there."
        try:
            warnings.warn(
                f"compare was interrupted after {len(records.rows)} of {total} fits. {kept}", UserWarning, stacklevel=4
            )
        finally:
            raise interrupt


def evaluate(kernels: Any, X: Any) -> KernelStack:
    """Return all kernels between all samples as one stack, in the precision in which estimators store kernels."""
    bank = KernelBank.fit(kernels, X)
    numbers = as_numbers(X)
    n, p = _num_samples(X), bank.n_kernels
    stack = np.empty((p, n, n), storage_dtype(p, n, bank.raw_diags(numbers).max(axis=1)))
    for k, K in bank.raw_each(numbers):
        stack[k] = K
    return stack_kernels(stack, names=bank.names)


def _check_scoring(scoring: Any) -> None:
    names = get_scorer_names()
    if not (scoring is None or callable(scoring) or scoring in names):
        raise ValueError(
            f"The 'scoring' parameter of compare must be a scorer of scikit-learn. Got {scoring!r} instead."
            f"{did_you_mean(scoring, names)}"
        )


def _parameters(estimator: Any) -> list[tuple[str, str]]:
    return sorted((key, repr(value)) for key, value in estimator.get_params().items())


def _warm_up(estimator: Any, X: Any, y: np.ndarray, train: np.ndarray, classification: bool) -> None:
    """Fit a few samples, so that no training time includes compiling and importing."""
    kinds = np.unique(y[train]) if classification else ()
    few = [train[y[train] == kind][:_WARM_UP_SAMPLES] for kind in kinds] or [train[:_WARM_UP_SAMPLES]]
    _fit_and_score(estimator, X, y, np.concatenate(few), few[0], None)


def _fit_and_score(
    estimator: Any, X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, scoring: Any
) -> dict[str, Any]:
    """Fit on the training samples of a split, score on its test samples; an error becomes part of the row."""
    row: dict[str, Any] = {
        "score": None, "fit_time": None, "score_time": None, "active": None, "gap": None, "status": None,
        "warnings": [], "error": None,
    }  # fmt: skip
    try:
        with warnings.catch_warnings(record=True) as caught, interruptible():
            warnings.simplefilter("always")
            model, part = clone(estimator), _samples_at(X, train)
            began = time.perf_counter()
            model.fit(part, y[train])
            fitted = time.perf_counter()
            row |= learned(model)
            row["score"] = float(check_scoring(model, scoring)(model, _samples_at(X, test), y[test]))
            row |= {"fit_time": fitted - began, "score_time": time.perf_counter() - fitted}
        row["warnings"] = sorted({str(each.message) for each in caught})
    except Exception as error:
        row |= {"score": None, "error": f"{type(error).__name__}: {error}".splitlines()[0]}
    return row


def _samples_at(X: Any, rows: np.ndarray) -> Any:
    return X[rows] if isinstance(X, KernelStack) else take_rows(X, rows)


@contextmanager
def _progress_bar(verbose: int, total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the name of the next step; without a terminal or verbose it shows nothing."""
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

        def show(text: str) -> None:
            nonlocal begun
            progress.update(task, advance=int(begun), description=text)
            begun = True

        yield show
