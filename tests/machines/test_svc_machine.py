"""The single-kernel machine alone: against scikit-learn's SVC, against laws, its loops also uncompiled."""

import numpy as np
import pytest
from problems import gaussian
from reference import conic_solution
from sklearn.svm import SVC as Reference

from multikernel.gram.combined import HostCombined
from multikernel.gram.dense import DenseGram
from multikernel.machines.svc import SVC


def samples(n, seed=0, flip=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    y[rng.random(n) < flip] *= -1
    return gaussian(X, 2.0), y


def dual_value(K, y, a):
    return y @ a - 0.5 * a @ K @ a


@pytest.mark.loops
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [0.1, 1.0, 50.0])
def test_objective_and_intercept_are_those_of_sklearn(C, dtype):
    K, y = samples(60)
    reference = Reference(kernel="precomputed", C=C, tol=1e-8).fit(K, y)
    a = np.zeros(len(y))
    a[reference.support_] = reference.dual_coef_[0]
    fit = SVC(y, C).fit(K.astype(dtype), tol=1e-8)
    assert dual_value(K, y, fit.dual_coef) == pytest.approx(dual_value(K, y, a), rel=1e-6)
    assert fit.dual_coef.sum() == pytest.approx(0.0, abs=1e-12 * C * len(y))
    free = (np.abs(a) > 1e-6 * C) & (np.abs(a) < C * (1 - 1e-6))
    if free.any():
        assert fit.intercept == pytest.approx(reference.intercept_[0], abs=1e-4)
    assert fit.outputs == pytest.approx(K @ fit.dual_coef, abs=1e-4)


@pytest.mark.loops
def test_without_intercept_the_conic_solver_agrees():
    K, y = samples(40, seed=3)
    K = K + 0.5
    optimum = conic_solution(K[None], y, 2.0, 1, fit_intercept=False)
    fit = SVC(y, 2.0, fit_intercept=False).fit(K, tol=1e-9)
    assert dual_value(K, y, fit.dual_coef) == pytest.approx(optimum.value, rel=1e-6)
    assert fit.intercept == 0.0


def test_costs_per_sample_act_as_repetition():
    K, y = samples(30, seed=5)
    counts = np.random.default_rng(0).integers(1, 4, 30)
    repeated = np.repeat(np.arange(30), counts)
    one = SVC(y, 1.5 * counts).fit(K, tol=1e-9)
    many = SVC(y[repeated], 1.5).fit(K[np.ix_(repeated, repeated)], tol=1e-9)
    value = dual_value(K, y, one.dual_coef)
    assert value == pytest.approx(dual_value(K[np.ix_(repeated, repeated)], y[repeated], many.dual_coef), rel=1e-7)


@pytest.mark.parametrize("factor", [0.5, 1.25, 4.0])
def test_a_warm_start_reaches_the_same_optimum(factor):
    K, y = samples(200, seed=2)
    start = SVC(y, 1.0).fit(K)
    cold = SVC(y, factor).fit(K, tol=1e-7)
    warm = SVC(y, factor).fit(K, start=start, tol=1e-7)
    assert dual_value(K, y, warm.dual_coef) == pytest.approx(dual_value(K, y, cold.dual_coef), rel=1e-7)


def test_a_warm_start_takes_fewer_steps(monkeypatch):
    from multikernel.machines import box as svc

    steps = []
    loop = svc.smo

    def counted(*args):
        result = loop(*args)
        steps.append(result[2])
        return result

    monkeypatch.setattr(svc, "smo", counted)
    K, y = samples(400, seed=4)
    start = SVC(y, 1.0).fit(K)
    taken = []
    for begin in (None, start):
        steps.clear()
        SVC(y, 1.1).fit(K, start=begin)
        taken.append(sum(steps))
    assert taken[1] < 0.7 * taken[0]


@pytest.mark.loops
def test_low_rank_and_large_cost_need_the_jump():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(24, 3)) * 10
    y = np.where(rng.random(24) < 0.5, 1.0, -1.0)
    K = X @ X.T
    optimum = conic_solution(K[None], y, 200.0, 1)
    fit = SVC(y, 200.0).fit(K, tol=1e-7)
    assert dual_value(K, y, fit.dual_coef) == pytest.approx(optimum.value, rel=1e-6)


