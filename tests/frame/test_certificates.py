"""The checkers accept the truth (a conic solver's, scikit-learn's) and reject every perturbed answer."""

from __future__ import annotations

import numpy as np
import pytest
from certificates import (
    assert_feasible,
    assert_gap,
    assert_machine_optimal,
    assert_objective,
    assert_weights_optimal,
    best_intercept,
    bounds,
    complementarity,
    dual_infeasibility,
    dual_value,
    hinge,
    margin_violation,
    primal_value,
    quadratic_forms,
    relative_gap,
    support_value,
    weights_infeasibility,
    weights_stationarity,
)
from problems import gaussian, linear
from reference import Optimum, conic_solution
from sklearn.svm import SVC

NORMS = (1.0, 1.1, 2.0, np.inf)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(30, 4))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=30) > 0, 1.0, -1.0)
    stack = np.array([gaussian(X, 0.7), gaussian(X[:, :2], 1.5), linear(X[:, 2:]), gaussian(X, 4.0)])
    weight = rng.uniform(0.5, 2.0, size=30)
    return stack, y, bounds(0.8, 30, weight)


@pytest.fixture(scope="module", params=NORMS, ids=lambda r: f"norm{r:g}")
def truth(request, data) -> tuple[float, Optimum]:
    stack, y, C = data
    return request.param, conic_solution(stack, y, C, request.param)


@pytest.fixture(scope="module")
def svc(data):
    stack, y, C = data
    model = SVC(kernel="precomputed", C=1.0, tol=1e-10).fit(stack[1], y, sample_weight=C)
    a = np.zeros(len(y))
    a[model.support_] = model.dual_coef_[0]
    return stack[1:2], y, C, np.ones(1), a, float(model.intercept_[0])


def test_truth_is_accepted(data, truth):
    stack, y, C = data
    norm, best = truth
    a, beta = best.dual_coef, best.weights
    assert_feasible(y, C, a, beta, norm)
    assert_gap(stack, y, C, beta, a, norm, 1e-5)
    b = best_intercept(np.tensordot(beta, stack @ a, 1), y, C)
    assert_machine_optimal(stack, y, C, beta, a, b, 1e-5)
    assert_weights_optimal(stack, beta, a, norm, 1e-5)
    assert_objective(primal_value(stack, y, C, beta, a), best.value, 1e-5)
    assert_objective(dual_value(stack, y, a, norm), best.value, 1e-8)


def test_libsvm_is_accepted(svc):
    stack, y, C, beta, a, b = svc
    for norm in NORMS:
        assert_feasible(y, C, a, beta, norm, 1e-12)
        assert_gap(stack, y, C, beta, a, norm, 1e-8)
        assert_gap(stack, y, C, beta, a, norm, 1e-8, intercept=b)
        assert_weights_optimal(stack, beta, a, norm, 1e-12)
    assert_machine_optimal(stack, y, C, beta, a, b, 1e-8)
    assert margin_violation(stack, y, C, beta, a) < 1e-6


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0])
def test_infeasible_coefficients_are_rejected(data, truth, size):
    _, y, C = data
    norm, best = truth
    a, beta = best.dual_coef, best.weights
    free = int(np.argmax(np.minimum(y * a, C - y * a)))
    other = int(np.argmax(np.where(y == -y[free], np.minimum(y * a, C - y * a), -1)))

    above = a.copy()
    above[free] = y[free] * (C[free] + size)
    below = a.copy()
    below[free] = -y[free] * size
    unbalanced = a.copy()
    unbalanced[free] += size * C.min() * np.sign(C[free] / 2 - y[free] * a[free]) * y[free] / 2
    for wrong in (above, below, unbalanced):
        assert dual_infeasibility(y, C, wrong) >= size * C.min() / C.max() / 4
        with pytest.raises(AssertionError, match="dual_coef leaves"):
            assert_feasible(y, C, wrong, beta, norm)
    # sum a = 0 binds only with an intercept; moving a pair keeps it
    assert dual_infeasibility(y, C, unbalanced, fit_intercept=False) < 1e-12
    pair = a.copy()
    step = 1e-3 * min(C[i] - y[i] * a[i] for i in (free, other))
    pair[free] += y[free] * step
    pair[other] += y[other] * step
    assert_feasible(y, C, pair, beta, norm)


def test_infeasible_weights_are_rejected(truth):
    norm, best = truth
    beta = best.weights
    assert weights_infeasibility(beta, norm) < 1e-12
    moved = beta.copy()
    moved[0], moved[1] = -1e-5, beta[1] + beta[0]
    for wrong in (beta * 1.00001, beta * 0.99999, moved, beta * np.nan):
        assert weights_infeasibility(wrong, norm) >= 9e-6
        with pytest.raises(AssertionError, match="weights leave"):
            assert_feasible(np.ones(1), 1.0, np.zeros(1), wrong, norm)
    assert weights_infeasibility(beta * 0.5, norm, boundary=False) == 0.0


