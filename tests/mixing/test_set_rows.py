"""What a set of weights tells linear and conic solvers: programmes over its rows against its support function."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from multikernel.mixing.cones import ConeRows, solve_conic
from multikernel.mixing.norms import Ball, PlainSum, Simplex, mixing_for

NORMS = [1.0, 1.1, 1.5, 2.0, 3.0, 10.0, np.inf]
P = 4


def draw(seed, p=P):
    """Numbers of both signs."""
    return np.random.default_rng(seed).normal(size=p) + 0.2


def fixed(values):
    """The rows x = values."""
    return ConeRows(np.eye(len(values)), np.array(values), (("zero", len(values)),))


def on_all_variables(rows):
    return rows, np.arange(rows.A.shape[1])


@pytest.mark.parametrize("p", [1, P])
@pytest.mark.parametrize("norm", NORMS)
def test_the_largest_product_over_the_cone_rows_is_the_support_function(norm, p):
    # a negative entry asks for a weight of zero, or over the simplex for other weights
    mixing = mixing_for(norm)
    for seed in range(4):
        q = draw(seed, p)
        rows = mixing.cone_rows(p)
        assert rows.A.shape[0] == len(rows.b)
        cost = np.zeros(rows.A.shape[1])
        cost[:p] = -q
        x, _ = solve_conic(np.zeros(len(cost)), cost, [on_all_variables(rows)])
        expected = q.max() if norm == 1 else mixing.support(np.maximum(q, 0.0))[0]
        assert x[:p] @ q == pytest.approx(expected, rel=1e-6, abs=1e-7)
        assert np.all(x[:p] >= -1e-7)


@pytest.mark.parametrize("p", [1, P])
@pytest.mark.parametrize("norm", NORMS)
def test_the_support_rows_bound_the_support_function_tightly(norm, p):
    mixing = mixing_for(norm)
    for seed in range(4):
        q = np.abs(draw(seed, p)) * 3.0
        rows = mixing.support_rows(p)
        assert rows.A.shape[0] == len(rows.b)
        cost = np.zeros(rows.A.shape[1])
        cost[p] = 1.0
        x, _ = solve_conic(np.zeros(len(cost)), cost, [on_all_variables(rows), (fixed(q), np.arange(p))])
        assert x[:p] == pytest.approx(q, rel=1e-6)
        assert x[p] == pytest.approx(mixing.support(q)[0], rel=1e-6)


@pytest.mark.parametrize("norm", [1.0, np.inf])
def test_the_linear_rows_describe_the_set(norm):
    mixing = mixing_for(norm)
    A, lower, upper = mixing.linear_rows(P)
    assert A.shape[0] == len(lower) == len(upper)
    for seed in range(4):
        q = draw(seed)
        found = linprog(-q, A_ub=np.vstack([A, -A]), b_ub=np.concatenate([upper, -lower]), bounds=(0, None))
        expected = q.max() if norm == 1 else np.maximum(q, 0.0).sum()
        assert -found.fun == pytest.approx(expected)


@pytest.mark.parametrize("norm", [1.2, 1.5, 2.0, 3.0])
def test_the_curvature_of_the_support_function_is_that_of_differences(norm):
    ball, h = Ball(norm), 1e-5
    for seed in range(3):
        q = 0.5 + np.random.default_rng(seed).random(P)
        # the gradient of a support function is its maximiser
        columns = [(ball.support(q + h * e)[1] - ball.support(q - h * e)[1]) / (2 * h) for e in np.eye(P)]
        np.testing.assert_allclose(ball.support_curvature(q), np.array(columns).T, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(ball.support_curvature(np.zeros(P)), np.zeros((P, P)))


def test_the_curvature_is_finite_where_a_quadratic_form_is_zero():
    # for norms above two the curvature of such a kernel is infinite: a large number stands for it
    H = Ball(3.0).support_curvature(np.array([1.0, 0.0]))
    assert np.isfinite(H).all() and H[1, 1] > 1e6 and H[0, 0] == pytest.approx(0.0)
    H = Ball(1.5).support_curvature(np.array([1.0, 0.0]))
    np.testing.assert_allclose(H, 0.0, atol=1e-12)


def test_steps_in_closed_form_are_exact_by_default():
    beta, q = np.array([0.2, 0.3, 0.5]), np.array([1.0, 4.0, 0.25])
    for mixing in (Simplex(), Ball(2.0), PlainSum()):
        np.testing.assert_array_equal(mixing.closed_form(beta, q), mixing.closed_form(beta, q, 1.0))
    # minimiser of sum s_k^2 / beta_k over the simplex, s_k = beta_k sqrt(q_k): in proportion to s
    s = beta * np.sqrt(q)
    np.testing.assert_allclose(Simplex().closed_form(beta, q), s / s.sum())


def test_the_support_function_of_the_simplex_is_attained_at_one_kernel():
    value, beta = Simplex().support(np.array([0.5, 2.0, 1.0]))
    assert value == 2.0 and beta.shape == (3,)
    np.testing.assert_array_equal(beta, [0.0, 1.0, 0.0])
