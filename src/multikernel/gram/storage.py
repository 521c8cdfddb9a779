"""Where the kernels of a problem are kept, and in which precision, from the memory there is.

    dense    (p + 1) n^2 numbers in memory: every kernel and the combined one
    memmap   n^2 numbers in memory, p n^2 on disk
    lazy     n^2 numbers in memory, rows of the kernels in what is left

The n^2 numbers are the rows of the combined kernel; only those of support vectors are ever written.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from numbers import Real

import numpy as np

KINDS = ("dense", "lazy", "memmap", "torch", "dask", "features")

# computed kernels are kept in float64 up to this size, in float32 above it: digits against memory
SINGLE_ABOVE = 256 * 2**20
_INFO = np.finfo(np.float32)
# kernels whose largest entry is between these have entries, and their last digits, in the range of float32
SINGLE_RANGE = float(_INFO.tiny / _INFO.eps), float(_INFO.max) * float(_INFO.eps)

# kB is a thousand bytes, KiB is 1024 bytes, and so on
_UNITS = {name + i: base**k for i, base in (("", 1000), ("i", 1024)) for k, name in enumerate(["", *"kmgt"])}


@dataclass(frozen=True)
class TorchStorage:
    """Kernels on a device of PyTorch; ``gram="torch"`` means ``gram=TorchStorage()``.

    Attributes
    ----------
    device : str
        "cuda", "cuda:1", "cpu" or another device; "auto" is the GPU where there is one, else the processor.
    """

    device: str = "auto"


def storage_dtype(p: int, n: int, sizes: np.ndarray | float = 1.0) -> np.dtype:
    """Return the precision in which p computed kernels on n samples are kept, ``sizes`` the largest k(x, x) of each.

    Examples
    --------
    >>> storage_dtype(10, 1000), storage_dtype(10, 5000)
    (dtype('float64'), dtype('float32'))
    """
    smallest, largest = SINGLE_RANGE
    in_range = np.all((sizes == 0.0) | ((smallest < sizes) & (sizes < largest)))
    return np.dtype(np.float32 if p * n * n * 8 > SINGLE_ABOVE and in_range else np.float64)


def trust_of(dtype: np.dtype) -> float:
    """Part of the largest entry to which entries are trusted: six digits of float32, twelve of float64.

    A principal block of m samples whose smallest eigenvalue is below ``-m * trust * largest`` cannot be
    explained by rounding of its entries.
    """
    return 1e-6 if np.dtype(dtype).itemsize < 8 else 1e-12


def parse_bytes(limit: float | str) -> float:
    """Return a number of bytes given as a number or as text.

    Examples
    --------
    >>> parse_bytes("1.5 GB"), parse_bytes("2KiB"), parse_bytes(100)
    (1500000000.0, 2048.0, 100.0)
    """
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([kmgt]?i?)b?\s*", limit.lower())
        if match and match[2] in _UNITS and match[1].count(".") < 2 and match[1].strip(".") and float(match[1]) > 0:
            return float(match[1]) * _UNITS[match[2]]
    elif isinstance(limit, Real) and not isinstance(limit, (bool, np.bool_)) and limit > 0:
        return float(limit)
    raise ValueError(
        f"The 'memory_limit' parameter must be None, a positive number of bytes or a text such as '2GB'. "
        f"Got {limit!r} instead."
    )


# where a container says how much memory it may take and has taken, in its two versions
_OF_A_CONTAINER = (
    "memory.max", "memory.current", "memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes",
)  # fmt: skip


def default_limit(folder: str = "/sys/fs/cgroup", system: str = "/proc/meminfo") -> float:
    """Return half of the bytes that this process may still take, as far as the system and its container tell."""
    said = []
    for name in (system, *_OF_A_CONTAINER):
        try:
            with open(os.path.join(folder, name), "rb", buffering=0) as file:
                said.append(file.read().decode())
        except OSError:
            said.append("")
    if os.path.exists(system) and (found := re.search(r"MemAvailable:\s+(\d+) kB", said[0])):
        # Linux tells in a twentieth of the time that psutil takes, which shows in small fits
        free = 1024.0 * int(found[1])
    else:
        import psutil

        free = float(psutil.virtual_memory().available)
    for limit, used in (said[1:3], said[3:]):
        try:
            room = float(limit) - float(used)
        except ValueError:
            continue
        return 0.5 * min(free, max(0.0, room))
    return 0.5 * free


def choose_storage(
    p: int,
    n: int,
    itemsize: int,
    memory_limit: float | str | None = None,
    requested: str = "auto",
    stored: bool = False,
) -> str:
    """Choose the storage of p kernels on n samples.

    Parameters
    ----------
    p, n, itemsize : int
        Numbers of kernels and samples, bytes of an entry.
    memory_limit : float, str or None
        Bytes that may be used; None for half of the free memory.
    requested : {"auto", "dense", "lazy", "memmap"}
        What the user asked for; "auto" is dense where that fits, otherwise lazy. Explicit features need no such
        storage, and are chosen before.
    stored : bool
        Whether the kernels lie in memory already, and cost nothing more as they are.

    Returns
    -------
    str
        "dense", "lazy" or "memmap".

    Examples
    --------
    >>> choose_storage(10, 1000, 8, "1GB"), choose_storage(10, 10_000, 4, "1GB")
    ('dense', 'lazy')
    """
    limit = default_limit() if memory_limit is None else parse_bytes(memory_limit)
    rows = n * n * itemsize
    dense = rows if stored else rows * (p + 1)
    if requested == "auto":
        requested = "dense" if dense <= limit else "lazy"
    if requested == "features":
        raise ValueError(
            "gram='features' needs kernels that are computed from samples by MKLClassifier or MKLRegressor."
        )
    if rows <= limit and (requested != "dense" or dense <= limit):
        return requested
    has = f"the memory limit is {size_text(limit)}" + (" (half of the free memory)" if memory_limit is None else "")
    if rows > limit:
        raise MemoryError(
            f"The combined kernel on {n} samples needs up to {size_text(rows)}, and {has}: "
            f"use fewer samples, or a larger 'memory_limit' if few of them will be support vectors."
        )
    raise MemoryError(
        f"{p} kernels on {n} samples need {size_text(dense)} with gram='dense', and {has}: "
        f"use gram='lazy' or gram='memmap', or a larger 'memory_limit'."
    )


def row_budget(n: int, itemsize: int, memory_limit: float | str | None = None) -> float:
    """Return the bytes that are left for kernel rows beside the combined kernel."""
    limit = default_limit() if memory_limit is None else parse_bytes(memory_limit)
    return max(0.0, limit - n * n * itemsize)


def size_text(size: float) -> str:
    """Return a number of bytes in words."""
    units = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
    return next(f"{size / by:.3g} {unit}" for unit, by in units if size >= by or by == 1e3)
