"""Three classes in four columns, three kernels, three splits, and comparisons on them without a bar."""

import numpy as np
from sklearn.model_selection import StratifiedKFold

from multikernel.inspection import compare
from multikernel.kernels import rbf_family

RNG = np.random.default_rng(0)
X = RNG.normal(size=(66, 4))
Y = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=66), [-0.5, 0.5])
WIDTHS = rbf_family([1.0, 4.0, 16.0])
CV = StratifiedKFold(3, shuffle=True, random_state=0)


def quiet(methods=("uniform", "joint"), **options):
    options = {"kernels": WIDTHS, "cv": CV, "verbose": 0, **options}
    return compare(options.pop("X", X), options.pop("y", Y), methods, **options)
