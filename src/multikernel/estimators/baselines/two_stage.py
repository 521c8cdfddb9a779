"""Weights of the kernels first, then any predictor on the combined kernel; see docs/baselines.md."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.svm import SVC, SVR
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from multikernel.estimators.base import WEIGHT_CHECKS, BaseMKL
from multikernel.estimators.baselines import AlignFWeights, KernelWeights
from multikernel.estimators.baselines.each_kernel import default_estimator
from multikernel.estimators.baselines.messages import telling
from multikernel.estimators.docstrings import documented
from multikernel.estimators.validation import (
    Rule,
    Samples,
    check_classes,
    check_parameters,
    check_regression,
    check_samples,
    check_vector,
    require_that,
)
from multikernel.gram.base import Gram
from multikernel.solution import CONVERGED, INTERRUPTED
from multikernel.threads import BLOCK_BYTES, interruptible, resolve_threads, single_threaded_blas
from multikernel.training.core import Settings
from multikernel.training.mixture import SPARSE, Mixture, combined_kernel, linear_coefficients, make_mixture
from multikernel.training.prepare import prepare
from multikernel.training.publish import GramInfo, contributions


def _is_estimator(value: Any) -> bool:
    """Whether this is an estimator, and not the class of one."""
    return hasattr(value, "fit") and hasattr(value, "get_params") and not isinstance(value, type)


def _inner_has(name: str):
    """Whether the predictor, fitted or not, has a method."""

    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", None) or self._predictor(), name)
        return True

    return check


@dataclass(frozen=True)
class MixedPredictor:
    """A predictor of scikit-learn on the mix of the kernels."""

    mixture: Mixture
    predictor: Any

    def evaluate(self, X: Any, n_threads: int = 1, method: str = "predict") -> np.ndarray:
        """Return the result of a method of the predictor on valid samples."""
        return self.mixture.map(X, getattr(self.predictor, method), n_threads)


@documented
class TwoStage(BaseMKL):
    """What both two-stage estimators share."""

    weights: Any
    estimator: Any
    _task: str
    _default: Any

    def __init__(
        self,
        kernels="rbf",
        *,
        weights=None,
        estimator=None,
        normalize="variance",
        psd="error",
        gram="auto",
        memory_limit=None,
        n_jobs=None,
        verbose=0,
        callback=None,
        checkpoint=None,
    ):
        self._store(locals())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # a given estimator decides itself how accurate the second stage is
        reason = "compares outputs at 1e-7, and the default second stage stops at a tolerance of 1e-3"
        tags.expected_failed_checks = dict.fromkeys(WEIGHT_CHECKS, reason) if self.estimator is None else {}
        return tags

    def _predictor(self) -> Any:
        return default_estimator(self._task == "classification") if self.estimator is None else self.estimator

    def _check(self) -> None:
        """Check the parameters."""
        right, word = (is_classifier, "classifier") if self._task == "classification" else (is_regressor, "regressor")
        example = f"{self._default.__name__}(kernel='precomputed')"

        def takes_kernel(value: Any) -> bool:
            return bool(_is_estimator(value) and right(value) and get_tags(value).input_tags.pairwise)

        check_parameters(
            self,
            weights=Rule(
                "None or a weights object such as those of multikernel.estimators.baselines",
                none=True,
                check=lambda value: require_that(_is_estimator(value)),
            ),
            estimator=Rule(
                f"None or a {word} that takes a precomputed kernel, such as {example}",
                none=True,
                check=lambda value: require_that(takes_kernel(value)),
            ),
        )

    def _fit_stages(self, samples: Samples, y: np.ndarray) -> None:
        """Learn the weights, then the predictor.

        Sets: every fitted attribute.

        Parameters
        ----------
        samples : Samples
            Valid samples; the predictor is trained on their targets.
        y : ndarray
            What the weights are learned from: numbers of the classes, or the targets themselves.
        """
        with self._begin(self._settings(callback=self.callback), samples) as settings:
            self._train_stages(samples, y, settings)
        if self.status_ == INTERRUPTED:
            raise KeyboardInterrupt

    def _train_stages(self, samples: Samples, y: np.ndarray, settings: Settings) -> None:
        weight = samples.weight
        prepared = prepare(self.kernels, samples.X, weight, settings)
        gram = prepared.gram
        rule = AlignFWeights() if self.weights is None else clone(self.weights)
        if (state := settings.checkpoint) is not None and (known := state.all()):
            for name, each in known.items():
                setattr(rule, name, each if each.ndim else each.item())
        else:
            try:
                self._learn_weights(rule, gram, y, weight, settings)
            except KeyboardInterrupt:
                # a rule that keeps its best weights says so
                if getattr(rule, "status_", None) != INTERRUPTED:
                    raise
            if state is not None and getattr(rule, "status_", CONVERGED) != INTERRUPTED:
                learned = {name: np.asarray(value) for name, value in vars(rule).items() if name.endswith("_")}
                if all(value.dtype.kind in "biufU" for value in learned.values()):
                    state.put(**learned)
        p, owner = gram.n_kernels, type(self).__name__
        what = f"The 'weights' parameter of {owner} must set weights_ to {p} non-negative numbers, one per kernel"
        beta = check_vector(getattr(rule, "weights_", None), p, what, lambda weights: weights >= 0)
        model = clone(self._predictor())
        if weight is not None and not has_fit_parameter(model, "sample_weight"):
            raise ValueError(
                f"The 'estimator' parameter of {owner} must take sample weights. Got {model!r}, whose fit does not."
            )
        model.fit(combined_kernel(gram, beta), samples.y, **({} if weight is None else {"sample_weight": weight}))
        mixture = make_mixture(prepared, beta, model.support_ if isinstance(model, SPARSE) else None)
        self.__dict__.pop("kernel_contributions_", None)
        self.__dict__.update(
            model_=MixedPredictor(mixture, model),
            weights_=beta,
            kernel_names_=list(prepared.names),
            weights_estimator_=rule,
            estimator_=model,
            status_=getattr(rule, "status_", CONVERGED),
            gram_=GramInfo(gram.kind, str(gram.dtype), gram.nbytes),
            **({"classes_": samples.classes} if len(samples.classes) else {}),
        )
        if (coef := linear_coefficients(model, gram.n_samples)) is not None:
            self.kernel_contributions_ = mean_contributions(gram, beta, coef, weight)

    def _learn_weights(
        self, rule: Any, gram: Gram, y: np.ndarray, weight: np.ndarray | None, settings: Settings
    ) -> None:
        with telling(replace(settings, tol=getattr(rule, "tol", 0.0)), type(rule).__name__) as tell, interruptible():
            # an object from elsewhere has fit(stack, y, sample_weight) alone
            options = {"task": self._task, "callback": tell} if isinstance(rule, KernelWeights) else {}
            rule.fit(gram, y, weight, **options)

    def _ask(self, method: str, X: Any) -> np.ndarray:
        """Return the result of a method of the predictor on new samples."""
        check_is_fitted(self)
        return self.model_.evaluate(check_samples(self, X, reset=False), resolve_threads(self.n_jobs), method)

    def predict(self, X: Any) -> np.ndarray:
        """Return the prediction of each sample.

        <samples>

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Members of ``classes_``, or numbers.
        """
        return self._ask("predict", X)


def mean_contributions(gram: Gram, beta: np.ndarray, coef: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the contributions of the kernels to several outputs, each output counting by its variance.

    Parameters
    ----------
    gram : Gram
        The kernels.
    beta : ndarray of shape (p,)
        Their weights.
    coef : ndarray of shape (n, T)
        Coefficients of the T outputs.
    weight : ndarray of shape (n,) or None
        Sample weights.
    """
    total, size = np.zeros(len(beta)), 0.0
    active = np.flatnonzero(beta)
    # the outputs of each kernel are held for so many columns at once
    columns = max(1, BLOCK_BYTES // (8 * max(1, len(active)) * len(coef)))
    with single_threaded_blas():
        for lo in range(0, coef.shape[1], columns):
            outputs = gram.apply(coef[:, lo : lo + columns], active)
            mixed = np.tensordot(beta[active], outputs, 1)
            mixed = mixed - np.average(mixed, axis=0, weights=weight)
            spread = float(np.average(np.sum(mixed**2, axis=1), weights=weight))
            total[active] += spread * contributions(beta[active], outputs, weight)
            size += spread
    return total / size if size > 0 else total


@documented
class TwoStageClassifier(ClassifierMixin, TwoStage):
    """Weights of the kernels first, then a classifier on sum_k beta_k K_k.

    Parameters
    ----------
    <kernels>
    weights : weights object or None, default=None
        What learns the weights: one of `multikernel.estimators.baselines`, or any object with ``weights_`` and
        ``fit(stack, y, sample_weight)``, which is given the Gram of the normalised kernels. None for `AlignFWeights`.
    estimator : classifier or None, default=None
        What is trained on the combined kernel: any classifier of scikit-learn that takes a precomputed kernel, also in
        ``GridSearchCV``. None for ``SVC(kernel="precomputed")``, of ten
        million iterations at most. Parameters are set as ``estimator__C``.
    <normalize, psd, gram, memory_limit, n_jobs, verbose, checkpoint>
    callback : callable, default=None
        Called while the weights are learned with a dict: "gap" and "active", or how many are "done" "of" all and what
        they are ("parts"), and "problem", the name of the weights object.

    Attributes
    ----------
    <classes_>
    weights_ : ndarray of shape (p,)
        Kernel weights, on the scale that the weights object documents.
    <kernel_names_>
    weights_estimator_, estimator_ : objects
        What learned the weights, and what was trained on the combined kernel.
    kernel_contributions_ : ndarray of shape (p,)
        As in `MKLClassifier`, over the outputs of all pairs of classes; where the classifier is linear in its kernel.
    status_ : str
        How far the weights came: "converged", "max_iter" or "interrupted" (Ctrl-C; the weights are the best found).
    gram_ : GramInfo
        How the kernels were kept: kind, dtype, nbytes.
    <columns>

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import TwoStageClassifier
    >>> from multikernel.kernels import RBF, Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 4))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> model = TwoStageClassifier([("useful", Linear(), [0]), ("noise", RBF(), [1, 2, 3])]).fit(X, y)
    >>> bool(model.weights_[0] > model.weights_[1]), model.predict(X[:3])
    (True, array(['yes', 'no', 'no'], dtype='<U3'))
    """

    _task = "classification"
    _default = SVC

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TwoStageClassifier:
        """Learn the weights of the kernels, then the classifier.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Training samples.
        y : array of shape (n_samples,)
            Classes, of any type.
        sample_weight : array of shape (n_samples,), optional
            Weights, for the kernels, their weights and the classifier; samples of weight zero are left out.

        Returns
        -------
        TwoStageClassifier
            The fitted estimator.
        """
        self._check()
        samples = check_classes(self, X, y, sample_weight)
        self._fit_stages(samples, samples.codes)
        return self

    @available_if(_inner_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the decision function of the classifier, where it has one.

        <samples>

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive values for ``classes_[1]``, or one column per class.
        """
        return self._ask("decision_function", X)

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, where the classifier has them.

        <samples>

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities; rows sum to one.
        """
        return self._ask("predict_proba", X)


@documented
class TwoStageRegressor(RegressorMixin, TwoStage):
    """Weights of the kernels first, then a regressor on sum_k beta_k K_k.

    Parameters
    ----------
    <kernels>
    weights : weights object or None, default=None
        As in `TwoStageClassifier`; the target kernel is yy'.
    estimator : regressor or None, default=None
        What is trained on the combined kernel: any regressor of scikit-learn that takes a precomputed kernel, such as
        ``KernelRidge(kernel="precomputed")``, which also takes several targets. None for ``SVR(kernel="precomputed")``,
        of ten million iterations at most.
    <normalize, psd, gram, memory_limit, n_jobs, verbose, checkpoint>
    callback : callable, default=None
        Called while the weights are learned with a dict: "gap" and "active", or how many are "done" "of" all and what
        they are ("parts"), and "problem", the name of the weights object.

    Attributes
    ----------
    weights_, kernel_names_, weights_estimator_, estimator_, kernel_contributions_, status_, gram_
        As in `TwoStageClassifier`.
    <columns>

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import TwoStageRegressor
    >>> from multikernel.kernels import RBF, Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 4))
    >>> y = 3.0 * X[:, 0] + 5.0
    >>> model = TwoStageRegressor([("useful", Linear(), [0]), ("noise", RBF(), [1, 2, 3])]).fit(X, y)
    >>> bool(model.weights_[0] > model.weights_[1]), model.score(X, y) > 0.9
    (True, True)
    """

    _task = "regression"
    _default = SVR

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TwoStageRegressor:
        """Learn the weights of the kernels, then the regressor.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Training samples.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Targets; several where the regressor takes them.
        sample_weight : array of shape (n_samples,), optional
            Weights, for the kernels, their weights and the regressor; samples of weight zero are left out.

        Returns
        -------
        TwoStageRegressor
            The fitted estimator.
        """
        self._check()
        samples = check_regression(self, X, y, sample_weight)
        self._fit_stages(samples, samples.y)
        return self
