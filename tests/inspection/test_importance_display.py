"""Tables and pictures of scores, motifs and profiles."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from problems_inspection import AT, KERNELS, TEST, TEXTS, classifier

from multikernel.inspection import (
    PositionImportance,
    SequenceImportanceDisplay,
    position_importance,
    score_positions,
    top_motifs,
)


def test_tables_and_pictures_are_saved(tmp_path):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    model = classifier(KERNELS["blocks"])
    importance = position_importance(model)
    paths = importance.save(tmp_path, origin=AT)
    with paths[0].open() as file:
        rows = list(csv.DictReader(file))
    assert sum(float(row["weight"]) for row in rows) == pytest.approx(model.weights_.sum())
    assert list(importance.to_frame().columns) == list(rows[0])
    scores = score_positions(model, TEXTS[TEST])
    paths += scores.save(tmp_path, row=3, window=(5, 20))
    with paths[2].open() as file:
        rows = list(csv.DictReader(file))
    assert sum(float(row["score"]) for row in rows if row["sequence"] == "3") == pytest.approx(scores.values[3].sum())
    motifs = top_motifs(model, 5)
    paths.append(motifs.save(tmp_path / "motifs.csv"))
    assert paths[-1].read_text().splitlines()[0] == ",".join(motifs.to_frame().columns)
    assert all(path.stat().st_size > 100 for path in paths)
    assert plt.get_fignums() == before


def test_the_display_draws_a_bar_for_each_position_and_degree():
    import matplotlib.pyplot as plt

    model = classifier(KERNELS["blocks"])
    figure, ax = plt.subplots()
    shown = {"origin": AT, "window": (4, 20), "quantity": "contributions"}
    display = SequenceImportanceDisplay.from_estimator(model, ax=ax, **shown)
    assert display.ax_ is ax and display.figure_ is figure
    heights = np.array([[bar.get_height() for bar in bars] for bars in display.bars_])
    expected = display.importance.profile("contributions")[4:20]
    np.testing.assert_allclose(heights.sum(axis=0), expected)
    centres = [bar.get_x() + bar.get_width() / 2 for bar in display.bars_[0]]
    np.testing.assert_allclose(centres, np.arange(4, 20) - AT)
    shifted = classifier(KERNELS["shift"])
    shift = SequenceImportanceDisplay.from_estimator(shifted, quantity="contributions", shared=True)
    assert shift.figure_ is not figure
    # more than 100 positions: one surface for each degree
    long = PositionImportance(np.full((120, 2), 0.25), np.full((120, 2), 0.5))
    surfaces = SequenceImportanceDisplay.from_importance(long).bars_
    tops = [surface.get_paths()[0].vertices[:, 1].max() for surface in surfaces]
    np.testing.assert_allclose(tops, [0.25, 0.5])
    plt.close("all")
