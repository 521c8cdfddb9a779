"""scikit-learn's own checks for every estimator of the package."""

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    parametrize_with_checks,
)

from multikernel import MKLClassifier, MKLOneClass, MKLRegressor
from multikernel.kernels import RBF, Linear

# a new estimator is one line, and inherits the whole battery
ESTIMATORS = [
    MKLClassifier(),
    MKLClassifier(norm=2.0, multiclass="ovo", gram="lazy"),
    MKLClassifier([RBF(), ("linear", Linear(), slice(None))], normalize=["center", "cosine"]),
    MKLRegressor(),
    MKLRegressor(
        [RBF(), ("linear", Linear(), slice(None))], norm=2.0, normalize=["center", "cosine"], fit_intercept=False
    ),
    MKLOneClass(nu=0.3),
    MKLOneClass(norm=2.0, gram="lazy"),
]

# further parameters, where the estimator has them
CHANGES = [{}, {"class_weight": "balanced"}, {"normalize": "cosine"}]
VARIANTS = [(each, new) for each in ESTIMATORS for new in CHANGES if set(new) <= set(each.get_params(deep=False))]

LOOSE = "compares at 1e-7 what the default tol solves to a relative gap of 1e-3; passes at a tight tol below"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": LOOSE,
    "check_sample_weight_equivalence_on_sparse_data": LOOSE,
}


@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*constant on the training:UserWarning"
)
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: EXPECTED)
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("estimator", "changes"), VARIANTS, ids=str)
@pytest.mark.parametrize(
    "check", [check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data]
)
def test_weights_and_repetition_agree_at_a_tight_tol(check, estimator, changes):
    check(type(estimator).__name__, clone(estimator).set_params(tol=1e-13, **changes))
