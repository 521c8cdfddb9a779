"""One fold of a search: every point of the grid is trained on its training samples and scored on its test samples.

Points that differ in C alone form a path, in which each starts at the solution of the one before. The
models of a fold borrow their kernels, starts and test outputs from one `Lent`; the rest is their own `fit`. The model
of all samples starts at the mean of those that the folds have at the same point (`Pooled`).
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from multikernel.estimators.checks import warn_constant
from multikernel.estimators.folds import FoldComputed, FoldStack, SlicedBank, evaluate_together
from multikernel.estimators.samples import as_numbers
from multikernel.estimators.training import TrainingKernels
from multikernel.gram.stack import KernelStack
from multikernel.kernels.bank import KernelBank, take_rows
from multikernel.machines.base import Machine
from multikernel.solution import INTERRUPTED, Solution
from multikernel.threads import resolve_threads
from multikernel.warm import Start


class Solved(NamedTuple):
    """A problem of one model, its solution, and the samples of the fold that it is about (None for all)."""

    machine: Machine
    solution: Solution
    subset: np.ndarray | None


class Lent:
    """What the models of one fold share.

    Parameters
    ----------
    make : callable or None
        Returns the kernels on the training samples; called once, when they are first asked for. None where a model has
        to make its own.
    X_test : samples
        The very object on which the models will be scored.

    Attributes
    ----------
    seconds : float
        Time that the kernels took.
    solved : list of Solved or None
        The problems of the last model that was trained.
    start : list of Solved or None
        From which the next model is to start.
    shared : dict
        What models make of the kernels and of the samples alone, and others need not make again.
    """

    def __init__(self, make: Callable[[], TrainingKernels] | None, X_test: Any = None) -> None:
        self._make, self._X_test = make, X_test
        self._kernels: TrainingKernels | None = None
        self._outputs: dict[int, np.ndarray] = {}
        self._checked: tuple[Any, dict[str, Any]] | None = None
        self.seconds = 0.0
        self.solved: list[Solved] | None = None
        self.start: list[Solved] | None = None
        self.shared: dict[Any, Any] = {}

    @property
    def kernels(self) -> Any:
        """The kernels on the training samples, None where a model has to make its own."""
        if self._kernels is None and self._make is not None:
            began = time.perf_counter()
            self._kernels = self._make()
            self.seconds = time.perf_counter() - began
        return self._kernels

    def checked(self, model: Any, check: Callable[[], Any]) -> Any:
        """Return what ``check`` makes of the samples; only the first model of the fold calls it.

        Sets: the attributes that it sets on a model, on every model.
        """
        if self._checked is None:
            before = dict(vars(model))
            found = check()
            self._checked = found, {k: v for k, v in vars(model).items() if k not in before or before[k] is not v}
        vars(model).update(self._checked[1])
        return self._checked[0]

    def starts(self, machines: Sequence[Machine], subsets: Sequence[np.ndarray | None]) -> list[Start | None]:
        """Return weights and coefficients from which each machine starts, and the outputs known from before."""
        if self.start is None or len(self.start) != len(machines):
            return [None] * len(machines)
        return [
            (old.weights, machine.carry_over(old.dual_coef, other), (old.dual_coef, old.outputs))
            for machine, (other, old, _) in zip(machines, self.start, strict=True)
        ]

    def keep(self, *columns: Sequence) -> None:
        """Remember the machines of a model, their solutions and the samples that each is about."""
        self.solved = [Solved(*each) for each in zip(*columns, strict=True)]

    def evaluate(self, models: Sequence[Any]) -> None:
        """Evaluate the models on the test samples, all at once."""
        outputs = evaluate_together(self.kernels, [model._expansion for model in models])
        self._outputs = {id(model): values for model, values in zip(models, outputs, strict=True)}

    def spare(self) -> list[np.ndarray]:
        """Return the memory of the kernels, which nobody needs any more."""
        space = getattr(self._kernels, "space", None)
        return [] if space is None else [space]

    def outputs(self, model: Any, X: Any) -> np.ndarray | None:
        """Return the outputs of a model where they are known."""
        return self._outputs.get(id(model)) if X is self._X_test else None


class Pooled(Lent):
    """Kernels of all samples, and a start that is the mean of what several folds have found at the same point.

    A sample that is in every training set but one counts in all of them but one, so that bounds and sums hold for the
    mean as they do in the folds; with other splits the machine repairs them.

    Parameters
    ----------
    make : callable or None
        As for `Lent`.
    taking_part : bool array
        Which of all samples take part: those of positive weight.
    folds : list of list of (ndarray, ndarray, ndarray)
        For each fold, and each problem of the model: its weights, its samples and their coefficients.
    """

    def __init__(
        self, make: Callable[[], TrainingKernels] | None, taking_part: np.ndarray, folds: Sequence[Sequence]
    ) -> None:
        super().__init__(make)
        self._taking_part, self._folds = taking_part, folds

    def starts(self, machines, subsets):
        """Return the mean of weights and coefficients, for problems that all folds share."""
        if not self._folds or any(len(fold) != len(machines) for fold in self._folds):
            return [None] * len(machines)
        return [
            self._mean(t, machine, subset) for t, (machine, subset) in enumerate(zip(machines, subsets, strict=True))
        ]

    def _mean(self, t: int, machine: Machine, subset: np.ndarray | None) -> Start | None:
        parts, shape = [fold[t] for fold in self._folds], machine.start().shape[1:]
        # a fold that lacks a class has fewer columns
        if any(coef.shape[1:] != shape for _, _, coef in parts):
            return None
        n = len(self._taking_part)
        total, count = np.zeros((n, *shape)), np.zeros(n)
        for _, samples, coef in parts:
            total[samples] += coef
            count[samples] += 1
        a = (total.T / np.maximum(count, 1)).T[self._taking_part]
        weights = np.mean([weights for weights, _, _ in parts], axis=0)
        return weights, machine.repair(a if subset is None else a[subset]), None


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
    spare : list of ndarray
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
    spare: list[np.ndarray] = field(default_factory=list)


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
    task.spare.extend(lent.spare())
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


def make_kernels(task: Task, train: np.ndarray, test: np.ndarray) -> FoldStack | FoldComputed:
    """Return the kernels of one fold; samples of weight zero do not take part."""
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
        try:
            space = task.spare.pop()
        except IndexError:
            space = None
        kernels = FoldStack(
            task.X[train], task.X[test], weight, model.normalize, clean=task.clean, space=space, **options
        )
    else:
        bank = KernelBank.fit(model.kernels, take_rows(task.X, train), weight, model.normalize)
        kernels = FoldComputed(SlicedBank(bank, as_numbers(task.X), task.known), train, test, weight, **options)
    warn_constant(kernels.names, kernels.constant)
    return kernels
