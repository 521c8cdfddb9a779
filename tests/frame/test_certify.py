"""Bounds of points, and the best of a run, against the formulas."""

from __future__ import annotations

import numpy as np
import pytest
from certificates import quadratic_forms, support_value

from multikernel.certificate import Best, Certificate
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


def test_the_best_of_a_run():
    point, _, _ = make_point()
    best = Best(1e-6)
    assert not best.converged and best.model is None and not best.met and best.idle == 0
    assert best.certificate == Certificate(np.inf, -np.inf, 0.0, 0.0)
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
