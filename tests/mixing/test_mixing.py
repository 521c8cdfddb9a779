"""The sets of weights: support functions, projections, steps and their laws."""

import warnings

import numpy as np
import pytest

from multikernel.mixing.base import KeptRows
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
    for scale in (1e-300, 1e300):
        scaled, same = mixing.support(scale * (q / q.max()))
        assert scaled == pytest.approx(scale * (value / q.max())) and same == pytest.approx(beta)
    # rounding below zero counts as zero
    assert mixing.support(np.array([-1e-20, 1.0, 0.0]))[1][0] in (0.0, 1.0 if r == np.inf else 0.0)
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
    if r < np.inf:
        # stationarity: s_k^2 / beta_k^2 is a multiple of beta_k^(r - 1)
        assert np.ptp(np.log(s2 / best ** (r + 1.0))) == pytest.approx(0.0, abs=1e-10)
    for scale in (1e-200, 1e200):
        assert mixing.closed_form(beta, scale * q) == pytest.approx(best)
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


@pytest.mark.parametrize("lost", [0.0, 1e-12])
@pytest.mark.parametrize("r", [4 / 3, 2.0])
def test_a_kernel_without_weight_comes_back_into_the_ball(r, lost):
    """A first a may leave a kernel without weight that is as good as the others."""
    mixing = Ball(r)
    beta, q, H = mixing.scale_to_boundary(np.array([1.0, 1.0, lost])), np.array([1.0, 1.0, 0.9]), 1e-3 * np.eye(3)
    first = mixing.newton_step(beta, q, H)
    assert 1e-3 < first[2] < 0.1
    for _ in range(4):
        beta = mixing.newton_step(beta, q, H)
    assert beta == pytest.approx(mixing.support(q)[1], rel=0.05)


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
    np.testing.assert_allclose(Simplex().reactivate(beta, 1e-9 * q, 0.2), new)
    assert Simplex().reactivate(beta, np.array([2.0, 2.0, 1.0, 2.0, 0.0]), 0.2) is beta
    for mixing in (Ball(2.0), PlainSum()):
        assert mixing.reactivate(beta, q, 0.2) is beta


def test_a_second_order_step_on_forms_that_are_rounding_is_one_in_closed_form():
    mixing, beta, q = Ball(2.0), np.array([0.6, 0.8, 0.0]), np.array([1.0, 2.0, 0.0])
    H = np.zeros((3, 3))
    # (r - 1) + 2 beta_1 H_11 / q_1 = 0, as rounding can make it
    H[0, 0] = -0.5 * q[0] / beta[0]
    np.testing.assert_array_equal(mixing.newton_step(beta, q, H), mixing.closed_form(beta, q))


@pytest.mark.parametrize("r", NORMS)
def test_what_a_set_says_of_itself(r):
    mixing = mixing_for(r)
    assert mixing.norm == r and mixing.description == f"norm={r:g}"
    assert mixing.is_simplex == (r == 1)
    assert mixing.is_fixed == (r == np.inf)
    beta = mixing.start(4)
    assert np.ptp(beta) == 0 and norm_of(beta, r) == pytest.approx(1.0)
    assert mixing.make_feasible(beta) is beta
    assert mixing.violated_row(beta) is None


@pytest.mark.parametrize("r", NORMS)
def test_scaling_to_the_boundary_keeps_the_direction(r):
    mixing = mixing_for(r)
    beta = np.array([0.2, 0.0, 3.0, 1e-3])
    scaled = mixing.scale_to_boundary(beta)
    assert norm_of(scaled, r) == pytest.approx(1.0, rel=1e-12)
    if r < np.inf:
        assert scaled == pytest.approx(beta * (scaled[2] / 3.0), rel=1e-12)
        assert mixing.scale_to_boundary(1e-300 * beta) == pytest.approx(scaled)
    np.testing.assert_array_equal(mixing.scale_to_boundary(np.zeros(4)), mixing.start(4))


