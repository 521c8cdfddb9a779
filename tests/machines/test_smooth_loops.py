"""Compiled searches and sums of the machines, each against its formula."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from multikernel.losses import Logistic, SmoothHinge
from multikernel.machines.box_loops import centred_rows, clipped, off_bounds, without_sums
from multikernel.machines.joint.hinge_loops import bias_system
from multikernel.machines.smooth import Smooth
from multikernel.machines.smooth_loops import mean_of_slopes, next_root, shift_to_zero_sum, smooth_hinge_intercept
from multikernel.mixing.norms import Ball
from multikernel.mixing.simplex_qp import simplex_qp

pytestmark = pytest.mark.loops


@pytest.mark.parametrize(("loss", "shift"), [(Logistic(), 0.0), (SmoothHinge(), 3.0), (SmoothHinge(sigma=2.0), -50.0)])
def test_the_intercept_has_the_least_loss(loss, shift):
    rng = np.random.default_rng(0)
    f, y, C = 3.0 * rng.normal(size=30) + shift, np.where(rng.random(30) > 0.3, 1.0, -1.0), rng.uniform(0.5, 2.0, 30)
    b = smooth_hinge_intercept(f, y, C, loss.sigma, loss.margin, 0.0, 1e-12)
    found = minimize_scalar(lambda b: C @ loss.value(f + b, y), bracket=(-shift - 5.0, -shift + 5.0), tol=1e-12)
    assert C @ loss.value(f + b, y) <= found.fun * (1.0 + 1e-12)
    assert C @ loss.gradient(f + b, y) == pytest.approx(0.0, abs=1e-9)


def test_a_subclass_with_its_own_gradient_is_searched_by_its_own_gradient():
    class Shifted(Logistic):
        def value(self, f, y):
            return super().value(f - 1.0, y)

        def gradient(self, f, y):
            return super().gradient(f - 1.0, y)

        def hessian(self, f, y):
            return super().hessian(f - 1.0, y)

    y, f = np.array([1.0, 1.0, -1.0]), np.array([0.5, -0.5, 0.0])
    plain, shifted = (Smooth(y, loss, fit_intercept=True).best_intercept(f) for loss in (Logistic(), Shifted()))
    assert shifted == pytest.approx(plain + 1.0, abs=1e-9)


def test_one_class_only_has_its_intercept_far_away():
    b = smooth_hinge_intercept(np.zeros(3), np.ones(3), np.ones(3), 1.0, 0.0, 0.0, 1e-300)
    assert b > 20.0 and np.isfinite(b)


def test_a_search_halves_its_interval_where_newton_leaves_it():
    assert next_root(0, 1.0, 1.0, 1e-3, 0.0, np.inf, 8.0) == (0.5, 0.0, 1.0, 8.0)
    assert next_root(3, 1.0, 1.0, 4.0, 0.0, np.inf, 8.0) == (0.5, 0.0, 1.0, 8.0)
    # not beyond the step, which doubles, and not anywhere without a slope
    assert next_root(0, 1.0, -1.0, 1e-3, -np.inf, np.inf, 8.0) == (9.0, 1.0, np.inf, 16.0)
    assert next_root(0, 1.0, -1.0, 0.0, -np.inf, np.inf, 8.0) == (9.0, 1.0, np.inf, 16.0)
    # the end: a step below the last digit
    assert next_root(0, 1.0, 1e-300, 1.0, -np.inf, np.inf, 8.0)[0] == 1.0


def test_a_shift_by_the_costs_makes_the_sum_zero():
    rng = np.random.default_rng(1)
    C = rng.uniform(0.5, 2.0, 20)
    lo, hi = np.where(np.arange(20) < 8, 0.0, -C), np.where(np.arange(20) < 8, C, 0.0)
    a = rng.uniform(lo, hi) + 0.2
    out = shift_to_zero_sum(a, C, lo, hi, 1e-14)
    assert out.sum() == pytest.approx(0.0, abs=1e-13) and np.all((lo <= out) & (out <= hi))
    inside = (lo < out) & (out < hi)
    assert np.ptp(((a - out) / C)[inside]) < 1e-12


def test_feasible_coefficients_are_clipped_and_balanced():
    lo, hi = np.array([0.0, 0.0, -1.0, -1.0]), np.array([1.0, 1.0, 0.0, 0.0])
    a = np.array([1.5, 0.25, -0.5, -2.0])
    assert clipped(a, lo, hi, False, 0.0, False).tolist() == [1.0, 0.25, -0.5, -1.0]
    out = clipped(a, lo, hi, True, 0.0, False)
    assert out.sum() == 0.0 and np.all((lo <= out) & (out <= hi))
    assert off_bounds(np.array([0.0, 0.5, 1.0]), np.full(3, -1.0), np.ones(3), True).tolist() == [False, True, False]


def test_reduced_systems_have_solutions_of_sum_zero():
    rng = np.random.default_rng(2)
    A, R = rng.normal(size=(6, 6)), rng.normal(size=(2, 6))
    K = A @ A.T + np.eye(6)
    X = without_sums(np.linalg.solve(K, centred_rows(R).T).T)
    whole = np.block([[K, np.ones((6, 1))], [np.ones((1, 6)), np.zeros((1, 1))]])
    truth = np.linalg.solve(whole, np.vstack([R.T, np.zeros((1, 2))]))[:6].T
    np.testing.assert_allclose(X, truth, atol=1e-12)


def test_the_system_of_the_biases_is_that_of_weighted_least_squares():
    rng = np.random.default_rng(3)
    n, c = 12, 4
    A, upper, C = rng.uniform(-1.0, 0.5, (n, c)), np.full((n, c), 0.2), np.ones(n)
    # on bounds: all of one row, and all but one entry of another
    A[0], A[1, 1:], A = 0.2, 0.2, np.minimum(A, upper)
    weights, G = rng.uniform(0.5, 2.0, (n, c)), rng.normal(size=(n, c))
    L, r = bias_system(A, upper, C, weights, G)
    free = A < 0.2
    w = np.where(free & (free.sum(axis=1, keepdims=True) > 1), weights, 0.0)

    def spread(b):
        slopes = G - b
        mean = (w * slopes).sum(axis=1, keepdims=True) / np.maximum(w.sum(axis=1, keepdims=True), 1e-300)
        return 0.5 * float((w * (slopes - mean) ** 2).sum())

    # the gradient of the weighted spread is L b - r
    b, h = rng.normal(size=c), 1e-5
    slopes = [(spread(b + h * e) - spread(b - h * e)) / (2.0 * h) for e in np.eye(c)]
    np.testing.assert_allclose(L @ b - r, slopes, atol=1e-8)


@pytest.mark.parametrize("norm", [4 / 3, 2.0])
def test_weights_have_their_norm(norm):
    beta = Ball(norm).scale_to_boundary(np.array([3.0, 0.0, 1e-3]))
    assert np.sum(beta**norm) == pytest.approx(1.0) and beta[1] == 0.0


def test_a_programme_over_the_simplex():
    x = simplex_qp(np.diag([1.0, 2.0, 1.0]), np.array([0.0, 0.0, 5.0]), np.full(3, 1 / 3))
    np.testing.assert_allclose(x, [2 / 3, 1 / 3, 0.0], atol=1e-9)


def test_means_of_second_derivatives_are_clipped_and_never_no_number():
    w, lo, hi = np.array([2.0, 3.0, 1.0, 4.0, 5.0]), np.zeros(5), np.ones(5)
    # inside, at the slope itself, outside the domain, on both bounds (0 / 0), next to a bound of the slope
    a, g = np.array([0.5, 0.2, 1.5, 0.0, 0.5]), -np.array([0.1, 0.2, 0.5, 1.0, 1e-12])
    expected = [2.0 * np.sqrt(0.25 / 0.09), 3.0, 0.1, 4.0, 50.0]
    assert mean_of_slopes(w, a, g, lo, hi, 0.01) == pytest.approx(expected)
