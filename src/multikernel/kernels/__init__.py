"""Kernels k(x, z), their normalisation, and the bank that holds the kernels of one model."""

from multikernel.kernels.algebra import Power, Product, Scaled, Sum
from multikernel.kernels.approximate import HashedDegree, Nystroem, RandomFourier
from multikernel.kernels.bank import KernelBank
from multikernel.kernels.base import Kernel, as_kernel, kernel_name
from multikernel.kernels.class_kernels import OutputKernels, pairwise_output_kernels
from multikernel.kernels.fitted_normalizer import FittedNormalizer
from multikernel.kernels.function import FunctionKernel
from multikernel.kernels.inputs import resolve_columns, take_columns
from multikernel.kernels.normalize import check_steps, learn_normalizer
from multikernel.kernels.radial import RBF, ChiSquared, Laplacian, Matern
from multikernel.kernels.sequences import (
    AminoAcidComposition,
    DegreeBlocks,
    GappedKmer,
    GappedSpectrum,
    LocalAlignment,
    Mismatch,
    PositionBlocks,
    Spectrum,
    WeightedDegree,
    WeightedDegreeShift,
    motif_kernels,
)
from multikernel.kernels.spec import Family, PerColumn, PerGroup, named_entries, per_column, per_group, rbf_family
from multikernel.kernels.vectors import Constant, Cosine, HistogramIntersection, Linear, Polynomial, Tanimoto

__all__ = [
    "RBF",
    "AminoAcidComposition",
    "ChiSquared",
    "Constant",
    "Cosine",
    "DegreeBlocks",
    "Family",
    "FittedNormalizer",
    "FunctionKernel",
    "GappedKmer",
    "GappedSpectrum",
    "HashedDegree",
    "HistogramIntersection",
    "Kernel",
    "KernelBank",
    "Laplacian",
    "Linear",
    "LocalAlignment",
    "Matern",
    "Mismatch",
    "Nystroem",
    "OutputKernels",
    "PerColumn",
    "PerGroup",
    "Polynomial",
    "PositionBlocks",
    "Power",
    "Product",
    "RandomFourier",
    "Scaled",
    "Spectrum",
    "Sum",
    "Tanimoto",
    "WeightedDegree",
    "WeightedDegreeShift",
    "as_kernel",
    "check_steps",
    "kernel_name",
    "learn_normalizer",
    "motif_kernels",
    "named_entries",
    "pairwise_output_kernels",
    "per_column",
    "per_group",
    "rbf_family",
    "resolve_columns",
    "take_columns",
]
