"""Sequences as input: alphabets, encoding, and the sentences about samples and parameters that are refused."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from multikernel.kernels import (
    GappedKmer,
    GappedSpectrum,
    KernelBank,
    LocalAlignment,
    Mismatch,
    PositionBlocks,
    Spectrum,
    WeightedDegree,
    WeightedDegreeShift,
)
from multikernel.kernels.sequences import DNA, PROTEIN, RNA, Alphabet, encode
from multikernel.kernels.sequences.samples import Sequences


def test_alphabets():
    assert encode(["ACGT", "ACGN"]).alphabet == DNA and encode(["acgu"]).alphabet == RNA
    assert encode(["MKV" * 9, "LLX"]).alphabet == PROTEIN and encode(["hello", "Wo"]).alphabet == Alphabet("EHLOW")
    assert encode(["ACGRYSWKM" * 9]).alphabet == PROTEIN  # too many ambiguity codes for a nucleotide
    assert encode(["MKVLFYWHEX"]).alphabet == PROTEIN and encode(["MKVLFYWHXX"]).alphabet != PROTEIN
    assert encode(["AU"], "dna").codes.tolist() == [0, 3] and encode(["AT"], "rna").codes.tolist() == [0, 3]
    assert encode(["abAB"], "abAB").codes.tolist() == [0, 1, 2, 3]
    assert encode(["abAB"], "ab").codes.tolist() == [0, 1, 0, 1]
    assert pickle.loads(pickle.dumps(DNA)) == DNA and pickle.loads(pickle.dumps(DNA)).table[ord("t")] == 3
    for bad in ("", "AA", "a" * 300, "\u03a9", 3):
        with pytest.raises(ValueError, match="alphabet"):
            encode(["AC"], bad)
    several = encode([bytes(range(33, 160)).decode("latin-1"), bytes(range(160, 256)).decode("latin-1")])
    assert not several.has_unknown and several.alphabet.size > 128


def test_an_alphabet_is_inferred_from_the_training_samples_alone():
    everything = Sequences(["abab", "bbaa", "abcc"])
    assert Spectrum(1).fit(everything[:2]).alphabet_ == Alphabet("AB")
    assert Spectrum(1).fit(everything).alphabet_ == Alphabet("ABC")


def test_encoded():
    encoded = encode(np.array([b"ACG", b" tt ", b"N"]))
    assert encoded.codes.tolist() == [0, 1, 2, 3, 3, 4] and encoded.offsets.tolist() == [0, 3, 5, 6]
    assert encoded.length is None and encoded.has_unknown and len(encoded) == 3
    with pytest.raises(ValueError, match="have no matrix"):
        encoded.matrix()
    assert encoded.take(slice(1, 3)).codes.tolist() == [3, 3, 4]
    assert encoded.take(np.array([2, 0])).codes.tolist() == [4, 0, 1, 2]
    assert encode(encoded) is encoded and encode(encoded, "ACGTX").alphabet.size == 5
    assert np.array_equal(Spectrum(1)(encoded), Spectrum(1)(["ACG", "TT", "N"]))
    assert np.array_equal(Spectrum(1).fit(encoded)(Sequences(encoded)[1:].detach(), encoded), [[0, 4, 0], [0, 0, 0]])
    fixed = np.array([b"ACGT", b"TTTT"])
    fixed.flags.writeable = False
    assert encode(fixed).matrix().tolist() == [[0, 1, 2, 3], [3, 3, 3, 3]]
    assert encode(np.array(["ACé", "AC"])).alphabet.letters == "ACÉ"
    assert len(encode([])) == 0


@pytest.mark.parametrize(
    ("samples", "sentence"),
    [
        (["AC", 3], "must be strings. Got 3 at index 1 instead"),
        (["AC", None], "must be strings. Got None at index 1 instead"),
        (["AC", float("nan")], "must be strings. Got nan at index 1 instead"),
        (pd.Series(["AC", None]), "at index 1 instead"),
        (["AC", ""], "at least one letter. Got an empty one at index 1"),
        (np.array([b"AC", b""]), "at least one letter. Got an empty one at index 1"),
        (["AC", "  "], "at least one letter. Got an empty one at index 1"),
        (["AC", "A\u03a9"], "letters in Latin-1. Got '\u03a9' at index 1 instead"),
        ("ACGT", "must be several sequences, such as a list of str. Got one text instead"),
        (np.arange(3), "must be strings. Got values of type int64 instead"),
        (np.zeros((3, 2)), "Spectrum needs one column of strings. Got 2 columns instead"),
    ],
)
def test_what_is_no_sequence_is_named_with_its_place(samples, sentence):
    with pytest.raises(ValueError, match=sentence):
        Spectrum(2).fit(samples)


def test_lengths_that_differ_are_named_with_their_place():
    with pytest.raises(ValueError, match=r"one length, as the first of 4 letters. Got one of 3 at index 2 instead"):
        WeightedDegree(2).fit(["ACGT", "AAAA", "ACG"])
    kernel = WeightedDegree(2).fit(["ACGT"])
    with pytest.raises(ValueError, match=r"fitted on sequences of 4 letters. Got one of 5 at index 1 instead"):
        kernel(["AAAA", "AAAAA"], ["ACGT"])


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (Spectrum(0), "'k' parameter of Spectrum must be a positive integer. Got 0"),
        (Spectrum(32), "patterns of at most 31 letters in an alphabet of 4. Got 32"),
        (Spectrum(2, alphabet=5), "An alphabet must be 'dna', 'rna', 'protein'"),
        (GappedSpectrum("000"), "'mask' parameter of GappedSpectrum must be zeros and ones"),
        (GappedSpectrum("12"), "'mask' parameter"),
        (GappedSpectrum(7), "'mask' parameter"),
        (GappedSpectrum("1", region=0), "'region' parameter of GappedSpectrum must be None, a non-zero integer"),
        (GappedSpectrum("1", region=(1, 2, 3)), "'region' parameter"),
        (Mismatch(3, 3), "'m' parameter of Mismatch must be a non-negative integer below k. Got 3"),
        (GappedKmer(3, 4), "'k' parameter of GappedKmer must be an integer from 1 to l. Got 4"),
        (WeightedDegree(0), "'degree' parameter of WeightedDegree must be a positive integer. Got 0"),
        (WeightedDegree(2, [1]), "'weights' parameter of WeightedDegree must be None or 2 non-negative numbers"),
        (WeightedDegree(2, [1, -1]), "'weights' parameter"),
        (WeightedDegree(2, window=(3, 3)), "'window' parameter of WeightedDegree must be None or a pair"),
        (WeightedDegreeShift(2, -1), "'shift' parameter of WeightedDegreeShift must be a non-negative integer"),
        (WeightedDegreeShift(2, [1, 1]), "one shift for each of the 4 positions. Got 2 instead"),
        (LocalAlignment(gap_open=-1), "'gap_open' parameter of LocalAlignment must be a non-negative integer"),
        (PositionBlocks(Spectrum(2), 2), "'kernel' parameter of PositionBlocks must be a WeightedDegree"),
        (PositionBlocks(WeightedDegree(2), 5), "'windows' parameter of PositionBlocks must be a positive integer"),
        (PositionBlocks(WeightedDegree(2), [(2, 1)]), "'windows' parameter"),
        (PositionBlocks(WeightedDegree(2, window=(0, 1)), 2), "must have no window of its own"),
    ],
    ids=str,
)
def test_bad_parameters(kernel, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        KernelBank.fit(kernel, ["ACGT", "AAAA"])
