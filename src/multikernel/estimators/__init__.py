"""The scikit-learn face of the library."""

from multikernel.estimators.classifier import MKLClassifier
from multikernel.estimators.discriminant import DiscriminantMKLClassifier
from multikernel.estimators.easymkl import EasyMKLClassifier
from multikernel.estimators.lpbeta import LPBetaClassifier
from multikernel.estimators.m3k import M3KClassifier
from multikernel.estimators.m3k_search import M3KClassifierCV
from multikernel.estimators.obscure import OBSCUREClassifier
from multikernel.estimators.oneclass import MKLOneClass
from multikernel.estimators.regressor import MKLRegressor
from multikernel.estimators.search import MKLClassifierCV, MKLRegressorCV
from multikernel.estimators.twostage import TwoStageClassifier, TwoStageRegressor
from multikernel.estimators.ufo import UFOMKLClassifier

__all__ = [
    "DiscriminantMKLClassifier",
    "EasyMKLClassifier",
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
]
