"""A slice of the drill in the suite, and the runner itself: seeds, resuming, the page."""

import json
from dataclasses import replace

import numpy as np
import pytest

from drill import Kind, files, load_kinds
from drill.fits import unclear
from drill.run import Results, drill, generator, main, run_case, seconds

KINDS = load_kinds()
# seed and number of cases, a few seconds in all
SLICE = {
    "agreement": (1, 12),
    "exactness": (0, 5),
    "invariance": (0, 20),
    "extremes": (3, 20),
    "bad input": (0, 100),
    "files": (0, 100),
    "model files": (0, 100),
    "interrupts": (5, 3),
    "kills": (0, 4),
    "scarcity": (0, 4),
    "growth": (0, 14),
    "concurrency": (0, 2),
}
# cases that found something once: kind, seed and number
ONCE_FOUND = [
    ("agreement", 2, 163),
    ("agreement", 63, 464),
    ("extremes", 61, 1387),
    ("extremes", 62, 454),
    ("extremes", 62, 524),
    ("extremes", 63, 457),
    ("extremes", 73, 1543),
    ("exactness", 72, 18),
    ("exactness", 72, 760),
    ("exactness", 73, 32),
    ("agreement", 72, 173),
    ("extremes", 91, 178),
    ("extremes", 93, 98),
    ("extremes", 93, 229),
    ("agreement", 103, 213),
    ("extremes", 103, 2835),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KINDS)
def test_a_slice_finds_nothing(name):
    kind = KINDS[name]
    if reason := kind.absent():
        pytest.skip(reason)
    seed, count = SLICE[name]
    rows = [run_case(kind, seed, number) for number in range(count)]
    assert [row for row in rows if row["finding"]] == []


def draw(rng):
    number = int(rng.integers(1000))
    if number % 7 == 0:
        raise RuntimeError("seven")
    return "even" if number % 2 == 0 else "odd", f"found {number}" if number % 5 == 0 else None


TOY = Kind("toy", "Numbers.", 1, 40, draw)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "seed", "number"), ONCE_FOUND)
def test_what_was_found_once_is_mended(name, seed, number):
    assert run_case(KINDS[name], seed, number)["finding"] is None


def test_a_file_of_results_whose_protocol_is_a_word_is_refused(tmp_path):
    # found once by a case of the drill, which draws among more files today
    path = tmp_path / "results.jsonl"
    path.write_text('{"protocol": "k", "error": null, "score": 0.5}\n{"method": "mkl", "fold": 1, "key": "k"}\n')
    with pytest.raises(ValueError) as error:
        files.read(path, np.random.default_rng(0))
    assert unclear(error.value) is None


def test_a_case_depends_on_seed_kind_and_number_alone():
    one, two = (generator(3, "toy", 5).integers(1 << 30) for _ in range(2))
    assert one == two != generator(3, "other", 5).integers(1 << 30)
    rows = [run_case(TOY, 1, number) for number in range(40)]
    assert {row["label"] for row in rows} >= {"even", "odd"}
    found = [row["finding"] for row in rows if row["finding"]]
    assert any(text.startswith("RuntimeError: seven") for text in found) and any("found" in text for text in found)


def test_a_run_goes_on_where_it_ended(tmp_path):
    path = tmp_path / "rows.jsonl"
    whole = Results(path, False)
    drill([TOY], 4, np.inf, whole)
    cut = [row for row in whole.rows[:13]]
    path.write_text("".join(json.dumps(row) + "\n" for row in cut))
    rest = Results(path, True)
    drill([TOY], 4, np.inf, rest)
    same = [{**row, "seconds": 0} for row in rest.rows] == [{**row, "seconds": 0} for row in whole.rows]
    assert same and len(path.read_text().splitlines()) == 40
    # a process that died in a case leaves its number behind
    rest.begin("toy", 4, 40)
    assert Results(path, True).rows[-1]["finding"] == "the process died in this case"
    assert not rest.running.exists()


def test_the_budget_and_the_page(tmp_path, monkeypatch, capsys):
    assert [seconds(text) for text in ("90", "90s", "30m", "2h")] == [90, 90, 1800, 7200]
    absent = Kind("absent", "Nothing.", 1, 10, draw, lambda: "there is no such thing.")
    monkeypatch.setattr("drill.run.load_kinds", lambda: {"toy": TOY, "absent": absent})
    page, path = tmp_path / "page.md", tmp_path / "rows.jsonl"
    arguments = ["--here", "--resume", str(path), "--seed", "4", "--page", str(page)]
    assert main([*arguments, "--budget", "0s"]) == 0 and "0 of 40 cases" in capsys.readouterr().out
    assert main([*arguments, "--check"]) == 1
    text = page.read_text()
    assert (
        "| toy | 40 | 40 |" in text
        and "Left out of this run: there is no such thing." in text
        and "RuntimeError: seven" in text
    )
    assert main(["--only", "toy", "--case", "0"]) == 0


def test_parts_are_all_cases_and_their_files_make_one_page(tmp_path, monkeypatch, capsys):
    single = replace(TOY, name="single", alone=True)
    monkeypatch.setattr("drill.run.load_kinds", lambda: {"toy": TOY, "single": single})
    paths = [tmp_path / f"{j}.jsonl" for j in range(3)]
    for j, path in enumerate(paths):
        drill([TOY, single], 4, np.inf, Results(path, False), (j, 3))
        # nothing is left to go on with
        drill([TOY, single], 4, np.inf, Results(path, True), (j, 3))
    rows = [row for path in paths for row in Results(path, True).rows]
    assert sorted(row["case"] for row in rows if row["kind"] == "toy") == list(range(40))
    assert [row["case"] for row in Results(paths[0], True).rows if row["kind"] == "single"] == list(range(40))
    page = tmp_path / "page.md"
    assert main(["--merge", *map(str, paths), "--page", str(page), "--check"]) == 1
    assert "| toy | 40 | 40 |" in page.read_text() and "80 cases of seeds [4]" in capsys.readouterr().out
