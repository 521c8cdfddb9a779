"""The sentences about kernel matrices that cannot be used: entries that are not finite, or not symmetric."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from multikernel.gram.inspect import Inspection


def require_sound(found: Inspection, names: Sequence[str]) -> None:
    """Raise unless all kernels that were inspected are finite and symmetric.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.inspect import inspect_kernels
    >>> require_sound(inspect_kernels([np.eye(3)]), ["identity"])
    """
    if not found.finite.all():
        which = listed(names, ~found.finite)
        raise ValueError(f"The {which} must hold finite numbers. Got NaN or infinity among its entries instead.")
    if found.asymmetric.any():
        k = int(np.argmax(found.asymmetric))
        raise ValueError(
            f"The {listed(names, found.asymmetric)} must be symmetric. Got entries that differ from their "
            f"mirror images by up to {found.asymmetry[k]:.3g}, where the largest is {found.largest[k]:.3g}."
        )


def listed(names: Sequence[str], which: np.ndarray) -> str:
    """kernel 'a', or kernel 'a' (and 2 more)."""
    chosen = [repr(name) for name, wanted in zip(names, which, strict=True) if wanted]
    return f"kernel {chosen[0]}" + (f" (and {len(chosen) - 1} more)" if len(chosen) > 1 else "")
