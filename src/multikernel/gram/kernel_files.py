"""Kernels in files: ``.npy``, HDF5 and Zarr, mapped into memory and never read as a whole.

A ``.npy`` file, and a dataset of HDF5 that lies in one piece, is mapped where it is. Chunks, compressed or not, are
copied once, some rows at a time, into a temporary file that is mapped; the file goes with the array.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from multikernel.gram.memmap import map_temporary
from multikernel.threads import BLOCK_BYTES

_KINDS = (".npy", ".h5", ".hdf5", ".zarr")


def is_stored(kernel: Any) -> bool:
    """Whether a kernel is the path of such a file, or a dataset of h5py or Zarr."""
    if isinstance(kernel, (str, os.PathLike)):
        return Path(os.fspath(kernel).partition("::")[0]).suffix.lower() in _KINDS
    # arrays of Dask have chunks too
    other = isinstance(kernel, np.ndarray) or hasattr(kernel, "__dask_graph__")
    return not other and hasattr(kernel, "chunks") and hasattr(kernel, "dtype")


def open_kernel(kernel: Any) -> np.ndarray:
    """Return a stored kernel as an array in a mapped file.

    Parameters
    ----------
    kernel : path, h5py.Dataset or zarr.Array
        ``"kernel.npy"``, ``"kernels.h5::name"`` or ``"kernels.zarr::name"``; the name may be left out where the file
        holds one dataset.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "K.npy"
    ...     np.save(path, np.eye(2))
    ...     open_kernel(path).shape
    (2, 2)
    """
    if not isinstance(kernel, (str, os.PathLike)):
        return _map_dataset(kernel)
    file, _, name = os.fspath(kernel).partition("::")
    kind = Path(file).suffix.lower()
    if not os.path.exists(file):
        raise FileNotFoundError(f"The kernel '{file}' must be a file. There is none.")
    if kind == ".npy":
        return np.load(file, mmap_mode="r", allow_pickle=False)
    if kind in (".h5", ".hdf5"):
        import h5py

        with h5py.File(file, "r") as opened:
            return _map_dataset(_only(opened, name, file))
    import zarr

    return _map_dataset(_only(zarr.open(file, mode="r"), name, file))


def _only(opened: Any, name: str, file: str) -> Any:
    """Return the dataset of this name, or the only one."""
    if hasattr(opened, "dtype"):
        return opened
    names = list(opened.keys())
    if not name and len(names) == 1:
        return opened[names[0]]
    if name not in names and not (name and name in opened):
        shown = ", ".join(repr(f"{os.path.basename(file)}::{each}") for each in names[:5])
        raise ValueError(f"A kernel in '{file}' must be named, as {shown}. Got {name!r} instead.")
    return opened[name]


def _map_dataset(dataset: Any) -> np.ndarray:
    """Return a dataset as a mapped array."""
    if np.dtype(dataset.dtype).kind not in "fiub" or len(dataset.shape) not in (2, 3):
        raise ValueError(
            "A kernel in a file must be numbers of shape (n_rows, n_train). "
            f"Got {dataset.dtype} of shape {tuple(dataset.shape)} instead."
        )
    offset = dataset.id.get_offset() if getattr(dataset, "chunks", None) is None and hasattr(dataset, "id") else None
    if offset is not None and dataset.dtype.isnative:
        return np.memmap(dataset.file.filename, dataset.dtype, "r", offset, tuple(dataset.shape))
    out = map_temporary(tuple(dataset.shape), dataset.dtype)
    rows = max(1, BLOCK_BYTES // max(1, out[:1].nbytes))
    for start in range(0, len(out), rows):
        out[start : start + rows] = dataset[start : start + rows]
    return out
