"""Losses by themselves, the smooth machine against a conic solver for each loss and norm, both in the estimators."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from certificates import quadratic_forms, support_value
from reference_losses import LOSSES as FORMULAS
from reference_losses import conic_loss
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from multikernel import MKLClassifier, MKLRegressor, stack_kernels
from multikernel.gram.dense import DenseGram
from multikernel.kernels import RBF, Linear
from multikernel.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    LogCosh,
    Logistic,
    Loss,
    SmoothHinge,
    Squared,
    SquaredHinge,
)
from multikernel.machines.smooth import Smooth
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Point, Problem
from multikernel.solve import solve

NORMS = (1.0, 4 / 3, 2.0, np.inf)
TOL = 1e-6


class Quartic(Loss):
    """(f - y)^4 from value and gradient alone."""

    task = "regression"

    def __repr__(self):
        return "Quartic()"

    def value(self, f, y):
        return (f - y) ** 4

    def gradient(self, f, y):
        return 4.0 * (f - y) ** 3


class Bump(Loss):
    """Not convex: 1 - exp(-(f - y)^2)."""

    task = "regression"

    def value(self, f, y):
        return 1.0 - np.exp(-((f - y) ** 2))

    def gradient(self, f, y):
        return 2.0 * (f - y) * np.exp(-((f - y) ** 2))


# a new loss is one line here and one formula of the reference
LOSSES = {
    "squared": Squared(),
    "squared_hinge": SquaredHinge(),
    "smooth_hinge": SmoothHinge(),
    "logistic": Logistic(),
    "huber": Huber(),
    "logcosh": LogCosh(),
    "quartic": Quartic(),
}
ALL = [*LOSSES.values(), SmoothHinge(sigma=3.0), Huber(delta=0.3), Hinge(), EpsilonInsensitive(1.0, 0.2)]


def draw(loss, n=40, seed=0):
    """Outputs, and labels or targets."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    return 2.0 * rng.normal(size=n), np.where(y > 0, 1.0, -1.0) if loss.task == "classification" else y


# ---- the losses by themselves


@pytest.mark.parametrize("name", LOSSES)
def test_values_are_the_formulas(name):
    f, y = draw(LOSSES[name])
    assert LOSSES[name].value(f, y) == pytest.approx(FORMULAS[name][1](f, y), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_gradients_are_slopes(loss):
    f, y = draw(loss)
    h = 1e-6
    assert loss.gradient(f, y) == pytest.approx((loss.value(f + h, y) - loss.value(f - h, y)) / (2 * h), abs=1e-4)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=repr)
