"""Kernels: one table, and for every line of it the whole battery; then operators, claims, names and functions."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from problems_kernels import chi2, l1, l2, samples
from scipy import sparse
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp

import multikernel.kernels as mk


def inner(X, Y):
    return np.asarray((X @ Y.T).todense()) if sparse.issparse(X) else X @ Y.T


def cosine(x, z):
    size = math.sqrt((x @ x) * (z @ z))
    return x @ z / size if size else 0.0


def tanimoto(x, z):
    union = x @ x + z @ z - x @ z
    return x @ z / union if union else 1.0


# a kernel, and its definition k(x, z); None where the scale is learned, which has its own tests
TABLE = [
    (mk.Linear(), lambda x, z: x @ z),
    (mk.Polynomial(), lambda x, z: (x @ z / len(x) + 1) ** 3),
    (mk.Polynomial(degree=2, gamma=0.5, coef0=0.25), lambda x, z: (0.5 * (x @ z) + 0.25) ** 2),
    (mk.RBF(gamma=0.5), lambda x, z: math.exp(-0.5 * l2(x, z) ** 2)),
    (mk.RBF(width=3.0), lambda x, z: math.exp(-(l2(x, z) ** 2) / 3)),
    (mk.RBF(), None),
    (mk.RBF(quantile=0.3, factor=2.0), None),
    (mk.Laplacian(gamma=0.5), lambda x, z: math.exp(-0.5 * l1(x, z))),
    (mk.Laplacian(), None),
    (mk.Matern(length_scale=2.0, nu=0.5), lambda x, z: math.exp(-l2(x, z) / 2)),
    (mk.Matern(length_scale=2.0, nu=1.5), lambda x, z: gp.Matern(2.0, nu=1.5)([x], [z])[0, 0]),
    (mk.Matern(length_scale=2.0, nu=2.5), lambda x, z: gp.Matern(2.0, nu=2.5)([x], [z])[0, 0]),
    (mk.Matern(length_scale=2.0, nu=0.9), lambda x, z: gp.Matern(2.0, nu=0.9)([x], [z])[0, 0]),
    (mk.Matern(length_scale=2.0, nu=7.3), lambda x, z: gp.Matern(2.0, nu=7.3)([x], [z])[0, 0]),
    (mk.Matern(length_scale=2.0, nu=math.inf), lambda x, z: math.exp(-(l2(x, z) ** 2) / 8)),
    (mk.Matern(), None),
    (mk.ChiSquared(gamma=0.5), lambda x, z: math.exp(-0.5 * chi2(x, z))),
    (mk.ChiSquared(), None),
    (mk.HistogramIntersection(), lambda x, z: np.minimum(x, z).sum()),
    (mk.Cosine(), cosine),
    (mk.Tanimoto(), tanimoto),
    (mk.Constant(2.0), lambda x, z: 2.0),
    (mk.FunctionKernel(inner, psd=True), lambda x, z: x @ z),
    (mk.Linear() + mk.RBF(gamma=0.5), lambda x, z: x @ z + math.exp(-0.5 * l2(x, z) ** 2)),
    (mk.Linear() * mk.RBF(), None),
    (mk.Linear() + 1, lambda x, z: x @ z + 1),
    (3.0 * mk.Cosine(), lambda x, z: 3 * cosine(x, z)),
    ((mk.Linear() + 0.5) ** 2, lambda x, z: (x @ z + 0.5) ** 2),
    (mk.Tanimoto() ** 0.5, lambda x, z: math.sqrt(tanimoto(x, z))),
]
IDS = [f"{i}-{mk.kernel_name(kernel)}" for i, (kernel, _) in enumerate(TABLE)]
every_kernel = pytest.mark.parametrize("kernel", [kernel for kernel, _ in TABLE], ids=IDS)


def test_the_table_holds_every_kernel_on_vectors():
    public = {
        value for value in map(vars(mk).get, mk.__all__) if isinstance(value, type) and issubclass(value, mk.Kernel)
    }
    on_vectors = {kind for kind in public if kind.__module__.endswith((".vectors", ".radial", ".function"))}
    assert on_vectors <= {type(kernel) for kernel, _ in TABLE}


DEFINED = {name: pair for name, pair in zip(IDS, TABLE, strict=True) if pair[1] is not None}


@pytest.mark.parametrize(("kernel", "definition"), DEFINED.values(), ids=DEFINED)
def test_definition(kernel, definition):
    X, Z = samples(12), samples(9, seed=1)
    expected = [[definition(x, z) for z in X] for x in Z]
    np.testing.assert_allclose(clone(kernel).fit(X)(Z, X), expected, rtol=1e-12, atol=1e-12)


def test_a_learned_scale_is_the_scale_in_use():
    X, Z = samples(12), samples(9, seed=1)
    learned = [(mk.RBF(), "gamma"), (mk.RBF(), "width"), (mk.Laplacian(), "gamma"), (mk.ChiSquared(), "gamma")]
    for kernel, parameter in [*learned, (mk.Matern(), "length_scale")]:
        fitted = clone(kernel).fit(X)
        given = clone(kernel).set_params(**{parameter: getattr(fitted, f"{parameter}_")})
        np.testing.assert_allclose(fitted(Z, X), given(Z, X), rtol=1e-12)


@every_kernel
@pytest.mark.parametrize("d", [1, 5, 20])
def test_training_matrix(kernel, d, monkeypatch):
    monkeypatch.setattr("multikernel.kernels.base.ROWS", 16)
    X = samples(40, d)
    kernel = clone(kernel).fit(X)
    K = kernel(X)
    assert K.dtype == np.float64
    assert np.array_equal(K, K.T)
    if isinstance(kernel, mk.FunctionKernel):
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
    np.testing.assert_allclose(thin(sparse.csc_array(X)[:4], X), dense(X[:4], X), rtol=1e-9, atol=1e-11 * size)
    np.testing.assert_allclose(dense(X[:4], sparse.coo_array(X)), dense(X[:4], X), rtol=1e-9, atol=1e-11 * size)
    np.testing.assert_allclose(thin.diag(sparse.csr_array(X)), dense.diag(X), rtol=1e-12)


@every_kernel
def test_input_is_not_modified(kernel):
    X = samples()
    frozen = X.copy()
    frozen.setflags(write=False)
    clone(kernel).fit(frozen, np.ones(len(X)))(frozen, frozen[::2])
    clone(kernel).fit(frozen)(frozen)
    # two entries at one place, unsorted: not canonical
    thin = sparse.csr_array((np.array([1.0, 2.0, 0.5]), np.array([1, 0, 1]), np.array([0, 3, 3])), shape=(2, 2))
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
    assert repr(clone(kernel).set_params(**{k: v for k, v in params.items() if "__" not in k})) == repr(kernel)


@every_kernel
def test_weights_are_repetition(kernel):
    X = samples(15)
    weight = np.random.default_rng(2).integers(0, 4, len(X))
    repeated = np.repeat(X, weight, axis=0)
    repeated = repeated[np.random.default_rng(3).permutation(len(repeated))]
    by_weight, by_copies = clone(kernel).fit(X, weight), clone(kernel).fit(repeated)
    np.testing.assert_allclose(by_weight(X), by_copies(X), rtol=1e-12)


def test_nested_parameters():
    kernel = mk.Sum(mk.RBF(gamma=1.0), mk.Scaled(mk.Product(mk.Linear(), mk.RBF(width=2.0)), 3.0))
    kernel.set_params(k1__gamma=5.0, k2__kernel__k2__width=7.0, k2__constant=2.0)
    assert repr(kernel) == repr(mk.Sum(mk.RBF(gamma=5.0), mk.Scaled(mk.Product(mk.Linear(), mk.RBF(width=7.0)), 2.0)))


def test_operators():
    k = mk.Linear()
    assert isinstance(k + k, mk.Sum) and isinstance(k * k, mk.Product) and isinstance(k**2, mk.Power)
    assert isinstance(2 * k, mk.Scaled) and isinstance(np.float64(2) * k, mk.Scaled) and isinstance(k * 2, mk.Scaled)
    assert isinstance(inner + k, mk.Sum) and isinstance(inner * k, mk.Product)
    assert sum([k]) is k and (k + 0) is k
    assert isinstance(1.5 + k, mk.Sum)
    for bad in (lambda: k + "a", lambda: k * None, lambda: k ** "a", lambda: None + k):
        with pytest.raises(TypeError):
            bad()


@pytest.mark.parametrize(
    ("kernel", "claim"),
    [
        (mk.Linear() + mk.Constant(-1.0), False),
        (mk.Linear() + 1, True),
        (-1.0 * mk.Linear(), False),
        (mk.Linear() ** 3, True),
        (mk.RBF() ** 0.5, False),
        (mk.Polynomial(coef0=-1.0), False),
        (mk.FunctionKernel(inner), False),
        (mk.RBF() * mk.FunctionKernel(inner), False),
        (mk.RBF() * inner, False),
    ],
)
def test_claims(kernel, claim):
    assert kernel.positive_semidefinite is claim


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (mk.RBF(gamma=0.5), "rbf(gamma=0.5)"),
        (mk.RBF(), "rbf"),
        (mk.ChiSquared(), "chi_squared"),
        (mk.HistogramIntersection(), "histogram_intersection"),
        (mk.Matern(nu=0.5), "matern(nu=0.5)"),
        (2 * (mk.Linear() + mk.RBF(width=3)), "2 * (linear + rbf(width=3))"),
        ((mk.Linear() * mk.Cosine()) ** 2, "(linear * cosine) ** 2"),
        (mk.Linear() ** 2, "linear ** 2"),
        (inner, "inner"),
        (gp.RBF(2.0), "RBF(length_scale=2)"),
    ],
)
def test_names(kernel, name):
    assert mk.kernel_name(kernel) == name


def test_functions():
    X = samples()
    with pytest.raises(ValueError, match="'<lambda>' must be symmetric"):
        mk.FunctionKernel(lambda X, Y: X[:, :1] + 0 * Y[:, 0])(X)
    with pytest.raises(ValueError, match=r"must return a matrix of shape \(30, 30\). Got \(30, 5\)"):
        mk.FunctionKernel(lambda X, Y: X)(X)
    with pytest.raises(TypeError, match="must be callable"):
        mk.FunctionKernel(3).fit(X)
    words = ["abc", "ab", "b"] * 20
    common = mk.FunctionKernel(lambda X, Y: [[len(set(x) & set(y)) for y in Y] for x in X])
    assert np.array_equal(common.fit(words)(words[:3]), [[3, 2, 1], [2, 2, 1], [1, 1, 1]])
    assert np.array_equal(common.fit(words).diag(words), [3, 2, 1] * 20)
    frame = pd.DataFrame({"word": ["abc", "b"]})
    same = mk.FunctionKernel(lambda X, Y: np.equal.outer(X["word"].to_numpy(), Y["word"].to_numpy()))
    assert np.array_equal(same.fit(frame)(frame), np.eye(2)) and np.array_equal(same.diag(frame), [1, 1])
    f32 = mk.FunctionKernel(lambda X, Y: (X @ Y.T).astype(np.float32))
    np.testing.assert_allclose(f32(X), X @ X.T, rtol=1e-6)
