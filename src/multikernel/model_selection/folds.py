"""One fold of a search: every point of the grid is trained on its training samples and scored on its test samples.

Points that differ in C alone form a path, in which each starts at the solution of the one before. Raw values of kernels
that learn nothing are computed once between all samples, and a fold takes its rows and columns. Widths and
normalisations are learned on the training samples of the fold, once for the whole grid, and the test rows of a kernel
are evaluated once for all models of the fold.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from numbers import Number
from typing import Any

import numpy as np
import sklearn
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.base import is_classifier
from sklearn.model_selection import GridSearchCV
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from multikernel.estimators.splits import Split
from multikernel.estimators.validation import Samples, kept_samples
from multikernel.gram.storage import default_limit, parse_bytes, storage_dtype
from multikernel.kernels.bank import KernelBank, compute_tiles
from multikernel.kernels.base import as_kernel
from multikernel.kernels.spec import expand_entries
from multikernel.solution import INTERRUPTED
from multikernel.threads import Team, interruptible
from multikernel.training.checkpoint import Checkpoint, checkpointed
from multikernel.training.core import Fit, Prepared, Settings
from multikernel.training.expansion import evaluate_together
from multikernel.training.prepare import Shared, as_numbers, prepare
from multikernel.training.publish import Model, publish
from multikernel.training.targets import CLASSIFICATION
from multikernel.training.train import Found, among_all, found_by, from_fit, kernel_alone, train

# names in a checkpoint: the parts of what a fit found, and arrays of a FoldResult
_FOUND = ("weights", "samples", "coef")
_TIMED = ("scores", "fit_seconds", "score_seconds")


@dataclass(frozen=True)
class Job:
    """What all folds of a search have in common.

    Attributes
    ----------
    points : list of dict
        The grid, and with baselines points with a "kernel", the name of the only one that has weight.
    base : estimator
        The base estimator, without the parameters of a point; it knows the columns of the samples.
    X, y, weight : samples, targets, sample weights or None
        Everything that was handed to the search, valid.
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
        Called after each fit with a row about it; where folds run at once, joblib reports them instead.
    checkpoint : (str or path, str) or None
        The folder for finished folds, and the hash of the search.
    keep_outputs : bool
        Whether the outputs on test samples are kept, for calibrated probabilities.
    """

    points: Sequence[Mapping[str, Any]]
    base: Any
    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    settings: Settings
    shared: Shared
    scorer: Callable[..., float]
    score_weight: bool
    error_score: float | str
    tell: Callable[[dict], None] | None = None
    checkpoint: tuple[Any, str] | None = None
    keep_outputs: bool = False

    def samples(self, rows: np.ndarray | None = None) -> Samples:
        """Return the training samples ``rows``, all by default, with their classes where they have some."""
        classifier = type(self.base).__name__ if is_classifier(self.base) else ""
        return kept_samples(self.X, self.y, self.weight, rows, classifier)

    def prepare(self, samples: Samples) -> Prepared:
        """Return the kernels on some of the samples."""
        rows = None if len(samples.kept) == len(self.y) else samples.kept
        return prepare(self.base.kernels, samples.X, samples.weight, self.settings, replace(self.shared, rows=rows))


def parameters(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the base estimator at a point: all but the one kernel of a baseline."""
    return {name: value for name, value in point.items() if name != "kernel"}


def spec_at(spec: Any, point: Mapping[str, Any]) -> Any:
    """Return the specification with the values of a point of the grid, or raise where they exclude each other."""
    own = parameters(point)
    if isinstance(loss := own.get("loss"), str):
        # a specification of classes takes the loss itself
        own["loss"] = CLASSIFICATION.get(loss, loss)
    return replace(spec, **own)


def train_point(
    prepared: Prepared, spec: Any, point: Mapping[str, Any], settings: Settings, starts: Any = None
) -> tuple[Fit, Fit]:
    """Train a point of the grid; return the fit from which others may start, and the fit among all kernels."""
    spec = spec_at(spec, point)
    if "kernel" not in point:
        fit = train(prepared, spec, settings, starts)
        return fit, fit
    k = prepared.names.index(point["kernel"])
    fit = train(kernel_alone(prepared, k), replace(spec, norm=np.inf), settings, starts)
    return fit, among_all(fit, prepared, k)


