"""Kernels on a device of PyTorch: a GPU, or the processor itself.

    values     raw kernels K_k: stored on the device, or computed there from samples whenever they are read
    K~_k,ij    s u_i u_j K_ij - sum_t (A_it B_jt + B_it A_jt), the affine view of `multikernel.gram.dense`
    K_beta     sum_k beta_k K~_k, the one matrix that is always stored while a machine works

Entries have the storage precision (float32 for large problems); every product that a bound is computed from is summed
in float64: a tile of entries is widened, multiplied, and forgotten. The host holds vectors, diagonals, and blocks of at
most `WORKING_SET` samples, which the compiled loops of the machines work on.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import WeakMethod

import numpy as np

from multikernel.gram.base import Gram, Outputs
from multikernel.gram.combined import Combined, HostRows
from multikernel.gram.dense import AffineForm
from multikernel.gram.dense_loops import read_only
from multikernel.gram.storage import TorchStorage, default_limit, parse_bytes, size_text
from multikernel.threads import ROWS, Team

try:
    import torch
except ImportError:  # without PyTorch only the sentence of `find_device` is needed
    torch = None  # type: ignore[assignment]

# bytes of a tile in float64: small tiles stay in the cache of a GPU, large ones are launched less often
TILE_BYTES = 128 << 20
# samples whose block of the combined kernel comes to the host: more make the compiled loops slower, fewer blind
WORKING_SET = 4096

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
        torch.zeros(1, dtype=torch.float64, device=device)
    except TypeError as error:
        raise ValueError(f"{what}Got {name!r}, which has no float64: use device='cpu'.") from error
    except (RuntimeError, AssertionError) as error:
        why = str(error).splitlines()[0]
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
    """Whether p kernels on n samples are stored on the device, or only the combined one; raise where not even that fits.

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
            f"{what} needs {size_text(nbytes)} on {device}, which has {size_text(free_bytes(device))} free: use fewer "
            "samples or kernels, or a smaller 'memory_limit', with which kernels are computed when they are read."
        ) from error


def to_device(array: Any, device: Any, dtype: Any = None) -> Tensor:
    """Return an array of the host, or anything with ``__dlpack__``, as a tensor on the device; no copy where it is."""
    if isinstance(array, np.ndarray):
        with warnings.catch_warnings():
            # of arrays that may not be written to: these tensors are only read
            warnings.simplefilter("ignore", UserWarning)
            array = torch.from_numpy(array)
    elif not isinstance(array, torch.Tensor):
        array = torch.from_dlpack(array)
    return array.detach().to(device, dtype)


def to_host(tensor: Tensor) -> np.ndarray:
    """Return a copy of a tensor on the host; from a GPU through pinned memory, which is an order of magnitude faster."""
    if tensor.device.type == "cpu":
        return tensor.detach().clone().numpy()
    out = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
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
        with room_for("The kernels on some of the samples", self.n_kernels * size, self.device):
            return StoredValues([square(K, at) for K in self.matrices])

    def take_kernels(self, kernels):
        return StoredValues([self.matrices[k] for k in kernels], self.owned)


def take(K: Tensor, rows: Tensor, cols: slice) -> Tensor:
    """Return K[rows, cols], a view where the rows are all rows."""
    part = K[:, cols]
    return part if len(rows) == len(K) else part.index_select(0, rows)


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


