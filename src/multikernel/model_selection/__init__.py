"""Searches over costs, norms and margins that share kernels between the models of a fold."""

from multikernel.model_selection.searches import M3KClassifierCV, MKLClassifierCV, MKLRegressorCV

__all__ = ["M3KClassifierCV", "MKLClassifierCV", "MKLRegressorCV"]
