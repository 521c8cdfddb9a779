"""Two classes in four columns, three kernels on them, and the steps that normalise them."""

import numpy as np

from multikernel.kernels import RBF, KernelBank, Linear

KERNELS = [
    ("wide", RBF(width=8.0), slice(0, 2)),
    ("narrow", RBF(width=1.0), [0, 1]),
    ("linear", Linear(), [2, 3]),
]
TIGHT = {"tol": 1e-10, "max_iter": 2000}
STEPS = [
    None,
    "variance",
    "trace",
    "cosine",
    "center",
    ["cosine", "center"],
    ["center", "variance"],
    ["center", "cosine"],
]


def two_classes(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 + 0.5 * X[:, 2] + 0.3 * rng.normal(size=n) > 1.5, "far", "near")
    return X, y


def raw_stack(X, Z=None):
    bank = KernelBank.fit(KERNELS, X)
    return np.array([bank.raw(k, X if Z is None else Z, X) for k in range(3)])


X, Y = two_classes()
X_TEST, _ = two_classes(40, seed=1)
