"""What the parameters of the estimators must be: one table, one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np

from multikernel.gram.choose import KINDS, parse_bytes
from multikernel.kernels.normalize import check_steps
from multikernel.kernels.outputs import OutputKernels
from multikernel.solvers import Solver, solver_names

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
    "normalize": (_passes(check_steps), "None, 'variance', 'cosine', 'center', 'trace' or a list of these"),
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
_WORDS = {"solver": solver_names, "normalize": lambda: ["variance", "cosine", "center", "trace"]}


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
