"""The workloads of the benchmarks: fixed draws, plain arrays, NumPy only.

A stack is a float32 array (p, n, n). Each kernel is divided by its variance in feature space,

    v_k = mean_i K_k[i, i] - mean_ij K_k[i, j]        over the training block,

and the test stack (p, n_test, n) is divided by the same number. Times are given in passes; a pass is the median time of
reading the whole stack once.
"""

from __future__ import annotations

import time

import numpy as np

WIDTHS = (0.1, 0.5, 2.0, 10.0, 50.0)
RING, SHIFT, NOISE, EVERYTHING = (0, 1), (2, 3), (4, 5), tuple(range(8))


def ring(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw n samples of two classes in 8 columns.

    Columns 0-1 lie at radius 1 (class +1) or 2 (class -1) with noise 0.4, columns 2-3 are unit
    Gaussians half a unit on the side of their class, columns 4-7 are noise; 5 % of the labels are flipped.
    """
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = rng.standard_normal((n, 8))
    radius = (1.5 - 0.5 * y) + 0.4 * rng.standard_normal(n)
    angle = 2 * np.pi * rng.random(n)
    X[:, 0] = radius * np.cos(angle)
    X[:, 1] = radius * np.sin(angle)
    X[:, 2:4] += 0.5 * y[:, np.newaxis]
    y[rng.random(n) < 0.05] *= -1.0
    return X, y


def _gaussian(A: np.ndarray, B: np.ndarray, width: float) -> np.ndarray:
    """Return exp(-|a - b|^2 / width) for all pairs of rows."""
    distance = np.square(A).sum(axis=1)[:, np.newaxis] + np.square(B).sum(axis=1)
    distance += (-2 * A) @ B.T
    np.maximum(distance, 0, out=distance)
    return np.exp(-distance / width)


def binary(n: int = 2000, n_test: int = 2000, seed: int = 1) -> tuple[np.ndarray, ...]:
    """Make the binary problem: the rings of `ring` under Gaussian kernels on column subsets at five widths.

    Four subsets (20 kernels) up to n = 2000, two subsets (10 kernels) above.

    Returns
    -------
    K : ndarray of shape (p, n, n), float32
    K_test : ndarray of shape (p, n_test, n), float32
    y, y_test : ndarrays of -1 and +1
    """
    X, y = ring(n, seed)
    X_test, y_test = ring(n_test, seed + 1)
    subsets = (RING, SHIFT, NOISE, EVERYTHING) if n <= 2000 else (RING, EVERYTHING)
    p = len(subsets) * len(WIDTHS)
    K = np.empty((p, n, n), dtype=np.float32)
    K_test = np.empty((p, n_test, n), dtype=np.float32)
    for s, subset in enumerate(subsets):
        A, B = X[:, subset], X_test[:, subset]
        for w, width in enumerate(WIDTHS):
            k = s * len(WIDTHS) + w
            G = _gaussian(A, A, width)
            G = 0.5 * (G + G.T)
            np.fill_diagonal(G, 1.0)
            scale = 1.0 / (1.0 - G.mean())  # 1 / v_k, the diagonal being one
            K[k] = scale * G
            K_test[k] = scale * _gaussian(B, A, width)
    return K, K_test, y, y_test


def one_pass(K: np.ndarray, repeats: int = 5) -> float:
    """Return the median seconds of one reading of the stack, ``np.tensordot(beta, K, 1)``."""
    beta = np.full(len(K), 1.0 / len(K), dtype=K.dtype)
    seconds = np.empty(repeats)
    for r in range(repeats):
        start = time.perf_counter()
        np.tensordot(beta, K, 1)
        seconds[r] = time.perf_counter() - start
    return float(np.median(seconds))


def views(
    n_classes: int = 102, per_class: int = 15, n_kernels: int = 48, seed: int = 7
) -> tuple[np.ndarray, np.ndarray]:
    """Make a problem of many classes: several sets of 20 columns, each with Gaussian kernels of four widths.

    Classes lie in 17 groups, a centre being that of its group plus one of its own; view by view the centres count
    fully, for six tenths, for three tenths, or not at all, and the noise is 0.7.

    Returns
    -------
    K : ndarray of shape (n_kernels, n, n), float32
    y : ndarray of int, classes in turn
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n_classes * per_class) % n_classes
    groups = np.arange(n_classes) % 17
    K = np.empty((n_kernels, len(y), len(y)), np.float32)
    for k in range(n_kernels):
        if k % 4 == 0:
            centres = rng.standard_normal((17, 20))[groups] + rng.standard_normal((n_classes, 20))
            X = (1.0, 0.6, 0.3, 0.0)[k // 4 % 4] * centres[y] + 0.7 * rng.standard_normal((len(y), 20))
            spread = 2.0 * float(X.var(axis=0).sum())
        G = _gaussian(X, X, (0.25, 0.5, 1.0, 2.0)[k % 4] * spread)
        G = 0.5 * (G + G.T)
        np.fill_diagonal(G, 1.0)
        K[k] = G / (1.0 - G.mean())
    return K, y


def overlap(
    n: int = 500, classes: int = 11, columns: int = 10, spread: float = 0.3, levels: int = 0, seed: int = 11
) -> tuple[np.ndarray, np.ndarray]:
    """Draw overlapping classes in standardised columns, and with ``levels`` values that tie; no stack."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = spread * rng.standard_normal((classes, columns))[y] + rng.standard_normal((n, columns))
    X = np.round(levels * X) / levels if levels else X
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def weak(n: int = 500, columns: int = 500, seed: int = 13) -> tuple[np.ndarray, np.ndarray]:
    """Draw columns of which two matter, and noisy labels; no stack."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, columns))
    return X, np.sign(np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 1 + 0.3 * rng.standard_normal(n))
