"""Training and scoring an estimator many times on parts of its samples: whole, and without some of its kernels.

A trial has training samples, with weights where they are drawn with replacement, and test samples. Its kernels are
prepared once and shared: the model without a view reads those that are left where they lie, and starts at the solution
of the whole model. All models of a trial are evaluated together on the test samples.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.utils import _safe_indexing

from multikernel.estimators.base import BaseMKL
from multikernel.estimators.splits import Split
from multikernel.estimators.validation import Samples, check_classes, check_regression
from multikernel.estimators.weights_table import kernels_of
from multikernel.inspection.methods import did_you_mean
from multikernel.kernels.base import is_integer, is_real
from multikernel.kernels.spec import expand_entries
from multikernel.model_selection.folds import FoldResult, Job, fitted, score_models, share_kernels
from multikernel.problem import Start
from multikernel.solution import INTERRUPTED
from multikernel.threads import single_threaded_blas
from multikernel.training.core import Fit, Prepared, Starts, Target
from multikernel.training.prepare import Shared, prepare
from multikernel.training.publish import publish
from multikernel.training.train import Found, found_by, mean_start, train


@dataclass(frozen=True)
class Trial:
    """Training samples, parts of the test samples, and how often each sample was drawn, None for once or never."""

    rows: np.ndarray
    tests: Sequence[np.ndarray]
    counts: np.ndarray | None = None


@dataclass(frozen=True)
class TrialResult:
    """What a trial found.

    Attributes
    ----------
    scores : ndarray of shape (parts, 1 + G)
        Scores of the whole model, and without each of G groups of kernels, on each part of the test samples.
    selected : bool array (G,)
        Which groups the whole model gives a weight that is not zero.
    found : list of Found
        The solutions of the whole model, for starts of others.
    errors : list of str
        What could not be scored.
    """

    scores: np.ndarray
    selected: np.ndarray
    found: list[Found]
    errors: list[str]


# ---- what is asked for


def check_count(owner: str, name: str, value: Any, least: int) -> None:
    """Raise one sentence where a parameter is not an integer of at least ``least``."""
    if not is_integer(value) or value < least:
        raise ValueError(
            f"The '{name}' parameter of {owner} must be an integer of at least {least}. Got {value!r} instead."
        )


def check_share(owner: str, name: str, value: Any) -> None:
    """Raise one sentence where a parameter is not a number between 0 and 1."""
    if not is_real(value) or not 0.0 < value < 1.0:
        raise ValueError(f"The '{name}' parameter of {owner} must be a number between 0 and 1. Got {value!r} instead.")


def check_groups(owner: str, groups: Any, n: int) -> np.ndarray | None:
    """Return the groups, or raise one sentence where there is not one for each of n samples."""
    if groups is None:
        return None
    found = np.asarray(groups)
    if found.shape != (n,):
        raise ValueError(
            f"The 'groups' parameter of {owner} must be None or one group for each of {n} samples. Got shape "
            f"{found.shape} instead."
        )
    return found


def check_work(owner: str, n_jobs: Any, verbose: Any) -> None:
    """Raise one sentence where the number of workers or the verbosity is not what it must be."""
    if n_jobs is not None and (not is_integer(n_jobs) or n_jobs == 0):
        raise ValueError(
            f"The 'n_jobs' parameter of {owner} must be None or a non-zero integer. Got {n_jobs!r} instead."
        )
    if not isinstance(verbose, bool):
        check_count(owner, "verbose", verbose, 0)


def generator(owner: str, random_state: Any) -> np.random.Generator:
    """Return the generator of a seed."""
    try:
        if isinstance(random_state, np.random.RandomState):
            random_state = random_state.randint(2**31)
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"The 'random_state' parameter of {owner} must be None, a non-negative integer or a generator of NumPy. "
            f"Got {random_state!r} instead."
        ) from None


def find_scorer(owner: str, estimator: Any, scoring: Any) -> tuple[Callable[..., float], str]:
    """Return the scorer and its name."""
    names = get_scorer_names()
    if not (scoring is None or callable(scoring) or (isinstance(scoring, str) and scoring in names)):
        raise ValueError(
            f"The 'scoring' parameter of {owner} must be None, a scorer of scikit-learn or a callable. "
            f"Got {scoring!r} instead.{did_you_mean(scoring, names)}"
        )
    default = "accuracy" if is_classifier(estimator) else "r2"
    name = default if scoring is None else scoring if isinstance(scoring, str) else _name_of(scoring)
    return check_scoring(estimator, scoring), name


def _name_of(scorer: Any) -> str:
    return getattr(getattr(scorer, "_score_func", scorer), "__name__", "score")


def fitted_model(owner: str, model: Any, X: Any, y: Any, trains: bool = True) -> Any:
    """Return an estimator of this library that is fitted: the one given, the best one of a search, or a fitted clone.

    ``trains`` asks for one that can be trained again without some kernels.
    """
    right = isinstance(model, BaseMKL) and (is_classifier(model) or is_regressor(model))
    right &= not trains or hasattr(getattr(model, "_base", model), "_spec")
    if not right or y is None:
        kinds = "MKLClassifier, MKLRegressor, M3KClassifier or a search over these"
        if right:
            raise ValueError(f"{owner} scores predictions of the targets, and needs y. Got None instead.")
        if not trains:
            kinds = "an estimator of multikernel that predicts targets"
        raise ValueError(
            f"The 'model' parameter of {owner} must be {kinds}, fitted or not. Got {type(model).__name__} instead."
        )
    if hasattr(model, "cv_results_") and not hasattr(model, "best_estimator_"):
        raise ValueError(
            f"{owner} needs the best estimator of a search. Got {type(model).__name__} with refit=False instead."
        )
    if not model.__sklearn_is_fitted__():
        model = clone(model).fit(X, y)
    return getattr(model, "best_estimator_", model)


def make_job(owner: str, model: Any, X: Any, y: Any, scoring: Any) -> tuple[Job, str]:
    """Return what all trials of a fitted model have in common, and the name of the scorer."""
    base = clone(model).set_params(verbose=0, callback=None, checkpoint=None)
    scorer, name = find_scorer(owner, base, scoring)
    samples = (check_classes if is_classifier(base) else check_regression)(base, X, y, None)
    settings = base._settings(features_need=base._spec(samples).features_need)
    return Job([{}], base, samples.X, samples.y, None, settings, Shared(), scorer, False, np.nan), name


def share(job: Job, splits: Sequence[Split]) -> Job:
    """Return the job with what its trials share: kernels that learn nothing, or that a stack was examined."""
    if job.base._precomputed:
        whole = prepare(job.base.kernels, job.X, None, job.settings)
        # an indefinite kernel is refused here, or every trial repairs its own slice
        return replace(job, shared=Shared(sound=not whole.known_psd.any()))
    return replace(job, shared=share_kernels(job.base.kernels, job.X, splits, job.settings))


# ---- one trial


def run_trial(
    job: Job, groups: Sequence[frozenset[str]], earlier: Sequence[Sequence[Found]], trial: Trial
) -> TrialResult:
    """Train the whole model and the models without each group of kernels, and score them.

    Parameters
    ----------
    job : Job
        What is trained.
    groups : sequence of sets of str
        Names of the kernels that are left out together.
    earlier : sequence
        Solutions of other trials, at whose mean the whole model starts; none to start anew.
    trial : Trial
        Training and test samples.
    """
    weight = None if trial.counts is None else trial.counts.astype(np.float64)
    own = replace(job, weight=weight, points=[{}] * (1 + len(groups)))
    samples = own.samples(trial.rows)
    prepared, spec = own.prepare(samples), own.base._spec(samples)
    starts = partial(mean_start, earlier, np.isin(np.arange(len(job.y)), samples.kept)) if earlier else None
    whole = trained(prepared, spec, job, starts)
    fits = {0: whole}
    for i, group in enumerate(groups):
        left = np.flatnonzero([name not in group for name in whole.prepared.names])
        if len(left):
            part = _without(own, samples, whole.prepared, left)
            fits[i + 1] = trained(part, spec, job, partial(_start_of, whole, left))
    results = [score_fits(own, fits, whole.prepared, samples, test) for test in trial.tests]
    for test, result in zip(trial.tests, results, strict=True):
        for i in set(range(len(own.points))) - fits.keys():
            result.scores[i] = _constant_score(job, samples.y, test)
    model = fitted(own.base, {}, publish(whole), whole, samples)
    weights = np.reshape(model.weights_, (-1, len(model.kernel_names_)))
    chosen = {name for name, column in zip(kernels_of(model), weights.T, strict=True) if column.any()}
    return TrialResult(
        np.array([result.scores for result in results]),
        np.array([not group.isdisjoint(chosen) for group in groups], bool),
        found_by(whole, samples.kept),
        [error for result in results for error in result.errors],
    )


def score_fits(job: Job, fits: Mapping[int, Fit], prepared: Prepared, samples: Samples, test: np.ndarray) -> FoldResult:
    """Return the scores of fits on test samples, by their numbers among the points of the job."""
    empty = np.full(len(job.points), np.nan)
    result = FoldResult(empty, empty.copy(), empty.copy(), [None] * len(empty), [], [])
    score_models(job, result, {i: (publish(fit), fit) for i, fit in fits.items()}, prepared, samples, test)
    return result


@contextmanager
def quiet() -> Iterator[None]:
    """Hold back warnings about parts of the samples: the model was fitted to all of them, and has told its own.

    Filters of warnings belong to the process: threads beside the main one leave them as they are.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _without(job: Job, samples: Samples, prepared: Prepared, left: np.ndarray) -> Prepared:
    """Return the kernels that are left, where they lie; features, which kernels share, are computed again."""
    if prepared.gram.kind != "features":
        return prepared.take_kernels(left)
    names = {prepared.names[k] for k in left}
    entries = [entry for entry in expand_entries(job.base.kernels, samples.X) if entry[0] in names]
    return prepare(entries, samples.X, samples.weight, job.settings)


