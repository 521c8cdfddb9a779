"""Kernels on disk: a stack in a memory-mapped temporary file, read like one in memory.

The operating system keeps in memory the pages that are in use. The file has no other name and goes with the
object.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Sequence

import numpy as np

from multikernel.gram.dense import AffineForm, DenseGram


def memmap_stack(p: int, n: int, dtype: np.dtype | type, directory: str | None = None) -> np.memmap:
    """Reserve a (p, n, n) array on disk, to be written block by block.

    Parameters
    ----------
    p, n : int
        Numbers of kernels and samples.
    dtype : dtype
        Float32 or float64.
    directory : str, optional
        Where; by default the system's folder for temporary files (the ``TMPDIR`` variable).

    Examples
    --------
    >>> stack = memmap_stack(2, 3, "float32")
    >>> stack.shape, stack.dtype
    ((2, 3, 3), dtype('float32'))
    """
    return map_temporary((p, n, n), dtype, directory)


def map_temporary(shape: tuple[int, ...], dtype: np.dtype | type, directory: str | None = None) -> np.memmap:
    """Reserve an array of this shape on disk, in a temporary file; see `memmap_stack`."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    folder = directory or tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if size > free:
        raise MemoryError(
            f"The kernels need {size / 1e9:.3g} GB on disk, and the folder {folder!r} has "
            f"{free / 1e9:.3g} GB free: let the variable TMPDIR name a folder with more room, "
            f"or use gram='lazy'."
        )
    # an anonymous file: deleted by the system when it is closed, also after a crash
    with tempfile.TemporaryFile(dir=folder, prefix="multikernel-") as file:
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, max(size, 1))
            return np.memmap(file, dtype=dtype, mode="w+", shape=shape)
        except OSError as error:
            # another process was faster, or this one may not map so much
            raise MemoryError(
                f"The kernels need {size / 1e9:.3g} GB on disk and in the address space of the process, and the folder "
                f"{folder!r} or the limits of the process do not allow that ({error.strerror}): use gram='lazy'."
            ) from error


class MemmapGram(DenseGram):
    """p matrices in a temporary file.

    Parameters
    ----------
    kernels : memmap of shape (p, n, n), or sequence of arrays of shape (n, n)
        What `memmap_stack` reserved, filled; or its matrices, some of them replaced by others in memory.
    form : AffineForm, optional
        Normalisation of each kernel.
    n_threads : int
        Threads for passes over the stack.
    """

    kind = "memmap"

    def __init__(
        self, kernels: np.ndarray | Sequence[np.ndarray], form: AffineForm | None = None, *, n_threads: int = 1
    ) -> None:
        super().__init__(kernels, form, n_threads=n_threads, owned=True)
