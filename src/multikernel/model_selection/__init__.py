"""Searches over costs, norms and margins that share kernels between the models of a fold, and paths of models."""

from multikernel.model_selection.path import MKLPath, mkl_path
from multikernel.model_selection.searches import M3KClassifierCV, MKLClassifierCV, MKLRegressorCV

__all__ = ["M3KClassifierCV", "MKLClassifierCV", "MKLPath", "MKLRegressorCV", "mkl_path"]