def test_suboptimal_pairs_are_rejected(data, truth):
    stack, y, C = data
    norm, best = truth
    a, beta = best.dual_coef, best.weights
    swapped = beta[::-1] if not np.isinf(norm) else 0.9 * beta
    for weights, coef in ((beta, 0.99 * a), (swapped, a), (beta, np.zeros_like(a)), (beta, a * np.nan)):
        with pytest.raises(AssertionError, match="relative gap"):
            assert_gap(stack, y, C, weights, coef, norm, 1e-5)
    # an intercept that is not the best one costs primal value
    b = best_intercept(np.tensordot(beta, stack @ a, 1), y, C)
    with pytest.raises(AssertionError, match="relative gap"):
        assert_gap(stack, y, C, beta, a, norm, 1e-5, intercept=b + 0.05)
    # coefficients of a larger box claim more than the true optimum
    with pytest.raises(AssertionError, match="relative gap"):
        assert_gap(stack, y, C / 2, beta, a, norm, 1e-5)


def test_machine_checker_rejects(svc):
    stack, y, C, beta, a, b = svc
    free = np.flatnonzero((y * a > 1e-6) & (y * a < C - 1e-6))[:2]
    moved = a.copy()
    moved[free] += np.array([1.0, -1.0]) * 1e-2 * C.min()
    for coef, intercept in ((a, b + 1e-2), (a, b - 1e-2), (0.99 * a, b), (moved, b), (a, np.nan)):
        assert not complementarity(stack, y, C, beta, coef, intercept) <= 1e-5
        with pytest.raises(AssertionError, match="complementary slackness"):
            assert_machine_optimal(stack, y, C, beta, coef, intercept, 1e-5)
    for coef in (0.99 * a, moved):
        assert margin_violation(stack, y, C, beta, coef) > 1e-4
    # without intercept the gradient itself must vanish on free coefficients
    assert margin_violation(stack, y, C, beta, a, fit_intercept=False) > 1e-4


def test_weights_checker_rejects(data, truth):
    stack, _, _ = data
    norm, best = truth
    a, beta = best.dual_coef, best.weights
    uniform = np.ones(4) / np.linalg.norm(np.ones(4), ord=norm)
    wrong = 0.99 * beta if np.isinf(norm) else uniform
    assert weights_stationarity(stack, wrong, a, norm) > 1e-4
    with pytest.raises(AssertionError, match="support function"):
        assert_weights_optimal(stack, wrong, a, norm, 1e-6)
    with pytest.raises(AssertionError, match="support function"):
        assert_weights_optimal(stack, beta * np.nan, a, norm, 1e-6)


@pytest.mark.parametrize("value", [0.0, -1.0, 1e6 * (1 + 1e-4), 1e6 * (1 - 1e-4), np.nan, np.inf])
def test_objective_checker_rejects(value):
    assert_objective(1e6 * (1 + 1e-6), 1e6)
    with pytest.raises(AssertionError, match="differs"):
        assert_objective(value, 1e6)


def test_objective_checker_is_relative():
    with pytest.raises(AssertionError):
        assert_objective(0.0, 1e-12)
    assert_objective(1e-12, 1e-12 * (1 + 1e-9))


def test_best_intercept_is_the_minimum_over_all_breakpoints():
    rng = np.random.default_rng(0)
    for trial in range(200):
        n = int(rng.integers(1, 9))
        y, f = rng.choice([-1.0, 1.0], size=n), np.round(rng.normal(size=n), trial % 3)
        C = rng.choice([0.0, 0.5, 1.0, 3.0], size=n) + (trial % 2)
        values = [hinge(f + b, y, C) for b in y - f]
        assert hinge(f + best_intercept(f, y, C), y, C) == pytest.approx(min(values), abs=1e-12)


def test_support_value_by_its_definition():
    q = np.array([3.0, 0.0, 4.0])
    assert support_value(q, 1) == 4
    assert support_value(q, 2) == pytest.approx(5)
    assert support_value(q, np.inf) == 7
    rng = np.random.default_rng(0)
    for norm in (1.0, 1.1, 4 / 3, 3.0, 10.0):
        beta = rng.uniform(size=(500, 3))
        beta /= np.linalg.norm(beta, ord=norm, axis=1)[:, None]
        assert 0.9 * support_value(q, norm) <= np.max(beta @ q) <= support_value(q, norm) * (1 + 1e-12)


def test_quadratic_forms_and_float32_stacks(data):
    stack, y, C = data
    a = y * C / 3
    expected = np.einsum("i,kij,j->k", a, stack, a)
    assert quadratic_forms(stack, a) == pytest.approx(expected)
    single = stack.astype(np.float32)
    assert relative_gap(single, y, C, np.full(4, 0.25), a, 1) == pytest.approx(
        relative_gap(single.astype(np.float64), y, C, np.full(4, 0.25), a, 1), rel=1e-12
    )
