"""Smooth losses of one output: how many factorisations an inner solution takes, and when one serves again."""

import warnings

import numpy as np
import pytest
from scipy.special import expit

from multikernel.gram.dense import DenseGram
from multikernel.losses import LogCosh, Logistic, Loss, SmoothHinge
from multikernel.machines import smooth
from multikernel.machines.smooth import Smooth
from multikernel.mixing.norms import PlainSum, Simplex
from multikernel.problem import Point, Problem
from multikernel.solve import solve


@pytest.fixture
def factorisations(monkeypatch):
    """Numbers of samples in each factorisation that a smooth machine asks for."""
    sizes, whole = [], smooth.WeightedInverse

    def counted(*args, **kwargs):
        inverse = whole(*args, **kwargs)
        sizes.append(len(inverse.idx))
        return inverse

    monkeypatch.setattr(smooth, "WeightedInverse", counted)
    return sizes


def gaussian(X, width=2.0):
    return np.exp(-np.square(X[:, None] - X).sum(axis=2) / width**2)


def labelled(noise, n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] + noise * rng.normal(size=n) > 0.3, 1.0, -1.0)


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("loss", [Logistic(), SmoothHinge(), LogCosh()], ids=repr)
def test_few_factorisations_whatever_the_cost(loss, C, noise, factorisations):
    X, y = labelled(noise)
    machine = Smooth(y, loss, C, fit_intercept=True)
    point = Point(Problem(DenseGram(gaussian(X)[None]), machine, PlainSum()))
    accuracy = 1e-6 * machine.scale
    point.solve(accuracy)
    assert point.certificate.inner_gap <= 2 * accuracy
    assert len(factorisations) <= (14 if C <= 100 else 26)


@pytest.mark.parametrize("C", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("loss", [Logistic(), SmoothHinge(), LogCosh()], ids=repr)
def test_at_small_costs_the_intercept_still_takes_its_step(loss, C, factorisations):
    """All second derivatives are small beside those of the kernel, and their sum decides where the intercept goes."""
    X, y = labelled(1.0)
    targets = X[:, 0] ** 3 + 2.0 if isinstance(loss, LogCosh) else y
    machine = Smooth(targets, loss, C, fit_intercept=True)
    point = Point(Problem(DenseGram(gaussian(X)[None]), machine, PlainSum()))
    accuracy = 1e-8 * machine.scale
    point.solve(accuracy)
    assert point.certificate.inner_gap <= 2 * accuracy
    assert len(factorisations) <= 14


def test_weights_that_hardly_changed_share_a_factorisation(factorisations):
    X, y = labelled(1.0)
    combined = DenseGram(gaussian(X)[None]).combined(np.ones(1))
    machine, w = Smooth(y, Logistic()), np.linspace(0.1, 0.2, len(y))
    first = machine._inverse(combined, w)
    assert machine._inverse(combined, 1.05 * w) is first
    assert machine._inverse(combined, 1.3 * w) is not first
    assert len(factorisations) == 2


def test_samples_without_a_say_are_not_factorised(factorisations):
    X, y = labelled(1.0)
    combined = DenseGram(gaussian(X)[None]).combined(np.ones(1))
    w = np.where(np.arange(len(y)) < 30, 0.2, 1e-5)
    Smooth(y, Logistic())._inverse(combined, w)
    assert factorisations == [30]


def test_coefficients_far_outside_their_domain_do_not_stop_the_steps():
    """On a kernel of rank one many coefficients have the same outputs; they all have to come back inside."""
    X, y = labelled(1.0)
    machine = Smooth(y, SmoothHinge(), 3.0)
    gram = DenseGram(np.outer(X[:, 0], X[:, 0])[None])
    point = Point(Problem(gram, machine, PlainSum()))
    wild = 40.0 * np.random.default_rng(1).normal(size=len(y))
    a = machine.solve(point.combined, wild, gram.apply(wild)[0], 1e-7 * machine.scale)
    point.set_dual(a)
    assert point.certificate.inner_gap <= 2e-7 * machine.scale


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("C", [1e4, 1e6])
@pytest.mark.parametrize("loss", [Logistic(), SmoothHinge()], ids=repr)
def test_classes_that_are_far_apart_end_at_large_costs(loss, C, seed):
    """At the optimum hardly any second derivative is left: none of them says how far the intercept is to go."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(200, 10)) + 3.0 * y[:, None] * (np.arange(10) < 5)
    stack = np.exp(-0.5 * np.square(X[:, None] - X)).transpose(2, 0, 1)
    solution = solve(Problem(DenseGram(stack), Smooth(y, loss, C, fit_intercept=True), PlainSum()))
    assert solution.status == "converged" and solution.n_iter <= 5


def test_losses_whose_second_derivative_is_infinite_somewhere():
    """|f - y|^(3/2) at outputs that are the targets; sums of such numbers overflow without a warning."""

    class Root(Loss):
        task = "regression"

        def value(self, f, y):
            return np.abs(f - y) ** 1.5

        def gradient(self, f, y):
            return 1.5 * np.sign(f - y) * np.sqrt(np.abs(f - y))

        def hessian(self, f, y):
            return 0.75 / np.sqrt(np.abs(f - y))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine = Smooth(np.arange(5.0) - 2, Root(), 1.0, fit_intercept=True)
        assert machine.curvature_scale == np.inf
        X = np.random.default_rng(0).normal(size=(40, 3))
        solution = solve(Problem(DenseGram(gaussian(X)[None]), Smooth(X[:, 0], Root(), 1.0, True), PlainSum()))
    assert solution.status == "converged"


def test_losses_without_curvature_where_it_is_looked_for():
    """Two steep softplus around a tube: the second derivatives at zero and at the targets are below every number."""

    class Tube(Loss):
        task = "regression"

        def value(self, f, y):
            return np.logaddexp(0.0, 1e4 * (f - y - 1.0)) / 1e4 + np.logaddexp(0.0, 1e4 * (y - f - 1.0)) / 1e4

        def gradient(self, f, y):
            return expit(1e4 * (f - y - 1.0)) - expit(1e4 * (y - f - 1.0))

        def hessian(self, f, y):
            slopes = expit(1e4 * (f - y - 1.0)), expit(1e4 * (y - f - 1.0))
            return 1e4 * sum(s * (1.0 - s) for s in slopes)

    X = np.random.default_rng(0).normal(size=(80, 3))
    y = 3.0 * np.sign(X[:, 0]) + X[:, 1]
    y += 2.5 * np.sign(y)
    stack = np.stack([gaussian(X[:, [k]]) for k in range(3)])
    machine = Smooth(y, Tube(), 1e3, fit_intercept=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert solve(Problem(DenseGram(stack), machine, Simplex()), max_iter=60).status == "converged"
