"""Kernels: one table, and for every line of it the whole battery; then distances."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import kernels as gp

import multikernel.kernels.distances as distances_module
from multikernel.kernels import (
    RBF,
    ChiSquared,
    Constant,
    Cosine,
    FunctionKernel,
    HistogramIntersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Power,
    Product,
    Scaled,
    Sum,
    Tanimoto,
    kernel_name,
)
from multikernel.kernels.distances import distances, quantile_distance


def inner(X, Y):
    return np.asarray((X @ Y.T).todense()) if sparse.issparse(X) else X @ Y.T


def l1(x, z):
    return np.abs(x - z).sum()


def l2(x, z):
    return math.sqrt(((x - z) ** 2).sum())


def chi2(x, z):
    return sum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0)


def cosine(x, z):
    size = math.sqrt((x @ x) * (z @ z))
    return x @ z / size if size else 0.0


def tanimoto(x, z):
    union = x @ x + z @ z - x @ z
    return x @ z / union if union else 1.0


# a kernel, and its definition k(x, z); None where the scale is learned, which has its own tests
TABLE = [
    (Linear(), lambda x, z: x @ z),
    (Polynomial(), lambda x, z: (x @ z / len(x) + 1) ** 3),
    (Polynomial(degree=2, gamma=0.5, coef0=0.25), lambda x, z: (0.5 * (x @ z) + 0.25) ** 2),
    (RBF(gamma=0.5), lambda x, z: math.exp(-0.5 * l2(x, z) ** 2)),
    (RBF(width=3.0), lambda x, z: math.exp(-(l2(x, z) ** 2) / 3)),
    (RBF(), None),
    (RBF(quantile=0.3, factor=2.0), None),
    (Laplacian(gamma=0.5), lambda x, z: math.exp(-0.5 * l1(x, z))),
    (Laplacian(), None),
    (Matern(length_scale=2.0, nu=0.5), lambda x, z: math.exp(-l2(x, z) / 2)),
    (Matern(length_scale=2.0, nu=1.5), lambda x, z: gp.Matern(2.0, nu=1.5)([x], [z])[0, 0]),
    (Matern(length_scale=2.0, nu=2.5), lambda x, z: gp.Matern(2.0, nu=2.5)([x], [z])[0, 0]),
    (Matern(length_scale=2.0, nu=0.9), lambda x, z: gp.Matern(2.0, nu=0.9)([x], [z])[0, 0]),
    (Matern(length_scale=2.0, nu=7.3), lambda x, z: gp.Matern(2.0, nu=7.3)([x], [z])[0, 0]),
    (Matern(length_scale=2.0, nu=math.inf), lambda x, z: math.exp(-(l2(x, z) ** 2) / 8)),
    (Matern(), None),
    (ChiSquared(gamma=0.5), lambda x, z: math.exp(-0.5 * chi2(x, z))),
    (ChiSquared(), None),
    (HistogramIntersection(), lambda x, z: np.minimum(x, z).sum()),
    (Cosine(), cosine),
    (Tanimoto(), tanimoto),
    (Constant(2.0), lambda x, z: 2.0),
    (FunctionKernel(inner, psd=True), lambda x, z: x @ z),
    (Linear() + RBF(gamma=0.5), lambda x, z: x @ z + math.exp(-0.5 * l2(x, z) ** 2)),
    (Linear() * RBF(), None),
    (Linear() + 1, lambda x, z: x @ z + 1),
    (3.0 * Cosine(), lambda x, z: 3 * cosine(x, z)),
    ((Linear() + 0.5) ** 2, lambda x, z: (x @ z + 0.5) ** 2),
    (Tanimoto() ** 0.5, lambda x, z: math.sqrt(tanimoto(x, z))),
]
IDS = [f"{i}-{kernel_name(kernel)}" for i, (kernel, _) in enumerate(TABLE)]
every_kernel = pytest.mark.parametrize("kernel", [kernel for kernel, _ in TABLE], ids=IDS)


def samples(n=30, d=5, seed=0):
    """Non-negative and a third zeros, with a zero row and a repeated one."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(n, d)) * (rng.random((n, d)) < 0.7)
    X[3] = 0.0
    X[5] = X[7]
    return X


@pytest.mark.parametrize(("kernel", "definition"), TABLE, ids=IDS)
def test_definition(kernel, definition):
    X, Z = samples(12), samples(9, seed=1)
    kernel = clone(kernel).fit(X)
    if definition is not None:
        expected = [[definition(x, z) for z in X] for x in Z]
        np.testing.assert_allclose(kernel(Z, X), expected, rtol=1e-12, atol=1e-12)


