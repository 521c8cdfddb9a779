"""The linear-time machine on explicit features, against the dense one; the estimators that use it."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from certificates import dual_value
from problems_features import hold_against, planted, texts
from reference import conic_solution

from multikernel import MKLClassifier, MKLRegressor
from multikernel.gram.dense import DenseGram
from multikernel.gram.features import FeatureGram
from multikernel.gram.sources import DenseSource, SparseSource
from multikernel.kernels import DegreeBlocks, KernelBank, Linear, Polynomial, RandomFourier, Spectrum, WeightedDegree
from multikernel.kernels.feature_maps import FeatureMaps
from multikernel.losses import SquaredHinge
from multikernel.machines.descent import Descent
from multikernel.machines.joint.crammer_singer import CrammerSinger
from multikernel.machines.oneclass import OneClass
from multikernel.machines.ridge import Ridge
from multikernel.machines.smooth import Smooth
from multikernel.machines.svc import SVC
from multikernel.machines.svr import SVR
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Problem, Start
from multikernel.solve import solve
from multikernel.solvers.interleaved import Interleaved
from multikernel.training.core import Settings
from multikernel.training.prepare import prepare

ROOT = Path(__file__).parents[2]


# ---- the machine


def problem_of(n=90, seed=0):
    S, y = planted(n, seed)
    bank = KernelBank.fit([DegreeBlocks(WeightedDegree(4)), Spectrum(2)], S)
    parts = list(FeatureMaps(bank, S).sources(S))
    K = np.stack([bank.raw(k, S) for k in range(bank.n_kernels)])
    scale = 1.0 / (np.einsum("kii->k", K) / n - K.mean(axis=(1, 2)))
    gram = FeatureGram([source for source, _ in parts], [kernels for _, kernels in parts], scale)
    return gram, K * scale[:, None, None], y


def test_outputs_are_sums_of_as_many_terms_as_the_bound_on_rounding_counts():
    gram, _, _ = problem_of()
    dense = DenseSource(np.random.default_rng(0).normal(size=(gram.n_samples, 7)), np.zeros(7, int))
    for source in [*gram.sources, dense]:
        touched = []
        for row in range(gram.n_samples):
            T, growth = source.tables(), np.zeros(source.n_kernels)
            before = T.copy()
            source.add(T, np.array([row]), np.ones(1), growth)
            touched.append(np.count_nonzero(T != before))
        assert max(touched) <= source.terms
    # not the entries of all tables, of which a sample of a million reads few
    few = [source for source in gram.sources if not isinstance(source, DenseSource)]
    assert few and all(source.terms < source.tables().size for source in few)
    most = max(source.terms for source in gram.sources)
    np.testing.assert_allclose(gram.loose, gram.diag() * most / gram.n_samples)


@pytest.mark.parametrize("norm", [1, 2, np.inf])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("C", [0.1, 2.0])
def test_hinge_agrees_with_the_conic_solver(C, bias, norm):
    gram, K, y = problem_of()
    optimum = conic_solution(K, y, C, norm, fit_intercept=bias)
    solution = solve(Problem(gram, Descent(SVC(y, C, bias)), mixing_for(norm)), tol=5e-6)
    assert solution.solver == "interleaved" and solution.status == "converged"
    assert solution.upper == pytest.approx(optimum.value, rel=1e-5)
    assert solution.lower <= optimum.value * (1 + 1e-9) <= solution.upper * (1 + 2e-9)
    # the certificate is that of the matrices, and the constraints hold
    a = solution.dual_coef
    assert dual_value(K, y, a, norm) <= optimum.value * (1 + 1e-9)
    assert np.all((y * a >= 0) & (y * a <= C))
    if bias:
        assert abs(a.sum()) < 1e-10 * np.abs(a).sum()
    assert solution.outputs == pytest.approx(K @ a, abs=1e-7)


MACHINES = {
    "squared": lambda y, bias: Ridge(y, 1.5, bias),
    "squared_hinge": lambda y, bias: Smooth(y, SquaredHinge(), 1.5, bias),
    "tube": lambda y, bias: SVR(y + np.linspace(-1, 1, len(y)), 1.5, 0.2, bias),
    "costs": lambda y, bias: SVC(y, np.linspace(0.1, 2.0, len(y)), bias),
}


@pytest.mark.parametrize("solver", ["interleaved", "alternating", "level"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", MACHINES)
def test_other_machines_agree_with_the_dense_solver(name, bias, solver):
    gram, K, y = problem_of(60)
    machine = MACHINES[name](y, bias)
    for norm in (1, 2):
        dense = solve(Problem(DenseGram(K), machine, mixing_for(norm)), tol=1e-7)
        features = solve(Problem(gram, Descent(machine), mixing_for(norm)), solver, tol=9e-6)
        assert features.status == "converged"
        assert features.upper == pytest.approx(dense.upper, rel=1e-5)
        assert features.lower <= dense.upper * (1 + 1e-9)


def test_one_class():
    gram, K, _ = problem_of(50)
    machine = OneClass(np.ones(50), 0.3)
    dense = solve(Problem(DenseGram(K), machine, mixing_for(2)), tol=1e-7)
    features = solve(Problem(gram, Descent(machine), mixing_for(2)), "alternating", tol=1e-5)
    assert features.upper == pytest.approx(dense.upper, rel=1e-4)
    assert features.dual_coef.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("shuffled", [True, False])
def test_in_order_and_shuffled_epochs_reach_the_same_optimum(shuffled):
    gram, K, y = problem_of(70)
    dense = solve(Problem(DenseGram(K), SVC(y, 1.0), mixing_for(1)), tol=1e-7)
    machine = Descent(SVC(y, 1.0), shuffled=shuffled, random_state=3)
    assert solve(Problem(gram, machine, mixing_for(1)), tol=1e-5).upper == pytest.approx(dense.upper, rel=2e-5)


def test_a_warm_start_needs_fewer_epochs():
    gram, _, y = problem_of(90)
    problem = Problem(gram, Descent(SVC(y, 1.0)), mixing_for(2))
    cold = solve(problem, tol=1e-4)
    warm = solve(problem, tol=1e-4, start=Start(cold.weights, cold.dual_coef))
    assert warm.n_iter < cold.n_iter and warm.gap <= 1e-4


def test_machines_without_descent_are_refused():
    with pytest.raises(ValueError, match=r"Explicit features need the hinge.*CrammerSinger"):
        Descent(CrammerSinger(np.array([0, 1, 2]), 1.0, True, 3))


def test_the_interleaved_solver_says_what_it_needs():
    _, K, y = problem_of(30)
    with pytest.raises(ValueError, match="'interleaved' cannot be used with gram='dense': use 'newton'"):
        solve(Problem(DenseGram(K), SVC(y), mixing_for(1)), Interleaved())


@pytest.mark.loops
def test_dense_and_sparse_sources_hold_the_same_problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.6)
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0, 1.0, -1.0)
    column = np.array([0, 0, 1, 1, 2, 2])
    grams = [FeatureGram([DenseSource(X, column)]), FeatureGram([SparseSource(X, column)])]
    K = np.stack([X[:, column == k] @ X[:, column == k].T for k in range(3)])
    dense = solve(Problem(DenseGram(K), SVC(y, 1.0), mixing_for(1)), tol=1e-7)
    for gram in grams:
        hold_against(gram, K, np.random.default_rng(1))
        solution = solve(Problem(gram, Descent(SVC(y, 1.0)), mixing_for(1)), tol=1e-5)
        assert solution.upper == pytest.approx(dense.upper, rel=2e-5)


# ---- the estimators


def test_the_classifier_by_features_is_the_classifier():
    S, y = planted(150)
    new = texts(400, seed=9)
    kernels = [DegreeBlocks(WeightedDegree(4)), Spectrum(2)]
    dense, features = (MKLClassifier(kernels, gram=kind, tol=1e-6).fit(S, y) for kind in ("dense", "features"))
    assert features.gram_.kind == "features" and features.solver_ == "interleaved"
    assert features.objective_ == pytest.approx(dense.objective_, rel=1e-5)
    assert features.decision_function(new) == pytest.approx(dense.decision_function(new), abs=5e-3)
    assert features.decision_function(new[:20]) == pytest.approx(features.decision_function(new)[:20], abs=1e-9)
    assert features.kernel_contributions_.sum() == pytest.approx(1.0)
    assert features.kernel_names_ == dense.kernel_names_
    assert len(features.dual_coef_) == len(features.support_)


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_several_classes_and_weights(multiclass):
    S, _ = planted(90)
    y = np.arange(90) % 3
    weight = np.random.default_rng(0).integers(0, 3, 90)
    dense, features = (
        MKLClassifier([WeightedDegree(3), Spectrum(2)], gram=kind, tol=1e-6, multiclass=multiclass).fit(S, y, weight)
        for kind in ("dense", "features")
    )
    assert features.objective_ == pytest.approx(dense.objective_, rel=1e-5)


def test_regression_by_features():
    X = np.random.default_rng(0).normal(size=(120, 4))
    y = X[:, 0] ** 2 + X[:, 1]
    kernels = [RandomFourier(n_features=60), ("line", Linear(), [0, 1]), Polynomial(2)]
    for loss in ("squared", "epsilon_insensitive"):
        dense, features = (
            MKLRegressor(kernels, gram=kind, tol=1e-6, loss=loss).fit(X, y) for kind in ("dense", "features")
        )
        assert features.objective_ == pytest.approx(dense.objective_, rel=1e-5)
        assert features.predict(X[:30]) == pytest.approx(dense.predict(X[:30]), abs=2e-2)


def test_row_means_are_known_without_further_tables(monkeypatch):
    """Tables of a million sequences take gigabytes: while those of a point exist the means need none of their own."""
    S = texts(60)
    settings = Settings("the test", ("variance",), gram="features", features_need=lambda *_: None)
    prepared = prepare(DegreeBlocks(WeightedDegree(3)), S, None, settings)
    gram, made = prepared.gram, []
    expected = gram.apply(np.full(60, 1.0 / 60))
    monkeypatch.setattr("multikernel.gram.features.FeatureOutputs", lambda gram: made.append(gram))
    np.testing.assert_allclose(gram.means, expected, rtol=1e-12)
    assert not made


@pytest.mark.parametrize("factor", [2.0, np.array([2.0, 0.5])])
def test_row_means_in_other_units(factor):
    X = np.random.default_rng(0).normal(size=(5, 3))
    gram = FeatureGram([DenseSource(X, np.array([0, 0, 1]))])
    expected = gram.rescaled(factor).means
    assert gram.means.shape == (2, 5)
    np.testing.assert_allclose(gram.rescaled(factor).means, expected, rtol=1e-12)


def test_auto_takes_features_when_there_are_many_samples(monkeypatch):
    monkeypatch.setattr("multikernel.training.prepare.LARGE", 50)
    S, y = planted(60)
    assert MKLClassifier(WeightedDegree(3)).fit(S, y).gram_.kind == "features"
    assert MKLClassifier(WeightedDegree(3)).fit(S[:40], y[:40]).gram_.kind == "dense"
    assert MKLClassifier(WeightedDegree(3), loss="logistic").fit(S, y).gram_.kind == "dense"
    assert MKLClassifier(WeightedDegree(3), normalize="center").fit(S, y).gram_.kind == "dense"
    X = np.random.default_rng(0).normal(size=(60, 2))
    assert MKLClassifier("rbf").fit(X, y).gram_.kind == "dense"
    assert MKLClassifier(Linear()).fit(X, y).gram_.kind == "features"
    assert MKLClassifier(Linear()).fit(X, np.arange(60) % 3).gram_.kind == "dense"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"loss": "logistic"}, "gram='features' of MKLClassifier needs two classes or multiclass='ovr'"),
        ({"normalize": "cosine"}, "needs normalize=None, 'variance' or 'trace'. Got \\['cosine'\\]"),
        ({"kernels": "rbf"}, "needs kernels with explicit features. Got 'rbf"),
        ({"solver": "newton"}, "'newton' cannot be used with gram='features': use 'silp'"),
    ],
)
def test_what_features_cannot_do_is_said_in_one_sentence(options, sentence):
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match=sentence):
        MKLClassifier(**{"kernels": Linear(), "gram": "features", **options}).fit(X, X[:, 0] > 0)


def test_stacks_have_no_features():
    with pytest.raises(ValueError, match="gram='features' needs kernels that are computed from samples"):
        MKLClassifier("precomputed", gram="features").fit(np.eye(6)[None], np.arange(6) % 2)


# ---- benchmarks and the paper


def test_the_benchmarks_run_on_small_draws(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    scale = importlib.import_module("scale")
    scale.growth((200, 400))
    scale.predict(300, 300)
    scale.tabular(400, 10)
    scale.hashing(120)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7 and all("bar" in line for line in lines)
