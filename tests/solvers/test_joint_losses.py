"""Joint losses other than the hinge: solvers and estimator against a conic solver and against laws."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from problems_joint import KERNELS, NORMS, draw, toy
from problems_joint_losses import LOSSES, biases, check, names, run
from reference_joint import other_loss
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from multikernel import MKLClassifier, MKLClassifierCV, stack_kernels
from multikernel.gram.dense import DenseGram
from multikernel.kernels import RBF, Linear
from multikernel.losses import Logistic, Multinomial, SmoothHinge, SquaredHinge
from multikernel.machines.joint.joint_loss import JointLoss
from multikernel.machines.smooth import Smooth
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Point, Problem
from multikernel.solve import solve

# ---- the optimum


@names
@pytest.mark.parametrize("index", [2, 3, 5, 6, 8, 9, 11, 13, 17, 18, 19, 21, 38, 39])
def test_agrees_with_the_conic_solver(loss, index):
    problem = draw(index)
    check(loss, run(loss, *problem), *problem)


@biases
@names
@pytest.mark.parametrize("norm", NORMS)
def test_agrees_at_every_norm_with_weights(norm, loss, fit_intercept):
    stack, y, C, norm, c, flag = draw(16, n=18, norm=norm, fit_intercept=fit_intercept)
    costs = C * np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    check(loss, run(loss, stack, y, costs, norm, c, flag), stack, y, costs, norm, c, flag)


@names
@pytest.mark.parametrize("solver", ["silp", "sip", "level", "alternating", "simplemkl", "newton"])
@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_every_solver_reaches_the_optimum(solver, norm, loss):
    if norm != 1 and solver in ("silp", "simplemkl"):
        pytest.skip("the solver is for other norms")
    problem = draw(6 if norm != 1 else 2, n=20, norm=norm, fit_intercept=True)
    check(loss, run(loss, *problem, solver=solver), *problem)


def test_whole_problem_solvers_are_for_the_hinge():
    problem = draw(2, n=12)
    for solver in ("qcqp", "qcqp-compact"):
        with pytest.raises(ValueError, match="cannot be used with the joint loss 'logistic'"):
            run("logistic", *problem, solver=solver)


@pytest.mark.loops
@names
@biases
def test_a_tiny_problem(loss, fit_intercept):
    problem = draw(1, n=8, norm=2.0, fit_intercept=fit_intercept)
    check(loss, run(loss, *problem), *problem)


@names
def test_low_ranks_and_large_costs(loss):
    """Rows alone hardly move here; Newton's method does."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.argmax(X + 0.5 * rng.normal(size=X.shape), axis=1)
    problem = np.array([np.outer(x, x) for x in X.T]), y, 100.0, 2.0, 3, True
    check(loss, run(loss, *problem), *problem)


# ---- laws


@biases
@names
def test_two_classes_are_the_binary_problem(loss, fit_intercept):
    """joint(K, C) = binary(2K, C) = 1/2 binary(K, 2C), the multinomial loss being the logistic one."""
    stack, y, C, *_ = draw(10, n=20)
    joint = run(loss, stack, y, C, 1.0, 2, fit_intercept, tol=1e-8).upper
    one = Logistic() if loss == "multinomial" else LOSSES[loss]
    for scale, cost, factor in ((2.0, C, 1.0), (1.0, 2 * C, 0.5)):
        machine = Smooth(2.0 * y - 1.0, one, cost, fit_intercept)
        binary = solve(Problem(DenseGram(scale * stack), machine, mixing_for(1.0)), tol=1e-8).upper
        assert joint == pytest.approx(factor * binary, rel=1e-6)


def test_the_logistic_loss_is_below_the_multinomial_one():
    problem = draw(8, n=25)
    assert run("logistic", *problem).upper < run("multinomial", *problem).upper


def test_the_smooth_hinge_approaches_the_hinge():
    from problems_joint import run as hinge

    stack, y, C, norm, c, flag = draw(13, n=24)
    exact, errors = hinge(stack, y, C, norm, c, flag).upper, []
    for sigma in (3.0, 30.0, 300.0):
        machine = JointLoss(y, SmoothHinge(sigma=sigma), C, flag, c)
        solution = solve(Problem(DenseGram(stack), machine, mixing_for(norm)), tol=1e-6)
        errors.append(solution.upper - exact)
        assert -1e-5 * exact <= errors[-1] <= C * len(y) * np.log(2) / sigma + 1e-5 * exact
    assert errors[0] > errors[1] > errors[2]


