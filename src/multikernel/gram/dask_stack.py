"""Kernels that the caller holds as arrays of Dask, such as those of HDF5 and Zarr files: never whole on the client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from multikernel.gram.dask_blocks import Blocks, deal, require_room, send
from multikernel.gram.distant_stack import DistantStack
from multikernel.gram.inspect import Inspection
from multikernel.gram.row_block import RowBlock
from multikernel.gram.slices import as_slice, compose, shorten


def as_chunked(kernels: Any) -> tuple[Any, ...]:
    """Return matrices of one shape, arrays of Dask of real numbers."""
    found = tuple(kernels)
    for k, K in enumerate(found):
        if not hasattr(K, "__dask_graph__") or getattr(K, "ndim", 0) != 2:
            got = f"one of shape {K.shape}" if hasattr(K, "shape") else type(K).__name__
            raise ValueError(f"Kernel {k} must be a 2-D array of Dask, as other kernels of the stack are. Got {got}.")
        if K.dtype.kind not in "fiub":
            raise ValueError(f"Kernel {k} must hold real numbers. Got an array of dtype {K.dtype} instead.")
        if K.shape != found[0].shape or np.isnan(K.shape).any():
            raise ValueError(
                f"All kernels of a stack must have the same shape, {found[0].shape} as kernel 0. "
                f"Got shape {K.shape} for kernel {k} instead."
            )
    return found


class DaskStack(DistantStack):
    """p kernel matrices as arrays of Dask, indexed as any `KernelStack`; only rows to predict on come to the client."""

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        raise TypeError("Arrays of Dask are not copied to the client. Use gram='dask' with them.")

    def _select(self, K: Any, rows: np.ndarray | None, cols: np.ndarray | None) -> Any:
        for axis, chosen in enumerate((rows, cols)):
            run = as_slice(chosen)
            part = chosen if run is None else run
            K = K[part] if axis == 0 else K[:, part]
        return K.astype(self.dtype)

    def kernel_rows(self, k: int, train_ids: Any, n_ids: int | None = None) -> np.ndarray:
        cols = compose(self._cols, shorten(self.positions(train_ids, n_ids), self.shape[1]))
        return np.asarray(self._select(self._data[k], self._rows, cols))

    _as_array = staticmethod(np.asarray)

    def _diagonal(self, K: Any) -> np.ndarray:
        return diagonal(K)

    def row_blocks(self, client: Any, memory_limit: float | str | None) -> Blocks:
        """Return the kernels between the rows themselves, by rows with the workers.

        Rows that are together in one chunk of every kernel stay where they are, without a copy.
        """
        cols = self._train_columns()
        matrices = [self._select(K, self._rows, cols) for K in self._data]
        n, p = len(self), len(matrices)
        sizes = matrices[0].chunks[0]
        alike = all(K.chunks[0] == sizes for K in matrices) and len(sizes) >= len(deal(client, n))
        shares = deal(client, n, sizes if alike else None)
        require_room(client, shares, (p + 1.0) * n * self.dtype.itemsize, memory_limit)
        rows = tuple(share.stop - share.start for share in shares)
        parts = [client.compute(list(K.rechunk((rows, n)).to_delayed().ravel())) for K in matrices]
        made = [
            send(client, _given, [part[b] for part in parts], share.start, workers=[share.worker],
                 allow_other_workers=True)
            for b, share in enumerate(shares)
        ]  # fmt: skip
        return Blocks(client, shares, made, p, self.dtype)


def _given(matrices: Sequence[np.ndarray], start: int) -> RowBlock:
    return RowBlock([np.ascontiguousarray(K)[None] for K in matrices], start, owned=False)


def diagonal(K: Any) -> np.ndarray:
    """Return the diagonal of a square array of Dask, float64."""
    from dask.array import diagonal as of

    return np.asarray(of(K), np.float64)


def inspect_blocks(blocks: Blocks) -> Inspection:
    """Return what `inspect_kernels` tells of matrices, but for their minors, from two passes over them by the workers.

    Products with random signs are computed by rows and by columns: where they differ, the matrix is not symmetric.
    """
    signs = np.random.default_rng(blocks.n).choice([-1.0, 1.0], blocks.n)
    parts = blocks.ask("inspect", signs)
    diag, sums, products = (np.concatenate([part[i] for part in parts], axis=1) for i in range(3))
    low = np.min([part[3][:, 0] for part in parts], axis=0)
    high = np.max([part[3][:, 1] for part in parts], axis=0)
    mirrored = sum(blocks.ask("outputs", signs, np.arange(blocks.p)))
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(low) & np.isfinite(high)
        largest = np.maximum(-low, high)
        difference = np.abs(products - mirrored).max(axis=1)
        rounding = blocks.n * np.finfo(np.float64).eps * largest
        asymmetry = np.where(difference > rounding, difference, 0.0)
        constant = high - low <= 1e-12 * largest
    nothing = np.zeros(blocks.p)
    return Inspection(
        finite, asymmetry, largest, diag.min(axis=1), nothing, constant, diag, sums, signs, mirrored, blocks.dtype
    )
