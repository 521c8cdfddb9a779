"""Kernels k(x, z), their normalisation, and the bank that holds the kernels of one model."""

# One line makes a name public; it is written twice on the line so that linters and type checkers know it is.
from multikernel.kernels.algebra import Power as Power
from multikernel.kernels.algebra import Product as Product
from multikernel.kernels.algebra import Scaled as Scaled
from multikernel.kernels.algebra import Sum as Sum
from multikernel.kernels.approximate import HashedDegree as HashedDegree
from multikernel.kernels.approximate import Nystroem as Nystroem
from multikernel.kernels.approximate import RandomFourier as RandomFourier
from multikernel.kernels.bank import KernelBank as KernelBank
from multikernel.kernels.base import Kernel as Kernel
from multikernel.kernels.base import as_kernel as as_kernel
from multikernel.kernels.base import kernel_name as kernel_name
from multikernel.kernels.class_kernels import OutputKernels as OutputKernels
from multikernel.kernels.class_kernels import pairwise_output_kernels as pairwise_output_kernels
from multikernel.kernels.fitted_normalizer import FittedNormalizer as FittedNormalizer
from multikernel.kernels.function import FunctionKernel as FunctionKernel
from multikernel.kernels.inputs import resolve_columns as resolve_columns
from multikernel.kernels.inputs import take_columns as take_columns
from multikernel.kernels.normalize import check_steps as check_steps
from multikernel.kernels.normalize import learn_normalizer as learn_normalizer
from multikernel.kernels.radial import RBF as RBF
from multikernel.kernels.radial import ChiSquared as ChiSquared
from multikernel.kernels.radial import Laplacian as Laplacian
from multikernel.kernels.radial import Matern as Matern
from multikernel.kernels.sequences import AminoAcidComposition as AminoAcidComposition
from multikernel.kernels.sequences import DegreeBlocks as DegreeBlocks
from multikernel.kernels.sequences import GappedKmer as GappedKmer
from multikernel.kernels.sequences import GappedSpectrum as GappedSpectrum
from multikernel.kernels.sequences import LocalAlignment as LocalAlignment
from multikernel.kernels.sequences import Mismatch as Mismatch
from multikernel.kernels.sequences import PositionBlocks as PositionBlocks
from multikernel.kernels.sequences import Spectrum as Spectrum
from multikernel.kernels.sequences import WeightedDegree as WeightedDegree
from multikernel.kernels.sequences import WeightedDegreeShift as WeightedDegreeShift
from multikernel.kernels.sequences import motif_kernels as motif_kernels
from multikernel.kernels.spec import Family as Family
from multikernel.kernels.spec import PerColumn as PerColumn
from multikernel.kernels.spec import PerGroup as PerGroup
from multikernel.kernels.spec import named_entries as named_entries
from multikernel.kernels.spec import per_column as per_column
from multikernel.kernels.spec import per_group as per_group
from multikernel.kernels.spec import rbf_family as rbf_family
from multikernel.kernels.vectors import Constant as Constant
from multikernel.kernels.vectors import Cosine as Cosine
from multikernel.kernels.vectors import HistogramIntersection as HistogramIntersection
from multikernel.kernels.vectors import Linear as Linear
from multikernel.kernels.vectors import Polynomial as Polynomial
from multikernel.kernels.vectors import Tanimoto as Tanimoto

__all__ = sorted(name for name, value in globals().items() if getattr(value, "__module__", "").startswith(__name__))
