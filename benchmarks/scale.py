"""Explicit features: growth of an epoch with n, cost of predictions, random features on numeric columns, hashing.

    python benchmarks/scale.py [name ...]       growth, predict, tabular, hashing (all by default)

growth     processor time of an epoch through all samples from n = 10,000 to 100,000 (to 1,000,000:
           papers/2005-sonnenburg/growth.py), as an exponent of n; 20 weighted degree kernels on sequences of 42 letters
predict    time of 100,000 predictions in fractions of a minute, and the difference of some from the kernel expansion
tabular    100,000 samples of 50 columns: random Fourier features of five widths and linear kernels of column groups,
           trained to a gap of 1e-2, in fractions of five minutes of processor time
hashing    the objective with hashed d-mers, relative to the exact one, by the number of slots
"""

from __future__ import annotations

import sys
import time

import numpy as np
from run import report


def blocks(degree: int = 20):
    from multikernel.kernels import DegreeBlocks, WeightedDegree

    return DegreeBlocks(WeightedDegree(degree))


def growth(sizes: tuple[int, ...] = (10_000, 100_000)) -> None:
    from multikernel import MKLClassifier
    from multikernel.datasets import dna

    S, y = dna(max(sizes), 42)
    seconds = []
    for n in sizes:
        model = MKLClassifier(blocks(), gram="features", tol=1e-9, max_iter=1, n_jobs=1)
        seconds.append(min(_quiet(model, S[:n], y[:n]).history_["epoch_seconds"][0] for _ in range(2)))
    figure = np.log(seconds[-1] / seconds[0]) / np.log(sizes[-1] / sizes[0])
    report(f"an epoch from n={sizes[0]} to {sizes[-1]}", figure, "exponent of n", 1.2)


def _quiet(model, S, y):
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(S, y)


def predict(n: int = 50_000, n_test: int = 100_000) -> None:
    from multikernel import MKLClassifier
    from multikernel.datasets import dna

    S, y = dna(n + n_test, 42)
    model = MKLClassifier(blocks(), gram="features", tol=1e-2, n_jobs=1).fit(S[:n], y[:n])
    began = time.perf_counter()
    f = model.decision_function(S[n:])
    report(f"{n_test} predictions, n={n}", (time.perf_counter() - began) / 60, "minutes", 1.0)
    few = model.decision_function(S[n : n + 200])
    report("distance from the kernel expansion", np.abs(f[:200] - few).max() / np.abs(f).max(), "of max |f|", 1e-9)


def tabular(n: int = 100_000, n_features: int = 100) -> None:
    from multikernel import MKLClassifier
    from multikernel.kernels import RBF, Linear, RandomFourier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 50))
    y = np.sin(X[:, 0] * X[:, 1]) + X[:, 2] + 0.3 * rng.normal(size=n) > 0
    kernels = [
        (f"width {f:g}", RandomFourier(RBF(factor=f), n_features=n_features), slice(0, 5)) for f in (0.25, 0.5, 1, 2, 4)
    ]
    kernels += [(f"group {g}", Linear(), slice(10 * g, 10 * g + 10)) for g in range(5)]
    began = time.process_time()
    model = MKLClassifier(kernels, tol=1e-2, n_jobs=1, gram="features").fit(X, y)
    assert model.duality_gap_ <= 1e-2
    report(f"random features, n={n}, 50 columns, 10 kernels", (time.process_time() - began) / 300, "of 5 minutes", 1.0)


def hashing(n: int = 2000) -> None:
    from multikernel import MKLClassifier
    from multikernel.datasets import dna
    from multikernel.kernels import HashedDegree, WeightedDegree

    S, y = dna(n, 42)
    exact = MKLClassifier(WeightedDegree(8), gram="features", tol=1e-5).fit(S, y).objective_
    for bits, bar in ((12, 1.0), (18, 0.01), (22, 0.001)):
        kernel = HashedDegree(WeightedDegree(8), slots=2**bits)
        hashed = MKLClassifier(kernel, gram="features", tol=1e-5).fit(S, y).objective_
        report(f"objective with 2^{bits} slots", abs(hashed / exact - 1), "off", bar)


if __name__ == "__main__":
    parts = {"growth": growth, "predict": predict, "tabular": tabular, "hashing": hashing}
    for part in sys.argv[1:] or parts:
        parts[part]()
