"""Kernels on sequences: each against its definition, with the whole battery for every line of the table."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import reference_sequences as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from multikernel.kernels import (
    RBF,
    AminoAcidComposition,
    DegreeBlocks,
    GappedKmer,
    GappedSpectrum,
    KernelBank,
    LocalAlignment,
    Mismatch,
    PositionBlocks,
    Spectrum,
    WeightedDegree,
    WeightedDegreeShift,
    kernel_name,
    motif_kernels,
)
from multikernel.kernels.sequences import PROTEIN, encode, planes
from multikernel.kernels.sequences.degree import agreements
from multikernel.kernels.sequences.kmers import Pattern, count_patterns
from multikernel.kernels.sequences.matrices import LETTERS, scores
from multikernel.kernels.sequences.samples import Sequences
from multikernel.kernels.table import Table

BLOSUM = scores("blosum62")


def blosum(a, b):
    return BLOSUM[LETTERS.index(a), LETTERS.index(b)]


def shares(x):
    return np.array([x.count(a) for a in PROTEIN.letters]) / max(1, sum(x.count(a) for a in PROTEIN.letters))


# kernel: its definition on two strings; those of DNA see A, C, G, T and the unknown N
TABLE = {
    "spectrum": (Spectrum(3, alphabet="dna"), lambda x, z: ref.inner(ref.motifs(x, "111"), ref.motifs(z, "111"))),
    "long": (Spectrum(12, alphabet="dna"), lambda x, z: ref.inner(ref.motifs(x, "1" * 12), ref.motifs(z, "1" * 12))),
    "presence": (
        Spectrum(2, presence=True, alphabet="dna"),
        lambda x, z: ref.inner(ref.motifs(x, "11", presence=True), ref.motifs(z, "11", presence=True)),
    ),
    "orders": (
        Spectrum(7, all_orders=True, alphabet="dna"),
        lambda x, z: sum(ref.inner(ref.motifs(x, "1" * k), ref.motifs(z, "1" * k)) for k in range(1, 8)),
    ),
    "motif": (
        GappedSpectrum("11011", alphabet="dna"),
        lambda x, z: ref.inner(ref.motifs(x, "11011"), ref.motifs(z, "11011")),
    ),
    "sparse motif": (
        GappedSpectrum("1010101010101", alphabet="dna"),
        lambda x, z: ref.inner(ref.motifs(x, "1010101010101"), ref.motifs(z, "1010101010101")),
    ),
    "head": (
        GappedSpectrum("101", region=6, alphabet="dna"),
        lambda x, z: ref.inner(ref.motifs(x, "101", 6), ref.motifs(z, "101", 6)),
    ),
    "tail": (
        GappedSpectrum("101", region=-6, alphabet="dna"),
        lambda x, z: ref.inner(ref.motifs(x, "101", -6), ref.motifs(z, "101", -6)),
    ),
    "mismatch": (
        Mismatch(3, 1, alphabet="dna"),
        lambda x, z: ref.inner(ref.neighbours(x, 3, 1, "ACGT"), ref.neighbours(z, 3, 1, "ACGT")),
    ),
    "two mismatches": (
        Mismatch(3, 2, alphabet="dna"),
        lambda x, z: ref.inner(ref.neighbours(x, 3, 2, "ACGT"), ref.neighbours(z, 3, 2, "ACGT")),
    ),
    "gapped k-mers": (GappedKmer(5, 3, alphabet="dna"), lambda x, z: ref.gapped_kmer(x, z, 5, 3)),
    "composition": (AminoAcidComposition(), lambda x, z: shares(x) @ shares(z)),
}
SAME_LENGTH = {
    "degree": (WeightedDegree(4, alphabet="dna"), lambda x, z: ref.weighted_degree(x, z, ref.beta(4))),
    "weights": (
        WeightedDegree(3, weights=[0, 0.5, 2], alphabet="dna"),
        lambda x, z: ref.weighted_degree(x, z, [0, 0.5, 2]),
    ),
    "window": (
        WeightedDegree(3, window=(2, 7), alphabet="dna"),
        lambda x, z: ref.weighted_degree(x, z, ref.beta(3), window=(2, 7)),
    ),
    "shift": (WeightedDegreeShift(3, 2, alphabet="dna"), lambda x, z: ref.weighted_degree(x, z, ref.beta(3), 2)),
    "far shift": (WeightedDegreeShift(2, 99, alphabet="dna"), lambda x, z: ref.weighted_degree(x, z, ref.beta(2), 99)),
    "shift in a window": (
        WeightedDegreeShift(3, 2, window=(1, 8), alphabet="dna"),
        lambda x, z: ref.weighted_degree(x, z, ref.beta(3), 2, (1, 8)),
    ),
}
ALL = TABLE | SAME_LENGTH

LETTER = st.sampled_from("AAAAACCCCGGTN")
TEXT = st.text(LETTER, min_size=1, max_size=24)
TEXTS = st.lists(TEXT, min_size=1, max_size=5)
# around the ends of words of 64 positions
LENGTH = st.sampled_from([1, 2, 9, 63, 64, 65, 129, 150])


def expected(define, X, Z):
    return np.array([[define(x, z) for z in Z] for x in X], float)


def check(kernel, define, X):
    K = expected(define, X, X)
    kernel = clone(kernel).fit(X)
    got = kernel(X)
    np.testing.assert_allclose(got, K, rtol=1e-12, atol=1e-12)
    assert np.array_equal(got, got.T)
    np.testing.assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-12, atol=1e-12)
    # test rows equal training rows
    np.testing.assert_allclose(kernel(X[:2], X), K[:2], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kernel(list(X), list(X)), K, rtol=1e-12, atol=1e-12)
    if kernel.positive_semidefinite:
        assert np.linalg.eigvalsh(got)[0] >= -1e-9 * max(1.0, np.abs(got).max())


@pytest.mark.parametrize("name", TABLE)
@settings(max_examples=25, deadline=None)
@given(X=TEXTS)
def test_a_kernel_equals_its_definition(name, X):
    check(*TABLE[name], X)


@pytest.mark.parametrize("name", SAME_LENGTH)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_kernel_on_sequences_of_one_length_equals_its_definition(name, data):
    size = data.draw(LENGTH)
    X = data.draw(st.lists(st.text(LETTER, min_size=size, max_size=size), min_size=1, max_size=3))
    check(*SAME_LENGTH[name], X)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_position_may_have_its_own_shift(data):
    L = data.draw(st.integers(1, 12))
    shift = data.draw(st.lists(st.integers(0, 4), min_size=L, max_size=L))
    X = data.draw(st.lists(st.text(LETTER, min_size=L, max_size=L), min_size=1, max_size=4))
    kernel = WeightedDegreeShift(3, shift, alphabet="dna")
    check(kernel, lambda x, z: ref.weighted_degree(x, z, ref.beta(3), shift), X)


def test_shifts_of_their_own_may_be_indefinite_and_then_say_so():
    L = 400
    rng = np.random.default_rng(0)
    definite = 0
    for reach in (np.full(L, 399), rng.integers(0, L, L), np.where(np.arange(L) % 2, L, 0), np.zeros(L, int)):
        places = np.eye(L)
        for s in range(1, L):
            near = np.flatnonzero(reach[: L - s] >= s)
            places[near, near + s] = places[near + s, near] = 0.5 / (s + 1)
        smallest = np.linalg.eigvalsh(places)[0]
        assert WeightedDegreeShift(1, reach).positive_semidefinite == (smallest >= 0)
        definite += smallest >= 0
    assert definite >= 2
    assert WeightedDegreeShift(1, 5).positive_semidefinite


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(st.sampled_from(LETTERS), min_size=1, max_size=12), min_size=1, max_size=4))
def test_local_alignment(X):
    def score(name):
        table = scores(name)
        return lambda a, b: table[LETTERS.index(a), LETTERS.index(b)]

    for name, opening, extending in (("blosum62", 11, 1), ("pam250", 3, 2), ("blosum62", 2, 0)):
        check(
            LocalAlignment(name, opening, extending),
            lambda x, z, s=score(name), o=opening, e=extending: ref.smith_waterman(x, z, s, o, e),
            X,
        )


def test_local_alignment_takes_a_matrix_of_ones_own():
    match = np.where(np.eye(4, dtype=bool), 2, -3)
    kernel = LocalAlignment(match, 5, 2, alphabet="dna")
    X = ["ACGTT", "CGT", "TTT"]
    check(kernel, lambda x, z: ref.smith_waterman(x, z, lambda a, b: 2 if a == b else -3, 5, 2), X)
    # an unknown letter scores the smallest entry, an unknown residue as X
    assert kernel(["ANA"])[0, 0] == 2 and LocalAlignment()(["WJW"])[0, 0] == 21
    for bad in ("blosum", match[:3], match + np.triu(np.ones((4, 4), int), 1), match * 1.5):
        with pytest.raises(ValueError, match="The 'matrix' parameter of LocalAlignment must be"):
            LocalAlignment(bad, alphabet="dna").fit(["ACGT"])


def test_the_matrices_are_the_published_ones():
    for name, diagonal, lowest in (("blosum62", 4, -4), ("pam250", 2, -8)):
        table = scores(name)
        assert np.array_equal(table, table.T) and table[0, 0] == diagonal and table.min() == lowest
    at = LETTERS.index
    assert BLOSUM[at("W"), at("C")] == -2 and BLOSUM[at("I"), at("V")] == 3
    pam = scores("pam250")
    assert pam[at("W"), at("W")] == 17 and pam[at("F"), at("Y")] == 7 and pam[at("C"), at("W")] == -8


def test_local_alignment_is_not_vouched_for():
    assert not LocalAlignment().positive_semidefinite
    rng = np.random.default_rng(3)
    X = ["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 6)) for _ in range(200)]
    eigenvalues = np.linalg.eigvalsh(LocalAlignment("pam250")(X))
    assert eigenvalues[0] < -1e-3 * eigenvalues[-1]


def test_the_motif_kernels_of_ong_and_zien():
    kernels = motif_kernels()
    assert len(kernels) == 64 and len({kernel_name(kernel) for kernel in kernels}) == 64
    X = ["MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPDAQFEVV", "MKAA", "GIVEQCCTSICSLYQLENYCN"]
    bank = KernelBank.fit(kernels, X)
    for k, K in bank.raw_each(X):
        mask = kernels[k].mask.rstrip("0")
        profiles = [ref.motifs(x.replace("N", "#"), mask, kernels[k].region) for x in X]
        np.testing.assert_array_equal(K, [[ref.inner(a, b) for b in profiles] for a in profiles])


# What every kernel shares.


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    return ["".join(rng.choice(list("ACGTN"), 40, p=[0.3, 0.3, 0.2, 0.18, 0.02])) for _ in range(300)]


@pytest.mark.parametrize("name", [*ALL, "alignment"])
def test_containers_blocks_and_pickles_agree(name, texts):
    kernel = LocalAlignment() if name == "alignment" else ALL[name][0]
    texts = texts[:40] if name in ("alignment", "two mismatches") else texts
    kernel = clone(kernel).fit(texts)
    K = kernel(texts)
    fixed = np.array(texts, dtype="S")
    fixed.flags.writeable = False
    for other in (np.array(texts), fixed, np.array(texts, object), pd.Series(texts), pd.DataFrame({"x": texts})):
        assert np.array_equal(kernel(other), K)
    assert np.array_equal(kernel([x.lower() for x in texts]), K)
    assert np.array_equal(pickle.loads(pickle.dumps(kernel))(texts), K)
    part = np.array([7, 3, 11])
    whole = Sequences(texts)
    for rows, cols in ((part, slice(None)), (slice(5, 20), part), (part, part)):
        block = kernel(whole[rows], whole[cols])
        np.testing.assert_allclose(block, K[rows][:, cols], rtol=1e-12, atol=1e-9)
        alone = pickle.loads(pickle.dumps(whole[cols]))
        np.testing.assert_allclose(kernel(whole[rows].detach(), alone), block, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(kernel.diag(whole[part]), np.diag(K)[part], rtol=1e-12)
    assert whole[3] == texts[3]
    assert kernel(whole[:0]).shape == (0, 0) and kernel(whole[:0], texts).shape == (0, len(texts))


def test_counts_that_are_not_kept_are_the_same(texts, monkeypatch):
    K = Mismatch(4, 1)(texts)
    monkeypatch.setattr("multikernel.kernels.sequences.samples.KEEP_BYTES", 0)
    kernel, whole = Mismatch(4, 1).fit(texts), Sequences(texts)
    assert np.array_equal(kernel(whole), K) and np.array_equal(kernel(whole[3:9], whole), K[3:9])
    assert np.array_equal(Spectrum(20)(texts), Spectrum(20).fit(texts)(texts[:150] + texts[150:], texts))


def test_rows_are_shared_among_threads(texts, monkeypatch):
    long = [a + b for a in texts[:34] for b in texts[:34]][:1100]
    kernels = (WeightedDegree(4), Spectrum(8), Spectrum(3), LocalAlignment())
    alone = [kernel(long[: 1100 if not isinstance(kernel, LocalAlignment) else 50]) for kernel in kernels]
    monkeypatch.setattr("multikernel.kernels.sequences.base.resolve_threads", lambda: 3)
    monkeypatch.setattr("multikernel.kernels.sequences.base.ROWS", 5)
    for kernel, K in zip(kernels, alone, strict=True):
        assert np.array_equal(kernel(long[: len(K)]), K)
        assert np.array_equal(kernel.fit(long)(long[:40], long[: len(K)]), K[:40])


def test_blocks_add_up_to_the_whole(texts):
    kernel = WeightedDegree(6)
    K = kernel(texts)
    families = {
        6: DegreeBlocks(kernel),
        5: PositionBlocks(kernel, 5),
        3: PositionBlocks(kernel, [(0, 10), (10, 11), (11, 40)]),
        24: PositionBlocks(DegreeBlocks(kernel), 4),
        12: DegreeBlocks(PositionBlocks(kernel, 2)),
    }
    for p, family in families.items():
        bank = KernelBank.fit(family, texts)
        assert bank.n_kernels == len(set(bank.names)) == p and all(each.positive_semidefinite for each in bank.kernels)
        parts = dict(bank.raw_each(texts))
        assert sorted(parts) == list(range(p))
        np.testing.assert_allclose(sum(parts.values()), K, rtol=1e-12)
        for k in (0, p - 1):
            np.testing.assert_allclose(parts[k], bank.raw(k, texts), rtol=1e-12)
            np.testing.assert_allclose(dict(bank.raw_each(texts[:9], texts))[k], parts[k][:9], rtol=1e-12)
    shifted = WeightedDegreeShift(4, 3)
    parts = dict(KernelBank.fit(DegreeBlocks(shifted), texts).raw_each(texts))
    np.testing.assert_allclose(sum(parts.values()), shifted(texts), rtol=1e-12)


def test_kernels_that_are_computed_together_fit_into_a_bounded_memory(texts, monkeypatch):
    bank = KernelBank.fit(DegreeBlocks(WeightedDegree(5)), texts)
    together = dict(bank.raw_each(texts))
    sizes = []

    def count(kernels, *arguments):
        sizes.append(len(kernels))
        return agreements(kernels, *arguments)

    monkeypatch.setattr("multikernel.kernels.sequences.degree.agreements", count)
    monkeypatch.setattr("multikernel.kernels.sequences.degree.BLOCK_BYTES", 2 * 8 * len(texts) ** 2)
    for k, K in bank.raw_each(texts):
        np.testing.assert_allclose(K, together[k])
    assert sizes == [2, 2, 1]


def test_blocks_in_a_data_frame(texts):
    frame = pd.DataFrame({"dna": texts, "age": np.arange(len(texts)) / 100})
    spec = [("wd", PositionBlocks(WeightedDegree(3), 4), "dna"), ("age", RBF(), ["age"])]
    bank = KernelBank.fit(spec, frame)
    assert bank.names == [f"wd: weighted_degree(degree=3)[{10 * i}:{10 * i + 10}]" for i in range(4)] + ["age"]
    table = Table(frame)
    blocks = dict(bank.raw_each(table[np.arange(5)], table))
    np.testing.assert_allclose(sum(blocks[k] for k in range(4)), WeightedDegree(3)(texts[:5], texts))
    np.testing.assert_allclose(blocks[4], bank.raw(4, frame)[:5])


def test_short_sequences_have_no_k_mers():
    assert np.array_equal(Spectrum(5)(["AC", "ACGTA"]), [[0, 0], [0, 1]])
    assert np.array_equal(Mismatch(5, 1)(["AC"]), [[0]]) and np.array_equal(GappedKmer(6, 3)(["ACG"]), [[0]])
    assert np.array_equal(WeightedDegree(30, weights=np.ones(30))(["AC", "AG"]), [[3, 1], [1, 3]])
    assert np.array_equal(Spectrum(2)(["NN", "AN"]), np.zeros((2, 2)))


# The loops, also uncompiled.


@pytest.mark.loops
def test_loops_of_the_weighted_degree():
    rng = np.random.default_rng(0)
    for L, letters in ((10, "ACGTN"), (130, "ACGTN"), (9, "ABCDEFGHI")):
        X = ["".join(rng.choice(list(letters), L)) for _ in range(3)]
        alphabet = "dna" if "N" in letters else letters
        K = WeightedDegree(3, alphabet=alphabet)(X)
        np.testing.assert_allclose(K, expected(lambda x, z: ref.weighted_degree(x, z, ref.beta(3)), X, X))
        K = WeightedDegreeShift(2, 1, alphabet=alphabet, window=(1, 8)).fit(X)(X[:2], X)
        define = lambda x, z: ref.weighted_degree(x, z, ref.beta(2), 1, (1, 8))  # noqa: E731
        np.testing.assert_allclose(K, expected(define, X[:2], X))
    assert planes.pack_mask(np.array([True, False, True])).tolist() == [5]


@pytest.mark.loops
def test_loops_of_the_counts():
    X = ["ACACGTNACAC", "GT", "CACA" * 3]
    for k in (1, 3, 9):
        check(Spectrum(k, alphabet="dna"), lambda x, z, m="1" * k: ref.inner(ref.motifs(x, m), ref.motifs(z, m)), X)
    assert count_patterns(encode(X, "dna"), Pattern((0, 2), 3, presence=True)).counts.max() == 1.0
    check(Spectrum(6, alphabet="dna"), lambda x, z: ref.inner(ref.motifs(x, "1" * 6), ref.motifs(z, "1" * 6)), X)
    check(LocalAlignment(gap_open=2), lambda x, z: ref.smith_waterman(x, z, blosum, 2, 1), X[:2])


def test_the_benchmark_runs_on_a_few_sequences(capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    monkeypatch.delitem(sys.modules, "run", raising=False)
    monkeypatch.delitem(sys.modules, "workloads", raising=False)
    import sequences

    sequences.grams(n=40, repeats=1)
    sequences.fasta(n=200, wrong=10)
    assert capsys.readouterr().out.count("bar") == 4
