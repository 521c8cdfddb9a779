"""What samples, targets and parameters must be: everything that enters is checked here, once, in one sentence each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, _num_samples, validate_data

from multikernel.gram.stack import KernelStack, stack_kernels
from multikernel.gram.storage import KINDS, parse_bytes
from multikernel.kernels.bank import take_rows
from multikernel.kernels.class_kernels import OutputKernels
from multikernel.kernels.columns import as_samples, is_frame, is_numeric
from multikernel.kernels.normalize import STEPS
from multikernel.kernels.sequences.samples import is_text
from multikernel.losses import Loss, Squared
from multikernel.solvers import Solver, solver_names


@dataclass(frozen=True)
class Samples:
    """Valid training samples, those of weight zero left out.

    Attributes
    ----------
    X : samples or KernelStack
        What kernels are made of.
    y : ndarray or None
        Their targets, as the caller gave them.
    weight : ndarray of shape (n,) or None
        Positive weights, None for ones.
    kept : ndarray of int
        Which of the caller's samples they are.
    classes, codes : ndarrays or None
        The classes of a classification, and the position of each sample's class among them.
    """

    X: Any
    y: np.ndarray | None
    weight: np.ndarray | None
    kept: np.ndarray
    classes: np.ndarray | None = None
    codes: np.ndarray | None = None

    @property
    def ones(self) -> np.ndarray:
        """The weights, ones where there are none."""
        return np.ones(len(self.kept)) if self.weight is None else self.weight


def kept_samples(X: Any, y: np.ndarray | None, weight: np.ndarray | None, rows: np.ndarray | None = None) -> Samples:
    """Return the samples ``rows`` (all by default) that have a positive weight."""
    kept = np.arange(_num_samples(X)) if rows is None else rows
    if weight is not None:
        kept = kept[weight[kept] > 0]
        weight = weight[kept]
    whole = len(kept) == _num_samples(X) and (rows is None or np.array_equal(kept, np.arange(len(kept))))
    return Samples(X if whole else take_rows(X, kept), None if y is None else y[kept], weight, kept)


def with_classes(owner: str, samples: Samples) -> Samples:
    """Return the samples with their classes, or raise where there are fewer than two."""
    classes, codes = np.unique(samples.y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"{owner} needs samples of at least 2 classes. Got one class only: {classes.tolist()[0]!r}.")
    return replace(samples, classes=classes, codes=codes)


def check_classes(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Samples:
    """Return valid samples of at least two classes."""
    X = check_samples(estimator, X, reset=True)
    y = check_targets(estimator, X, y)
    check_classification_targets(y)
    return with_classes(type(estimator).__name__, kept_samples(X, y, check_weight(X, sample_weight)))


def check_regression(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Samples:
    """Return valid samples with numbers as their targets."""
    X = check_samples(estimator, X, reset=True)
    return kept_samples(X, check_numbers(estimator, X, y), check_weight(X, sample_weight))


def check_unlabelled(estimator: Any, X: Any, sample_weight: Any) -> Samples:
    """Return valid samples without targets."""
    X = check_samples(estimator, X, reset=True)
    return kept_samples(X, None, check_weight(X, sample_weight))


def check_samples(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return valid samples: a float64 array, a CSR matrix, a data frame, `Sequences`, a `Table` or a stack.

    Data frames stay what they are in fit, where kernels may name their columns; later those of numbers
    become arrays, and others tables.

    Sets: ``n_features_in_`` and ``feature_names_in_`` of the estimator when ``reset``.
    """
    owner = type(estimator).__name__
    if estimator._precomputed:
        return _check_stack(estimator, X, reset)
    if isinstance(X, KernelStack):
        raise ValueError(
            f"The 'kernels' parameter of {owner} must be 'precomputed' for a KernelStack. "
            f"Got {estimator.kernels!r} instead."
        )
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        return validate_data(estimator, X, reset=reset, dtype=np.float64)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1 and is_text(X[:, 0]):
        X = X[:, 0]
    if is_text(X):
        return as_samples(X)
    if is_frame(X) and not is_numeric(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if _num_samples(X) < 1:
            raise ValueError(f"{owner} needs at least one sample. Got a data frame without rows.")
        return X if reset else as_samples(X)
    checked = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=np.float64)
    return X if reset and is_frame(X) else checked


