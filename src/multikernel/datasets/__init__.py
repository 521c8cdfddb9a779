"""Data to learn from: the toy problems of the papers, and real data sets read from a folder that the user names."""

from __future__ import annotations

from multikernel.datasets.dna import dna
from multikernel.datasets.generators import (
    make_linear_two_sines,
    make_related_classes,
    make_simplex,
    make_sine,
    make_stars,
)
from multikernel.datasets.loaders import available, load, load_dataset
from multikernel.datasets.redundant import make_redundant_kernels
from multikernel.kernels.sequences.fasta import FastaError, FastaProblem, FastaRecords, fasta_partitions, read_fasta

__all__ = [
    "FastaError",
    "FastaProblem",
    "FastaRecords",
    "available",
    "dna",
    "fasta_partitions",
    "load",
    "load_dataset",
    "make_linear_two_sines",
    "make_redundant_kernels",
    "make_related_classes",
    "make_simplex",
    "make_sine",
    "make_stars",
    "read_fasta",
]
