"""C, norm and epsilon by cross-validation, with shared kernels and warm starts; see docs/selection.md."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from multikernel.estimators.classes import ClassifierFace, ProbabilityFace
from multikernel.estimators.classifier import CLASSIFIER_RULES, MKLClassifier
from multikernel.estimators.docstrings import documented
from multikernel.estimators.m3k import FINITE_NORM, M3KClassifier, check_margin_parameters, set_margin_attributes
from multikernel.estimators.regressor import REGRESSOR_RULES, MKLRegressor, RegressorFace
from multikernel.estimators.validation import (
    RULES,
    Samples,
    check_numbers,
    check_parameters,
    check_targets,
)
from multikernel.losses import EpsilonInsensitive
from multikernel.model_selection.search import SearchCV
from multikernel.training.core import Fit
from multikernel.training.publish import Model


# costs of the default grid, and its norms: few kernels, and all useful ones (docs/accuracy.md)
COSTS, NORMS = (0.1, 1.0, 10.0, 100.0, 1000.0), (1.0, 2.0)
_OR_NONE = {
    name: replace(RULES[name], none=True, text=f"None or {RULES[name].text}") for name in ("C", "norm", "epsilon")
}


def default_axes(search: Any) -> dict[str, list[float]]:
    """Return the costs where none were given, and the norms where nothing was."""
    if search.C is not None or search.Cs is not None:
        return {}
    norms = {} if search.norm is not None or search.norms is not None else {"norm": list(NORMS)}
    return {"C": list(COSTS), **norms}


@documented
class MKLClassifierCV(SearchCV, ProbabilityFace):
    """`MKLClassifier` with C and norm chosen by cross-validation.

    It chooses as ``GridSearchCV(MKLClassifier(...), {"C": Cs, "norm": norms})`` does, with shared kernels and warm
    starts.

    Parameters
    ----------
    <kernels>
    Cs, norms : list of float or None, default=None
        Axes of the grid; None for the one value of `C` or `norm` or, where these are None too, the default grid: the
        costs 0.1, 1, 10, 100 and 1000, and the norms 1 and 2. Where costs are given and no norms, the norm is 1.
    <baselines, search, n_jobs, checkpoint>
    norm, C : float or None, default=None
        As those of `MKLClassifier`, without effect where `norms` or `Cs` are given.
    loss, multiclass, output_kernels, fit_intercept, normalize, psd, solver, tol, max_iter, class_weight
        As those of `MKLClassifier`.
    <probability>
    gram, memory_limit
        As those of `MKLClassifier`.

    Attributes
    ----------
    <search_results>
    C_, norm_ : float
        The cost and norm of the choice.
    best_estimator_ : MKLClassifier
        Trained on all samples; its attributes (``weights_``, ``duality_gap_``, ...) and methods are also those of the
        search.

    See Also
    --------
    MKLClassifier : The base estimator, with all fitted attributes.

    Notes
    -----
    Widths and normalisations are learned on the training samples of each fold, once for the whole grid; all other
    kernels are computed once and sliced. Along C each problem starts at the solution of its neighbour, and the last
    training at the mean of the folds, so that models agree with those of GridSearchCV up to ``tol``: where two points
    score alike, a small ``tol`` makes the choices agree as well.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(90, 3))
    >>> y = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 > 1.4, "far", "near")
    >>> search = MKLClassifierCV(Cs=[0.01, 1.0, 100.0], norms=[1.0, 2.0], cv=3).fit(X, y)
    >>> sorted(search.best_params_), search.weights_path_.shape
    (['C', 'norm'], (3, 6, 5))
    >>> bool(search.best_score_ > 0.8), search.predict([[0.0, 0.0, 0.0]])
    (True, array(['near'], dtype='<U4'))
    """

    _on_device = True

    _base = MKLClassifier

    def __init__(
        self,
        kernels="rbf",
        *,
        Cs=None,
        norms=None,
        baselines=True,
        cv=None,
        scoring=None,
        refit=True,
        error_score=np.nan,
        norm=None,
        C=None,
        loss="hinge",
        multiclass="joint",
        output_kernels=None,
        fit_intercept=True,
        probability=False,
        normalize="variance",
        psd="error",
        solver="auto",
        tol=1e-3,
        max_iter=500,
        class_weight=None,
        gram="auto",
        memory_limit=None,
        verbose=0,
        n_jobs=None,
        callback=None,
        checkpoint=None,
    ):
        self._store(locals())

    _set = MKLClassifier._set

    def _check_base(self) -> None:
        check_parameters(self, **CLASSIFIER_RULES, **_OR_NONE)

    def _default_axes(self, y):
        return default_axes(self)

    def _check_y(self, X, y):
        y = check_targets(self, X, y)
        check_classification_targets(y)
        if len(classes := np.unique(y)) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes. "
                f"Got one class only: {classes.tolist()[0]!r}."
            )
        return y


@documented
class MKLRegressorCV(SearchCV, RegressorFace):
    """`MKLRegressor` with C, norm and epsilon chosen by cross-validation.

    It chooses as ``GridSearchCV(MKLRegressor(...), {"C": Cs, "norm": norms, "epsilon": epsilons})`` does, with shared
    kernels and warm starts.

    Parameters
    ----------
    <kernels>
    Cs, norms, epsilons : list of float or None, default=None
        Axes of the grid; None for the one value of `C`, `norm` or `epsilon` or, where these are None too, the default
        grid: the costs 0.1, 1, 10, 100 and 1000, the norms 1 and 2, and a tube of 0.1; with the loss
        "epsilon_insensitive" costs and tube are multiplied by the standard deviation of y, so that the unit of y does
        not matter. Where costs are given, what is left out is as in `MKLRegressor`.
    <baselines, search, n_jobs, checkpoint>
    norm, C, epsilon : float or None, default=None
        As those of `MKLRegressor`, without effect where `norms`, `Cs` or `epsilons` are given.
    loss, fit_intercept, normalize, psd, solver, tol, max_iter, gram, memory_limit
        As those of `MKLRegressor`.

    Attributes
    ----------
    <search_results>
    C_, norm_, epsilon_ : float
        The cost, norm and half width of the tube of the choice.
    best_estimator_ : MKLRegressor
        Trained on all samples; its attributes (``weights_``, ``duality_gap_``, ...) and methods are also those of the
        search.

    See Also
    --------
    MKLRegressor : The base estimator, with all fitted attributes.

    Notes
    -----
    Widths and normalisations are learned on the training samples of each fold, once for the whole grid; all other
    kernels are computed once and sliced. Along C each problem starts at the solution of its neighbour, and the last
    training at the mean of the folds, so that models agree with those of GridSearchCV up to ``tol``: where two points
    score alike, a small ``tol`` makes the choices agree as well.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(80, 2))
    >>> y = np.sin(2 * X[:, 0]) + 0.05 * rng.normal(size=80)
    >>> search = MKLRegressorCV(Cs=[0.1, 1.0, 10.0], epsilons=[0.01, 0.1], cv=3).fit(X, y)
    >>> sorted(search.best_params_), search.norm_, bool(search.best_score_ > 0.7)
    (['C', 'epsilon'], 1.0, True)
    """

    _on_device = True

    _base = MKLRegressor

    def __init__(
        self,
        kernels="rbf",
        *,
        Cs=None,
        norms=None,
        epsilons=None,
        baselines=True,
        cv=None,
        scoring=None,
        refit=True,
        error_score=np.nan,
        norm=None,
        C=None,
        loss="epsilon_insensitive",
        epsilon=None,
        fit_intercept=True,
        normalize="variance",
        psd="error",
        solver="auto",
        tol=1e-3,
        max_iter=500,
        gram="auto",
        memory_limit=None,
        verbose=0,
        n_jobs=None,
        callback=None,
        checkpoint=None,
    ):
        self._store(locals())

    def _check_base(self) -> None:
        check_parameters(self, **REGRESSOR_RULES, **_OR_NONE)

    def _default_axes(self, y):
        axes = default_axes(self)
        if "C" in axes and self.epsilon is None and self.epsilons is None:
            axes["epsilon"] = [self._base().epsilon]
        if self.loss == "epsilon_insensitive" or isinstance(self.loss, EpsilonInsensitive):
            # the same grid for y and any multiple of it
            unit = float(np.std(y)) or 1.0
            axes = {name: [float(value * (1.0 if name == "norm" else unit)) for value in axes[name]] for name in axes}
        return axes

    def _check_y(self, X, y):
        return check_numbers(self, X, y)


@documented
class M3KClassifierCV(SearchCV, ClassifierFace):
    """`M3KClassifier` with C, norm and kernel margin chosen by cross-validation.

    It chooses as ``GridSearchCV(M3KClassifier(...), {"C": Cs, "norm": norms, "gamma0_fraction": gamma0_fractions})``
    does, with shared kernels, shared margins (one largest margin for each fold and norm) and warm starts.

    Parameters
    ----------
    <kernels>
    Cs, norms, gamma0_fractions : list of float or None, default=None
        Axes of the grid; None for the one value of `C`, `norm` or `gamma0_fraction`. Fractions are of the largest
        margin of each fold, so that none is infeasible in any.
    <search, n_jobs, checkpoint>
    gamma0, gamma0_fraction, norm, C
        As those of `M3KClassifier`, without effect where the grid has their axis.
    normalize, psd, solver, tol, max_iter, class_weight, gram, memory_limit
        As those of `M3KClassifier`.

    Attributes
    ----------
    <search_results>
    C_, norm_, gamma0_fraction_ : float
        The cost, norm and fraction of the choice.
    best_estimator_ : M3KClassifier
        Trained on all samples; its attributes (``weights_``, ``margin_``, ``gamma0_``, ...) and methods are also those
        of the search.

    See Also
    --------
    M3KClassifier : The base estimator, with all fitted attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import M3KClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], 20)
    >>> X = np.eye(3)[y] + 0.5 * rng.normal(size=(60, 3))
    >>> search = M3KClassifierCV(Cs=[0.1, 1.0], gamma0_fractions=[0.5, 1.0], cv=3).fit(X, y)
    >>> sorted(search.best_params_), search.weights_path_.shape, bool(search.margin_ >= search.gamma0_ - 1e-9)
    (['C', 'gamma0_fraction'], (3, 4, 5), True)
    """

    _base = M3KClassifier
    _axis_rules = MappingProxyType({"norm": FINITE_NORM})

    def __init__(
        self,
        kernels="rbf",
        *,
        Cs=None,
        norms=None,
        gamma0_fractions=None,
        cv=None,
        scoring=None,
        refit=True,
        error_score=np.nan,
        gamma0="max",
        gamma0_fraction=None,
        norm=1.0,
        C=1.0,
        normalize="variance",
        psd="error",
        solver="auto",
        tol=1e-3,
        max_iter=500,
        class_weight=None,
        gram="auto",
        memory_limit=None,
        verbose=0,
        n_jobs=None,
        callback=None,
        checkpoint=None,
    ):
        self._store(locals())

    def _check_base(self) -> None:
        if self.gamma0_fractions is not None and self.gamma0 != "max":
            raise ValueError(
                f"The 'gamma0' parameter of {type(self).__name__} must be 'max' where 'gamma0_fractions' are given. "
                f"Got {self.gamma0!r} instead."
            )
        check_margin_parameters(self)

    _check_y = MKLClassifierCV._check_y

    def _set(self, model: Model, fit: Fit, samples: Samples) -> None:
        super()._set(model, fit, samples)
        set_margin_attributes(self, fit)