@names
def test_constants_added_to_kernels_change_nothing_with_biases(loss):
    stack, y, C, *_ = draw(5, n=25, norm=2.0)
    values = [run(loss, K, y, C, 2.0, 2, True).upper for K in (stack, stack + 5.0)]
    assert values[0] == pytest.approx(values[1], rel=1e-5)


@names
def test_permuting_classes_permutes_the_answer(loss):
    stack, y, C, norm, c, flag = draw(3, n=24)
    order = np.random.default_rng(1).permutation(c)
    one, other = run(loss, stack, y, C, norm, c, flag), run(loss, stack, order[y], C, norm, c, flag)
    assert one.upper == pytest.approx(other.upper, rel=1e-5)


@names
def test_a_class_without_samples_costs_nothing_with_biases(loss):
    stack, y, C, norm, c, _ = draw(6, n=20)
    with_it = run(loss, stack, y, C, norm, c + 1, True)
    assert with_it.upper == pytest.approx(run(loss, stack, y, C, norm, c, True).upper, rel=2e-6)
    assert with_it.status == "converged"


# ---- the estimator


@biases
def test_one_linear_kernel_is_multinomial_regression(fit_intercept):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 150)
    X = rng.normal(size=(150, 5)) + 1.2 * np.eye(5)[y]
    options = {"C": 0.7, "fit_intercept": fit_intercept}
    model = MKLClassifier([Linear()], loss="multinomial", normalize=None, tol=1e-10, **options).fit(X, y)
    baseline = LogisticRegression(tol=1e-12, max_iter=20000, **options).fit(X, y)
    logs = baseline.predict_log_proba(X)
    objective = 0.5 * np.sum(baseline.coef_**2) - 0.7 * logs[np.arange(len(y)), y].sum()
    assert model.objective_ == pytest.approx(objective, rel=1e-5)
    assert model.predict_proba(X) == pytest.approx(baseline.predict_proba(X), abs=1e-4)
    assert model.predict_log_proba(X) == pytest.approx(logs, abs=1e-3)
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert np.array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])


@names
@biases
def test_estimator_states_the_problem_it_solves(loss, fit_intercept):
    X, y = toy(60)
    model = MKLClassifier(KERNELS, loss=loss, fit_intercept=fit_intercept, tol=1e-6).fit(X, y)
    assert model.multiclass == "joint" and model.weights_.shape == (3,) and model.intercept_.shape == (3,)
    assert model.dual_coef_.shape == (3, len(model.support_)) and model.duality_gap_ <= 1e-6
    assert (model.predict(X) == y).mean() > 0.8
    codes = np.unique(y, return_inverse=True)[1]
    assert model.objective_ >= other_loss(model.decision_function(X), codes, 1.0, loss)
    assert len(model.history_["gap"]) == model.n_iter_
    if not fit_intercept:
        assert not model.intercept_.any()


def test_two_classes_of_the_multinomial_loss_report_the_logistic_row():
    X, y = toy(50, 2)
    one, other = (MKLClassifier(KERNELS, loss=loss, tol=1e-9).fit(X, y) for loss in ("multinomial", "logistic"))
    assert one.objective_ == other.objective_ and one.decision_function(X).ndim == 1
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    # the joint problem itself, at its own scale: the logistic loss of f_1 - f_0 on twice the kernels
    stack = np.array([X @ X.T])
    joint = run("multinomial", stack, (y == "red").astype(int), 1.0, 1.0, 2, True, tol=1e-9)
    twice = MKLClassifier("precomputed", loss="multinomial", normalize=None, tol=1e-9)
    assert joint.upper == pytest.approx(twice.fit(stack_kernels(2 * stack), y).objective_, rel=1e-7)


def test_loss_objects_multiply_the_cost():
    X, y = toy(45)
    for name, kind in (("multinomial", Multinomial), ("squared_hinge", SquaredHinge), ("logistic", Logistic)):
        one = MKLClassifier(KERNELS, loss=kind(2.0), tol=1e-6).fit(X, y)
        other = MKLClassifier(KERNELS, loss=name, C=2.0, tol=1e-6).fit(X, y)
        assert one.objective_ == pytest.approx(other.objective_, rel=1e-5)


