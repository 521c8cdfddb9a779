"""Kernels on sequences: DNA, RNA, proteins, or texts over any alphabet."""

from multikernel.kernels.sequences.alignment import LocalAlignment
from multikernel.kernels.sequences.alphabet import DNA, PROTEIN, RNA, Alphabet
from multikernel.kernels.sequences.blocks import DegreeBlocks, PositionBlocks
from multikernel.kernels.sequences.composition import AminoAcidComposition
from multikernel.kernels.sequences.degree import WeightedDegree, WeightedDegreeShift
from multikernel.kernels.sequences.encode import Encoded, encode
from multikernel.kernels.sequences.spectrum import GappedKmer, GappedSpectrum, Mismatch, Spectrum, motif_kernels

__all__ = [
    "DNA",
    "PROTEIN",
    "RNA",
    "Alphabet",
    "AminoAcidComposition",
    "DegreeBlocks",
    "Encoded",
    "GappedKmer",
    "GappedSpectrum",
    "LocalAlignment",
    "Mismatch",
    "PositionBlocks",
    "Spectrum",
    "WeightedDegree",
    "WeightedDegreeShift",
    "encode",
    "motif_kernels",
]
