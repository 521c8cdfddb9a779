"""Kernels that know the classes more or less well, and their margins."""

import numpy as np
import pytest

from multikernel.gram.dense import DenseGram
from multikernel.mixing import margin_table

# general solvers call an answer inexact that is not exact to 1e-10; what they are worth is checked by their own proofs
inexact = pytest.mark.filterwarnings("ignore:Solution may be inaccurate")

# problems of test_joint with at least three kernels and a positive margin for every norm: 2 to 6 classes
INDICES = (5, 1, 2, 23, 4)


def views(n=60, c=3, p=5, seed=0):
    """Kernels on views of the samples that know the classes more or less well; unit diagonals."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % c
    stack = []
    for k in range(p):
        X = rng.normal(size=(n, 4)) + 0.5 * k * rng.normal(size=(c, 4))[y]
        stack.append(np.exp(-np.square(X[:, None] - X).sum(axis=2) / 8.0))
    return np.array(stack), y


def table_of(stack, y, c=None, weight=None):
    return margin_table(DenseGram(stack), y, weight, c)
