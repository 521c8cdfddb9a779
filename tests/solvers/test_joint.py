"""The joint multiclass problem: machine, solvers and estimator against a conic solver and against laws."""

from __future__ import annotations

import numpy as np
import pytest
from problems_joint import KERNELS, NORMS, draw, run, toy
from reference import conic_binary
from reference_joint import conic_joint, joint_biases, joint_bounds, joint_infeasibility, joint_loss
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from multikernel import MKLClassifier, stack_kernels
from multikernel.gram.combined import HostCombined
from multikernel.gram.dense import DenseGram
from multikernel.kernels import RBF, Linear
from multikernel.losses import Hinge
from multikernel.machines.joint.crammer_singer import CrammerSinger
from multikernel.machines.joint.hinge_biases import best_biases, loss_at
from multikernel.machines.joint.hinge_loops import project_row
from multikernel.machines.joint.interior_point import InteriorPoint
from multikernel.machines.joint.newton_systems import ClassBlocksNewtonSystem, DifferencesNewtonSystem
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Point, Problem


def check(solution, stack, y, C, norm, c, fit_intercept, tol=1e-6):
    """The status, the set A, the gap recomputed, and the optimum."""
    assert solution.status == "converged"
    A = solution.dual_coef
    assert joint_infeasibility(A, y, C, fit_intercept) < 1e-9
    lower, upper = joint_bounds(stack, y, C, norm, solution.weights, A, solution.intercept, fit_intercept)
    assert upper == pytest.approx(solution.upper, rel=1e-9)
    assert lower <= upper * (1 + 1e-12)
    optimum = conic_joint(stack, y, C, norm, c, fit_intercept)
    assert solution.upper == pytest.approx(optimum, rel=1e-5)
    assert solution.lower <= optimum * (1 + 1e-7) and solution.upper >= optimum * (1 - 1e-7)
    assert solution.gap <= tol


@pytest.mark.parametrize("index", range(40))
def test_agrees_with_the_conic_solver(index):
    problem = draw(index)
    check(run(*problem), *problem)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("solver", ["qcqp", "silp", "sip", "level", "alternating", "simplemkl", "newton"])
def test_every_solver_reaches_the_optimum(solver, norm, fit_intercept):
    if (solver == "silp" and norm in (4 / 3, 2.0)) or (solver == "simplemkl" and norm != 1):
        pytest.skip("the solver is for other norms")
    problem = draw(6 if norm != 1 else 2, n=24, norm=norm, fit_intercept=fit_intercept)
    check(run(*problem, solver=solver), *problem)


# ---- laws


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_two_classes_are_the_binary_problem(norm, fit_intercept):
    stack, y, C, *_ = draw(10, n=20)
    joint = run(stack, y, C, norm, 2, fit_intercept).upper
    sign = 2.0 * y - 1.0
    assert joint == pytest.approx(conic_binary(2 * stack, sign, C, norm, fit_intercept=fit_intercept), rel=1e-5)
    assert joint == pytest.approx(0.5 * conic_binary(stack, sign, 2 * C, norm, fit_intercept=fit_intercept), rel=1e-5)


