"""Distances, their quantiles, and the scales that kernels learn from them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems_kernels import chi2, l1, l2, samples
from scipy import sparse
from sklearn.base import clone

import multikernel.kernels.distances as distances_module
from multikernel.kernels import RBF, ChiSquared, Cosine, Laplacian, Matern, RandomFourier, Tanimoto
from multikernel.kernels.distances import distances, quantile_distance


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 12),
    st.integers(1, 3),
    st.integers(0, 10**6),
    st.floats(0.01, 1.0),
    st.sampled_from([1e-12, 1.0, 1e12]),
)
def test_quantile_counts_repetition(n, d, seed, q, scale):
    rng = np.random.default_rng(seed)
    X = scale * rng.integers(0, 4, (n, d)).astype(float)
    weight = rng.integers(0, 4, n)
    weight[0] += 1
    for metric in ("sqeuclidean", "cityblock", "chi2"):
        expected = quantile_distance(metric, np.repeat(X, weight, axis=0), q)
        assert quantile_distance(metric, X, q, weight.astype(float)) == expected


def test_quantile_is_that_of_the_pairs():
    X = samples(50, 3, seed=4)
    for metric, d in (("sqeuclidean", l2), ("cityblock", l1), ("chi2", chi2)):
        pairs = [d(X[i], X[j]) for i in range(50) for j in range(i)]
        for q in (0.1, 1 / 3, 0.5, 1.0):
            expected = np.quantile([v for v in pairs], q, method="inverted_cdf")
            np.testing.assert_allclose(quantile_distance(metric, X, q), expected, rtol=1e-12)


def test_quantile_of_many_samples_depends_on_the_samples_alone(monkeypatch):
    monkeypatch.setattr(distances_module, "SAMPLES", 60)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)) * (rng.random((200, 3)) < 0.7)
    value = quantile_distance("sqeuclidean", X, 0.5)
    weight = rng.integers(1, 4, 200)
    shuffled = np.repeat(X, weight, axis=0)[rng.permutation(weight.sum())]
    assert quantile_distance("sqeuclidean", X[rng.permutation(200)], 0.5) == value
    assert quantile_distance("sqeuclidean", X, 0.5, weight.astype(float)) == quantile_distance(
        "sqeuclidean", shuffled, 0.5
    )
    np.testing.assert_allclose(quantile_distance("sqeuclidean", sparse.csr_array(X), 0.5), value, rtol=1e-12)
    # few distinct samples: all pairs count
    few = X[:20]
    weight = rng.integers(4, 8, 20)
    expected = quantile_distance("sqeuclidean", few, 0.3, weight.astype(float))
    assert quantile_distance("sqeuclidean", np.repeat(few, weight, axis=0), 0.3) == expected
    explicit = sparse.csr_array((np.r_[few.ravel()], np.tile([0, 1, 2], 20), np.arange(0, 61, 3)))
    many = sparse.vstack([explicit] * 5).tocsr()
    np.testing.assert_allclose(
        quantile_distance("sqeuclidean", many, 0.3),
        quantile_distance("sqeuclidean", few, 0.3, np.full(20, 5.0)),
        rtol=1e-12,
    )


def test_quantile_zero():
    column = np.r_[np.zeros(18), 1.0, 3.0][:, None]
    # 153 zeros, and 18 ones, a two and 18 threes
    assert quantile_distance("sqeuclidean", column, 0.5) == 2.0
    assert quantile_distance("cityblock", column, 0.4) == 1.0
    assert quantile_distance("cityblock", np.ones((5, 2)), 0.5) == 1.0
    assert quantile_distance("cityblock", np.zeros((5, 2)), 0.5) == 1.0
    assert quantile_distance("cityblock", np.ones((1, 2)), 0.5, np.ones(1)) == 1.0
    assert quantile_distance("cityblock", np.array([[0.0], [1.0], [5.0]]), 1.0, np.array([0.5, 0.5, 0.0])) == 1.0


@pytest.mark.parametrize("d", [3, 30])
@pytest.mark.parametrize("thin", [False, True])
def test_close_samples_far_from_the_origin(d, thin):
    rng = np.random.default_rng(0)
    near = 1e-3 * rng.standard_normal((40, d))
    X = 100.0 + np.concatenate([near, near + 3.0])
    D = distances("sqeuclidean", *([sparse.csr_array(X)] * 2 if thin else [X, X]), None)
    expected = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(D, expected, rtol=1e-8)
    kernel = Matern(length_scale=1e-2, nu=0.5).fit(X)
    np.testing.assert_allclose(kernel(X[:9], X), np.exp(-np.sqrt(expected[:9]) / 1e-2), rtol=1e-7)


@pytest.mark.parametrize("kernel", [RBF(), Laplacian(), Matern(), ChiSquared(), RBF(quantile=0.1)])
@pytest.mark.parametrize("d", [2, 20])
def test_learned_scale_makes_the_unit_irrelevant(kernel, d):
    X = samples(30, d)
    K = clone(kernel).fit(X)(X)
    for scale in (1e-12, 1e12):
        np.testing.assert_allclose(clone(kernel).fit(scale * X)(scale * X), K, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("kernel", [Tanimoto(), Cosine()])
def test_angles_do_not_depend_on_the_unit(kernel):
    X = samples()
    for scale in (1e-12, 1e12):
        np.testing.assert_allclose(kernel(scale * X), kernel(X), rtol=1e-12, atol=1e-15)


def test_rbf_attributes():
    X = np.array([[0.0], [1.0], [3.0]])
    kernel = RBF(quantile=0.5, factor=3.0).fit(X)
    assert (kernel.width_, kernel.gamma_) == (36.0, 1 / 36)
    assert RBF(gamma=4.0).fit(X).width_ == 0.25
    assert Laplacian(quantile=0.5).fit(X).gamma_ == 0.5
    assert Matern(quantile=0.5).fit(X).length_scale_ == 2.0


@pytest.mark.parametrize("nu", [0.3, 3.0, 20.0, 100.0])
def test_matern_close_and_far(nu):
    t = np.r_[0.0, 10.0 ** np.arange(-12, 4)]
    K = Matern(length_scale=1.0, nu=nu)(np.zeros((1, 1)), t[:, None])[0]
    assert np.isfinite(K).all() and (np.diff(K) <= 1e-12).all() and K[0] == 1.0 and K[-1] < 1e-3
    if nu > 2:
        # 1 - nu / (nu - 1) d^2 / 2 + O(d^4)
        d = 1e-3
        value = Matern(length_scale=1.0, nu=nu)([[0.0]], [[d]])[0, 0]
        np.testing.assert_allclose(value, 1 - nu / (nu - 1) * d**2 / 2, rtol=1e-10)


def test_blocks_agree_with_one_block(monkeypatch):
    X = samples(50, 12)
    expected = RBF().fit(X)(X)
    monkeypatch.setattr("multikernel.kernels.base.ROWS", 7)
    np.testing.assert_allclose(RBF().fit(X)(X), expected, rtol=1e-13)
    K = ChiSquared().fit(X)(X)
    assert np.array_equal(K, K.T)


@pytest.mark.parametrize("exponent", [-1000, -560, 531, 990])
@pytest.mark.parametrize("kernel", [RBF(), RBF(factor=2.0), Laplacian(), Matern(), Matern(nu=np.inf), ChiSquared()])
def test_learned_widths_do_not_depend_on_the_unit_however_large(kernel, exponent):
    rng = np.random.default_rng(1)
    X, Y = rng.random((20, 3)), rng.random((7, 3))
    unit = 2.0**exponent
    with np.errstate(all="raise"):
        expected, found = clone(kernel).fit(X), clone(kernel).fit(X * unit)
        np.testing.assert_array_equal(found(Y * unit, X * unit), expected(Y, X))
        np.testing.assert_array_equal(found(X * unit), expected(X))


def test_random_features_do_not_depend_on_the_unit_however_large():
    X = np.random.default_rng(2).standard_normal((9, 2))
    expected = RandomFourier(n_features=40).fit(X)(X)
    np.testing.assert_allclose(RandomFourier(n_features=40).fit(X * 2.0**600)(X * 2.0**600), expected)


@pytest.mark.parametrize("scale", [1e160, 1e300])
@pytest.mark.parametrize("kernel", [RBF(gamma=0.5), RBF(width=1e-300), RBF(gamma=1e300), Laplacian(1e300)], ids=repr)
def test_distances_beyond_all_widths_are_far(kernel, scale):
    X = scale * np.array([[0.0], [1.0], [1.0]])
    with np.errstate(all="raise", under="ignore", over="ignore"):
        np.testing.assert_array_equal(kernel(X, X), [[1, 0, 0], [0, 1, 1], [0, 1, 1]])
