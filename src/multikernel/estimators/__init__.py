"""The scikit-learn face of the library."""

from multikernel.estimators.classifier import MKLClassifier
from multikernel.estimators.discriminant import DiscriminantMKLClassifier
from multikernel.estimators.oneclass import MKLOneClass
from multikernel.estimators.regressor import MKLRegressor
from multikernel.estimators.search import MKLClassifierCV, MKLRegressorCV

__all__ = [
    "DiscriminantMKLClassifier",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLOneClass",
    "MKLRegressor",
    "MKLRegressorCV",
]
