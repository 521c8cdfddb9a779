"""The benchmark of intervals and p-values: it runs, goes on where it stopped, and reports all shards."""

import importlib
import json
from pathlib import Path


def test_a_quick_run_goes_on_and_reports(tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    intervals = importlib.import_module("intervals")
    for shard in ("1/2", "2/2"):
        found = intervals.main([str(tmp_path), "--quick", "--shard", shard])
    assert 0 <= found["coverage"] <= 1 and 0 <= found["level"] <= 1
    rows = list(intervals.read(tmp_path))
    assert sorted((row["task"], row["number"]) for row in rows) == [(t, i) for t in ("null", "planted") for i in (0, 1)]
    path = tmp_path / "1-of-2.jsonl"
    lines = [line for line in path.read_text().splitlines() if line]
    # a line that was cut off is computed again, others are not
    path.write_text("\n".join([*lines[:-1], lines[-1][:20]]))
    intervals.main([str(tmp_path), "--quick", "--shard", "1/2"])
    again = [json.loads(line) for line in path.read_text().splitlines() if line and not line.endswith(lines[-1][:20])]
    assert len(again) == 2 and again[0] == json.loads(lines[0])
    capsys.readouterr()
    assert intervals.main([str(tmp_path), "--report"]) == found
    assert "hold the truth" in capsys.readouterr().out