@pytest.mark.parametrize("shift", [3.0, 100.0])
def test_shifted_classes_have_exact_biases(shift):
    """A linear kernel on data far from the origin: what regularised biases get wrong."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), [3, 6, 9, 12])
    X = rng.normal(size=(30, 3)) + np.eye(4, 3)[y] + shift
    stack, C = np.stack([X @ X.T, np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))]), 2.0
    solution = run(stack, y, C, 1.0, 4, True)
    assert np.abs(solution.dual_coef.sum(axis=0)).max() < 1e-9 * C * len(y)
    check(solution, stack, y, C, 1.0, 4, True)
    moved = run(np.stack([(X - shift) @ (X - shift).T, stack[1]]), y, C, 1.0, 4, True)
    assert moved.upper == pytest.approx(solution.upper, rel=1e-5)


def test_constants_added_to_kernels_change_nothing_but_without_biases_they_do():
    stack, y, C, *_ = draw(5, n=25, norm=2.0)
    values = [[run(K, y, C, 2.0, 3, flag).upper for K in (stack, stack + 5.0)] for flag in (True, False)]
    assert values[0][0] == pytest.approx(values[0][1], rel=1e-5)
    assert values[1][1] < values[1][0] * (1 - 1e-4)


def test_permuting_classes_permutes_the_answer():
    stack, y, C, norm, c, flag = draw(3, n=24)
    order = np.random.default_rng(1).permutation(c)
    one, other = run(stack, y, C, norm, c, flag), run(stack, order[y], C, norm, c, flag)
    assert one.upper == pytest.approx(other.upper, rel=1e-5)


def test_a_class_without_samples_costs_nothing_with_biases():
    stack, y, C, norm, c, _ = draw(6, n=20)
    with_it = run(stack, y, C, norm, c + 1, True)
    assert with_it.upper == pytest.approx(conic_joint(stack, y, C, norm, c), rel=1e-5)
    assert not with_it.dual_coef[:, c].any()
    check(run(stack, y, C, norm, c + 1, False), stack, y, C, norm, c + 1, False)


# ---- the parts of the machine


@pytest.mark.loops
def test_row_projection_is_the_nearest_point():
    rng = np.random.default_rng(0)
    out = np.empty(4)
    for _ in range(200):
        z, C, y = 3 * rng.normal(size=4), rng.uniform(0.1, 2), int(rng.integers(4))
        project_row(z, C, y, out)
        bound = C * np.eye(4)[y]
        assert abs(out.sum()) < 1e-12 and (out <= bound + 1e-15).all()
        # <z - out, x - out> <= 0 for all x of the set: for its directions, as it has no other vertices but out of them
        free = out < bound
        slope = (z - out) - (z - out)[free].mean()
        assert np.abs(slope[free]).max() < 1e-9 and (slope[~free] > -1e-9).all()


@pytest.mark.loops
@pytest.mark.parametrize("n, c", [(6, 2), (5, 5), (30, 3), (40, 6)])
@pytest.mark.parametrize("hard", [0.0, 3.0])
def test_best_biases_solve_the_linear_programme(n, c, hard):
    rng = np.random.default_rng([n, c])
    y, C = np.arange(n) % c, rng.uniform(0.5, 2.0, n)
    f = rng.normal(size=(n, c)) + (3.0 - hard) * np.eye(c)[y] + 5.0 * rng.normal(size=c)
    D = 1.0 - np.eye(c)[y] + f - f[np.arange(n), y][:, None]
    b, value = best_biases(D, C, y, 1e-10 * C.sum())
    assert value == pytest.approx(joint_loss(f, y, C, b), abs=1e-9 * C.sum())
    assert value == pytest.approx(loss_at(D, C, y, b), abs=1e-9 * C.sum())
    assert value <= joint_loss(f, y, C, joint_biases(f, y, C)) + 1e-7 * C.sum()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_repair_is_feasible_and_leaves_feasible_points_alone(fit_intercept):
    rng = np.random.default_rng(0)
    y, C = rng.integers(0, 5, 40), rng.uniform(0.1, 10.0, 40)
    machine = CrammerSinger(y, C, fit_intercept, 5)
    A = machine.make_feasible(10 * rng.normal(size=(40, 5)))
    assert joint_infeasibility(A, y, C, fit_intercept) < 1e-12
    np.testing.assert_allclose(machine.make_feasible(A), A, atol=1e-11)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_curvature_predicts_the_next_solution(fit_intercept):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 3))
    y = np.argmax(X + 0.5 * rng.normal(size=X.shape), axis=1)
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    problem = Problem(DenseGram(np.exp(-np.array([[[0.1]], [[1.0]]]) * distances)),
                      CrammerSinger(y, 1.0, fit_intercept), mixing_for(1.0))  # fmt: skip
    beta, move = np.array([0.4, 0.6]), np.array([1e-4, -1e-4])
    here, there = Point(problem, beta), Point(problem, beta + move)
    for point in (here, there):
        point.solve(1e-12)
    c = problem.machine.curvature(here.combined, here.a, here.f, here.outputs)
    change, predicted = there.a - here.a, np.zeros_like(here.a)
    predicted[c.free] = -c.response @ move
    np.testing.assert_allclose(predicted, change, atol=0.02 * np.abs(change).max())
    np.testing.assert_allclose(-0.5 * (there.q - here.q), c.H @ move, rtol=0.02)
    assert np.abs(c.response.sum(axis=1)).max() < 1e-9 * np.abs(c.response).max()
    if fit_intercept:
        assert np.abs(c.response.sum(axis=0)).max() < 1e-6 * np.abs(c.response).max()


@pytest.mark.loops
@pytest.mark.parametrize("balanced", [True, False])
def test_both_ways_of_a_newton_step_agree(balanced):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    combined = HostCombined(DenseGram(np.exp(-2.0 * ((X[:, None] - X) ** 2).sum(axis=2))[None]), np.ones(1))
    free = rng.random((30, 4)) < 0.5
    free &= free.sum(axis=1, keepdims=True) > 1
    R = rng.normal(size=(3, 30, 4))
    one, other = (
        kind(combined, free, balanced).solve(R) for kind in (DifferencesNewtonSystem, ClassBlocksNewtonSystem)
    )
    np.testing.assert_allclose(one, other, atol=1e-7 * np.abs(one).max())
    rows = np.flatnonzero(free.any(axis=1))
    Z = np.zeros((30, 4, 3))
    Z[rows] = one
    assert not Z[~free].any()
    np.testing.assert_allclose(Z.sum(axis=1), 0.0, atol=1e-9)
    if balanced:
        np.testing.assert_allclose(Z.sum(axis=0), 0.0, atol=1e-7)
    # stationary: R - KZ is b_u + tau_i on the free entries
    slopes = np.moveaxis(R, 0, -1) - np.einsum("ij,juk->iuk", combined.host_rows().matrix, Z)
    i, u = np.nonzero(free)
    design = np.hstack([np.eye(30)[i], np.eye(4)[u] if balanced else np.zeros((len(i), 0))])
    left = slopes[i, u] - design @ np.linalg.lstsq(design, slopes[i, u], rcond=None)[0]
    assert np.abs(left).max() < 1e-6


@pytest.mark.loops
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_tiny_problem(fit_intercept):
    problem = draw(1, n=9, norm=2.0, fit_intercept=fit_intercept)
    check(run(*problem), *problem)


def test_low_ranks_and_large_costs():
    """Rows alone hardly move here; the Newton steps on the free entries do."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.argmax(X + 0.5 * rng.normal(size=X.shape), axis=1)
    stack = np.array([np.outer(x, x) for x in X.T])
    problem = stack, y, 100.0, 2.0, 3, True
    check(run(*problem), *problem)