@pytest.mark.parametrize("r", [1, 1.5, 3])
def test_an_overrelaxed_step_goes_further_in_the_logarithms(r):
    mixing, rng = mixing_for(r), np.random.default_rng(0)
    beta, q = mixing.scale_to_boundary(rng.random(4)), rng.random(4)
    exact, further = mixing.closed_form(beta, q), mixing.closed_form(beta, q, relax=1.6)
    # up to a constant, which the norm fixes
    moves = np.log(further / beta) - 1.6 * np.log(exact / beta)
    assert np.ptp(moves) == pytest.approx(0.0, abs=1e-12)
    beta[1] = 0.0
    assert mixing.closed_form(beta, q, relax=1.6)[1] == mixing.closed_form(beta, q)[1] == 0.0


def test_newton_step_of_the_simplex_minimises_the_model():
    rng = np.random.default_rng(6)
    A = rng.normal(size=(5, 5))
    H, q, beta = A @ A.T, 4.0 * rng.random(5), rng.dirichlet(np.ones(5))
    step = Simplex().newton_step(beta, q, H)
    slope = -0.5 * q + H @ (step - beta)
    assert np.ptp(slope[step > 0]) <= 1e-8 and np.all(slope[step == 0] >= slope[step > 0].max() - 1e-8)
    assert 1 < np.count_nonzero(step) < 5
    assert step.sum() == pytest.approx(1.0, rel=1e-14)


def test_newton_step_of_the_simplex_leaves_out_negligible_weights():
    # with H = I the minimum of the model is at (1 - e, e), e = (q_2 - q_1) / 4
    beta = np.array([1.0, 0.0])
    np.testing.assert_array_equal(Simplex().newton_step(beta, np.array([1.0, 1.0 + 2e-9]), np.eye(2)), beta)
    assert Simplex().newton_step(beta, np.array([1.0, 1.0 + 8e-9]), np.eye(2))[1] == pytest.approx(2e-9, rel=0.1)


@pytest.mark.parametrize("r", [1.1, 2, 3])
def test_newton_step_of_the_ball_solves_its_linear_equations(r):
    # H is small, so that no step is clipped: ((r - 1) I + 2 diag(1/q) H diag(beta)) du = log q - (r - 1) u - c
    mixing, rng = Ball(r), np.random.default_rng(8)
    A = rng.normal(size=(4, 4))
    H, beta = 0.05 * A @ A.T, mixing.scale_to_boundary(1.0 + 0.2 * rng.random(4))
    q = 3.0 * beta ** (r - 1.0) * (1.0 + 0.1 * rng.random(4))
    new = mixing.newton_step(beta, q, H)
    u, du = np.log(beta), np.log(new / beta)
    left = (r - 1.0) * du + 2.0 * (H * beta) @ du / q
    residual = left - (np.log(q) - (r - 1.0) * u)
    assert np.ptp(residual) == pytest.approx(0.0, abs=1e-8)
    assert norm_of(new, r) == pytest.approx(1.0)


def test_newton_step_of_the_ball_is_clipped_to_a_factor_of_ten():
    mixing = Ball(2.0)
    beta, q = np.full(3, 3**-0.5), np.array([1.0, 1e-12, 1.0])
    new = mixing.newton_step(beta, q, np.zeros((3, 3)))
    assert new[0] / new[1] == pytest.approx(np.exp(2.3) * new[0] / beta[0], rel=1e-6)
    assert new[0] == pytest.approx(new[2])
    for least, factor in ((0.01, np.exp(2.3)), (1e-4, 200.0)):
        # and less than a fiftieth of the largest weight to that
        beta = mixing.scale_to_boundary(np.array([least, 1.0, 1.0]))
        new = mixing.newton_step(beta, np.ones(3), np.zeros((3, 3)))
        assert new[0] / beta[0] == pytest.approx(factor, rel=0.01)


