"""Bounds of points, and the best of a run, against the formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from certificates import quadratic_forms, support_value

from multikernel.certificate import STALL, Best, Certificate
from multikernel.gram.dense import DenseGram
from multikernel.machines.svc import SVC
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Point, Problem


def make_point(norm=1, n=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    stack = np.array([np.exp(-((x[:, None] - x) ** 2)) for x in X.T])
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=n))
    return Point(Problem(DenseGram(stack), SVC(y, 2.0), mixing_for(norm))), stack, y


def test_relative_gaps():
    assert Certificate(4.0, 3.0, 0.1, 0.0).relative == 0.25
    assert Certificate(-4.0, -5.0, 0.1, 0.0).relative == 0.25
    assert Certificate(0.5, 0.25, 0.1, 2.0).relative == 0.125
    assert Certificate(3.0, 4.0, 0.1, 0.0).relative == 0.0
    assert Certificate(np.inf, 1.0, 0.1, 0.0).relative == np.inf
    certificate = Certificate(4.0, 3.0, 0.1, 8.0)
    assert (certificate.gap, certificate.size, certificate.relative) == (1.0, 8.0, 0.125)
    assert Certificate(-4.0, -3.0, 0.1, 2.0).gap == 0.0
    assert Certificate(-4.0, -6.0, 0.1, 2.0).size == 4.0


def test_rounding_widens_the_gap_and_lessens_what_it_is_divided_by():
    found = Certificate(5.0, 3.0, 0.1, 0.5, rounding=1.0)
    assert (found.gap, found.size, found.relative, found.computed) == (3.0, 4.0, 0.75, 0.4)
    assert Certificate(-5.0, -7.0, 0.1, 0.5, rounding=1.0).size == 4.0
    # bounds that have crossed are no more than rounding apart
    assert Certificate(5.0, 6.0, 0.1, 0.5, rounding=1.0).gap == 1.0
    # rounding as large as the objective leaves the floor
    assert Certificate(5.0, 3.0, 0.1, 0.5, rounding=5.0).size == 0.5


@pytest.mark.parametrize("norm", [1, 2.0, np.inf])
def test_a_certificate_is_the_formulas(norm):
    point, stack, y = make_point(norm)
    point.solve(1e-2)
    found = point.certificate
    q = quadratic_forms(stack, point.a)
    assert found.lower == pytest.approx(np.abs(point.a).sum() - 0.5 * support_value(q, norm), rel=1e-12)
    f = np.tensordot(point.beta, stack, 1) @ point.a + found.intercept
    hinge = 2.0 * np.maximum(0.0, 1.0 - y * f).sum()
    assert found.upper == pytest.approx(0.5 * point.beta @ q + hinge, rel=1e-12)
    assert found.floor == point.problem.machine.floor
    # a point of the same weights and coefficients has the same certificate
    assert Point(point.problem, point.beta, point.a).certificate.lower == pytest.approx(found.lower, rel=1e-12)


def test_the_support_function_follows_the_coefficients():
    point, stack, _ = make_point()
    fixed_weights = []
    for accuracy in (1e-1, 1e-8):
        point.solve(accuracy)
        g, q = np.abs(point.a).sum(), quadratic_forms(stack, point.a)
        assert point.certificate.lower == pytest.approx(g - 0.5 * q.max())
        fixed_weights.append(g - 0.5 * point.beta @ q)
    # a better solution at fixed weights has a larger dual value there; the bound over all weights may rise or fall
    assert fixed_weights[1] > fixed_weights[0]


def test_a_floor_that_no_number_holds_makes_no_gap_small():
    assert Certificate(1e300, 1.0, 0.0, np.inf).relative == Certificate(1e300, 1.0, 0.0, np.inf).computed == np.inf
    assert Certificate(1.0, 1.0 - 1e-9, 0.0, 1e-6).relative == pytest.approx(1e-9)


def test_the_best_of_a_run():
    point, _, _ = make_point()
    best = Best(1e-6)
    assert not best.converged and best.model is None and not best.met and best.idle == 0
    assert best.certificate == best.own == Certificate(np.inf, -np.inf, 0.0, 0.0)
    assert best.own is not best.certificate
    first = best.take(point)
    assert first == point.certificate == best.certificate and best.idle == 0
    assert best.own == first
    # nothing new
    for times in (1, 2):
        best.take(point)
        assert best.idle == times
    # better coefficients, and a bound from elsewhere that is better still
    point.solve(1e-3)
    now = best.take(point, lower=first.upper)
    assert best.certificate == Certificate(
        now.upper, first.upper, now.intercept, now.floor, now.inner_gap, now.rounding
    )
    assert best.idle == 0 and best.met and best.own == now and not best.converged
    np.testing.assert_array_equal(best.model.coef, point.a)
    np.testing.assert_array_equal(best.model.outputs, point.outputs.known()[1])
    kept = best.model
    # a worse point is not taken
    point.set_dual(np.zeros(20))
    worse = best.take(point)
    assert worse.upper > now.upper and best.model is kept and best.certificate.upper == now.upper
    assert best.idle == 1 and best.own == now


def test_a_lower_bound_alone_is_progress():
    point, _, _ = make_point()
    best = Best(1e-9)
    best.take(point)
    best.take(point)
    assert best.idle == 1
    best.take(point, lower=best.certificate.lower + 1e-3)
    assert best.idle == 0
    # but not one within rounding
    best.take(point, lower=best.certificate.lower + 1e-14 * best.certificate.upper)
    assert best.idle == 1


def best_of(tol, *bounds):
    """The best of points with given bounds; the weights of the point of number i are i."""
    point, _, _ = make_point()
    best = Best(tol)
    for i, (upper, lower) in enumerate(bounds):
        point.set_weights(np.full(3, float(i)))
        point.__dict__["certificate"] = point.__dict__["exact_certificate"] = Certificate(upper, lower, i, 1e-9)
        best.take(point)
    return best


def test_the_model_is_the_point_that_certifies_itself_best():
    best = best_of(1e-3, (10.0, 1.0), (9.0, 0.0), (9.5, 5.0))
    assert best.model.weights[0] == 2 and best.own == Certificate(9.5, 5.0, 2, 1e-9)
    # bounds of several points, and the weights of the smallest primal value
    assert best.certificate == Certificate(9.0, 5.0, 1, 1e-9) and best.lowest.weights[0] == 1 and not best.converged


def test_bounds_of_several_points_do_not_end_a_run():
    best = best_of(0.4, (9.0, 0.0), (12.0, 6.0))
    assert best.met and not best.converged and best.own.relative == 0.5
    # a gap of just what was asked for is enough
    assert best_of(0.25, (8.0, 6.0)).converged
    assert not best_of(0.25, (8.0, 5.9)).converged


def test_once_the_bounds_have_met_only_the_own_gap_is_progress():
    point, _, _ = make_point()
    best = Best(0.4)
    for i, (upper, lower, idle) in enumerate([(9.0, 0.0, 0), (12.0, 6.0, 0), (8.9, 0.0, 1), (12.0, 6.8, 0)]):
        point.set_weights(np.full(3, float(i)))
        point.__dict__["certificate"] = point.__dict__["exact_certificate"] = Certificate(upper, lower, i, 1e-9)
        best.take(point)
        assert best.idle == idle


def test_of_equals_the_first_is_kept():
    assert best_of(0.1, (10.0, 1.0), (20.0, 2.0)).model.weights[0] == 0
    # of two with the same primal value, the first, whichever has the smaller gap
    assert best_of(0.1, (10.0, 1.0), (10.0, 2.0)).lowest.weights[0] == 0


def test_bounds_as_close_as_was_asked_for_have_met():
    assert best_of(0.25, (8.0, 0.0), (16.0, 6.0)).met
    assert not best_of(0.25, (8.0, 0.0), (16.0, 5.9)).met


def test_a_bound_better_by_its_rounding_alone_is_no_progress():
    # halves, so that sums are exact
    for better, expected in ((0.5, 1), (0.625, 0)):
        for upper, lower in ((8.0 - better, 1.0), (8.0, 1.0 + better)):
            best = Best(1e-3)
            for bounds in ((8.0, 1.0), (upper, lower)):
                best.take(Stand(Certificate(*bounds, 0.0, 1e-9, rounding=0.5)))
            assert best.idle == expected


def test_once_the_bounds_have_met_more_than_a_tenth_of_the_own_gap_is_progress():
    # the bounds of the first two points have met; the own gap of the second is ten, that of the third ten or less
    assert best_of(0.8, (9.0, 0.0), (12.0, 2.0)).met
    for lower, idle in ((2.5, 1), (3.0, 1), (3.5, 0)):
        assert best_of(0.8, (9.0, 0.0), (12.0, 2.0), (12.0, lower)).idle == idle


class Stand:
    """A point with certificates that are given: as computed, with rounding, and after its outputs are refreshed."""

    beta, a, wander = np.ones(2), np.ones(3), np.zeros(2)

    def __init__(self, plain, exact=None, refreshed=None):
        self.certificate, self.exact_certificate = plain, plain if exact is None else exact
        self.refreshed, self.outputs = refreshed, self

    def known(self):
        return self.a, np.ones((2, 3))

    def refresh(self):
        if self.refreshed is None:
            return False
        self.exact_certificate, self.refreshed = self.refreshed, None
        return True


def with_rounding(rounding, gap=2.0):
    """A certificate of size 8, whatever the rounding."""
    return Certificate(8.0 + rounding, 8.0 + rounding - gap, 0.0, 1e-9, rounding=rounding)


def test_the_rounding_is_asked_for_at_the_gap_asked_for_and_where_there_is_no_progress():
    plain, exact = with_rounding(0.0), with_rounding(1.0)
    assert plain.relative == 0.25
    for tol, expected in ((0.25, exact), (0.24, plain), (0.26, exact)):
        best = Best(tol)
        assert best.take(Stand(plain, exact)) is expected
    # the second point is no better
    best = Best(0.24)
    assert [best.take(Stand(plain, exact)) for _ in range(3)] == [plain, plain, exact]


@pytest.mark.parametrize(
    ("tol", "rounding", "stale", "refreshed"),
    [
        # rounding alone is what is too much
        (0.3, 1.0, True, True),
        (0.25, 1.0, True, True),
        (0.3, 1.0, False, False),
        # the gap is what was asked for, with its rounding
        (0.375, 1.0, True, False),
        (0.4, 1.0, True, False),
    ],
)
def test_outputs_are_refreshed_where_rounding_keeps_the_gap_asked_for_from_being_reached(
    tol, rounding, stale, refreshed
):
    exact, after = with_rounding(rounding), with_rounding(0.5)
    assert (exact.computed, exact.relative) == (2.0 / 9.0, 0.375)
    point = Stand(with_rounding(0.0), exact, after if stale else None)
    assert Best(tol).take(point) is (after if refreshed else exact)


def test_outputs_are_not_refreshed_where_the_gap_is_too_large_without_rounding():
    best, plain, exact = Best(0.2), with_rounding(0.0), with_rounding(1.0)
    for expected in (plain, plain, exact):
        assert best.take(Stand(plain, exact, with_rounding(0.5))) is expected


@pytest.mark.parametrize(("rounding", "idle"), [(1.0, STALL), (0.0, 0)])
def test_bounds_that_improve_by_less_than_their_rounding_stand_still(rounding, idle):
    best = Best(1e-3)
    for step in range(2 * STALL - 1):
        # the lower bound rises by a fortieth of the gap each time
        plain = replace(with_rounding(0.0), lower=with_rounding(0.0).lower + 0.05 * step)
        best.take(Stand(plain, replace(plain, rounding=rounding), None))
    assert best.idle == idle and best.taken == 2 * STALL - 1


@pytest.mark.parametrize(("part", "idle"), [(1e-6, 40), (4e-4, 2)])
def test_a_drift_of_the_bounds_is_no_progress_unless_it_adds_up(part, idle):
    """Parts of the gap by which the lower bound rises at each point: the same whatever the number of points allowed."""
    best, first = Best(1e-3), with_rounding(0.0)
    longest = 0
    for step in range(41):
        now = replace(first, lower=first.lower + part * first.gap * step)
        best.take(Stand(now, now, None))
        longest = max(longest, best.idle)
    assert longest == idle


def test_a_bound_that_goes_to_zero_beside_a_gap_is_no_progress():
    best = Best(1e-3)
    for step in range(400):
        now = Certificate(1e-6 * 0.9**step, -1.0, 0.0, 1e-4)
        best.take(Stand(now, now, None))
    assert best.idle > 300


@pytest.mark.parametrize(("upper", "floor"), [(np.inf, 1e-6), (1.0, np.inf)])
def test_bounds_that_no_number_holds_have_not_met(upper, floor):
    best = Best(1e-3)
    best.take(Stand(Certificate(upper, 0.0, 0.0, floor)))
    assert not best.met


def test_outputs_with_the_rounding_of_larger_coefficients_are_summed_anew():
    point, stack, _ = make_point()
    a = point.problem.machine.make_feasible(np.random.default_rng(0).normal(size=20))
    for factor in (1e10, 1.0):
        point.set_dual(factor * a)
        fresh = Point(point.problem, point.beta, factor * a)
        assert 0.0 < point.exact_certificate.rounding <= 3.0 * fresh.exact_certificate.rounding
    np.testing.assert_allclose(point.outputs.kernel_outputs(), stack @ a, rtol=0, atol=1e-13)


@pytest.mark.parametrize("precise", [True, False])
def test_rounding_that_hides_the_gap_asked_for_is_worth_a_pass(precise, monkeypatch):
    point, stack, _ = make_point()
    if not precise:
        monkeypatch.setattr(DenseGram, "apply_precisely", lambda self, a: None)
    point.solve(1e-13)
    gap = point.certificate.relative
    for _ in range(10):
        # back and forth, which leaves rounding
        a = point.a
        point.set_dual(np.zeros(20))
        point.wander = point.wander + 3.0 * point.size
        point.set_dual(a)
        before = point.exact_certificate
    best = Best(0.5 * (before.relative + gap))
    after = best.take(point)
    assert after.rounding < (0.1 if precise else 0.9) * before.rounding and not point.refresh()
    np.testing.assert_allclose(point.outputs.kernel_outputs(), stack @ point.a, rtol=0, atol=1e-13)
    # other coefficients have the rounding of one more pass, which may be taken out again
    point.set_dual(0.5 * point.a)
    assert point.exact_certificate.rounding > 0.0 and point.refresh() and not point.refresh()


def test_curvature_is_the_smallest_seen():
    point, _, _ = make_point()
    assert not point.q.any() and np.all(point.curvature == np.inf)
    least = np.full(3, np.inf)
    for i in range(3):
        point.set_dual(np.eye(20)[i] - np.eye(20)[i + 5])
        forms = point.outputs.quadratic_forms()
        np.testing.assert_array_equal(point.q, forms)
        least = np.minimum(least, 0.5 * forms)
        np.testing.assert_allclose(point.curvature, least, rtol=1e-15)


def test_forms_below_zero_count_as_zero_but_are_known_by_their_curvature():
    problem = Problem(
        DenseGram(np.stack([-np.eye(4), np.eye(4)])), SVC(np.array([1.0, 1.0, -1.0, -1.0])), mixing_for(1)
    )
    point = Point(problem, a=np.array([0.5, 0.5, -0.5, -0.5]))
    np.testing.assert_array_equal(point.q, [0.0, 1.0])
    np.testing.assert_array_equal(point.curvature, [-1.0, 1.0])
