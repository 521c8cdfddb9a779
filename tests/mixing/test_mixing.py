"""The sets of weights: support functions, projections, steps and their laws."""

import numpy as np
import pytest

from multikernel.mixing.norms import Ball, PlainSum, Simplex, mixing_for

NORMS = [1, 1.1, 4 / 3, 2, 3, 10, np.inf]


def norm_of(beta, r):
    return np.abs(beta).max() if np.isinf(r) else np.sum(np.abs(beta) ** r) ** (1 / r)


def random_members(r, p, count, rng):
    for _ in range(count):
        x = rng.random(p) + 1e-3
        yield x / (x.sum() if r == 1 else norm_of(x, r))


@pytest.mark.parametrize("r", NORMS)
def test_support_is_the_dual_norm_and_is_attained(r):
    rng = np.random.default_rng(0)
    mixing = mixing_for(r)
    q = rng.random(6) * 10.0 ** rng.integers(-3, 3, 6)
    value, beta = mixing.support(q)
    dual = {1: np.inf, np.inf: 1}.get(r, r / (r - 1) if r not in (1, np.inf) else None)
    assert value == pytest.approx(norm_of(q, dual))
    assert beta @ q == pytest.approx(value)
    assert norm_of(beta, r) == pytest.approx(1.0)
    assert all(member @ q <= value * (1 + 1e-12) for member in random_members(r, 6, 50, rng))


@pytest.mark.parametrize("r", NORMS)
def test_closed_form_minimises_the_penalty(r):
    rng = np.random.default_rng(2)
    mixing = mixing_for(r)
    beta = next(random_members(r, 5, 1, rng))
    q = rng.random(5) + 0.1
    s2 = beta**2 * q
    best = mixing.closed_form(beta, q)
    assert norm_of(best, r) == pytest.approx(1.0)
    value = np.sum(s2 / best)
    assert all(np.sum(s2 / member) >= value * (1 - 1e-12) for member in random_members(r, 5, 100, rng))


@pytest.mark.parametrize("r", NORMS)
def test_steps_stay_in_the_set(r):
    rng = np.random.default_rng(3)
    mixing = mixing_for(r)
    A = rng.normal(size=(6, 6))
    beta = mixing.start(6)
    for scale in (1e-6, 1.0, 1e6):
        new = mixing.newton_step(beta, rng.random(6) + 0.01, scale * A @ A.T)
        assert np.all(new >= 0) and norm_of(new, r) == pytest.approx(1.0)
        relaxed = mixing.closed_form(beta, rng.random(6), relax=1.6)
        assert np.all(relaxed >= 0) and norm_of(relaxed, r) == pytest.approx(1.0)


@pytest.mark.parametrize("r", [1.1, 2, 3])
def test_the_step_of_the_ball_finds_the_stationary_point_of_a_model(r):
    # q(beta) = q0 - 2 H (beta - beta0) exactly: iterating the step must solve beta ~ q(beta)^(1/(r-1))
    rng = np.random.default_rng(4)
    A = rng.normal(size=(5, 5))
    H = 1e-2 * A @ A.T
    mixing = Ball(r)
    beta = beta0 = mixing.start(5)
    q0 = rng.random(5) + 1.0
    for _ in range(60):
        beta = mixing.newton_step(beta, q0 - 2 * H @ (beta - beta0), H)
    q = q0 - 2 * H @ (beta - beta0)
    assert mixing.support(q)[1] == pytest.approx(beta, rel=1e-6)


def test_zero_quadratic_forms_do_no_harm():
    for mixing in (Simplex(), Ball(2.0), PlainSum()):
        zero = np.zeros(4)
        beta = mixing.start(4)
        assert mixing.support(zero)[0] == 0.0
        assert np.all(np.isfinite(mixing.closed_form(beta, zero)))
        assert np.all(np.isfinite(mixing.newton_step(beta, zero, np.zeros((4, 4)))))


def test_kernels_without_weight_are_let_in_where_they_matter():
    beta, q = np.array([0.6, 0.4, 0.0, 0.0, 0.0]), np.array([1.0, 2.0, 5.0, 1.3, 3.0])
    new = Simplex().reactivate(beta, q, 0.2)
    np.testing.assert_allclose(new, [0.48, 0.32, 0.125, 0.0, 0.075])
    assert Simplex().reactivate(beta, np.array([2.0, 2.0, 1.0, 2.0, 0.0]), 0.2) is beta
    for mixing in (Ball(2.0), PlainSum()):
        assert mixing.reactivate(beta, q, 0.2) is beta


def test_a_second_order_step_on_forms_that_are_rounding_is_one_in_closed_form():
    mixing, beta, q = Ball(2.0), np.array([0.6, 0.8, 0.0]), np.array([1.0, 2.0, 0.0])
    H = np.zeros((3, 3))
    # (r - 1) + 2 beta_1 H_11 / q_1 = 0, as rounding can make it
    H[0, 0] = -0.5 * q[0] / beta[0]
    np.testing.assert_array_equal(mixing.newton_step(beta, q, H), mixing.closed_form(beta, q))
