"""Kernels of a fit, computed from samples or read from a stack."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np


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
