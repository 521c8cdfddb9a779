"""What the online learners share: kernels or features in, epochs, the best predictor and its certificate out.

parameters -> samples -> kernels or features -> blocks -> epochs -> fitted attributes
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from multikernel.estimators.base import WEIGHT_CHECKS
from multikernel.estimators.baselines.learned import Learned
from multikernel.estimators.baselines.linear_features import LinearFeatures, LinearPredictor, are_linear
from multikernel.estimators.baselines.messages import telling
from multikernel.estimators.baselines.online_blocks import Blocks, Coefficients, FeatureBlocks, KernelBlocks
from multikernel.estimators.baselines.online_loops import STEPS, STREAM
from multikernel.estimators.baselines.online_run import Penalty, Result, Sample, power_for
from multikernel.estimators.baselines.weights import shares
from multikernel.estimators.classes import ClassifierFace
from multikernel.estimators.docstrings import documented
from multikernel.estimators.reporting import FINISHED, end_interrupted
from multikernel.estimators.validation import (
    GRAM_OR_FEATURES,
    RULES,
    Rule,
    Samples,
    check_classes,
    check_parameters,
    check_samples,
    check_targets,
    check_weight,
)
from multikernel.kernels import Linear
from multikernel.kernels.spec import named_entries
from multikernel.solution import INTERRUPTED
from multikernel.training.core import Settings
from multikernel.training.prepare import prepare, warn_constant
from multikernel.training.publish import GramInfo, contributions, expand
from multikernel.training.repair import repaired_if_met
from multikernel.training.targets import costs_in_range, sample_costs

_OWN = {
    "gram": GRAM_OR_FEATURES,
    "alpha": RULES["epsilon"],
    "block_norm": Rule("None or a number above 1 and at most 2", (Real,), 1.0, 2.0, open_low=True, none=True),
    "average": RULES["fit_intercept"],
    "early_stopping": RULES["fit_intercept"],
    "validation_fraction": Rule("a number between 0 and 1", (Real,), 0.0, 1.0, open_low=True, open_high=True),
    "n_iter_no_change": RULES["n_neighbors"],
    "online_epochs": Rule("a non-negative integer", (Integral,), 0.0),
}


# attributes of a fit that are unknown for a stream
_CERTIFIED = (
    "objective_", "dual_objective_", "duality_gap_", "status_", "history_", "kernel_contributions_", "radius_", "gram_",
)  # fmt: skip


def _takes_streams(estimator: Any) -> bool:
    """Whether samples may come in parts: the features must be explicit."""
    try:
        linear = not isinstance(estimator.kernels, str) and all(
            type(kernel) is Linear for _, kernel, _ in named_entries(estimator.kernels)
        )
    except ValueError:
        linear = False
    if not linear:
        raise AttributeError(
            f"partial_fit of {type(estimator).__name__} needs explicit features, so every kernel must be Linear(), on "
            f"all columns or some of them. Got kernels={estimator.kernels!r}, whose values between old and new samples "
            "it would need: use fit."
        )
    return True


@documented
class OnlineMKL(ClassifierFace):
    """Base class of the online learners; the parameters are those of its subclasses."""

    C: float
    block_norm: float | None
    average: bool
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    class_weight: Any
    random_state: Any
    _stream_rule: int
    _stream: FeatureBlocks

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        reason = "visits samples in a random order: weights and copies have the same optimum, not the same path to it"
        tags.expected_failed_checks = dict.fromkeys(WEIGHT_CHECKS, reason)
        return tags

    @abstractmethod
    def _run_epochs(self, blocks: Blocks, sample: Sample, penalty: Penalty, **options: Any) -> Result:
        """Run the algorithm from zero."""

    @abstractmethod
    def _penalty(self, lam: float, q: float) -> Penalty:
        """Return the penalty of the algorithm."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn a predictor from zero.

        <fit>
        """
        check_parameters(self, **_OWN)
        samples = check_classes(self, X, y, sample_weight)
        linear = not self._precomputed and are_linear(self.kernels, samples.X)
        if self.gram == "features" and not linear:
            raise ValueError(
                f"gram='features' of {type(self).__name__} needs a dense table of numbers and kernels all Linear(). "
                f"Got kernels={self.kernels!r} instead."
            )
        learn = self._learn_features if linear and self.gram in ("auto", "features") else self._learn_kernels
        with self._begin(self._settings(callback=self.callback), samples) as settings:
            learn(samples, self._sample(samples), settings)
        if self.status_ == INTERRUPTED:
            end_interrupted(_sentence(self))
        if self.status_ not in FINISHED:
            warnings.warn(_sentence(self), ConvergenceWarning, stacklevel=2)
        return self

    # ---- the parts of a fit

    def _sample(self, samples: Samples) -> Sample:
        """Return classes and costs of the samples; with early stopping a part of them is held out."""
        n, weight, classes = len(samples.codes), samples.weight, samples.classes
        train, held = np.arange(n), np.zeros(0, np.intp)
        if self.early_stopping:
            try:
                size = max(int(np.ceil(self.validation_fraction * n)), len(classes))
                seed = check_random_state(self.random_state)
                train, held = train_test_split(train, test_size=size, stratify=samples.codes, random_state=seed)
            except ValueError as error:
                raise ValueError(
                    f"The 'validation_fraction' parameter of {type(self).__name__} must leave samples of every class "
                    f"on both sides. Got {self.validation_fraction!r} of {n} samples of {len(classes)} classes."
                ) from error
        total = float(len(train) if weight is None else weight[train].sum())
        cost = sample_costs(type(self).__name__, 1.0, self.class_weight, classes, samples.codes, weight)
        # factors of mean one: weights count as repetitions would
        return Sample(samples.codes.astype(np.intp), cost * len(train) / total, train, held, total)

    def _run(self, blocks: Blocks, sample: Sample, settings: Settings) -> Result:
        with np.errstate(over="ignore"):
            cost = np.full(1, self.C * sample.total)
        costs_in_range(type(self).__name__, cost, what="'C' times the number of samples")
        penalty = self._penalty(1.0 / float(cost[0]), power_for(blocks.n_blocks, self.block_norm))
        with telling(settings, settings.owner) as tell:
            return self._run_epochs(
                blocks, sample, penalty, max_iter=self.max_iter, tol=self.tol, average=self.average,
                patience=self.n_iter_no_change, seed=check_random_state(self.random_state), callback=tell,
                state=settings.checkpoint,
            )  # fmt: skip

    def _learn_features(self, samples: Samples, sample: Sample, settings: Settings) -> None:
        """Learn from the columns of linear kernels; no kernel is formed."""
        source = self._make_features(samples.X, samples.weight)
        blocks = FeatureBlocks(source.maps(samples.X), len(samples.classes), self.average)
        result = self._run(blocks, sample, settings)
        kept = GramInfo("features", "float64", blocks.X.nbytes)
        self._set_result(result, blocks, samples, LinearPredictor(source, result.model), source.bank.names, kept)
        self.coef_ = result.model
        # UFO-MKL adds up over the epochs, also one that Ctrl-C ended before it counted; a stream is one epoch
        epochs = max(blocks.state[STEPS] / len(sample.train), 1.0)
        self._stream = blocks.as_stream(epochs if self._stream_rule == STREAM else 1.0)

    def _learn_kernels(self, samples: Samples, sample: Sample, settings: Settings) -> None:
        """Learn from kernels; one that proves indefinite is repaired or refused, and learning begins again."""
        c, prepared = len(samples.classes), prepare(self.kernels, samples.X, samples.weight, settings)
        while True:
            blocks = KernelBlocks(prepared.gram, c, self.average)
            result = self._run(blocks, sample, settings)
            definite = repaired_if_met(prepared, settings, [result.curvature])
            if definite is prepared:
                break
            prepared = definite
            if settings.checkpoint is not None:
                settings.checkpoint.clear()
        model: Coefficients = result.model
        if model.late is None:
            weights, coef = np.tile(model.m, (c, 1)), model.A
        else:
            weights = np.tile((result.norms > 0).astype(float), (c, 1))
            coef = np.stack([model.of(j) for j in range(len(prepared.names))])
        expansion = expand(prepared, weights, coef, np.zeros(c), balanced=False)
        self._set_result(
            result,
            blocks,
            samples,
            expansion,
            prepared.names,
            GramInfo(prepared.gram.kind, str(prepared.gram.dtype), prepared.gram.nbytes),
        )
        self.support_ = samples.kept[coef.any(axis=-1).reshape(-1, len(samples.kept)).any(axis=0)]

    def _make_features(self, X: Any, weight: np.ndarray | None) -> LinearFeatures:
        source = LinearFeatures.fit(self.kernels, X, weight, self.normalize)
        warn_constant(source.bank.names, source.constant)
        return source

    def _set_result(
        self, result: Result, blocks: Blocks, samples: Samples, expansion: Any, names: Sequence[str], kept: GramInfo
    ) -> None:
        """Set the fitted attributes of kernels and features alike, and forget those of an earlier fit."""
        for name in ("coef_", "support_", "_stream", "t_"):
            self.__dict__.pop(name, None)
        outputs = blocks.block_outputs(result.model) if result.outputs is None else result.outputs
        parts = contributions(np.ones(blocks.n_blocks), outputs, samples.weight)
        model = Learned(expansion, tuple(names), shares(result.norms), parts, kept)
        # all at once: Ctrl-C leaves the attributes of one model
        self.__dict__.update(
            model.attributes(),
            model_=model,
            classes_=samples.classes,
            block_norms_=result.norms,
            objective_=result.upper,
            dual_objective_=result.lower,
            duality_gap_=result.gap,
            n_iter_=result.n_iter,
            status_=result.status,
            history_={key: np.array(column) for key, column in result.history.items()},
        )

    # ---- streams

    @available_if(_takes_streams)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Visit further samples once, in their order; every kernel must be linear.

        It goes on from where `fit` or the last call ended; normalisations are those of the first call. There is no
        held-out part, no average and no certificate: these need all samples at once.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Samples.
        y : array of shape (n_samples,)
            Their classes.
        classes : array of shape (n_classes,), optional
            All classes that will ever come; needed in the first call.
        sample_weight : array of shape (n_samples,), optional
            Factors of the losses.

        Returns
        -------
        estimator
            The estimator.
        """
        check_parameters(self, **_OWN)
        first = not hasattr(self, "_stream")
        X = check_samples(self, X, reset=first)
        y = check_targets(self, X, y)
        check_classification_targets(y)
        known = self._known_classes(X, y, classes, first)
        if first:
            source = self._make_features(X, None)
            stream = FeatureBlocks(source.maps(X), len(known), average=False, coefficients=False)
            self.classes_, self._stream = known, stream
        else:
            source, stream = self.model_.expansion.features, self._stream
            stream.set_samples(source.maps(X))
        codes = np.searchsorted(self.classes_, y).astype(np.intp)
        cost = np.ones(len(y)) if sample_weight is None else check_weight(X, sample_weight)
        limits = self._penalty(1.0 / self.C, power_for(stream.n_blocks, self.block_norm)).limits()
        stream.visit(self._stream_rule, np.arange(len(y)), codes, cost, limits)
        stream.fold()
        stream.forget()
        m, norms = stream.current(self._stream_rule, limits)
        # the certificate of a fit does not hold for the new predictor
        for name in _CERTIFIED:
            self.__dict__.pop(name, None)
        coef, count = stream.predictor(m), int(stream.state[STEPS])
        model = Learned(LinearPredictor(source, coef), tuple(source.bank.names), shares(norms))
        self.__dict__.update(model.attributes(), model_=model, coef_=coef, block_norms_=norms, n_iter_=1, t_=count)
        return self

    def _known_classes(self, X: Any, y: np.ndarray, classes: Any, first: bool) -> np.ndarray:
        """Return the classes of the stream, or raise where they, or the samples, will not do."""
        owner = f"{type(self).__name__}.partial_fit"
        if first and classes is None:
            raise ValueError(
                f"The 'classes' parameter of {owner} must hold all classes in the first call. Got None instead."
            )
        given = self.classes_ if classes is None else np.unique(column_or_1d(classes))
        known = given if first else self.classes_
        if not np.array_equal(given, known):
            raise ValueError(
                f"The 'classes' parameter of {owner} must be {known.tolist()}, as in the first call. "
                f"Got {given.tolist()} instead."
            )
        if len(known) < 2 or not are_linear(self.kernels, X):
            raise ValueError(
                f"{owner} needs at least 2 classes and samples that are a dense table of numbers. "
                f"Got {len(known)} classes and samples of type {type(X).__name__}."
            )
        if len(strange := np.setdiff1d(y, known)):
            raise ValueError(f"The classes of y must be among {known.tolist()}. Got {strange.tolist()[0]!r} as well.")
        return known


def _sentence(estimator: Any) -> str:
    count, gap = estimator.n_iter_, estimator.duality_gap_
    owner, epochs = type(estimator).__name__, f"{count} epoch{'s' if count != 1 else ''}"
    worth = f"the best one met, certified to within a relative gap of {gap:.2g}."
    if estimator.status_ == INTERRUPTED:
        return f"{owner} was interrupted after {epochs}. The model kept is {worth}"
    worth = f"The model returned is {worth}"
    return (
        f"{owner} reached max_iter: after {epochs} the relative duality gap is {gap:.2g}, above "
        f"tol={estimator.tol:g}. {worth} Its distance from the optimum falls with the number of epochs, and grows with "
        f"C={estimator.C:g}: raise max_iter or tol, or take a smaller C; MKLClassifier reaches small gaps sooner."
    )
