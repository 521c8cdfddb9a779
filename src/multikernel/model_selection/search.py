"""A search over a grid with shared kernels: what the three search estimators have in common.

The choice is that of GridSearchCV with the base estimator: the same folds, the same training on the training samples
alone, the same scores up to the certified gap. What differs is the work: kernels are computed once and sliced, and
neighbouring costs start from each other's solutions.
"""

from __future__ import annotations

import math
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.ma import MaskedArray
from scipy.stats import rankdata
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from multikernel.estimators.base import BaseMKL
from multikernel.estimators.calibration import calibrate
from multikernel.estimators.estimate import show_estimate
from multikernel.estimators.reporting import FINISHED, end_interrupted, warn_unfinished
from multikernel.estimators.splits import Split, splits_of
from multikernel.estimators.validation import (
    RULES,
    Rule,
    Samples,
    check_parameters,
    check_samples,
    check_weight,
)
from multikernel.kernels.spec import expand_entries
from multikernel.model_selection.baselines import mix_gain, with_baselines
from multikernel.model_selection.folds import (
    FoldResult,
    Job,
    fitted,
    run_folds,
    share_kernels,
    spec_at,
    takes_weight,
    train_point,
)
from multikernel.threads import single_threaded_blas
from multikernel.training.checkpoint import checkpointed, fingerprint, remove_states
from multikernel.training.core import Prepared
from multikernel.training.prepare import LARGE, Shared, prepare
from multikernel.training.progress import progress, telling_compiling
from multikernel.training.publish import publish
from multikernel.training.train import Found, mean_start

# parameter of the grid -> parameter of the base estimator
AXES = {
    "Cs": "C", "norms": "norm", "losses": "loss", "epsilons": "epsilon", "gamma0_fractions": "gamma0_fraction",
}  # fmt: skip