def test_the_factor_of_ten_is_one_of_weights_on_the_boundary():
    # the constant c for 300 kernels is far from zero; one that falls short would clip steps to other norms
    mixing, q = Ball(3.0), np.ones(300)
    q[0] = 1e-4
    beta = mixing.start(300)
    new = mixing.newton_step(beta, q, np.zeros((300, 300)))
    assert new[0] / beta[0] == pytest.approx(np.exp(-2.3), rel=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_newton_step_of_the_ball_from_outside_of_it(scale):
    # the constant c has to make up for the whole scale
    beta, q = np.array([0.6, 0.8]), np.array([3.0, 4.0])
    np.testing.assert_allclose(Ball(2.0).newton_step(scale * beta, scale * q, np.zeros((2, 2))), beta, rtol=1e-9)


def test_kept_rows_are_told_apart_by_the_worst():
    class Box(Simplex):
        """Weights of at most 1/2: the row of the largest weight is the violated one."""

        def violated_row(self, beta):
            k = int(np.argmax(beta))
            return None if beta[k] <= 0.5 else (-np.eye(len(beta))[k], -0.5)

    kept = KeptRows(Box())
    for beta in ([0.9, 0.1, 0.0], [0.1, 0.9, 0.0]):
        assert kept.add_violated(np.array(beta))
    # its row is there already, and the other one holds
    assert kept.add_violated(np.array([0.2, 0.8, 0.0])) is False
    # the third is violated more than any that is kept
    assert kept.add_violated(np.array([0.0, 0.6, 0.8]))
    assert kept.add_violated(np.array([0.5, 0.5, 0.0])) is False
    rows = kept.as_cones(3)
    np.testing.assert_array_equal(rows.A, np.eye(3))
    np.testing.assert_array_equal(rows.b, np.full(3, 0.5))
    assert rows.cones == (("nonnegative", 3),)


def test_rows_of_the_sets_say_who_is_inside():
    for mixing, inside, outside in (
        (Simplex(), [0.3, 0.7], [0.3, 0.6]),
        (PlainSum(), [1.0, 0.2], [1.1, 0.2]),
    ):
        A, lower, upper = mixing.linear_rows(2)
        for beta, expected in ((inside, True), (outside, False)):
            values = A @ np.array(beta)
            assert bool(np.all(values >= lower - 1e-12) and np.all(values <= upper + 1e-12)) == expected


def test_the_ball_is_round_by_default():
    assert Ball() == Ball(2.0) == mixing_for(2) != mixing_for(3)


def test_part_of_a_simplex_is_a_simplex():
    assert Simplex().take_kernels(np.array([0, 2])) == Simplex()


def test_the_reduced_gradient_of_the_simplex():
    beta, gradient = np.array([0.2, 0.5, 0.3, 0.0, 0.0]), np.array([0.4, 1.0, 2.5, 3.0, 0.5])
    # the second weight is the pivot; the fourth is zero and would fall
    expected = np.array([0.6, 0.4, -1.5, 0.0, 0.5])
    np.testing.assert_allclose(Simplex().reduced_gradient(beta, gradient), expected)


@pytest.mark.parametrize(("beta", "inside"), [([1.0, 0.2], True), ([1.1, 0.2], False), ([-0.1, 0.2], False)])
def test_the_cones_of_the_plain_sum_are_a_box(beta, inside):
    rows = PlainSum().cone_rows(2)
    assert rows.cones == (("nonnegative", 4),)
    assert bool(np.all(rows.b - rows.A @ np.array(beta) >= 0)) == inside


def test_newton_step_of_large_norms_does_not_overflow():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    for r in (50.0, 1e6):
        beta = Ball(r).scale_to_boundary(rng.uniform(0.9, 1.0, 4))
        with np.errstate(over="raise"):
            new = Ball(r).newton_step(beta, rng.uniform(0.5, 1.0, 4), A @ A.T)
        assert np.all(new > 0) and norm_of(new / new.max(), r) * new.max() == pytest.approx(1.0)


def test_relaxed_steps_from_weights_near_zero_do_not_overflow():
    beta, q = np.array([1.0, 1e-250, 5e-324]), np.array([1.0, 2.0, 1e-300])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        moved = mixing_for(1e6).closed_form(beta, q, relax=1.6)
    assert np.isfinite(moved).all() and abs(moved).max() == 1.0
