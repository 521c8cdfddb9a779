"""What stacks of kernels far from the host share: a smaller stack, and the diagonal of square kernels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from multikernel.gram.kernel_files import is_stored, open_kernel
from multikernel.gram.slices import as_data
from multikernel.gram.stack import KernelStack
from multikernel.threads import ROWS


class DistantStack(KernelStack):
    """p kernel matrices that are not in the memory of this process, indexed as any `KernelStack`."""

    # fetches an array
    _as_array: Callable[[Any], np.ndarray]

    @abstractmethod
    def _select(self, K: Any, rows: np.ndarray | None, cols: np.ndarray | None) -> Any:
        """Return some rows and columns of a matrix, where the matrix is."""

    @abstractmethod
    def _diagonal(self, K: Any) -> np.ndarray:
        """Return the diagonal of a matrix, float64."""

    def _copy(self, K: Any) -> Any:
        """Return a matrix of its own memory, for one that may be a view."""
        return K

    def _compact(self) -> KernelStack:
        data = tuple(self._copy(self._select(K, self._rows, self._cols)) for K in self._data)
        return self._with(
            data=data, rows=None, cols=None, row_ids=self.row_ids, col_ids=self.col_ids, diag=self.diag, cache={}
        )

    def _own_diag(self) -> np.ndarray | None:
        if "diag" not in self._cache:
            same = len(self._row_ids) > 0 and np.array_equal(self._row_ids, self._col_ids)
            pick = np.unique(np.linspace(0, len(self._row_ids) - 1, ROWS).astype(np.intp))
            blocks = (self._as_array(self._select(K, pick, pick)) for K in self._data) if same else ()
            same = same and all(np.abs(B - B.T).max() <= 1e-4 * np.abs(B).max() for B in blocks)
            self._cache["diag"] = np.array([self._diagonal(K) for K in self._data]) if same else None
        return self._cache["diag"]


def as_held(kernels: Any) -> tuple[Any, type[KernelStack]]:
    """Return the matrices where they are, and the kind of stack for them; Dask and PyTorch load only where needed."""
    if is_stored(kernels):
        kernels = open_kernel(kernels)
        kernels = kernels[None] if kernels.ndim == 2 else kernels
    elif isinstance(kernels, (list, tuple)):
        kernels = [open_kernel(K) if is_stored(K) else K for K in kernels]
    if any(hasattr(K, "__dask_graph__") for K in (kernels if isinstance(kernels, (list, tuple)) else [kernels])):
        from multikernel.gram.dask_stack import DaskStack, as_chunked

        return as_chunked(kernels), DaskStack
    data = as_data(kernels)
    if isinstance(data, list):
        from multikernel.gram.tensors import TensorStack, as_tensors

        return as_tensors(data), TensorStack
    return data, KernelStack
