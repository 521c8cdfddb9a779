"""The scikit-learn face of the library."""

from multikernel.estimators.classifier import MKLClassifier
from multikernel.estimators.oneclass import MKLOneClass
from multikernel.estimators.regressor import MKLRegressor

__all__ = ["MKLClassifier", "MKLOneClass", "MKLRegressor"]
