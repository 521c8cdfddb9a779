"""Importance of columns: as scikit-learn's permutations, for every kind of samples, without training."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.inspection import permutation_importance

from multikernel import EasyMKLClassifier, MKLClassifier, MKLOneClass, MKLRegressor, Views, stack_kernels
from multikernel.inspection import column_importance
from multikernel.kernels import RBF, Linear, Spectrum, WeightedDegree, rbf_family

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 5))
Y = np.where(X[:, 0] + 0.7 * X[:, 3] > 0, "a", "b")
VIEWS = [("left", rbf_family(factors=[1.0, 2.0]), [0, 1, 2]), ("right", Linear(), [2, 3])]


def by_name(found):
    return dict(zip(found.names.tolist(), found.drop, strict=True))


def test_drops_are_those_of_permuted_samples():
    model = MKLClassifier(VIEWS, norm=2.0).fit(X[:60], Y[:60])
    found = column_importance(model, X[60:], Y[60:], n_repeats=200, random_state=0)
    theirs = permutation_importance(model, X[60:], Y[60:], n_repeats=200, random_state=0)
    assert found.score == model.score(X[60:], Y[60:]) and found.scorer == "accuracy"
    error = theirs.importances_std / np.sqrt(100)
    for j in range(5):
        assert abs(by_name(found)[str(j)] - theirs.importances_mean[j]) <= 4 * error[j]
    assert found.names[0] == "0" and list(found.drop) == sorted(found.drop, reverse=True)
    views = dict(zip(found.names.tolist(), found.views.tolist(), strict=True))
    assert views == {"0": "left", "1": "left", "2": "left, right", "3": "right", "4": ""}
    assert by_name(found)["4"] == 0.0


def test_outputs_after_a_permutation_are_those_of_the_model():
    seen = []

    def scorer(model, X, y):
        values = model.decision_function(X)
        other = MKLClassifier(VIEWS, norm=2.0).fit(*TRAIN)
        np.testing.assert_allclose(values, other.decision_function(np.array(X)), atol=1e-10)
        seen.append(X)
        return 0.0

    TRAIN = X[:60], Y[:60]
    column_importance(MKLClassifier(VIEWS, norm=2.0).fit(*TRAIN), X[60:], Y[60:], n_repeats=2, scoring=scorer)
    # four columns that are read, twice each, and the samples as they are
    assert len(seen) == 9 and sum(np.array_equal(each, X[60:]) for each in seen) == 1


def test_every_kind_of_samples():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("vwxyz"))
    before = frame.copy()
    entries = [("one", RBF(), ["v", "w"]), ("two", RBF(), ["y"])]
    found = column_importance(MKLClassifier(entries, norm=2.0), frame, Y, random_state=0)
    assert set(found.names[:2]) == {"v", "y"} and found.views[0] in ("one", "two")
    pd.testing.assert_frame_equal(frame, before)
    mixed = frame.assign(dna=["".join(RNG.choice(list("ACGT"), 6)) for _ in range(100)])
    found = column_importance(
        MKLClassifier([*entries, ("dna", Spectrum(2), "dna")], norm=2.0), mixed, Y, random_state=0
    )
    assert by_name(found)["v"] > 0.1 and "dna" in found.names
    csr = sparse.csr_array(X)
    found = column_importance(MKLClassifier(Linear()), csr, Y, random_state=0)
    assert set(found.names[:2]) == {"0", "3"} and set(found.views) == {"all columns"}
    np.testing.assert_array_equal(csr.toarray(), X)
    found = column_importance(MKLRegressor([Linear()], loss="squared", gram="features"), X, X[:, 1], random_state=0)
    assert found.names[0] == "1" and set(found.views) == {"all columns"} and found.scorer == "r2"


def test_columns_of_views():
    pd = pytest.importorskip("pandas")
    left = X[:, :2].copy()
    left[:5] = np.nan
    data = {"left": left, "right": pd.DataFrame(X[:, 2:], columns=list("xyz"))}
    model = MKLClassifier("rbf").fit(data, Y)
    found = column_importance(model, data, Y, random_state=0)
    assert set(found.names[:2]) == {"left: 0", "right: y"} and set(found.views) == {"left", "right"}
    views = Views(data)
    again = column_importance(model, views, Y, random_state=0)
    np.testing.assert_array_equal(again.drop, found.drop)
    np.testing.assert_array_equal(views["left"], left)
    texts = {"numbers": X, "dna": ["".join(RNG.choice(list("ACGT"), 6)) for _ in range(100)]}
    kernels = {"numbers": Linear(), "dna": Spectrum(2)}
    found = column_importance(MKLClassifier(kernels, norm=2.0), texts, Y, random_state=0, n_repeats=1)
    assert "dna" in found.names and found.std.max() == 0.0


def test_tables_and_words():
    found = column_importance(EasyMKLClassifier(VIEWS), X, Y, random_state=0, n_repeats=2)
    assert [row["column"] for row in found.rows()] == found.names.tolist()
    assert list(found.frame()["view"]) == found.views.tolist()
    assert "Permuted, a column takes away" in str(found) and "(not read by the model)" in str(found)
    wide = RNG.normal(size=(40, 30))
    assert "and 10 more" in str(column_importance(MKLClassifier(Linear()), wide, wide[:, 0] > 0, n_repeats=1))


def test_samples_without_columns_are_refused():
    with pytest.raises(
        ValueError, match=r"needs samples with columns. Got KernelStack .*view_importance\(by='kernel'\)"
    ):
        column_importance(MKLClassifier("precomputed"), stack_kernels([X @ X.T]), Y)
    texts = ["".join(RNG.choice(list("ACGT"), 6)) for _ in range(100)]
    with pytest.raises(ValueError, match=r"Got Sequences instead: use position_importance"):
        column_importance(MKLClassifier(WeightedDegree(2)), texts, Y)
    with pytest.raises(ValueError, match=r"must be an estimator of multikernel that predicts targets"):
        column_importance(MKLOneClass(), X, Y)
    with pytest.raises(ValueError, match=r"'n_repeats' parameter of column_importance"):
        column_importance(MKLClassifier(), X, Y, n_repeats=0)
