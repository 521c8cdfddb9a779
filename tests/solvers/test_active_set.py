"""Short lists of kernels: against a conic solver, against the solver that keeps all of them, and for safety."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from problems import combined_rows, random_problem
from reference import conic_solution
from sklearn.base import clone

from multikernel import MKLClassifier, MKLRegressor
from multikernel.gram.dense import DenseGram
from multikernel.gram.dense_loops import add_both_sides
from multikernel.gram.lazy import LazyGram
from multikernel.gram.row_store import RowStore
from multikernel.gram.subset import KernelsGram
from multikernel.kernels import RBF, Linear, per_group, rbf_family
from multikernel.kernels.function import FunctionKernel
from multikernel.losses import Logistic
from multikernel.machines.ridge import Ridge
from multikernel.machines.smooth import Smooth
from multikernel.machines.svc import SVC
from multikernel.machines.svr import SVR
from multikernel.mixing.norms import Ball, Simplex
from multikernel.problem import Problem, Start
from multikernel.solve import solve
from multikernel.solvers import choose_solver
from multikernel.solvers.active_set import ActiveSet


def samples(n: int, groups: int, seed: int = 0, noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Two columns a group, of which the first three groups have a say."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2 * groups))
    score = X[:, 0] + np.sin(2.0 * X[:, 2]) + X[:, 4] * X[:, 5] + noise * rng.normal(size=n)
    return X, score - np.median(score)


def gaussians(X: np.ndarray, groups: int, widths=(0.3, 1.0, 3.0, 30.0)) -> np.ndarray:
    """Gaussian kernels of every group at every width, each divided by its variance."""
    stack = []
    for g in range(groups):
        Z = X[:, 2 * g : 2 * g + 2]
        D = np.square(Z[:, None] - Z[None]).sum(axis=2)
        stack += [np.exp(-D / w) for w in widths]
    return np.array([K / (1.0 - K.mean()) for K in stack])


def lazily(K: np.ndarray, budget: float = 0.0, **options) -> LazyGram:
    def compute(kernels, idx):
        return ((k, K[k, idx]) for k in kernels)

    return LazyGram(compute, np.diagonal(K, axis1=1, axis2=2), budget=budget, **options)


DEGENERATE = {
    "none": lambda K: K,
    "zero and constant": lambda K: np.concatenate([K, 0.0 * K[:1], np.ones_like(K[:1])]),
    "repeated": lambda K: np.concatenate([K, K[:5], 1.0 * K[:3]]),
    "scales": lambda K: K * np.logspace(-2, 2, len(K))[:, None, None],
    "rank one": lambda K: np.concatenate([K[::4], [np.outer(v, v) for v in K[0, :20]]]),
}


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("kind", DEGENERATE)
def test_agrees_with_the_solver_that_keeps_all_kernels(kind, C):
    X, score = samples(90, 12)
    K = DEGENERATE[kind](gaussians(X, 12))
    machine = SVC(np.sign(score), C)
    whole = solve(Problem(DenseGram(K), machine, Simplex()), "newton", tol=1e-6)
    for join in (12, 3):
        short = solve(Problem(lazily(K), machine, Simplex()), ActiveSet(join=join), tol=1e-6)
        assert short.status == "converged"
        assert short.solver == "active-set"
        assert short.upper == pytest.approx(whole.upper, rel=1e-5)
        assert short.lower <= whole.upper * (1 + 1e-9)
        np.testing.assert_allclose(short.outputs, np.einsum("kij,j->ki", K, short.dual_coef), atol=1e-8 * C * len(K[0]))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_agrees_with_a_conic_solver(fit_intercept):
    X, score = samples(40, 10, seed=3)
    K, y = gaussians(X, 10), np.sign(score)
    reference = conic_solution(K, y, 5.0, 1.0, fit_intercept=fit_intercept)
    problem = Problem(lazily(K), SVC(y, 5.0, fit_intercept), Simplex())
    short = solve(problem, "active-set", tol=1e-6)
    assert short.upper == pytest.approx(reference.value, rel=1e-5)
    assert max(short.history["lower"]) <= reference.upper * (1 + 1e-9)


MACHINES = {
    "tube": lambda score: SVR(score, 2.0, 0.2),
    "squared": lambda score: Ridge(score, 0.5, fit_intercept=True),
    "two targets": lambda score: Ridge(np.column_stack([score, np.sin(3.0 * score)]), 0.5),
    "logistic": lambda score: Smooth(np.sign(score), Logistic(), 2.0, fit_intercept=True),
}


@pytest.mark.parametrize("name", MACHINES)
def test_every_machine(name):
    X, score = samples(120, 10, seed=1)
    K = gaussians(X, 10)
    machine = MACHINES[name](score)
    whole = solve(Problem(DenseGram(K), machine, Simplex()), "newton", tol=1e-6)
    short = solve(Problem(lazily(K), machine, Simplex()), "active-set", tol=1e-6)
    assert (whole.status, short.status) == ("converged", "converged")
    assert short.upper == pytest.approx(whole.upper, rel=1e-5)


# ---- the first list


def test_a_start_is_the_first_list(monkeypatch):
    X, score = samples(80, 12)
    problem = Problem(DenseGram(gaussians(X, 12)), SVC(np.sign(score), 1.0), Simplex())
    first = solve(problem, "newton", tol=1e-2)
    again = solve(problem, "active-set", tol=1e-6, start=Start(first.weights, first.dual_coef))
    assert again.status == "converged"
    assert again.history["listed"][0] == np.count_nonzero(first.weights)


def weak(n: int, p: int, seed: int = 13) -> tuple[np.ndarray, np.ndarray]:
    """One Gaussian kernel a column, each divided by its variance; two columns matter, labels are noisy."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = np.sign(np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 1 + 0.3 * rng.standard_normal(n))
    K = np.array([np.exp(-((x[:, None] - x) ** 2) / 2.0) for x in X.T])
    return K / (1.0 - K.mean(axis=(1, 2)))[:, None, None], y


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_many_weak_kernels_are_read_a_few_times(C, monkeypatch):
    K, y = weak(100, 300)
    gram = DenseGram(K)
    read = []

    def apply(v, kernels=None):
        rows = np.count_nonzero(v.reshape(len(v), -1).any(axis=1))
        read.append(rows * (len(K) if kernels is None else len(kernels)))
        return original(v, kernels)

    original = gram.apply
    monkeypatch.setattr(gram, "apply", apply)
    name, solver = choose_solver(Problem(gram, SVC(y, C), Simplex()))
    assert name == "active-set"
    found = solve(Problem(gram, SVC(y, C), Simplex()), solver, tol=1e-2)
    assert found.status == "converged"
    # products of all kernels, as multiples of all of their entries; those of the lists among them
    assert sum(read) <= 20 * len(K) * len(y)
    assert found.n_iter <= 8 and sum(found.history["inner_steps"]) <= 60
    whole = solve(Problem(gram, SVC(y, C), Simplex()), "newton", tol=1e-2)
    assert found.upper == pytest.approx(whole.upper, rel=2e-2)


