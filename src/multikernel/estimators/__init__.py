"""The scikit-learn face of the library."""

from multikernel.estimators.classifier import MKLClassifier
from multikernel.estimators.discriminant import DiscriminantMKLClassifier
from multikernel.estimators.oneclass import MKLOneClass
from multikernel.estimators.regressor import MKLRegressor

__all__ = ["DiscriminantMKLClassifier", "MKLClassifier", "MKLOneClass", "MKLRegressor"]
