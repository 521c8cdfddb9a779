"""The classes that a model file may name.

A file holds short names such as "kernels.RBF", so that a class may move to another module. Loading makes objects of
these classes only and sets their attributes: no initialiser and no code of the file's choosing runs. Public kernels,
losses and estimators are known by being public; every other class is one name below.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

# prefix of the short names -> module -> classes, None for the public classes of the module
_KNOWN: dict[str, dict[str, str | None]] = {
    "estimators": {"multikernel": None},
    "weights": {"multikernel.estimators.baselines": None},
    "kernels": {"multikernel.kernels": None, "multikernel.kernels.sequences": "Alphabet Encoded"},
    "losses": {"multikernel.losses": None},
    "models": {
        "multikernel.kernels.degree_features": "PlaceModel",
        "multikernel.kernels.feature_maps": "FeatureMaps FeatureModel _Matrix",
        "multikernel.kernels.fitted_normalizer": "DivideBy FittedNormalizer RemoveMean UnitDiagonal",
        "multikernel.kernels.views.encoders": "ColumnEncoder TermEncoder",
        "multikernel.kernels.views.preparation": "Donors Preparation",
        "multikernel.kernels.views.reading": "View",
        "multikernel.training.expansion": "ComputedExpansion StackedExpansion Term",
        "multikernel.training.featured": "FeatureExpansion",
        "multikernel.training.mixture": "Mixture",
        "multikernel.training.publish": "GramInfo Model",
        "multikernel.estimators.calibration": "Calibration",
        "multikernel.model_selection.baselines": "MixGain",
        "multikernel.estimators.baselines.learned": "Learned",
        "multikernel.estimators.baselines.linear_features": "LinearFeatures LinearPredictor",
        "multikernel.estimators.baselines.online_blocks": "FeatureBlocks",
        "multikernel.estimators.baselines.two_stage": "MixedPredictor",
    },
    "tables": {"multikernel.cli.table_encoder": "TableEncoder"},
    # scikit-learn's: predictors on a precomputed kernel, what may stand before a model, and folds
    "sklearn": {
        "sklearn.svm": "NuSVC NuSVR SVC SVR",
        "sklearn.kernel_ridge": "KernelRidge",
        "sklearn.compose": "ColumnTransformer make_column_selector",
        "sklearn.impute": "SimpleImputer",
        "sklearn.pipeline": "Pipeline",
        "sklearn.preprocessing": "FunctionTransformer MaxAbsScaler MinMaxScaler OneHotEncoder OrdinalEncoder "
        "RobustScaler StandardScaler",
        "sklearn.model_selection": "GroupKFold KFold LeaveOneOut ShuffleSplit StratifiedGroupKFold StratifiedKFold "
        "StratifiedShuffleSplit",
    },
}
# public, and yet not to be made so: a user's function, what is no part of a model, and samples that are read otherwise
_NEVER = frozenset({"FunctionKernel", "KernelStack", "Views"})


@cache
def classes() -> dict[str, type]:
    """Return every class by its short name; their modules are imported when a file is first written or read."""
    found: dict[str, type] = {}
    for prefix, modules in _KNOWN.items():
        for module, listed in modules.items():
            own: Any = importlib.import_module(module)
            for name in own.__all__ if listed is None else listed.split():
                if isinstance(each := getattr(own, name), type) and name not in _NEVER:
                    found[f"{prefix}.{name.lstrip('_')}"] = each
    return found


@cache
def short_names() -> dict[type, str]:
    """Return the short name of every class, the first of several."""
    return {cls: name for name, cls in reversed(classes().items())}