@every_kernel
@pytest.mark.parametrize("d", [1, 5, 20])
def test_training_matrix(kernel, d, monkeypatch):
    monkeypatch.setattr("multikernel.kernels.base.BLOCK", 16)
    X = samples(40, d)
    kernel = clone(kernel).fit(X)
    K = kernel(X)
    assert K.dtype == np.float64
    assert np.array_equal(K, K.T)
    if isinstance(kernel, FunctionKernel):
        np.testing.assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-14)
    else:
        assert np.array_equal(kernel.diag(X), np.diag(K))
    np.testing.assert_allclose(kernel(X[4:9], X), K[4:9], rtol=1e-9, atol=1e-11 * np.abs(K).max())
    np.testing.assert_allclose(kernel(X, X.copy()), K, rtol=1e-9, atol=1e-11 * np.abs(K).max())
    np.testing.assert_allclose(K[5], K[7], rtol=1e-9, atol=1e-11 * np.abs(K).max())
    if kernel.positive_semidefinite:
        values = np.linalg.eigvalsh(K)
        assert values[0] >= -1e-12 * len(X) * values[-1]


@every_kernel
@pytest.mark.parametrize("d", [5, 20])
def test_sparse_equals_dense(kernel, d):
    X = samples(25, d)
    dense, thin = clone(kernel).fit(X), clone(kernel).fit(sparse.csr_array(X))
    size = np.abs(dense(X)).max()
    np.testing.assert_allclose(thin(sparse.csr_matrix(X)), dense(X), rtol=1e-9, atol=1e-11 * size)
    np.testing.assert_allclose(
        thin(sparse.csc_array(X)[:4], X), dense(X[:4], X), rtol=1e-9, atol=1e-11 * size
    )
    np.testing.assert_allclose(
        dense(X[:4], sparse.coo_array(X)), dense(X[:4], X), rtol=1e-9, atol=1e-11 * size
    )
    np.testing.assert_allclose(thin.diag(sparse.csr_array(X)), dense.diag(X), rtol=1e-12)


@every_kernel
def test_input_is_not_modified(kernel):
    X = samples()
    frozen = X.copy()
    frozen.setflags(write=False)
    clone(kernel).fit(frozen, np.ones(len(X)))(frozen, frozen[::2])
    clone(kernel).fit(frozen)(frozen)
    # two entries at one place, unsorted: not canonical
    thin = sparse.csr_array(
        (np.array([1.0, 2.0, 0.5]), np.array([1, 0, 1]), np.array([0, 3, 3])), shape=(2, 2)
    )
    parts = [thin.data, thin.indices, thin.indptr]
    before = [part.copy() for part in parts]
    for part in parts:
        part.setflags(write=False)
    fitted = clone(kernel).fit(thin)
    np.testing.assert_allclose(fitted(thin), fitted(thin.toarray()), rtol=1e-12, atol=1e-15)
    assert all(np.array_equal(part, old) for part, old in zip(parts, before, strict=True))


@every_kernel
def test_other_layouts_and_precisions(kernel):
    X = samples(20, 6).astype(np.float32)
    reference = clone(kernel).fit(X.astype(np.float64))(X.astype(np.float64))
    for other in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], pd.DataFrame(X), X.tolist()):
        K = clone(kernel).fit(other)(other)
        assert K.dtype == np.float64
        np.testing.assert_allclose(K, reference, rtol=1e-12)


@every_kernel
def test_clone_pickle_and_params(kernel):
    X = samples()
    fitted = clone(kernel).fit(X)
    K = fitted(X)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted))(X), K)
    copy = clone(fitted)
    assert not copy.__sklearn_is_fitted__()
    assert repr(copy) == repr(kernel)
    assert np.array_equal(copy.fit(X)(X), K)
    params = kernel.get_params(deep=True)
    assert repr(clone(kernel).set_params(**{k: v for k, v in params.items() if "__" not in k})) == repr(
        kernel
    )


@every_kernel
def test_weights_are_repetition(kernel):
    X = samples(15)
    weight = np.random.default_rng(2).integers(0, 4, len(X))
    repeated = np.repeat(X, weight, axis=0)
    repeated = repeated[np.random.default_rng(3).permutation(len(repeated))]
    by_weight, by_copies = clone(kernel).fit(X, weight), clone(kernel).fit(repeated)
    np.testing.assert_allclose(by_weight(X), by_copies(X), rtol=1e-12)