def test_second_derivatives(loss):
    f, y = draw(loss)
    h = 1e-6
    slopes = (loss.gradient(f + h, y) - loss.gradient(f - h, y)) / (2 * h)
    assert loss.hessian(f, y) == pytest.approx(slopes, rel=1e-5, abs=1e-5)
    assert np.all(loss.hessian(f, y) <= loss.curvature_bound + 1e-12)
    assert Loss.hessian(loss, f, y) == pytest.approx(loss.hessian(f, y), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_conjugates(loss):
    # a grid search for max over f of -a f - l(f), at slopes that occur
    f, y = draw(loss)
    a = -loss.gradient(f, y)
    grid = np.linspace(-30.0, 30.0, 60001)[:, None]
    best = np.max(-a * grid - loss.value(grid, y[None]), axis=0)
    conjugate = loss.conjugate(a, y)
    assert np.all(conjugate >= best - 1e-9)
    assert conjugate == pytest.approx(best, abs=2e-5)
    # Fenchel's inequality at other pairs
    other = 2.0 * np.random.default_rng(1).normal(size=len(y))
    assert np.all(conjugate >= -a * other - loss.value(other, y) - 1e-9)


@pytest.mark.parametrize("loss", [Squared(), SquaredHinge(), SmoothHinge(), Logistic(), Huber(), LogCosh()], ids=repr)
def test_the_search_finds_the_conjugate_of_the_formula(loss):
    f, y = draw(loss)
    a = -loss.gradient(f, y)
    assert Loss.conjugate(loss, a, y) == pytest.approx(loss.conjugate(a, y), abs=1e-7)


@pytest.mark.parametrize("loss", [SquaredHinge(), SmoothHinge(), Logistic(), Huber(), LogCosh(), Hinge()], ids=repr)
def test_outside_its_domain_the_conjugate_is_infinite(loss):
    y = np.array([1.0, -1.0])
    outside = -1.5 * y if loss.task == "classification" else 1.5 * y
    assert np.all(np.isinf(loss.conjugate(outside, y)))
    if not isinstance(loss, Hinge):
        assert np.all(np.isinf(Loss.conjugate(loss, outside, y)))
        low, high = loss.domain(y)
        assert np.all(np.isfinite(loss.conjugate(np.clip(outside, low, high), y)))
        searched = Loss.domain(loss, y)
        assert np.clip(searched[0], -9, 9) == pytest.approx(np.clip(low, -9, 9), abs=1e-9)
        assert np.clip(searched[1], -9, 9) == pytest.approx(np.clip(high, -9, 9), abs=1e-9)


def test_the_smooth_hinge_becomes_the_hinge():
    f, y = draw(Hinge())
    for sigma in (1.0, 10.0, 1e3, 1e6):
        above = SmoothHinge(2.0, sigma).value(f, y) - Hinge(2.0).value(f, y)
        assert np.all(above >= -1e-15)
        assert np.all(above <= 2.0 * np.log(2) / sigma + 1e-15)
    a = 0.3 * y
    assert SmoothHinge(1.0, 1e9).conjugate(a, y) == pytest.approx(Hinge(1.0).conjugate(a, y), abs=1e-8)


def test_a_loss_without_formulas_says_so():
    with pytest.raises(NotImplementedError, match=r"A loss must define 'gradient'\. Loss does not\."):
        Loss().gradient(np.zeros(1), np.zeros(1))
    with pytest.raises(NotImplementedError, match=r"A loss must define 'value'\. Loss does not\."):
        Loss().value(np.zeros(1), np.zeros(1))


def test_concavity_is_found_where_it_is():
    assert all(loss.concavity() is None for loss in LOSSES.values())
    y, low, high = Bump().concavity()
    assert Bump().gradient(np.array([low]), y) > Bump().gradient(np.array([high]), y)


# ---- the machine


@cache
def data(loss_task, n=36):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4))
    stack = np.array([np.exp(-((x[:, None] - x[None]) ** 2) * g) for x in X.T for g in (0.2, 2.0)])
    stack[-1] = np.outer(X[:, 0], X[:, 0])
    target = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=n) + 0.7
    return stack, np.where(target > 0.7, 1.0, -1.0) if loss_task == "classification" else target


@cache
def reference(name, norm, fit_intercept=False):
    stack, y = data(LOSSES[name].task)
    return conic_loss(stack, y, 3.0, norm, name, fit_intercept)


def assert_solved(solution, machine, stack, norm, value):
    """Converged, the right value, and bounds that are those of the formulas at what was returned."""
    assert solution.status == "converged"
    assert solution.upper == pytest.approx(value, rel=1e-5)
    assert solution.lower <= value * (1 + 1e-8)
    a, beta = solution.dual_coef, solution.weights
    f = sum(b * K @ a for b, K in zip(beta, stack, strict=True))
    losses = machine.C * machine.loss.value(f + solution.intercept, machine.y)
    assert solution.upper == pytest.approx(0.5 * a @ f + losses.sum(), rel=1e-9)
    conjugates = machine.C * Loss.conjugate(machine.loss, a / machine.C, machine.y)
    # a searched conjugate is nowhere larger than the true one
    lower = -conjugates.sum() - 0.5 * support_value(quadratic_forms(stack, a), norm)
    assert lower <= solution.upper * (1 + 1e-9)
    if machine.balanced:
        assert abs(a.sum()) <= 1e-12 * np.abs(a).sum()
    assert np.all((a >= machine.lo) & (a <= machine.hi))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", LOSSES)