def check_targets(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """Return the targets as a 1-D array, one per sample."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    y = column_or_1d(y, warn=True)
    require_one_kind(type(estimator).__name__, y)
    assert_all_finite(y, input_name="y")
    check_consistent_length(X, y)
    return y


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
    require_one_kind(owner, y)
    assert_all_finite(y, input_name="y")
    return y


def require_one_kind(owner: str, y: np.ndarray) -> None:
    """Raise one sentence where an array of objects holds texts and other things, which have no order."""
    if y.dtype.kind == "O" and len({isinstance(value, str) for value in y.flat}) > 1:
        other = next(value for value in y.flat if not isinstance(value, str))
        raise ValueError(f"y of {owner} must hold targets of one kind. Got texts and {other!r}.")


def check_numbers(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """Return the targets of a regression in float64: 1-D for one target, else one column for each."""
    if y is None or getattr(y := np.asarray(y), "ndim", 1) < 2 or y.shape[1] < 2:
        y = _check_y(check_targets(estimator, X, y), y_numeric=True, estimator=estimator)
        return y.astype(np.float64)
    y = check_array(y, dtype=np.float64, input_name="y")
    check_consistent_length(X, y)
    return y


def check_weight(X: Any, sample_weight: Any) -> np.ndarray | None:
    """Return non-negative sample weights, None for none."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("The sample weights must not all be zero. Got only zeros.")
    return weight


def _check_stack(estimator: Any, X: Any, reset: bool) -> KernelStack:
    if not isinstance(X, KernelStack):
        if not isinstance(X, np.ndarray) or X.ndim != 3 or (reset and X.shape[1] != X.shape[2]):
            shape = f"an array of shape {X.shape}" if isinstance(X, np.ndarray) else type(X).__name__
            raise ValueError(
                "With kernels='precomputed' X must be stack_kernels(...) of square matrices, or an array of "
                f"shape (n_kernels, n_rows, n_train). Got {shape} instead."
            )
        X = stack_kernels(X)
    if reset:
        estimator.n_features_in_ = X.shape[1]
    return X


PSD = ("error", "clip", "shift", "flip")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) and not np.isnan(float(value))


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def _passes(check: Callable) -> Callable[[Any], bool]:
    def passes(value: Any) -> bool:
        try:
            check(value)
        except ValueError:
            return False
        return True

    return passes


def one_of(*words: str) -> tuple[Callable[[Any], bool], str]:
    """Return the rule that a parameter be one of these words."""
    listed = [repr(word) for word in words]
    text = listed[0] if len(words) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"
    return lambda value: isinstance(value, str) and value in words, text


