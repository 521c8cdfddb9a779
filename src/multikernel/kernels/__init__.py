"""Kernels k(x, z), their normalisation, and the bank that holds the kernels of one model."""

from multikernel.kernels.affine import FittedNormalizer
from multikernel.kernels.algebra import Power, Product, Scaled, Sum
from multikernel.kernels.bank import KernelBank
from multikernel.kernels.base import Kernel, as_kernel, kernel_name
from multikernel.kernels.columns import resolve_columns, take_columns
from multikernel.kernels.families import Family, PerColumn, PerGroup, per_column, per_group, rbf_family
from multikernel.kernels.function import FunctionKernel
from multikernel.kernels.normalize import check_steps, learn_normalizer
from multikernel.kernels.radial import RBF, ChiSquared, Laplacian, Matern
from multikernel.kernels.spec import named_entries
from multikernel.kernels.vectors import Constant, Cosine, HistogramIntersection, Linear, Polynomial, Tanimoto

__all__ = [
    "RBF",
    "ChiSquared",
    "Constant",
    "Cosine",
    "Family",
    "FittedNormalizer",
    "FunctionKernel",
    "HistogramIntersection",
    "Kernel",
    "KernelBank",
    "Laplacian",
    "Linear",
    "Matern",
    "PerColumn",
    "PerGroup",
    "Polynomial",
    "Power",
    "Product",
    "Scaled",
    "Sum",
    "Tanimoto",
    "as_kernel",
    "check_steps",
    "kernel_name",
    "learn_normalizer",
    "named_entries",
    "per_column",
    "per_group",
    "rbf_family",
    "resolve_columns",
    "take_columns",
]
