"""Three classes, two classes and numbers on the same samples, with three kernels and their matrices."""

import numpy as np
from sklearn.datasets import make_classification

from multikernel.kernels import RBF, Linear

N, TEST = 60, 25
X, LABELS = make_classification(N + TEST, 6, n_informative=4, n_redundant=0, n_classes=3, random_state=2)
TWO = np.where(LABELS > 0, "yes", "no")
NUMBERS = X[:, 0] + np.sin(2 * X[:, 1])
KERNELS = [("wide", RBF(gamma=0.05), [0, 1, 2]), ("narrow", RBF(gamma=0.5), slice(None)), ("line", Linear(), [0, 3])]


def gram(A, B):
    return np.stack(
        [
            np.exp(-0.05 * np.square(A[:, None, :3] - B[None, :, :3]).sum(axis=2)),
            np.exp(-0.5 * np.square(A[:, None] - B).sum(axis=2)),
            A[:, [0, 3]] @ B[:, [0, 3]].T,
        ]
    )


FULL = gram(X, X)
STACK, ROWS = FULL[:, :N, :N].copy(), FULL[:, N:, :N].copy()
