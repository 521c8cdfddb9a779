"""Regression and one class: all solvers against a conic solver, single kernels against scikit-learn, and laws."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from certificates import outputs, quadratic_forms, support_value
from problems import SOLVERS as HINGE
from problems import gaussian, random_problem
from reference_tasks import conic_oneclass, conic_svr, plane_loss, tube_intercept, tube_loss
from sklearn.svm import SVR as ReferenceSVR
from sklearn.svm import OneClassSVM

from multikernel.gram.dense import DenseGram
from multikernel.losses import EpsilonInsensitive, piecewise_minimiser
from multikernel.machines import SVR, OneClass
from multikernel.machines.box_loops import NEEDS_ROW, ascend
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Problem
from multikernel.solve import solve

TOL = 1e-6
NORMS = (1.0, 4 / 3, 2.0, np.inf)
# an eighth of the problems of the hinge
SOLVERS = {
    name: (tuple(norm for norm in norms if norm in NORMS), count // 8, steps)
    for name, (norms, count, steps) in HINGE.items()
}


def mean_diagonal(stack) -> float:
    return float(np.mean([np.diag(K).mean() for K in stack]))


class Regression:
    """A random regression: targets of any size and offset, a narrow tube or none, with and without intercept."""

    def __init__(self, index):
        case = random_problem(index)
        rng = np.random.default_rng(index)
        y = case.stack.mean(axis=0) @ rng.normal(size=case.n)
        y = y / (y.std() or 1.0) + 0.3 * rng.normal(size=case.n) + rng.uniform(-5, 5)
        self.id, self.stack, self.norm = case.id, case.stack, NORMS[index % 4]
        self.y = 10.0 ** rng.uniform(-2, 2) * y
        self.C = case.C * rng.uniform(0.5, 2.0, case.n)
        self.epsilon = float(rng.choice([0.0, 0.1, 0.5]) * self.y.std())
        self.intercept = index % 3 > 0

    def machine(self):
        return SVR(self.y, self.C, self.epsilon, self.intercept)

    def reference(self):
        return conic_svr(self.stack, self.y, self.C, self.epsilon, self.norm, fit_intercept=self.intercept)

    def dual(self, a):
        return self.y @ a - self.epsilon * np.abs(a).sum()

    def primal_loss(self, f):
        b = tube_intercept(f, self.y, self.C, self.epsilon) if self.intercept else 0.0
        return tube_loss(f + b, self.y, self.C, self.epsilon)

    def assert_feasible(self, a):
        assert np.all(np.abs(a) <= self.C)
        assert not self.intercept or abs(a.sum()) <= 1e-12 * self.C.sum()


class Plane:
    """A random one-class problem: sample weights and any nu."""

    def __init__(self, index):
        case = random_problem(index)
        rng = np.random.default_rng(index)
        self.id, self.stack, self.norm = case.id, case.stack, NORMS[index % 4]
        self.nu, self.weight = float(rng.uniform(0.05, 1.0)), rng.uniform(0.5, 2.0, case.n)
        self.hi = self.weight / (self.nu * self.weight.sum())

    def machine(self):
        return OneClass(self.weight, self.nu, mean_diagonal(self.stack))

    def reference(self):
        return conic_oneclass(self.stack, self.nu, self.norm, self.weight)

    def dual(self, a):
        return 0.0

    def primal_loss(self, f):
        return plane_loss(f, self.hi)[0]

    def assert_feasible(self, a):
        assert np.all(a >= 0) and np.all(a <= self.hi)
        assert a.sum() == pytest.approx(1.0, abs=1e-13)


@cache
def case_of(kind, index):
    case = kind(index)
    return case, case.reference()


def surrounds_the_origin(index) -> bool:
    """Linear kernels: the one-class optimum is zero, or close to it."""
    return random_problem(index).kind == "low_rank" or index in (112, 143)


def indices(solver, kind):
    norms, count, _ = SOLVERS[solver]
    fit = (i for i in range(10, 1000) if NORMS[i % 4] in norms and not (kind is Plane and surrounds_the_origin(i)))
    return [i for i, _ in zip(fit, range(count), strict=False)]


TABLE = [(solver, kind, i) for solver in SOLVERS for kind in (Regression, Plane) for i in indices(solver, kind)]


@pytest.mark.parametrize(("solver", "kind", "index"), TABLE, ids=[f"{s}-{k.__name__}-{i}" for s, k, i in TABLE])
def test_agrees_with_a_conic_solver(solver, kind, index):
    case, reference = case_of(kind, index)
    problem = Problem(DenseGram(case.stack), case.machine(), mixing_for(case.norm))
    solution = solve(problem, solver, tol=TOL, max_iter=SOLVERS[solver][2])
    assert solution.status == "converged" and solution.gap <= TOL
    assert solution.upper == pytest.approx(reference.value, rel=1e-5)
    # the bounds hold in every row of the history, and are what the formulas say
    rounding = 1e-9 * abs(reference.value) + problem.machine.floor
    assert max(solution.history["lower"], default=solution.lower) <= reference.upper + rounding
    assert min(solution.history["upper"], default=solution.upper) >= reference.lower - rounding
    a, beta = solution.dual_coef, solution.weights
    case.assert_feasible(a)
    f, q = outputs(case.stack, beta, a), quadratic_forms(case.stack, a)
    assert solution.upper == pytest.approx(0.5 * beta @ q + case.primal_loss(f), rel=1e-9, abs=rounding)
    assert case.dual(a) - 0.5 * support_value(q, case.norm) <= solution.lower + rounding


# ---- one kernel


def samples(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return gaussian(X, 1.0), np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n) + 7.0


def solved(K, machine, tol=1e-8, norm=1.0):
    return solve(Problem(DenseGram(np.asarray(K).reshape(-1, *K.shape[-2:])), machine, mixing_for(norm)), tol=tol)


@pytest.mark.loops
@pytest.mark.parametrize(("C", "epsilon"), [(0.1, 0.1), (10.0, 0.1), (1.0, 0.0)])
def test_one_kernel_is_sklearns_svr(C, epsilon):
    K, y = samples(60)
    baseline = ReferenceSVR(kernel="precomputed", C=C, epsilon=epsilon, tol=1e-9).fit(K, y)
    a = np.zeros(60)
    a[baseline.support_] = baseline.dual_coef_[0]
    solution = solved(K, SVR(y, C, epsilon))
    assert solution.upper == pytest.approx(y @ a - epsilon * np.abs(a).sum() - 0.5 * a @ K @ a, rel=1e-5)
    assert solution.intercept == pytest.approx(baseline.intercept_[0], abs=1e-3)


@pytest.mark.loops
@pytest.mark.parametrize("nu", [0.05, 0.5, 0.9])
def test_one_kernel_is_sklearns_one_class(nu):
    K, _ = samples(60)
    baseline = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-9).fit(K)
    a = np.zeros(60)
    a[baseline.support_] = baseline.dual_coef_[0] / (nu * 60)
    solution = solved(K, OneClass(np.ones(60), nu))
    assert solution.upper == pytest.approx(-0.5 * a @ K @ a, rel=1e-5)
    assert -solution.intercept == pytest.approx(baseline.offset_[0] / (nu * 60), rel=1e-4)


# ---- laws


@pytest.mark.loops
def test_without_intercept_the_kink_is_no_obstacle():
    K, y = samples(40, seed=3)
    y = y - 7.0
    reference = conic_svr(K[None], y, 5.0, 0.2, 1, fit_intercept=False)
    assert solved(K, SVR(y, 5.0, 0.2, fit_intercept=False)).upper == pytest.approx(reference.value, rel=1e-7)


@pytest.mark.loops
@pytest.mark.parametrize("intercept", [True, False])
def test_rows_are_formed_as_they_are_asked_for(intercept):
    K, y = samples(90, seed=4)
    stack, y = np.stack([K, K**9]), y - 7.0
    reference = conic_svr(stack, y, 1.0, 0.4, np.inf, fit_intercept=intercept)
    solution = solved(stack, SVR(y, 1.0, 0.4, intercept), norm=np.inf)
    assert solution.upper == pytest.approx(reference.value, rel=1e-7)


@pytest.mark.loops
@pytest.mark.parametrize(("diagonal", "missing"), [([100.0, 1.0], 1), ([1.0, 1.0], 1), ([1.0, 1.0], 0)])
def test_the_loop_asks_for_the_row_that_it_needs(diagonal, missing):
    # a_0 would grow, a_1 would shrink; alone where a_0 is too stiff to be its partner
    G, have = np.array([1.0, -3.0]), np.arange(2) != missing
    up, low = np.zeros(2), np.zeros(2)
    status, row, steps, worst, _ = ascend(
        np.diag(diagonal),
        1.0,
        have,
        np.array(diagonal),
        np.zeros(2),
        -np.ones(2),
        np.ones(2),
        0.0,
        np.zeros(2),
        G,
        up,
        low,
        1e-9,
        1.6,
        10,
    )
    assert (status, row, steps, worst) == (NEEDS_ROW, missing, 0, 3.0)


def test_a_shift_of_the_targets_moves_the_intercept_alone():
    K, y = samples(80)
    stack = np.stack([K, K**4])
    here, there = (solved(stack, SVR(y + shift, 2.0, 0.1)) for shift in (0.0, 1e6))
    assert there.upper == pytest.approx(here.upper, rel=1e-7)
    assert there.weights == pytest.approx(here.weights, abs=1e-5)
    assert there.intercept - here.intercept == pytest.approx(1e6, abs=1e-3)


def test_targets_tube_and_cost_scale_together():
    K, y = samples(80)
    one, many = solved(K, SVR(y, 2.0, 0.1)), solved(K, SVR(-10.0 * y, 20.0, 1.0))
    assert many.upper == pytest.approx(100.0 * one.upper, rel=1e-7)
    assert many.intercept == pytest.approx(-10.0 * one.intercept, abs=1e-4)


def test_targets_within_the_tube_need_no_support_vector():
    K, _ = samples(30)
    y = np.linspace(3.0, 4.0, 30)
    solution = solved(K, SVR(y, 1.0, 0.6))
    assert solution.status == "converged" and solution.upper == 0.0 and not solution.dual_coef.any()
    assert np.all(np.abs(y - solution.intercept) <= 0.6)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_constant_targets(epsilon):
    K, _ = samples(30)
    solution = solved(K, SVR(np.full(30, -2.5), 1.0, epsilon))
    assert solution.status == "converged" and solution.upper == 0.0
    assert solution.intercept == pytest.approx(-2.5)


def test_costs_per_sample_act_as_repetition():
    K, y = samples(40)
    counts = np.random.default_rng(0).integers(1, 4, 40)
    idx = np.repeat(np.arange(40), counts)
    again = K[np.ix_(idx, idx)]
    assert solved(K, SVR(y, 1.5 * counts, 0.1)).upper == pytest.approx(
        solved(again, SVR(y[idx], 1.5, 0.1)).upper, rel=1e-7
    )
    one, many = solved(K, OneClass(counts, 0.3)), solved(again, OneClass(np.ones(len(idx)), 0.3))
    assert one.upper == pytest.approx(many.upper, rel=1e-7)
    assert one.intercept == pytest.approx(many.intercept, rel=1e-6)


def test_nu_one_takes_every_sample_alike():
    stack = np.stack([samples(50)[0], samples(50, seed=1)[0]])
    for norm in NORMS:
        solution = solved(stack, OneClass(np.ones(50), 1.0), norm=norm)
        assert solution.dual_coef == pytest.approx(np.full(50, 0.02))
        assert solution.upper == pytest.approx(-0.5 * support_value(stack.mean(axis=(1, 2)), norm))


def test_a_small_nu_finds_the_point_of_the_hull_nearest_to_the_origin():
    points = np.array([[2.0, 1.0], [2.0, -3.0], [5.0, 0.0], [3.0, 3.0]])
    solution = solved(points @ points.T, OneClass(np.ones(4), 0.2))
    # the foot of the perpendicular on the edge between the first two
    assert points.T @ solution.dual_coef == pytest.approx([2.0, 0.0], abs=1e-6)
    assert solution.upper == pytest.approx(-2.0) and -solution.intercept == pytest.approx(4.0)


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_the_optimum_of_one_class_scales_with_the_kernels(factor):
    stack = np.stack([samples(50)[0], samples(50, seed=1)[0] + 0.2])
    one, many = (solved(s * stack, OneClass(np.ones(50), 0.3, s)) for s in (1.0, factor))
    assert many.upper == pytest.approx(factor * one.upper, rel=1e-7)
    assert many.weights == pytest.approx(one.weights, abs=1e-5)


@pytest.mark.parametrize(
    ("solver", "dtype"), [*((solver, np.float64) for solver in SOLVERS), ("newton", np.float32), ("qcqp", np.float32)]
)
def test_samples_around_the_origin_are_solved_to_an_absolute_gap(solver, dtype):
    X = np.random.default_rng(0).normal(size=(40, 3))
    stack = np.array([np.outer(x, x) for x in X.T]).astype(dtype)
    machine = OneClass(np.ones(40), 0.5, mean_diagonal(stack))
    for norm in SOLVERS[solver][0]:
        solution = solve(Problem(DenseGram(stack), machine, mixing_for(norm)), solver, max_iter=SOLVERS[solver][2])
        if dtype == np.float64:
            assert solution.status == "converged"
            assert solution.upper - solution.lower <= 1e-3 * machine.floor
        # entries rounded to float32 have negative eigenvalues, and values that differ by what these add
        assert solution.upper - solution.lower <= 1e-2 * machine.floor


@pytest.mark.parametrize(
    "machine", [SVR(samples(30)[1], 2.0, 0.1), OneClass(np.ones(30), 0.3)], ids=["svr", "oneclass"]
)
def test_repair_returns_feasible_coefficients_and_keeps_feasible_ones(machine):
    for scale in (0.01, 1.0, 10.0):
        a = machine.make_feasible(np.random.default_rng(0).normal(size=30) * scale)
        assert np.all(a >= machine.lo) and np.all(a <= machine.hi)
        assert a.sum() == pytest.approx(machine.total, abs=1e-13)
        assert machine.make_feasible(a) == pytest.approx(a, abs=1e-14)


@pytest.mark.parametrize(
    "make", [lambda y: SVR(y, 5.0, 0.1), lambda y: OneClass(np.ones(60), 0.3)], ids=["svr", "oneclass"]
)
def test_curvature_predicts_how_the_coefficients_follow_the_weights(make):
    from multikernel.gram.combined import HostCombined

    X = np.random.default_rng(0).normal(size=(60, 4))
    stack = np.stack([gaussian(X[:, :2], 2.0), gaussian(X[:, 2:], 2.5)])
    machine, gram = make(X[:, 0] + np.sin(X[:, 2])), DenseGram(stack)
    beta, step = np.array([0.5, 0.5]), 1e-5 * np.array([1.0, -1.0])

    def inner(b):
        combined, a = HostCombined(gram, b), machine.start()
        outputs = gram.new_outputs(a.shape)
        outputs.update(a)
        outputs.update(machine.solve(combined, a, outputs.mix(b), 1e-12))
        return combined, outputs.coef, outputs

    combined, a, outputs = inner(beta)
    c = machine.curvature(combined, a, outputs.mix(beta), outputs)
    _, moved, there = inner(beta + step)
    assert moved[c.free] - a[c.free] == pytest.approx(-c.response @ step, rel=1e-2, abs=1e-8)
    assert -0.5 * (there.quadratic_forms() - outputs.quadratic_forms()) == pytest.approx(c.H @ step, rel=1e-2)


# ---- the loss


def test_the_conjugate_is_that_of_the_value():
    loss, y = EpsilonInsensitive(2.0, 0.3), np.array([1.5])
    f = np.linspace(-20, 20, 400_001)
    for a in (-2.0, -0.7, 0.0, 1.3, 2.0):
        assert loss.conjugate(np.array([a]), y)[0] == pytest.approx(np.max(-a * f - loss.value(f, y)), abs=1e-3)
    assert np.all(np.isinf(loss.conjugate(np.array([-2.1, 2.1]), y)))
    assert loss.gradient(np.array([0.0, 1.4, 3.0]), y).tolist() == [-2.0, 0.0, 2.0]


def test_the_intercept_is_the_best_of_the_kinks():
    rng = np.random.default_rng(0)
    for epsilon in (0.0, 0.2, 5.0):
        y, f, C = rng.normal(size=31), rng.normal(size=31), rng.uniform(0.1, 2.0, 31)
        b = EpsilonInsensitive(C, epsilon).best_intercept(f, y)
        best = tube_loss(f + tube_intercept(f, y, C, epsilon), y, C, epsilon)
        assert tube_loss(f + b, y, C, epsilon) == pytest.approx(best, abs=1e-12)


def test_a_flat_piece_is_cut_in_the_middle():
    kinks, jumps = np.array([4.0, 0.0, 2.0]), np.array([1.0, 1.0, 2.0])
    assert piecewise_minimiser(kinks, jumps, -1.0) == 1.0
    assert piecewise_minimiser(kinks, jumps, -2.0) == 2.0
    assert piecewise_minimiser(kinks, jumps, -4.0) == 4.0