def trained(prepared: Prepared, spec: Any, job: Job, starts: Starts | None = None) -> Fit:
    """Return a fit, or raise the interrupt that ended it."""
    fit = train(prepared, spec, job.settings, starts)
    if INTERRUPTED in [solution.status for solution in fit.solutions]:
        raise KeyboardInterrupt
    return fit


def _start_of(whole: Fit, left: np.ndarray, targets: Sequence[Target]) -> list[Start | None]:
    """Return starts of models without some kernels: coefficients and remaining weights of the whole model."""
    starts: list[Start | None] = []
    for target, solution in zip(targets, whole.solutions, strict=True):
        if target.classes is not None:
            starts.append(None)
            continue
        weights = target.mixing.scale_to_boundary(solution.weights[left])
        starts.append(Start(weights, target.machine.make_feasible(solution.dual_coef)))
    return starts


def _constant_score(job: Job, y: np.ndarray, test: np.ndarray) -> float:
    """Return the score of a model without kernels: the largest class, or the mean of the targets."""
    constant = DummyClassifier(strategy="prior") if is_classifier(job.base) else DummyRegressor()
    constant.fit(np.zeros((len(y), 1)), y)
    return float(job.scorer(constant, np.zeros((len(test), 1)), _safe_indexing(job.y, test)))


