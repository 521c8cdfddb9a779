"""Parameters, samples, folds and scorers that will not do, each in one clear sentence."""

import warnings

import numpy as np
import pytest
from problems_search import CS, STACK, N, T, X, Y
from sklearn.exceptions import FitFailedWarning

from multikernel import MKLClassifierCV, MKLRegressorCV
from multikernel.losses import EpsilonInsensitive


def test_a_fold_of_one_class_is_one_clear_sentence():
    y = np.repeat(["a", "b"], N // 2)
    splits = [(np.arange(N // 2), np.arange(N // 2, N)), (np.arange(0, N, 2), np.arange(1, N, 2))]
    search = MKLClassifierCV("precomputed", Cs=CS, cv=splits, baselines=False)
    with pytest.warns(
        FitFailedWarning, match=r"3 of 6 fits .* In fold 0: ValueError: MKLClassifier needs samples of at"
    ):
        search.fit(STACK, y)
    assert np.isnan(search.cv_results_["split0_test_score"]).all() and search.best_index_ == 0
    assert np.isnan(search.weights_path_[0]).all() and np.isfinite(search.weights_path_[1]).all()
    with pytest.warns(FitFailedWarning):
        assert search.set_params(error_score=0.0).fit(STACK, y).cv_results_["split0_test_score"].tolist() == [0.0] * 3
    with pytest.raises(ValueError, match="needs samples of at least 2 classes"):
        search.set_params(error_score="raise").fit(STACK, y)
    with pytest.raises(ValueError, match=r"All 3 fits of MKLClassifierCV failed. In fold 0: ValueError: MKLClassifier"):
        search.set_params(error_score=np.nan, cv=splits[:1]).fit(STACK, y)
    single = [([0], np.arange(1, N)), (np.arange(1, N), [0])]
    with pytest.warns(FitFailedWarning, match="Got one class only"):
        MKLClassifierCV("precomputed", Cs=CS, cv=single).fit(STACK, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = MKLRegressorCV("precomputed", Cs=CS, cv=single, scoring="neg_mean_squared_error").fit(STACK, T)
    assert np.isfinite(search.best_score_)


def test_a_scorer_that_fails():
    def broken(estimator, samples, y):
        raise RuntimeError("no score today")

    with pytest.raises(
        ValueError, match=r"All 6 fits of MKLClassifierCV failed. In fold 0: RuntimeError: no score today"
    ):
        MKLClassifierCV("precomputed", Cs=CS, cv=2, scoring=broken, baselines=False).fit(STACK, Y)
    with pytest.raises(ValueError, match=r"must return a number. Got 'high'"):
        MKLClassifierCV("precomputed", Cs=CS, cv=2, scoring=lambda *_: "high").fit(STACK, Y)


BAD = [
    ({"Cs": []}, "The 'Cs' parameter of MKLRegressorCV must be None or a list, not empty, of which each is a positive"),
    ({"Cs": [1.0, -1.0]}, r"'Cs' .* Got -1.0 instead"),
    ({"Cs": 3.0}, r"'Cs' .* Got 3.0 instead"),
    ({"Cs": "many"}, r"'Cs' .* Got 'many' instead"),
    ({"norms": [0.5]}, r"'norms' .* each is a number of at least 1, or infinity. Got 0.5"),
    ({"epsilons": [-0.1]}, r"'epsilons' .* a non-negative number. Got -0.1"),
    ({"scoring": ["r2"]}, "The 'scoring' parameter of MKLRegressorCV must be None, the name of a scorer or a callable"),
    ({"refit": "yes"}, "The 'refit' parameter of MKLRegressorCV must be True, False or a callable"),
    ({"error_score": "nan"}, "The 'error_score' parameter of MKLRegressorCV must be 'raise' or a number. Got 'nan'"),
    ({"tol": -1}, "The 'tol' parameter of MKLRegressorCV must be a positive number. Got -1"),
    ({"loss": "hinge"}, "The 'loss' parameter of MKLRegressorCV"),
    ({"n_jobs": 0}, "The 'n_jobs' parameter of MKLRegressorCV"),
    (
        {"loss": EpsilonInsensitive(epsilon=0.3), "epsilons": [0.01, 0.3], "Cs": [1.0]},
        r"^The 'epsilon' parameter of MKLRegressor must be left out for loss=EpsilonInsensitive\(.*Got 0.01",
    ),
]


@pytest.mark.parametrize(("params", "sentence"), BAD, ids=str)
def test_bad_parameters(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        MKLRegressorCV("precomputed", **params).fit(STACK, T)


def test_bad_input():
    with pytest.raises(
        ValueError, match=r"MKLClassifierCV needs samples of at least 2 classes. Got one class only: 'a'"
    ):
        MKLClassifierCV(Cs=CS).fit(X, ["a"] * N)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MKLClassifierCV(Cs=CS).fit(X, Y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        MKLRegressorCV(Cs=CS).fit(np.where(X > 2, np.nan, X), T)
    with pytest.raises(ValueError, match="must be 'precomputed' for a KernelStack"):
        MKLClassifierCV(Cs=CS).fit(STACK, Y)