@pytest.mark.parametrize("norm", [1.0001, 1.001])
def test_a_norm_near_one_begins_at_the_solution_of_norm_one(norm):
    K, y = weak(60, 40)
    problem = Problem(DenseGram(K), SVC(y, 1.0), Ball(norm))
    found = solve(problem, tol=1e-2)
    assert found.status == "converged" and found.n_iter <= 5
    beta, a = found.weights, found.dual_coef
    assert np.sum(beta**norm) <= 1 + 1e-9
    # bounds written anew: the support function of the ball is the dual norm
    q, r = np.einsum("i,kij,j->k", a, K, a), norm / (norm - 1.0)
    lower = y @ a - 0.5 * q.max() * np.sum((q / q.max()) ** r) ** (1.0 / r)
    assert found.lower >= lower - 1e-9 and found.upper - lower <= 1.2e-2 * found.upper


# ---- storage


@pytest.mark.loops
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [3, 4, 9])
def test_a_tile_and_its_transpose_in_one_reading(rows, dtype):
    rng = np.random.default_rng(0)
    T, left, right = rng.normal(size=(rows, 6)).astype(dtype), rng.normal(size=rows), rng.normal(size=6)
    above, beside = np.ones(6), np.ones(rows)
    add_both_sides(T, left, right, above, beside)
    np.testing.assert_allclose(above, 1 + T.T.astype(float) @ left, rtol=1e-12)
    np.testing.assert_allclose(beside, 1 + T.astype(float) @ right, rtol=1e-12)


