"""Extreme parameters and samples that are allowed: a sound model, or one sentence, and nothing from below."""

from __future__ import annotations

import numpy as np

from drill import Kind
from drill.fits import ESTIMATORS, draw_samples, evaluate, fit, foreign_warnings, make, unclear, unsound, where
from multikernel.kernels import RBF, Laplacian, Linear, Polynomial

# allowed values at the edges, for the estimators that have the parameter
VALUES = {
    "C": (5e-324, 1e-300, 1e-100, 1e-12, 1e6, 1e12, 1e100, 1e300),
    "tol": (1e-300, 1e-15, 1e-12, 0.999, 1e3, 1e300),
    "norm": (1.0, 1 + 1e-12, 1.0001, 50.0, 1e6, 1e300, np.inf),
    "epsilon": (0.0, 5e-324, 1e-300, 1e12, 1e300),
    "nu": (5e-324, 1e-300, 1e-6, 1 - 1e-16, 1.0),
    "lam": (0.0, 1e-300, 1e-12, 1 - 1e-12, 1.0),
    "reg": (1e-300, 1e-100, 1e12, 1e300),
    "max_iter": (1, 2, 10**9),
    "gamma0_fraction": (0.0, 1e-300, 1 - 1e-16, 1.0),
    "memory_limit": (1, "1B", 1e5, 1e300),
    "n_neighbors": (1, 10**6),
    "solver": ("newton", "active-set", "silp", "sip", "level", "alternating", "simplemkl", "interleaved", "qcqp"),
    "normalize": (None, "cosine", "center", "trace", ["center", "cosine", "variance"], []),
    "psd": ("clip", "shift", "flip"),
    "gram": ("dense", "lazy", "memmap"),
    "kernels": (
        [Linear()], [RBF(gamma=1e-300), RBF(gamma=1e300)], [RBF(width=1e-300), RBF(width=1e300)], [Polynomial(30)],
        [Laplacian(1e12), Linear()], [Linear()] * 40,
    ),
    "loss": (
        "squared", "squared_hinge", "smooth_hinge", "logistic", "multinomial", "huber", "logcosh",
        "epsilon_insensitive",
    ),
}  # fmt: skip


def tiny(X, y, rng):
    """As few samples as there can be: two, of different classes."""
    ends = [0, -1] if y is None else np.unique(y, return_index=True)[1][:2]
    return X[ends], None if y is None else y[ends]


def same(X, y, rng):
    """All samples equal."""
    return np.repeat(X[:1], len(X), axis=0), y


def unbalanced(X, y, rng):
    """All samples but one in one class, or all targets but one equal."""
    other = None if y is None else np.where(np.arange(len(y)) == rng.integers(len(y)), y.max(), y.min())
    return X, other


def far(X, y, rng):
    """Samples far away from zero: distances lose digits."""
    return X + 1e12, y


def huge(X, y, rng):
    """Samples whose squares overflow."""
    return X * 1e160, y


def small(X, y, rng):
    """Samples whose squares underflow."""
    return X * 1e-170, y


def mixed(X, y, rng):
    """Columns of very different scales."""
    return X * np.array([1e-100, 1e-8, 1.0, 1e100]), y


def spread(X, y, rng):
    """One sample far from all others."""
    X = X.copy()
    X[rng.integers(len(X))] *= 1e100
    return X, y


def large_targets(X, y, rng):
    """Numbers of any size as targets, or class labels near the largest integers."""
    if y is None:
        return X, y
    return X, (y * 10.0 ** rng.uniform(-300, 300) if y.dtype.kind == "f" else y - 2**62)


def plain(X, y, rng):
    """Ordinary samples."""
    return X, y


def many_classes(X, y, rng):
    """A class for every two samples."""
    return X, y if y is None or y.dtype.kind == "f" else np.arange(len(y)) // 2


SAMPLES = (plain, plain, plain, tiny, same, unbalanced, far, huge, small, mixed, spread, large_targets, many_classes)
WEIGHTS = (None, None, None, 1e-300, 1e100)


def case(rng):
    """Draw an estimator, one to three extreme settings, samples and weights; fit and evaluate."""
    name = str(rng.choice(list(ESTIMATORS)))
    own = [key for key in make(name).get_params(deep=False) if key in VALUES]
    chosen = {
        str(key): VALUES[key][rng.integers(len(VALUES[key]))] for key in rng.permutation(own)[: rng.integers(1, 4)]
    }
    change, scale = SAMPLES[rng.integers(len(SAMPLES))], WEIGHTS[rng.integers(len(WEIGHTS))]
    if "C" in chosen or name.startswith("TwoStage"):
        # C times a weight may overflow, and the machine of the two-stage methods is scikit-learn's, whose loop then
        # does not end
        scale = None
    model = make(name, **chosen)
    X, y = change(*draw_samples(model, rng, n=int(rng.integers(6, 30)), classes=int(rng.integers(2, 4))), rng)
    label = f"{name}, {change.__name__}"
    foreign: list[str] = []
    said = None
    with foreign_warnings(foreign):
        try:
            if scale is None or "sample_weight" not in model.fit.__code__.co_varnames:
                scale = None
                fit(model, X, y)
            else:
                model.fit(X, y, sample_weight=np.full(len(X), scale))
            said = unsound(model, X)
            if said is None and evaluate(model, X[:1]).shape[0] != 1:
                said = "outputs of one sample have another length"
        except Exception as error:
            # a combination may be refused, in one sentence
            refused = isinstance(error, MemoryError) and str(error)
            said = None if refused or not (lacks := unclear(error)) else f"{lacks} at {where()}"
    said = said or (f"a warning from below: {foreign[0]}" if foreign else None)
    return label, said and f"{said} ({chosen}, weights {scale}, n={len(X)})"


KIND = Kind(
    "extremes",
    "An estimator with one to three allowed parameters at the edge of their range (C from 5e-324 to 1e300, "
    "norms up to infinity, every solver and loss, ...) on ordinary or extreme samples (two samples, equal "
    "samples, 1e160, 1e-170, labels near 2^62, weights of 1e-300). A finding is any exception but a "
    "ValueError or MemoryError of one sentence, a warning of NumPy or SciPy, a result that is not finite, or "
    "a gap above tol where the status says converged.",
    share=4,
    full=5000,
    case=case,
)
