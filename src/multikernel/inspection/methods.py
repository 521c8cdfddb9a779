"""The methods that `compare` knows by name. A new one is one line of the table `METHODS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.utils.multiclass import type_of_target

import multikernel
from multikernel.kernels.base import is_integer

TASKS = ("auto", "classification", "regression")


def _two_stage(weights: str) -> Callable[[bool], Any]:
    def make(classification: bool) -> Any:
        from sklearn.svm import SVC, SVR

        import multikernel.estimators.baselines as rules

        kind = multikernel.TwoStageClassifier if classification else multikernel.TwoStageRegressor
        machine = SVC(kernel="precomputed") if classification else SVR(kernel="precomputed")
        return kind("precomputed", weights=getattr(rules, weights)(), estimator=machine)

    return make


def _joint(name: str, **options: Any) -> Callable[[bool], Any]:
    return lambda classification: getattr(multikernel, name)("precomputed", **options)


def _mkl(**options: Any) -> Callable[[bool], Any]:
    return lambda classification: (
        multikernel.MKLClassifier if classification else multikernel.MKLRegressor
    )("precomputed", **options)  # fmt: skip


# name: (description, function that makes it, whether it also does regression)
METHODS: dict[str, tuple[str, Callable[[bool], Any], bool]] = {
    "uniform": ("SVM on the sum of the kernels", _two_stage("UniformWeights"), True),
    "best": ("SVM on the best single kernel, by inner cross-validation", _two_stage("BestSingleKernel"), True),
    "align": ("SVM on kernels weighted by their alignment (Cortes et al. 2012)", _two_stage("AlignWeights"), True),
    "alignf": ("SVM on kernels weighted for best alignment (Cortes et al. 2012)", _two_stage("AlignFWeights"), True),
    "margin": ("SVM on kernels of largest margin (Cortes et al. 2013)", _two_stage("KernelMarginWeights"), False),
    "binarymkl": ("SVM on kernels weighted by pairs (Kumar et al. 2012)", _two_stage("BinaryMKLWeights"), False),
    "pwmk": ("SVM on kernels weighted by their accuracy", _two_stage("PWMKWeights"), False),
    "fheuristic": ("SVM on kernels weighted by a heuristic of alignment", _two_stage("FHeuristicWeights"), True),
    "mkl": ("sparse MKL, each class against the rest (Sonnenburg et al. 2005)", _mkl(), True),
    "l2": ("MKL with weights of norm 2 (Kloft et al. 2008)", _mkl(norm=2.0), True),
    "joint": ("sparse MKL, all classes at once (Zien & Ong 2007)", _joint("MKLClassifier", multiclass="joint"), False),
    "squared": ("MKL with the squared loss, shared weights (Ying et al. 2009)",
                _joint("MKLClassifier", multiclass="joint", loss="squared"), False),
    "m3k": ("M3K: joint, with a large kernel margin (Cortes et al. 2013)", _joint("M3KClassifier"), False),
    "rkda": ("kernel discriminant analysis (Ye et al. 2008)", _joint("DiscriminantMKLClassifier"), False),
    "easymkl": ("EasyMKL (Aiolli & Donini 2015)", _joint("EasyMKLClassifier"), False),
    "lpbeta": ("LP-beta (Gehler & Nowozin 2009)", _joint("LPBetaClassifier"), False),
    "obscure": ("OBSCURE (Orabona et al. 2010)", _joint("OBSCUREClassifier", random_state=0), False),
    "ufo": ("UFO-MKL (Orabona & Jie 2011)", _joint("UFOMKLClassifier", random_state=0), False),
}  # fmt: skip


def make_methods(
    methods: Mapping[str, Any] | Sequence[str],
    classification: bool,
    stack_only: bool,
    params: Mapping[str, Any] | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    inner_cv: int = 3,
) -> dict[str, Any]:
    """Return fresh estimators by name, set to take the kernels that all methods share.

    Parameters
    ----------
    methods : dict from names to estimators, or sequence of names of `METHODS`
        An estimator whose ``kernels`` are "rbf" or "precomputed", at any depth, takes the shared kernels; one with
        kernels of its own, or without, takes the samples.
    classification : bool
        Whether the targets are classes.
    stack_only : bool
        Whether the data are a KernelStack, so that no method can have the samples themselves.
    params : dict, optional
        Parameters for every method that has them, itself or in its ``estimator``.
    grid : dict, optional
        Values of parameters among which each method that has them chooses by inner cross-validation.
    inner_cv : int
        Folds of the inner cross-validation.
    """
    if isinstance(methods, str) or not isinstance(methods, (Mapping, Sequence)) or not len(methods):
        raise ValueError(
            f"The 'methods' parameter of compare must be a dict from names to estimators or a list of names. "
            f"Got {methods!r} instead."
        )
    for what, given in (("params", params), ("grid", grid)):
        if given is not None and not isinstance(given, Mapping):
            raise ValueError(f"The '{what}' parameter of compare must be a dict from names. Got {given!r} instead.")
    for key, values in (grid or {}).items():
        if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)) or not len(values):
            raise ValueError(
                f"The 'grid' parameter of compare must be a dict from names to lists of values, not empty. "
                f"Got {values!r} for {key!r} instead."
            )
    if grid and inner_cv is not None and not (is_integer(inner_cv) and inner_cv >= 2):
        raise ValueError(
            f"The 'inner_cv' parameter of compare must be an integer of at least 2. Got {inner_cv!r} instead."
        )
    if not isinstance(methods, Mapping):
        methods = {str(name): _by_name(name, classification) for name in methods}
    ready = {
        str(name): _prepared(str(name), each, stack_only, dict(params or {}), dict(grid or {}), inner_cv)
        for name, each in methods.items()
    }
    for what, given in (("params", params), ("grid", grid)):
        for key in given or {}:
            if not any(_owner(getattr(each, "estimator", each), key) or _owner(each, key) for each in ready.values()):
                raise ValueError(
                    f"The '{what}' parameter of compare must name parameters that some method has. "
                    f"Got {key!r}, which none of them has."
                )
    return ready


def choose_task(y: np.ndarray, methods: Any = (), task: str = "auto") -> str:
    """Return the task: the given one, that of the estimators, or the one that the targets look like.

    Whole numbers are classes while there are at most as many different ones as the root of the number of samples: then
    a class has on average as many samples as there are classes.

    Examples
    --------
    >>> choose_task(np.array(["a", "b"])), choose_task(np.array([0.5, 1.5])), choose_task(np.arange(9) % 3)
    ('classification', 'regression', 'classification')
    >>> choose_task(np.arange(9)), choose_task(np.arange(9), task="classification")
    ('regression', 'classification')
    """
    if task != "auto":
        return task
    for each in methods.values() if isinstance(methods, Mapping) else ():
        if isinstance(each, BaseEstimator) and (is_classifier(each) or is_regressor(each)):
            return "classification" if is_classifier(each) else "regression"
    kind = type_of_target(y)
    many = y.dtype.kind in "iuf" and kind == "multiclass" and len(np.unique(y)) ** 2 > len(y)
    return "classification" if kind in ("binary", "multiclass") and not many else "regression"


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """Return the end of an error sentence that suggests the known name nearest to the given one; empty if none is."""
    near = get_close_matches(str(name), known, 1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _by_name(name: Any, classification: bool) -> Any:
    if name not in METHODS:
        hint = did_you_mean(name, METHODS)
        raise ValueError(f"The methods of compare must be among {', '.join(METHODS)}. Got {name!r} instead.{hint}")
    if not classification and not METHODS[name][2]:
        able = ", ".join(key for key, (_, _, both) in METHODS.items() if both)
        raise ValueError(f"The methods of compare must be among {able} for targets that are numbers. Got {name!r}.")
    return METHODS[name][1](classification)


def _prepared(name: str, estimator: Any, stack_only: bool, params: dict, grid: dict, inner_cv: int) -> Any:
    if not isinstance(estimator, BaseEstimator):
        raise ValueError(
            f"The methods of compare must be estimators or names. Got {type(estimator).__name__} for {name!r} instead."
        )
    estimator = clone(estimator)
    owners = [key for key in estimator.get_params() if key.split("__")[-1] == "kernels"]
    for key in owners:
        kernels = estimator.get_params()[key]
        if isinstance(kernels, str) and kernels == "rbf":
            estimator.set_params(**{key: "precomputed"})
    if stack_only and not takes_stack(estimator):
        raise ValueError(
            f"With a KernelStack every method of compare must take kernels='precomputed'. "
            f"Got {estimator!r} for {name!r}."
        )
    own = {_owner(estimator, key): value for key, value in params.items()}
    estimator.set_params(**{key: value for key, value in own.items() if key})
    axes = {_owner(estimator, key): list(values) for key, values in grid.items()}
    axes = {key: values for key, values in axes.items() if key}
    if axes:
        from sklearn.model_selection import GridSearchCV

        return GridSearchCV(estimator, axes, cv=inner_cv, error_score="raise")
    return estimator


def _owner(estimator: Any, name: str) -> str | None:
    """Return the name of the parameter in the estimator or in its inner estimator; None if neither has it."""
    known = estimator.get_params()
    return next((key for key in (name, f"estimator__{name}") if key in known), None)


def takes_stack(estimator: Any) -> bool:
    """Whether the estimator, or one inside it, is fitted on a stack of kernels."""
    return any(
        key.split("__")[-1] == "kernels" and isinstance(value, str) and value == "precomputed"
        for key, value in estimator.get_params().items()
    )


def learned(estimator: Any) -> dict[str, Any]:
    """Return number of active kernels, certified gap and status of a fitted method; None for each it does not have.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> learned(SimpleNamespace(weights_=np.array([[0.0, 1.0], [0.0, 0.5]]), duality_gap_=[1e-4, 2e-3]))
    {'active': 1, 'gap': 0.002, 'status': None}
    """
    while hasattr(estimator, "best_estimator_"):
        estimator = estimator.best_estimator_
    if hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    weights, gap, status = (getattr(estimator, name, None) for name in ("weights_", "duality_gap_", "status_"))
    found: dict[str, Any] = {"active": None, "gap": None, "status": None}
    if weights is not None:
        found["active"] = int(np.count_nonzero(np.atleast_2d(weights).any(axis=0)))
    if gap is not None:
        found["gap"] = float(np.max(gap))
    if status is not None:
        states = [status] if isinstance(status, str) else list(status)
        found["status"] = next((each for each in states if each != "converged"), "converged")
    return found