def _is_truth(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


# parameter: (test, what it must be)
RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "reg": (lambda v: _is_number(v) and 0 < v < np.inf, "a positive number"),
    "n_neighbors": (lambda v: _is_integer(v) and v >= 1, "a positive integer"),
    "norm": (lambda v: _is_number(v) and v >= 1, "a number of at least 1, or infinity"),
    "C": (lambda v: _is_number(v) and 0 < v < np.inf, "a positive number"),
    "loss": one_of("hinge"),
    "epsilon": (lambda v: _is_number(v) and 0 <= v < np.inf, "a non-negative number"),
    "gamma0": (
        lambda v: (_is_number(v) and v < np.inf) or (isinstance(v, str) and v == "max"),
        "'max', a number or -inf",
    ),
    "gamma0_fraction": (lambda v: v is None or (_is_number(v) and 0 <= v <= 1), "None or a number from 0 to 1"),
    "nu": (lambda v: _is_number(v) and 0 < v <= 1, "a number above 0 and at most 1"),
    "multiclass": one_of("joint", "ovr", "ovo"),
    "output_kernels": (
        lambda v: v is None or isinstance(v, (list, tuple, OutputKernels)) or np.ndim(v) == 3,
        "None, a list of matrices or kernels on the classes, or OutputKernels",
    ),
    "fit_intercept": (_is_truth, "True or False"),
    "normalize": (
        lambda v: v is None or all(isinstance(s, str) and s in STEPS for s in ([v] if isinstance(v, str) else v)),
        "None, 'variance', 'cosine', 'center', 'trace' or a list of these",
    ),
    "psd": one_of(*PSD),
    "solver": (
        lambda v: isinstance(v, Solver) or (isinstance(v, str) and v in solver_names()),
        f"one of {', '.join(repr(name) for name in solver_names())}",
    ),
    "tol": (lambda v: _is_number(v) and 0 < v < np.inf, "a positive number"),
    "max_iter": (lambda v: _is_integer(v) and v >= 1, "a positive integer"),
    "class_weight": (
        lambda v: v is None or isinstance(v, Mapping) or (isinstance(v, str) and v == "balanced"),
        "None, 'balanced' or a dict from classes to weights",
    ),
    "gram": one_of("auto", *(kind for kind in KINDS if kind != "features")),
    "memory_limit": (
        lambda v: v is None or _passes(parse_bytes)(v),
        "None, a positive number of bytes or a text such as '2GB'",
    ),
    "verbose": (lambda v: _is_truth(v) or (_is_integer(v) and v >= 0), "a non-negative integer"),
    "callback": (lambda v: v is None or callable(v), "None or a callable"),
    "n_jobs": (lambda v: v is None or (_is_integer(v) and v != 0), "None or a non-zero integer"),
}


# of the estimators that also work on explicit features
GRAM_OR_FEATURES = one_of("auto", *KINDS)


# words among which a near match is looked for
_WORDS = {"solver": solver_names, "normalize": lambda: STEPS}


def check_parameters(estimator: Any, /, **own: tuple[Callable[[Any], bool], str]) -> None:
    """Raise one sentence about the first parameter that is not what it must be.

    Parameters
    ----------
    estimator : estimator
        Whose parameters.
    **own : (test, what it must be)
        Rules of this estimator that take the place of the general ones.
    """
    rules = {**RULES, **own}
    params = estimator.get_params(deep=False)
    _check_kernel_names(estimator, params)
    owner = type(estimator).__name__
    for name, value in params.items():
        if name not in rules or rules[name][0](value):
            continue
        near = get_close_matches(str(value), _WORDS[name](), 1) if name in _WORDS else []
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"The '{name}' parameter of {owner} must be {rules[name][1]}. Got {value!r} instead.{hint}")


def _check_kernel_names(estimator: Any, own: dict[str, Any]) -> None:
    """Raise unless the names of (name, kernel, columns) entries can stand beside the parameters."""
    kernels = own["kernels"]
    for entry in kernels if isinstance(kernels, list) else ():
        if isinstance(entry, tuple) and entry and entry[0] in own:
            raise ValueError(
                f"The names of the kernels must differ from the parameters of {type(estimator).__name__}. "
                f"Got {entry[0]!r}, which is one of them."
            )


def loss_rule(table: Mapping[str, Any], task: str) -> tuple[Callable[[Any], bool], str]:
    """Return the test that a loss must pass, and what it must be in words."""
    is_name, names = one_of(*table)
    return (
        lambda value: is_name(value) or (isinstance(value, Loss) and _fits(value, task)),
        f"{names}, or a Loss for {task}",
    )


def _fits(loss: Loss, task: str) -> bool:
    # labels are numbers as well: the squared loss serves both
    return loss.task == task or isinstance(loss, Squared)
