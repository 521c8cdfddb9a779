"""Weights first, predictor second: what learns weights from kernels and targets alone; names load at first use.

A weights object has ``fit(stack, y, sample_weight=None)`` and then ``weights_``, one number per kernel, never negative.

Examples
--------
>>> import numpy as np
>>> from multikernel.twostage import AlignFWeights
>>> x = np.array([-2.0, -1.0, 1.0, 2.0])
>>> AlignFWeights().fit([np.outer(x, x), np.eye(4)], np.sign(x)).weights_.round(3)
array([0.862, 0.507])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multikernel.twostage.align import AlignFWeights, AlignWeights, FHeuristicWeights
    from multikernel.twostage.base import KernelWeights
    from multikernel.twostage.margin import KernelMarginWeights
    from multikernel.twostage.pairs import BinaryMKLWeights
    from multikernel.twostage.single import BestSingleKernel, PWMKWeights
    from multikernel.twostage.uniform import UniformWeights

__all__ = [
    "AlignFWeights",
    "AlignWeights",
    "BestSingleKernel",
    "BinaryMKLWeights",
    "FHeuristicWeights",
    "KernelMarginWeights",
    "KernelWeights",
    "PWMKWeights",
    "UniformWeights",
]

# public name -> the module that defines it
_EXPORTS = {
    "AlignFWeights": "align",
    "AlignWeights": "align",
    "BestSingleKernel": "single",
    "BinaryMKLWeights": "pairs",
    "FHeuristicWeights": "align",
    "KernelMarginWeights": "margin",
    "KernelWeights": "base",
    "PWMKWeights": "single",
    "UniformWeights": "uniform",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use (PEP 562)."""
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"multikernel.twostage.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module 'multikernel.twostage' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted({*globals(), *__all__})
