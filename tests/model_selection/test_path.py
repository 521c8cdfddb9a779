"""The models along C or the norm are those of single fits, within their gaps."""

import numpy as np
import pytest
from problems_search import FIXED, STACK, WEIGHT, T, X, Y
from sklearn.base import clone
from sklearn.datasets import load_iris

from multikernel import M3KClassifier, MKLClassifier, MKLOneClass, MKLRegressor
from multikernel.kernels import rbf_family
from multikernel.model_selection import mkl_path
from multikernel.solve import solve

TOL = 1e-5
IRIS = load_iris(return_X_y=True)
FAMILY = rbf_family([0.5, 2.0, 8.0])
CASES = {
    "two classes": (MKLClassifier("precomputed", tol=TOL), STACK, Y),
    "columns": (MKLClassifier(FIXED, tol=TOL), X, Y),
    "squared": (MKLClassifier(FIXED, loss="squared", tol=TOL), X, Y),
    "joint": (MKLClassifier(FAMILY, tol=TOL), *IRIS),
    "one against the rest": (MKLClassifier(FAMILY, multiclass="ovr", tol=TOL), *IRIS),
    "regression": (MKLRegressor(FIXED, tol=TOL), X, T),
    "kernel margin": (M3KClassifier(FAMILY, gamma0=-np.inf, tol=TOL), *IRIS),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("axis", ["C", "norm"])
def test_each_model_is_that_of_a_single_fit_within_its_gap(case, axis):
    estimator, samples, y = CASES[case]
    values = [0.1, 10.0, 1.0] if axis == "C" else [1.0, 4.0, 2.0] if "margin" in case else [2.0, np.inf, 1.0]
    path = mkl_path(estimator, samples, y, **{f"{axis}s": values})
    np.testing.assert_array_equal(path.values, values)
    for value, weights, gap, model in zip(*path, strict=True):
        alone = clone(estimator).set_params(**{axis: value}).fit(samples, y)
        assert getattr(model, axis) == value and np.all(gap <= TOL)
        np.testing.assert_array_equal(weights, model.weights_)
        np.testing.assert_allclose(model.objective_, alone.objective_, rtol=2 * TOL)
        assert np.all(np.asarray(model.dual_objective_) <= np.asarray(alone.objective_) * (1 + 1e-9))
        assert model.predict(samples).shape == y.shape and model.n_features_in_ == alone.n_features_in_
    assert not hasattr(estimator, "model_")


def test_neighbours_start_from_each_other_and_the_kernels_are_computed_once(monkeypatch):
    starts, grams = [], []

    def spy(problem, *args, start=None, **options):
        starts.append(start)
        grams.append(problem.gram)
        return solve(problem, *args, start=start, **options)

    monkeypatch.setattr("multikernel.training.train.solve", spy)
    mkl_path(MKLClassifier(FIXED), X, Y, Cs=[1.0, 100.0, 10.0], sample_weight=WEIGHT)
    assert [start is None for start in starts] == [True, False, False] and len(set(map(id, grams))) == 1
    starts.clear()
    mkl_path(MKLClassifier(FIXED), X, Y, norms=[1.0, 2.0])
    np.testing.assert_allclose([start.weights.sum() for start in starts[1:]], 1.0)


def test_what_does_not_fit_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"must be MKLClassifier, MKLRegressor or M3KClassifier. Got MKLOneClass"):
        mkl_path(MKLOneClass(FIXED), X, Y, Cs=[1.0])
    with pytest.raises(ValueError, match=r"needs either 'Cs' or 'norms'. Got neither"):
        mkl_path(MKLClassifier(FIXED), X, Y)
    with pytest.raises(ValueError, match=r"needs either 'Cs' or 'norms'. Got both"):
        mkl_path(MKLClassifier(FIXED), X, Y, Cs=[1.0], norms=[1.0])
    for wrong in ([], 3.0):
        with pytest.raises(ValueError, match=r"The 'Cs' parameter of mkl_path must be a list, not empty"):
            mkl_path(MKLClassifier(FIXED), X, Y, Cs=wrong)
    with pytest.raises(ValueError, match=r"The 'C' parameter of MKLClassifier must be a positive number. Got -1"):
        mkl_path(MKLClassifier(FIXED), X, Y, Cs=[1.0, -1])


def test_an_unfinished_model_is_warned_of_and_ctrl_c_passes_through():
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="reached max_iter"):
        mkl_path(MKLClassifier("precomputed", tol=1e-12, max_iter=1), STACK, Y, Cs=[1.0])

    def impatient(row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mkl_path(MKLClassifier("precomputed", callback=impatient), STACK, Y, Cs=[1.0])
