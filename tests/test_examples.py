"""Every script of the gallery runs, draws a picture, and explains itself."""

import runpy
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*/plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs_and_draws(path, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *args, **kwargs: None)
    plt.close("all")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(str(path))
    drawn = [ax for number in plt.get_fignums() for ax in plt.figure(number).axes]
    plt.close("all")
    assert any(ax.has_data() for ax in drawn)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_is_short_and_has_a_title_and_an_introduction(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) < 100
    assert lines[0] == '"""' and set(lines[2]) == {"="} and len(lines[2]) == len(lines[1])
    assert lines[4].strip()


def test_the_gallery_is_not_small():
    assert len(EXAMPLES) >= 15