def test_a_warm_start_ends_at_once():
    stack, y, C, norm, c, _ = draw(4, n=40)
    machine = CrammerSinger(y, C, True, c)
    point = Point(Problem(DenseGram(stack), machine, mixing_for(norm)))
    point.solve(1e-6 * machine.scale)
    again = machine.solve(HostCombined(point.problem.gram, point.beta), point.a, point.f, 1e-6 * machine.scale)
    np.testing.assert_array_equal(again, point.a)


# ---- the estimator


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_estimator_states_the_problem_it_solves(norm, fit_intercept):
    X, y = toy()
    model = MKLClassifier(KERNELS, multiclass="joint", norm=norm, fit_intercept=fit_intercept, tol=1e-6).fit(X, y)
    assert model.weights_.shape == (3,) and model.intercept_.shape == (3,)
    assert model.dual_coef_.shape == (3, len(model.support_)) and model.duality_gap_ <= 1e-6
    assert model.decision_function(X).shape == (len(X), 3)
    assert (model.predict(X) == y).mean() > 0.8
    codes = np.unique(y, return_inverse=True)[1]
    f = model.decision_function(X)
    if not fit_intercept:
        assert not model.intercept_.any()
    assert model.objective_ >= joint_loss(f, codes, 1.0)
    np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 0.0, atol=1e-12)


