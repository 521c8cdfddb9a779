"""The accuracy benchmark: its quick version runs, resumes, reports, and writes its tables into a document."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def accuracy(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in ("accuracy", "tasks"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import accuracy

    return accuracy


def test_the_quick_version_in_shards(accuracy, tmp_path, monkeypatch, capsys):
    out = ["--quick", "--out", str(tmp_path), "--sets", "iris,wine views", "--splits", "1"]
    accuracy.main([*out, "--shard", "0/2"])
    accuracy.main([*out, "--shard", "1/2"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0-of-2.jsonl", "1-of-2.jsonl"]
    rows = accuracy.read(tmp_path)
    assert len(rows) == 9 and all(row["score"] > 0.8 for row in rows)
    assert {row["views"] for row in rows} == {1, 2}
    # what is there is not run again; a line that was cut off is
    monkeypatch.setattr(accuracy, "run", lambda *job: pytest.fail(str(job)))
    accuracy.main([*out, "--shard", "0/2"])
    (tmp_path / "2.jsonl").write_text(json.dumps(rows[0])[:20])
    capsys.readouterr()
    document = tmp_path / "page.md"
    document.write_text("before\n<!-- tables begin -->\nold\n<!-- tables end -->\nafter\n")
    monkeypatch.setattr(accuracy, "write", lambda text, write=accuracy.write: write(text, document))
    accuracy.main([*out, "--report", "--write"])
    printed = capsys.readouterr().out
    assert "| iris | 105 | 3 | 1 |" in printed and "## Several views" in printed and "Mean rank: MKL" in printed
    text = document.read_text()
    assert text.startswith("before") and text.endswith("after\n") and "old" not in text and "| iris |" in text


def test_the_verdicts(accuracy):
    mean, error = accuracy.difference(np.array([0.9, 0.8, 0.7]), np.array([0.8, 0.8, 0.8]), 0.5)
    assert mean == 0.0 and error == pytest.approx(np.sqrt((1 / 3 + 0.5) * 0.01))
    assert accuracy.verdict(0.1, 0.04) == "better" and accuracy.verdict(-0.1, 0.04) == "worse"
    assert accuracy.verdict(0.1, 0.06) == accuracy.verdict(0.0, float("nan")) == "="


def test_the_jobs_and_their_splits(accuracy):
    names = (*accuracy.TABULAR, *accuracy.MULTIVIEW)
    assert len(names) >= 25
    jobs = accuracy.jobs_of((*names, *accuracy.REGRESSION), 10)
    assert len(set(jobs)) == len(jobs) == 10 * (4 * len(names) + 5 * 5 + len(accuracy.TABULAR) + 5)
    train, test = accuracy.split(np.arange(5000) % 3, True, 0)
    assert len(train) == 1000 and len(test) == 500 and not set(train) & set(test)