def test_some_of_the_kernels():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(5, 7, 7))
    K = K + K.transpose(0, 2, 1)
    gram = DenseGram(K)
    some, v = KernelsGram(gram, np.array([3, 1])), rng.normal(size=7)
    np.testing.assert_allclose(some.apply(v), K[[3, 1]] @ v)
    np.testing.assert_allclose(some.rows(np.array([2, 4]), np.array([1])), K[[1]][:, [2, 4]])
    np.testing.assert_allclose(combined_rows(some, np.array([2.0, -1.0]), np.array([5])), (2 * K[3] - K[1])[[5]])
    np.testing.assert_allclose(some.diag(), np.diagonal(K, axis1=1, axis2=2)[[3, 1]])
    matrix, factor = some.stored(0)
    np.testing.assert_allclose(factor * matrix, K[3])
    assert some.nbytes == 0
    np.testing.assert_allclose(gram.block(np.array([6, 0])), K[:, [[6], [0]], [6, 0]])


def test_a_full_store_keeps_some_of_what_is_read_in_turn():
    store = RowStore(1, 20, np.float64, 10)
    rows = np.arange(400.0).reshape(1, 20, 20)
    hits = 0
    for _ in range(5):
        for i in range(20):
            idx, out = np.array([i]), np.full((1, 1, 20), -1.0)
            if store.get(np.zeros(1, int), idx, out).all():
                np.testing.assert_array_equal(out[0, 0], rows[0, i])
                hits += 1
            elif store.open():
                store.put(np.zeros(1, int), idx, rows[:, idx])
    assert store.n_rows == 10
    assert hits >= 20


KERNELS = {
    "one family": [rbf_family(factors=4)],
    "groups": [per_group(rbf_family([0.5, 2.0]), {"a": [0, 1], "b": [2, 3, 4]})],
    "single": [RBF(width=2.0), Linear()],
    "function": [FunctionKernel(lambda X, Y: (X @ Y.T) ** 2), RBF()],
}


@pytest.mark.parametrize("columns", [None, 3], ids=["vector", "columns"])
@pytest.mark.parametrize("normalize", [None, "variance", "center", ["cosine", "center"]])
@pytest.mark.parametrize("name", KERNELS)
def test_products_without_rows(name, normalize, columns):
    from multikernel.training.core import Settings
    from multikernel.training.prepare import prepare

    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    dense = prepare(KERNELS[name], X, None, Settings("the test", normalize, gram="dense")).gram
    v = rng.normal(size=600 if columns is None else (600, columns))
    for n_threads in (1, 2):
        settings = Settings("the test", normalize, gram="lazy", n_threads=n_threads)
        lazy = prepare(KERNELS[name], X, None, settings).gram
        v[rng.permutation(600)[:500]] = 0.0
        expected = dense.apply(v)
        np.testing.assert_allclose(lazy.apply(v), expected, rtol=1e-9, atol=1e-9)
        chosen = np.array([1, 0])
        np.testing.assert_allclose(lazy.apply(v, chosen), expected[chosen], rtol=1e-9, atol=1e-9)
        idx = np.array([5, 599, 17])
        np.testing.assert_allclose(lazy.block(idx), dense.block(idx), atol=1e-10)
        # rows that are kept are multiplied where they lie
        lazy.rows(np.flatnonzero(v.reshape(600, -1).any(axis=1)))
        np.testing.assert_allclose(lazy.apply(v), expected, rtol=1e-9, atol=1e-9)
        beta = rng.uniform(size=dense.n_kernels)
        np.testing.assert_allclose(combined_rows(lazy, beta, idx), combined_rows(dense, beta, idx), atol=1e-10)


def test_single_precision_is_that_of_the_storage():
    from multikernel.kernels.bank import KernelBank

    X = np.random.default_rng(0).normal(size=(50, 4))
    bank = KernelBank.fit([rbf_family(factors=5), ("l", RBF(width=3.0), [0])], X)
    exact = dict(bank.raw_each(X[:9], X))
    for k, K in bank.raw_each(X[:9], X, None, np.float32):
        assert K.dtype == np.float32
        np.testing.assert_allclose(K, exact[k], atol=3e-7)
    # too far apart for single precision
    far = 1e40 * X
    huge = KernelBank.fit([RBF(width=1e80)], far)
    _, K = next(huge.raw_each(far[:9], far, None, np.float32))
    np.testing.assert_array_equal(K, huge.raw(0, far[:9], far))


