"""Three classes in four columns, of which two tell them, and what both online learners are tried on."""

import numpy as np
import pytest
from problems import gaussian

from multikernel import OBSCUREClassifier, UFOMKLClassifier
from multikernel.estimators.baselines.online_run import power_for
from multikernel.kernels import Linear

quiet = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:pnorm with:UserWarning",
    "ignore:Solution may be:UserWarning",
)
BOTH = (UFOMKLClassifier, OBSCUREClassifier)


def draw(n=60, classes=3, seed=0):
    """Two columns that tell the classes, two that do not; one label in ten is wrong."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = np.hstack([np.eye(classes)[y][:, :2] * 2 + 0.6 * rng.normal(size=(n, 2)), rng.normal(size=(n, 2))])
    wrong = rng.random(n) < 0.1
    return X, np.where(wrong, rng.integers(0, classes, n), y)


def stack_of(X):
    kernels = [gaussian(X[:, :2], 1.0), gaussian(X[:, :2], 4.0), gaussian(X[:, 2:], 1.0), gaussian(X[:, 2:], 4.0)]
    return np.array([K / (1.0 - K.mean()) for K in kernels])


X, Y = draw()
K = stack_of(X)
N = len(Y)
NAMED = [("first", Linear(), [0, 1]), ("second", Linear(), slice(1, 4)), ("all", Linear(), slice(None))]


def exponent(p=len(K), r=None):
    q = power_for(p, r)
    return q / (q - 1.0)