def test_estimator_agrees_with_the_conic_solver_on_a_stack():
    stack, y, _, _, c, _ = draw(8, n=30)
    model = MKLClassifier("precomputed", multiclass="joint", normalize=None, C=3.0, tol=1e-6)
    model.fit(stack_kernels(list(stack)), y)
    assert model.objective_ == pytest.approx(conic_joint(stack, y, 3.0, 1.0, c), rel=1e-5)


def test_weights_count_as_repetitions():
    X, y = toy(40)
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, len(y))
    model = MKLClassifier(KERNELS, multiclass="joint", tol=1e-7)
    one = clone(model).fit(X, y, sample_weight=weight)
    many = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert one.objective_ == pytest.approx(many.objective_, rel=1e-5)
    np.testing.assert_allclose(one.weights_, many.weights_, atol=2e-3)
    np.testing.assert_allclose(one.decision_function(X), many.decision_function(X), atol=2e-2)


def test_class_weights_multiply_C():
    X, y = toy(60)
    factors = {"red": 3.0, "green": 1.0, "blue": 0.5}
    model = MKLClassifier(KERNELS, multiclass="joint", tol=1e-6)
    one = clone(model).set_params(class_weight=factors).fit(X, y)
    # weights change normalisations as well: none here
    both = [clone(model).set_params(normalize=None), clone(model).set_params(normalize=None, class_weight=factors)]
    other = both[0].fit(X, y, sample_weight=np.array([factors[label] for label in y]))
    assert both[1].fit(X, y).objective_ == pytest.approx(other.objective_, rel=1e-5)
    assert one.status_ == "converged"


def test_two_classes_report_the_binary_row():
    X, y = toy(40, 2)
    joint = MKLClassifier(KERNELS, multiclass="joint").fit(X, y)
    assert joint.objective_ == MKLClassifier(KERNELS, multiclass="ovr").fit(X, y).objective_
    assert joint.decision_function(X).ndim == 1 and isinstance(joint.intercept_, float)


def test_a_hinge_object_multiplies_the_cost():
    X, y = toy(45)
    one = MKLClassifier(KERNELS, multiclass="joint", loss=Hinge(2.0), tol=1e-6).fit(X, y)
    assert one.objective_ == pytest.approx(
        MKLClassifier(KERNELS, multiclass="joint", C=2.0, tol=1e-6).fit(X, y).objective_, rel=1e-5
    )


def test_a_class_of_one_sample_and_single_precision():
    X, y = toy(40)
    X, y = np.vstack([X, [[5.0, 5.0, 5.0, 5.0]]]), np.append(y, "alone")
    stack = np.array([X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(axis=2))])
    single = stack.astype(np.float32)
    single.flags.writeable = False
    models = [
        MKLClassifier("precomputed", multiclass="joint", C=10.0, tol=1e-5).fit(stack_kernels(K), y)
        for K in (stack, single)
    ]
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=1e-4)
    assert models[1].duality_gap_ <= 1e-5


LOOSE = "compares at 1e-7 what the default tol solves to a relative gap of 1e-3"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": LOOSE,
    "check_sample_weight_equivalence_on_sparse_data": LOOSE,
}


@parametrize_with_checks([MKLClassifier(multiclass="joint")], expected_failed_checks=lambda each: EXPECTED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_rows_that_get_there_alone_are_not_polished(monkeypatch):
    """Newton steps on a thousand free entries cost a hundred times the row steps that make them needless."""
    rng = np.random.default_rng(0)
    y = np.arange(240) % 6
    X = np.eye(6)[y] @ rng.normal(size=(6, 8)) * 0.3 + rng.normal(size=(240, 8))
    polished = []
    monkeypatch.setattr(InteriorPoint, "step", lambda path: polished.append(1))
    model = MKLClassifier(multiclass="joint", C=100.0, fit_intercept=False, solver="silp", tol=1e-3).fit(X, y)
    assert model.duality_gap_ <= 1e-3 and not polished


def test_row_steps_end_where_rounding_hides_every_violation():
    rng = np.random.default_rng(0)
    X, y = 1e12 + rng.normal(size=(20, 4)), np.arange(20) % 3
    kernels = [RBF(), RBF(gamma=0.5), Linear()]
    assert np.isfinite(MKLClassifier(kernels, solver="silp").fit(X, y).objective_)
