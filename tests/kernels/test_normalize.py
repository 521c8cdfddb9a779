"""Normalisers: the affine form and the test rows against the explicit formulas, step by step."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from multikernel.kernels import KernelBank, Linear, check_steps, learn_normalizer

STEPS = [
    None,
    "variance",
    "cosine",
    "center",
    "trace",
    ["center", "variance"],
    ["variance", "center"],
    ["cosine", "center"],
    ["center", "cosine"],
    ["trace", "cosine", "variance"],
    ["cosine", "center", "cosine"],
    ["center", "cosine", "center", "variance"],
    ["center", "center"],
]
every_list = pytest.mark.parametrize("steps", STEPS, ids=str)
SCALES = pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])


def kernel(n=12, rank=5, seed=0):
    G = np.random.default_rng(seed).standard_normal((n, rank)) + 1.0
    return G @ G.T


def explicit(steps, K, weight=None):
    """Apply the steps to a whole matrix, as the words of the module say."""
    p = np.full(len(K), 1 / len(K)) if weight is None else weight / weight.sum()
    for step in [steps] if isinstance(steps, str) else steps or []:
        if step == "variance":
            K = K / (p @ np.diag(K) - p @ K @ p)
        elif step == "trace":
            K = K / (p @ np.diag(K))
        elif step == "cosine":
            K = K / np.sqrt(np.outer(np.diag(K), np.diag(K)))
        else:
            H = np.eye(len(K)) - np.outer(np.ones(len(K)), p)
            K = H @ K @ H.T
    return K


def affine(fitted, K):
    """Evaluate the affine form from the attributes alone."""
    u = np.ones(len(K)) if fitted.u is None else fitted.u
    result = fitted.scale * np.outer(u, u) * K
    if fitted.A is not None:
        result -= fitted.A @ fitted.B.T + fitted.B @ fitted.A.T
    return result


def learn(steps, K, weight=None, **options):
    return learn_normalizer(steps, np.diag(K), K.dot, weight, "k", **options)


@every_list
@SCALES
@pytest.mark.parametrize("weighted", [False, True])
def test_training_form(steps, scale, weighted):
    K = scale * kernel()
    weight = np.random.default_rng(1).random(12) if weighted else None
    fitted = learn(steps, K, weight)
    expected = explicit(steps, K, weight)
    size = np.abs(expected).max()
    np.testing.assert_allclose(fitted.train_block(K), expected, rtol=1e-9, atol=1e-12 * size)
    np.testing.assert_allclose(affine(fitted, K), expected, rtol=1e-9, atol=1e-12 * size)
    np.testing.assert_allclose(fitted.train_diag(np.diag(K)), np.diag(expected), rtol=1e-9, atol=1e-12 * size)
    assert np.array_equal(fitted.train_block(K), fitted.train_block(K).T)
    assert not fitted.degenerate
    rows, cols = np.array([3, 1, 7]), np.array([0, 7])
    block = fitted.train_block(K[np.ix_(rows, cols)], rows, cols)
    np.testing.assert_allclose(block, expected[np.ix_(rows, cols)], rtol=1e-9, atol=1e-12 * size)
    np.testing.assert_allclose(fitted.train_block(K[2:5], slice(2, 5)), expected[2:5], rtol=1e-9, atol=1e-12 * size)


@every_list
@SCALES
@pytest.mark.parametrize("weighted", [False, True])
def test_training_samples_as_test_samples(steps, scale, weighted):
    K = scale * kernel()
    weight = np.random.default_rng(1).random(12) if weighted else None
    fitted = learn(steps, K, weight)
    expected = explicit(steps, K, weight)
    size = np.abs(expected).max()
    rows = [3, 1, 7]
    np.testing.assert_allclose(fitted.cross(K[rows], np.diag(K)[rows]), expected[rows], rtol=1e-9, atol=1e-12 * size)
    diag = fitted.cross_diag(np.diag(K)[rows], K[rows])
    np.testing.assert_allclose(diag, np.diag(expected)[rows], rtol=1e-9, atol=1e-12 * size)


@every_list
def test_new_samples_in_feature_space(steps):
    """The steps on explicit features: centring subtracts the training mean, cosine divides by the length."""
    rng = np.random.default_rng(2)
    G, T = rng.standard_normal((12, 5)) + 1.0, rng.standard_normal((4, 5)) + 1.0
    fitted = learn(steps, G @ G.T)
    rows, diag = T @ G.T, (T**2).sum(axis=1)
    for step in [steps] if isinstance(steps, str) else steps or []:
        if step == "center":
            G, T = G - G.mean(axis=0), T - G.mean(axis=0)
        elif step == "cosine":
            G, T = (F / np.linalg.norm(F, axis=1, keepdims=True) for F in (G, T))
        else:
            shift = G.mean(axis=0) if step == "variance" else 0.0
            length = np.sqrt(((G - shift) ** 2).sum(axis=1).mean())
            G, T = G / length, T / length
    np.testing.assert_allclose(fitted.cross(rows, diag), T @ G.T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fitted.cross_diag(diag, rows), (T**2).sum(axis=1), rtol=1e-9, atol=1e-12)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sampled_from(["variance", "cosine", "center", "trace"]), max_size=4),
    st.integers(0, 10**6),
    st.sampled_from([1e-12, 1.0, 1e12]),
)
def test_weights_are_repetition(steps, seed, scale):
    rng = np.random.default_rng(seed)
    K = scale * kernel(8, 4, seed)
    weight = rng.integers(0, 4, 8)
    weight[:3] += 1
    copies = np.repeat(np.arange(8), weight)
    by_weight = learn(steps, K, weight)
    by_copies = learn(steps, K[np.ix_(copies, copies)])
    expected = by_copies.train_block(K[np.ix_(copies, copies)])
    size = np.abs(expected).max()
    block = by_weight.train_block(K[np.ix_(copies, copies)], copies, copies)
    np.testing.assert_allclose(block, expected, rtol=1e-7, atol=1e-9 * size)
    T = K[:, copies]
    np.testing.assert_allclose(
        by_weight.cross(K, np.diag(K))[:, copies], by_copies.cross(T, np.diag(K)), rtol=1e-7, atol=1e-9 * size
    )


def test_known_and_few_products():
    K = kernel()
    calls = []

    def matvec(v):
        calls.append(v)
        return K @ v

    known = learn_normalizer("variance", np.diag(K), None, product=K.mean(axis=1))
    assert not calls
    np.testing.assert_allclose(known.scale, learn("variance", K).scale, rtol=1e-13)
    learn_normalizer(["variance", "center", "trace", "variance"], np.diag(K), matvec)
    assert len(calls) == 1
    learn_normalizer(["variance", "cosine", "center"], np.diag(K), matvec, np.ones(12), product=K.mean(axis=1))
    assert len(calls) == 2


@every_list
def test_float32_stays_float32(steps):
    K = kernel()
    fitted = learn(steps, K)
    single = K.astype(np.float32)
    single.setflags(write=False)
    expected = explicit(steps, K)
    for block in (fitted.train_block(single), fitted.cross(single, np.diag(K))):
        assert block.dtype == np.float32 and block.flags.writeable
        np.testing.assert_allclose(block, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    whole = np.round(K).astype(int)
    assert fitted.train_block(whole).dtype == np.float64


@every_list
def test_read_only_pickle_and_many_rows(steps, monkeypatch):
    K = kernel()
    K.setflags(write=False)
    fitted = pickle.loads(pickle.dumps(learn(steps, K)))
    expected = fitted.train_block(K)
    rows = fitted.cross(K, np.diag(K))
    diag = fitted.cross_diag(np.diag(K), K)
    assert not np.shares_memory(expected, K)
    monkeypatch.setattr("multikernel.kernels.fitted_normalizer.ROWS", 5)
    assert np.array_equal(fitted.train_block(K), expected)
    np.testing.assert_allclose(fitted.cross(K, np.diag(K)), rows, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(fitted.cross_diag(np.diag(K), K), diag, rtol=1e-13, atol=1e-14)


@every_list
def test_some_training_columns(steps):
    K = kernel()
    fitted = learn(steps, K)
    cols = np.array([2, 5, 6])
    if fitted.centred:
        assert fitted.take(cols) is fitted
        with pytest.raises(ValueError, match="need all training columns"):
            fitted.cross(K[:, cols], np.diag(K), cols)
        return
    expected = fitted.cross(K, np.diag(K))[:, cols]
    np.testing.assert_allclose(fitted.cross(K[:, cols], np.diag(K), cols), expected, rtol=1e-13)
    small = fitted.take(cols)
    np.testing.assert_allclose(small.cross(K[:, cols], np.diag(K)), expected, rtol=1e-13)
    np.testing.assert_allclose(small.train_block(K[np.ix_(cols, cols)]), fitted.train_block(K)[np.ix_(cols, cols)])


@SCALES
@pytest.mark.parametrize("steps", ["variance", ["center", "variance"], ["cosine", "center"], ["variance", "trace"]])
def test_constant_kernels(steps, scale):
    constant = np.full((7, 7), 3.0 * scale)
    fitted = learn(steps, constant)
    assert fitted.degenerate
    if fitted.centred:
        assert not fitted.train_block(constant).any()
        assert not fitted.cross(constant[:3], np.diag(constant)[:3]).any()
    else:
        assert fitted.scale == (1.0 if steps == "variance" else pytest.approx(1 / (3.0 * scale)))


@pytest.mark.parametrize("steps", ["variance", "trace", "cosine", "center", ["center", "cosine", "variance"]])
def test_zero_kernels(steps):
    zero = np.zeros((5, 5))
    fitted = learn(steps, zero)
    assert fitted.degenerate and not fitted.train_block(zero).any()
    assert not fitted.cross(zero, np.zeros(5)).any()


def test_small_variance_is_not_zero_variance():
    K = 1e3 + 1e-3 * kernel()
    fitted = learn("variance", K)
    assert not fitted.degenerate
    np.testing.assert_allclose(fitted.train_block(K), explicit("variance", K), rtol=1e-6)


@pytest.mark.parametrize("steps", ["cosine", ["center", "cosine"]])
def test_samples_without_length(steps):
    G = np.random.default_rng(0).standard_normal((9, 3))
    G[2] = G[[0, 1, 3, 4, 5, 6, 7, 8]].mean(axis=0) if isinstance(steps, list) else 0.0
    K = G @ G.T
    fitted = learn(steps, K)
    assert fitted.u[2] == 0 and np.count_nonzero(fitted.u) == 8
    block = fitted.train_block(K)
    assert not block[2].any() and not fitted.degenerate
    np.testing.assert_allclose(np.delete(np.diag(block), 2), 1.0)
    np.testing.assert_allclose(fitted.cross(K, np.diag(K)), block, atol=1e-12)


def test_indefinite_kernels():
    K = np.diag([1.0, -1.0, 2.0])
    with pytest.raises(ValueError, match="'k' must have a non-negative diagonal for the 'cosine' normalisation"):
        learn("cosine", K)
    K = np.array([[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(learn("center", K).train_block(K), explicit("center", K), atol=1e-15)


def test_errors():
    K = kernel()
    with pytest.raises(ValueError, match=r"or a list of these\. Got 'varianze' instead\. Did you mean 'variance'\?"):
        check_steps("varianze")
    with pytest.raises(ValueError, match="Got 3 instead"):
        check_steps(3)
    with pytest.raises(ValueError, match="Got None instead"):
        check_steps(["center", None])
    with pytest.raises(ValueError, match="'k' has NaN or infinity on its diagonal"):
        learn_normalizer("trace", np.r_[1.0, np.nan], K.dot, name="k")
    with pytest.raises(ValueError, match="'k' has NaN or infinity among its values"):
        learn_normalizer("center", np.ones(12), lambda v: np.full(12, np.nan), name="k")
    with pytest.raises(ValueError, match=r"needs the values k\(x, x\)"):
        learn("cosine", K).cross(K)
    with pytest.raises(ValueError, match=r"must have shape \(12,\)"):
        learn("cosine", K).cross(K, np.ones(3))
    with pytest.raises(ValueError, match=r"must have 12 columns"):
        learn("trace", K).cross(K[:, :3])
    with pytest.raises(ValueError, match="need the test rows"):
        learn("center", K).cross_diag(np.diag(K))


@every_list
def test_bank_learns_normalisers(steps, monkeypatch):
    monkeypatch.setattr("multikernel.kernels.bank.ROWS", 5)
    X = np.random.default_rng(0).standard_normal((12, 3)) + 1.0
    weight = np.arange(1.0, 13.0)
    bank = KernelBank.fit([Linear()], X, weight, normalize=steps)
    K = bank.raw(0, X)
    fitted = bank.normalizer(0, X, weight)
    for other in (pd.DataFrame(X), sparse.coo_array(X)):
        again = bank.normalizer(0, other, weight)
        np.testing.assert_allclose(again.train_block(K), fitted.train_block(K), atol=1e-12)
    np.testing.assert_allclose(fitted.train_block(K), explicit(steps, K, weight), rtol=1e-9, atol=1e-12)
