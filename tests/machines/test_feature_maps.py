"""Explicit features: tries against brute force, maps against kernels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems_features import hold_against, texts
from scipy import sparse

from multikernel.gram.degrees import DegreeSource
from multikernel.gram.features import FeatureGram
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
from multikernel.kernels.degree_features import PlaceModel
from multikernel.kernels.feature_maps import FeatureMaps


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
        lambda n, seed: sparse.csr_array(np.maximum(np.random.default_rng(seed).normal(size=(n, 4)), 0.0)),
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
        (Nystroem(random_state=None), "'random_state' parameter of Nystroem must be a non-negative integer. Got None"),
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
    assert Polynomial(2).has_features and not Polynomial(2, coef0=-1.0).has_features
    assert not Polynomial(8).fit(np.zeros((3, 50))).has_features
    assert not RBF().has_features
