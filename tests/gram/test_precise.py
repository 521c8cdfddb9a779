"""Products with less rounding than one sum in float64 has, against exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from exact import products

from multikernel.gram.dense import AffineForm, DenseGram
from multikernel.gram.lazy import LazyGram
from multikernel.gram.memmap import MemmapGram, memmap_stack
from multikernel.gram.precise import left_over, product
from multikernel.gram.product import ProductGram


def kernel(kind: str, n: int, seed: int = 0, dtype=np.float64) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(n, 3))
    if kind == "gaussian":
        K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    else:
        # lengths of very different sizes, and a sample of length zero
        X *= 10.0 ** np.linspace(-6, 6, n)[:, None]
        X[n // 2] = 0.0
        K = X @ X.T
    return (0.5 * (K + K.T)).astype(dtype)


def cancelling(K: np.ndarray, columns: int, size: float, seed: int = 1) -> np.ndarray:
    """Coefficients, some of them zero, whose outputs are far smaller than their terms."""
    rng = np.random.default_rng(seed)
    V = np.linalg.eigh(K.astype(float))[1]
    v = size * V[:, : max(1, len(K) // 2)] @ rng.normal(size=(max(1, len(K) // 2), columns))
    v[rng.random(len(K)) < 0.2] = 0.0
    return v


def off(F: np.ndarray, exactly: np.ndarray) -> np.ndarray:
    return np.abs(np.vectorize(float)(np.vectorize(lambda x, y: x - y)(exactly, np.vectorize(_fraction)(F))))


def _fraction(x):
    from fractions import Fraction

    return Fraction(float(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["gaussian", "linear"])
@pytest.mark.parametrize("n, columns", [(1, 1), (40, 1), (40, 3), (300, 1)])
def test_products_are_exact_but_for_what_is_left_over(kind, dtype, n, columns):
    K = kernel(kind, n, dtype=dtype)
    v = cancelling(K, columns, 1e4)
    rows = np.flatnonzero(v.any(axis=1))
    error, lengths = off(product(K, rows, v), products(K.T, v)), np.sqrt(np.diagonal(K).astype(float))
    eps = np.finfo(float).eps
    bound = left_over(len(rows)) * len(rows) * eps * lengths[:, None] * (lengths @ np.abs(v))
    assert np.all(error <= bound + eps * np.abs(K.astype(float) @ v) + 1e-300)
    # about a million times less than one sum may have
    assert left_over(len(rows)) < 1e-5


@pytest.mark.parametrize(
    "storage", ["dense", "list", "unit diagonal", "centred", "memmap", "subset", "kernels", "times"]
)
def test_every_storage_in_memory_has_them(storage):
    n, rng = 30, np.random.default_rng(0)
    stack = np.array([kernel("gaussian", n, seed) for seed in range(3)])
    K, form = np.vectorize(_fraction)(stack), None
    if storage in ("unit diagonal", "centred"):
        s, u = rng.uniform(0.5, 2.0, 3), rng.uniform(0.5, 1.5, (3, n))
        A, B = (rng.uniform(0, 0.5, (3, n, 1)), np.ones((3, n, 1))) if storage == "centred" else (None, None)
        form = AffineForm(s, u, A, B)
        sides = np.vectorize(_fraction)(u), np.vectorize(_fraction)(s)[:, None, None]
        K = sides[1] * sides[0][:, :, None] * sides[0][:, None, :] * K
        if A is not None:
            v = np.vectorize(_fraction)(A[:, :, 0])
            K = K - v[:, :, None] - v[:, None, :]
    gram = DenseGram(list(stack) if storage == "list" else stack, form)
    if storage == "memmap":
        disk = memmap_stack(3, n, float)
        disk[:] = stack
        gram = MemmapGram(disk)
    elif storage == "subset":
        keep = rng.permutation(n)[:20]
        gram, K = gram.take_samples(keep), K[:, keep][:, :, keep]
    elif storage == "kernels":
        gram, K = gram.take_kernels(np.array([2, 0])).take_kernels(np.array([1])), K[:1]
    elif storage == "times":
        gram, K = gram.take_samples(np.arange(n)).rescaled(4.0), 4 * K
    lengths, eps = np.sqrt(np.maximum(gram.diag() + gram.loose, 0.0)), np.finfo(float).eps
    for columns in ((), (2,)):
        v = rng.normal(size=(K.shape[1], *columns))
        v[0] = 0.0
        F, rounding = gram.apply_precisely(v)
        assert F.shape == (len(K), *v.shape) and rounding < 9 * eps
        flat = np.vectorize(_fraction)(v).reshape(len(v), -1)
        for k in range(len(K)):
            error = off(F[k].reshape(len(v), -1), K[k].dot(flat))
            size = lengths[k] @ np.abs(v).reshape(len(v), -1).sum(axis=1)
            bound = rounding * lengths[k][:, None] * size + 3 * eps * np.abs(F[k]).reshape(len(v), -1)
            assert np.all(error <= bound)


def test_other_storages_have_none():
    K = np.array([np.eye(4), np.ones((4, 4))])
    lazy = LazyGram(lambda kernels, idx: ((k, K[k, idx]) for k in kernels), np.ones((2, 4)))
    classes = ProductGram(DenseGram(K), np.eye(3)[None])
    for gram in (lazy, lazy.take_samples(np.arange(2)), lazy.rescaled(2.0), lazy.take_kernels(np.array([1]))):
        assert gram.apply_precisely(np.ones(gram.n_samples)) is None
        assert gram.new_outputs((gram.n_samples,)).sum_precisely() is None
    assert classes.new_outputs((4, 3)).sum_precisely() is None
