"""The models along C or along the norm, each started at the solution of its neighbour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from multikernel.estimators.classifier import CLASSIFIER_RULES, MKLClassifier
from multikernel.estimators.m3k import M3KClassifier, check_margin_parameters
from multikernel.estimators.regressor import REGRESSOR_RULES, MKLRegressor
from multikernel.estimators.reporting import FINISHED, warn_unfinished
from multikernel.estimators.validation import Samples, check_classes, check_parameters, check_regression
from multikernel.model_selection.folds import fitted
from multikernel.solution import INTERRUPTED
from multikernel.threads import single_threaded_blas
from multikernel.training.core import Fit
from multikernel.training.prepare import prepare
from multikernel.training.publish import publish
from multikernel.training.train import from_fit, train

# estimator -> checks of its parameters and of its samples
_CHECKS: dict[type, tuple[Callable[[Any], None], Callable[[Any, Any, Any, Any], Samples]]] = {
    MKLClassifier: (partial(check_parameters, **CLASSIFIER_RULES), check_classes),
    MKLRegressor: (partial(check_parameters, **REGRESSOR_RULES), check_regression),
    M3KClassifier: (check_margin_parameters, check_classes),
}


class MKLPath(NamedTuple):
    """What `mkl_path` returns, for L values of C or of the norm.

    Attributes
    ----------
    values : ndarray of shape (L,)
        The values, in the order in which they were given.
    weights : ndarray of shape (L, n_kernels) or (L, n_problems, n_kernels)
        Kernel weights.
    duality_gaps : ndarray of shape (L,) or (L, n_problems)
        Certified relative duality gaps.
    models : list of estimators
        The fitted models.
    """

    values: np.ndarray
    weights: np.ndarray
    duality_gaps: np.ndarray
    models: list[Any]


def mkl_path(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    Cs: Sequence[float] | None = None,
    norms: Sequence[float] | None = None,
    sample_weight: Any = None,
) -> MKLPath:
    """Train an estimator for several values of C, or of the norm.

    Kernels are computed once. The largest value is trained first, and each of the others starts at the solution of the
    next larger one; every model is certified to the ``tol`` of the estimator, as by `fit`.

    Parameters
    ----------
    estimator : MKLClassifier, MKLRegressor or M3KClassifier
        All other parameters. It is cloned, and not changed.
    X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
        Training samples.
    y : array of shape (n_samples,) or (n_samples, n_targets)
        Classes or numbers.
    Cs, norms : list of float
        Values of C or of the norm; one of the two is given.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples.

    Returns
    -------
    MKLPath
        A named tuple: values, weights, duality_gaps, models.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier
    >>> from multikernel.model_selection import mkl_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2))
    >>> y = np.where(X[:, 0] ** 2 + 0.3 * rng.normal(size=80) > 0.5, 1, -1)
    >>> path = mkl_path(MKLClassifier(), X, y, Cs=[0.1, 1.0, 10.0])
    >>> path.weights.shape, bool(np.all(path.duality_gaps <= 1e-3)), path.models[1].C
    ((3, 5), True, 1.0)
    """
    kind = next((kind for kind in _CHECKS if isinstance(estimator, kind)), None)
    if kind is None:
        raise ValueError(
            "The 'estimator' parameter of mkl_path must be MKLClassifier, MKLRegressor or M3KClassifier. "
            f"Got {type(estimator).__name__} instead."
        )
    if (Cs is None) == (norms is None):
        raise ValueError(f"mkl_path needs either 'Cs' or 'norms'. Got {'neither' if Cs is None else 'both'} of them.")
    name, values = ("C", Cs) if norms is None else ("norm", norms)
    points = [{name: value} for value in values] if values is not None and np.iterable(values) else []
    if not points:
        raise ValueError(f"The '{name}s' parameter of mkl_path must be a list, not empty. Got {values!r} instead.")
    check_estimator, check_samples = _CHECKS[kind]
    for point in points:
        check_estimator(clone(estimator).set_params(**point))
    base = clone(estimator)
    samples = check_samples(base, X, y, sample_weight)
    spec = base._spec(samples)
    settings = base._settings(features_need=spec.features_need)
    models: dict[int, Any] = {}
    previous: Fit | None = None
    with single_threaded_blas(), base._begin(settings, samples, points) as settings:
        prepared = prepare(base.kernels, samples.X, samples.weight, settings)
        spec = spec.on_kernels(prepared, points)
        for i in np.argsort([-point[name] for point in points], kind="stable").tolist():
            starts = None if previous is None else partial(from_fit, previous)
            own = settings
            if settings.checkpoint is not None:
                own = replace(settings, checkpoint=settings.checkpoint.part(i))
            previous = train(prepared, replace(spec, **points[i]), own, starts)
            prepared, model = previous.prepared, publish(previous)
            models[i] = fitted(base, points[i], model, previous, samples)
            if INTERRUPTED in model.status:
                raise KeyboardInterrupt
            if not FINISHED.issuperset(model.status):
                warn_unfinished(models[i], previous)
    ordered = [models[i] for i in range(len(points))]
    return MKLPath(
        np.array([point[name] for point in points], float),
        np.array([model.weights_ for model in ordered]),
        np.array([model.duality_gap_ for model in ordered]),
        ordered,
    )
