"""What a kernel matrix must be, and the sentence that names the kernel that is not.

A precomputed stack is read once by the inspection and once by the search for negative eigenvalues.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from multikernel.gram.base import Gram
from multikernel.gram.definite import probe_definiteness, smallest_eigenvalue_ratio
from multikernel.gram.dense import DenseGram
from multikernel.gram.inspect import Inspection, inspect_kernels
from multikernel.gram.stack import KernelStack, stack_kernels
from multikernel.threads import resolve_threads


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


def examine(
    kernels: np.ndarray | Sequence[np.ndarray], names: Sequence[str], psd: str, n_threads: int, kind: str = "dense"
) -> tuple[Inspection, np.ndarray]:
    """Inspect matrices that are not known to be finite, symmetric and positive semidefinite.

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
    kind : str
        How the caller keeps kernels, for the error.

    Returns
    -------
    inspection : Inspection
        Row sums, diagonals and more.
    indefinite : bool array (p,)
        Which kernels are proved to be indefinite.
    """
    found = inspect_kernels(kernels, n_threads=n_threads)
    require_sound(found, names)
    # of a positive semidefinite matrix only zero itself has a diagonal of zeros
    distances = ~found.diagonal.any(axis=1) & (found.largest > 0)
    if distances.any():
        raise ValueError(
            f"The {listed(names, distances)} must hold similarities. Got a diagonal of zeros, which looks like a "
            "matrix of distances: a kernel of distances D is np.exp(-(D / np.median(D)) ** 2)."
        )
    indefinite = found.indefinite
    if not (psd == "error" and indefinite.any()):
        indefinite = indefinite | probe_definiteness(kernels, found, n_threads=n_threads).indefinite
    if psd == "error" and indefinite.any():
        k = int(np.argmax(indefinite))
        raise indefinite_error(names, indefinite, smallest_eigenvalue_ratio(kernels[k]), kind)
    return found, indefinite


# kernels are repaired as a whole, in the memory of the host or in a file there
WHERE_REPAIRED = "gram='dense' or 'memmap', kernels that are given being arrays of NumPy"


def indefinite_error(names: Sequence[str], which: np.ndarray, ratio: float, kind: str) -> ValueError:
    """Return the error about indefinite kernels; ``ratio`` is lambda_min / lambda_max of the first one."""
    where = "" if kind in ("dense", "memmap") else f" with {WHERE_REPAIRED}"
    return ValueError(
        f"The {listed(names, which)} must be positive semidefinite. Got a smallest eigenvalue of "
        f"{ratio:.3g} times the largest instead: psd='clip', 'shift' or 'flip' repairs it{where}."
    )


def as_gram(stack: Any) -> Gram:
    """Return a Gram as it is, and matrices as a Gram that reads them where they lie.

    Examples
    --------
    >>> import numpy as np
    >>> as_gram([np.eye(3), np.ones((3, 3))]).n_kernels
    2
    """
    if isinstance(stack, Gram):
        return stack
    stack = stack if isinstance(stack, KernelStack) else stack_kernels(stack)
    n_threads = resolve_threads(None)
    kernels = stack.train_kernels()
    require_sound(inspect_kernels(kernels, n_threads=n_threads), stack.names)
    # a symmetric matrix may be read by its columns
    return DenseGram([K if K.strides[1] == K.itemsize else K.T for K in kernels], n_threads=n_threads)
