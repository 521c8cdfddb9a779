"""The p Gram matrices of a problem as one operator, one file per kind of storage; names load at first use.

Examples
--------
>>> from multikernel.gram import choose_storage
>>> choose_storage(p=3, n=100, itemsize=8)
'dense'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multikernel.gram.base import Gram
    from multikernel.gram.dense import AffineForm, DenseGram
    from multikernel.gram.lazy import LazyGram
    from multikernel.gram.memmap import MemmapGram
    from multikernel.gram.stack import KernelStack, stack_kernels
    from multikernel.gram.storage import TorchStorage, choose_storage
    from multikernel.gram.subset import SubsetGram

__all__ = [
    "AffineForm",
    "DenseGram",
    "Gram",
    "KernelStack",
    "LazyGram",
    "MemmapGram",
    "SubsetGram",
    "TorchStorage",
    "choose_storage",
    "stack_kernels",
]

# public name -> the module that defines it
_EXPORTS = {
    "AffineForm": "dense",
    "DenseGram": "dense",
    "Gram": "base",
    "KernelStack": "stack",
    "LazyGram": "lazy",
    "MemmapGram": "memmap",
    "SubsetGram": "subset",
    "TorchStorage": "storage",
    "choose_storage": "storage",
    "stack_kernels": "stack",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use (PEP 562)."""
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"multikernel.gram.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module 'multikernel.gram' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted({*globals(), *__all__})
