"""One fold of a search: every point of the grid is trained on its training samples and scored on its test samples.

Points that differ in C alone form a path, in which each starts at the solution of the one before. The kernels are
prepared once, and the test rows of a kernel are evaluated once for all models of the fold.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.utils import _safe_indexing

from multikernel.estimators.splits import Split
from multikernel.estimators.validation import Samples, kept_samples
from multikernel.gram.storage import default_limit, parse_bytes
from multikernel.model_selection.scoring import score_of
from multikernel.solution import INTERRUPTED
from multikernel.training.core import Fit, Prepared, Settings
from multikernel.training.expansion import evaluate_together
from multikernel.training.prepare import Shared, as_numbers, prepare
from multikernel.training.publish import Model, publish
from multikernel.training.train import Found, found_by, from_fit, train


@dataclass(frozen=True)
class Job:
    """What all folds of a search have in common.

    Attributes
    ----------
    points : list of dict
        The grid.
    kernels : "rbf", kernel, list or "precomputed"
        What the user wrote.
    X, y, weight : samples, targets, sample weights or None
        Everything that was handed to the search, valid.
    label : callable
        Adds to the samples of a fold what their targets mean, such as classes.
    spec : callable
        Returns the problems of the samples of a fold; `dataclasses.replace` sets the parameters of a point.
    face : callable
        (parameters of a point, model, fit, samples) -> estimator with this model.
    settings : Settings
        How to train.
    shared : Shared
        Kernels that are known between all samples.
    scorer : callable
        (estimator, X, y) -> number.
    score_weight : bool
        Whether the scorer takes the weights of the test samples.
    error_score : float or "raise"
        Score of what failed.
    tell : callable or None
        Called after each fit with a row about it.
    """

    points: Sequence[Mapping[str, Any]]
    kernels: Any
    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    label: Callable[[Samples], Samples]
    spec: Callable[[Samples], Any]
    face: Callable[[Mapping[str, Any], Model, Fit, Samples], Any]
    settings: Settings
    shared: Shared
    scorer: Callable[..., float]
    score_weight: bool
    error_score: float | str
    tell: Callable[[dict], None] | None = None

    def prepare(self, samples: Samples) -> Prepared:
        """Return the kernels on some of the samples."""
        rows = None if len(samples.kept) == len(self.y) else samples.kept
        return prepare(self.kernels, samples.X, samples.weight, self.settings, replace(self.shared, rows=rows))


@dataclass
class FoldResult:
    """Scores, seconds, weights, solutions and errors of the points of the grid in one fold."""

    scores: np.ndarray
    fit_seconds: np.ndarray
    score_seconds: np.ndarray
    weights: list[np.ndarray | None]
    found: list[list[Found]]
    errors: list[str] = field(default_factory=list)


def paths(points: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Return the paths: points that differ in C alone, by descending C; norms outside, then the other parameters.

    Downwards a solution stays feasible but for the coefficients that the new bounds cut off; measured,
    that takes a half to all of the time that the way up takes.

    Examples
    --------
    >>> paths([{"C": 2.0, "norm": 1}, {"C": 2.0, "norm": 2}, {"C": 1.0, "norm": 1}, {"C": 1.0, "norm": 2}])
    [[0, 2], [1, 3]]
    """
    found: dict[tuple, list[int]] = {}
    for i, point in enumerate(points):
        others = tuple(sorted((name, value) for name, value in point.items() if name not in ("C", "norm")))
        found.setdefault((point.get("norm"), others), []).append(i)
    norms = list(dict.fromkeys(norm for norm, _ in found))
    return [
        sorted(found[key], key=lambda i: -points[i].get("C", 0.0))
        for key in sorted(found, key=lambda key: norms.index(key[0]))
    ]


