"""Estimators on sequences: strings, bytes and columns of data frames, beside numbers, in searches, saved and read."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score

from multikernel import MKLClassifier, MKLClassifierCV, MKLOneClass, MKLRegressor, stack_kernels
from multikernel.datasets import available, dna, load
from multikernel.kernels import (
    RBF,
    AminoAcidComposition,
    DegreeBlocks,
    GappedKmer,
    Linear,
    LocalAlignment,
    PositionBlocks,
    Spectrum,
    WeightedDegree,
    WeightedDegreeShift,
    motif_kernels,
)

FIXED, Y = dna(160, 60, motif="GATTACAGGCAT", mutation=0.2)
TEXTS = FIXED.astype(str).tolist()
TRAIN, TEST = slice(0, 100), slice(100, 160)
FRAME = pd.DataFrame({"dna": TEXTS, "age": np.random.default_rng(0).normal(size=160) + Y, "size": np.arange(160.0)})
KERNELS = [WeightedDegree(10), Spectrum(4)]


def test_a_model_of_strings_is_that_of_its_gram_matrices():
    model = MKLClassifier(KERNELS, normalize=None, tol=1e-6).fit(TEXTS[TRAIN], Y[TRAIN])
    train = stack_kernels([kernel(TEXTS[TRAIN]) for kernel in KERNELS])
    other = MKLClassifier("precomputed", normalize=None, tol=1e-6).fit(train, Y[TRAIN])
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-5)
    test = stack_kernels([clone(kernel).fit(TEXTS[TRAIN])(TEXTS[TEST], TEXTS[TRAIN]) for kernel in KERNELS])
    np.testing.assert_allclose(model.decision_function(TEXTS[TEST]), other.decision_function(test), atol=1e-3)
    assert model.kernel_names_ == ["weighted_degree(degree=10)", "spectrum(k=4)"]
    assert model.score(TEXTS[TEST], Y[TEST]) > 0.85


@pytest.mark.parametrize("normalize", ["variance", ["cosine", "center"]], ids=str)
@pytest.mark.parametrize("gram", ["dense", "lazy", "memmap"])
def test_every_container_and_storage_gives_the_same_model(gram, normalize):
    reference = MKLClassifier(KERNELS, normalize=normalize, tol=1e-6).fit(TEXTS[TRAIN], Y[TRAIN])
    values = reference.decision_function(TEXTS[TEST])
    series = pd.Series(TEXTS, index=np.arange(160) * 7)
    for X in (TEXTS, FIXED, np.array(TEXTS), np.array(TEXTS, object)[:, None], series):
        model = MKLClassifier(KERNELS, normalize=normalize, tol=1e-6, gram=gram).fit(X[TRAIN], Y[TRAIN])
        np.testing.assert_allclose(model.decision_function(X[TEST]), values, atol=1e-3)


def test_saved_models_hold_their_support_vectors_only():
    model = MKLClassifier(KERNELS, C=0.1).fit(FIXED[TRAIN], Y[TRAIN])
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(TEXTS), model.decision_function(FIXED))
    weight = np.repeat([1.0, 0.0], [100, 1900])
    small = MKLClassifier([Spectrum(2)]).fit(TEXTS[TRAIN] * 20, np.tile(Y[TRAIN], 20), weight)
    assert len(pickle.dumps(small)) < 60_000


def test_strings_beside_numbers():
    kernels = [("wd", WeightedDegree(5), "dna"), ("age", RBF(), ["age"]), ("both", Linear(), ["age", "size"])]
    model = MKLClassifier(kernels, norm=2.0).fit(FRAME[TRAIN], Y[TRAIN])
    assert model.feature_names_in_.tolist() == ["dna", "age", "size"]
    assert model.score(FRAME[TEST], Y[TEST]) > 0.85 and (model.weights_ > 0).all()
    values = model.decision_function(FRAME[TEST])
    np.testing.assert_allclose(pickle.loads(pickle.dumps(model)).decision_function(FRAME[TEST]), values)
    lazy = MKLClassifier(kernels, norm=2.0, gram="lazy").fit(FRAME[TRAIN], Y[TRAIN])
    np.testing.assert_allclose(lazy.decision_function(FRAME[TEST]), values, atol=0.02)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(FRAME[["age", "dna", "size"]])
    blocks = [("wd", PositionBlocks(DegreeBlocks(WeightedDegree(3)), 6), "dna"), ("rest", RBF(), ["age", "size"])]
    model = MKLClassifier(blocks).fit(FRAME, Y)
    assert len(model.weights_) == 19
    best = model.kernel_names_[int(np.argmax(model.weights_[:18]))]
    # the motif lies at 30, ..., 41
    assert best.endswith(("30:40]", "40:50]"))


def test_searches():
    named = MKLClassifier([("wd", WeightedDegree(2), None), ("spectrum", Spectrum(3), None)])
    scores = [cross_val_score(named, X, Y, cv=3) for X in (TEXTS, FIXED, pd.Series(TEXTS))]
    assert np.array_equal(scores[0], scores[1]) and np.array_equal(scores[0], scores[2])
    search = GridSearchCV(named, {"wd__degree": [1, 6], "spectrum__k": [2]}, cv=2).fit(TEXTS, Y)
    assert search.best_estimator_.get_params()["wd__degree"] == search.best_params_["wd__degree"]
    assert cross_val_predict(named, FRAME["dna"], Y, cv=2).shape == (160,)
    own = MKLClassifierCV(KERNELS, Cs=[0.1, 1.0], cv=2, baselines=False).fit(TEXTS, Y)
    plain = GridSearchCV(MKLClassifier(KERNELS), {"C": [0.1, 1.0]}, cv=2).fit(TEXTS, Y)
    np.testing.assert_allclose(own.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], atol=0.03)
    framed = MKLClassifierCV([("wd", WeightedDegree(3), "dna"), ("age", RBF(), ["age"])], Cs=[0.1, 1.0], cv=2)
    assert framed.fit(FRAME, Y).best_score_ > 0.8


def test_other_estimators_take_sequences():
    weight = np.where(np.arange(160) % 3, 1.0, 0.0)
    regressor = MKLRegressor(KERNELS).fit(TEXTS, Y * 2.0, weight)
    assert np.corrcoef(regressor.predict(TEXTS), Y)[0, 1] > 0.8
    assert set(MKLOneClass([WeightedDegreeShift(3, 1)]).fit(FIXED).predict(FIXED)) <= {-1, 1}


def test_indefinite_alignment_scores_are_refused_or_repaired():
    rng = np.random.default_rng(3)
    X = ["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 6)) for _ in range(200)]
    y = np.array([x.count("W") + x.count("C") > 0 for x in X])
    kernels = [LocalAlignment("pam250"), AminoAcidComposition(), *motif_kernels()[:2]]
    with pytest.raises(ValueError, match=r"kernel 'local_alignment\(matrix=pam250\)' must be positive semidefinite"):
        MKLClassifier(kernels).fit(X, y)
    model = MKLClassifier(kernels, psd="clip").fit(X, y)
    assert model.duality_gap_ <= 1e-3 and model.score(X, y) > 0.8


@pytest.mark.parametrize(
    ("kernels", "X", "sentence"),
    [
        (RBF(), TEXTS, "Kernel 'rbf': RBF needs numeric columns. Got strings instead"),
        ("rbf", TEXTS, "RBF needs numeric columns. Got strings instead"),
        (WeightedDegree(2), [*TEXTS[:-1], "ACG"], "one length, as the first of 60 letters. Got one of 3 at index 159"),
        (Spectrum(2), [*TEXTS[:-1], ""], "Kernel 'spectrum.*at least one letter. Got an empty one at index 159"),
        (Spectrum(2), [*TEXTS[:-1], 3.5], "must be strings. Got 3.5 at index 159"),
        (Spectrum(2), np.zeros((160, 2)), "Spectrum needs one column of strings. Got 2 columns"),
        ([("a", Spectrum(2), ["age"])], FRAME, "Kernel 'a': The samples of Spectrum must be strings"),
        ([("a", Spectrum(2), ["dna", "age"])], FRAME, "Kernel 'a': Spectrum needs one column of strings. Got 2"),
        ([("a", RBF(), ["dna", "age"])], FRAME, "Kernel 'a': RBF needs numeric columns. Got strings"),
        ([("a", Spectrum(2), "dna")], FRAME.assign(dna=[*TEXTS[:5], np.nan, *TEXTS[6:]]), "Got nan at index 5"),
    ],
)
def test_wrong_samples_are_one_clear_sentence(kernels, X, sentence):
    with pytest.raises(ValueError, match=sentence):
        MKLClassifier(kernels).fit(X, Y)


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_wrong_test_samples_are_named_with_their_place():
    model = MKLClassifier(KERNELS).fit(TEXTS, Y)
    with pytest.raises(ValueError, match=r"fitted on sequences of 60 letters. Got one of 4 at index 2 instead"):
        model.predict([*TEXTS[:2], "ACGT"])
    with pytest.raises(ValueError, match="Got None at index 1 instead"):
        model.predict([TEXTS[0], None])
    with pytest.raises(ValueError, match=r"must have no columns, as in fit\. Got 1 instead"):
        model.predict(FRAME[["dna"]])
    assert model.predict(["N" * 60]).shape == (1,)


def test_sequences_too_short_for_a_kernel_leave_it_constant():
    with pytest.warns(UserWarning, match=r"kernel 'gapped_kmer\(k=3, l=5\)' is constant"):
        model = MKLClassifier([GappedKmer(5, 3), WeightedDegree(2)]).fit(["ACG", "ACT", "TTT", "TTA"], [0, 0, 1, 1])
    assert model.predict(["ACC", "TTG"]).tolist() == [0, 1]


def test_splice_sites():
    try:
        names = available()
    except FileNotFoundError:
        pytest.skip("MULTIKERNEL_DATA names no folder with the data sets")
    if "celegans_small" not in names:
        pytest.skip("the folder of MULTIKERNEL_DATA holds no celegans_small")
    data = load("celegans_small")
    model = MKLClassifier(PositionBlocks(WeightedDegree(8), 8), C=1.0).fit(data.seq_a[:1200], data.y_a[:1200])
    assert roc_auc_score(data.y_b, model.decision_function(data.seq_b)) > 0.9
