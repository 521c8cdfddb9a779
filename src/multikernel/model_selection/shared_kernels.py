"""Kernels that all folds of a search share: raw values of kernels that learn nothing, and a stack that was examined.

Raw values of a kernel without learned parameters are the same in every fold: those of a stack lie in the caller's
memory, those of fixed kernels are computed once between all samples, and a fold takes its rows and columns. Widths and
normalisations are learned on the training samples of the fold, once for the whole grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from multikernel.estimators.splits import Split
from multikernel.gram.storage import default_limit, parse_bytes, storage_dtype
from multikernel.kernels.bank import KernelBank, compute_tiles
from multikernel.kernels.base import as_kernel
from multikernel.kernels.spec import expand_entries
from multikernel.threads import Team
from multikernel.training.core import Settings
from multikernel.training.prepare import Shared, as_numbers


def share_kernels(kernels: Any, X: Any, splits: Sequence[Split], settings: Settings) -> Shared:
    """Compute the kernels that learn nothing from samples, once, between all samples.

    Parameters
    ----------
    kernels : "rbf", kernel or list
        What the user wrote.
    X : samples
        All samples.
    splits : sequence of (train, test)
        The folds.
    settings : Settings
        Storage, memory, threads.

    Returns
    -------
    Shared
        Empty where kernels are not kept in memory, where there is no room for them beside those of a fold or of the
        last training, or where a kernel fails: then each fold says so in its own words.
    """
    if settings.gram not in ("auto", "dense"):
        return Shared()
    every = expand_entries(kernels, X)
    entries = [entry for entry in every if not as_kernel(entry[1])._learns()]
    n, p = _num_samples(X), len(entries)
    dtype = storage_dtype(p, n)

    def in_use(m: int) -> int:
        """Bytes of all kernels on m samples, and of the combined one."""
        return (len(every) + 1) * m * m * storage_dtype(len(every), m).itemsize

    limit = default_limit() if settings.memory_limit is None else parse_bytes(settings.memory_limit)
    room = limit - max(in_use(max(len(train) for train, _ in splits)), in_use(n))
    if not p or p * n * n * dtype.itemsize > room:
        return Shared()
    stack = np.empty((p, n, n), dtype)
    try:
        bank = KernelBank.fit([(f"kernel {j}", kernel, columns) for j, (_, kernel, columns) in enumerate(entries)], X)
        compute_tiles(bank, as_numbers(X), range(p), np.zeros(n), Team(settings.n_threads), list(stack))
    except Exception:
        return Shared()
    names = [name for name, _, _ in entries]
    return Shared(stack, {key: j for j, key in enumerate(zip(names, bank.columns, strict=True))})
