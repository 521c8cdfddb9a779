"""The scikit-learn face of the library."""

from multikernel.estimators.classifier import MKLClassifier

__all__ = ["MKLClassifier"]