def run_folds(job: Job, splits: Sequence[Split]) -> list[FoldResult]:
    """Train and score every point on every fold: one fold after the other, or as joblib's context says.

    In a context such as ``joblib.parallel_config("loky", n_jobs=4)``, or one of a cluster, folds run at once and share
    the threads and the memory.
    """
    jobs = min(len(splits), effective_n_jobs(None))
    if jobs == 1:
        return [run_fold(job, *split) for split in splits]
    limit = default_limit() if job.settings.memory_limit is None else parse_bytes(job.settings.memory_limit)
    shared = replace(job.settings, n_threads=max(1, job.settings.n_threads // jobs), memory_limit=limit / jobs)
    part = replace(job, settings=shared, tell=None)
    return Parallel(n_jobs=None)(delayed(run_fold)(part, *split) for split in splits)


def run_fold(job: Job, rows: np.ndarray, test: np.ndarray) -> FoldResult:
    """Train and score every point of the grid on one fold."""
    G = len(job.points)
    result = FoldResult(np.full(G, np.nan), np.zeros(G), np.zeros(G), [None] * G, [[] for _ in range(G)])
    began = time.perf_counter()
    try:
        samples = job.label(kept_samples(job.X, job.y, job.weight, rows))
        prepared = job.prepare(samples)
        spec = job.spec(samples).on_kernels(prepared, job.points)
    except Exception as error:
        for i in range(G):
            _failed(job, result, i, error)
        return result
    # the kernels count for all models in equal parts
    result.fit_seconds += (time.perf_counter() - began) / G
    first: dict[Any, Fit] = {}
    models: dict[int, tuple[Model, Fit]] = {}
    for path in paths(job.points):
        norm = job.points[path[0]].get("norm")
        # a path starts where an earlier one of the same norm started
        previous = first.get(norm)
        for i in path:
            began = time.perf_counter()
            try:
                starts = None if previous is None else from_fit(previous)
                fit = train(prepared, replace(spec, **job.points[i]), job.settings, starts)
            except Exception as error:
                _failed(job, result, i, error)
                continue
            if any(solution.status == INTERRUPTED for solution in fit.solutions):
                raise KeyboardInterrupt
            previous, prepared = fit, fit.prepared
            first.setdefault(norm, fit)
            result.found[i] = found_by(fit, samples.kept)
            models[i] = publish(fit), replace(fit, solutions=tuple(_light(each) for each in fit.solutions))
            result.fit_seconds[i] += time.perf_counter() - began
            if job.tell is not None:
                job.tell({"params": dict(job.points[i]), "gap": float(max(models[i][0].gap))})
    if models:
        _score(job, result, models, prepared, samples, test)
    return result


def _light(solution: Any) -> Any:
    """Return a solution without the outputs of every kernel, which only the next start needs."""
    return replace(solution, outputs=None, history={})


def _score(
    job: Job,
    result: FoldResult,
    models: Mapping[int, tuple[Model, Fit]],
    prepared: Prepared,
    samples: Samples,
    test: np.ndarray,
) -> None:
    """Sets: the scores, their seconds, and the weights."""
    X_test, y_test = _safe_indexing(job.X, test), _safe_indexing(job.y, test)
    weight = job.weight[test] if job.score_weight and job.weight is not None else None
    began = time.perf_counter()
    expansions, numbers = [model.expansion for model, _ in models.values()], as_numbers(X_test)
    if prepared.gram.kind == "features":
        outputs = [expansion.evaluate(numbers) for expansion in expansions]
    else:
        outputs = evaluate_together(prepared.source, expansions, numbers, test)
    each = (time.perf_counter() - began) / len(models)
    for (i, (model, fit)), values in zip(models.items(), outputs, strict=True):
        began = time.perf_counter()
        try:
            face = job.face(job.points[i], model, fit, samples).knows(X_test, values)
            result.weights[i] = face.weights_
            result.scores[i] = score_of(job.scorer, face, X_test, y_test, weight)
        except Exception as error:
            _failed(job, result, i, error)
        result.score_seconds[i] = time.perf_counter() - began + each


def _failed(job: Job, result: FoldResult, i: int, error: Exception) -> None:
    if job.error_score == "raise":
        raise error
    result.scores[i] = job.error_score
    result.errors.append("".join(traceback.format_exception_only(error)).strip())
