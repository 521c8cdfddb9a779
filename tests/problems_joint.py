"""Random joint problems of several classes, and samples with three kernels for the estimators."""

import numpy as np
from problems import KINDS

from multikernel.gram.dense import DenseGram
from multikernel.kernels import RBF, Linear
from multikernel.machines.joint.crammer_singer import CrammerSinger
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Problem
from multikernel.solve import solve

NORMS = (1.0, 4 / 3, 2.0, np.inf)


def draw(index, seed=3, n=None, norm=None, fit_intercept=None):
    """Problem number ``index``: stack, classes, C, norm, number of classes, whether there are biases."""
    rng = np.random.default_rng([seed, index])
    c = 2 + index % 5
    n = max(c, int(np.exp(rng.uniform(np.log(6), np.log(61))))) if n is None else n
    C = float(10.0 ** rng.uniform(-2, 2))
    X = rng.normal(size=(n, 6))
    y = np.argsort(np.argsort(X[:, 0] + 0.5 * rng.normal(size=n))) * c // n
    stack = np.array(KINDS[list(KINDS)[index % len(KINDS)]][0](X, int(rng.integers(1, 6)), rng))
    stack = (stack + stack.transpose(0, 2, 1)) / 2
    norm = NORMS[index % 4] if norm is None else norm
    return stack, y, C, norm, c, bool(index // 2 % 2) if fit_intercept is None else fit_intercept


def run(stack, y, C, norm, c, fit_intercept, solver="auto", tol=1e-6):
    machine = CrammerSinger(y, C, fit_intercept, c)
    return solve(Problem(DenseGram(stack), machine, mixing_for(norm)), solver, tol=tol)


def toy(n=90, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return np.eye(classes, 4)[y] * 1.5 + 0.6 * rng.normal(size=(n, 4)), np.array(["red", "green", "blue", "grey"])[y]


KERNELS = [("few", Linear(), [0, 1]), ("wide", RBF(gamma=0.2), slice(None)), ("noise", RBF(gamma=5.0), [3])]
