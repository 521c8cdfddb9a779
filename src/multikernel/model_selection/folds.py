"""One fold of a search: every point of the grid is trained on its training samples and scored on its test samples.

Points that differ in C alone form a path, in which each starts at the solution of the one before.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from multikernel.estimators.validation import as_numbers
from multikernel.gram.stack import KernelStack
from multikernel.kernels.bank import KernelBank, take_rows
from multikernel.model_selection.lending import Lent
from multikernel.model_selection.shared_kernels import FoldComputed, FoldStack, SlicedBank, Spare
from multikernel.solution import INTERRUPTED
from multikernel.threads import resolve_threads
from multikernel.training.prepare import warn_constant


@dataclass(frozen=True)
class Task:
    """What all folds of a search have in common.

    Attributes
    ----------
    model : estimator
        The base estimator.
    points : list of dict
        The grid.
    X, y, weight : samples, targets, sample weights or None
        Everything that was handed to the search.
    scorer : callable
        (estimator, X, y) -> number.
    score_weight : bool
        Whether the scorer takes the weights of the test samples.
    known : dict
        Kernels computed on all samples, for `SlicedBank`.
    clean : bool
        Whether a stack was examined as a whole.
    error_score : float or "raise"
        Score of what failed.
    spare : Spare
        Memory of folds that are done, for the next ones.
    """

    model: Any
    points: Sequence[Mapping[str, Any]]
    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    scorer: Callable[..., float]
    score_weight: bool
    known: dict[tuple, np.ndarray]
    clean: bool
    error_score: float | str
    spare: Spare = field(default_factory=Spare)


@dataclass
class FoldResult:
    """Scores, seconds, weights, solutions and errors of the points of the grid in one fold.

    ``found`` has, for each point and each problem of its model: weights, samples, and the coefficients of these.
    """

    scores: np.ndarray
    fit_seconds: np.ndarray
    score_seconds: np.ndarray
    weights: list[np.ndarray | None]
    found: list[list[tuple[np.ndarray, np.ndarray, np.ndarray]]]
    errors: list[str] = field(default_factory=list)


def order(points: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Return the paths: points that differ in C alone, by descending C; norms outside, then the other parameters.

    Downwards a solution stays feasible but for the coefficients that the new bounds cut off; measured,
    that takes a half to all of the time that the way up takes.

    Examples
    --------
    >>> order([{"C": 2.0, "norm": 1}, {"C": 2.0, "norm": 2}, {"C": 1.0, "norm": 1}, {"C": 1.0, "norm": 2}])
    [[0, 2], [1, 3]]
    """
    paths: dict[tuple, list[int]] = {}
    for i, point in enumerate(points):
        others = tuple(sorted((name, value) for name, value in point.items() if name not in ("C", "norm")))
        paths.setdefault((point.get("norm"), others), []).append(i)
    norms = list(dict.fromkeys(norm for norm, _ in paths))
    return [
        sorted(paths[key], key=lambda i: -points[i].get("C", 0.0))
        for key in sorted(paths, key=lambda key: norms.index(key[0]))
    ]


def run_fold(task: Task, train: np.ndarray, test: np.ndarray) -> FoldResult:
    """Train and score every point of the grid on one fold."""
    G = len(task.points)
    X_train, X_test = _safe_indexing(task.X, train), _safe_indexing(task.X, test)
    y_train, y_test = _safe_indexing(task.y, train), _safe_indexing(task.y, test)
    weight = None if task.weight is None else task.weight[train]
    lent = Lent(lambda: make_kernels(task, train, test), X_test)
    result = FoldResult(np.full(G, np.nan), np.zeros(G), np.zeros(G), [None] * G, [[] for _ in range(G)])
    kept = train if weight is None else train[weight > 0]
    models: dict[int, Any] = {}
    first: dict[Any, Any] = {}
    for path in order(task.points):
        norm = task.points[path[0]].get("norm")
        # a path starts where an earlier one of the same norm started
        lent.start = first.get(norm)
        for i in path:
            # a shallow copy will do: the kernels of the model are those of the fold
            model = copy(task.model)
            vars(model).update(task.points[i], _lent=lent)
            lent.solved = None
            began, known = time.perf_counter(), lent.seconds
            try:
                model.fit(X_train, y_train, **({} if weight is None else {"sample_weight": weight}))
                models[i] = model
                result.weights[i] = model.weights_
            except Exception as error:
                _failed(task, result, i, error)
            # the kernels, which the first model made, count for all of them
            result.fit_seconds[i] = time.perf_counter() - began - (lent.seconds - known)
            if lent.solved is not None:
                if any(each.solution.status == INTERRUPTED for each in lent.solved):
                    raise KeyboardInterrupt
                result.found[i] = [
                    (old.weights, kept if subset is None else kept[subset], old.dual_coef)
                    for _, old, subset in lent.solved
                ]
                lent.start = lent.solved
                first.setdefault(norm, lent.solved)
    result.fit_seconds += lent.seconds / G
    _score(task, result, lent, models, X_test, y_test, test)
    if lent.space is not None:
        task.spare.give(lent.space)
    return result


def _score(task: Task, result: FoldResult, lent: Lent, models: dict[int, Any], X_test, y_test, test) -> None:
    """Sets: the scores and their seconds."""
    params = {"sample_weight": task.weight[test]} if task.score_weight and task.weight is not None else {}
    began = time.perf_counter()
    lent.evaluate(list(models.values()))
    shared = time.perf_counter() - began
    for i, model in models.items():
        began = time.perf_counter()
        try:
            score = task.scorer(model, X_test, y_test, **params)
            if hasattr(score, "item"):
                score = score.item()
            if not isinstance(score, Number):
                raise ValueError(f"The scorer must return a number. Got {score!r} instead.")
            result.scores[i] = score
        except Exception as error:
            _failed(task, result, i, error)
        result.score_seconds[i] = time.perf_counter() - began + shared / len(models)


def _failed(task: Task, result: FoldResult, i: int, error: Exception) -> None:
    if task.error_score == "raise":
        raise error
    result.scores[i] = task.error_score
    result.errors.append("".join(traceback.format_exception_only(error)).strip())


def make_kernels(task: Task, train: np.ndarray, test: np.ndarray, last: bool = False) -> FoldStack | FoldComputed:
    """Return the kernels of one fold, or of the last training; samples of weight zero do not take part."""
    model, weight = task.model, task.weight
    if weight is not None:
        train = train[weight[train] > 0]
        weight = weight[train]
        weight = None if np.all(weight == weight[0]) else weight
    options = {
        "psd": model.psd, "gram": model.gram, "memory_limit": model.memory_limit,
        "n_threads": resolve_threads(model.n_jobs),
    }  # fmt: skip
    kernels: FoldStack | FoldComputed
    if isinstance(task.X, KernelStack):
        kernels = FoldStack(
            task.X[train], task.X[test], weight, model.normalize, clean=task.clean, spare=task.spare, **options
        )
    else:
        bank = KernelBank.fit(model.kernels, take_rows(task.X, train), weight, model.normalize)
        sliced = SlicedBank(bank, as_numbers(task.X), task.known)
        kernels = FoldComputed(sliced, train, test, weight, spare=None if last else task.spare, **options)
    warn_constant(kernels.names, kernels.constant)
    return kernels
