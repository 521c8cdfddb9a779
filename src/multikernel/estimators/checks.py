"""What a kernel matrix must be, and the sentence that names the kernel that is not.

A precomputed stack is read once by the inspection and once by the search for negative eigenvalues.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from multikernel.gram.definite import probe_definiteness, smallest_eigenvalue_ratio
from multikernel.gram.inspect import Inspection, inspect_kernels
from multikernel.gram.sound import listed, require_sound


def examine(
    kernels: np.ndarray | Sequence[np.ndarray], names: Sequence[str], psd: str, n_threads: int
) -> tuple[Inspection, np.ndarray]:
    """Inspect matrices that nobody vouches for.

    Parameters
    ----------
    kernels : array (p, n, n) or sequence of arrays (n, n)
        The matrices.
    names : sequence of str
        Their names.
    psd : {"error", "clip", "shift", "flip"}
        What to do about an indefinite one; unless it is an error the caller repairs it.
    n_threads : int
        Threads.

    Returns
    -------
    inspection : Inspection
        Row sums, diagonals and more.
    indefinite : bool array (p,)
        Which kernels are proved to be indefinite.
    """
    found = inspect_kernels(kernels, n_threads=n_threads)
    require_sound(found, names)
    indefinite = found.indefinite
    if not (psd == "error" and indefinite.any()):
        indefinite = indefinite | probe_definiteness(kernels, found, n_threads=n_threads).indefinite
    if psd == "error" and indefinite.any():
        k = int(np.argmax(indefinite))
        raise indefinite_error(names, indefinite, smallest_eigenvalue_ratio(kernels[k]))
    return found, indefinite


def indefinite_error(names: Sequence[str], which: np.ndarray, ratio: float) -> ValueError:
    """Return the error about indefinite kernels; ``ratio`` is lambda_min / lambda_max of the first one."""
    return ValueError(
        f"The {listed(names, which)} must be positive semidefinite. Got a smallest eigenvalue of "
        f"{ratio:.3g} times the largest instead: psd='clip', 'shift' or 'flip' repairs it."
    )


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
