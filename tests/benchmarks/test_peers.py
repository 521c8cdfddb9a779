"""The comparison with other packages on a tiny problem, in this environment only."""

import json
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

FOLDER = Path(__file__).parents[2] / "benchmarks" / "peers"
MODULES = ("bench", "environments", "objective", "page", "problems", "one_run")


@pytest.fixture
def bench(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("MULTIKERNEL_PEERS", str(tmp_path / "cache"))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    import bench

    return bench


@pytest.fixture
def folder(bench, tmp_path):
    from problems import rings, simplex

    problems = {"rings": ("two rings", 1.0, 1.0, lambda: rings(60)), "five": ("five", 1.0, 1.0, lambda: simplex(60, 5))}
    for name in problems:
        bench.write(name, tmp_path / name, problems)
    return tmp_path


@pytest.mark.parametrize("problem", ["rings", "five"])
def test_the_objective_recomputes_what_a_contestant_returns(bench, folder, problem):
    from objective import add_gaps, metrics
    from one_run import load, main

    data = load(folder / problem)
    by_name = {Path(module.__file__).stem: module for module in bench.contestants()}
    records = []
    for name, variant in (
        ("multikernel_fit", "newton"),
        ("svc_uniform", ""),
        ("multikernel_default", ""),
        ("svc_grid", ""),
    ):
        module = by_name[name]
        place = folder / f"{problem}-{name}"
        place.mkdir()
        efforts = json.dumps(module.EFFORTS[:2])
        main(str(folder / problem), module.__file__, variant, efforts, str(place), "1000")
        for path in sorted(place.glob("*.npz")):
            with np.load(path) as found:
                measured = metrics(found, data.K, data.y, data.y_test, data.C, data.norm)
            records.append({"problem": problem, "contestant": name, **measured})
    add_gaps(records)
    assert all(record["accuracy"] > 0.5 and record["seconds"] > 0 for record in records)
    first, second = (record for record in records if record["contestant"] == "multikernel_fit")
    assert -1e-12 <= second["gap"] <= 1e-3 and first["gap"] <= 1e-2
    if problem == "rings":
        assert next(record for record in records if record["contestant"] == "svc_uniform")["gap"] > 0.01


def test_a_wrong_solution_has_no_gap(bench, folder):
    from objective import metrics
    from one_run import load

    data = load(folder / "rings")
    found = {"predicted": data.y_test, "seconds": 1.0, "memory": 0.0, "intercept": 0.0}
    right = {"weights": np.full(20, 0.05), "dual_coef": np.zeros(60)}
    assert metrics(found | right, data.K, data.y, data.y_test, 1.0, 1.0)["upper"] == 60.0
    for wrong in ({"weights": np.full(20, 0.06)}, {"dual_coef": -0.1 * data.y}, {"dual_coef": np.eye(60)[0]}):
        assert "upper" not in metrics(found | right | wrong, data.K, data.y, data.y_test, 1.0, 1.0)


def test_what_cannot_run_has_a_reason(bench, folder, monkeypatch):
    import environments

    monkeypatch.setattr(environments.venv, "create", lambda *_, **__: (_ for _ in ()).throw(OSError("no")))
    python, reason = environments.interpreter(["nothing==1"], folder)
    assert python is None and reason == "no environment: OSError"
    about = json.loads((folder / "five" / "about.json").read_text())
    reasons = {
        module.TITLE: [module.skip(about, variant) for variant in module.VARIANTS] for module in bench.contestants()
    }
    assert reasons["scMKL"] == ["two classes only"] and "too large" in reasons["multikernel, {}"][-1]
    module = next(module for module in bench.contestants() if module.TITLE == "scMKL")
    found, reason = bench.runs(sys.executable, folder / "rings", module, "", 100.0)
    assert not found and reason.startswith("fails: ModuleNotFoundError")


def run(contestant, seconds=1.0, accuracy=0.9, **more):
    about = {"problem": "rings-2000", "title": "two rings", "contestant": contestant, "pass": 0.01}
    return about | {"seconds": seconds, "accuracy": accuracy, "memory": 1.0} | more


def test_the_page_says_where_we_lose(bench, tmp_path):
    from page import easymkl, grouped, show, write_page

    records = [
        run("multikernel, auto", 1.0, gap=1e-6),
        run("multikernel, level", 0.5, gap=1e-6),
        run("multikernel, defaults", 1.0, 0.9),
        run("SVC on the uniform sum", 0.1, 0.91, gap=0.5),
        run("MKLpy EasyMKL", 30.0, 0.88),
        {
            "problem": "rings-2000",
            "title": "two rings",
            "contestant": "scMKL",
            "pass": 0.01,
            "skipped": "does not install",
        },
    ]
    write_page({"cores": 2}, records, tmp_path / "benchmarks.md")
    text = (tmp_path / "benchmarks.md").read_text()
    assert (tmp_path / "img" / "benchmarks-rings-2000.svg").stat().st_size < 200_000
    assert "`multikernel, level` reaches a gap of 0.001 in 0.50 of the time of `auto`" in text
    assert "SVC on the uniform sum is more accurate than `MKLClassifier()`, 0.9100 against 0.9000" in text
    assert "30 times faster than MKLpy's EasyMKL" in text and "met)" in text and "scMKL: does not install" in text
    console = Console(width=150, file=StringIO())
    show(records, console)
    assert "scMKL: does not install" in console.file.getvalue()
    assert "missed" in easymkl(
        grouped([run("multikernel, defaults", 1.0, 0.9), run("MKLpy EasyMKL", 19.0)])["rings-2000"]
    )


def test_a_run_goes_on_where_it_was_stopped(bench, tmp_path, monkeypatch, capsys):
    out = tmp_path / "peers.jsonl"
    records = [run("multikernel, auto", upper=1.0, lower=0.99), run("SVC on the uniform sum", upper=2.0, lower=0.5)]
    out.write_text("".join(json.dumps(line) + "\n" for line in ({"machine": {"cores": 2}}, *records)))
    first = out.read_text()
    monkeypatch.setattr(bench, "contestants", lambda part: [])
    assert bench.main(["--quick", "--resume", "--problem", "rings-150", "--out", str(out)]) == 0
    assert out.read_text() == first and "multikernel, auto" in capsys.readouterr().out
    assert bench.main(["--report", "--out", str(out), "--page", str(tmp_path / "benchmarks.md")]) == 0
    assert "## Where we lose" in (tmp_path / "benchmarks.md").read_text()
    # a new run begins with the machine
    assert bench.main(["--quick", "--problem", "rings-150", "--out", str(out)]) == 0
    assert [list(json.loads(line)) for line in out.read_text().splitlines()] == [["machine"]]
