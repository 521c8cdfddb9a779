"""C, norm and epsilon by cross-validation, with shared kernels and warm starts; see docs/selection.md."""

from __future__ import annotations

from collections.abc import Sequence
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
from multikernel.model_selection.search import SearchCV
from multikernel.training.core import Fit
from multikernel.training.publish import Model

_OR_NONE = {
    name: replace(RULES[name], none=True, text=f"None or {RULES[name].text}") for name in ("C", "norm", "epsilon")
}
_LOSSES = {
    task: replace(rule, none=True, text=f"None, {rule.text}")
    for task, rule in (("classes", CLASSIFIER_RULES["loss"]), ("numbers", REGRESSOR_RULES["loss"]))
}


def default_grids(
    search: Any, losses: Sequence[str], Cs: Sequence[float] = (0.1, 1.0, 10.0, 100.0, 1000.0),
    norms: Sequence[float] = (1.0, 2.0),
) -> list[dict[str, list]]:  # fmt: skip
    """Return a grid of costs where none were given and, where nothing was, of norms and losses (docs/accuracy.md)."""
    if search.C is not None or search.Cs is not None:
        return [{}]
    grid = {"C": list(Cs)}
    if search.norm is None and search.norms is None:
        grid["norm"] = list(norms)
        if search.loss is None and search.losses is None:
            return [{**grid, "loss": [loss]} for loss in losses]
    return [grid]


def in_deviations(grid: dict[str, list], unit: float, tubes: Sequence[float] = (0.01, 0.1)) -> dict[str, list]:
    """Return a grid with costs and tubes in a unit of the targets: the same for y and any multiple of it."""
    return {**grid, "C": [C * unit for C in grid["C"]], "epsilon": [tube * unit for tube in tubes]}


@documented
class MKLClassifierCV(SearchCV, ProbabilityFace):
    """`MKLClassifier` with C and norm chosen by cross-validation.

    It chooses as ``GridSearchCV(MKLClassifier(...), {"C": Cs, "norm": norms})`` does, with shared kernels and warm
    starts.

    Parameters
    ----------
    <kernels>
    Cs, norms, losses : list or None, default=None
        Axes of the grid; None for the one value of `C`, `norm` or `loss`. Where neither costs nor `C` are given, the
        costs are 0.1, 1, 10, 100 and 1000; where nothing is given, the norms are 1 and 2 and the losses "hinge" and
        "squared". What is left out otherwise is as in `MKLClassifier`.
    <baselines, search, n_jobs, checkpoint>
    norm, C, loss : float, float, str or Loss, or None, default=None
        As those of `MKLClassifier`, without effect where `norms`, `Cs` or `losses` are given.
    multiclass, output_kernels, fit_intercept, normalize, psd, solver, tol, max_iter, class_weight
        As those of `MKLClassifier`.
    <probability>
    gram, memory_limit
        As those of `MKLClassifier`.

    Attributes
    ----------
    <search_results>
    C_, norm_, loss_ : float, float, str or Loss
        The cost, norm and loss of the choice.
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
    >>> search.best_params_["C"] in (1.0, 100.0), search.weights_path_.shape   # 6 points, 3 sums, 15 single kernels
    (True, (3, 24, 5))
    >>> bool(search.best_score_ > 0.8), search.predict([[0.0, 0.0, 0.0]])
    (True, array(['near'], dtype='<U4'))
    """

    _on_device = True

    _base = MKLClassifier
    _axis_rules = MappingProxyType({"loss": CLASSIFIER_RULES["loss"]})

    def __init__(
        self,
        kernels="rbf",
        *,
        Cs=None,
        norms=None,
        losses=None,
        baselines=True,
        cv=None,
        scoring=None,
        refit=True,
        error_score=np.nan,
        norm=None,
        C=None,
        loss=None,
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
        check_parameters(self, gram=CLASSIFIER_RULES["gram"], **_OR_NONE, loss=_LOSSES["classes"])

    def _default_grids(self, y):
        return default_grids(self, ["hinge"] if self.output_kernels is not None else ["hinge", "squared"])

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
    Cs, norms, losses, epsilons : list or None, default=None
        Axes of the grid; None for the one value of `C`, `norm`, `loss` or `epsilon`. Where neither costs nor `C` are
        given, the costs are 0.1, 1, 10, 100 and 1000, and `epsilon` 0.01 and 0.1; where nothing is given, the norms are
        1 and 2 and the losses "epsilon_insensitive" and "squared". With the former costs and epsilons of the default
        grid are multiplied by the standard deviation of y, so that the unit of y does not matter. What is left out
        otherwise is as in `MKLRegressor`.
    <baselines, search, n_jobs, checkpoint>
    norm, C, epsilon, loss : float, float, float, str or Loss, or None, default=None
        As those of `MKLRegressor`, without effect where `norms`, `Cs`, `epsilons` or `losses` are given.
    fit_intercept, normalize, psd, solver, tol, max_iter, gram, memory_limit
        As those of `MKLRegressor`.

    Attributes
    ----------
    <search_results>
    C_, norm_, epsilon_, loss_ : float, float, float, str or Loss
        The cost, norm, half width of the tube and loss of the choice.
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
    >>> search.best_params_["C"] == search.C_, bool(search.best_score_ > 0.7)
    (True, True)
    """

    _on_device = True

    _base = MKLRegressor
    _axis_rules = MappingProxyType({"loss": REGRESSOR_RULES["loss"]})

    def __init__(
        self,
        kernels="rbf",
        *,
        Cs=None,
        norms=None,
        losses=None,
        epsilons=None,
        baselines=True,
        cv=None,
        scoring=None,
        refit=True,
        error_score=np.nan,
        norm=None,
        C=None,
        loss=None,
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if self.loss is None and self.losses is None and self.Cs is None and self.C is None:
            # the default grid ends at the squared loss on the noise of these checks, solved far below tol
            tags.expected_failed_checks = {}
        return tags

    def _check_base(self) -> None:
        check_parameters(self, gram=REGRESSOR_RULES["gram"], **_OR_NONE, loss=_LOSSES["numbers"])

    def _default_grids(self, y):
        grids = default_grids(self, ["squared"] if y.ndim > 1 else ["epsilon_insensitive", "squared"])
        # squares of large targets overflow
        size = float(np.abs(y).max()) or 1.0
        unit, given = size * float(np.std(y / size)) or 1.0, self.epsilon is not None or self.epsilons is not None
        for j, grid in enumerate(grids):
            loss = grid.get("loss", [self.loss or self._base().loss])[0]
            if "C" in grid and loss == "epsilon_insensitive":
                grids[j] = in_deviations(grid, unit)
                if given:
                    del grids[j]["epsilon"]
        return grids

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
