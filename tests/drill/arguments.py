"""Good arguments of the public callables, and bad ones."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from multikernel import MKLClassifier, kernels

X = np.random.default_rng(0).uniform(size=(12, 4))
Y = np.arange(12) % 2
STACK = np.array([X @ X.T, np.exp(-np.square(X[:, None] - X).sum(2))])
TEXTS = ["ACGTACGTACGT", "ACGTTCGTACGA", "TTTTACGTACGT", "ACCCACGTACGT"] * 3
NAN, NOTHING, WORD = float("nan"), object(), "no such word"

# what no parameter of the library may be, but for the few that take one of these
BAD = (NOTHING, NAN, 1j, WORD)
TAKES = {("error_score", NAN), ("error_score", -1), ("names", WORD), ("coef0", -1), ("value", -1), ("constant", -1),
         ("margin", -1), ("title", WORD), ("recipe", WORD),
         ("slope", -1), ("groups", WORD)}  # fmt: skip
# other names of a parameter in sentences, some of them those of NumPy and scikit-learn
ALIASES = {
    "random_state": "seed", "k1": "kernel", "k2": "kernel", "steps": "normalize", "model": "estimator",
    "dtype": "data type",
    "spec": "kernel", "function": "kernel", "cost": "--C", "kernels": "kernel", "Cs": "'C'", "target": "column",
    "data": "file", "train": "file", "hold_out": "--hold-out",
}  # fmt: skip
# arguments that have no default, by their names in all callables, or by callable
ARGUMENTS: dict[str, Any] = {
    "X_test": X, "y_test": Y,
    "X": X, "y": Y, "stack": STACK, "kernel": kernels.RBF(), "k1": kernels.RBF(), "k2": kernels.Linear(), "exponent": 2,
    "function": lambda A, B: A @ B.T, "groups": [[0, 1], [2, 3]], "steps": "cosine", "spec": [kernels.RBF()],
    "n_classes": 3,
    "scores": np.eye(3), "codes": np.arange(3), "loss": 0.5, "rademacher": 0.1, "c": 3, "n": 20, "gamma": np.ones(2),
    "traces": np.ones(2),
    "gamma0": 0.5, "count": 3, "Lambda": 1.0, "T": 1.0, "margin": 0.5, "kernels": STACK, "estimator": MKLClassifier(),
    "sequences": TEXTS,
    "source": io.StringIO(">a\nACGT\n"),
}  # fmt: skip
DEGREE = kernels.WeightedDegree(3)
OWN_ARGUMENTS: dict[str, dict[str, Any]] = {
    "DegreeBlocks": {"kernel": DEGREE}, "PositionBlocks": {"kernel": DEGREE, "windows": 3},
    "HashedDegree": {"kernel": DEGREE},
    "make_views": {"data": X}, "fasta_partitions": {"paths": ["sequences.fasta"]},
    "mkl_path": {"Cs": [1.0]}, "compare": {"cv": 2, "methods": ["uniform"], "verbose": 0}, "dna": {"n": 20,
    "length": 30},
    "view_importance": {"model": MKLClassifier(), "cv": 2, "n_bootstraps": 2},
    "permutation_test": {"model": MKLClassifier(), "cv": 2, "n_permutations": 2},
    "column_importance": {"model": MKLClassifier(), "n_repeats": 1},
}  # fmt: skip
ROOMS = ("datasets", "kernels", "theory", "inspection", "model_selection", "gram.stack")
# arguments of these are results of the library, or they have none that can be wrong
LEFT_OUT = {"KernelStack", "FastaError", "FastaProblem", "FastaRecords", "load", "load_dataset", "available",
         "learn_normalizer",
            "Family", "Kernel", "KernelBank", "FittedNormalizer", "take_columns", "resolve_columns", "as_kernel",
            "kernel_name", "OutputKernels", "view_of"}  # fmt: skip

BAD_SAMPLES = {
    "X": (None, WORD, NOTHING, 3.0, X * NAN, X * np.inf, X * 1j, X[:0], X[:, :0], X[None, None], [[1.0], [1.0, 2.0]],
    {"a": 1}),
    "y": (None, Y[:5], np.full(12, NAN), np.stack([Y, Y, Y], 1)[None], NOTHING, np.array([1, "a"] * 6, object), 1j * Y),
    "sample_weight": (-np.ones(12), np.full(12, NAN), np.ones(5), np.zeros(12), WORD, NOTHING, np.ones((12, 2)),
    1j * np.ones(12)),
}  # fmt: skip
