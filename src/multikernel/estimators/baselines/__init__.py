"""The methods that multiple kernel learning is compared with; names load at first use.

A weights object has ``fit(stack, y, sample_weight=None)`` and then ``weights_``, one number per kernel, never negative.

Examples
--------
>>> import numpy as np
>>> from multikernel.estimators.baselines import AlignFWeights
>>> x = np.array([-2.0, -1.0, 1.0, 2.0])
>>> AlignFWeights().fit([np.outer(x, x), np.eye(4)], np.sign(x)).weights_.round(3)
array([0.862, 0.507])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multikernel.estimators.baselines.alignment_weights import AlignFWeights, AlignWeights, FHeuristicWeights
    from multikernel.estimators.baselines.easymkl import EasyMKLClassifier
    from multikernel.estimators.baselines.lp_beta import LPBetaClassifier
    from multikernel.estimators.baselines.margin_weights import KernelMarginWeights
    from multikernel.estimators.baselines.obscure import OBSCUREClassifier
    from multikernel.estimators.baselines.pair_weights import BinaryMKLWeights
    from multikernel.estimators.baselines.single_kernel_weights import BestSingleKernel, PWMKWeights
    from multikernel.estimators.baselines.two_stage import TwoStageClassifier, TwoStageRegressor
    from multikernel.estimators.baselines.ufo import UFOMKLClassifier
    from multikernel.estimators.baselines.weights import KernelWeights, UniformWeights

__all__ = [
    "AlignFWeights",
    "AlignWeights",
    "BestSingleKernel",
    "BinaryMKLWeights",
    "EasyMKLClassifier",
    "FHeuristicWeights",
    "KernelMarginWeights",
    "KernelWeights",
    "LPBetaClassifier",
    "OBSCUREClassifier",
    "PWMKWeights",
    "TwoStageClassifier",
    "TwoStageRegressor",
    "UFOMKLClassifier",
    "UniformWeights",
]

# public name -> the module that defines it
_EXPORTS = {
    "AlignFWeights": "alignment_weights",
    "AlignWeights": "alignment_weights",
    "BestSingleKernel": "single_kernel_weights",
    "BinaryMKLWeights": "pair_weights",
    "EasyMKLClassifier": "easymkl",
    "FHeuristicWeights": "alignment_weights",
    "KernelMarginWeights": "margin_weights",
    "KernelWeights": "weights",
    "LPBetaClassifier": "lp_beta",
    "OBSCUREClassifier": "obscure",
    "PWMKWeights": "single_kernel_weights",
    "TwoStageClassifier": "two_stage",
    "TwoStageRegressor": "two_stage",
    "UFOMKLClassifier": "ufo",
    "UniformWeights": "weights",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use (PEP 562)."""
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"multikernel.estimators.baselines.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module 'multikernel.estimators.baselines' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted({*globals(), *__all__})
