"""Kernels that the caller holds as tensors, or as anything with ``__dlpack__``: never copied to the host as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from multikernel.gram.device import Tensor, find_device, spans, to_device, to_host, torch
from multikernel.gram.distant_stack import DistantStack
from multikernel.gram.inspect import Inspection
from multikernel.gram.slices import as_slice, compose, shorten
from multikernel.gram.storage import TorchStorage
from multikernel.threads import ROWS


def as_tensors(kernels: Any) -> tuple[Tensor, ...]:
    """Return matrices of one shape on one device, float32 or float64, without a copy where they are so."""
    find_device(TorchStorage("cpu"))
    found = [to_device(K, None) for K in kernels]
    first = found[0]
    for k, K in enumerate(found):
        if K.ndim != 2:
            raise ValueError(f"Kernel {k} must be a 2-D tensor. Got a tensor of shape {tuple(K.shape)} instead.")
        if K.dtype.is_complex:
            raise ValueError(f"Kernel {k} must hold real numbers. Got a tensor of dtype {K.dtype} instead.")
        if K.shape != first.shape or K.device != first.device:
            raise ValueError(
                f"All kernels of a stack must have the same shape and device, {tuple(first.shape)} on {first.device} "
                f"as kernel 0. Got {tuple(K.shape)} on {K.device} for kernel {k} instead."
            )
    small = all(K.dtype in (torch.float32, torch.float16, torch.bfloat16) for K in found)
    return tuple(K.to(torch.float32 if small else torch.float64) for K in found)


class TensorStack(DistantStack):
    """p kernel matrices on a device, indexed as any `KernelStack`; only rows of predictions come to the host."""

    @property
    def device(self) -> Any:
        """Where the kernels are."""
        return self._data[0].device

    @property
    def dtype(self) -> np.dtype:
        """Precision of the kernels."""
        return np.dtype(f"float{8 * self._data[0].element_size()}")

    @property
    def in_place(self) -> bool:
        """Whether the kernels between the rows are read where they lie."""
        return as_slice(self._rows) is not None and as_slice(self._train_columns()) is not None

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        raise TypeError(f"Kernels on {self.device} are not copied to the host. Use gram='torch' with them.")

    def _select(self, K: Tensor, rows: np.ndarray | None, cols: np.ndarray | None) -> Tensor:
        for axis, chosen in enumerate((rows, cols)):
            run = as_slice(chosen)
            if run is not None:
                K = K[run] if axis == 0 else K[:, run]
            else:
                K = K.index_select(axis, to_device(np.asarray(chosen, np.int64), K.device))
        return K

    def train_tensors(self) -> list[Tensor]:
        """Return the kernels between the rows themselves, views where that is possible."""
        cols = self._train_columns()
        return [self._select(K, self._rows, cols) for K in self._data]

    def kernel_rows(self, k: int, train_ids: Any, n_ids: int | None = None) -> np.ndarray:
        return to_host(self.kernel_tensor(k, train_ids, n_ids))

    def kernel_tensor(self, k: int, train_ids: Any, n_ids: int | None = None) -> Tensor:
        """Return the block of kernel k whose columns are the samples ``train_ids``, on the device."""
        cols = compose(self._cols, shorten(self.positions(train_ids, n_ids), self.shape[1]))
        return self._select(self._data[k], self._rows, cols)

    _as_array = staticmethod(to_host)

    def _diagonal(self, K: Tensor) -> np.ndarray:
        return to_host(K.diagonal().double())

    def _copy(self, K: Tensor) -> Tensor:
        return K.clone()


def inspect_tensors(matrices: list[Tensor]) -> Inspection:
    """Return what `inspect_kernels` tells of matrices, from one pass over them on their device."""
    p, n = len(matrices), len(matrices[0])
    finite, constant = np.ones(p, bool), np.zeros(p, bool)
    asymmetry, largest, minor = np.zeros((3, p))
    diagonal, sums = np.zeros((2, p, n))
    for k, K in enumerate(matrices):
        d, total = K.diagonal().double(), torch.zeros(n, dtype=torch.float64, device=K.device)
        worst = torch.zeros(4, dtype=torch.float64, device=K.device)
        low = K[0, 0].double()
        for rows in spans(n, ROWS):
            part = K[rows].double()
            total[rows] = part.sum(1)
            both = (part - K[:, rows].T).abs().max()
            minors = (part * part - d[rows, None] * d).max()
            worst = torch.maximum(worst, torch.stack([part.abs().max(), both, minors, (part - low).abs().max()]))
        diagonal[k], sums[k] = to_host(d), to_host(total)
        largest[k], asymmetry[k], minor[k], spread = to_host(worst)
        finite[k] = bool(np.isfinite(sums[k]).all() and np.isfinite(largest[k]))
        minor[k] /= max(largest[k] ** 2, 1e-300)
        constant[k] = spread <= 1e-12 * largest[k]
    small = diagonal.min(axis=1)
    dtype = np.dtype(f"float{8 * matrices[0].element_size()}")
    nothing = np.zeros((p, 0))
    return Inspection(finite, asymmetry, largest, small, minor, constant, diagonal, sums, np.zeros(0), nothing, dtype)
