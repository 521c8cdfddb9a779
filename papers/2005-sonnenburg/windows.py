"""Weighted degree kernels in windows of the whole sequence, against one kernel for all of it (beyond Figure 4)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from experiments import load_script, note, numbers

from multikernel.inspection import position_importance
from multikernel.kernels import PositionBlocks, WeightedDegree

title = "Beyond Figure 4: long d-mers in windows"
compared = """Not in the paper. Weighted degree kernels of 20 degrees in 40 windows of the data of figure4,
against one weighted degree kernel; 65,000 training sequences, C = 1 for all (not tuned), gap 1e-2. Windows do not
begin in the AG: d-mers that begin there and run on into the exon are in no sub-kernel."""
REACH = 60


def tasks(small):
    """One kernel, and windows with weights of norm 1 and 2."""
    return [{"model": model} for model in ("one kernel", "windows, norm 1", "windows, norm 2")[: 2 if small else None]]


def windows(length, start, width=4, far=40):
    """Windows over the whole sequence but the AG: narrow ones near it, wide ones elsewhere."""
    before = [*range(0, start - REACH, far), *range(start - REACH, start + 1, width)]
    after = [*range(start + 2, start + 2 + REACH, width), *range(start + 2 + REACH, length, far), length]
    return [*pairwise(before), *pairwise(after)]


def work(small, model):
    """Scores and profile of one model."""
    figure4 = load_script("2005-sonnenburg/figure4")
    start, (train, test) = figure4.AG, figure4.samples(small)
    # and the d-mers that begin and end in the AG
    itself = [WeightedDegree(2, window=(start, start + 1)), WeightedDegree(1, window=(start + 1, start + 2))]
    cut = PositionBlocks(WeightedDegree(20), windows(len(train[0][0]), start))
    kernels = [WeightedDegree(20)] if model == "one kernel" else [cut, *itself]
    fitted, row = figure4.fit(kernels, train, test, C=1.0, tol=1e-2, norm=2.0 if model.endswith("2") else 1.0)
    profile = position_importance(fitted).profile("weights")[start - REACH - 2 : start + REACH + 2]
    return row | {"profile": profile}


def verdicts(rows):
    """Scores of the three models."""
    return [
        note(f"acceptors of C. elegans, {row['model']}: area under precision-recall, ROC; gap; processor time",
             f"{row['precision_recall']:.4f}, {row['roc']:.4f}; {row['gap']:.4f}; {row['cpu_seconds']:.0f} s")
        for row in rows
    ]  # fmt: skip


def draw(rows, figure):
    """Draw the profiles around the site."""
    axes = figure.subplots(len(rows) - 1, 1, sharex=True, squeeze=False)[:, 0]
    for ax, row in zip(axes, rows[1:], strict=True):
        profile = numbers(row["profile"])
        ax.bar(np.arange(len(profile)) - REACH - 2, profile, color="tab:blue", width=1.0)
        ax.axvspan(-0.5, 1.5, color="0.85", zorder=0)
        ax.set(ylabel="weight", title=f"acceptors of C. elegans, {row['model']}")
    axes[-1].set(xlabel="position, 0 is the A of the AG")


size = (8, 5)
