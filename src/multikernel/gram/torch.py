"""Kernels on a device of PyTorch: a GPU, or the processor itself.

    values     raw kernels K_k: stored on the device, or computed there from samples whenever they are read
    K~_k,ij    s u_i u_j K_ij - sum_t (A_it B_jt + B_it A_jt), the affine view of `multikernel.gram.dense`
    K_beta     sum_k beta_k K~_k, the one matrix that is always stored while a machine works

Entries have the storage precision (float32 for large problems); every product that a bound is computed from is summed
in float64: a tile of entries is widened, multiplied, and forgotten. The host holds vectors, diagonals, and blocks of at
most `WORKING_SET` samples, which the compiled loops of the machines work on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from multikernel.gram.base import Gram, Outputs
from multikernel.gram.combined import RIDGES, WORKING_SET, Combined, HostRows, all_there
from multikernel.gram.cuda_loops import available, mix_rows, sum_rows
from multikernel.gram.dense import AffineForm
from multikernel.gram.dense_loops import read_only
from multikernel.gram.device import (
    StoredValues,
    Tensor,
    Values,
    add_products,
    nonzero_rows,
    room_for,
    spans,
    square,
    to_device,
    to_host,
    torch,
    torch_dtype,
)
from multikernel.gram.device_array import DeviceArray, like
from multikernel.gram.storage import default_limit, size_text
from multikernel.threads import ROWS, Team


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
        if self.form.A is not None:
            self.loose = self.form.cancelled()

    def _form(self) -> list[Tensor]:
        """Return s, u, A and B as tensors, None for those that are not there."""
        if self._on_device is None:
            parts = self.form.scale, self.form.u, self.form.A, self.form.B
            self._on_device = [None if part is None else to_device(part, self.device) for part in parts]
        return self._on_device

    def _readable(self) -> list[Tensor]:
        """Return the kernels where the compiled loops of a GPU can read them, otherwise none."""
        values = self.values
        return values.matrices if isinstance(values, StoredValues) and available(values.matrices) else []

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
        if v.ndim == 1 and (matrices := self._readable()):
            for j, k in enumerate(every):
                F[j] = sum_rows(matrices[k], idx, D[j])
            every = every[:0]
        for rows in spans(len(idx) if len(every) else 0, WORKING_SET):
            # fewer rows, more columns
            for cols in spans(self.n_samples, WORKING_SET**2 // (rows.stop - rows.start)):
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
        with room_for("the outputs of all kernels", 8.0 * self.n_kernels * v.size, self.device):
            return to_host(self.products(to_device(np.asarray(v, np.float64), self.device), kernels))

    def hold(self, array: np.ndarray) -> Any:
        """Return an array of several columns where the kernels are, a vector as it is."""
        return DeviceArray(to_device(array, self.device, torch.float64)) if array.ndim > 1 else array

    def new_outputs(self, shape, known=None):
        with room_for("the outputs of all kernels", 8.0 * self.n_kernels * np.prod(shape, initial=1.0), self.device):
            if known is None:
                F = torch.zeros((self.n_kernels, *shape), dtype=torch.float64, device=self.device)
                return TorchOutputs(self, np.broadcast_to(0.0, shape), F)
            return TorchOutputs(self, known[0], to_device(known[1], self.device).clone())

    def combine(self, beta: np.ndarray, rows: Tensor, out: Tensor) -> None:
        """Form rows of sum_k beta_k K_k in the precision of ``out``. Sets: ``out``, of shape (len(rows), n)."""
        out.zero_()
        _, u, A, B = self._form()
        active = np.flatnonzero(beta)
        weights = beta * self.form.scale
        if u is None and A is None and len(active) and (matrices := self._readable()):
            mix_rows([matrices[k] for k in active], weights[active], rows, out)
            return
        for part in spans(len(rows), max(1, WORKING_SET**2 // self.n_samples)):
            some = rows[part]
            for members, tile in self.values.tiles(active.tolist(), some, slice(0, self.n_samples)):
                for k, K in zip(members, tile, strict=True):
                    if u is not None:
                        K = K * torch.outer(u[k, some], u[k]).to(K.dtype)
                    out[part].add_(K, alpha=float(weights[k]))
            if A is not None and B is not None:
                for k in active.tolist():
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

    def rescaled(self, factor):
        form = self.form
        form = replace(form, scale=form.scale * factor, A=None if form.A is None else form.A * factor)
        return TorchGram(self.values, form, n_threads=self.team.n_threads)

    def take_samples(self, idx):
        return self._part(self.values.take_samples(idx), slice(None), idx)

    def take_kernels(self, kernels):
        return self._part(self.values.take_kernels(kernels), kernels, slice(None))


class TorchOutputs(Outputs):
    """Outputs of every kernel on the device, float64."""

    def __init__(self, gram: TorchGram, coef: np.ndarray, F: Tensor) -> None:
        self.gram, self.coef, self.F = gram, coef, F

    def _tensor(self, array: np.ndarray) -> Tensor:
        return to_device(array, self.gram.device, torch.float64)

    def update(self, coef, kernels=None):
        with room_for("the outputs of all kernels", float(self.F.nbytes), self.gram.device):
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
        return like(self.coef, torch.tensordot(self._tensor(beta), self.F, 1))

    def kernel_outputs(self, rows=None):
        return like(self.coef, self.F if rows is None else self.F[:, self._index(rows)])

    def known(self):
        return self.coef, like(self.coef, self.F.clone())


class TorchCombined(Combined):
    """K_beta as one matrix on the device, formed when it is first read after new weights."""

    _gram: TorchGram

    def __init__(self, gram: TorchGram, beta: np.ndarray) -> None:
        self._gram, self._device = gram, gram.device
        self.dtype, self.team, self.host_limit = gram.dtype, gram.team, WORKING_SET
        self.by_products = gram.n_samples > WORKING_SET
        self._kernel_diag = gram.diag()
        self._matrix: Tensor = None
        # whether the host has had the memory for a copy of it
        self._copied = False
        self.set_weights(beta)

    def set_weights(self, beta):
        self.beta, self.cache, self._formed = beta, {}, False
        self.diag = beta @ self._kernel_diag

    @property
    def matrix(self) -> Tensor:
        """The matrix itself, on the device."""
        if not self._formed:
            n = self._gram.n_samples
            with room_for(f"the combined kernel on {n} samples", float(n) * n * self.dtype.itemsize, self._device):
                if self._matrix is None:
                    self._matrix = torch.empty((n, n), dtype=torch_dtype(self.dtype), device=self._device)
                self._gram.combine(self.beta, torch.arange(n, device=self._device), self._matrix)
            self._formed = True
        return self._matrix

    def _index(self, idx: np.ndarray) -> Tensor:
        return to_device(np.asarray(idx, np.int64), self._device)

    def apply(self, delta, exact=True):
        K, v = self.matrix, to_device(delta, self._device, torch.float64)
        if v.ndim == 1 and available([K]):
            rows = nonzero_rows(v)
            out = sum_rows(K, rows, v[rows])
        elif exact:
            out = TorchGram(StoredValues([K])).products(v)[0]
        else:
            out = K @ v.to(K.dtype)
        return like(delta, out)

    def block(self, idx, dtype=None):
        out = to_host(square(self.matrix, self._index(idx)))
        return out if dtype is None else out.astype(dtype, copy=False)

    def host_rows(self, idx=None):
        if idx is not None:
            return super().host_rows(idx)
        if "rows" not in self.cache:
            n, on_host = self._gram.n_samples, self._device.type == "cpu"
            size = 0.0 if on_host or self._copied else float(n) * n * self.dtype.itemsize
            if size > (limit := default_limit()):
                raise MemoryError(
                    f"The combined kernel on {n} samples must come to the host, where it takes {size_text(size)} and "
                    f"half of the free memory is {size_text(limit)}: use fewer samples, or multiclass='ovr'."
                )
            # all at once, which takes less time than some rows many times; PyTorch keeps the pinned memory of a copy
            matrix = read_only(self.matrix.numpy() if on_host else to_host(self.matrix))
            self._copied = True
            self.cache["rows"] = HostRows(matrix, 1.0, np.ones(len(matrix), bool), self.diag, all_there)
        return self.cache["rows"]

    def factor(self, idx, diagonal, single=False):
        with room_for(
            f"a factorisation of {len(idx)} samples", 2.0 * len(idx) ** 2 * self.dtype.itemsize, self._device
        ):
            A = square(self.matrix, self._index(idx))
            A.diagonal().add_(to_device(np.broadcast_to(diagonal, len(A)).astype(self.dtype), self._device))
            if single and self.by_products:
                return ConjugateGradients(A)
            L, info = torch.linalg.cholesky_ex(A)
        return None if int(info) else TorchCholesky(L)

    def zeros(self, shape: tuple[int, ...]) -> DeviceArray:
        """Return zeros on the device, in the storage precision."""
        return DeviceArray(torch.zeros(shape, dtype=torch_dtype(self.dtype), device=self._device))

    def cholesky(self, A: DeviceArray, mean: float) -> TorchCholesky:
        """Factorise a matrix of mean diagonal ``mean`` plus a ridge, ten times larger until that succeeds."""
        for ridge in RIDGES[self.dtype.char] * max(mean, float(np.finfo(np.float32).tiny)):
            M = A.tensor.clone()
            M.diagonal().add_(ridge)
            L, info = torch.linalg.cholesky_ex(M)
            if not int(info):
                return TorchCholesky(L)
        raise np.linalg.LinAlgError("The combined kernel is not positive semidefinite on the free entries.")

    def inverse(self, idx: np.ndarray, diagonal: np.ndarray) -> DeviceArray:
        """Return (K_beta[idx, idx] + diag(diagonal))^-1 on the device, with a ridge as above."""
        A = square(self.matrix, self._index(idx))
        if len(A):
            A.diagonal().add_(to_device(diagonal, self._device, A.dtype))
            A = torch.cholesky_inverse(self.cholesky(DeviceArray(A), float(self.diag[idx].mean())).L)
        return DeviceArray(A)


class TorchCholesky:
    """A = L L' on the device; solutions come to the host."""

    def __init__(self, L: Tensor) -> None:
        self.L = L

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Return A^-1 rhs, float64, for right-hand sides of shape (n,) or (n, m)."""
        with room_for("right-hand sides", 8.0 * rhs.size, self.L.device):
            B = to_device(rhs, self.L.device, self.L.dtype)
            return like(rhs, torch.cholesky_solve(B.reshape(len(B), -1), self.L).double().reshape(B.shape))


class ConjugateGradients:
    """A^-1 by conjugate gradients on the device, to two digits, which is enough for the steps of Newton's method.

    A is factored where that takes more products than a factorisation costs, about n / 256 of them, and where there are
    more than 256 right-hand sides.
    """

    def __init__(self, A: Tensor) -> None:
        self.A = A
        self.factor: TorchCholesky | None = None

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Return A^-1 rhs, float64, for right-hand sides of shape (n,) or (n, m)."""
        A = self.A
        if self.factor is not None:
            return self.factor.solve(rhs)
        R = to_device(rhs, A.device, A.dtype).reshape(len(A), -1)
        X, D, rr = torch.zeros_like(R), R.clone(), (R * R).sum(0)
        # a quarter of the digits of single precision; of squares, half
        enough = torch.finfo(torch.float32).eps ** 0.5 * rr
        for _ in range(len(A) // ROWS if R.shape[1] <= ROWS else 0):
            AD = A @ D
            length = rr / (D * AD).sum(0)
            # a column that is solved stays
            length = torch.where(rr > enough, length, 0.0)
            X += length * D
            R = R - length * AD
            new = (R * R).sum(0)
            if bool((new <= enough).all()):
                return like(rhs, X.double().reshape(rhs.shape))
            D = R + torch.where(rr > enough, new / rr, 0.0) * D
            rr = new
        L, info = torch.linalg.cholesky_ex(A)
        if int(info):
            return like(rhs, X.double().reshape(rhs.shape))
        self.factor = TorchCholesky(L)
        return self.factor.solve(rhs)
