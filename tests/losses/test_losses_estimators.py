"""Losses in the estimators: probabilities, weights of samples, losses of users."""

from __future__ import annotations

import numpy as np
import pytest
from problems_losses import Bump, Quartic
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from multikernel import MKLClassifier, MKLRegressor
from multikernel.kernels import RBF, Linear
from multikernel.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Loss, SmoothHinge, Squared, named_losses


def separable(n=120, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, 5)) + 1.5 * np.eye(5)[y], y


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_one_linear_kernel_is_logistic_regression(fit_intercept):
    X, y = separable()
    model = MKLClassifier(
        [Linear()], loss="logistic", C=0.7, normalize=None, fit_intercept=fit_intercept, tol=1e-10
    ).fit(X, y)
    baseline = LogisticRegression(C=0.7, fit_intercept=fit_intercept, tol=1e-10, max_iter=10000).fit(X, y)
    margins = (2 * y - 1) * baseline.decision_function(X)
    objective = 0.5 * np.sum(baseline.coef_**2) + 0.7 * np.logaddexp(0, -margins).sum()
    assert model.objective_ == pytest.approx(objective, rel=1e-5)
    assert model.decision_function(X) == pytest.approx(baseline.decision_function(X), abs=1e-3)
    assert model.predict_proba(X) == pytest.approx(baseline.predict_proba(X), abs=1e-3)


def test_probabilities_are_those_of_the_classes():
    X, y = separable(classes=3)
    model = MKLClassifier([RBF(0.2), Linear()], loss=Logistic(), multiclass="ovr").fit(X, y)
    P = model.predict_proba(X)
    assert P.sum(axis=1) == pytest.approx(1.0)
    assert np.array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    logs = model.predict_log_proba(X)
    assert np.exp(logs) == pytest.approx(P, rel=1e-12)
    for scheme in ("ovo", "joint"):
        other = MKLClassifier([RBF(0.2), Linear()], loss="logistic", multiclass=scheme).fit(X, y)
        with pytest.raises(AttributeError) as caught:
            other.predict_proba(X)
        sentence = "must be 'ovr' for probabilities of more than two classes, or 'joint' with loss='multinomial'"
        assert sentence in str(caught.value) and f"Got {scheme!r}" in str(caught.value)


@pytest.mark.parametrize("loss", ["hinge", "squared", "squared_hinge", "smooth_hinge"])
def test_other_losses_have_probabilities_by_calibration(loss):
    X, y = separable()
    model = MKLClassifier([RBF(0.2)], loss=loss)
    assert not hasattr(model, "predict_proba")
    calibrated = CalibratedClassifierCV(model, cv=3).fit(X, y)
    assert np.mean(calibrated.predict_proba(X)[np.arange(len(y)), y]) > 0.7


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "smooth_hinge", "logistic", SmoothHinge()], ids=repr)
def test_classifies(loss, multiclass):
    X, y = separable(240, 3)
    model = MKLClassifier([RBF(0.1), Linear()], loss=loss, multiclass=multiclass).fit(X[:120], y[:120])
    assert model.score(X[120:], y[120:]) > 0.75
    assert np.all(model.duality_gap_ <= 1e-3)


@pytest.mark.parametrize("loss", [*named_losses("regression"), Huber(delta=0.2), Quartic()], ids=repr)
def test_regresses(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.sin(X[:, 0]) + 4.0
    model = MKLRegressor([RBF(0.5), Linear()], loss=loss, C=10.0).fit(X[:100], y[:100])
    assert model.score(X[100:], y[100:]) > 0.8
    assert model.duality_gap_ <= 1e-3


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
def test_weights_count_as_repetitions(loss):
    X, y = separable(60)
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    make = MKLClassifier([RBF(0.2), Linear()], loss=loss, tol=1e-9)
    once = make.fit(X, y, sample_weight=weight).decision_function(X)
    often = make.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).decision_function(X)
    assert once == pytest.approx(often, abs=1e-4)


def test_losses_with_machines_of_their_own_use_them():
    X, y = separable(80)
    options = {"kernels": [RBF(0.2), Linear()], "tol": 1e-8}
    for name, loss, C in (("hinge", Hinge(2.0), 2.0), ("squared", Squared(2.0), 2.0)):
        by_name = MKLClassifier(loss=name, C=C, **options).fit(X, y)
        assert MKLClassifier(loss=loss, **options).fit(X, y).objective_ == pytest.approx(by_name.objective_, rel=1e-7)
    target = X[:, 0] + 0.1 * X[:, 1] ** 2
    by_name = MKLRegressor(loss="epsilon_insensitive", epsilon=0.3, **options).fit(X, target)
    by_object = MKLRegressor(loss=EpsilonInsensitive(1.0, 0.3), **options).fit(X, target)
    assert by_object.objective_ == pytest.approx(by_name.objective_, rel=1e-7)


def test_a_loss_that_is_not_convex_is_reported():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    y = 3.0 * X[:, 0] + rng.normal(size=12)
    with pytest.warns(ConvergenceWarning, match=r"the loss Bump is not convex: at y=1 its gradient falls between"):
        model = MKLRegressor([RBF()], loss=Bump(), fit_intercept=False, max_iter=2).fit(X, y)
    assert model.duality_gap_ > 1e-3


@pytest.mark.parametrize(
    ("estimator", "loss", "sentence"),
    [
        (MKLClassifier, "l2", "'hinge', 'logistic'.*, or a Loss for classification. Got 'l2'"),
        (MKLClassifier, Huber(), "or a Loss for classification. Got Huber"),
        (MKLRegressor, "hinge", "'huber', 'logcosh'.*, or a Loss for regression. Got 'hinge'"),
        (MKLRegressor, Logistic(), "or a Loss for regression. Got Logistic"),
    ],
    ids=str,
)
def test_a_loss_must_fit_the_task(estimator, loss, sentence):
    X, y = separable()
    with pytest.raises(ValueError, match=sentence):
        estimator(loss=loss).fit(X, y)


class Exponential(Loss):
    """exp(-yf), which stands for the losses of a user's own."""

    task = "classification"

    def value(self, f, y):
        return np.exp(-y * f)

    def gradient(self, f, y):
        return -y * np.exp(-y * f)


def test_a_loss_of_ones_own_is_for_two_classes_at_a_time():
    X, y = separable(60, classes=3)
    sentence = "must be 'ovr' or 'ovo' for more than two classes and the loss .*Exponential.* Got 'joint' instead"
    with pytest.raises(ValueError, match=sentence):
        MKLClassifier([RBF(0.2)], loss=Exponential()).fit(X, y)
    assert MKLClassifier([RBF(0.2)], loss=Exponential(), multiclass="ovr").fit(X, y).score(X, y) > 0.8
    assert MKLClassifier([RBF(0.2)], loss=Exponential()).fit(X[y < 2], y[y < 2]).status_ == "converged"
