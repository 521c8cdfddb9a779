"""Kernels of a fit on its training samples: computed from samples, or read from a stack."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from multikernel.gram.stack import KernelStack
from multikernel.training.computed import Shared, prepare_computed
from multikernel.training.core import Prepared, Settings
from multikernel.training.stacked import prepare_stack


def prepare(
    kernels: Any, X: Any, weight: np.ndarray | None, settings: Settings, shared: Shared | None = None
) -> Prepared:
    """Fit the kernels and evaluate them on the training samples.

    Parameters
    ----------
    kernels : "rbf", kernel or list
        What the user wrote; not read where X is a stack.
    X : samples or KernelStack
        Valid training samples.
    weight : ndarray of shape (n,) or None
        Positive sample weights.
    settings : Settings
        Normalisation, repairs, storage, memory, threads.
    shared : Shared, optional
        What the folds of a search know beforehand.
    """
    if weight is not None and np.all(weight == weight[0]):
        weight = None
    if isinstance(X, KernelStack):
        prepared = prepare_stack(X, weight, settings, shared is not None and shared.sound)
    else:
        prepared = prepare_computed(kernels, X, weight, settings, shared)
    if prepared.constant.any():
        warn_constant(prepared.names, prepared.constant)
    return prepared


def warn_constant(names: Sequence[str], constant: np.ndarray) -> None:
    """Warn of kernels that cannot tell samples apart."""
    listed = [repr(name) for name, flat in zip(names, constant, strict=True) if flat]
    if not listed:
        return
    shown = ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")
    are = "is" if len(listed) == 1 else "are"
    warnings.warn(
        f"The kernel{'s' if len(listed) > 1 else ''} {shown} {are} constant on the training samples, so that "
        f"nothing can be learned from {'it' if len(listed) == 1 else 'them'}.",
        UserWarning,
        stacklevel=4,
    )
