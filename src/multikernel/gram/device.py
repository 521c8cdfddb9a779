"""Devices of PyTorch, and raw kernel values there: stored, or computed whenever they are read."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from multikernel.gram.storage import TorchStorage, default_limit, parse_bytes, size_text
from multikernel.threads import ROWS

try:
    import torch
except ImportError:  # without PyTorch only the sentence of `find_device` is needed
    torch = None

Tensor = Any


def find_device(storage: TorchStorage) -> Any:
    """Return the device asked for, or raise one sentence about what is missing."""
    if torch is None:
        raise ImportError("gram='torch' needs PyTorch. It is not installed: pip install 'multikernel[gpu]'.")
    name = storage.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    what = "The 'device' of TorchStorage must be 'auto', 'cpu', 'cuda' or another device of PyTorch with float64. "
    try:
        device = torch.device(name)
        if device.type == "mps":
            raise TypeError("no float64, whether or not this build of PyTorch knows the device")
        torch.zeros(1, dtype=torch.float64, device=device)
    except TypeError as error:
        raise ValueError(f"{what}Got {name!r}, which has no float64: use device='cpu'.") from error
    except (RuntimeError, AssertionError) as error:
        why = str(error).splitlines()[0].split(". ")[0]
        raise ValueError(f"{what}Got {name!r}, which cannot be used here ({why}).") from error
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    return device


def free_bytes(device: Any) -> float:
    """Return the bytes that are free on a device."""
    if device.type != "cuda":
        return default_limit()
    # what this process has reserved and does not use counts as free
    held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return 0.9 * torch.cuda.mem_get_info(device)[0] + held


def fits(p: int, n: int, itemsize: int, device: Any, memory_limit: float | str | None, given: bool = False) -> bool:
    """Whether p kernels on n samples are stored on the device, or only the combined one; raise where that is too large.

    Beside the combined kernel there is room for a factorisation of it. Kernels that are ``given`` are there already.
    """
    limit = free_bytes(device) if memory_limit is None else parse_bytes(memory_limit)
    matrix = float(n) * n * itemsize
    if 2 * matrix > limit:
        raise MemoryError(
            f"The combined kernel on {n} samples and its factor need up to {size_text(2 * matrix)} on {device}, where "
            f"the limit is {size_text(limit)}: use fewer samples, a larger 'memory_limit', or gram='lazy'."
        )
    return given or (p + 2) * matrix <= limit


@contextmanager
def room_for(what: str, nbytes: float, device: Any) -> Iterator[None]:
    """Turn the error of a device that is out of memory into one sentence."""
    try:
        yield
    except (torch.OutOfMemoryError, RuntimeError) as error:
        if not isinstance(error, torch.OutOfMemoryError) and "allocate memory" not in str(error):
            raise
        raise MemoryError(
            f"{device} has {size_text(free_bytes(device))} free, and {what} must take {size_text(nbytes)}: use fewer "
            "samples or kernels, or a smaller 'memory_limit', with which kernels are computed when they are read."
        ) from error


def to_device(array: Any, device: Any, dtype: Any = None) -> Tensor:
    """Return an array of the host, or anything with ``__dlpack__``, as a tensor on the device; no copy where it is."""
    if isinstance(array, np.ndarray):
        with warnings.catch_warnings():
            # of arrays that may not be written to: these tensors are only read
            warnings.simplefilter("ignore", UserWarning)
            # PyTorch takes no negative strides, as those of array[::-1]
            array = torch.from_numpy(array if min(array.strides, default=0) >= 0 else array.copy())
    elif not isinstance(array, torch.Tensor):
        array = array.tensor if hasattr(array, "tensor") else torch.from_dlpack(array)
    return array.detach().to(device, dtype)


def to_host(tensor: Tensor) -> np.ndarray:
    """Return a copy of a tensor on the host; from a GPU through pinned memory, which is ten times faster."""
    if tensor.device.type == "cpu":
        return tensor.detach().clone().numpy()
    try:
        out = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
    except RuntimeError:
        # no more memory can be pinned
        out = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    out.copy_(tensor)
    return out.numpy()


def torch_dtype(dtype: np.dtype) -> Any:
    """Return the dtype of PyTorch."""
    return {4: torch.float32, 8: torch.float64}[np.dtype(dtype).itemsize]


class Values(ABC):
    """Raw values of p kernels on n samples, read tile by tile on a device.

    Attributes
    ----------
    n_kernels, n_samples : int
        Numbers of kernels and samples.
    dtype : numpy.dtype
        Precision of the values.
    device : torch.device
        Where they are.
    nbytes : int
        Bytes that are held for them beyond those of the caller.
    stored : bool
        Whether they are stored, or computed when they are read.
    """

    n_kernels: int
    n_samples: int
    dtype: np.dtype
    device: Any
    nbytes: int = 0
    stored: bool = True

    @abstractmethod
    def tiles(self, kernels: Sequence[int], rows: Tensor, cols: slice) -> Iterator[tuple[list[int], Tensor]]:
        """Yield (numbers of kernels, their values of shape (b, m, w) between the samples rows and cols)."""

    @abstractmethod
    def diag(self) -> np.ndarray:
        """Return the diagonals, float64 of shape (p, n)."""

    @abstractmethod
    def take_samples(self, idx: np.ndarray) -> Values:
        """Return the kernels on some of the samples."""

    @abstractmethod
    def take_kernels(self, kernels: np.ndarray) -> Values:
        """Return some of the kernels."""


class StoredValues(Values):
    """Matrices on the device, read where they lie.

    Parameters
    ----------
    matrices : sequence of tensors of shape (n, n)
        Symmetric, of one precision.
    owned : bool
        Whether they were made for a fit, and count as its memory.
    """

    def __init__(self, matrices: Sequence[Tensor], owned: bool = True) -> None:
        self.matrices = list(matrices)
        first = self.matrices[0]
        self.n_kernels, self.n_samples, self.device = len(self.matrices), len(first), first.device
        self.dtype = np.dtype(f"float{8 * first.element_size()}")
        self.owned = owned
        self.nbytes = sum(K.numel() * K.element_size() for K in self.matrices) if owned else 0

    def tiles(self, kernels, rows, cols):
        for k in kernels:
            yield [k], take(self.matrices[k], rows, cols)[None]

    def diag(self):
        return np.array([to_host(K.diagonal().double()) for K in self.matrices])

    def take_samples(self, idx):
        at = to_device(np.asarray(idx, np.int64), self.device)
        size = len(idx) ** 2 * self.dtype.itemsize
        with room_for("the kernels on some of the samples", self.n_kernels * size, self.device):
            return StoredValues([square(K, at) for K in self.matrices])

    def take_kernels(self, kernels):
        return StoredValues([self.matrices[k] for k in kernels], self.owned)


def take(K: Tensor, rows: Tensor, cols: slice) -> Tensor:
    """Return K[rows, cols], a view where the rows are all rows in their order."""
    part = K[:, cols]
    whole = len(rows) == len(K) and torch.equal(rows, torch.arange(len(K), device=rows.device))
    return part if whole else part.index_select(0, rows)


def square(K: Tensor, idx: Tensor) -> Tensor:
    """Return K[idx, idx], a new matrix, without a copy of all columns."""
    out = torch.empty((len(idx), len(idx)), dtype=K.dtype, device=K.device)
    for start in range(0, len(idx), ROWS):
        rows = idx[start : start + ROWS]
        torch.index_select(K.index_select(0, rows), 1, idx, out=out[start : start + ROWS])
    return out


def spans(n: int, size: int) -> Iterator[slice]:
    """Cut n items into runs of at most so many."""
    for start in range(0, n, max(1, size)):
        yield slice(start, min(start + max(1, size), n))


def nonzero_rows(v: Tensor) -> Tensor:
    """Return the rows of a vector or matrix that are not zero."""
    return torch.nonzero(v if v.ndim == 1 else v.any(dim=1)).ravel()


def add_products(out: Tensor, tile: Tensor, v: Tensor) -> None:
    """Add K'v to ``out``, summed in float64, for a tile K of shape (b, m, w) and v of shape (b, m) or (b, m, c)."""
    wide = tile.double()
    out += torch.einsum("bmw,bm...->bw...", wide, v)
