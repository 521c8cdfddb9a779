"""Estimators that follow scikit-learn's conventions; the methods they are compared with are in `baselines`."""

from multikernel.estimators.classifier import MKLClassifier
from multikernel.estimators.discriminant import DiscriminantMKLClassifier
from multikernel.estimators.m3k import M3KClassifier
from multikernel.estimators.novelty import MKLOneClass
from multikernel.estimators.regressor import MKLRegressor

__all__ = ["DiscriminantMKLClassifier", "M3KClassifier", "MKLClassifier", "MKLOneClass", "MKLRegressor"]
