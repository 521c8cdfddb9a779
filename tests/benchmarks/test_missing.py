"""The experiment of `benchmarks/missing.py` on a small set that is written for it."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def missing(monkeypatch, tmp_path):
    rng, y = np.random.default_rng(0), np.repeat([0, 1], 40)
    views = {f"X_{v}": rng.normal(size=(80, 4)) + 2.0 * y[:, None] for v in range(3)}
    views["X_3"] = 3 * rng.poisson(0.3 * (1 + y[:, None]), size=(80, 9))
    (tmp_path / "toy").mkdir()
    np.savez(tmp_path / "toy" / "toy.npz", y=y, **views)
    monkeypatch.setenv("MULTIKERNEL_DATA", str(tmp_path))
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "missing", raising=False)
    import missing

    return missing


def test_the_rules_are_compared(missing, capsys):
    ahead = missing.main(["toy", "--splits", "2"])
    assert set(ahead) == {"mean", "drop"} and all(abs(value) <= 1 for value in ahead.values())
    assert "neighbours ahead of mean by" in capsys.readouterr().out


def test_a_sample_keeps_one_view_at_least(missing):
    gaps = missing.remove([np.ones((50, 2)), np.ones((50, 1))], 0.9, 0)
    assert not np.all([np.isnan(view).all(axis=1) for view in gaps], axis=0).any()
    views = [np.ones((6, 1)), np.full((6, 1), 2.0)]
    views[0][:3] = np.nan
    views[1][3:] = np.nan
    y, rows = np.array([0, 1, 0, 1, 0, 1]), np.arange(6)
    # no sample is complete
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert missing.scores(views, y, rows, rows, 0.0, 0)["drop"] == 0.5