def fitted(base: Any, point: Mapping[str, Any], model: Model, fit: Fit, samples: Samples) -> Any:
    """Return an estimator like ``base`` with the parameters of a point and its model."""
    estimator = copy(base)
    vars(estimator).update(parameters(point))
    estimator._set(model, fit, samples)
    return estimator


@dataclass
class FoldResult:
    """Scores, seconds, weights, solutions, outputs and errors of the points of the grid in one fold."""

    scores: np.ndarray
    fit_seconds: np.ndarray
    score_seconds: np.ndarray
    weights: list[np.ndarray | None]
    found: list[list[Found]]
    outputs: list[np.ndarray | None]
    errors: list[str] = field(default_factory=list)


def share_kernels(kernels: Any, X: Any, splits: Sequence[Split], settings: Settings) -> Shared:
    """Compute the kernels that learn nothing from samples, once, between all samples.

    Returns nothing to share where kernels are not kept in memory, where there is no room for them beside those of a
    fold or of the last training, or where a kernel fails: then each fold says so in its own words.
    """
    if settings.gram not in ("auto", "dense") or getattr(X, "learns", False):
        return Shared()
    every = expand_entries(kernels, X)
    entries = [entry for entry in every if not as_kernel(entry[1])._learns()]
    n, p = _num_samples(X), len(entries)
    if not p:
        return Shared()
    try:
        named = [(f"kernel {j}", kernel, columns) for j, (_, kernel, columns) in enumerate(entries)]
        with interruptible():
            bank = KernelBank.fit(named, X)
            numbers = as_numbers(X)
            dtype = storage_dtype(p, n, bank.raw_diags(numbers).max(axis=1))
    except Exception:
        return Shared()
    limit = default_limit() if settings.memory_limit is None else parse_bytes(settings.memory_limit)
    # all kernels and the combined one; few samples are stored more precisely
    in_use = (len(every) + 1) * n * n * storage_dtype(len(every), min([len(train) for train, _ in splits])).itemsize
    if p * n * n * dtype.itemsize > limit - in_use:
        return Shared()
    stack = np.empty((p, n, n), dtype)
    try:
        with interruptible():
            compute_tiles(bank, numbers, range(p), np.zeros(n), Team(settings.n_threads), list(stack))
    except Exception:
        return Shared()
    names = [name for name, _, _ in entries]
    return Shared(stack, {key: j for j, key in enumerate(zip(names, bank.columns, strict=True))})


