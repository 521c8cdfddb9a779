"""The tools of scikit-learn slice a KernelStack: every fold equals the fit on its explicit slice."""

import pickle

import numpy as np
import pytest
from joblib import parallel_backend
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from multikernel import MKLClassifier, stack_kernels
from multikernel.kernels import rbf_family

N = 72
RNG = np.random.default_rng(0)
SAMPLES = RNG.normal(size=(N, 3))
Y = np.where(np.square(SAMPLES[:, :2]).sum(1) + 0.4 * RNG.normal(size=N) > 1.4, "far", "near")
WIDTHS = [0.5, 2.0, 8.0]
KERNELS = np.exp(-np.square(SAMPLES[:, None] - SAMPLES).sum(2) / np.array(WIDTHS)[:, None, None])
STACK = stack_kernels(KERNELS)
CV = StratifiedKFold(3, shuffle=True, random_state=0)
MODEL = MKLClassifier("precomputed", norm=2.0, tol=1e-8, max_iter=1000)


def on_slices(train, test, model=MODEL, y=Y):
    """Fit on explicit arrays; return the outputs and the score of the test rows."""
    model = clone(model).fit(stack_kernels(KERNELS[:, train][:, :, train].copy()), y[train])
    rows = stack_kernels(KERNELS[:, test][:, :, train].copy())
    return model.decision_function(rows), model.score(rows, y[test])


def test_a_slice_of_rows_is_the_explicit_slice():
    train, test = np.arange(0, N, 2), np.arange(1, N, 2)
    expected = on_slices(train, test)[0]
    for part, rows in (
        (STACK[train], STACK[test]),
        (STACK[np.ix_(train, train)], STACK[np.ix_(test, train)]),
    ):
        model = clone(MODEL).fit(part, Y[train])
        np.testing.assert_allclose(model.decision_function(rows), expected, atol=1e-6)
        np.testing.assert_array_equal(model.support_, clone(MODEL).fit(STACK[train], Y[train]).support_)


@pytest.mark.parametrize("cv", [CV, KFold(3), ShuffleSplit(3, random_state=0)], ids=lambda cv: type(cv).__name__)
def test_cross_val_score(cv):
    scores = cross_val_score(MODEL, STACK, Y, cv=cv)
    np.testing.assert_allclose(scores, [on_slices(*fold)[1] for fold in cv.split(np.zeros(N), Y)])


def test_cross_val_predict():
    outputs = cross_val_predict(MODEL, STACK, Y, cv=CV, method="decision_function")
    for train, test in CV.split(np.zeros(N), Y):
        np.testing.assert_allclose(outputs[test], on_slices(train, test)[0], atol=1e-5)


def test_computed_and_precomputed_kernels_agree_in_every_fold():
    computed = MKLClassifier(rbf_family(WIDTHS), norm=2.0, tol=1e-8, max_iter=1000)
    a = cross_val_predict(computed, SAMPLES, Y, cv=CV, method="decision_function")
    b = cross_val_predict(MODEL, STACK, Y, cv=CV, method="decision_function")
    np.testing.assert_allclose(a, b, atol=1e-5)


GRID = {"C": [0.1, 1.0, 10.0], "norm": [1.0, 2.0]}


def search_by_hand(train):
    """Mean validation scores of the grid on explicit slices of the training rows."""
    scores = []
    for C in GRID["C"]:
        for norm in GRID["norm"]:
            model = clone(MODEL).set_params(C=C, norm=norm)
            folds = [(train[a], train[b]) for a, b in CV.split(np.zeros(len(train)), Y[train])]
            scores.append(np.mean([on_slices(a, b, model)[1] for a, b in folds]))
    return np.array(scores)


def test_grid_search():
    search = GridSearchCV(MODEL, GRID, cv=CV).fit(STACK, Y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], search_by_hand(np.arange(N)))
    assert search.predict(STACK).shape == (N,)
    assert search.score(STACK, Y) > 0.8


def test_grid_search_within_cross_validation():
    outer = KFold(2, shuffle=True, random_state=1)
    result = cross_validate(GridSearchCV(MODEL, GRID, cv=CV), STACK, Y, cv=outer, return_estimator=True)
    for (train, test), search, score in zip(outer.split(Y), result["estimator"], result["test_score"], strict=True):
        by_hand = search_by_hand(train)
        np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand)
        best = clone(MODEL).set_params(**search.best_params_)
        assert score == pytest.approx(on_slices(train, test, best)[1])


