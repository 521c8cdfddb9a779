"""Columns, families, and the bank that holds the kernels of one model."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_selector
from sklearn.gaussian_process import kernels as gp

from multikernel import MKLClassifier
from multikernel.kernels import (
    RBF,
    ChiSquared,
    Family,
    FunctionKernel,
    KernelBank,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    named_entries,
    per_column,
    per_group,
    rbf_family,
    resolve_columns,
    take_columns,
)
from multikernel.kernels.bank import compute_tiles
from multikernel.kernels.distances import quantile_distance
from multikernel.threads import Team


def inner(X, Y):
    return X @ Y.T


def samples(n=30, d=5):
    rng = np.random.default_rng(0)
    return rng.gamma(2.0, size=(n, d)) * (rng.random((n, d)) < 0.7)


# Columns.

FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "c": ["x", "y"], "d": [5, 6]})


@pytest.mark.parametrize(
    ("columns", "positions"),
    [
        (None, None),
        (1, (1,)),
        (-1, (3,)),
        (np.int64(2), (2,)),
        ("b", (1,)),
        (["d", "a"], (3, 0)),
        ([0, "b"], (0, 1)),
        ((0, 3), (0, 3)),
        (np.array([3, 0]), (3, 0)),
        (slice(1, 3), (1, 2)),
        (slice(None, None, 2), (0, 2)),
        (slice("a", "c"), (0, 1, 2)),
        ([True, False, False, True], (0, 3)),
        (np.array([False, True, False, False]), (1,)),
        (pd.Index(["a", "d"]), (0, 3)),
        (make_column_selector(dtype_include="number"), (0, 1, 3)),
        (lambda X: [X.shape[1] - 1], (3,)),
    ],
)
def test_columns(columns, positions):
    assert resolve_columns(columns, FRAME) == positions
    numbers = np.arange(12.0).reshape(3, 4)
    index = list(range(4)) if positions is None else list(positions)
    assert np.array_equal(take_columns(numbers, positions), numbers[:, index])
    for thin in (sparse.csr_array(numbers), sparse.csc_array(numbers), sparse.coo_array(numbers)):
        assert np.array_equal(take_columns(thin, positions).toarray(), numbers[:, index])
    assert list(take_columns(FRAME, positions).columns) == [FRAME.columns[i] for i in index]


NAMELESS = (
    "The columns of k may be named only in a data frame. Got 'a' and no data frame. After a transformer such as "
    "StandardScaler, set_output(transform='pandas') of the transformer keeps the names."
)


@pytest.mark.parametrize(
    ("columns", "X", "sentence"),
    [
        ("e", FRAME, "The columns of k must be columns of the data frame. Got 'e' instead."),
        ("a", np.eye(3), NAMELESS),
        (3, np.eye(3), "The columns of k must be between -3 and 2. Got 3 instead."),
        (slice(1, 9), np.eye(3), "The columns of k must be between -3 and 2. Got slice(1, 9, None) instead."),
        (
            slice(0.5, 2),
            np.eye(3),
            "The columns of k must be a slice of positions or names. Got slice(0.5, 2, None).",
        ),
        ([True], np.eye(3), "The mask of columns of k must have 3 entries, one per column. Got 1 instead."),
        ([], np.eye(3), "The columns of k must be at least one column. Got none."),
        (
            [1.5],
            np.eye(3),
            "The columns of k must be positions, names, a slice, a mask or a callable. Got 1.5 instead.",
        ),
        (
            2.5,
            np.eye(3),
            "The columns of k must be positions, names, a slice, a mask or a callable. Got 2.5 instead.",
        ),
        (0, ["ab", "c"], "The columns of k must be None for samples without columns. Got 0 instead."),
        (
            "a",
            FRAME[["a", "a"]],
            "The columns of k must have unique names. Got 'a', of which there are several.",
        ),
    ],
)
def test_bad_columns(columns, X, sentence):
    with pytest.raises(ValueError) as caught:
        resolve_columns(columns, X, "k")
    assert str(caught.value) == sentence


# Families and the bank.


def test_families():
    X = samples(20, 4)
    assert [k.width for k in rbf_family([1, 2])] == [1, 2]
    assert [k.gamma for k in rbf_family(gammas=np.array([1.0, 2.0]))] == [1, 2]
    assert [k.factor for k in rbf_family(factors=5)] == [1.0, 2**-0.5, 2**0.5, 0.5, 2.0]
    assert [k.quantile for k in rbf_family(factors=[1.0], quantile=0.2)] == [0.2]
    bank = KernelBank.fit([rbf_family(factors=3), per_column([RBF(), Linear()])], X)
    assert bank.names[3:6] == ["rbf[0]", "linear[0]", "rbf[1]"] and bank.n_kernels == 11
    np.testing.assert_allclose(bank.kernels[1].width_, bank.kernels[0].width_ / 2)
    groups = {"first": [0, 1], "rest": slice(2, None)}
    bank = KernelBank.fit(per_group(RBF(), groups), X)
    assert bank.names == ["rbf[first]", "rbf[rest]"] and bank.columns == [(0, 1), (2, 3)]
    bank = KernelBank.fit([per_group(Linear(), [[0], [1, 2]]), ("c", per_column(Linear()), [0, 3])], X)
    assert bank.names == ["linear[0]", "linear[1]", "c: linear[0]", "c: linear[3]"]
    bank = KernelBank.fit(per_column(RBF()), pd.DataFrame(X, columns=list("abcd")))
    assert bank.names == ["rbf[a]", "rbf[b]", "rbf[c]", "rbf[d]"]
    assert repr(clone(per_column(RBF())).set_params(kernel__gamma=2.0)) == "PerColumn(kernel=RBF(gamma=2.0))"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: rbf_family([1], gammas=[1]), "Only one of the parameters 'widths' and 'gammas'"),
        (lambda: rbf_family([-1.0]), "The 'widths' parameter of rbf_family must be positive numbers"),
        (lambda: rbf_family([]), "The 'widths' parameter of rbf_family must be positive numbers"),
        (lambda: rbf_family(factors=0), "The 'factors' parameter of rbf_family must be positive numbers"),
        (lambda: per_group(RBF(), 3).expand(np.eye(3)), "The 'groups' parameter of per_group must be a list"),
        (lambda: per_group(RBF(), [[0]]).expand(np.eye(3), [1]), "per_group names its own columns"),
        (lambda: per_column(RBF()).expand(["a"]), "per_column needs samples with columns"),
        (lambda: KernelBank.fit(Family(), np.eye(3)), "Family does not define expand"),
    ],
)
def test_bad_families(make, sentence):
    with pytest.raises((ValueError, NotImplementedError), match=sentence):
        make()


def test_bank():
    X = samples(20, 4)
    frame = pd.DataFrame(X, columns=list("abcd"))
    spec = [
        RBF(gamma=0.5),
        RBF(gamma=0.5),
        ("lin", Linear(), ["d", "a"]),
        inner,
        ("two", rbf_family([1, 2]), ["b"]),
    ]
    bank = KernelBank.fit(spec, frame, normalize=["variance"])
    assert bank.names == [
        "rbf(gamma=0.5)",
        "rbf(gamma=0.5)-2",
        "lin",
        "inner",
        "two: rbf(width=1)",
        "two: rbf(width=2)",
    ]
    assert [kernel.positive_semidefinite for kernel in bank.kernels] == [True, True, True, False, True, True]
    assert bank.steps == ("variance",) and not hasattr(spec[0], "n_features_in_")
    np.testing.assert_allclose(bank.raw(2, frame[:3], frame), X[:3][:, [3, 0]] @ X[:, [3, 0]].T)
    np.testing.assert_allclose(bank.raw_diag(2, frame), (X[:, [3, 0]] ** 2).sum(axis=1))
    np.testing.assert_array_equal(bank.raw_diags(X), [bank.raw_diag(k, X) for k in range(6)])
    np.testing.assert_allclose(bank.raw(2, X), bank.raw(2, frame))
    assert bank.without_features() == [name for name in bank.names if name != "lin"]
    some = pickle.loads(pickle.dumps(bank.take([4, 2])))
    assert some.names == ["two: rbf(width=1)", "lin"]
    assert np.array_equal(some.raw(0, frame), bank.raw(4, frame))
    with pytest.raises(ValueError, match=r"must have 4 columns, as in fit\. Got 3 instead"):
        bank.raw(0, X[:, :3])
    with pytest.raises(ValueError, match=r"names they had in fit, in that order\. Got 'b' instead"):
        bank.raw(0, frame[["b", "a", "c", "d"]])


def test_bank_default():
    X = samples(20, 4)
    bank = KernelBank.fit("rbf", X)
    assert bank.n_kernels == 5
    median = quantile_distance("sqeuclidean", X, 0.5)
    np.testing.assert_allclose([k.width_ for k in bank.kernels], (median * 2.0 ** np.arange(-2, 3)) ** 2)
    weight = np.random.default_rng(0).integers(1, 3, 20)
    repeated = KernelBank.fit("rbf", np.repeat(X, weight, axis=0))
    weighted = KernelBank.fit("rbf", X, weight)
    assert [k.width_ for k in weighted.kernels] == [k.width_ for k in repeated.kernels]


def test_bank_learns_distances_once(monkeypatch):
    calls = []
    monkeypatch.setattr("multikernel.kernels.radial.quantile_distance", lambda *args: calls.append(args[0]) or 1.0)
    KernelBank.fit(["rbf", RBF() + Linear(), Laplacian(), ("a", "rbf", [0])], samples())
    assert calls == ["sqeuclidean", "cityblock", "sqeuclidean"]


@pytest.mark.parametrize("d", [4, 20])
def test_raw_each_equals_raw(d):
    X = samples(20, d)
    spec = [
        *rbf_family(),
        Linear(),
        Matern(),
        Matern(nu=3.7),
        ("c", ChiSquared(), [0, 1]),
        ("e", RBF(), [0, 1]),
    ]
    bank = KernelBank.fit(spec, X)
    for arguments in ((X,), (X[:3], X)):
        seen = dict(bank.raw_each(*arguments))
        assert sorted(seen) == list(range(bank.n_kernels))
        for k, K in seen.items():
            assert np.array_equal(K, bank.raw(k, *arguments))
    assert sorted(k for k, _ in bank.raw_each(X, kernels=[5, 0, 2])) == [0, 2, 5]


@pytest.mark.parametrize("unit", [1.0, 1e-25, 1e25])
def test_exponentials_in_single_precision_where_its_range_allows(unit):
    X = unit * samples(20, 4)
    bank = KernelBank.fit([RBF(), RBF(factor=2.0), Matern()], X)
    for arguments in ((X,), (X[:3], X)):
        seen = dict(bank.raw_each(*arguments, dtype=np.float32))
        for k, K in seen.items():
            # the squares of tiny and huge distances are out of the range of single precision; Matern is no exponential
            assert K.dtype == (np.float32 if unit == 1.0 and k < 2 else np.float64)
            np.testing.assert_allclose(K, bank.raw(k, *arguments), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("columns", [(), (2,)], ids=["vector", "columns"])
@pytest.mark.parametrize("factors", [False, True])
def test_tiles_are_the_kernels_and_their_products(factors, columns, n_threads, monkeypatch):
    monkeypatch.setattr("multikernel.kernels.bank.ROWS", 7)
    rng = np.random.default_rng(0)
    X = samples(30, 4)
    bank = KernelBank.fit([*rbf_family([1, 2]), Linear(), ("a", RBF(), [0])], X)
    kernels = [3, 0, 2]
    u = rng.random((3, 30)) if factors else np.ones((3, 30))
    weight = rng.standard_normal((30, *columns))
    weight[rng.random(30) < 0.6] = 0.0
    exact = np.array([bank.raw(k, X) for k in kernels])
    products = np.array([K @ (own.reshape(-1, *[1] * len(columns)) * weight) for K, own in zip(exact, u, strict=True)])
    out = np.zeros((3, 30, 30))
    arguments = bank, X, kernels, weight, Team(n_threads)
    for got in (
        compute_tiles(*arguments, list(out), factors=u if factors else None),
        compute_tiles(*arguments, factors=u if factors else None),
    ):
        np.testing.assert_allclose(got, products, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(out, exact, rtol=1e-10, atol=1e-12)
    assert np.array_equal(out, out.transpose(0, 2, 1))
    # without weights nothing is computed unless it is kept
    assert not compute_tiles(bank, X, kernels, np.zeros(30), Team(1)).any()
    assert compute_tiles(bank, X, [], weight, Team(1)).shape == (0, *weight.shape)


@pytest.mark.parametrize(
    ("spec", "error", "sentence"),
    [
        ("linaer", ValueError, "The 'kernels' parameter must be 'rbf', a kernel, or a list.*mean 'linear'"),
        ([], ValueError, "at least one kernel"),
        (
            [("a", Linear())],
            ValueError,
            r"An entry of 'kernels' must be a kernel or \(name, kernel, columns\)",
        ),
        (
            [("a", Linear(), 0), ("a", Linear(), 1)],
            ValueError,
            "names of the kernels must be unique. Got 'a' 2 times",
        ),
        ([("a__b", Linear(), 0)], ValueError, "must not contain '__'"),
        ([("a", 3, 0)], TypeError, "must be a Kernel or a callable"),
        ([RBF], TypeError, "must be a Kernel or a callable"),
        ([("a", RBF(gamma=-1), 0)], ValueError, "Kernel 'a': The 'gamma' parameter of RBF must be"),
        ([("a", RBF(), 9)], ValueError, "The columns of 'a' must be between"),
    ],
)
def test_bad_specs(spec, error, sentence):
    with pytest.raises(error, match=sentence):
        KernelBank.fit(spec, samples())


def test_bank_names_the_kernel_of_bad_values():
    X = samples()
    bank = KernelBank.fit([("big", Polynomial(degree=9), None), ("lin", Linear(), [0])], X)
    with (
        np.errstate(over="ignore"),
        pytest.raises(ValueError, match="Kernel 'big': the values have NaN or inf"),
    ):
        bank.raw(0, 1e100 * X)
    with pytest.raises(ValueError, match="Kernel 'lin': Linear got NaN"):
        bank.raw(1, np.where(X == 0, np.nan, X))
    # the sum of finite values may overflow
    assert np.isfinite(bank.raw(1, np.full((20, 5), 1e154))).all()


def test_bank_of_strings():
    words = ["abc", "ab", "b"]
    common = FunctionKernel(lambda X, Y: [[len(set(x) & set(y)) for y in Y] for x in X])
    bank = KernelBank.fit([common], words)
    assert np.array_equal(bank.raw(0, words[:1], words), [[3, 2, 1]])


def test_named_entries_keep_families():
    family = per_column(Linear())
    entries = named_entries([family, ("f", family, None), Linear()])
    assert [name for name, _, _ in entries] == [str(family), "f", "linear"] and entries[1][1] is family


def test_gaussian_process_kernels():
    X = samples()
    bank = KernelBank.fit([("a", gp.RBF(2.0) + gp.WhiteKernel(), [0, 1]), gp.DotProduct()], X)
    np.testing.assert_allclose(bank.raw(0, X), gp.RBF(2.0)(X[:, :2]), rtol=1e-12)
    np.testing.assert_allclose(bank.raw_diag(0, X), np.ones(30))
    np.testing.assert_allclose(bank.raw_diag(1, X), gp.DotProduct().diag(X))
    assert not bank.kernels[0].positive_semidefinite


def test_errors_of_any_class_name_their_kernel():
    def undecodable(A, B):
        return b"\xff".decode("utf-8")

    with pytest.raises(ValueError, match="Kernel 'undecodable': 'utf-8' codec"):
        KernelBank.fit([undecodable], np.ones((3, 2))).raw(0, np.ones((3, 2)))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("steps", ["variance", "trace", "cosine", ["center", "cosine"]])
@pytest.mark.parametrize("gram", ["dense", "lazy"])
def test_values_below_the_normal_numbers_count_as_zero(steps, gram):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.warns(UserWarning, match="constant on the training samples"):
        model = MKLClassifier([Linear()], normalize=steps, gram=gram).fit(1e-160 * X, X[:, 0] > 0)
    assert np.isfinite(model.decision_function(1e-160 * X)).all()


def test_many_names_are_found_in_one_pass_over_the_columns():
    class Frame:
        """Counts how often its names are asked for."""

        ndim, shape, asked = 2, (3, 500), 0

        @property
        def columns(self):
            self.asked += 1
            return [f"c{j}" for j in range(500)]

    frame = Frame()
    assert resolve_columns([f"c{j}" for j in range(499, -1, -1)], frame) == tuple(range(499, -1, -1))
    assert frame.asked < 10
    assert resolve_columns(["c49*", "c3"], frame) == (49, *range(490, 500), 3)