def paths(points: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Return the paths: points that differ in C alone, by descending C; norms outside, then the other parameters.

    Downwards a solution stays feasible but for the coefficients that the new bounds cut off; measured,
    that takes a half to all of the time that the way up takes.

    Examples
    --------
    >>> paths([{"C": 2.0, "norm": 1}, {"C": 2.0, "norm": 2}, {"C": 1.0, "norm": 1}, {"C": 1.0, "norm": 2}])
    [[0, 2], [1, 3]]
    """
    found: dict[Any, dict[tuple, list[int]]] = {}
    downwards = np.argsort([-point.get("C", 0.0) for point in points], kind="stable")
    for i in downwards.tolist():
        others = tuple(sorted([(name, value) for name, value in points[i].items() if name not in ("C", "norm")]))
        found.setdefault(points[i].get("norm"), {}).setdefault(others, []).append(i)
    return [path for of_norm in found.values() for path in of_norm.values()]


def run_folds(job: Job, splits: Sequence[Split]) -> Iterator[FoldResult]:
    """Train and score every point on every fold, in order: one fold after the other, or as joblib's context says.

    In a context such as ``joblib.parallel_config("loky", n_jobs=4)``, or one of a cluster, folds run at once and share
    the threads and the memory. Kernels with the workers of Dask are those of one fold after the other.
    """
    jobs = 1 if job.settings.gram == "dask" else min(len(splits), effective_n_jobs(None))
    run = run_fold if job.checkpoint is None else resume_fold
    if jobs == 1:
        yield from (run(job, *split, fold=s) for s, split in enumerate(splits))
        return
    limit = default_limit() if job.settings.memory_limit is None else parse_bytes(job.settings.memory_limit)
    shared = replace(job.settings, n_threads=max(1, job.settings.n_threads // jobs), memory_limit=limit / jobs)
    part = replace(job, settings=shared, tell=None)
    calls = (delayed(_or_interrupt)(run, part, *split, fold=s) for s, split in enumerate(splits))
    for result in Parallel(n_jobs=None, verbose=job.base.verbose, return_as=_return_as())(calls):
        if isinstance(result, KeyboardInterrupt):
            raise result
        yield result


def _or_interrupt(run: Callable[..., FoldResult], *args: Any, **options: Any) -> FoldResult | KeyboardInterrupt:
    """Return an interrupt as a result: raised, it would take the results of finished folds with it."""
    try:
        return run(*args, **options)
    except KeyboardInterrupt as stop:
        return stop


def _return_as() -> str:
    """Return how joblib gives results: each as soon as it and those before it are there, where the backend can."""
    return "generator" if get_active_backend()[0].supports_return_generator else "list"


def resume_fold(job: Job, rows: np.ndarray, test: np.ndarray, fold: int = 0) -> FoldResult:
    """Return what the checkpoint of a finished fold holds, or go on with the fold, and keep its result."""
    assert job.checkpoint is not None
    folder, key = job.checkpoint
    with checkpointed(job.settings, folder, f"{key}-{fold}") as settings:
        state, G = settings.checkpoint, len(job.points)
        # the search removes the file
        state.file.stays = True
        if state.get("scores") is not None:
            return _unpack(state, G)
        result = run_fold(replace(job, settings=settings), rows, test, fold)
        arrays = {name: getattr(result, name) for name in _TIMED}
        arrays["errors"] = np.array(result.errors, str)
        for i in range(G):
            for name, values in (("weights", result.weights[i]), ("outputs", result.outputs[i])):
                if values is not None:
                    arrays[f"{i}/{name}"] = values
            for t, found in enumerate(result.found[i]):
                arrays |= {f"{i}/{t}/{name}": part for name, part in zip(_FOUND, found, strict=True)}
        state.clear()
        # written as a whole when the context ends
        state.file.arrays.update(arrays)
    return result


def _unpack(state: Checkpoint, n_points: int) -> FoldResult:
    """Return the result of a fold from its checkpoint."""
    arrays, found = state.all(), []
    for i in range(n_points):
        parts: list[Found] = []
        while (values := state.part(f"{i}/{len(parts)}").get(*_FOUND)) is not None:
            parts.append((values[0], values[1], values[2]))
        found.append(parts)
    weights, outputs = ([arrays.get(f"{i}/{name}") for i in range(n_points)] for name in ("weights", "outputs"))
    scores, fit_seconds, score_seconds = (arrays[name] for name in _TIMED)
    return FoldResult(scores, fit_seconds, score_seconds, weights, found, outputs, arrays["errors"].tolist())


def run_fold(job: Job, rows: np.ndarray, test: np.ndarray, fold: int = 0) -> FoldResult:
    """Train and score every point of the grid on one fold, the number of which is for ``tell`` alone."""
    G = len(job.points)
    result = FoldResult(np.full(G, np.nan), np.zeros(G), np.zeros(G), [None] * G, [[] for _ in range(G)], [None] * G)
    began = time.perf_counter()
    try:
        with interruptible():
            samples = job.samples(rows)
            prepared = job.prepare(samples)
            spec = job.base._spec(samples).on_kernels(prepared, job.points)
    except Exception as error:
        for i in range(G):
            _failed(job, result, i, error)
        return result
    # the kernels count for all models in equal parts
    result.fit_seconds += (time.perf_counter() - began) / G
    first: dict[Any, Fit] = {}
    models: dict[int, tuple[Model, Fit]] = {}
    done = fold * G
    for path in paths(job.points):
        kind = tuple([job.points[path[0]].get(name) for name in ("norm", "kernel", "loss")])
        # a path starts where an earlier one of the same norm and loss, or of the same kernel alone, started
        previous = first.get(kind)
        for i in path:
            done, began = done + 1, time.perf_counter()
            starts = None if previous is None else partial(from_fit, previous)
            settings, state = job.settings, job.settings.checkpoint
            if state is not None:
                settings = replace(settings, checkpoint=state.part(i))
            try:
                with interruptible():
                    fit, whole = train_point(prepared, spec, job.points[i], settings, starts)
            except Exception as error:
                _failed(job, result, i, error)
                continue
            if INTERRUPTED in [solution.status for solution in fit.solutions]:
                raise KeyboardInterrupt
            previous = fit
            if whole is fit:
                prepared = fit.prepared
            first.setdefault(kind, fit)
            result.found[i] = found_by(fit, samples.kept)
            # the outputs of every kernel serve the next start alone
            light = [replace(each, outputs=np.zeros(0), history={}) for each in whole.solutions]
            models[i] = publish(whole), replace(whole, solutions=tuple(light))
            result.fit_seconds[i] += time.perf_counter() - began
            if job.tell is not None:
                gap = float(max(models[i][0].gap))
                job.tell({"done": done, "fold": fold, "params": dict(job.points[i]), "gap": gap})
    if models:
        score_models(job, result, models, prepared, samples, test)
    return result


def score_models(
    job: Job,
    result: FoldResult,
    models: Mapping[int, tuple[Model, Fit]],
    prepared: Prepared,
    samples: Samples,
    test: np.ndarray,
) -> None:
    """Sets: the scores, their seconds, and the weights."""
    X_test, y_test = _safe_indexing(job.X, test), _safe_indexing(job.y, test)
    options = {"sample_weight": job.weight[test]} if job.score_weight and job.weight is not None else {}
    began = time.perf_counter()
    expansions, numbers = [model.expansion for model, _ in models.values()], as_numbers(X_test)
    with interruptible():
        if prepared.gram.kind == "features":
            outputs = [expansion.evaluate(numbers) for expansion in expansions]
        else:
            outputs = evaluate_together(prepared.source, expansions, numbers, test)
    each = (time.perf_counter() - began) / len(models)
    for (i, (model, fit)), values in zip(models.items(), outputs, strict=True):
        began = time.perf_counter()
        try:
            # squares of large targets may overflow: the score is then not a number, and told as such
            with interruptible(), np.errstate(over="ignore", invalid="ignore"):
                estimator = fitted(job.base, job.points[i], model, fit, samples)
                estimator._known = X_test, values
                result.weights[i] = estimator.weights_
                if job.keep_outputs:
                    result.outputs[i] = estimator.decision_function(X_test)
                score = job.scorer(estimator, X_test, y_test, **options)
            score = score.item() if hasattr(score, "item") else score
            if not isinstance(score, Number):
                raise ValueError(f"The scorer must return a number. Got {score!r} instead.")
            result.scores[i] = score
        except Exception as error:
            _failed(job, result, i, error)
        result.score_seconds[i] = time.perf_counter() - began + each


def takes_weight(scorer: Callable) -> bool:
    """Whether GridSearchCV hands sample weights to this scorer: where it takes them or, with metadata routing, asks."""
    if sklearn.get_config().get("enable_metadata_routing"):
        request = getattr(scorer, "get_metadata_routing", lambda: None)()
        return getattr(getattr(request, "score", None), "requests", {}).get("sample_weight") is True
    # before scikit-learn 1.7 scorers had no such method, and got no weights
    accepts = getattr(scorer, "_accept_sample_weight", None)
    if accepts is None and hasattr(GridSearchCV, "_check_scorers_accept_sample_weight"):
        return "sample_weight" in signature(scorer).parameters
    return accepts is not None and accepts()


def _failed(job: Job, result: FoldResult, i: int, error: Exception) -> None:
    if job.error_score == "raise":
        raise error
    result.scores[i] = job.error_score
    result.errors.append("".join(traceback.format_exception_only(error)).strip())