def test_curves():
    sizes, _, scores = learning_curve(MODEL, STACK, Y, cv=CV, train_sizes=[0.5, 1.0])
    for j, (train, test) in enumerate(CV.split(np.zeros(N), Y)):
        for i, size in enumerate(sizes):
            assert scores[i, j] == pytest.approx(on_slices(train[:size], test)[1])
    _, scores = validation_curve(MODEL, STACK, Y, param_name="C", param_range=[0.1, 1.0], cv=CV)
    for j, fold in enumerate(CV.split(np.zeros(N), Y)):
        assert scores[0, j] == pytest.approx(on_slices(*fold, clone(MODEL).set_params(C=0.1))[1])


def test_permutations_of_the_labels():
    score, others, p_value = permutation_test_score(MODEL, STACK, Y, cv=CV, n_permutations=5, random_state=0)
    assert score > others.max() and p_value == pytest.approx(1 / 6)


@pytest.mark.parametrize("ensemble", [True, False])
def test_calibration(ensemble):
    stacked = CalibratedClassifierCV(MODEL, cv=CV, ensemble=ensemble).fit(STACK, Y)
    computed = MKLClassifier(rbf_family(WIDTHS), norm=2.0, tol=1e-8, max_iter=1000)
    plain = CalibratedClassifierCV(computed, cv=CV, ensemble=ensemble).fit(SAMPLES, Y)
    np.testing.assert_allclose(stacked.predict_proba(STACK), plain.predict_proba(SAMPLES), atol=1e-4)
    np.testing.assert_allclose(stacked.predict_proba(STACK).sum(axis=1), 1.0)


def test_calibration_within_cross_validation():
    outer = KFold(2, shuffle=True, random_state=1)
    computed = MKLClassifier(rbf_family(WIDTHS), norm=2.0, tol=1e-8, max_iter=1000)
    a = cross_val_predict(CalibratedClassifierCV(MODEL, cv=CV), STACK, Y, cv=outer, method="predict_proba")
    b = cross_val_predict(CalibratedClassifierCV(computed, cv=CV), SAMPLES, Y, cv=outer, method="predict_proba")
    np.testing.assert_allclose(a, b, atol=1e-4)


def test_tuned_thresholds():
    computed = MKLClassifier(rbf_family(WIDTHS), norm=2.0, tol=1e-8, max_iter=1000)
    labels = (Y == "far").astype(int)
    a = TunedThresholdClassifierCV(MODEL, scoring="balanced_accuracy", cv=CV).fit(STACK, labels)
    b = TunedThresholdClassifierCV(computed, scoring="balanced_accuracy", cv=CV).fit(SAMPLES, labels)
    assert a.best_score_ == pytest.approx(b.best_score_)
    np.testing.assert_array_equal(a.predict(STACK), b.predict(SAMPLES))


def test_pipelines():
    for pipeline in (
        Pipeline([("nothing", "passthrough"), ("mkl", MODEL)]),
        make_pipeline("passthrough", clone(MODEL)),
    ):
        scores = cross_val_score(pipeline, STACK, Y, cv=CV)
        np.testing.assert_allclose(scores, cross_val_score(MODEL, STACK, Y, cv=CV))
    search = GridSearchCV(Pipeline([("nothing", "passthrough"), ("mkl", MODEL)]), {"mkl__C": [0.1, 1.0]}, cv=CV)
    assert search.fit(STACK, Y).best_estimator_.predict(STACK).shape == (N,)
    named = [("far", rbf_family([2.0]), [0, 1])]
    chain = make_pipeline(FunctionTransformer(), MKLClassifier(named)).fit(SAMPLES, Y)
    assert chain.score(SAMPLES, Y) > 0.8


def test_threads_share_the_work():
    with parallel_backend("threading", n_jobs=2):
        scores = cross_val_score(MODEL, STACK, Y, cv=CV, n_jobs=2)
    np.testing.assert_allclose(scores, cross_val_score(MODEL, STACK, Y, cv=CV))


def test_a_slice_and_a_model_travel_to_other_processes():
    train, test = next(CV.split(np.zeros(N), Y))
    model, part, rows = pickle.loads(pickle.dumps((MODEL, STACK[train], STACK[test])))
    outputs = pickle.loads(pickle.dumps(model.fit(part, Y[train]))).decision_function(rows)
    np.testing.assert_allclose(outputs, on_slices(train, test)[0], atol=1e-6)
