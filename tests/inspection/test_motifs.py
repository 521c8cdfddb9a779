"""Motifs and their weights against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from problems_inspection import AT, KERNELS, LENGTH, MOTIF, TEXTS, classifier

from multikernel.inspection import score_positions, top_motifs
from multikernel.kernels import GappedSpectrum, Spectrum, WeightedDegree


def test_a_spectrum_shares_a_k_mer_among_its_letters():
    model = classifier([Spectrum(2)], normalize=None)
    counts = {}
    for i, a in zip(model.support_, model.dual_coef_, strict=True):
        for t in range(LENGTH - 1):
            u = TEXTS[i][t : t + 2]
            counts[u] = counts.get(u, 0.0) + a
    x = TEXTS[100]
    expected = np.zeros(LENGTH)
    for t in range(LENGTH - 1):
        expected[t : t + 2] += 0.5 * counts.get(x[t : t + 2], 0.0)
    np.testing.assert_allclose(score_positions(model, [x]).values[0], expected, atol=1e-12)
    best = top_motifs(model, 3)
    known = sorted((u for u in counts if "N" not in u), key=lambda u: -abs(counts[u]))[:3]
    assert [each.motif for each in best] == known
    assert [each.position for each in best] == [None] * 3
    np.testing.assert_allclose([each.weight for each in best], [counts[u] for u in known], atol=1e-12)


MOTIF_KERNELS = {
    **{name: KERNELS[name] for name in ("degree", "twice", "shift", "shift by place", "shift blocks", "gaps", "all")},
    "counts": [Spectrum(3), Spectrum(3, all_orders=True)],
    "presence": [Spectrum(2, presence=True), GappedSpectrum("101", presence=True)],
}


def occurrences(motif, x):
    """How often a motif occurs in a sequence, a point standing for any letter; N is no letter."""
    windows = (x[t : t + len(motif)] for t in range(len(x) - len(motif) + 1))
    return sum(all(u == "." or u == v for u, v in zip(motif, window, strict=True)) for window in windows)


@pytest.mark.parametrize("name", MOTIF_KERNELS)
@pytest.mark.parametrize("normalize", [None, "variance"])
def test_the_weights_of_all_motifs_are_the_decision_function(name, normalize):
    model = classifier(MOTIF_KERNELS[name], normalize=normalize)
    motifs = top_motifs(model, 10**6)
    for x in (TEXTS[80], TEXTS[100]):
        total = score_positions(model, [x]).offset
        for each in motifs:
            if each.position is not None:
                total += each.weight * (x[each.position : each.position + each.length] == each.motif)
                continue
            region = x[slice(*(int(end) if end else None for end in each.region.split(":")))] if each.region else x
            count = occurrences(each.motif, region)
            total += each.weight * (min(count, 1) if name == "presence" else count)
        assert total == pytest.approx(float(model.decision_function([x])[0]), abs=1e-10)
    sizes = [abs(each.weight) for each in motifs]
    assert sizes == sorted(sizes, reverse=True)
    assert len({(each.motif, each.position, each.region) for each in motifs}) == len(motifs)


def test_motifs_can_be_chosen_by_length_and_position():
    model = classifier([WeightedDegree(7), Spectrum(4)])
    assert {each.length for each in top_motifs(model, 30, length=3)} == {3}
    chosen = top_motifs(model, 30, positions=(AT, AT + 2))
    assert {each.position for each in chosen} == {AT, AT + 1}
    every = top_motifs(model, 10**6, length=7)
    assert top_motifs(model, 1, length=7)[0] == max(every, key=lambda each: abs(each.weight))
    assert top_motifs(model, 1, length=5)[0].motif in MOTIF