def test_nested_parameters():
    kernel = Sum(RBF(gamma=1.0), Scaled(Product(Linear(), RBF(width=2.0)), 3.0))
    kernel.set_params(k1__gamma=5.0, k2__kernel__k2__width=7.0, k2__constant=2.0)
    assert repr(kernel) == repr(Sum(RBF(gamma=5.0), Scaled(Product(Linear(), RBF(width=7.0)), 2.0)))


def test_operators():
    k = Linear()
    assert isinstance(k + k, Sum) and isinstance(k * k, Product) and isinstance(k**2, Power)
    assert isinstance(2 * k, Scaled) and isinstance(np.float64(2) * k, Scaled) and isinstance(k * 2, Scaled)
    assert isinstance(inner + k, Sum) and isinstance(inner * k, Product)
    assert sum([k]) is k and (k + 0) is k
    assert isinstance(1.5 + k, Sum)
    for bad in (lambda: k + "a", lambda: k * None, lambda: k ** "a", lambda: None + k):
        with pytest.raises(TypeError):
            bad()


@pytest.mark.parametrize(
    ("kernel", "claim"),
    [
        (Linear() + Constant(-1.0), False),
        (Linear() + 1, True),
        (-1.0 * Linear(), False),
        (Linear() ** 3, True),
        (RBF() ** 0.5, False),
        (Polynomial(coef0=-1.0), False),
        (FunctionKernel(inner), False),
        (RBF() * FunctionKernel(inner), False),
        (RBF() * inner, False),
    ],
)
def test_claims(kernel, claim):
    assert kernel.positive_semidefinite is claim


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (RBF(gamma=0.5), "rbf(gamma=0.5)"),
        (RBF(), "rbf"),
        (ChiSquared(), "chi_squared"),
        (HistogramIntersection(), "histogram_intersection"),
        (Matern(nu=0.5), "matern(nu=0.5)"),
        (2 * (Linear() + RBF(width=3)), "2 * (linear + rbf(width=3))"),
        ((Linear() * Cosine()) ** 2, "(linear * cosine) ** 2"),
        (Linear() ** 2, "linear ** 2"),
        (inner, "inner"),
        (gp.RBF(2.0), "RBF(length_scale=2)"),
    ],
)
def test_names(kernel, name):
    assert kernel_name(kernel) == name


BAD = [
    (RBF(gamma=-1), "The 'gamma' parameter of RBF must be a positive number or None. Got -1 instead."),
    (RBF(gamma=math.nan), "The 'gamma' parameter of RBF must be a positive number or None. Got nan instead."),
    (RBF(width="a"), "The 'width' parameter of RBF must be a positive number or None. Got 'a' instead."),
    (RBF(quantile=2), "The 'quantile' parameter of RBF must be a number in (0, 1] or None. Got 2 instead."),
    (RBF(factor=0), "The 'factor' parameter of RBF must be a positive number. Got 0 instead."),
    (
        RBF(1.0, factor=2.0),
        "The 'factor' parameter of RBF must be 1 where 'gamma' is given. Got 2.0 instead.",
    ),
    (
        RBF(1.0, width=2.0),
        "Only one of the parameters 'gamma' and 'width' of RBF may be given. Got 1.0 and 2.0.",
    ),
    (
        Laplacian(True),
        "The 'gamma' parameter of Laplacian must be a positive number or None. Got True instead.",
    ),
    (
        Matern(nu=0),
        "The 'nu' parameter of Matern must be a positive number up to 100, or infinity. Got 0 instead.",
    ),
    (Polynomial(2.5), "The 'degree' parameter of Polynomial must be a positive integer. Got 2.5 instead."),
    (
        Polynomial(gamma=0),
        "The 'gamma' parameter of Polynomial must be a positive number or None. Got 0 instead.",
    ),
    (Polynomial(coef0=None), "The 'coef0' parameter of Polynomial must be a number. Got None instead."),
    (Constant("a"), "The 'value' parameter of Constant must be a number. Got 'a' instead."),
    (Linear() ** -1, "The 'exponent' parameter of Power must be a non-negative number. Got -1 instead."),
    (Scaled(Linear(), math.inf), "The 'constant' parameter of Scaled must be a number. Got inf instead."),
]


