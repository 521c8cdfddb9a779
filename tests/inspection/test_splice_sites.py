"""The experiment on splice sites of Sonnenburg et al. 2005, Figure 4."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from multikernel import MKLClassifier
from multikernel.datasets import load
from multikernel.inspection import position_importance, top_motifs
from multikernel.kernels import PositionBlocks, WeightedDegree

ROOT = Path(__file__).parents[2]


def test_the_profile_of_splice_sites_is_that_of_biology():
    try:
        data = load("celegans_acceptor")
    except FileNotFoundError:
        pytest.skip("MULTIKERNEL_DATA names no folder with the data sets")
    ag, part = 197, np.flatnonzero(data.part == 0)
    chosen = np.concatenate([part[data.y[part] == sign][:1500] for sign in (-1, 1)])
    blocks = PositionBlocks(WeightedDegree(1), [(ag + i, ag + i + 1) for i in range(-40, 14)])
    with pytest.warns(UserWarning, match="constant"):
        model = MKLClassifier(blocks, C=0.01, gram="features", tol=1e-2).fit(data.seq[chosen], data.y[chosen])
    importance = position_importance(model)
    for quantity in ("weights", "contributions"):
        profile = importance.profile(quantity)
        assert profile[ag : ag + 2] == pytest.approx(0.0, abs=1e-12)
        assert -10 <= profile.argmax() - ag < 0
        # the pyrimidine tract, and as many positions before it
        assert profile[ag - 20 : ag - 4].sum() > 2 * profile[ag - 40 : ag - 24].sum()
    for place in range(ag - 6, ag - 1):
        letters = top_motifs(model, 4, length=1, positions=(place, place + 1))
        assert max(letters, key=lambda each: each.weight).motif == "T"
