"""The survey of `benchmarks/survey.py` on a few small fits, without data of the user."""

import json
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def survey(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delenv("MULTIKERNEL_DATA", raising=False)
    for name in ("survey", "survey_draw", "survey_fit", "survey_report", "survey_searches", "survey_solvers"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import survey

    return survey


def test_a_key_names_its_fit(survey):
    from survey_draw import draw, parse

    fits = draw()
    assert all(parse(fit.key) == fit for fit in fits) and len({fit.key for fit in fits}) == len(fits)
    assert draw() == fits != draw(seed=1)
    # every family has the same settings at C = 1 and at C = 1e4
    for C in (1.0, 1e4):
        assert len({fit.family for fit in fits if fit.C == C}) == len({f.family for f in fits if f.task != "one class"})
    assert {"hinge", "squared", "logistic", "multinomial", "huber", "epsilon_insensitive"} <= {f.loss for f in fits}


def test_every_generated_family_has_kernels(survey):
    from survey_draw import BANKS, GENERATED, samples, stack

    for turn, name in enumerate(GENERATED):
        K, y = stack(name, [*BANKS, "views", "features"][turn % 8], 60)
        assert K.shape[1] == len(y) == 60 and abs(K - K.transpose(0, 2, 1)).max() < 1e-5
    X, y, _ = samples("copies11", 50)
    assert len(set(map(tuple, X.round(6)))) == 10


def test_fits_are_recorded_and_not_done_again(survey, tmp_path, capsys, monkeypatch):
    out = tmp_path / "survey.jsonl"
    keys = [
        "ring/widths/n=40/loss=hinge/multi=joint/norm=1/C=1",
        "ring/widths/n=40/loss=hinge/multi=joint/norm=1/C=10000",
        "blobs.one/poly/n=40/loss=hinge/multi=joint/norm=inf/nu=0.5",
        "overlap11/features/n=40/loss=hinge/multi=joint/norm=2/C=1",
    ]
    fits = [survey.parse(key) for key in keys]
    assert [fit.key for fit in fits] == keys
    monkeypatch.setattr(survey, "chosen", lambda options: (fits, (20.0, 20.0)))
    assert survey.main(["--out", str(out)]) == 0
    first = out.read_text()
    records = [json.loads(line) for line in first.splitlines()]
    assert "run" in records[0] and [record["key"] for record in records[1:]] == keys
    assert [record["status"] for record in records[1:]] == ["converged"] * 3 + ["refused"]
    assert all(record["reference"] > 0 and record["one_pass"] > 0 for record in records[1:])
    # half a line at the end of a run that was stopped
    out.write_text(first + '{"key": "ring')
    survey.main(["--out", str(out)])
    assert out.read_text() == first + '{"key": "ring'
    printed = capsys.readouterr().out
    assert "ring/widths" in printed and "multiclass='ovr'" in printed and "every fit converged or refused" in printed


def test_searches_are_compared_with_a_grid_in_several_processes(survey, tmp_path, capsys, monkeypatch):
    keys = [
        "ring/widths/n=40/loss=hinge/multi=joint/norm=1/C=1",
        "waves.reg/poly/n=40/loss=squared/multi=joint/norm=2/C=1",
        "blobs.one/poly/n=40/loss=hinge/multi=joint/norm=inf/nu=0.5",
    ]
    from survey_searches import searches

    fits = searches([survey.parse(key) for key in keys])
    assert [fit.key for fit in fits] == keys[:2]
    monkeypatch.setattr(survey, "chosen", lambda options: (fits, (20.0, 20.0)))
    out = tmp_path / "searches.jsonl"
    survey.main(["--searches", "--jobs", "2", "--out", str(out)])
    records = [json.loads(line) for line in out.read_text().splitlines()[1:]]
    assert sorted(record["key"] for record in records) == sorted(keys[:2])
    assert all(record["seconds"] > 0 and record["grid"] > 0 and record["scores"] < 0.1 for record in records)
    assert "2 of 2 searches" in capsys.readouterr().out


def test_a_fit_is_killed_at_its_limit(survey):
    from survey_fit import Worker

    fit = survey.parse("overlap20/widths/n=300/loss=hinge/multi=joint/norm=1/C=10000")
    with Worker() as worker:
        assert worker.do("fit", fit, 1e-9, 0.01) is None
        # a new process goes on
        assert worker.do("pass", fit, 1e-9, 60)["samples"] == 300


def record(family="a/b", seconds=1.0, C=1.0, status="converged", **more):
    about = {"key": f"{family}/{C}/{seconds}", "family": family, "task": "classes", "C": C, "status": status}
    return about | {"seconds": seconds, "reference": 0.1, "one_pass": 0.01} | more


@pytest.mark.parametrize(
    "records, missed",
    [
        ([record()] * 4, []),
        ([record(), record(status="killed")], [0]),
        ([record(), record(status="refused")], []),
        ([record(seconds=1.6)] * 3, [1]),
        ([record(seconds=0.1)] * 5 + [record(seconds=2.9)], []),
        ([record(seconds=0.1)] * 5 + [record(seconds=3.1)], [2]),
        # two hundred passes are allowed whatever the median
        ([record(seconds=0.01)] * 5 + [record(seconds=1.9)], []),
        ([record(seconds=0.1)] * 2 + [record(seconds=1.1, C=1e4)] * 2, [3]),
        # the settings of another family do not hide it
        ([record(seconds=0.1)] * 2 + [record(seconds=1.1, C=1e4)] * 2 + [record("c/d"), record("c/d", C=1e4)] * 9, [3]),
    ],
)
def test_verdicts(survey, records, missed):
    from survey_report import report, verdicts

    assert [i for i, (_, met, _) in enumerate(verdicts(records)) if not met] == missed
    console = Console(width=150, file=StringIO())
    assert report(records, console) is (not missed)


def test_solvers_are_compared(survey, tmp_path, capsys):
    from survey_solvers import factors, picture, show_solvers

    def of(solver, seconds, norm="1", kernels=5, status="converged"):
        key = f"ring/widths/n=40/loss=hinge/multi=joint/norm={norm}/C=1"
        key += "" if solver == "auto" else f"/solver={solver}"
        return {"key": key, "seconds": seconds, "kernels": kernels, "status": status}

    records = [of("auto", 1.0), of("level", 2.0), of("silp", 0.1, status="killed"), of("sip", 0.0, status="refused")]
    records += [of("auto", 3.0, "2"), of("level", 1.0, "2")]
    assert factors(records) == {
        "norm 1, fewer than 32 kernels": {"auto": [1.0], "level": [2.0], "silp": [float("inf")]},
        "norms 4/3 and 2": {"auto": [3.0], "level": [1.0]},
    }
    console = Console(width=120, file=StringIO())
    show_solvers(records, console)
    assert "norms 4/3 and 2" in console.file.getvalue()
    picture(records, tmp_path / "solvers.svg")
    assert (tmp_path / "solvers.svg").stat().st_size < 100_000
    options = ["--solvers", "auto,newton", "--fits", "50", "--match", "nothing", "--out", str(tmp_path / "out.jsonl")]
    assert survey.main(options) == 0
