"""What samples, targets and parameters must be: everything that enters is checked here, once, in one sentence each."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, _num_samples, validate_data

from multikernel.estimators.input_errors import naming_gaps, require_numbers
from multikernel.estimators.partitioned import check_partitions
from multikernel.estimators.view_input import check_stack, check_views
from multikernel.gram.stack import KernelStack
from multikernel.gram.storage import KINDS, TorchStorage, parse_bytes
from multikernel.kernels.bank import take_rows
from multikernel.kernels.class_kernels import OutputKernels
from multikernel.kernels.inputs import is_frame, is_numeric
from multikernel.kernels.normalize import STEPS
from multikernel.kernels.sequences.samples import is_text
from multikernel.kernels.table import as_samples
from multikernel.kernels.views.groups import as_pandas
from multikernel.kernels.views.reading import is_views
from multikernel.kernels.views.views import Views
from multikernel.losses import Loss, Squared
from multikernel.solvers import Solver, solver_names


@dataclass(frozen=True)
class Samples:
    """Valid training samples, those of weight zero left out.

    Attributes
    ----------
    X : samples or KernelStack
        What kernels are made of.
    y : ndarray
        Their targets, as the caller gave them; empty without targets.
    weight : ndarray of shape (n,) or None
        Positive weights, None for ones.
    kept : ndarray of int
        Which of the caller's samples they are.
    classes, codes : ndarrays
        The classes of a classification, and the position of each sample's class among them; else empty.
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    kept: np.ndarray
    classes: np.ndarray
    codes: np.ndarray

    @property
    def ones(self) -> np.ndarray:
        """The weights, ones where there are none."""
        return np.ones(len(self.kept)) if self.weight is None else self.weight


def kept_samples(
    X: Any, y: np.ndarray | None, weight: Any, rows: np.ndarray | None = None, classifier: str = ""
) -> Samples:
    """Return the samples ``rows`` (all by default) that have a positive weight; ``weight`` may be None.

    With the name of a ``classifier`` they come with their classes, of which there must be two.
    """
    kept = np.arange(_num_samples(X)) if rows is None else rows
    if weight is not None:
        weight = check_weight(X, np.asarray(weight) if hasattr(weight, "__dask_graph__") else weight)
        kept = kept[weight[kept] > 0]
        weight = weight[kept]
    whole = len(kept) == _num_samples(X) and (rows is None or np.array_equal(kept, np.arange(len(kept))))
    own = np.zeros(0) if y is None else y if whole else y[kept]
    classes, codes = np.unique(own, return_inverse=True) if classifier else (np.zeros(0), np.zeros(0, np.intp))
    if classifier and len(classes) < 2:
        raise ValueError(
            f"{classifier} needs samples of at least 2 classes. Got one class only: {classes.tolist()[0]!r}."
        )
    return Samples(X if whole else take_rows(X, kept), own, weight, kept, classes, codes)


