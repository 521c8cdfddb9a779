"""The small parts of the frame: factorisation, cut model, certificate."""

import numpy as np
import pytest
from problems import random_problem
from scipy.linalg import LinAlgError

from multikernel.certificate import Best, Certificate
from multikernel.gram.combined import Cholesky
from multikernel.gram.dense import DenseGram
from multikernel.machines.svc import SVC
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Point, Problem
from multikernel.solve import Recorder
from multikernel.solvers.cut_model import CutModel
from multikernel.threads import Team


@pytest.mark.parametrize("n", [3, 512, 513, 2100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_factorisation_solves(n, dtype):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, n))
    A = (X @ X.T / n + np.eye(n)).astype(dtype)
    rhs = rng.normal(size=(n, 3))
    x = Cholesky(A.copy(), Team()).solve(rhs)
    assert A.astype(float) @ x == pytest.approx(rhs, abs=1e-3 if dtype == np.float32 else 1e-9)
    for threads in (2, 8):
        np.testing.assert_array_equal(Cholesky(A.copy(), Team(threads)).solve(rhs), x)


def test_a_factor_in_single_precision_takes_right_hand_sides_beyond_its_range():
    rhs = np.array([[1e105, 1e-60], [3e104, 2e-60]])
    x = Cholesky(np.diag(np.array([4.0, 2.0], np.float32)), Team()).solve(rhs)
    np.testing.assert_allclose(x, rhs / [[4.0], [2.0]], rtol=1e-6)


@pytest.mark.parametrize("n", [5, 2100])
@pytest.mark.parametrize("threads", [1, 8])
def test_a_factorisation_refuses_indefinite_matrices(n, threads):
    with pytest.raises(LinAlgError):
        Cholesky(-np.eye(n), Team(threads))


@pytest.mark.parametrize("index", range(14))
def test_cut_model_bounds_the_optimum_for_any_multipliers(index):
    problem = random_problem(index)
    mixing = mixing_for(problem.norm)
    machine, gram = SVC(problem.y, problem.C), DenseGram(problem.stack)
    rng = np.random.default_rng(index)
    cuts = CutModel(mixing, problem.p)
    for _ in range(4):
        a = machine.make_feasible(rng.normal(size=problem.n) * problem.C)
        cuts.add(machine.dual(a), gram.apply(a) @ a)
    beta, bound = cuts.minimise()
    model = max(g - 0.5 * beta @ q for g, q in zip(cuts.g, cuts.q, strict=True))
    size = max(abs(model), 1e-6 * machine.scale)
    assert bound <= model + 1e-9 * size
    assert bound == pytest.approx(model, abs=1e-4 * size)
    # J(beta) of a solved point is above every bound
    point = Point(Problem(gram, machine, mixing), beta)
    point.solve(1e-9 * machine.scale)
    assert point.certificate.upper >= bound - 1e-9 * size
    assert cuts.bound(rng.random(len(cuts.g))) <= bound + 1e-6 * size


def test_relative_gap_has_a_floor_and_is_never_negative():
    assert Certificate(1.0, 1.0 + 1e-16, 0.0, 1e-3).relative == 0.0
    assert Certificate(0.0, -1e-5, 0.0, 1e-3).relative == pytest.approx(1e-2)


def test_a_recorder_keeps_rows_and_calls_back():
    rows = []
    recorder = Recorder(rows.append, {"time": [], "gap": []})
    assert recorder.history == {"time": [], "gap": []}
    recorder.record({"gap": 0.5}, coef=1)
    recorder.record({"gap": 0.1, "score": 2.0}, coef=2)
    assert recorder.n_rows == 2
    assert recorder.history["gap"] == [0.5, 0.1] and recorder.history["score"] == [2.0]
    assert [row["coef"] for row in rows] == [1, 2] and "coef" not in recorder.history
    assert recorder.history["time"] == [row["time"] for row in rows]


def test_the_best_model_is_the_one_that_certifies_itself_best():
    problem = random_problem(3)
    point = Point(Problem(DenseGram(problem.stack), SVC(problem.y, problem.C), mixing_for(1.0)))
    best = Best(1e-2)
    assert best.model is None and best.certificate.relative == np.inf and not best.converged
    first = best.take(point)
    assert best.certificate == first and best.idle == 0 and np.array_equal(best.model.weights, point.beta)
    before = point.a
    point.solve(1e-6 * point.problem.machine.scale)
    now = best.take(point)
    assert now.upper < first.upper and best.certificate.upper == now.upper and best.own == now
    np.testing.assert_allclose(best.model.outputs, problem.stack @ point.a, atol=1e-9 * problem.C)
    # a worse point changes neither bounds nor model, but for a lower bound from elsewhere
    kept = best.model
    point.set_dual(before)
    best.take(point)
    assert best.model is kept and best.idle == 1
    best.take(point, lower=now.upper * (1 - 1e-3))
    assert best.met and best.idle == 0 and best.certificate.lower == now.upper * (1 - 1e-3)
    assert best.own == now and best.model is kept
