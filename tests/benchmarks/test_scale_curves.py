"""The curves of docs/scale.md are drawn from the figures in the repository."""

from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[2]


@pytest.fixture
def curves(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE / "benchmarks"))
    monkeypatch.delitem(__import__("sys").modules, "scale_curves", raising=False)
    import scale_curves

    return scale_curves


def test_the_curves_are_those_of_the_tables(curves, tmp_path):
    page = (HERE / "docs" / "scale.md").read_text(encoding="utf-8")
    device = curves.gpu_times(page)
    assert [n for n, _ in device["one H200, stored"]] == [20_000, 50_000] and len(device["one H200, recomputed"]) == 1
    times, memory = curves.curves()
    assert {label for _, label, _ in memory} == {"two workers", "one process"}
    for n, seconds in next(
        points for group, label, points in times if (group[:8], label) == ("explicit", "two workers")
    ):
        assert f"| {n:,} |" in page and f"| {seconds:.0f} s |" in page
    pytest.importorskip("matplotlib")
    curves.main(["--out", str(tmp_path)])
    for name in ("scale-time.svg", "scale-memory.svg"):
        assert "two workers" in (tmp_path / name).read_text() and f"(img/{name})" in page
        assert (HERE / "docs" / "img" / name).exists()
