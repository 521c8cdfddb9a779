"""Multiple kernel learning with a certificate.

Every exact method of the package is one saddle point over the kernel weights beta and the dual variables a,

    min over beta in B   max over a in A    g(a) - 1/2 sum_k beta_k a' K_k a,

made of three nouns: a Gram (the kernels), a Machine (A and g) and a Mixing (B).

Names are imported when they are first used, so that ``import multikernel`` stays light.

Examples
--------
>>> import multikernel
>>> multikernel.__all__
['DiscriminantMKLClassifier', 'EasyMKLClassifier', 'KernelStack', 'LPBetaClassifier', 'M3KClassifier',
 'M3KClassifierCV', 'MKLClassifier', 'MKLClassifierCV', 'MKLOneClass', 'MKLRegressor', 'MKLRegressorCV',
 'OBSCUREClassifier', 'TwoStageClassifier', 'TwoStageRegressor', 'UFOMKLClassifier', 'Views', '__version__',
 'column_groups', 'load', 'make_views', 'read_gmt', 'save', 'stack_kernels']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multikernel.estimators import (
        DiscriminantMKLClassifier,
        M3KClassifier,
        MKLClassifier,
        MKLOneClass,
        MKLRegressor,
    )
    from multikernel.estimators.baselines import (
        EasyMKLClassifier,
        LPBetaClassifier,
        OBSCUREClassifier,
        TwoStageClassifier,
        TwoStageRegressor,
        UFOMKLClassifier,
    )
    from multikernel.gram.stack import KernelStack, stack_kernels
    from multikernel.kernels.views import Views, column_groups, make_views, read_gmt
    from multikernel.model_selection import M3KClassifierCV, MKLClassifierCV, MKLRegressorCV
    from multikernel.saving import load, save

__version__ = "0.1.0"

__all__ = [
    "DiscriminantMKLClassifier",
    "EasyMKLClassifier",
    "KernelStack",
    "LPBetaClassifier",
    "M3KClassifier",
    "M3KClassifierCV",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLOneClass",
    "MKLRegressor",
    "MKLRegressorCV",
    "OBSCUREClassifier",
    "TwoStageClassifier",
    "TwoStageRegressor",
    "UFOMKLClassifier",
    "Views",
    "__version__",
    "column_groups",
    "load",
    "make_views",
    "read_gmt",
    "save",
    "stack_kernels",
]

# public name -> the module that defines it
_EXPORTS = {
    "DiscriminantMKLClassifier": "multikernel.estimators",
    "EasyMKLClassifier": "multikernel.estimators.baselines",
    "KernelStack": "multikernel.gram.stack",
    "LPBetaClassifier": "multikernel.estimators.baselines",
    "M3KClassifier": "multikernel.estimators",
    "M3KClassifierCV": "multikernel.model_selection",
    "MKLClassifier": "multikernel.estimators",
    "MKLClassifierCV": "multikernel.model_selection",
    "MKLOneClass": "multikernel.estimators",
    "MKLRegressor": "multikernel.estimators",
    "MKLRegressorCV": "multikernel.model_selection",
    "OBSCUREClassifier": "multikernel.estimators.baselines",
    "TwoStageClassifier": "multikernel.estimators.baselines",
    "TwoStageRegressor": "multikernel.estimators.baselines",
    "UFOMKLClassifier": "multikernel.estimators.baselines",
    "Views": "multikernel.kernels.views",
    "column_groups": "multikernel.kernels.views",
    "load": "multikernel.saving",
    "make_views": "multikernel.kernels.views",
    "read_gmt": "multikernel.kernels.views",
    "save": "multikernel.saving",
    "stack_kernels": "multikernel.gram.stack",
}

_SUBMODULES = (
    "datasets",
    "estimators",
    "gram",
    "inspection",
    "kernels",
    "losses",
    "machines",
    "mixing",
    "model_selection",
    "saving",
    "solvers",
    "theory",
    "training",
)


def __getattr__(name: str) -> Any:
    """Import a public name or a submodule at its first use (PEP 562)."""
    if name in _EXPORTS:
        value = getattr(importlib.import_module(_EXPORTS[name]), name)
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        return importlib.import_module(f"multikernel.{name}")
    raise AttributeError(f"module 'multikernel' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names and the submodules."""
    return sorted({*globals(), *__all__, *_SUBMODULES})
