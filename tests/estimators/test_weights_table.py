"""Weights with their names: kernel by kernel, view by view, and in the HTML view."""

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr

from multikernel import LPBetaClassifier, MKLClassifier, MKLClassifierCV, stack_kernels
from multikernel.kernels import RBF, Linear, Matern, kernel_name, per_column, per_group, rbf_family

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
TWO, THREE = X[:, 0] + 0.3 * RNG.normal(size=60) > 0, np.arange(60) % 3
VIEWS = [("mirna", rbf_family(factors=[0.25, 1.0]), [0, 1]), ("age", Linear(), [2])]


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (RBF(), "rbf"),
        (RBF(factor=0.25), "rbf(0.25)"),
        (RBF(quantile=0.5, factor=0.25), "rbf(0.25)"),
        (RBF(quantile=0.5), "rbf(1)"),
        (RBF(quantile=0.1, factor=2.0), "rbf(factor=2, quantile=0.1)"),
        (RBF(gamma=0.5), "rbf(gamma=0.5)"),
        (RBF(width=2.0), "rbf(width=2)"),
        (Matern(nu=2.5, factor=2.0), "matern(2, nu=2.5)"),
        (Matern(nu=2.5), "matern(nu=2.5)"),
    ],
    ids=str,
)
def test_names_of_kernels_are_short(kernel, name):
    assert kernel_name(kernel) == name


def test_a_frame_has_the_weights_with_their_names():
    pytest.importorskip("pandas")
    for model in (MKLClassifier(VIEWS, norm=2.0), MKLClassifierCV(VIEWS, Cs=[0.1, 1.0], cv=2, norm=2.0)):
        frame = model.fit(X, TWO).weights_frame()
        assert frame.columns.tolist() == ["view", "kernel", "weight", "contribution"]
        assert frame["kernel"].tolist() == model.kernel_names_ == ["mirna: rbf(0.25)", "mirna: rbf(1)", "age"]
        assert frame["view"].tolist() == ["mirna", "mirna", "age"]
        np.testing.assert_array_equal(frame["weight"], model.weights_)
        np.testing.assert_array_equal(frame["contribution"], model.kernel_contributions_)
        table = model.by_view()
        assert table["view"].tolist() == ["mirna", "age"] and table["kernels"].tolist() == [2, 1]
        np.testing.assert_allclose(table["weight"], [model.weights_[:2].sum(), model.weights_[2]])
        np.testing.assert_allclose(table["contribution"].sum(), 1.0)


def test_several_problems_are_named():
    pytest.importorskip("pandas")
    rest = MKLClassifier(VIEWS, multiclass="ovr").fit(X, THREE)
    frame = rest.weights_frame()
    assert frame["problem"].tolist() == ["0"] * 3 + ["1"] * 3 + ["2"] * 3
    np.testing.assert_array_equal(frame["weight"], rest.weights_.ravel())
    table = rest.by_view()
    assert len(table) == 6 and table["view"].tolist() == ["mirna", "age"] * 3
    pairs = MKLClassifier(VIEWS, multiclass="ovo").fit(X, THREE).weights_frame()["problem"]
    assert len(set(pairs)) == 3
    own = LPBetaClassifier(VIEWS, per_class=True, n_jobs=1).fit(X, THREE).weights_frame()
    assert len(own) == 9 and np.isfinite(own["contribution"]).all()


@pytest.mark.parametrize(
    ("kernels", "views"),
    [
        ("rbf", ["all columns"]),
        ([RBF(), ("age", Linear(), [2])], ["all columns", "age"]),
        (per_column(RBF()), ["0", "1", "2", "3"]),
        (per_group(RBF(), {"shape": [0, 1], "size": [2]}), ["shape", "size"]),
        ([("all", per_column(Linear()), [0, 1])], ["all"]),
    ],
)
def test_kernels_belong_to_views(kernels, views):
    assert list(MKLClassifier(kernels).fit(X, TWO).by_view()["view"]) == views


def test_views_of_tables_and_names_with_brackets():
    data = {"rna": X[:, :2], "age": X[:, 2:]}
    for kernels in ("rbf", Linear(), {"rna": rbf_family(), "age": Linear()}):
        assert list(MKLClassifier(kernels).fit(data, TWO).by_view()["view"]) == ["rna", "age"]
    named = [("dose[mg]", Linear(), [0]), ("size[cm]", rbf_family(), [1, 2]), RBF()]
    assert list(MKLClassifier(named).fit(X, TWO).by_view()["view"]) == ["dose[mg]", "size[cm]", "all columns"]
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    assert list(MKLClassifier({"a": Linear(), "b": "rbf"}).fit(frame, TWO).by_view()["view"]) == ["a", "b"]


def test_precomputed_kernels_are_views():
    stack = stack_kernels({"rna: wide": X @ X.T, "rna: near": np.eye(60), "age": np.outer(X[:, 2], X[:, 2])})
    assert list(MKLClassifier("precomputed").fit(stack, TWO).by_view()["view"]) == ["rna", "age"]
    joint = MKLClassifier(VIEWS, output_kernels=[np.eye(3), np.ones((3, 3)) + np.eye(3)]).fit(X, THREE)
    assert list(joint.by_view()["view"]) == ["mirna", "age"] and sum(joint.by_view()["kernels"]) == 6


def test_without_pandas_the_columns_are_lists(monkeypatch):
    model = MKLClassifier(VIEWS).fit(X, TWO)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert model.weights_frame()["weight"] == model.weights_.tolist() and model.by_view()["kernels"] == [2, 1]


def test_before_a_fit_there_are_no_weights():
    for method in ("weights_frame", "by_view"):
        with pytest.raises(NotFittedError):
            getattr(MKLClassifier(VIEWS), method)()


def test_the_html_view_has_weights_with_names():
    model = MKLClassifier(VIEWS)
    assert "weight 0" not in estimator_html_repr(model)
    page, table = estimator_html_repr(model.fit(X, TWO)), model.by_view()
    for view, weight in zip(table["view"], table["weight"], strict=True):
        assert f"{view} (weight {weight:.2g})" in page
    plain = MKLClassifier().fit(X, TWO)
    assert f"rbf(0.25) (weight {plain.weights_[0]:.2g})" in estimator_html_repr(plain)
    assert "weight 0" not in estimator_html_repr(MKLClassifier(VIEWS, multiclass="ovr").fit(X, THREE))
