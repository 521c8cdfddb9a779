"""Searches over costs, norms and margins that share kernels between the models of a fold."""

from multikernel.model_selection.m3k_search import M3KClassifierCV
from multikernel.model_selection.searches import MKLClassifierCV, MKLRegressorCV

__all__ = ["M3KClassifierCV", "MKLClassifierCV", "MKLRegressorCV"]
