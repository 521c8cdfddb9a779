"""What the online learners share: kernels or features in, epochs, the best predictor and its certificate out.

parameters -> samples -> kernels or features -> blocks -> epochs -> fitted attributes
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from multikernel.estimators.base import BaseMKL
from multikernel.estimators.baselines.linear_features import LinearFeatures, LinearPredictor, are_linear
from multikernel.estimators.baselines.online_blocks import Blocks, FeatureBlocks, KernelBlocks
from multikernel.estimators.baselines.online_loops import STREAM
from multikernel.estimators.baselines.online_run import Penalty, Result, Sample, power_for
from multikernel.estimators.classes import check_classes
from multikernel.estimators.classifier import MKLClassifier
from multikernel.estimators.validation import (
    GRAM_OR_FEATURES,
    RULES,
    check_parameters,
    check_samples,
    check_targets,
    check_weight,
)
from multikernel.kernels import Linear
from multikernel.kernels.base import is_integer, is_real
from multikernel.kernels.spec import named_entries
from multikernel.solution import CONVERGED, INTERRUPTED, SETTLED
from multikernel.training.core import TrainingKernels
from multikernel.training.prepare import warn_constant
from multikernel.training.progress import progress
from multikernel.training.publish import GramInfo, contributions

_OWN = {
    "gram": GRAM_OR_FEATURES,
    "alpha": RULES["epsilon"],
    "block_norm": (
        lambda v: v is None or (is_real(v) and 1 < v <= 2),
        "None or a number above 1 and at most 2",
    ),
    "average": RULES["fit_intercept"],
    "early_stopping": RULES["fit_intercept"],
    "validation_fraction": (lambda v: is_real(v) and 0 < v < 1, "a number between 0 and 1"),
    "n_iter_no_change": RULES["n_neighbors"],
    "online_epochs": (lambda v: is_integer(v) and v >= 0, "a non-negative integer"),
}


# what a fit says of its predictor and a stream cannot
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


class OnlineMKL(ClassifierMixin, BaseMKL):
    """Base class of the online learners; the parameters are those of its subclasses."""

    C: float
    block_norm: float | None
    average: bool
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    class_weight: Any
    random_state: Any
    classes_: np.ndarray
    _stream_rule: int
    _expansion: Any
    _costs = MKLClassifier._costs
    predict = MKLClassifier.predict

    @abstractmethod
    def _learn(self, blocks: Blocks, sample: Sample, penalty: Penalty, **options: Any) -> Result:
        """Run the algorithm from zero."""

    @abstractmethod
    def _penalty(self, lam: float, q: float) -> Penalty:
        """Return the penalty of the algorithm."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn a predictor from zero.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Training samples.
        y : array of shape (n_samples,)
            Classes, of any type.
        sample_weight : array of shape (n_samples,), optional
            Weights; they count as repetitions would, and samples of weight zero are left out.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        check_parameters(self, **_OWN)
        samples = check_classes(self, X, y, sample_weight)
        X, weight, codes = samples.X, samples.weight, samples.codes
        own = None if weight is None else samples.own
        for name in ("coef_", "support_", "_stream", "t_"):
            self.__dict__.pop(name, None)
        linear = not self._precomputed and are_linear(self.kernels, X)
        if self.gram == "features" and not linear:
            raise ValueError(
                f"gram='features' of {type(self).__name__} needs a dense table of numbers and kernels all Linear(). "
                f"Got kernels={self.kernels!r} instead."
            )
        explicit = linear and self.gram in ("auto", "features")
        sample, total = self._sample(codes, samples.y, own)
        if explicit:
            source = self._make_features(X, weight)
            result, blocks = self._run(FeatureBlocks(source.maps(X), len(self.classes_), self.average), sample, total)
            self.kernel_names_, self.coef_ = list(source.bank.names), result.model
            self._expansion = LinearPredictor(source, result.model)
            self.gram_ = GramInfo("features", "float64", blocks.X.nbytes)
            # UFO-MKL adds up over the epochs, a stream is one
            self._stream = blocks.as_stream(result.n_iter if self._stream_rule == STREAM else 1.0)
        else:
            kernels = self._make_kernels(X, weight)
            result, blocks = self._run_kernels(kernels, sample, total)
            self._store_coefficients(kernels, result, samples.kept)
        self._store(result, blocks, own)
        return self

    # ---- the parts of a fit

    def _make_features(self, X: Any, weight: np.ndarray | None) -> LinearFeatures:
        source = LinearFeatures.fit(self.kernels, X, weight, self.normalize)
        warn_constant(source.bank.names, source.constant)
        return source

    def _sample(self, codes: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> tuple[Sample, float]:
        """Return the sample, part of it held out where asked for, and the total weight of the rest."""
        n = len(codes)
        train, held = np.arange(n), np.zeros(0, np.intp)
        seed = check_random_state(self.random_state)
        if self.early_stopping:
            try:
                size = max(int(np.ceil(self.validation_fraction * n)), len(self.classes_))
                train, held = train_test_split(train, test_size=size, stratify=codes, random_state=seed)
            except ValueError as error:
                raise ValueError(
                    f"The 'validation_fraction' parameter of {type(self).__name__} must leave samples of every class "
                    f"on both sides. Got {self.validation_fraction!r} of {n} samples of {len(self.classes_)} classes."
                ) from error
        total = float(len(train) if weight is None else weight[train].sum())
        # C_i / C, so that the mean loss is that of as many repetitions
        cost = self._costs(codes, y, weight) / self.C * len(train) / total
        return Sample(codes.astype(np.intp), cost, train, held), total

    def _run(self, blocks: Any, sample: Sample, total: float) -> tuple[Result, Any]:
        penalty = self._penalty(1.0 / (self.C * total), power_for(blocks.n_blocks, self.block_norm))
        with progress(self.verbose, self.tol, type(self).__name__) as callback:
            result = self._learn(
                blocks, sample, penalty, max_iter=self.max_iter, tol=self.tol, average=self.average,
                patience=self.n_iter_no_change, seed=check_random_state(self.random_state), callback=callback,
            )  # fmt: skip
        return result, blocks

    def _run_kernels(self, kernels: TrainingKernels, sample: Sample, total: float) -> tuple[Result, KernelBlocks]:
        """Learn; kernels that prove indefinite on the way are repaired or refused, and learning starts again."""
        while True:
            result, blocks = self._run(KernelBlocks(kernels.gram, len(self.classes_), self.average), sample, total)
            met = SimpleNamespace(dual_coef=blocks.A, curvature=result.curvature)
            suspects = kernels.negative_curvature(met)
            if not len(suspects):
                return result, blocks
            kernels.repair_or_raise(suspects)

    def _store_coefficients(self, kernels: TrainingKernels, result: Result, kept: np.ndarray) -> None:
        model, p, c = result.model, len(kernels.names), len(self.classes_)
        if model.late is None:
            weights, coef = np.tile(model.m, (c, 1)), model.A
        else:
            weights = np.tile((result.norms > 0).astype(float), (c, 1))
            coef = np.stack([model.of(j) for j in range(p)])
        self._expansion = kernels.expansion(weights, coef, np.zeros(c), False)
        self.kernel_names_ = list(kernels.names)
        self.support_ = kept[np.flatnonzero(coef.any(axis=-1).reshape(-1, len(kept)).any(axis=0))]
        self.gram_ = GramInfo(kernels.gram.kind, str(kernels.gram.dtype), kernels.gram.nbytes)

    def _store(self, result: Result, blocks: Blocks, weight: np.ndarray | None) -> None:
        self._store_norms(result.norms)
        outputs = blocks.block_outputs(result.model) if result.outputs is None else result.outputs
        self.kernel_contributions_ = contributions(np.ones(blocks.n_blocks), outputs, weight)
        self.objective_, self.dual_objective_, self.duality_gap_ = result.upper, result.lower, result.gap
        self.n_iter_, self.status_ = result.n_iter, result.status
        self.history_ = {key: np.array(column) for key, column in result.history.items()}
        if result.status not in (CONVERGED, SETTLED):
            warnings.warn(_sentence(self, result), ConvergenceWarning, stacklevel=3)

    def _store_norms(self, norms: np.ndarray) -> None:
        total = norms.sum()
        self.block_norms_ = norms
        self.weights_ = norms / total if total > 0 else np.full(len(norms), 1.0 / len(norms))

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
        weight = check_weight(X, sample_weight)
        known = self._known_classes(X, y, classes, first)
        if first:
            source = self._make_features(X, None)
            stream = FeatureBlocks(source.maps(X), len(known), average=False, coefficients=False)
            self.classes_, self._stream, self.kernel_names_ = known, stream, list(source.bank.names)
        else:
            source, stream = self._expansion.features, self._stream
            stream.set_samples(source.maps(X))
        codes = np.searchsorted(self.classes_, y).astype(np.intp)
        cost = np.ones(len(y)) if weight is None else weight
        limits = self._penalty(1.0 / self.C, power_for(stream.n_blocks, self.block_norm)).limits()
        stream.visit(self._stream_rule, np.arange(len(y)), codes, cost, limits)
        stream.fold()
        stream.forget()
        m, norms = stream.current(self._stream_rule, limits)
        self.coef_ = stream.predictor(m)
        self._expansion = LinearPredictor(source, self.coef_)
        self._store_norms(norms)
        self.n_iter_, self.t_ = 1, int(stream.state[0])
        # what was proved about another predictor
        for name in _CERTIFIED:
            self.__dict__.pop(name, None)
        return self

    def _known_classes(self, X: Any, y: np.ndarray, classes: Any, first: bool) -> np.ndarray:
        """Return the classes of the stream, or raise where they, or the samples, will not do."""
        owner = f"{type(self).__name__}.partial_fit"
        if first and classes is None:
            raise ValueError(
                f"The 'classes' parameter of {owner} must hold all classes in the first call. Got None instead."
            )
        given = None if classes is None else np.unique(column_or_1d(classes))
        known = given if first else self.classes_
        if given is not None and not np.array_equal(given, known):
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

    # ---- evaluation

    def decision_function(self, X: Any) -> np.ndarray:
        """Return how clearly each sample belongs to each class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            One column per class; two classes: the difference of the second and the first.
        """
        outputs = self._outputs(X)
        return outputs[:, 1] - outputs[:, 0] if len(self.classes_) == 2 else outputs


def _sentence(estimator: Any, result: Result) -> str:
    owner, epochs = type(estimator).__name__, f"{result.n_iter} epoch{'s' if result.n_iter != 1 else ''}"
    worth = f"The model returned is the best one met, certified to within a relative gap of {result.gap:.2g}."
    if result.status == INTERRUPTED:
        return f"{owner} was interrupted after {epochs}. {worth}"
    return (
        f"{owner} reached max_iter: after {epochs} the relative duality gap is {result.gap:.2g}, above "
        f"tol={estimator.tol:g}. {worth} Its distance from the optimum falls with the number of epochs, and grows with "
        f"C={estimator.C:g}: raise max_iter or tol, or take a smaller C; MKLClassifier reaches small gaps sooner."
    )
