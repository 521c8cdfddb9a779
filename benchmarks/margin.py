"""M3K and the largest kernel margin on precomputed stacks, including checks, in passes over the stack in the same run.

    python benchmarks/margin.py [name ...]       toy, sequences, images, weights (all by default)

toy        class centres at the vertices of the simplex, Gaussian kernels of many widths (Zien & Ong 2007, 3.1)
sequences  the size of the nonplant data of Cortes et al. 2013: 1366 samples, 3 classes, 69 kernels
images     the size of caltech101 with 15 training samples a class: 102 classes, 48 kernels; and the peak memory
weights    the weights of the largest margin alone, on all three

The kernels are Gaussian, on columns that separate the classes more or less well, centred and with unit diagonal.
Margins, primal values and, if the whole linear program is small enough, lower bounds are recomputed here in float64.
"""

from __future__ import annotations

import resource
import sys

import numpy as np
from joint import simplex
from run import ratio, report
from workloads import _gaussian, one_pass

# name: (n, classes, kernels), then (fraction of the largest margin, tol, bar in passes)
FITS = {
    "toy": ((1000, 5, 10), [(1.0, 1e-3, 150), (0.95, 1e-3, 150), (0.7, 1e-3, 150)]),
    "sequences": ((1366, 3, 69), [(1.0, 1e-2, 200), (0.9, 1e-2, 200)]),
    "images": ((1530, 102, 48), [(1.0, 1e-2, 600), (0.9, 1e-2, 600)]),
}
# number of rows of the linear program up to which the support function is recomputed
LARGEST = 10_000
GIB = 8


def views(n: int, classes: int, kernels: int, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Six columns for each kernel around class centres at distances from zero to two; widths over a factor of 25."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    K = np.empty((kernels, n, n), np.float32)
    for k in range(kernels):
        apart = 2.0 * rng.uniform() ** 2
        X = rng.standard_normal((n, 6)) + apart * rng.standard_normal((classes, 6))[y]
        G = _gaussian(X, X, 12.0 * 10.0 ** rng.uniform(-0.7, 0.7))
        mean = G.mean(axis=0)
        G = G - mean - mean[:, None] + mean.mean()
        unit = 1.0 / np.sqrt(np.diag(G))
        G = unit * G * unit[:, None]
        K[k] = 0.5 * (G + G.T)
    return K, y


def stack_for(name: str, shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    n, classes, kernels = shape
    return simplex(n, classes, kernels) if name == "toy" else views(n, classes, kernels)


def similarities(K: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mean similarity to each class, (p, n, c)."""
    share = np.eye(int(y.max()) + 1)[y]
    return np.array([each.astype(np.float64) @ share for each in K]) / share.sum(axis=0)


def margin_at(M: np.ndarray, y: np.ndarray, beta: np.ndarray) -> float:
    mix, at = np.tensordot(beta, M, 1), np.arange(len(y))
    own = mix[at, y]
    mix[at, y] = -np.inf
    return float(np.mean(own - mix.max(axis=1)))


def support(M: np.ndarray, y: np.ndarray, q: np.ndarray, gamma0: float) -> float:
    """The largest beta . q over the simplex with mean margin at least gamma0, by the whole linear program."""
    from scipy import sparse
    from scipy.optimize import linprog

    (p, n, c), at = M.shape, np.arange(len(y))
    sample, wrong = np.nonzero(np.arange(c) != y[:, None])
    eta = (M[:, at, y][:, sample] - M[:, sample, wrong]).T
    m = len(sample)
    rows = sparse.hstack([sparse.csr_matrix(-eta), sparse.csr_matrix((np.ones(m), (np.arange(m), sample)), (m, n))])
    rows = sparse.vstack([rows, np.append(np.zeros(p), np.full(n, -1.0 / n))[None]]).tocsr()
    answer = linprog(
        -np.append(q, np.zeros(n)), rows, np.append(np.zeros(m), -gamma0),
        A_eq=np.append(np.ones(p), np.zeros(n))[None], b_eq=[1.0], bounds=[(0, None)] * p + [(None, None)] * n,
    )  # fmt: skip
    return -float(answer.fun)


def recomputed_gap(K: np.ndarray, y: np.ndarray, model, C: float = 1.0) -> float:
    """1/2 beta'q + the loss against sum_i A_iy - 1/2 sigma(q), or the model's own bound for a large program."""
    n, c = len(y), len(model.classes_)
    A, E, at = np.zeros((n, c)), np.eye(c)[y], np.arange(n)
    A[model.support_] = model.dual_coef_.T
    assert (A <= C * E + 1e-12).all() and np.abs(A.sum(axis=1)).max() < 1e-9 * C * n
    F = np.array([each.astype(np.float64) @ A for each in K])
    q, f = np.tensordot(F, A, 2), np.tensordot(model.weights_, F, 1)
    M = similarities(K, y)
    assert margin_at(M, y, model.weights_) >= model.gamma0_ - 1e-7
    upper = 0.5 * float(model.weights_ @ q) + C * float((1.0 - E + f - f[at, y][:, None]).max(axis=1).sum())
    lower = model.dual_objective_
    if n * (c - 1) <= LARGEST:
        lower = max(lower, float(np.sum(A * E)) - 0.5 * support(M, y, q, model.gamma0_ - 1e-7))
    return (upper - lower) / upper


def passes(name: str, shape=None, fits=None, repeats: int = 3) -> None:
    from multikernel import M3KClassifier, stack_kernels

    shape, fits = shape or FITS[name][0], fits or FITS[name][1]
    K, y = stack_for(name, shape)
    stack = stack_kernels(K)
    for fraction, tol, bar in fits:
        model = M3KClassifier("precomputed", normalize=None, gamma0_fraction=fraction, tol=tol)
        model.fit(stack, y)
        what = f"M3K n={shape[0]} c={shape[1]} p={shape[2]} at {fraction:g} gap {tol:g}"
        report(f"{what}: recomputed", recomputed_gap(K, y, model) / tol, "of the gap asked for", 1.001)
        figure = ratio(lambda model=model: model.fit(stack, y), lambda: one_pass(K, 1), repeats)
        report(what, figure, "passes", bar)
    if name == "images":
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        report(f"M3K n={shape[0]} c={shape[1]} p={shape[2]}: peak memory", peak, "GiB", GIB)


def weights(shapes=None, repeats: int = 3) -> None:
    from multikernel import stack_kernels
    from multikernel.estimators.baselines import KernelMarginWeights

    for name, shape in (shapes or {name: fit[0] for name, fit in FITS.items()}).items():
        K, y = stack_for(name, shape)
        stack, found = stack_kernels(K), KernelMarginWeights()
        found.fit(stack, y)
        assert abs(margin_at(similarities(K, y), y, found.weights_) - found.margin_) < 1e-7
        figure = ratio(lambda stack=stack, y=y: found.fit(stack, y), lambda K=K: one_pass(K, 1), repeats)
        report(f"largest margin n={shape[0]} c={shape[1]} p={shape[2]}", figure, "passes", 40)


if __name__ == "__main__":
    for part in sys.argv[1:] or [*FITS, "weights"]:
        weights() if part == "weights" else passes(part)