# ---- estimators


def test_auto_takes_it_for_many_kernels_that_are_not_stored():
    X, score = samples(60, 20)
    K = gaussians(X, 20)
    machine = SVC(np.sign(score))
    assert choose_solver(Problem(lazily(K), machine, Simplex()))[0] == "active-set"
    assert choose_solver(Problem(lazily(K), machine, Ball(2.0)))[0] == "newton"
    assert choose_solver(Problem(lazily(K[:10]), machine, Simplex()))[0] == "newton"
    assert choose_solver(Problem(DenseGram(K), machine, Simplex()))[0] == "newton"
    assert choose_solver(Problem(DenseGram(np.tile(K, (3, 1, 1))), machine, Simplex()))[0] == "active-set"


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_estimators_use_it_and_agree(loss):
    X, score = samples(250, 16)
    columns = {f"g{g}": [2 * g, 2 * g + 1] for g in range(16)}
    kernels = [per_group(rbf_family(factors=4), columns)]
    if loss == "hinge":
        lazy, dense = (MKLClassifier(kernels, gram=gram, tol=1e-6) for gram in ("lazy", "dense"))
        y = np.where(score > 0, "yes", "no")
    else:
        lazy, dense = (MKLRegressor(kernels, loss="squared", gram=gram, tol=1e-6) for gram in ("lazy", "dense"))
        y = score
    lazy.fit(X, y)
    dense.fit(X, y)
    assert (lazy.solver_, dense.solver_) == ("active-set", "newton")
    assert lazy.status_ == "converged"
    assert lazy.objective_ == pytest.approx(dense.objective_, rel=1e-5)
    np.testing.assert_allclose(lazy.weights_, dense.weights_, atol=2e-2)
    small = clone(lazy).set_params(gram="auto", memory_limit="1MB", tol=1e-3).fit(X, y)
    assert (small.gram_.kind, small.solver_) == ("lazy", "active-set")
    assert small.duality_gap_ <= 1e-3


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_one_problem_for_each_class_or_pair(multiclass):
    X, score = samples(150, 12)
    y = np.digitize(score, np.quantile(score, [0.3, 0.7]))
    kernels = [per_group(rbf_family(factors=3), {f"g{g}": [2 * g, 2 * g + 1] for g in range(12)})]
    options = {"multiclass": multiclass, "tol": 1e-5}
    models = [MKLClassifier(kernels, gram=gram, **options).fit(X, y) for gram in ("lazy", "dense")]
    assert [model.solver_ for model in models] == ["active-set", "newton"]
    np.testing.assert_allclose(models[0].objective_, models[1].objective_, rtol=1e-4)


def test_the_benchmark_runs_on_a_small_draw(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import many

    many.main(["--samples", "200", "--groups", "10", "--widths", "4", "--memory", "1GB", "--history", "--check"])
    printed = capsys.readouterr().out
    assert "active-set: converged" in printed
    assert "sweeps of values" in printed
    assert float(printed.split("recomputed over all kernels")[1]) <= 1.05e-2
    many.main(["--samples", "150", "--groups", "10", "--widths", "4", "--memory", "1GB", "--loss", "squared"])
    assert "converged" in capsys.readouterr().out
    many.main(["--weak", "220", "--samples", "80", "--memory", "1GB"])
    printed = capsys.readouterr().out
    assert printed.count("active-set: converged") == 2
    assert float(printed.split("sweeps of values")[0].split()[-1]) <= 8


def test_problems_of_the_common_list():
    for index in range(0, 140, 7):
        case = random_problem(index)
        assert case.norm == 1.0
        problem = Problem(DenseGram(case.stack), SVC(case.y, case.C), Simplex())
        short = solve(problem, ActiveSet(join=4), tol=1e-6)
        reference = conic_solution(case.stack, case.y, case.C, 1.0)
        assert short.status == "converged", case.id
        assert short.upper == pytest.approx(reference.value, rel=1e-5), case.id
