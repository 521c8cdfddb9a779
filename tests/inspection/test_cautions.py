"""The cautions of a report: each is found where it is planted, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from multikernel import MKLClassifier, MKLClassifierCV, MKLRegressor, Views, stack_kernels
from multikernel.inspection import find_cautions
from multikernel.inspection.page.cautions import TITLES
from multikernel.inspection.view_importance import ViewImportance
from multikernel.kernels import RBF, Linear

RNG = np.random.default_rng(1)
N, M = 80, 40
X = RNG.normal(size=(N + M, 3))
SIGNAL = X[:, 0] + 0.3 * RNG.normal(size=N + M)
Y = np.where(SIGNAL > 0, "a", "b")
PAIR = [("u", Linear(), [0, 1]), ("v", RBF(), [2])]


def found(samples=X, y=Y, model=None, train=True, **options):
    model = MKLClassifier(PAIR) if model is None else model
    model = model.fit(samples[:N], y[:N])
    if train:
        options |= {"X_train": samples[:N], "y_train": y[:N]}
    return find_cautions(model, samples[N:], y[N:], **options)


def kinds(*arguments, **options):
    return [each.kind for each in found(*arguments, **options)]


def test_nothing_is_found_in_sound_data():
    assert kinds() == [] and kinds(train=False) == []
    assert kinds(y=SIGNAL, model=MKLRegressor(PAIR)) == []
    assert kinds(sparse.csr_array(np.round(X, 1))) == []


@pytest.mark.parametrize(("column", "words"), [
    (np.arange(N + M), "index-like: it counts the rows"),
    (np.cumsum(RNG.uniform(size=N + M)), "rises or falls from row to row"),
    ((Y == "a") + 1e-3 * RNG.normal(size=N + M), "alone tells the target almost perfectly"),
])  # fmt: skip
def test_columns_that_give_the_answer_away(column, words):
    (caution,) = found(np.column_stack([X, column]))
    assert caution.kind == "leakage" and words in caution.text and "column 3" in caution.text


def test_columns_of_frames_views_and_regression():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abc")).assign(patient_id=RNG.permutation(500)[: N + M])
    model = MKLClassifier([("u", Linear(), ["a", "b"])])
    train, test = frame[:N], frame[N:]
    cautions = find_cautions(model.fit(train, Y[:N]), test, Y[N:], X_train=train, y_train=Y[:N])
    assert [each.text for each in cautions] == ["The column 'patient_id' looks id-like: its name."]
    views = Views({"rna": X, "row": np.arange(N + M)[:, None] * 1.0})
    (caution,) = [each for each in found(views, model=MKLClassifier("linear")) if each.kind == "leakage"]
    assert "'row: column 0'" in caution.text
    (caution,) = found(np.column_stack([X, 2.0 * SIGNAL]), SIGNAL, model=MKLRegressor(PAIR))
    assert "alone tells the target" in caution.text


def test_bad_parameters_are_named():
    model = MKLClassifier(PAIR).fit(X[:N], Y[:N])
    for options, words in (
        ({"collinear": -1.0}, "The 'collinear' parameter of find_cautions must be a number of at least 0"),
        ({"few": 0.5}, "The 'few' parameter"),
        ({"importance": 1}, "The 'importance' parameter"),
        ({"X_train": X}, "needs both 'X_train' and 'y_train'"),
        ({"X_train": X, "y_train": Y[:3]}, "The 'y_train' parameter"),
    ):
        with pytest.raises(ValueError, match=words):
            find_cautions(model, X[N:], Y[N:], **options)
    with pytest.raises(ValueError, match="2 features"):
        find_cautions(model, X[N:, :2], Y[N:])


def test_samples_on_both_sides():
    samples = X.copy()
    samples[N] = samples[3]
    (caution,) = found(samples)
    assert caution.text.startswith("1 test sample is also among the training samples")
    samples[N + 1] = samples[4]
    assert found(samples)[0].text.startswith("2 test samples are")


def test_imbalance_and_classes_that_training_had_not():
    y = np.where(np.arange(N + M) % 10 == 0, "rare", "common")
    (caution,) = found(y=y)
    assert caution.kind == "imbalance" and "'common' has 72 samples, 'rare' has 8" in caution.text
    y = Y.copy()
    y[-1] = "new"
    assert kinds(y=y) == ["classes"]


def test_missing_views_are_counted():
    part = X[:, 2:].copy()
    part[5:9] = np.nan
    part[-1] = np.nan
    cautions = found(Views({"u": X[:, :2], "v": part}), model=MKLClassifier("linear"))
    assert [each.kind for each in cautions] == ["missing", "missing"]
    assert "in the training samples: 4 samples lack it" in cautions[0].text
    assert "in the test samples: 1 samples lack it" in cautions[1].text


def test_kernels_that_are_alike_or_too_narrow():
    copies = [("u", Linear(), [0, 1]), ("w", Linear(), [0, 1])]
    (caution,) = found(model=MKLClassifier(copies))
    assert caution.kind == "collinear" and "1 pair of kernels from different views" in caution.text
    family = [("u", [RBF(factor=8.0), RBF(factor=9.0), RBF(factor=10.0)], [0, 1])]
    (caution,) = found(model=MKLClassifier(family))
    assert "3 pairs of kernels from the same view are nearly the same: for example" in caution.text
    narrow = MKLClassifier([("u", Linear(), [0, 1]), ("n", RBF(gamma=1e6), [2])])
    assert kinds(model=narrow, misleading=0.0) == ["narrow"]
    assert kinds(model=MKLClassifier(copies), collinear=1.1) == []
    stack = stack_kernels([X @ X.T, 2.0 * X @ X.T])
    assert "collinear" in kinds(stack, model=MKLClassifier("precomputed"))
    # rows of test samples against the training samples are no kernel matrix
    model = MKLClassifier("precomputed").fit(stack[:N], Y[:N])
    assert find_cautions(model, stack[np.ix_(np.arange(N, N + M), np.arange(N))], Y[N:]) == []


def test_weights_that_change_from_fold_to_fold():
    twins = np.column_stack([X[:, 0], X[:, 0] + 0.05 * RNG.normal(size=N + M)])
    pair = [("u", Linear(), [0]), ("w", Linear(), [1])]
    search = MKLClassifierCV(pair, Cs=[10.0], norms=[1.0], cv=4, baselines=False)
    cautions = found(twins, model=search, unstable=0.01, collinear=1.1)
    assert {each.kind for each in cautions} == {"unstable"} and "ranges from" in cautions[0].text
    half = np.array([0.5, 0.1])
    importance = ViewImportance(np.array(["u", "w"]), *[half] * 5, half, 0.9, "accuracy", 0.9, "view", 10)
    (caution,) = found(importance=importance)
    assert "'u' has weight in 50 % of the bootstraps only" in caution.text
    assert replace(importance, selected=1.0 - half / 10).selected[0] == 0.95


def test_a_large_weight_that_contributes_little():
    model = MKLClassifier(PAIR).fit(X[:N], Y[:N])
    model.weights_, model.kernel_contributions_ = np.array([0.9, 0.1]), np.array([0.01, 0.99])
    (caution,) = find_cautions(model, X[N:], Y[N:])
    assert caution.kind == "misleading" and "90 % of the weight and contributes 1 %" in caution.text


@pytest.mark.filterwarnings("ignore")
def test_the_certificate_the_grid_and_few_samples():
    model = MKLClassifier([*PAIR, ("w", RBF(factor=0.3), [0, 1])], C=1e3, tol=1e-9, max_iter=1)
    assert kinds(model=model, misleading=0.0)[0] == "certificate"
    search = MKLClassifierCV(PAIR, Cs=[1e-4, 1e-3], norms=[1.0], cv=3, baselines=False)
    (caution,) = [each for each in found(model=search) if each.kind == "grid"]
    assert "the largest value it tried" in caution.text or "the smallest value it tried" in caution.text
    assert kinds(few=50) == ["small"] and set(TITLES) >= {"small", "grid", "certificate"}