def test_agrees_with_a_conic_solver(name, norm):
    loss = LOSSES[name]
    stack, y = data(loss.task)
    machine = Smooth(y, loss, 3.0)
    # a loss without formulas searches for every conjugate: two solvers will do
    solvers = ["newton", "level"] if name == "quartic" else ["newton", "sip", "level", "alternating"]
    solvers += ["silp", "simplemkl"] * (norm == 1 and name != "quartic")
    for solver in solvers:
        solution = solve(Problem(DenseGram(stack), machine, mixing_for(norm)), solver, tol=TOL, max_iter=2000)
        assert_solved(solution, machine, stack, norm, reference(name, norm))


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("name", LOSSES)
def test_agrees_with_a_conic_solver_with_an_intercept(name, norm):
    loss = LOSSES[name]
    stack, y = data(loss.task)
    machine = Smooth(y, loss, 3.0, fit_intercept=True)
    for solver in ("newton", "level"):
        solution = solve(Problem(DenseGram(stack), machine, mixing_for(norm)), solver, tol=TOL)
        assert_solved(solution, machine, stack, norm, reference(name, norm, True))


def test_costs_per_sample():
    stack, y = data("classification")
    C = np.random.default_rng(0).uniform(0.1, 10.0, len(y))
    for norm in (1.0, 2.0):
        solution = solve(Problem(DenseGram(stack), Smooth(y, Logistic(), C), mixing_for(norm)), tol=TOL)
        assert solution.upper == pytest.approx(conic_loss(stack, y, C, norm, "logistic"), rel=1e-5)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [1e-3, 1e3, 1e5])
@pytest.mark.parametrize("loss", [*LOSSES.values(), SmoothHinge(sigma=300.0)], ids=repr)
def test_one_kernel_at_any_cost(loss, C, fit_intercept):
    stack, y = data(loss.task)
    machine = Smooth(y, loss, C, fit_intercept)
    point = Point(Problem(DenseGram(stack[:1]), machine, mixing_for(1)))
    start = machine.primal(point.f, 0.0)[0]
    point.solve(1e-9 * start)
    assert point.inner_gap() <= 2e-9 * start


def test_float32_kernels_are_certified_in_float64():
    stack, y = data("classification")
    small = stack.astype(np.float32)
    solution = solve(Problem(DenseGram(small), Smooth(y, Logistic(), 10.0), mixing_for(1)), tol=1e-6)
    assert solution.status == "converged"
    exact = solve(Problem(DenseGram(small.astype(float)), Smooth(y, Logistic(), 10.0), mixing_for(1)), tol=1e-9)
    assert solution.upper == pytest.approx(exact.upper, rel=2e-6)
    assert solution.lower <= exact.upper


def test_the_smooth_hinge_approaches_the_support_vector_machine():
    stack, y = data("classification")
    exact = MKLClassifier("precomputed", fit_intercept=False, tol=1e-7, normalize=None).fit(stack_kernels(stack), y)
    errors = []
    for sigma in (3.0, 30.0, 300.0):
        solution = solve(Problem(DenseGram(stack), Smooth(y, SmoothHinge(sigma=sigma), 1.0), mixing_for(1)), tol=TOL)
        errors.append(solution.upper - exact.objective_)
        assert -1e-4 <= errors[-1] <= len(y) * np.log(2) / sigma + 1e-4
    assert errors[0] > errors[1] > errors[2]


# ---- the estimators


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
        assert sentence in str(caught.value.__cause__) and f"Got {scheme!r}" in str(caught.value.__cause__)


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


@pytest.mark.parametrize("loss", ["squared", "huber", "logcosh", Huber(delta=0.2), Quartic()], ids=repr)
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
        (MKLClassifier, "l2", "'smooth_hinge', 'logistic' or 'multinomial', or a Loss for classification. Got 'l2'"),
        (MKLClassifier, Huber(), "or a Loss for classification. Got Huber"),
        (MKLRegressor, "hinge", "'huber' or 'logcosh', or a Loss for regression. Got 'hinge'"),
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
