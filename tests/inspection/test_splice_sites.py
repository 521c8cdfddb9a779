"""The experiment on splice sites of Sonnenburg et al. 2005, Figure 4."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from multikernel import MKLClassifier
from multikernel.datasets import dna, load
from multikernel.inspection import position_importance, top_motifs
from multikernel.kernels import PositionBlocks, WeightedDegree

ROOT = Path(__file__).parents[2]


def test_the_experiment_on_splice_sites_finds_a_planted_tract(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("celegans", ROOT / "papers" / "2005-sonnenburg" / "celegans.py")
    celegans = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(celegans)
    monkeypatch.setattr(celegans, "HERE", tmp_path)
    sites, labels = dna(500, 398, motif="TTTTTTTTTTTTTTTTTC", at=celegans.AG - 18, mutation=0.5)
    sites = np.array([x[: celegans.AG] + b"AG" + x[celegans.AG + 2 :] for x in sites])
    train, test = (sites[:300], labels[:300]), (sites[300:], labels[300:])
    args = argparse.Namespace(C=0.1, tol=1e-2, threads=1, norms=[1.0])
    celegans.figure4(args, train, test)
    printed = capsys.readouterr().out
    assert "54 kernels, converged" in printed and printed.count("AG itself 0.0000") == 2
    assert printed.split("letters from -20 on: ")[1][2:19].count("T") > 12
    profile = pd.read_csv(tmp_path / "celegans-figure4.csv").set_index("position").weight
    assert -18 <= profile.idxmax() < 0 and not profile[[0, 1]].any()
    celegans.by_windows(args, train, test)
    printed = capsys.readouterr().out
    assert "one weighted degree kernel" in printed and printed.count("AG itself 0.0000") == 2
    assert len(celegans.windows(398)) == len({*celegans.windows(398)})
    covered = np.concatenate([np.arange(*window) for window in celegans.windows(398)])
    assert np.array_equal(covered, np.delete(np.arange(398), [celegans.AG, celegans.AG + 1]))
    assert all((tmp_path / f"celegans-{name}.png").stat().st_size > 1000 for name in ("figure4", "windows"))


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