def test_shrinking_does_not_change_the_answer():
    K, y = samples(1500, seed=8, flip=0.02)
    machine = SVC(y, 10.0)
    fit = machine.fit(K, tol=1e-6)
    G = y - K @ fit.dual_coef
    top = G[fit.dual_coef < machine.hi].max()
    bottom = G[fit.dual_coef > machine.lo].min()
    assert top - bottom <= 2e-6


@pytest.mark.loops
def test_repair_returns_feasible_coefficients_and_keeps_feasible_ones():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(20) < 7, 1.0, -1.0)
    machine = SVC(y, rng.uniform(0.5, 2.0, 20))
    for scale in (0.1, 1.0, 10.0):
        a = machine.make_feasible(rng.normal(size=20) * scale)
        assert np.all(a >= machine.lo) and np.all(a <= machine.hi)
        assert abs(a.sum()) <= 1e-14 * np.abs(a).sum()
    kept = machine.make_feasible(a)
    assert kept == pytest.approx(a, abs=1e-14)


def test_curvature_predicts_how_the_coefficients_follow_the_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0, 1.0, -1.0)
    stack = np.stack([gaussian(X[:, :2], 2.0), gaussian(X[:, 2:], 4.0)])
    machine, gram = SVC(y, 5.0), DenseGram(stack)
    beta, step = np.array([0.5, 0.5]), 1e-5 * np.array([1.0, -1.0])

    def inner(b):
        combined = HostCombined(gram, b)
        a = machine.solve(combined, machine.start(), np.zeros(60), 1e-11)
        outputs = gram.new_outputs(a.shape)
        outputs.update(a)
        return combined, a, outputs.mix(b), outputs

    combined, a, f, outputs = inner(beta)
    c = machine.curvature(combined, a, f, outputs)
    _, moved, _, there = inner(beta + step)
    assert moved[c.free] - a[c.free] == pytest.approx(-c.response @ step, rel=1e-2, abs=1e-8)
    change_of_q = there.quadratic_forms() - outputs.quadratic_forms()
    assert -0.5 * change_of_q == pytest.approx(c.H @ step, rel=1e-2)
    assert np.linalg.eigvalsh(c.H).min() >= -1e-9


def test_a_rough_curvature_has_the_digits_of_single_precision():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    machine = SVC(np.where(rng.random(300) > 0.5, 1.0, -1.0), 100.0)
    gram = DenseGram(np.stack([gaussian(X[:, :2], 0.5), gaussian(X[:, 2:], 0.5), gaussian(X, 1.0)]))
    combined = HostCombined(gram, np.full(3, 1 / 3))
    a = machine.solve(combined, machine.start(), np.zeros(300), 1e-6)
    outputs = gram.new_outputs(a.shape)
    outputs.update(a)
    f = outputs.mix(np.full(3, 1 / 3))
    exact, rough = (machine.curvature(combined, a, f, outputs, rough) for rough in (False, True))
    assert len(exact.free) > 128 and np.array_equal(exact.free, rough.free)
    assert 0 < np.abs(exact.H - rough.H).max() < 1e-3 * np.abs(exact.H).max()
    assert 0 < np.abs(exact.response - rough.response).max() < 1e-2 * np.abs(exact.response).max()
    assert np.abs(rough.response.sum(axis=0)).max() < 1e-10 * np.abs(rough.response).sum()


def test_inputs_are_not_modified():
    K, y = samples(30)
    K.flags.writeable = y.flags.writeable = False
    SVC(y, 1.0).fit(K)


@pytest.mark.loops
def test_rows_that_are_not_formed_are_never_read():
    K, y = samples(40)
    machine = SVC(y, 1.0)
    combined = HostCombined(DenseGram(np.stack([K, K @ K])), np.array([0.5, 0.5]))
    combined._buffer[...] = np.nan
    a = machine.solve(combined, machine.start(), np.zeros(40), 1e-6)
    mixed = 0.5 * (K + K @ K)
    reference = Reference(kernel="precomputed", tol=1e-9).fit(mixed, y)
    expected = np.zeros(40)
    expected[reference.support_] = reference.dual_coef_[0]
    assert dual_value(mixed, y, a) == pytest.approx(dual_value(mixed, y, expected), rel=1e-5)
