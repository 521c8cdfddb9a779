"""Masters over cuts: one programme solved in three ways, the bound of its multipliers, sets as cones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from certificates import support_value
from problems import NORMS
from scipy.optimize import OptimizeResult
from sklearn.exceptions import ConvergenceWarning

from multikernel import MKLRegressor, stack_kernels
from multikernel.gram.dense import DenseGram
from multikernel.machines.svc import SVC
from multikernel.mixing.cones import ConeRows, solve_conic
from multikernel.mixing.highs import HighsProgramme
from multikernel.mixing.norms import Ball, PlainSum, Simplex, mixing_for
from multikernel.problem import Problem
from multikernel.solve import solve
from multikernel.solvers.conic_cuts import minimise_conic, project_to_level
from multikernel.solvers.cut_model import CutModel, minimise_linear, minimise_smooth
from multikernel.solvers.silp import LinearMaster

EVERY_NORM = pytest.mark.parametrize("norm", NORMS, ids=lambda r: f"norm{r:.3g}")


def random_cuts(seed, T, p, spread=1.0):
    """Cuts of sizes that differ by powers of ten, as they come from very different coefficients."""
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-spread, spread, size=(T, 1))
    return sizes[:, 0] * rng.uniform(0.5, 1.0, T), sizes * rng.uniform(size=(T, p)) ** 2


def model_value(g, Q, beta) -> float:
    return float(np.max(g - 0.5 * Q @ beta))


def inside(beta, norm) -> bool:
    return beta.min() >= 0 and np.linalg.norm(beta, norm) <= 1 + 1e-9


@EVERY_NORM
@pytest.mark.parametrize(("T", "p", "spread"), [(1, 1, 0.0), (3, 4, 1.0), (30, 6, 0.5), (12, 12, 3.0)])
def test_every_master_closes_its_gap(norm, T, p, spread):
    g, Q = random_cuts(T, T, p, spread)
    mixing = mixing_for(norm)
    answers = {"conic": minimise_conic(g, Q, mixing)}
    if hasattr(mixing, "linear_rows"):
        answers["linear"] = minimise_linear(g, Q, mixing)
    else:
        answers["smooth"] = minimise_smooth(g, Q, mixing)
    model = CutModel(mixing, p)
    for g_t, q_t in zip(g, Q, strict=True):
        model.add(g_t, q_t)
    values = []
    for beta, multipliers in answers.values():
        assert inside(beta, norm)
        value = model_value(g, Q, beta)
        values.append(value)
        # the bound of the multipliers is rigorous, and as large as the value
        assert -1e-12 <= value - model.bound(multipliers) <= 1e-6 * max(abs(value), g.max() * 1e-2)
    assert np.ptp(values) <= 1e-6 * max(abs(values[0]), g.max() * 1e-2)
    beta, lower = model.minimise()
    assert np.linalg.norm(beta, norm) == pytest.approx(1.0)
    assert lower <= min(values) + 1e-12


@EVERY_NORM
def test_one_cut_is_the_support_function(norm):
    q = np.array([3.0, 0.5, 1.0])
    beta, multipliers = minimise_conic(np.array([7.0]), q[None], mixing_for(norm))
    assert multipliers == pytest.approx(np.ones(1))
    assert beta @ q == pytest.approx(support_value(q, norm), rel=1e-7)


@EVERY_NORM
def test_support_rows_are_the_epigraph_of_the_support_function(norm):
    mixing, t = mixing_for(norm), np.array([0.3, 2.0, 0.0, 1.1])
    rows = mixing.support_rows(len(t))
    width = rows.A.shape[1]
    pinned = ConeRows(np.eye(len(t)), t, (("zero", len(t)),))
    x, _ = solve_conic(np.zeros(width), np.eye(1, width, len(t))[0], [(pinned, np.arange(4)), (rows, np.arange(width))])
    assert x[len(t)] == pytest.approx(support_value(t, norm), rel=1e-6)


@EVERY_NORM
def test_projection_to_the_level_set(norm):
    rng = np.random.default_rng(8)
    g, Q = random_cuts(8, 10, 5)
    mixing = mixing_for(norm)
    start = mixing.scale_to_boundary(rng.uniform(size=5))
    lowest = model_value(g, Q, minimise_conic(g, Q, mixing)[0])
    level = 0.5 * (lowest + model_value(g, Q, start))
    beta = project_to_level(start, g, Q, level, mixing)
    assert inside(beta, norm)
    assert model_value(g, Q, beta) <= level + 1e-7 * g.max()
    if norm == 1:
        # no other point of the level set is nearer, the simplex being its own boundary
        for other in rng.dirichlet(np.ones(5), 2000):
            if model_value(g, Q, other) <= level:
                assert np.linalg.norm(other - start) >= np.linalg.norm(beta - start) - 1e-6


def test_the_model_forgets_the_cut_that_is_needed_least():
    model = CutModel(Simplex(), 2, limit=3)
    model.add(1.0, np.array([0.0, 2.0]))
    model.add(1.0, np.array([2.0, 0.0]))
    model.add(-5.0, np.array([0.0, 0.0]))
    assert model.minimise()[1] == pytest.approx(0.5)
    for _ in range(5):
        model.add(-6.0, np.array([1.0, 1.0]))
        assert len(model.g) == len(model.q) == 3
        assert model.minimise()[1] == pytest.approx(0.5)


@pytest.mark.parametrize("multipliers", [np.zeros(2), np.array([np.nan, 1.0]), np.array([-1.0, -2.0])])
def test_useless_multipliers_bound_nothing(multipliers):
    model = CutModel(Ball(2.0), 3)
    model.add(1.0, np.ones(3))
    model.add(0.5, np.zeros(3))
    assert model.bound(multipliers) == -np.inf


def test_a_set_with_cones_only_goes_to_the_conic_solver():
    class Disc:
        """The ball of norm 2, described by its cone and its support function alone."""

        is_simplex = False
        start, support, scale_to_boundary, violated_row, cone_rows = (
            getattr(Ball(2.0), name) for name in ("start", "support", "scale_to_boundary", "violated_row", "cone_rows")
        )

    model = CutModel(Disc(), 2)
    model.add(1.0, np.array([0.3, 0.4]))
    beta, lower = model.minimise()
    assert beta == pytest.approx([0.6, 0.8], abs=1e-6)
    assert lower == pytest.approx(0.75)


def test_the_live_master_agrees_with_one_built_anew():
    cuts = CutModel(Simplex(), 4)
    master = LinearMaster(cuts, 1.0)
    g, Q = random_cuts(2, 25, 4)
    for t in range(len(g)):
        cuts.add(g[t], Q[t])
        # the unit of the programme follows the objective
        beta, theta, lower = master.minimise(1.0 if t < 10 else 100.0, Simplex().start(4))
        anew, _ = minimise_linear(g[: t + 1], Q[: t + 1], Simplex())
        assert theta == pytest.approx(model_value(g[: t + 1], Q[: t + 1], anew), abs=1e-8 * g.max())
        assert theta - 1e-7 * g.max() <= lower <= theta + 1e-9 * g.max()
        assert beta.sum() == pytest.approx(1.0)


def test_reduced_gradient_descends_and_keeps_the_sum():
    beta, gradient = np.array([0.5, 0.3, 0.2, 0.0, 0.0]), np.array([1.0, 2.0, 0.0, 3.0, -1.0])
    direction = Simplex().reduced_gradient(beta, gradient)
    assert direction.sum() == pytest.approx(0.0)
    assert gradient @ direction < 0
    assert direction[3] == 0.0
    assert direction[4] > 0.0


def test_curvature_of_the_support_function():
    q, step = np.array([0.7, 0.1, 1.3]), 1e-5
    for norm in (1.1, 1.5, 2.0, 5.0):
        ball = Ball(norm)
        slope = [(ball.support(q + step * e)[1] - ball.support(q - step * e)[1]) / (2 * step) for e in np.eye(3)]
        assert ball.support_curvature(q) == pytest.approx(np.array(slope), rel=1e-4, abs=1e-7)
    assert not Ball(2.0).support_curvature(np.zeros(3)).any()


def failed_programme(*args, **kwargs):
    """What SciPy returns where HiGHS gives up."""
    return OptimizeResult(status=4, x=None, ineqlin=OptimizeResult(marginals=None))


def test_a_failed_linear_programme_leaves_the_known_weights(monkeypatch):
    monkeypatch.setattr("scipy.optimize.linprog", failed_programme)
    model, known = CutModel(PlainSum(), 2), np.ones(2)
    model.add(1.0, np.array([0.5, 0.2]))
    assert minimise_linear(np.array(model.g), np.array(model.q), PlainSum()) is None
    # a conic programme is tried next
    assert model.minimise(known)[1] == pytest.approx(0.65)
    monkeypatch.setattr("multikernel.solvers.cut_model.find_spec", lambda name: None)
    beta, lower = model.minimise(known)
    assert lower == -np.inf
    np.testing.assert_array_equal(beta, known)
    np.testing.assert_array_equal(model.minimise()[0], PlainSum().start(2))


def test_the_answer_of_a_master_before_it_failed_is_used(monkeypatch):
    real, calls = scipy.optimize.linprog, []

    def fails_later(*args, **kwargs):
        calls.append(args)
        return real(*args, **kwargs) if len(calls) == 1 else failed_programme()

    monkeypatch.setattr("scipy.optimize.linprog", fails_later)
    # at the uniform weights the model is a hundred times larger than at its minimum: it is solved again in that unit
    g, Q = np.array([1.0, 0.01]), np.array([[1.98, 0.0], [0.0, 0.0]])
    beta, multipliers = minimise_linear(g, Q, Simplex())
    assert len(calls) == 2
    assert beta == pytest.approx([1.0, 0.0]) and multipliers.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("others", [True, False])
@pytest.mark.parametrize("answers", [0, 3])
def test_a_run_whose_linear_programmes_fail_goes_on_with_other_masters(monkeypatch, answers, others):
    real, count = HighsProgramme.minimise, [0]

    def fails(self, cost):
        count[0] += 1
        return real(self, cost) if count[0] <= answers else None

    monkeypatch.setattr(HighsProgramme, "minimise", fails)
    if not others:
        monkeypatch.setattr(CutModel, "minimise", lambda self, known: (known, -np.inf))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    stack = np.array([np.exp(-((x[:, None] - x) ** 2)) for x in X.T])
    problem = Problem(DenseGram(stack), SVC(np.sign(X[:, 0] + 0.5 * X[:, 1])), Simplex())
    solution = solve(problem, "silp", tol=1e-9)
    assert solution.status == ("converged" if others else "stalled")
    monkeypatch.undo()
    optimum = solve(problem, "newton", tol=1e-9)
    assert solution.lower <= optimum.upper and solution.upper >= optimum.lower
    assert solution.weights.sum() == pytest.approx(1.0)


def test_a_linear_master_goes_on_where_highs_cannot():
    # numbers of 1e13 in units of the objective: HiGHS leaves out such rows
    rng = np.random.default_rng(3)
    X = rng.normal(size=(45, 4))
    y = X[:, 0] + np.sin(2 * X[:, 2]) + 0.3 * rng.normal(size=45)
    kernels = [X[:, :2] @ X[:, :2].T, np.exp(-((X[:, None] - X) ** 2).sum(axis=2)), X @ X.T]
    stack = stack_kernels([*kernels, np.ones((45, 45)), np.eye(45)])
    found = []
    for solver in ("silp", "newton"):
        model = MKLRegressor("precomputed", C=1e12, solver=solver)
        with pytest.warns(ConvergenceWarning):
            found.append(model.fit(stack, y).objective_)
    assert found[0] == pytest.approx(found[1], rel=0.05)