# ---- many trials


def run_all(run: Callable[[Any], Any], tasks: Sequence[Any], n_jobs: int | None) -> Iterator[Any]:
    """Yield the results of tasks in their order: one after the other, or as many at once as joblib has workers."""
    if min(len(tasks), effective_n_jobs(n_jobs)) == 1:
        with single_threaded_blas():
            yield from map(run, tasks)
        return
    for result in Parallel(n_jobs=n_jobs, return_as="generator")(delayed(_or_interrupt)(run, task) for task in tasks):
        if isinstance(result, KeyboardInterrupt):
            raise result
        yield result


def _or_interrupt(run: Callable[[Any], Any], task: Any) -> Any:
    """Return an interrupt as a result: raised, it would take the results of finished tasks with it."""
    try:
        with quiet(), single_threaded_blas():
            return run(task)
    except KeyboardInterrupt as stop:
        return stop


def threads_for(job: Job, n_jobs: int | None) -> Job:
    """Return the job with the threads that remain for each of several workers."""
    jobs = effective_n_jobs(n_jobs)
    return replace(job, settings=replace(job.settings, n_threads=max(1, job.settings.n_threads // jobs)))


@contextmanager
def keeping(owner: str, name: str, done: Callable[[], tuple[int, int, Any]]) -> Iterator[None]:
    """Keep what is finished where Ctrl-C ends the work: it is raised again, with the result as an attribute.

    Parameters
    ----------
    owner : str
        Who is named in the warning.
    name : str
        The attribute of the KeyboardInterrupt.
    done : callable
        Returns how many parts are done, of how many, and the result of these; None where there is none yet.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        finished, total, result = done()
        if result is None:
            raise
        setattr(interrupt, name, result)
        try:
            warnings.warn(
                f"{owner} was interrupted after {finished} of {total} trainings on parts of the samples. The result of "
                f"these is the '{name}' of this KeyboardInterrupt (sys.last_value.{name}).",
                UserWarning,
                stacklevel=4,
            )
        finally:
            raise interrupt