class TorchGram(Gram):
    """p kernels on a device.

    Parameters
    ----------
    values : Values
        Raw kernels.
    form : AffineForm, optional
        Normalisation of each kernel.
    n_threads : int
        Threads for work on the host.

    Examples
    --------
    >>> import numpy as np, pytest
    >>> torch = pytest.importorskip("torch")
    >>> gram = TorchGram(StoredValues([torch.eye(2, dtype=torch.float64)]))
    >>> gram.apply(np.array([1.0, 2.0]))
    array([[1., 2.]])
    """

    kind = "torch"

    def __init__(self, values: Values, form: AffineForm | None = None, *, n_threads: int = 1) -> None:
        self.values, self.team = values, Team(n_threads)
        self.n_kernels, self.n_samples, self.dtype = values.n_kernels, values.n_samples, values.dtype
        self.form = form or AffineForm(np.ones(self.n_kernels))
        self.device, self.nbytes, self.recomputed = values.device, values.nbytes, not values.stored
        self._diag: np.ndarray | None = None
        self._on_device: list[Tensor] | None = None

    def _form(self) -> list[Tensor]:
        """Return s, u, A and B as tensors, None for those that are not there."""
        if self._on_device is None:
            parts = self.form.scale, self.form.u, self.form.A, self.form.B
            self._on_device = [None if part is None else to_device(part, self.device) for part in parts]
        return self._on_device

    def diag(self):
        if self._diag is None:
            s, u, A, B = self.form.scale, self.form.u, self.form.A, self.form.B
            d = s[:, None] * (self.values.diag() if u is None else u**2 * self.values.diag())
            self._diag = d if A is None or B is None else d - 2 * np.einsum("kit,kit->ki", A, B)
        return self._diag

    def products(self, v: Tensor, kernels: np.ndarray | None = None) -> Tensor:
        """Return K_k v on the device, float64, for a float64 tensor v there; rows of zeros cost nothing."""
        every = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        F = torch.zeros((len(every), *v.shape), dtype=torch.float64, device=self.device)
        idx = nonzero_rows(v)
        if not len(idx):
            return F
        s, u, A, B = self._form()
        at = to_device(every.astype(np.int64), self.device)
        place = {int(k): j for j, k in enumerate(every)}
        extra = (1,) * (v.ndim - 1)
        v = v[idx]
        # weights of the rows: s_k u_k v
        D = s[at].reshape(-1, 1, *extra) * (v[None] if u is None else u[at][:, idx].reshape(*at.shape, -1, *extra) * v)
        # tiles of some thousand rows and columns: long sums, and many of them at a time
        size = max(ROWS, int((TILE_BYTES // 8) ** 0.5))
        for rows in spans(len(idx), size):
            width = max(ROWS, TILE_BYTES // (8 * (rows.stop - rows.start)))
            for cols in spans(self.n_samples, width):
                for members, tile in self.values.tiles(every.tolist(), idx[rows], cols):
                    where = [place[k] for k in members]
                    if len(where) == 1:
                        add_products(F[where[0] : where[0] + 1, cols], tile, D[where[0] : where[0] + 1, rows])
                    else:
                        part = torch.zeros((len(where), tile.shape[2], *v.shape[1:]), dtype=F.dtype, device=F.device)
                        add_products(part, tile, D[where][:, rows])
                        F[where, cols] += part
        if u is not None:
            F *= u[at].reshape(*u[at].shape, *extra)
        if A is not None and B is not None:
            for left, right in ((A[at], B[at]), (B[at], A[at])):
                F -= torch.einsum("kit,kt...->ki...", left, torch.einsum("krt,r...->kt...", right[:, idx], v))
        return F

    def apply(self, v, kernels=None):
        with room_for("The outputs of all kernels", 8.0 * self.n_kernels * v.size, self.device):
            return to_host(self.products(to_device(np.asarray(v, np.float64), self.device), kernels))

    def new_outputs(self, shape, known=None):
        with room_for("The outputs of all kernels", 8.0 * self.n_kernels * np.prod(shape, initial=1.0), self.device):
            if known is None:
                F = torch.zeros((self.n_kernels, *shape), dtype=torch.float64, device=self.device)
                return TorchOutputs(self, np.zeros(shape), F)
            return TorchOutputs(self, known[0], to_device(known[1], self.device).clone())

    def combine(self, beta: np.ndarray, rows: Tensor, out: Tensor) -> None:
        """Form rows of sum_k beta_k K_k in the precision of ``out``. Sets: ``out``, of shape (len(rows), n)."""
        out.zero_()
        s, u, A, B = self._form()
        active = np.flatnonzero(beta)
        weights = beta * self.form.scale
        for part in spans(len(rows), max(1, TILE_BYTES // (8 * self.n_samples))):
            some = rows[part]
            for members, tile in self.values.tiles(active.tolist(), some, slice(0, self.n_samples)):
                for k, K in zip(members, tile, strict=True):
                    if u is not None:
                        K = K * torch.outer(u[k, some], u[k]).to(K.dtype)
                    out[part].add_(K, alpha=float(weights[k]))
            if A is not None and B is not None:
                for k in active:
                    both = A[k, some] @ B[k].T + B[k, some] @ A[k].T
                    out[part].sub_(both.to(out.dtype), alpha=float(beta[k]))

    def rows(self, idx, kernels=None):
        kernels = np.arange(self.n_kernels) if kernels is None else kernels
        at = to_device(np.asarray(idx, np.int64), self.device)
        out = np.empty((len(kernels), len(idx), self.n_samples), self.dtype)
        row = torch.empty((len(idx), self.n_samples), dtype=torch_dtype(self.dtype), device=self.device)
        for j, k in enumerate(kernels):
            self.combine(np.eye(1, self.n_kernels, k)[0], at, row)
            out[j] = to_host(row)
        return out

    def block(self, idx):
        return self.take_samples(idx).rows(np.arange(len(idx)))

    def combined(self, beta):
        return TorchCombined(self, beta)

    def _part(self, values: Values, kernels: Any, samples: Any) -> TorchGram:
        s, u, A, B = self.form.scale, self.form.u, self.form.A, self.form.B
        u, A, B = (None if each is None else each[kernels][:, samples] for each in (u, A, B))
        return TorchGram(values, AffineForm(s[kernels], u, A, B), n_threads=self.team.n_threads)

    def take_samples(self, idx):
        return self._part(self.values.take_samples(idx), slice(None), idx)

    def take_kernels(self, kernels):
        return self._part(self.values.take_kernels(kernels), kernels, slice(None))


class TorchOutputs(Outputs):
    """Outputs of every kernel on the device, float64."""

    def __init__(self, gram: TorchGram, coef: np.ndarray, F: Tensor) -> None:
        self.gram, self.coef, self.F = gram, coef, F

    def _tensor(self, array: np.ndarray) -> Tensor:
        return to_device(np.asarray(array, np.float64), self.gram.device)

    def update(self, coef, kernels=None):
        change = self.gram.products(self._tensor(coef - self.coef), kernels)
        if kernels is None:
            self.F += change
        else:
            self.F[self._index(kernels)] += change
        self.coef = coef

    def _index(self, kernels: np.ndarray) -> Tensor:
        return to_device(np.asarray(kernels, np.int64), self.gram.device)

    def put(self, kernels, part):
        new = part.F if isinstance(part, TorchOutputs) else self._tensor(part)
        self.F[self._index(kernels)] = new

    def take(self, kernels):
        return TorchOutputs(self.gram.take_kernels(kernels), self.coef, self.F[self._index(kernels)])

    def quadratic_forms(self):
        return to_host(torch.tensordot(self.F, self._tensor(self.coef), self.coef.ndim))

    def mix(self, beta):
        return to_host(torch.tensordot(self._tensor(beta), self.F, 1))

    def kernel_outputs(self, rows=None):
        return to_host(self.F if rows is None else self.F[:, self._index(rows)])

    def known(self):
        return self.coef, to_host(self.F)


class TorchCombined(Combined):
    """K_beta as one matrix on the device, formed when it is first read after new weights."""

    def __init__(self, gram: TorchGram, beta: np.ndarray) -> None:
        self._gram, self._device = gram, gram.device
        self.dtype, self.team, self.host_limit = gram.dtype, gram.team, WORKING_SET
        self.by_products = gram.n_samples > WORKING_SET
        self._kernel_diag, self._kernel_means = gram.diag(), None
        self._matrix: Tensor = None
        self.set_weights(beta)

    def set_weights(self, beta):
        self.beta, self.cache, self._formed = beta, {}, False
        self.diag = beta @ self._kernel_diag

    @property
    def matrix(self) -> Tensor:
        """The matrix itself, on the device."""
        if not self._formed:
            n = self._gram.n_samples
            with room_for(f"The combined kernel on {n} samples", float(n) * n * self.dtype.itemsize, self._device):
                if self._matrix is None:
                    self._matrix = torch.empty((n, n), dtype=torch_dtype(self.dtype), device=self._device)
                self._gram.combine(self.beta, torch.arange(n, device=self._device), self._matrix)
            self._formed = True
        return self._matrix

    @property
    def means(self):
        if self._kernel_means is None:
            n = self._gram.n_samples
            self._kernel_means = self._gram.apply(np.full(n, 1.0 / n))
        return self.beta @ self._kernel_means

    def _index(self, idx: np.ndarray) -> Tensor:
        return to_device(np.asarray(idx, np.int64), self._device)

    def apply(self, delta, exact=True):
        K = self.matrix
        if not exact:
            return to_host(K @ to_device(np.ascontiguousarray(delta), self._device, K.dtype))
        v = to_device(np.asarray(delta, np.float64), self._device)
        return to_host(TorchGram(StoredValues([K])).products(v)[0])

    def block(self, idx, dtype=None):
        out = to_host(square(self.matrix, self._index(idx)))
        return out if dtype is None else out.astype(dtype, copy=False)

    def host_rows(self, idx=None):
        n = self._gram.n_samples
        if idx is not None or n > self.host_limit:
            if idx is None and "rows" not in self.cache:
                buffer, have = np.empty((n, n), self.dtype), np.zeros(n, bool)
                ensure = partial(_fetch_rows, WeakMethod(self._rows), buffer, have)
                self.cache["rows"] = HostRows(read_only(buffer), 1.0, have, self.diag, ensure)
            return self.cache["rows"] if idx is None else super().host_rows(idx)
        if "rows" not in self.cache:
            self.cache["rows"] = super().host_rows(np.arange(n))
        return self.cache["rows"]

    def _rows(self, idx: np.ndarray) -> np.ndarray:
        return to_host(self.matrix.index_select(0, self._index(idx)))

    def factor(self, idx, diagonal, single=False):
        kind = torch.float32 if single and self._in_single_range(idx) else torch_dtype(self.dtype)
        size = 2.0 * len(idx) ** 2 * torch.finfo(kind).bits / 8
        with room_for(f"A factorisation of {len(idx)} samples", size, self._device):
            A = square(self.matrix, self._index(idx)).to(kind)
            A.diagonal().add_(to_device(np.broadcast_to(diagonal, len(A)).astype(np.float64), self._device).to(kind))
            L, info = torch.linalg.cholesky_ex(A)
        return None if int(info) else TorchCholesky(L)


def _fetch_rows(rows: WeakMethod, buffer: np.ndarray, have: np.ndarray, idx: np.ndarray) -> None:
    """Fetch the rows that are missing. Sets: ``buffer`` and ``have``."""
    idx, fetch = idx[~have[idx]], rows()
    assert fetch is not None, "rows are read while their kernel is there"
    for part in spans(len(idx), WORKING_SET):
        buffer[idx[part]] = fetch(idx[part])
    have[idx] = True


class TorchCholesky:
    """A = L L' on the device; solutions come to the host."""

    def __init__(self, L: Tensor) -> None:
        self.L = L

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Return A^-1 rhs, float64, for right-hand sides of shape (n,) or (n, m)."""
        B = to_device(np.ascontiguousarray(rhs.reshape(len(rhs), -1)), self.L.device, self.L.dtype)
        return to_host(torch.cholesky_solve(B, self.L).double()).reshape(rhs.shape)
