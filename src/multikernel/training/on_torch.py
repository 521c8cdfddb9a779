"""Kernels on a device of PyTorch: computed there from samples, or given as tensors, and predictions there.

Where all kernels fit they are stored; where only the combined kernel fits they are computed whenever they are read.
Normalisations are affine views, as for kernels in memory. What comes to the host are vectors and small blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from multikernel.gram.combined import WORKING_SET
from multikernel.gram.definite import smallest_eigenvalue_ratio
from multikernel.gram.device import StoredValues, find_device, fits, spans, to_device, to_host, torch
from multikernel.gram.soundness import indefinite_error, require_sound
from multikernel.gram.storage import TorchStorage, storage_dtype
from multikernel.gram.tensors import TensorStack, inspect_tensors
from multikernel.gram.torch import TorchGram
from multikernel.kernels.bank import KernelBank
from multikernel.kernels.inputs import len_of
from multikernel.kernels.normalize import learn_normalizer
from multikernel.kernels.on_device import ComputedValues, DeviceSamples, raw_tiles
from multikernel.training.core import Prepared, Settings
from multikernel.training.expansion import ComputedExpansion
from multikernel.training.prepare import BankSource
from multikernel.training.repair import affine_form, no_variance, refuse_repair, require_definite
from multikernel.training.stacked import StackSource


def storage_of(settings: Settings) -> TorchStorage:
    """Return the storage asked for, as an object."""
    return settings.gram if isinstance(settings.gram, TorchStorage) else TorchStorage()


def prepare_on_device(bank: KernelBank, samples: Any, weight: np.ndarray | None, settings: Settings) -> Prepared:
    """Return the kernels of a bank on training samples, computed on the device."""
    device, n, p = find_device(storage_of(settings)), len_of(samples), bank.n_kernels
    diag = bank.raw_diags(samples)
    dtype = storage_dtype(p, n, diag.max(axis=1))
    stored = fits(p, n, dtype.itemsize, device, settings.memory_limit)
    values: Any = ComputedValues(DeviceSamples(bank, samples, device), diag, dtype)
    if stored:
        values = StoredValues(values.store())
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    raw = TorchGram(values, n_threads=settings.n_threads)
    products = raw.apply(share)
    known_psd = np.array([kernel.positive_semidefinite for kernel in bank.kernels], bool)
    normalizers = tuple(
        learn_normalizer(bank.steps, diag[k], partial(_product, raw, k), weight, name, product=products[k])
        for k, name in enumerate(bank.names)
    )
    constant = no_variance(diag, products, share) | [each.degenerate for each in normalizers]
    gram = TorchGram(values, affine_form(normalizers), n_threads=settings.n_threads)
    require_definite(gram, bank.names, known_psd, settings.psd)
    source = DeviceSource(bank, samples, {}, np.arange(n), str(device))
    return Prepared(gram, tuple(bank.names), normalizers, weight, source, constant, known_psd)


def _product(raw: TorchGram, k: int, v: np.ndarray) -> np.ndarray:
    """Return K_k v."""
    return raw.apply(v, np.array([k]))[0]


def prepare_tensors(stack: Any, weight: np.ndarray | None, settings: Settings) -> Prepared:
    """Return the kernels of a stack: of tensors, where they lie; of arrays, copied to the device."""
    p = stack.shape[2]
    if isinstance(stack, TensorStack):
        device = stack.device
        if settings.gram not in ("auto", "torch") and not isinstance(settings.gram, TorchStorage):
            raise ValueError(
                f"The 'gram' parameter of {settings.owner} must be 'auto', 'torch' or a TorchStorage for kernels given "
                f"as tensors. Got {settings.gram!r} instead: arrays of NumPy are kept on the host."
            )
        wanted = storage_of(settings).device
        if wanted != "auto" and find_device(TorchStorage(wanted)) != device:
            raise ValueError(
                f"The 'device' of TorchStorage must be that of the kernels, '{device}'. Got {wanted!r} instead."
            )
        fits(p, len(stack), stack.dtype.itemsize, device, settings.memory_limit, given=stack.in_place)
        values = StoredValues(stack.train_tensors(), owned=not stack.in_place)
    else:
        device = find_device(storage_of(settings))
        if not fits(p, len(stack), stack.dtype.itemsize, device, settings.memory_limit):
            raise MemoryError(
                f"{p} precomputed kernels on {len(stack)} samples do not fit on {device}: use fewer kernels or "
                "samples, a larger 'memory_limit', or gram='dense'."
            )
        values = StoredValues([to_device(np.ascontiguousarray(K), device) for K in stack.train_kernels()])
    found = inspect_tensors(values.matrices)
    require_sound(found, stack.names)
    raw = TorchGram(values, n_threads=settings.n_threads)
    if found.indefinite.any():
        if settings.psd != "error":
            raise refuse_repair(settings.psd, "torch")
        product = partial(_product, raw, int(np.argmax(found.indefinite)))
        ratio = smallest_eigenvalue_ratio(LinearOperator((len(stack), len(stack)), product, dtype=np.float64))
        raise indefinite_error(stack.names, found.indefinite, ratio, "torch")
    require_definite(raw, stack.names, np.zeros(p, bool), settings.psd)
    n = len(stack)
    normalizers = tuple(
        learn_normalizer(
            settings.normalize, found.diagonal[k], partial(_product, raw, k), weight, stack.names[k],
            product=found.row_sums[k] / n if weight is None else None,
        )
        for k in range(p)
    )  # fmt: skip
    flat = no_variance(found.diagonal, found.row_sums / n, np.full(n, 1.0 / n))
    constant = flat | found.constant | [each.degenerate for each in normalizers]
    gram = TorchGram(values, affine_form(normalizers), n_threads=settings.n_threads)
    source = StackSource(stack, False)
    return Prepared(gram, tuple(stack.names), normalizers, weight, source, constant, np.zeros(p, bool))


@dataclass(frozen=True)
class DeviceSource(BankSource):
    """Kernels of a bank, whose models predict on the device."""

    device: str

    def expansion(self, terms, offset, active, kept):
        plain = super().expansion(terms, offset, active, kept)
        return DeviceExpansion(terms, offset, active, kept, plain.bank, plain.samples, self.device)


@dataclass(frozen=True)
class DeviceExpansion(ComputedExpansion):
    """Outputs computed on the device; on the host where the device is not there, or test rows are normalised."""

    device: str

    def evaluate(self, X, n_threads=1):
        if any(term.normalizer is not None for term in self.terms):
            return super().evaluate(X, n_threads)
        try:
            device = find_device(TorchStorage(self.device))
        except (ImportError, ValueError):
            return super().evaluate(X, n_threads)
        kept, new = DeviceSamples(self.bank, self.samples, device), DeviceSamples(self.bank, X, device)
        centers = {columns: V.mean(0) for columns, V in kept.parts.items()}
        # kernels that share their coefficients share them there as well
        columns = {id(term.columns): to_device(term.columns, device, torch.float64) for term in self.terms}
        factors = [to_device(np.asarray(term.factors), device, torch.float64) for term in self.terms]
        out = np.tile(self.offset, (new.n, 1))
        for rows in spans(new.n, max(1, WORKING_SET**2 // max(1, kept.n))):
            part = torch.zeros((rows.stop - rows.start, out.shape[1]), dtype=torch.float64, device=device)
            for members, tile in raw_tiles(range(len(factors)), new.take(rows), kept, centers, torch.float64):
                for j, K in zip(members, tile, strict=True):
                    part += factors[j] * (K @ columns[id(self.terms[j].columns)])
            out[rows] += to_host(part)
        return out