def check_classes(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Samples:
    """Return valid samples of at least two classes."""
    X = check_samples(estimator, X, reset=True)
    # targets and weights in partitions come to the client: a number for each sample
    y = np.asarray(y) if hasattr(y, "__dask_graph__") else y
    y = check_targets(estimator, X, y)
    samples = kept_samples(X, y, sample_weight, classifier=type(estimator).__name__)
    if y.dtype.kind not in "biU" or 2 * len(samples.classes) > len(y):
        # integers and texts are classes in any case: only very many of them are worth a warning
        check_classification_targets(y)
    return samples


def check_regression(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Samples:
    """Return valid samples with numbers as their targets."""
    X = check_samples(estimator, X, reset=True)
    y = np.asarray(y) if hasattr(y, "__dask_graph__") else y
    return kept_samples(X, check_numbers(estimator, X, y), sample_weight)


def check_unlabelled(estimator: Any, X: Any, sample_weight: Any) -> Samples:
    """Return valid samples without targets."""
    X = check_samples(estimator, X, reset=True)
    return kept_samples(X, None, sample_weight)


def check_samples(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return valid samples: a float64 array, a CSR matrix, a data frame, `Sequences`, a `Table` or a stack.

    Data frames stay what they are in fit, where kernels may name their columns; later those of numbers
    become arrays, and others tables.

    Sets: ``n_features_in_`` and ``feature_names_in_`` of the estimator when ``reset``.
    """
    owner = type(estimator).__name__
    if estimator._precomputed:
        return check_stack(estimator, X, reset)
    if isinstance(X, KernelStack):
        raise ValueError(
            f"The 'kernels' parameter of {owner} must be 'precomputed' for a KernelStack. "
            f"Got {estimator.kernels!r} instead."
        )
    auto = isinstance(estimator.kernels, str) and estimator.kernels == "auto"
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf" and not auto:
        try:
            return validate_data(estimator, X, reset=reset, dtype=np.float64)
        except ValueError as error:
            raise naming_gaps(estimator, X, error) from None
    if auto or isinstance(X, Views) or is_views(X):
        return check_views(estimator, X, reset, auto)
    if hasattr(X, "__dask_graph__"):
        return check_partitions(estimator, X)
    if is_frame(X):
        X = as_pandas(X)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1 and is_text(X[:, 0]):
        X = X[:, 0]
    if is_text(X):
        return as_samples(X)
    if is_frame(X) and not is_numeric(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if _num_samples(X) < 1:
            raise ValueError(f"{owner} needs at least one sample. Got a data frame without rows.")
        return X if reset else as_samples(X)
    try:
        checked = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=np.float64)
    except ValueError as error:
        raise naming_gaps(estimator, X, error) from None
    return X if reset and is_frame(X) else checked


def check_targets(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """Return the targets as a 1-D array, one per sample."""
    if y is not None:
        y = y if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biufU" else column_or_1d(y, warn=True)
        check_consistent_length(X, y)
    return check_labels(type(estimator).__name__, y, _num_samples(X))


def check_vector(values: Any, n: int, what: str, test: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return n finite numbers in float64, or raise one sentence about what they must be and what they are.

    Examples
    --------
    >>> check_vector([1, 2], 2, "The weights must be 2 positive numbers", lambda w: w > 0)
    array([1., 2.])
    >>> check_vector([1, -2], 2, "The weights must be 2 positive numbers", lambda w: w > 0)
    Traceback (most recent call last):
        ...
    ValueError: The weights must be 2 positive numbers. Got -2 instead.
    """
    try:
        vector = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what}. Got {type(values).__name__} without numbers instead.") from None
    if vector.shape != (n,):
        raise ValueError(f"{what}. Got {f'shape {vector.shape}' if vector.ndim else repr(values)} instead.")
    wrong = ~(np.isfinite(vector) & test(vector))
    if wrong.any():
        raise ValueError(f"{what}. Got {vector[wrong][0]:g} instead.")
    return vector


def check_labels(owner: str, y: Any, n: int) -> np.ndarray:
    """Return targets, one for each of n samples, as an array without gaps and of one kind."""
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    y = np.asarray(y)
    if y.ndim < 1 or len(y) != n:
        raise ValueError(f"y of {owner} must hold one target for each of {n} samples. Got shape {y.shape} instead.")
    # texts and other things have no order
    if y.dtype.kind == "O" and len({isinstance(value, str) for value in y.flat}) > 1:
        other = next(value for value in y.flat if not isinstance(value, str))
        raise ValueError(f"y of {owner} must hold targets of one kind. Got texts and {other!r}.")
    assert_all_finite(y, input_name="y")
    return y


def check_numbers(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """Return the targets of a regression in float64: 1-D for one target, else one column for each."""
    require_numbers(type(estimator).__name__, y)
    if y is None or getattr(y := np.asarray(y), "ndim", 1) < 2 or y.shape[1] < 2:
        y = _check_y(check_targets(estimator, X, y), y_numeric=True, estimator=estimator)
        return y.astype(np.float64)
    y = check_array(y, dtype=np.float64, input_name="y")
    check_consistent_length(X, y)
    return y


def check_weight(X: Any, sample_weight: Any) -> np.ndarray:
    """Return non-negative sample weights."""
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    # scikit-learn looks for these in arrays only
    if not np.isfinite(weight).all():
        raise ValueError(f"The sample weights must be finite numbers. Got {sample_weight!r} instead.")
    if not weight.any():
        raise ValueError("The sample weights must not all be zero. Got only zeros.")
    return weight


@dataclass(frozen=True)
class Rule:
    """What a parameter must be.

    Attributes
    ----------
    text : str
        The same in words, for error sentences.
    kinds : tuple of type
        Types of which a value may be, True and False apart: they are no numbers.
    low, high : float
        Bounds of a number; ``open_low`` and ``open_high`` say that the bound itself is excluded.
    excluded : float or None
        A number within the bounds that a value must not be.
    words : tuple of str
        Texts that a value may be.
    none : bool
        Whether None will do.
    check : callable or None
        Raises ValueError about a value that will not do.
    """

    text: str
    kinds: tuple[type, ...] = ()
    low: float = -np.inf
    high: float = np.inf
    open_low: bool = False
    open_high: bool = False
    excluded: float | None = None
    words: tuple[str, ...] = ()
    none: bool = False
    check: Callable[[Any], Any] | None = None

    def allows(self, value: Any) -> bool:
        """Whether a value is what the parameter must be."""
        if value is None or isinstance(value, str):
            return self.none if value is None else value in self.words or self._passes(value)
        if isinstance(value, (bool, np.bool_)):
            return bool in self.kinds
        if not isinstance(value, self.kinds):
            return self._passes(value)
        if not isinstance(value, Real):
            return True
        number = float(value)
        if number == self.excluded:
            return False
        above = number > self.low if self.open_low else number >= self.low
        return above and (number < self.high if self.open_high else number <= self.high)

    def _passes(self, value: Any) -> bool:
        if self.check is None:
            return False
        try:
            self.check(value)
        except ValueError:
            return False
        return True


def one_of(*words: str) -> Rule:
    """Return the rule that a parameter be one of these words."""
    listed = [repr(word) for word in words]
    return Rule(listed[0] if len(words) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}", words=words)


def _storage(*words: str) -> Rule:
    """Return the rule that a parameter be the name of a storage, or one with settings."""
    return replace(one_of(*words), text=f"{one_of(*words).text}, or a TorchStorage", kinds=(TorchStorage,))


def require_that(right: bool) -> None:
    """Raise where a value is not what a rule says; `check_parameters` has the sentence."""
    if not right:
        raise ValueError


_POSITIVE = Rule("a positive number", (Real,), 0.0, open_low=True, open_high=True)
_COUNT = Rule("a positive integer", (Integral,), 1.0)
_TRUTH = Rule("True or False", (bool,))

RULES: dict[str, Rule] = {
    "reg": _POSITIVE,
    "n_neighbors": _COUNT,
    "norm": Rule("a number of at least 1, or infinity", (Real,), 1.0),
    "C": _POSITIVE,
    "loss": one_of("hinge"),
    "epsilon": Rule("a non-negative number", (Real,), 0.0, open_high=True),
    "gamma0": Rule("'max', a number or -inf", (Real,), open_high=True, words=("max",)),
    "gamma0_fraction": Rule("None or a number from 0 to 1", (Real,), 0.0, 1.0, none=True),
    "nu": Rule("a number above 0 and at most 1", (Real,), 0.0, 1.0, open_low=True),
    "multiclass": one_of("joint", "ovr", "ovo"),
    "output_kernels": Rule(
        "None, a list of matrices or kernels on the classes, or OutputKernels",
        (list, tuple, OutputKernels),
        none=True,
        check=lambda value: require_that(np.ndim(value) == 3),
    ),
    "fit_intercept": _TRUTH,
    "baselines": _TRUTH,
    "probability": _TRUTH,
    "normalize": Rule(
        "None, 'variance', 'cosine', 'center', 'trace' or a list of these",
        words=STEPS,
        none=True,
        check=lambda value: require_that(
            isinstance(value, (list, tuple)) and all(isinstance(step, str) and step in STEPS for step in value)
        ),
    ),
    "psd": one_of("error", "clip", "shift", "flip"),
    "solver": Rule(
        f"one of {', '.join(repr(name) for name in solver_names())}", (Solver,), words=tuple(solver_names())
    ),
    "tol": _POSITIVE,
    "max_iter": _COUNT,
    "class_weight": Rule(
        "None, 'balanced' or a dict from classes to weights", (Mapping,), words=("balanced",), none=True
    ),
    "gram": _storage("auto", *(kind for kind in KINDS if kind != "features")),
    "memory_limit": Rule("None, a positive number of bytes or a text such as '2GB'", none=True, check=parse_bytes),
    "verbose": Rule("a non-negative integer", (Integral, bool), 0.0),
    "callback": Rule("None or a callable", (Callable,), none=True),  # type: ignore[arg-type]
    "checkpoint": Rule(
        "None or the path of an existing folder",
        none=True,
        check=lambda value: require_that(isinstance(value, (str, os.PathLike)) and os.path.isdir(value)),
    ),
    "n_jobs": Rule("None or a non-zero integer", (Integral,), excluded=0.0, none=True),
}

# of the estimators that also work on explicit features
GRAM_OR_FEATURES = _storage("auto", *KINDS)


def check_parameters(estimator: Any, /, **own: Rule) -> None:
    """Raise one sentence about the first parameter that is not what it must be.

    Parameters
    ----------
    estimator : estimator
        Whose parameters.
    **own : Rule
        Rules of this estimator that take the place of the general ones.
    """
    params, owner, rules = estimator.get_params(deep=False), type(estimator).__name__, {**RULES, **own}
    for entry in params["kernels"] if isinstance(params["kernels"], list) else ():
        if isinstance(entry, tuple) and entry and entry[0] in params:
            raise ValueError(
                f"The names of the kernels must differ from the parameters of {owner}. "
                f"Got {entry[0]!r}, which is one of them."
            )
    if not estimator._on_device:
        rules["gram"] = one_of(*(word for word in rules["gram"].words if word not in ("torch", "dask")))
    for name, value in params.items():
        if name not in rules or rules[name].allows(value):
            continue
        near = get_close_matches(str(value), rules[name].words, 1) if name in ("solver", "normalize") else []
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"The '{name}' parameter of {owner} must be {rules[name].text}. Got {value!r} instead.{hint}")


def loss_rule(table: Mapping[str, Any], task: str) -> Rule:
    """Return the rule that a parameter be the name of a loss or a loss for a task."""
    # labels are numbers as well: the squared loss serves both
    return Rule(
        f"{one_of(*table).text}, or a Loss for {task}",
        words=tuple(table),
        check=lambda loss: require_that(isinstance(loss, Loss) and (loss.task == task or isinstance(loss, Squared))),
    )
