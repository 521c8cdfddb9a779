"""``multikernel warm-up``: small fits of all kinds, so that Numba's cache holds the compiled loops."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np


def run_warm_up() -> str:
    """Fit small problems of every kind; return a line about it."""
    import multikernel
    from multikernel.kernels import RBF, Linear, Spectrum, WeightedDegree
    from multikernel.training.progress import telling_compiling

    rng, began = np.random.default_rng(0), time.perf_counter()
    X = rng.normal(size=(80, 4))
    score = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=80)
    two, three = score > 0, np.digitize(score, (-0.5, 0.5))
    stack = np.array([X @ X.T, np.exp(-np.square(X[:, None] - X).sum(2))])
    words = ["".join(row) for row in rng.choice(list("ACGT"), (80, 12))]
    Classifier, Regressor = multikernel.MKLClassifier, multikernel.MKLRegressor
    jobs: list[tuple[Any, Any, Any]] = [(Classifier(), X, y) for y in (two, three)]
    jobs += [(Classifier("precomputed"), multikernel.stack_kernels(stack.astype(kind)), y)
             for kind in (np.float32, np.float64) for y in (two, three)]  # fmt: skip
    jobs += [(Classifier(norm=2.0), X, two), (Classifier([RBF(), Linear()], gram="lazy"), X, two)]
    losses = "logistic", "multinomial", "smooth_hinge", "squared", "squared_hinge"
    jobs += [(Classifier(loss=loss), X, y) for loss in losses for y in (two, three)]
    jobs += [(Classifier(normalize=["center", "cosine"]), X, two), (Classifier([WeightedDegree(3)]), words, two)]
    jobs += [(Classifier([Spectrum(3)]), words, two), (Classifier([Linear()], gram="features"), X, two)]
    jobs += [(Regressor(loss=loss), X, score) for loss in ("epsilon_insensitive", "squared", "huber")]
    jobs += [(multikernel.MKLClassifierCV(Cs=[0.1, 1.0], cv=2), X, two), (multikernel.MKLOneClass(), X, None)]
    with warnings.catch_warnings(), telling_compiling(1):
        warnings.simplefilter("ignore")
        for model, samples, y in jobs:
            model.fit(samples, y).predict(samples)
    return f"The loops are compiled and kept ({time.perf_counter() - began:.1f} s)."
