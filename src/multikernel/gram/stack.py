"""Precomputed kernels as one lazy array of shape (n_rows, n_train, p).

A :class:`KernelStack` wraps p kernel matrices K_k (n_rows, n_train), kernel-major in memory, without copying
them. Rows and columns carry ids (the number of the sample in the stack that the caller made), so that a slice
of rows, which is all that most tools of scikit-learn take, still says which samples it holds: ``fit`` takes
the columns of its own rows, ``predict`` the columns of the training ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from multikernel.gram.dense_loops import read_only
from multikernel.gram.names import numbered_names
from multikernel.gram.slices import (
    as_slice,
    axis_positions,
    compose,
    shorten,
    take_block,
)
from multikernel.threads import ROWS


def stack_kernels(kernels: Any, *, names: Sequence[str] | None = None, diag: Any = None) -> KernelStack:
    """Wrap p precomputed kernel matrices, without a copy, for estimators with ``kernels="precomputed"``.

    Parameters
    ----------
    kernels : list of arrays (n_rows, n_train), dict name -> array, or array (p, n_rows, n_train)
        An array may be in a file: the path of ``.npy``, ``"kernels.h5::name"``, ``"kernels.zarr::name"``, or a dataset
        of h5py or Zarr; files are mapped into memory, not read as a whole.
        The kernels between the rows and the training samples. Square to fit on; one row per test sample and
        one column per training sample to predict on. Never copied and never written into. Tensors of PyTorch and
        other arrays with ``__dlpack__`` (CuPy, JAX) stay on their device, where ``gram="torch"`` reads them; arrays of
        Dask stay with their workers, where ``gram="dask"`` reads them.
    names : list of str, optional
        One name per kernel; ``"kernel_0"``, ``"kernel_1"``, ... when left out. Models find their kernels in another
        stack by name, and by position where one of the two stacks was made without names.
    diag : array (p, n_rows), optional
        k(x, x) of the rows, for normalisers that need it at test time (``"cosine"``). Stacks made of square
        symmetric matrices know it already.

    Returns
    -------
    KernelStack
        Lazy, of shape (n_rows, n_train, p).

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.stack import stack_kernels
    >>> X = np.arange(8.0).reshape(4, 2)
    >>> K = stack_kernels([X @ X.T, np.eye(4)], names=["linear", "identity"])
    >>> K
    KernelStack(n_kernels=2, n_rows=4, n_columns=4, dtype=float64)
    >>> K[[0, 2]].train_stack().shape
    (2, 2, 2)
    """
    if isinstance(kernels, KernelStack):
        if names is None and diag is None:
            return kernels
        raise ValueError(
            "The 'kernels' parameter of stack_kernels must be matrices when 'names' or 'diag' is given. "
            "Got a KernelStack instead."
        )
    if isinstance(kernels, Mapping):
        names = list(kernels) if names is None else names
        kernels = list(kernels.values())
    # a module that builds on this one
    from multikernel.gram.distant_stack import as_held

    data, kind = as_held(kernels)
    p, (n_rows, n_columns) = len(data), data[0].shape
    if names is None:
        names = numbered_names(p)
    elif isinstance(names, str) or not hasattr(names, "__len__") or len(names) != p or len(set(names)) != p:
        raise ValueError(
            f"The 'names' parameter of stack_kernels must be {p} different names, one per kernel. "
            f"Got {names!r} instead."
        )
    if diag is not None:
        diag = np.asarray(diag)
        if diag.shape != (p, n_rows) or diag.dtype.kind not in "biuf":
            raise ValueError(
                f"The 'diag' parameter of stack_kernels must be numbers of shape {(p, n_rows)}, one value per "
                f"kernel and row. Got shape {diag.shape} instead."
            )
        diag = diag.astype(np.float64)
    square = n_rows == n_columns
    # Rows of a rectangular stack are samples that have no column.
    row_ids = np.arange(n_rows) if square else np.arange(n_columns, n_columns + n_rows)
    return kind(data, [str(name) for name in names], row_ids, np.arange(n_columns), n_columns, diag=diag)


class KernelStack:
    """p kernel matrices as one lazy array of shape (n_rows, n_train, p); made by :func:`stack_kernels`.

    Indexing never copies the kernels: ``stack[rows]``, ``stack[rows, ...]``, ``stack[np.ix_(rows, columns)]``
    and ``stack[:, :, kernels]`` return a stack over the same memory. Rows may repeat. A pickled slice holds
    only its slice.

    Parameters
    ----------
    data : array (p, N, M) or tuple of p arrays (N, M)
        The kernels in memory.
    names : list of str
        One name per kernel.
    row_ids, col_ids : int arrays (N,) and (M,)
        The sample that each row and column of ``data`` stands for.
    n_ids : int
        Number of columns of the stack that the caller made.
    rows, cols : int arrays, optional
        The rows and columns of ``data`` selected; None for all, in order.
    diag : array (p, N), optional
        k(x, x) of the rows of ``data``.

    Attributes
    ----------
    shape : tuple (n_rows, n_columns, p)
    dtype : dtype float32 or float64 of what the methods below return
    row_ids, col_ids : ids of the selected rows and columns
    diag : float64 array (p, n_rows), or None where it is not known
    """

    ndim = 3

    def __init__(self, data, names, row_ids, col_ids, n_ids, *, rows=None, cols=None, diag=None, cache=None):
        self._data = data
        self._row_ids, self._col_ids = row_ids, col_ids
        self._rows, self._cols = rows, cols
        self._diag = diag
        self._cache: dict = {} if cache is None else cache
        self.names = list(names)
        self.n_ids = int(n_ids)

    # ---- what it is

    @property
    def n_kernels(self) -> int:
        """Number p of kernels."""
        return len(self._data)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n_rows, n_columns, p)."""
        n_rows, n_columns = self._data[0].shape
        return (
            n_rows if self._rows is None else len(self._rows),
            n_columns if self._cols is None else len(self._cols),
            self.n_kernels,
        )

    @property
    def dtype(self) -> np.dtype:
        """float32 where every kernel fits into it, otherwise float64."""
        dtypes = {self._data.dtype} if isinstance(self._data, np.ndarray) else {K.dtype for K in self._data}
        small = all(dtype.kind == "f" and dtype.itemsize <= 4 for dtype in dtypes)
        return np.dtype(np.float32 if small else np.float64)

    @property
    def nbytes(self) -> int:
        """Bytes of the selected entries in storage precision."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def row_ids(self) -> np.ndarray:
        """The sample of each row: what a fitted model keeps as its training ids."""
        return self._row_ids if self._rows is None else self._row_ids[self._rows]

    @property
    def col_ids(self) -> np.ndarray:
        """The sample of each column."""
        return self._col_ids if self._cols is None else self._col_ids[self._cols]

    @property
    def diag(self) -> np.ndarray | None:
        """k(x, x) of the rows, float64 (p, n_rows), or None where it is not known."""
        diag = self._diag if self._diag is not None else self._own_diag()
        return diag if diag is None or self._rows is None else diag[:, self._rows]

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        n_rows, n_columns, p = self.shape
        return f"KernelStack(n_kernels={p}, n_rows={n_rows}, n_columns={n_columns}, dtype={self.dtype})"

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        dtype = self.dtype if dtype is None else dtype
        whole = self._view(self._rows, self._cols)
        if whole is None:
            if copy is False:
                raise ValueError("A KernelStack of scattered rows cannot become an array without a copy.")
            whole = self._gather(self._rows, self._cols)
            copy = None
        return np.array(np.moveaxis(whole, 0, -1), dtype=dtype, copy=copy)

    def __getstate__(self) -> dict:
        return {**self._compact().__dict__, "_cache": {}}

    # ---- slices

    def __getitem__(self, key: Any) -> Any:
        keys = list(key) if isinstance(key, tuple) else [key]
        if sum(part is Ellipsis for part in keys) > 1 or sum(part is not Ellipsis for part in keys) > 3:
            raise IndexError(f"A KernelStack takes at most three indices. Got {key!r} instead.")
        if any(part is Ellipsis for part in keys):
            at = next(i for i, part in enumerate(keys) if part is Ellipsis)
            keys[at : at + 1] = [slice(None)] * (4 - len(keys))
        keys += [slice(None)] * (3 - len(keys))
        lists = [part for part in keys if not isinstance(part, (slice, int, np.integer))]
        if len(lists) > 1 and any(np.ndim(part) != len(lists) for part in lists):
            raise IndexError(
                "A KernelStack is indexed by rows and columns with np.ix_(rows, columns). "
                "Got two lists side by side instead."
            )
        rows, cols, kernels = (axis_positions(part, size) for part, size in zip(keys, self.shape, strict=True))
        part = self._with(rows=compose(self._rows, rows), cols=compose(self._cols, cols)).take_kernels(kernels)
        scalar = tuple(0 if isinstance(i, (int, np.integer)) else slice(None) for i in keys)
        return np.asarray(part)[scalar] if 0 in scalar else part

    def take_kernels(self, kernels: Any) -> KernelStack:
        """Return the stack of only these kernels (indices, mask or slice), over the same memory."""
        kernels = axis_positions(kernels, self.n_kernels)
        if kernels is None:
            return self
        run = as_slice(kernels)
        one = isinstance(self._data, np.ndarray) and run is not None
        data = self._data[run] if one else tuple(self._data[k] for k in kernels)
        diag = None if self._diag is None else self._diag[kernels]
        other = self._with(data=data, diag=diag, cache={})
        other.names = [self.names[k] for k in kernels]
        return other

    def _with(self, **changes: Any) -> KernelStack:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **{f"_{name}": value for name, value in changes.items()})
        return other

    def _compact(self) -> KernelStack:
        """Equal stack whose memory holds only the rows and columns selected (each once)."""
        if self._rows is None and self._cols is None:
            return self
        diag = self._diag if self._diag is not None else self._own_diag()
        state: dict[str, Any] = {"diag": diag, "cache": {}}
        kept: dict[str, Any] = {"rows": None, "cols": None}
        for axis, chosen in (("rows", self._rows), ("cols", self._cols)):
            if chosen is not None:
                kept[axis], place = np.unique(chosen, return_inverse=True)
                state[axis] = None if np.array_equal(place, np.arange(len(kept[axis]))) else place
        rows, cols = kept["rows"], kept["cols"]
        run_r, run_c = as_slice(rows), as_slice(cols)
        if isinstance(self._data, np.ndarray) and run_r is not None and run_c is not None:
            state["data"] = self._data[:, run_r, run_c]
        elif isinstance(self._data, np.ndarray):
            state["data"] = self._gather(rows, cols, self._data.dtype)
        else:
            state["data"] = tuple(take_block(K, rows, cols, K.dtype) for K in self._data)
        if rows is not None:
            state |= {"row_ids": self._row_ids[rows], "diag": None if diag is None else diag[:, rows]}
        if cols is not None:
            state["col_ids"] = self._col_ids[cols]
        return self._with(**state)

    # ---- entries

    def positions(self, ids: Any, n_ids: int | None = None) -> np.ndarray:
        """Where the samples ``ids`` stand among the columns.

        Parameters
        ----------
        ids : int array (m,)
            Training ids: ``row_ids`` of the stack that a model was fitted on.
        n_ids : int, optional
            ``n_ids`` of that stack; a stack with another number of columns is then refused, unless it has
            exactly one column per training id.

        Returns
        -------
        int array (m,)
            Positions among the columns of this stack. A stack that was never sliced and has one column per
            training id, but not their ids, is read by position.
        """
        ids = np.asarray(ids)
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise ValueError(f"Sample ids must be a 1-D array of integers. Got {ids!r} instead.")
        n_columns = self.shape[1]
        by_place = self._cols is None and n_columns == self.n_ids == len(ids)
        if n_ids is not None and self.n_ids != n_ids:
            if by_place:
                return np.arange(n_columns)
            raise ValueError(
                f"X must have {n_ids} columns, as the stack that the model was fitted on, or one for each of "
                f"the {len(ids)} training samples. Got {n_columns} columns instead."
            )
        table = np.full(1 + max(ids.max(initial=0), self._col_ids.max(initial=0)), -1, dtype=np.intp)
        table[self.col_ids[::-1]] = np.arange(n_columns)[::-1]
        place = np.where(ids < 0, -1, table[ids])
        if np.any(place < 0):
            if by_place:
                return np.arange(n_columns)
            raise ValueError(
                f"The columns of X must contain the {len(ids)} training samples. Got a stack that lacks "
                f"{np.count_nonzero(place < 0)} of them instead."
            )
        return place

    def train_stack(self, *, contiguous: bool = False) -> np.ndarray:
        """Return the kernels between the rows themselves, as a kernel-major array.

        Parameters
        ----------
        contiguous : bool
            Copy where the view would not be C-contiguous.

        Returns
        -------
        array (p, n_rows, n_rows)
            float32 or float64, read-only. A view of the caller's memory where the rows are all rows, or
            consecutive ones, of one array; otherwise a copy.
        """
        rows, cols = self._rows, self._train_columns()
        stack = self._view(rows, cols)
        if stack is None or (contiguous and not stack.flags.c_contiguous):
            stack = read_only(self._gather(rows, cols))
        return stack

    def train_kernels(self) -> list[np.ndarray]:
        """Return the p kernels (n_rows, n_rows) between the rows themselves, views where that is possible.

        Unlike :meth:`train_stack` this never copies a list of separately allocated matrices.
        """
        rows, cols = self._rows, self._train_columns()
        return [read_only(take_block(K, rows, cols, self.dtype)) for K in self._data]

    def kernel_rows(self, k: int, train_ids: Any, n_ids: int | None = None) -> np.ndarray:
        """Return the block of kernel ``k`` whose columns are the samples ``train_ids``.

        Parameters
        ----------
        k : int
            The kernel.
        train_ids : int array (m,)
            Ids of the training samples wanted.
        n_ids : int, optional
            See :meth:`positions`.

        Returns
        -------
        array (n_rows, m)
            Read-only; a view of the caller's memory where that is possible.
        """
        cols = compose(self._cols, shorten(self.positions(train_ids, n_ids), self.shape[1]))
        return read_only(take_block(self._data[k], self._rows, cols, self.dtype))

    def _train_columns(self) -> np.ndarray | None:
        n_rows, n_columns, _ = self.shape
        known = np.isin(self.row_ids, self.col_ids)
        if not known.all():
            if not known.any() and self._rows is None:
                raise ValueError(
                    f"The kernel matrices must be square to fit. Got {n_rows} rows and {n_columns} columns instead."
                )
            raise ValueError(
                "The rows of a KernelStack must be among its columns to fit. "
                f"Got {np.count_nonzero(~known)} of {n_rows} rows without a column instead."
            )
        return compose(self._cols, shorten(self.positions(self.row_ids), n_columns))

    def _own_diag(self) -> np.ndarray | None:
        """K_k(i, i) if the rows of the data are its columns: equal ids, and a symmetric sample of entries."""
        if "diag" not in self._cache:
            same = len(self._row_ids) > 0 and np.array_equal(self._row_ids, self._col_ids)
            pick = np.unique(np.linspace(0, len(self._row_ids) - 1, ROWS).astype(np.intp))
            blocks = (np.asarray(K[np.ix_(pick, pick)], dtype=np.float64) for K in self._data)
            same = same and all(np.abs(B - B.T).max() <= 1e-4 * np.abs(B).max() for B in blocks)
            diagonals = [np.diagonal(K) for K in self._data] if same else None
            self._cache["diag"] = np.array(diagonals, dtype=np.float64) if same else None
        return self._cache["diag"]

    def _view(self, rows: np.ndarray | None, cols: np.ndarray | None) -> np.ndarray | None:
        """Kernel-major view of the selection, None where there is none."""
        run_r, run_c = as_slice(rows), as_slice(cols)
        data = self._data
        if not isinstance(data, np.ndarray) or data.dtype != self.dtype or run_r is None or run_c is None:
            return None
        return read_only(data[:, run_r, run_c])

    def _gather(self, rows, cols, dtype=None) -> np.ndarray:
        """Kernel-major copy of the selection."""
        n_rows, n_columns = self._data[0].shape
        shape = (n_rows if rows is None else len(rows), n_columns if cols is None else len(cols))
        out = np.empty((self.n_kernels, *shape), dtype=self.dtype if dtype is None else dtype)
        for K, block in zip(self._data, out, strict=True):
            take_block(K, rows, cols, out.dtype, block)
        return out