class SearchCV(BaseMKL):
    """What the searches share; a subclass names its base estimator and has its methods."""

    _base: type[BaseMKL]
    # rules of the base estimator that take the place of the general ones
    _axis_rules: Mapping[str, Rule] = MappingProxyType({})
    cv: Any
    scoring: Any
    refit: Any
    error_score: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Search the grid, and train the best point on all samples.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Training samples.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Classes, of any type, or numbers.
        sample_weight : array of shape (n_samples,), optional
            Weights in training, and in scoring where GridSearchCV of the installed scikit-learn hands them on: to
            scorers that take weights or, with metadata routing, ask for them.
        groups : array of shape (n_samples,), optional
            Groups, for a splitter that takes them.

        Returns
        -------
        estimator
            The fitted search; its attributes are those of the best estimator too.
        """
        self._check_search()
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        X = check_samples(self, X, reset=True)
        y, weight = self._check_y(X, y), None if sample_weight is None else check_weight(X, sample_weight)
        splits = splits_of(type(self).__name__, self.cv, y, is_classifier(self), X, groups)
        own = self.get_params(deep=False)
        # what the grid decides may be None here
        left_out = {name for name in AXES.values() if own.get(name) is None}
        names = set(self._base._get_param_names()) & set(own) - left_out
        base = clone(self._base(**{name: own[name] for name in names}))
        points = self._points(base, X, y)
        vars(base).update({name: vars(self)[name] for name in vars(self) if name.endswith("_in_")})
        scorer = check_scoring(base, scoring=self.scoring)
        job = Job(
            points, base, X, y, weight, base._settings(callback=None, verbose=0), Shared(), scorer,
            weight is not None and takes_weight(scorer), self.error_score, keep_outputs=bool(own.get("probability")),
        )  # fmt: skip
        samples, whole = job.samples(), None
        spec = base._spec(samples)
        for point in points:
            # values that exclude each other are refused once, not by every fit
            spec_at(spec, point)
        settings = replace(job.settings, features_need=spec.features_need)
        shown = progress(self.verbose, self.tol, type(self).__name__) if self.verbose else nullcontext()
        folds: list[FoldResult] = []
        if self.verbose:
            with telling_compiling(self.verbose):
                show_estimate(self, X, y, weight)
        keeping, told = self._keeping(folds, job, splits), telling_compiling(self.verbose)
        with keeping, told, single_threaded_blas(), shown as show:
            if self._precomputed:
                whole = prepare(self.kernels, samples.X, samples.weight, settings)
                # an indefinite kernel is refused here, or every fold repairs its own slice
                shared = Shared(sound=len(samples.kept) == len(y) and not whole.known_psd.any())
            else:
                shared = share_kernels(self.kernels, X, splits, settings)
            silent = show is None and self.callback is None
            tell = None if silent else self._tell(show, len(splits), len(points))
            job = replace(job, settings=settings, shared=shared, tell=tell)
            if self.checkpoint is not None:
                key = fingerprint(type(self).__name__, own, X, y, weight, splits)
                job = replace(job, checkpoint=(self.checkpoint, key))
            for fold in run_folds(job, splits):
                folds.append(fold)
        self._report(folds, len(points))
        self._choose(job, folds, splits)
        if self.refit:
            self._refit(job, samples, whole, [fold.found[self.best_index_] for fold in folds])
            if job.keep_outputs:
                self._calibrate(job, folds, splits)
        if job.checkpoint is not None:
            remove_states(settings.owner, *job.checkpoint)
        return self

    @contextmanager
    def _keeping(self, folds: list[FoldResult], job: Job, splits: Sequence[Split]) -> Iterator[None]:
        """Keep the results of finished folds where Ctrl-C ends the search; it is raised again."""
        try:
            yield
        except KeyboardInterrupt:
            if not folds:
                raise
            stays = "" if self.checkpoint is None else " Its checkpoints stay: the same call goes on from there."
            try:
                self._choose(job, folds, splits)
            finally:
                end_interrupted(
                    f"{type(self).__name__} was interrupted after {len(folds)} of {len(splits)} folds. cv_results_ and "
                    f"best_params_ are those of the finished folds; no model was trained on all samples.{stays}"
                )

    def _tell(self, show: Callable[[dict], None] | None, folds: int, points: int) -> Callable[[dict], None]:
        """Return what is called after each fit: the progress shown, then the user's ``callback``."""

        def tell(row: dict) -> None:
            total = folds * points
            if show is not None:
                at = [f"{name}={value}" for name, value in row["params"].items()]
                parts = ", ".join(["fits", f"fold {row['fold'] + 1} of {folds}", *at, f"gap {row['gap']:.1e}"])
                show({"done": row["done"], "of": total, "parts": parts})
            if self.callback is not None:
                self.callback({**row, "of": total})

        return tell

    # ---- parameters

    def _points(self, base: BaseMKL, X: Any, y: np.ndarray) -> list[dict[str, Any]]:
        """Return the points to try: the grid, and its baselines where they are asked for."""
        axes = {AXES[name]: list(values) for name, values in self._axes().items()}
        points = list(ParameterGrid([{**grid, **axes} for grid in self._default_grids(y)]))
        own = self.get_params(deep=False)
        if not own.get("baselines"):
            return points
        names = X.names if self._precomputed else [name for name, _, _ in expand_entries(self.kernels, X)]
        every = [{"norm": base.norm, **point} for point in points]
        # features of many samples are those of all kernels together
        featured = self.gram == "features" or (self.gram == "auto" and len(y) >= LARGE)
        found = with_baselines(every, names, own.get("output_kernels") is None and not featured)
        return points + found[len(every) :]

    def _default_grids(self, y: np.ndarray) -> list[dict[str, list]]:
        """Return the grids that take the place of parameters that were not given."""
        return [{}]

    def _axes(self) -> dict[str, Any]:
        """The axes of the grid that were given."""
        own = self.get_params(deep=False)
        return {name: own[name] for name in AXES if own.get(name) is not None}

    def _check_search(self) -> None:
        """Raise one sentence about the first parameter of the search that is not what it must be."""
        owner = type(self).__name__
        for name, values in self._axes().items():
            rule = {**RULES, **self._axis_rules}[AXES[name]]
            listed = not isinstance(values, (str, bytes, Mapping)) and np.iterable(values)
            wrong = values if not listed else next((value for value in values if not rule.allows(value)), None)
            if not listed or wrong is not None or not len(list(values)):
                shown = values if not listed or wrong is None else wrong
                raise ValueError(
                    f"The '{name}' parameter of {owner} must be None or a list, not empty, of which each is "
                    f"{rule.text}. Got {shown!r} instead."
                )
        if isinstance(self.scoring, (list, tuple, set, Mapping)):
            raise ValueError(
                f"The 'scoring' parameter of {owner} must be None, the name of a scorer or a callable. "
                f"Got {self.scoring!r} instead."
            )
        if not (isinstance(self.refit, (bool, np.bool_)) or callable(self.refit)):
            raise ValueError(
                f"The 'refit' parameter of {owner} must be True, False or a callable that returns the row of "
                f"cv_results_ to choose. Got {self.refit!r} instead."
            )
        if self.error_score != "raise" and not isinstance(self.error_score, Real):
            raise ValueError(
                f"The 'error_score' parameter of {owner} must be 'raise' or a number. Got {self.error_score!r} instead."
            )
        self._check_base()

    def _check_base(self) -> None:
        """Raise one sentence about a parameter of the base estimator."""
        check_parameters(self)

    @abstractmethod
    def _check_y(self, X: Any, y: Any) -> np.ndarray:
        """Return valid targets."""

    # ---- results

    def _report(self, folds: list[FoldResult], n_points: int) -> None:
        """Warn of what failed, or raise where everything did."""
        errors = [(s, error) for s, fold in enumerate(folds) for error in fold.errors]
        if not errors:
            return
        total, owner = len(folds) * n_points, type(self).__name__
        where, first = errors[0]
        if len(errors) == total:
            raise ValueError(f"All {total} fits of {owner} failed. In fold {where}: {first}")
        warnings.warn(
            f"{len(errors)} of {total} fits of {owner} failed, and got the score {self.error_score}. In fold {where}: "
            f"{first}",
            FitFailedWarning,
            stacklevel=4,
        )

    def _choose(self, job: Job, folds: list[FoldResult], splits: Sequence[Split]) -> None:
        """Sets: the table of results, the weights along the grid, what was chosen, and what learning the mix bought."""
        points = job.points
        self.cv_results_ = results_table(points, folds)
        self.weights_path_ = weights_path(folds, len(points))
        self.n_splits_, self.scorer_, self.multimetric_ = len(folds), job.scorer, False
        if callable(self.refit):
            self.best_index_ = self.refit(self.cv_results_)
            if not isinstance(self.best_index_, (int, np.integer)) or not 0 <= self.best_index_ < len(points):
                raise ValueError(
                    f"The 'refit' parameter of {type(self).__name__} must return a row of cv_results_, from 0 to "
                    f"{len(points) - 1}. Got {self.best_index_!r} instead."
                )
        else:
            self.best_index_ = int(self.cv_results_["rank_test_score"].argmin())
        self.best_score_ = self.cv_results_["mean_test_score"][self.best_index_]
        self.best_params_ = dict(points[int(self.best_index_)])
        for name in set(AXES.values()) & set(self.get_params(deep=False)):
            setattr(self, f"{name}_", self.best_params_.get(name, getattr(job.base, name)))
        if getattr(self, "baselines", False):
            scores, sizes = np.array([fold.scores for fold in folds]), [(len(rows), len(test)) for rows, test in splits]
            self.mix_gain_ = mix_gain(
                [{"norm": job.base.norm, **point} for point in points], scores, sizes, int(self.best_index_)
            )

    def _refit(self, job: Job, samples: Samples, whole: Prepared | None, found: Sequence[Sequence[Found]]) -> None:
        """Sets: best_estimator_, refit_time_, and the fitted attributes of the best estimator."""
        began = time.perf_counter()
        taking_part = np.isin(np.arange(len(job.y)), samples.kept)
        spec = job.base._spec(samples)
        kept, settings = job.checkpoint, job.settings
        resumable = nullcontext(settings) if kept is None else checkpointed(settings, kept[0], f"{kept[1]}-refit")
        with single_threaded_blas(), resumable as settings:
            prepared = job.prepare(samples) if whole is None else whole
            starts = partial(mean_start, found, taking_part)
            fit = train_point(prepared, spec, self.best_params_, settings, starts)[1]
            model = publish(fit)
        self.best_estimator_ = fitted(job.base, self.best_params_, model, fit, samples)
        self._set(model, fit, samples)
        self.refit_time_ = time.perf_counter() - began
        if not FINISHED.issuperset(model.status):
            warn_unfinished(self.best_estimator_, fit)

    def _calibrate(self, job: Job, folds: Sequence[FoldResult], splits: Sequence[Split]) -> None:
        """Sets: calibration_ of the search and of the best estimator, from the scores of all test samples."""
        found = [(fold.outputs[self.best_index_], test) for fold, (_, test) in zip(folds, splits, strict=True)]
        # a fold that failed, or lacks a class, has no scores or other columns
        shape = () if len(self.classes_) == 2 else (len(self.classes_),)
        found = [(scores, test) for scores, test in found if scores is not None and scores.shape[1:] == shape]
        if not found:
            raise ValueError(
                f"The 'probability' parameter of {type(self).__name__} must be False where no fold has all classes in "
                "its training samples. Got True instead."
            )
        tests = np.concatenate([test for _, test in found])
        codes = np.searchsorted(self.classes_, job.y[tests])
        weight = None if job.weight is None else job.weight[tests]
        self.calibration_ = calibrate(np.concatenate([scores for scores, _ in found]), codes, weight)
        self.best_estimator_.calibration_ = self.calibration_

    def _outputs(self, X: Any) -> np.ndarray:
        if not self.refit:
            check_is_fitted(self, "cv_results_")
            raise AttributeError(
                f"This {type(self).__name__} was fitted with refit=False, and has no model to predict with: "
                f"train {self._base.__name__} with best_params_."
            )
        return super()._outputs(X)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has searched and, unless refit=False, trained the model that was chosen."""
        return hasattr(self, "cv_results_") and (not self.refit or hasattr(self, "model_"))


def results_table(points: Sequence[Mapping[str, Any]], folds: Sequence[FoldResult]) -> dict[str, Any]:
    """Return times, parameters and scores, one row for each point of the grid.

    Parameters
    ----------
    points : sequence of dict
        The grid.
    folds : sequence of FoldResult
        What each fold found.
    """
    table: dict[str, Any] = {}
    for name, values in (
        ("fit_time", [fold.fit_seconds for fold in folds]),
        ("score_time", [fold.score_seconds for fold in folds]),
    ):
        table[f"mean_{name}"], table[f"std_{name}"] = np.mean(values, axis=0), np.std(values, axis=0)
    for name in sorted({name for point in points for name in point}):
        # a value of its own type where the point has none, which is masked
        known = [point[name] for point in points if name in point]
        column = np.full(len(points), known[0], object if isinstance(known[0], str) else np.array(known).dtype)
        has = np.array([name in point for point in points])
        column[has] = known
        table[f"param_{name}"] = MaskedArray(column, mask=~has)
    table["params"] = list(points)
    scores = np.array([fold.scores for fold in folds])
    for s, row in enumerate(scores):
        table[f"split{s}_test_score"] = row
    mean = scores.mean(axis=0)
    # in units of a power of two, which rounds nothing: squares of large scores may overflow
    unit = 2.0 ** (np.frexp(np.abs(scores[np.isfinite(scores)]).max(initial=1.0))[1] - 1)
    table["mean_test_score"], table["std_test_score"] = mean, unit * (scores / unit).std(axis=0)
    # what has no score shares the last place
    table["rank_test_score"] = rankdata(np.where(np.isnan(mean), np.inf, -mean), method="min").astype(np.int32)
    return table


def weights_path(folds: Sequence[FoldResult], n_points: int) -> np.ndarray:
    """Return the weights of every fold and point, (n_splits, n_points, ..., p), NaN where a fit failed.

    A fold that lacks a class has fewer problems than the others, and its weights are left out.
    """
    shapes = [np.shape(weights) for fold in folds for weights in fold.weights if weights is not None]
    shape = max(shapes, key=math.prod, default=(0,))
    path = np.full((len(folds), n_points, *shape), np.nan)
    for s, fold in enumerate(folds):
        for i, weights in enumerate(fold.weights):
            if weights is not None and np.shape(weights) == shape:
                path[s, i] = weights
    return path
