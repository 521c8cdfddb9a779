"""Checks of parameters, and balanced labels, for the generators of data."""

from __future__ import annotations

from typing import Any

import numpy as np


def balanced_labels(n_samples: int, n_classes: int, rng) -> np.ndarray:
    """Classes of equal size (the first ones larger by one where it does not divide), in random order."""
    return rng.permutation(np.arange(n_samples) % n_classes)


def check_integer(function: str, parameter: str, value: Any, least: int, most: float = np.inf) -> None:
    """Refuse anything but an integer in [least, most]."""
    integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not integer or not least <= value <= most:
        bound = f"at least {least}" if np.isinf(most) else f"from {least} to {most}"
        raise ValueError(
            f"The '{parameter}' parameter of {function} must be an integer {bound}. Got {value!r} instead."
        )


def check_real(function: str, parameter: str, value: Any, least: float = 0.0, below: float = np.inf) -> None:
    """Refuse anything but a finite number in [least, below)."""
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not real or not np.isfinite(value) or not least <= value < below:
        kind = "finite number" if np.isinf(least) else "non-negative number"
        bound = "" if np.isinf(below) else f" below {below:g}"
        raise ValueError(f"The '{parameter}' parameter of {function} must be a {kind}{bound}. Got {value!r} instead.")
