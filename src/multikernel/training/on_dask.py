"""Kernels by rows with the workers of a Dask cluster: computed there from samples, or given as arrays of Dask."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from multikernel.gram.dask import DaskGram
from multikernel.gram.dask_blocks import Blocks, current_client, deal, require_room, send
from multikernel.gram.dask_stack import inspect_blocks
from multikernel.gram.row_block import RowBlock
from multikernel.gram.soundness import require_sound
from multikernel.gram.storage import storage_dtype
from multikernel.kernels.bank import KernelBank, take_rows
from multikernel.kernels.inputs import len_of
from multikernel.kernels.normalize import learn_normalizer
from multikernel.threads import ROWS
from multikernel.training.core import Prepared, Settings
from multikernel.training.prepare import BankSource
from multikernel.training.repair import no_variance, require_definite
from multikernel.training.stacked import StackSource


def prepare_on_workers(bank: KernelBank, samples: Any, weight: np.ndarray | None, settings: Settings) -> Prepared:
    """Return the kernels of a bank on training samples, computed by the workers."""
    client, n, p = current_client(), len_of(samples), bank.n_kernels
    dtype, shares = storage_dtype(p, n), deal(client, n)
    require_room(client, shares, (p + 1.0) * n * dtype.itemsize, settings.memory_limit)
    diag = bank.raw_diags(samples)
    given = _sent(client, bank, samples)
    made = [
        send(client, _computed, given, share.start, share.stop, dtype, workers=[share.worker], allow_other_workers=True)
        for share in shares
    ]
    known_psd = np.array([kernel.positive_semidefinite for kernel in bank.kernels], bool)
    source = BankSource(bank, samples, {}, np.arange(n))
    blocks = Blocks(client, shares, made, p, dtype)
    return _normalised(blocks, diag, None, bank.names, bank.steps, known_psd, source, weight, settings)


def _sent(client: Any, bank: KernelBank, samples: Any) -> Any:
    """Return kernels and samples as a future, or raise where they cannot be sent."""
    from distributed.protocol.pickle import dumps

    for name, kernel in zip(bank.names, bank.kernels, strict=True):
        try:
            dumps(kernel)
        except Exception as error:
            raise ValueError(
                f"The kernel {name!r} must be one that can be pickled for gram='dask', whose workers compute it. "
                f"Got {kernel!r}, which cannot ({error}): give it functions and data without locks, open files or "
                "connections."
            ) from error
    return send(client, _pair, bank, samples)


def _pair(bank: KernelBank, samples: Any) -> tuple[KernelBank, Any]:
    return bank, samples


def _computed(given: tuple[KernelBank, Any], start: int, stop: int, dtype: np.dtype) -> RowBlock:
    """Compute rows of all kernels, some of them at a time."""
    bank, samples = given
    out = np.empty((bank.n_kernels, stop - start, len_of(samples)), dtype)
    for first in range(start, stop, ROWS):
        last = min(first + ROWS, stop)
        for k, K in bank.raw_each(take_rows(samples, slice(first, last)), samples, dtype=dtype):
            out[k, first - start : last - start] = K
    return RowBlock([out], start)


def prepare_arrays(stack: Any, weight: np.ndarray | None, settings: Settings) -> Prepared:
    """Return the kernels of a stack of arrays of Dask, where they are."""
    client = current_client()
    if not hasattr(stack, "row_blocks"):
        raise ValueError(
            "Precomputed kernels must be arrays of Dask for gram='dask', so that no process holds all of them. "
            "Got arrays in memory instead: use gram='dense', or stack_kernels of dask.array.from_array."
        )
    blocks = stack.row_blocks(client, settings.memory_limit)
    found = inspect_blocks(blocks)
    require_sound(found, stack.names)
    known_psd, source = np.zeros(blocks.p, bool), StackSource(stack, False)
    return _normalised(
        blocks, found.diagonal, found, stack.names, settings.normalize, known_psd, source, weight, settings
    )


def _normalised(
    blocks: Blocks, diag: np.ndarray, found: Any, names: Any, steps: Any, known_psd: np.ndarray, source: Any,
    weight: np.ndarray | None, settings: Settings,
) -> Prepared:  # fmt: skip
    """Return raw kernels with their normalisation: factors on the client, or other values with the workers."""
    p, n = blocks.p, blocks.n
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    raw = DaskGram(blocks, diag, np.ones(p), n_threads=settings.n_threads)
    products = raw.apply(share)
    normalizers = tuple(
        learn_normalizer(steps, diag[k], partial(_product, raw, k), weight, name, product=products[k])
        for k, name in enumerate(names)
    )
    constant = no_variance(diag, products, share) | [each.degenerate for each in normalizers]
    if all(each.u is None and each.A is None for each in normalizers):
        scale = np.array([each.scale for each in normalizers])
    else:
        blocks, scale = blocks.replaced(RowBlock.normalise, normalizers), np.ones(p)
        diag = np.array([each.train_diag(d) for each, d in zip(normalizers, diag, strict=True)])
    gram = DaskGram(blocks, diag, scale, n_threads=settings.n_threads)
    if found is not None:
        constant = constant | found.constant
    require_definite(gram, names, known_psd, settings.psd)
    return Prepared(gram, tuple(names), normalizers, weight, source, constant, known_psd)


def _product(raw: DaskGram, k: int, v: np.ndarray) -> np.ndarray:
    """Return K_k v."""
    return raw.apply(v, np.array([k]))[0]