@pytest.mark.parametrize(("kernel", "sentence"), BAD, ids=[sentence[:40] for _, sentence in BAD])
def test_bad_parameters(kernel, sentence):
    with pytest.raises(ValueError) as caught:
        kernel.fit(samples())
    assert str(caught.value) == sentence


def test_bad_samples():
    X = samples()
    with pytest.raises(ValueError, match=r"ChiSquared needs non-negative columns\. Got the value -1 instead"):
        ChiSquared().fit(X - 1.0 * (X == 0))
    with pytest.raises(ValueError, match="HistogramIntersection needs non-negative"):
        HistogramIntersection().fit(sparse.csr_array(-X))
    with pytest.raises(ValueError, match=r"RBF was fitted on 5 columns\. Got 4 instead"):
        RBF().fit(X)(X[:, :4])
    with pytest.raises(ValueError, match="NaN or infinity"):
        RBF().fit(np.where(X == 0, np.nan, X))
    with pytest.raises(ValueError, match="NaN or infinity"):
        RBF().fit(sparse.csr_array(np.where(X > 2, np.inf, X)))
    with pytest.raises(ValueError, match="numeric columns"):
        Linear().fit([["a"], ["b"]])
    with pytest.raises(ValueError, match="real numbers"):
        Linear().fit(X * 1j)
    with pytest.raises(ValueError, match="real numbers"):
        Linear().fit(sparse.csr_array(X * 1j))
    with pytest.raises(ValueError, match=r"shape \(n, d\)"):
        Linear().fit(X[0])
    with pytest.raises(ValueError, match=r"shape \(30,\)"):
        RBF().fit(X, np.ones(3))
    with pytest.raises(ValueError, match="not all zero"):
        RBF().fit(X, np.zeros(30))
    with pytest.raises(NotFittedError, match="call fit first"):
        (RBF() + Linear())(X)
    with pytest.raises(NotFittedError, match="call fit first"):
        (2 * RBF())(X)
    with pytest.raises(ValueError, match="must be an integer for a kernel with negative values"):
        (Linear() ** 0.5)(X - 1)
    with pytest.raises(TypeError, match="must be a Kernel or a callable"):
        Sum(Linear(), 3).fit(X)
    # the sum of finite values may overflow
    assert Cosine().fit(np.full((2, 2), 1e308)).n_features_in_ == 2


def test_base_class_asks_for_its_methods():
    class Half(Kernel):
        pass

    with pytest.raises(NotImplementedError, match="Half does not define _cross"):
        Half()(samples(), samples())
    with pytest.raises(NotImplementedError, match="Half does not define _diag"):
        Half().diag(samples())


def test_functions():
    X = samples()
    with pytest.raises(ValueError, match="'<lambda>' must be symmetric"):
        FunctionKernel(lambda X, Y: X[:, :1] + 0 * Y[:, 0])(X)
    with pytest.raises(ValueError, match=r"must return a matrix of shape \(30, 30\). Got \(30, 5\)"):
        FunctionKernel(lambda X, Y: X)(X)
    with pytest.raises(TypeError, match="must be callable"):
        FunctionKernel(3).fit(X)
    words = ["abc", "ab", "b"] * 20
    common = FunctionKernel(lambda X, Y: [[len(set(x) & set(y)) for y in Y] for x in X])
    assert np.array_equal(common.fit(words)(words[:3]), [[3, 2, 1], [2, 2, 1], [1, 1, 1]])
    assert np.array_equal(common.fit(words).diag(words), [3, 2, 1] * 20)
    frame = pd.DataFrame({"word": ["abc", "b"]})
    same = FunctionKernel(lambda X, Y: np.equal.outer(X["word"].to_numpy(), Y["word"].to_numpy()))
    assert np.array_equal(same.fit(frame)(frame), np.eye(2)) and np.array_equal(same.diag(frame), [1, 1])
    f32 = FunctionKernel(lambda X, Y: (X @ Y.T).astype(np.float32))
    np.testing.assert_allclose(f32(X), X @ X.T, rtol=1e-6)


# Distances and their quantiles.


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
    assert (
        quantile_distance("cityblock", np.array([[0.0], [1.0], [5.0]]), 1.0, np.array([0.5, 0.5, 0.0])) == 1.0
    )


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
    monkeypatch.setattr("multikernel.kernels.base.BLOCK", 7)
    np.testing.assert_allclose(RBF().fit(X)(X), expected, rtol=1e-13)
    K = ChiSquared().fit(X)(X)
    assert np.array_equal(K, K.T)
