"""Kernels of vectors computed on a device of PyTorch, tile by tile, from samples that lie there.

One table has the formula of each kernel, the second that of each distance. Distances are computed once for all kernels
of a family, in float64 from inner products about the mean of the training samples; exponentials are computed in the
precision in which values are kept. A kernel without a formula (of sequences, of sparse samples, a function of the user)
is computed on the host, and its tiles are copied.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from multikernel.gram.combined import WORKING_SET
from multikernel.gram.device import Tensor, Values, room_for, spans, to_device, torch, torch_dtype
from multikernel.kernels.algebra import Power, Product, Scaled, Sum
from multikernel.kernels.bank import KernelBank, take_rows
from multikernel.kernels.base import ROUNDING, Kernel
from multikernel.kernels.inputs import len_of
from multikernel.kernels.radial import RBF, ChiSquared, Laplacian, Matern
from multikernel.kernels.vectors import Constant, Cosine, HistogramIntersection, Linear, Polynomial, Tanimoto


def _squared(X: Tensor, Z: Tensor) -> Tensor:
    # |x|^2 + |z|^2 - 2 <x, z> as one product
    one, sizes = X.new_ones((1, 1)), (X * X).sum(1, keepdim=True)
    left = torch.cat([-2.0 * X, sizes, one.expand(len(X), 1)], 1)
    right = torch.cat([Z, one.expand(len(Z), 1), (Z * Z).sum(1, keepdim=True)], 1)
    D = left @ right.T
    # the rounding of so many terms: a sample has no distance from itself
    return D.masked_fill_(D <= left.shape[1] * torch.finfo(D.dtype).eps * sizes, 0.0)


def _absolute(X: Tensor, Z: Tensor) -> Tensor:
    D = X.new_zeros((len(X), len(Z)))
    for x, z in zip(X.T, Z.T, strict=True):
        D += (x[:, None] - z).abs_()
    return D


def _chi_squared(X: Tensor, Z: Tensor) -> Tensor:
    D = X.new_zeros((len(X), len(Z)))
    for x, z in zip(X.T, Z.T, strict=True):
        total = x[:, None] + z
        D += (x[:, None] - z).square_().div_(total.masked_fill_(total == 0, 1.0))
    return D


DISTANCES = {"sqeuclidean": _squared, "cityblock": _absolute, "chi2": _chi_squared}


def _cosine(kernel: Kernel, X: Tensor, Z: Tensor) -> Tensor:
    sizes = [V.norm(dim=1, keepdim=True) for V in (X, Z)]
    left, right = (V / size.masked_fill(size == 0, 1.0) for V, size in zip((X, Z), sizes, strict=True))
    return left @ right.T


def _tanimoto(kernel: Kernel, X: Tensor, Z: Tensor) -> Tensor:
    G = X @ Z.T
    union = (X * X).sum(1)[:, None] + (Z * Z).sum(1) - G
    return torch.where(union > 0, G / union.masked_fill(union <= 0, 1.0), 1.0)


def _intersection(kernel: Kernel, X: Tensor, Z: Tensor) -> Tensor:
    # min(a, b) = (a + b - |a - b|) / 2
    return (0.5 * (X.sum(1)[:, None] + Z.sum(1) - _absolute(X, Z))).clamp_(min=0.0)


def _radial(kernel: Any, X: Tensor, Z: Tensor) -> Tensor:
    if kernel._metric != "sqeuclidean":
        return profile(kernel, DISTANCES[kernel._metric](X / kernel.unit_, Z / kernel.unit_))
    center = Z.mean(0)
    X, Z = (X - center) / kernel.unit_, (Z - center) / kernel.unit_
    D = _squared(X, Z)
    # the root of a distance that is rounding would not be small
    return profile(kernel, torch.where(D > ROUNDING * (X * X).sum(1)[:, None], D, 0.0))


FORMULAS: dict[type[Kernel], Callable[[Any, Tensor, Tensor], Tensor]] = {
    Linear: lambda kernel, X, Z: X @ Z.T,
    Polynomial: lambda kernel, X, Z: (kernel.gamma_ * (X @ Z.T) + kernel.coef0) ** kernel.degree,
    Cosine: _cosine,
    Tanimoto: _tanimoto,
    HistogramIntersection: _intersection,
    Constant: lambda kernel, X, Z: X.new_full((len(X), len(Z)), float(kernel.value)),
    RBF: _radial,
    Laplacian: _radial,
    ChiSquared: _radial,
    Matern: _radial,
    Sum: lambda kernel, X, Z: value(kernel.k1_, X, Z) + value(kernel.k2_, X, Z),
    Product: lambda kernel, X, Z: value(kernel.k1_, X, Z) * value(kernel.k2_, X, Z),
    Scaled: lambda kernel, X, Z: kernel.constant * value(kernel.kernel_, X, Z),
    Power: lambda kernel, X, Z: value(kernel.kernel_, X, Z) ** kernel.exponent,
}


def value(kernel: Kernel, X: Tensor, Z: Tensor) -> Tensor:
    """Return a fitted kernel between samples on the device, float64."""
    return FORMULAS[type(kernel)](kernel, X, Z)


def has_formula(kernel: Kernel) -> bool:
    """Whether a fitted kernel can be computed on the device."""
    parts = [getattr(kernel, name) for name in ("k1_", "k2_", "kernel_") if hasattr(kernel, name)]
    if isinstance(kernel, Matern) and kernel.nu not in (0.5, 1.5, 2.5, math.inf):
        return False
    if isinstance(kernel, Power) and not float(kernel.exponent).is_integer():
        # values may be negative, about which the host has a sentence
        return False
    return type(kernel) in FORMULAS and all(has_formula(part) for part in parts)


def rate(kernel: Any) -> float | None:
    """Return r of a kernel exp(-r d), d the distance in units of ``unit_``; None for a kernel that is another."""
    r = None
    if isinstance(kernel, RBF):
        r = kernel.gamma_
        if kernel.unit_ != 1.0:
            r = (kernel.unit_ / kernel.length_) * (kernel.unit_ / kernel.length_)
    elif isinstance(kernel, Laplacian):
        r = kernel.gamma_ * kernel.unit_
    elif isinstance(kernel, Matern) and kernel.nu == math.inf:
        r = 0.5 * (kernel.unit_ / kernel.length_scale_) * (kernel.unit_ / kernel.length_scale_)
    # finite: distances of zero stay zero
    return None if r is None else min(float(r), sys.float_info.max)


def profile(kernel: Any, D: Tensor) -> Tensor:
    """Return the values of a radial kernel at distances in units of ``unit_``."""
    r = rate(kernel)
    if r is not None:
        return torch.exp(-r * D)
    t = D.sqrt() * (math.sqrt(2 * kernel.nu) * (kernel.unit_ / kernel.length_scale_))
    front = {0.5: 1.0, 1.5: 1.0 + t}.get(kernel.nu)
    return (1 + t + t * t / 3 if front is None else front) * torch.exp(-t)


class DeviceSamples:
    """Samples on a device: a float64 matrix for each choice of columns, and the samples of the host beside them.

    Parameters
    ----------
    bank : KernelBank
        Fitted kernels, each with the columns it sees.
    X : samples
        Valid samples.
    device : torch.device
        Where to.
    """

    def __init__(self, bank: KernelBank, X: Any, device: Any) -> None:
        self.bank, self.device, self.host, self.n = bank, device, X, len_of(X)
        self.index: np.ndarray | None = None
        self.parts: dict[Hashable, Tensor] = {}
        self.formulas = []
        for k, kernel in enumerate(bank.kernels):
            own = kernel._check(bank.select(k, X)) if has_formula(kernel) else None
            self.formulas.append(isinstance(own, np.ndarray) and own.dtype == np.float64)
            if self.formulas[k] and bank.columns[k] not in self.parts:
                self.parts[bank.columns[k]] = to_device(own, device)

    def take(self, idx: Any) -> DeviceSamples:
        """Return some of the samples: an index tensor, an index array or a slice."""
        other = object.__new__(DeviceSamples)
        other.__dict__.update(self.__dict__)
        own: Any = idx
        if isinstance(idx, np.ndarray):
            idx = to_device(idx.astype(np.int64), self.device)
        other.parts = {columns: X[idx] for columns, X in self.parts.items()}
        if not all(self.formulas):
            own = own.cpu().numpy() if torch.is_tensor(own) else own
            other.index = np.arange(self.n)[own] if self.index is None else self.index[own]
        other.n = len(range(*idx.indices(self.n))) if isinstance(idx, slice) else len(idx)
        return other

    def on_host(self) -> Any:
        """Return the same samples on the host."""
        return self.host if self.index is None else take_rows(self.host, self.index)


def raw_tiles(
    kernels: Sequence[int], left: DeviceSamples, right: DeviceSamples, centers: dict, dtype: Any
) -> Iterator[tuple[list[int], Tensor]]:
    """Yield (numbers of kernels, raw values of shape (b, m, w)), kernels that share distances together.

    ``centers`` has for each choice of columns a point amid the samples, from which distances are computed.
    """
    bank, rest = left.bank, []
    groups: dict[Any, list[int]] = {}
    for k in kernels:
        kernel = bank.kernels[k]
        if not left.formulas[k]:
            rest.append(k)
        elif rate(kernel) is not None and kernel._metric in DISTANCES:
            groups.setdefault((bank.columns[k], kernel._sharing_key()), []).append(k)
        else:
            X, Z = left.parts[bank.columns[k]], right.parts[bank.columns[k]]
            yield [k], value(kernel, X, Z).to(dtype)[None]
    for (columns, (metric, unit)), members in groups.items():
        X, Z = left.parts[columns], right.parts[columns]
        if metric == "sqeuclidean":
            X, Z = X - centers[columns], Z - centers[columns]
        D = DISTANCES[metric](X / unit if unit != 1.0 else X, Z / unit if unit != 1.0 else Z)
        rates = np.array([rate(bank.kernels[k]) for k in members])
        near = rates.min() > rates.max() * np.sqrt(np.finfo(np.float32).tiny)
        # exponents of the first kernel are of moderate size, and near them those of the others: a lower precision
        # keeps their digits
        D = D.mul_(-float(rates[0])).to(dtype) if near else D.neg_()
        factors = torch.as_tensor(rates / rates[0] if near else rates, dtype=D.dtype, device=D.device)
        # as many kernels at once as there are entries in a tile
        for some in spans(len(members), WORKING_SET**2 // max(1, D.numel())):
            exponents = D[None] if near and len(members) == 1 else D * factors[some, None, None]
            yield members[some], exponents.exp_().to(dtype)
    if rest:
        for k, K in bank.raw_each(left.on_host(), right.on_host(), rest):
            yield [k], to_device(np.ascontiguousarray(K), left.device, dtype)[None]


class ComputedValues(Values):
    """Raw kernels of a bank, computed on the device whenever they are read.

    Parameters
    ----------
    samples : DeviceSamples
        The training samples.
    diag : ndarray of shape (p, n)
        Raw diagonals.
    dtype : numpy.dtype
        Precision of the values.
    """

    stored = False

    def __init__(self, samples: DeviceSamples, diag: np.ndarray, dtype: np.dtype, kernels: Any = None) -> None:
        self.samples, self._diag, self.dtype = samples, diag, np.dtype(dtype)
        self.kernels = np.arange(len(diag)) if kernels is None else kernels
        self.n_kernels, self.n_samples, self.device = len(self.kernels), samples.n, samples.device
        self.centers = {columns: X.mean(0) for columns, X in samples.parts.items()}

    def tiles(self, kernels, rows, cols):
        place = {int(self.kernels[k]): k for k in kernels}
        left, right = self.samples.take(rows), self.samples.take(cols)
        for members, tile in raw_tiles(list(place), left, right, self.centers, torch_dtype(self.dtype)):
            yield [place[k] for k in members], tile

    def diag(self):
        return self._diag

    def take_samples(self, idx):
        idx = np.asarray(idx)
        return ComputedValues(self.samples.take(idx), self._diag[:, idx], self.dtype, self.kernels)

    def take_kernels(self, kernels):
        return ComputedValues(self.samples, self._diag[kernels], self.dtype, self.kernels[kernels])

    def store(self) -> list[Tensor]:
        """Return all kernels as symmetric matrices on the device, each value computed once."""
        n, dtype, side = self.n_samples, torch_dtype(self.dtype), WORKING_SET
        size = self.n_kernels * n * n * self.dtype.itemsize
        with room_for(f"{self.n_kernels} kernels on {n} samples", size, self.device):
            out = [torch.empty((n, n), dtype=dtype, device=self.device) for _ in range(self.n_kernels)]
            every = torch.arange(n, device=self.device)
            for rows in spans(n, side):
                for cols in spans(n - rows.start, side):
                    there = slice(rows.start + cols.start, rows.start + cols.stop)
                    for members, tile in self.tiles(range(self.n_kernels), every[rows], there):
                        for k, K in zip(members, tile, strict=True):
                            if there.start == rows.start:
                                K = torch.tril(K) + torch.tril(K, -1).T
                            out[k][rows, there] = K
                            out[k][there, rows] = K.T
        return out
