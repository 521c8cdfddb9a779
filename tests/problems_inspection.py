"""Sequences with a planted motif, kernels on them, and a classifier of them, for the tests of inspection."""

import numpy as np

from multikernel import MKLClassifier
from multikernel.datasets import dna
from multikernel.kernels import (
    DegreeBlocks,
    GappedKmer,
    GappedSpectrum,
    Mismatch,
    PositionBlocks,
    Spectrum,
    WeightedDegree,
    WeightedDegreeShift,
)

LENGTH, AT, MOTIF = 24, 10, "GATTACA"
S, Y = dna(120, LENGTH, motif=MOTIF, at=AT, mutation=0.1, seed=3)
# unknown letters match nothing
TEXTS = S.astype(str).tolist()
TEXTS[3] = TEXTS[3][:5] + "N" + TEXTS[3][6:]
TEXTS[80] = "NN" + TEXTS[80][2:]
TRAIN, TEST = slice(0, 70), slice(70, 120)
SHIFTS = [1, 0, 2] * 8

KERNELS = {
    "degree": [WeightedDegree(4)],
    "blocks": [PositionBlocks(DegreeBlocks(WeightedDegree(3)), 6)],
    "twice": [WeightedDegree(2), WeightedDegree(5, window=(4, 20)), WeightedDegree(3, weights=[0, 0, 1])],
    "shift": [WeightedDegreeShift(3, shift=2)],
    "shift by place": [WeightedDegreeShift(3, shift=SHIFTS), WeightedDegree(2)],
    "shift blocks": [PositionBlocks(WeightedDegreeShift(3, shift=2), 3)],
    "spectrum": [Spectrum(3), Spectrum(2, presence=True), Spectrum(3, all_orders=True)],
    "many patterns": [Spectrum(9)],
    "gaps": [GappedSpectrum("1011"), GappedSpectrum("11", region=(4, -3)), GappedSpectrum("101", region=-9)],
    "gapped k-mers": [GappedKmer(4, 2)],
    "mismatch": [Mismatch(3, 1)],
    "all": [WeightedDegree(4), WeightedDegreeShift(2, 1), Spectrum(3)],
}
WITH_FEATURES = ["degree", "blocks", "twice", "spectrum", "many patterns", "gaps", "gapped k-mers"]


def classifier(kernels, **options):
    return MKLClassifier(kernels, norm=2, tol=1e-4, psd="shift", **options).fit(TEXTS[TRAIN], Y[TRAIN])


def check_sum(model, X, scores):
    f = model.decision_function(X)
    size = np.abs(scores.values).sum(axis=1).max() + np.abs(f).max()
    np.testing.assert_allclose(scores.decision, f, atol=1e-12 * size)
    np.testing.assert_allclose(scores.offset + scores.values.sum(axis=1) + scores.rest, f, atol=1e-12 * size)