@names
def test_weights_count_as_repetitions_and_class_weights_multiply_C(loss):
    X, y = toy(40)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    model = MKLClassifier(KERNELS, loss=loss, tol=1e-7)
    one = clone(model).fit(X, y, sample_weight=weight)
    many = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert one.objective_ == pytest.approx(many.objective_, rel=1e-5)
    np.testing.assert_allclose(one.decision_function(X), many.decision_function(X), atol=2e-2)
    factors = {"red": 3.0, "green": 1.0, "blue": 0.5}
    model.set_params(normalize=None)
    by_class = clone(model).set_params(class_weight=factors).fit(X, y)
    by_sample = clone(model).fit(X, y, sample_weight=np.array([factors[label] for label in y]))
    assert by_class.objective_ == pytest.approx(by_sample.objective_, rel=1e-5)


@names
def test_single_precision_is_certified_in_double(loss):
    X, y = toy(40)
    stack = np.array([X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(axis=2))])
    single = stack.astype(np.float32)
    single.flags.writeable = False
    models = [
        MKLClassifier("precomputed", loss=loss, C=10.0, tol=1e-5).fit(stack_kernels(K), y) for K in (stack, single)
    ]
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=1e-4)
    assert models[1].duality_gap_ <= 1e-5


def test_probabilities_of_the_other_losses_by_calibration():
    X, y = toy(90)
    model = MKLClassifier(KERNELS, loss="squared_hinge")
    assert not hasattr(model.fit(X, y), "predict_proba")
    calibrated = CalibratedClassifierCV(model, cv=3).fit(X, y)
    assert calibrated.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    assert (calibrated.predict(X) == y).mean() > 0.8


def test_a_search_by_the_likelihood():
    X, y = toy(60)
    search = MKLClassifierCV(KERNELS, loss="multinomial", Cs=[0.01, 1.0], cv=3, scoring="neg_log_loss").fit(X, y)
    assert search.best_params_["C"] == 1.0 and search.predict_proba(X).shape == (60, 3)


# ---- benchmarks


def test_the_benchmarks_run_on_small_draws(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import joint_losses

    for loss in LOSSES:
        joint_losses.passes(loss, [(40, 3, 2, 1.0, 1e-3, np.inf)], repeats=1)
    out = capsys.readouterr().out
    assert out.count("of the gap asked for") == out.count("passes") == 4 and "MISSED" not in out


@pytest.mark.parametrize("C", [1e24, 1e60])
@pytest.mark.parametrize("solver", ["auto", "level"])
def test_costs_beyond_float64_are_not_worse_than_no_model_at_all(solver, C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = np.argsort(np.argsort(X[:, 0] + np.sin(2 * X[:, 2]) + 0.3 * rng.normal(size=30))) * 3 // 30
    model = MKLClassifier([Linear(), RBF(), RBF(gamma=0.5)], loss="squared_hinge", C=C, solver=solver)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.set_params(fit_intercept=False).fit(X, y)
    # some converge: the smallest denominator of the relative gap grows with the costs; all others say that they did not
    assert [each.category for each in caught] == [ConvergenceWarning] * (model.status_ != "converged")
    # coefficients of zero have a loss of C for every sample, and a dual value of zero
    zero = 30.0 * C * (1 + 1e-9)
    assert model.objective_ <= zero and model.duality_gap_ * model.objective_ <= zero


@names
@pytest.mark.parametrize("norm", [1.0, np.inf])
def test_a_cold_start_at_large_costs_is_not_worse_than_coefficients_of_zero(loss, norm):
    stack, y, _, _, c, _ = draw(3, n=40)
    machine = JointLoss(y, LOSSES[loss], 1e4, True, c)
    problem = Problem(DenseGram(stack), machine, mixing_for(norm))
    # whose dual value is zero; a start of half the costs has one of minus a thousand times the losses and more
    assert Point(problem).certificate.lower < -1000.0 * machine.scale
    begun = solve(problem, max_iter=0)
    assert begun.lower >= 0.0 and begun.dual_coef.any()
    np.testing.assert_allclose(begun.outputs, DenseGram(stack).apply(begun.dual_coef), rtol=1e-12, atol=1e-9)
