"""Explicit features: maps against kernels, tries against brute force, the linear-time machine against the dense one."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from certificates import dual_value
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import conic_solution
from scipy import sparse

from multikernel import MKLClassifier, MKLRegressor
from multikernel.gram.degrees import DegreeSource
from multikernel.gram.dense import DenseGram
from multikernel.gram.features import FeatureGram, Tables
from multikernel.gram.sources import DenseSource, SparseSource
from multikernel.gram.tries import MAX_DEGREE, Walk
from multikernel.kernels import (
    RBF,
    DegreeBlocks,
    GappedKmer,
    GappedSpectrum,
    HashedDegree,
    KernelBank,
    Linear,
    Nystroem,
    Polynomial,
    PositionBlocks,
    RandomFourier,
    Spectrum,
    WeightedDegree,
)
from multikernel.kernels.approximate import hash_places
from multikernel.kernels.features import FeatureMaps, has_features
from multikernel.kernels.places import PlaceModel
from multikernel.losses import SquaredHinge
from multikernel.machines.crammer import CrammerSinger
from multikernel.machines.oneclass import OneClass
from multikernel.machines.ridge import Ridge
from multikernel.machines.smooth import Smooth
from multikernel.machines.svc import SVC
from multikernel.machines.svr import SVR
from multikernel.mixing import mixing_for
from multikernel.primal.descent import Descent
from multikernel.problem import Problem
from multikernel.solve import solve
from multikernel.solvers.interleaved import Interleaved

ROOT = Path(__file__).parent.parent


def texts(n, length=12, letters="ACGT", seed=0):
    rng = np.random.default_rng(seed)
    return np.array(["".join(row) for row in rng.choice(list(letters), (n, length))], dtype=object)


def planted(n, seed=0):
    """Sequences whose class depends on two places and on a count."""
    S = texts(n, seed=seed)
    score = np.array([2.0 * (s[3:5] == "AC") + s.count("G") / 3 for s in S])
    score += 0.3 * np.random.default_rng(seed + 1).normal(size=n)
    return S, np.where(score > np.median(score), 1.0, -1.0)


def brute_degrees(codes, size, weight, kernel, p):
    """The kernels by their definition, one comparison of d-mers at a time."""
    n, places = codes.shape
    K = np.zeros((p, n, n))
    for place in range(places):
        same = np.ones((n, n), bool)
        for d in range(1, weight.shape[1] + 1):
            if place + d > places:
                break
            column = codes[:, place + d - 1]
            same &= (column[:, None] == column) & (column[:, None] < size)
            if kernel[place, d - 1] >= 0:
                K[kernel[place, d - 1]] += weight[place, d - 1] * same
    return K


def hold_against(gram, K, rng):
    """Hold every answer of a Gram against the matrices that it stands for."""
    p, n = K.shape[:2]
    a, beta = rng.normal(size=n), rng.random(p)
    assert gram.rows(np.arange(n)) == pytest.approx(K, abs=1e-9)
    assert gram.diag() == pytest.approx(np.einsum("kii->ki", K), abs=1e-9)
    assert gram.apply(a) == pytest.approx(K @ a, abs=1e-8)
    assert gram.apply(np.column_stack([a, a**2]))[:, :, 1] == pytest.approx(K @ a**2, abs=1e-8)
    assert gram.quad(a) == pytest.approx(np.einsum("kij,i,j->k", K, a, a), abs=1e-7)
    assert gram.combine(beta, np.arange(n)) == pytest.approx(np.tensordot(beta, K, 1), abs=1e-8)
    combined, rows = gram.combined(beta), rng.permutation(n)[: max(1, n // 2)]
    whole = np.tensordot(beta, K, 1)
    tables = Tables(gram)
    tables.move(a)
    assert combined.scores(tables, rows) == pytest.approx((whole @ a)[rows], abs=1e-8)
    assert combined.block(rows) == pytest.approx(whole[np.ix_(rows, rows)], abs=1e-8)
    assert combined.apply_change(a) == pytest.approx(whole @ a, abs=1e-8)
    assert not combined.apply_change(np.zeros(n)).any()
    # tables that moved twice are those of where they arrived
    tables.move(0.5 * a + 1.0)
    again = 0.5 * a + 1.0
    assert tables.q == pytest.approx(np.einsum("kij,i,j->k", K, again, again), abs=1e-7)
    F = K @ a
    gram.follow(F, a, again)
    assert F == pytest.approx(K @ again, abs=1e-8)
    part = gram.subset(rows)
    assert part.rows(np.arange(len(rows))) == pytest.approx(K[:, rows][:, :, rows], abs=1e-9)


# ---- tries


@pytest.mark.loops
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_tries_hold_the_weighted_degree_kernel_exactly(data):
    size = data.draw(st.sampled_from([1, 2, 4, 5, 20]))
    n, places, degree = (data.draw(st.integers(1, top)) for top in (25, 8, 6))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**20)))
    codes = rng.integers(0, size + 1, (n, places)).astype(np.uint8)
    codes[n // 2 :] = codes[: n - n // 2]
    p = 3
    weight, kernel = rng.random((places, degree)), rng.integers(-1, p, (places, degree))
    source = DegreeSource(codes, size, weight, kernel, p)
    gram = FeatureGram([source], scale=rng.random(p) + 0.5)
    K = brute_degrees(codes, size, weight, kernel, p) * gram.scale[:, None, None]
    hold_against(gram, K, rng)


@pytest.mark.loops
def test_a_place_sorts_the_samples_and_its_nodes_are_the_sets_that_agree():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, (40, 7)).astype(np.uint8)
    degree, walk = 5, Walk(codes, 2, 5)
    first = walk.starts[-1]
    for place, leaf, links, depth, reach in walk:
        words = [tuple(row[place : place + degree]) for row in codes]
        for i, word in enumerate(words):
            known = next((d for d, letter in enumerate(word) if letter >= 2), len(word))
            assert reach[i] == known
            longest = max(
                (d for d in range(1, known + 1) if sum(other[:d] == word[:d] for other in words) > 1), default=0
            )
            assert depth[i] == max(longest, min(walk.direct, known))
            x = int(leaf[i])
            while x >= first:
                d = int(links[x - first]) & 63
                assert sum(other[:d] == word[:d] for other in words) > 1
                x = int(links[x - first]) >> 6


@pytest.mark.loops
def test_new_sequences_are_sorted_together_with_support_vectors():
    rng = np.random.default_rng(4)
    old, new = (rng.integers(0, 5, (m, 6)).astype(np.uint8) for m in (20, 9))
    weight, coef = rng.random((2, 6, 4)), rng.normal(size=(20, 2))
    codes = np.concatenate([old, new])
    found = PlaceModel(old, 4, coef, weight)._by_sorting(new)
    for t in range(2):
        K = brute_degrees(codes, 4, weight[t], np.zeros((6, 4), int), 1)[0]
        assert found[:, t] == pytest.approx(K[20:, :20] @ coef[:, t])


@pytest.mark.loops
def test_hashed_places_are_the_d_mers_that_are_known():
    codes = np.array([[0, 1, 4, 2], [0, 1, 3, 2]], np.uint8)
    weight = np.ones((4, 2))
    weight[3, 0] = 0.0
    slots, values = np.zeros((2, 7), np.int32), np.zeros((2, 7))
    with np.errstate(over="ignore"):
        hash_places(codes, 4, weight, 2**20 - 1, slots, values)
    # the unknown letter at 2 spoils the d-mers (1, 2), (2, 1) and (2, 2); (3, 2) goes beyond the end
    assert values.tolist() == [[1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 0]]
    assert slots[0, :3].tolist() == slots[1, :3].tolist() and len(set(slots[1, :6].tolist())) == 6


def test_too_large_a_degree_is_refused():
    with pytest.raises(ValueError, match=f"up to {MAX_DEGREE}. Got 80"):
        DegreeSource(np.zeros((3, 100), np.uint8), 4, np.ones((100, 80)))


# ---- maps


VECTORS = [
    Linear(),
    ("two", Linear(), [0, 1]),
    Polynomial(2),
    Polynomial(3, gamma=0.3, coef0=0.5),
    RandomFourier(n_features=40),
    Nystroem(n_landmarks=15),
    Nystroem(RBF(width=3.0), n_landmarks=500),
]
SEQUENCES = [
    WeightedDegree(5),
    WeightedDegree(3, weights=[1, 0, 2], window=(2, 7)),
    Spectrum(2),
    Spectrum(9),
    GappedSpectrum("1101"),
    GappedKmer(4, 3),
    HashedDegree(WeightedDegree(4), slots=512),
]
CASES = {
    "vectors": (VECTORS, lambda n, seed: np.random.default_rng(seed).normal(size=(n, 4))),
    "sparse": (
        [Linear(), ("one", Linear(), [1])],
        lambda n, seed: sparse.random_array((n, 4), density=0.5, rng=np.random.default_rng(seed), format="csr"),
    ),
    "sequences": (SEQUENCES, lambda n, seed: texts(n, letters="ACGTN", seed=seed)),
    "blocks": (PositionBlocks(DegreeBlocks(WeightedDegree(4)), 3), lambda n, seed: texts(n, seed=seed)),
    "protein": ([WeightedDegree(3), Spectrum(2)], lambda n, seed: texts(n, 9, "ACDEFGHIKLMNPQRSTVWY", seed)),
}


@pytest.mark.parametrize("name", CASES)
def test_inner_products_of_features_are_the_kernels(name):
    spec, make = CASES[name]
    X, rng = make(70, 0), np.random.default_rng(0)
    bank = KernelBank.fit(spec, X)
    maps = FeatureMaps(bank, X)
    parts = list(maps.sources(X))
    gram = FeatureGram([source for source, _ in parts], [kernels for _, kernels in parts], n_threads=2)
    assert gram.kind == "features" and gram.nbytes > 0
    K = np.stack([bank.raw(k, X) for k in range(bank.n_kernels)])
    hold_against(gram, K, rng)


@pytest.mark.parametrize("n_new", [30, 300])
@pytest.mark.parametrize("name", CASES)
def test_outputs_on_new_samples_are_the_kernel_expansion(name, n_new):
    spec, make = CASES[name]
    X, new, rng = make(60, 0), make(n_new, 1), np.random.default_rng(0)
    bank = KernelBank.fit(spec, X)
    coef, weights = rng.normal(size=(60, 2)), rng.random((2, bank.n_kernels))
    coef[rng.random(60) < 0.4] = 0.0
    weights[:, 0] = 0.0
    model = FeatureMaps(bank, X).model(X, weights, coef)
    wanted = sum(bank.raw(k, new, X) @ (coef * weights[:, k]) for k in range(bank.n_kernels))
    assert model.evaluate(new) == pytest.approx(wanted, abs=1e-9)


def test_features_that_do_not_fit_are_computed_when_they_are_read():
    X, rng = np.random.default_rng(0).normal(size=(50, 3)), np.random.default_rng(1)
    bank = KernelBank.fit([RandomFourier(n_features=20), Linear()], X)
    [(kept, _)], [(streamed, _)] = (list(FeatureMaps(bank, X).sources(X, memory)) for memory in (np.inf, 0.0))
    assert kept.nbytes > 0 and streamed.nbytes == 0
    hold_against(FeatureGram([streamed]), FeatureGram([kept]).rows(np.arange(50)), rng)


def test_random_fourier_features_come_close_to_the_gaussian_as_their_number_grows():
    X = np.random.default_rng(0).normal(size=(60, 5))
    exact = RBF().fit(X)(X)
    errors = [np.abs(RandomFourier(n_features=m).fit(X)(X) - exact).max() for m in (50, 5000)]
    assert errors[1] < 0.08 < errors[0]
    assert RandomFourier(n_features=50).fit(X).diag(X) == pytest.approx(np.ones(60))
    first, second = (RandomFourier(n_features=50, random_state=seed).fit(X)(X) for seed in (1, 2))
    assert not np.allclose(first, second)


def test_nystroem_is_exact_on_its_landmarks_and_below_the_kernel_elsewhere():
    X = np.random.default_rng(0).normal(size=(80, 3))
    kernel = Nystroem(RBF(gamma=0.3), n_landmarks=20).fit(X)
    Z = kernel.landmarks_
    assert kernel(Z) == pytest.approx(RBF(gamma=0.3)(Z), abs=1e-8)
    assert np.linalg.eigvalsh(RBF(gamma=0.3)(X) - kernel(X))[0] > -1e-8


def test_hashing_is_exact_with_many_slots_and_its_error_falls_with_their_number():
    S = texts(40, 20)
    exact = WeightedDegree(6)(S)
    hashed = [HashedDegree(WeightedDegree(6), slots=2**bits)(S) for bits in (6, 10, 22)]
    errors = [np.abs(K - exact).max() / exact[0, 0] for K in hashed]
    assert errors[0] > errors[1] > 10 * errors[2]
    assert errors[2] < 1e-2


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (RandomFourier(n_features=3), "'n_features' parameter of RandomFourier must be a positive even integer. Got 3"),
        (RandomFourier(Linear()), "'kernel' parameter of RandomFourier must be an RBF kernel or None"),
        (Nystroem(n_landmarks=0), "'n_landmarks' parameter of Nystroem must be a positive integer. Got 0"),
        (Nystroem(random_state=None), "'random_state' parameter of Nystroem must be an integer. Got None"),
    ],
)
def test_bad_parameters_of_approximations(kernel, sentence):
    with pytest.raises(ValueError, match=sentence):
        kernel.fit(np.eye(4))


def test_bad_parameters_of_hashing():
    with pytest.raises(ValueError, match="'slots' parameter of HashedDegree must be a power of two"):
        HashedDegree(slots=1000).fit(["ACGT", "ACGA"])
    with pytest.raises(ValueError, match="'kernel' parameter of HashedDegree must be a WeightedDegree or None"):
        HashedDegree(Spectrum(2)).fit(["ACGT", "ACGA"])


def test_which_kernels_have_features():
    assert has_features(Polynomial(2)) and not has_features(Polynomial(2, coef0=-1.0))
    assert not has_features(Polynomial(8).fit(np.zeros((3, 50))))
    assert not has_features(RBF())


# ---- the machine


def problem_of(n=90, seed=0):
    S, y = planted(n, seed)
    bank = KernelBank.fit([DegreeBlocks(WeightedDegree(4)), Spectrum(2)], S)
    parts = list(FeatureMaps(bank, S).sources(S))
    K = np.stack([bank.raw(k, S) for k in range(bank.n_kernels)])
    scale = 1.0 / (np.einsum("kii->k", K) / n - K.mean(axis=(1, 2)))
    gram = FeatureGram([source for source, _ in parts], [kernels for _, kernels in parts], scale)
    return gram, K * scale[:, None, None], y


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
    assert not bias or abs(a.sum()) < 1e-10 * np.abs(a).sum()
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
    warm = solve(problem, tol=1e-4, start=(cold.weights, cold.dual_coef))
    assert warm.n_iter < cold.n_iter and warm.gap <= 1e-4


def test_machines_without_descent_are_refused():
    with pytest.raises(ValueError, match=r"Explicit features need the hinge.*CrammerSinger"):
        Descent(CrammerSinger(np.array([0, 1, 2]), 1.0, True, 3))


def test_the_interleaved_solver_says_what_it_needs():
    _, K, y = problem_of(30)
    with pytest.raises(ValueError, match=r"'interleaved' does not apply to this problem: it needs machine.epochs"):
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


def test_auto_takes_features_when_there_are_many_samples(monkeypatch):
    monkeypatch.setattr("multikernel.estimators.featured.LARGE", 50)
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
        ({"loss": "logistic"}, "gram='features' of MKLClassifier needs a problem with one column"),
        ({"normalize": "cosine"}, "needs normalize=None, 'variance' or 'trace'. Got \\['cosine'\\]"),
        ({"kernels": "rbf"}, "needs kernels with explicit features. Got 'rbf"),
        ({"solver": "newton"}, "'newton' does not apply to this problem: it needs machine.curvature"),
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


def test_the_experiment_of_the_paper_runs_on_a_small_draw(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("sonnenburg", ROOT / "papers" / "2005-sonnenburg" / "run.py")
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    monkeypatch.setattr(run, "N_TEST", 300)
    monkeypatch.setattr(run, "HERE", tmp_path)
    run.main(["fit", "--n", "400", "--length", "30", "--data", "dna"])
    run.main(["growth", "--sizes", "200", "400", "--length", "30", "--data", "dna"])
    printed = capsys.readouterr().out
    assert "converged" in printed and "300 predictions" in printed and "n^" in printed
    assert (tmp_path / "growth.svg").exists() and (tmp_path / "growth.csv").exists()
