"""Weights of the 12 kernels of protein folds, of three losses (section 3.2, Figure 3)."""

from __future__ import annotations

import numpy as np
from experiments import claim, column, load_script, numbers, values

title = "Figure 3: weights on protein folds, three losses"
compared = """Setting and rows of table2. The paper shows SVM and RKDA here and EM in Figure 2; its kernels are
public at rank 27 only, without names: we recovered these from features of the sequences. Why SVM and RKDA leave out
no more kernels than EM is not known; the folds choose C = 10 and lambda = 0.01 on both sets."""
rows_of = "2009-ying/table2"
METHODS = ("EM", "SVM", "RKDA")
VIEWS = ("C", "S", "H", "V", "P", "Z", "L1", "L4", "L14", "L30", "SW1", "SW2")
# the first, the fifth and the last in the order of the paper
IMPORTANT = ("C", "V", "SW2")


def weights_of(rows):
    """Return the weights of every method by data set: of protein folds or, in a small run, of what is there."""
    table = load_script(rows_of)
    names = [name for name in values(rows, "data") if name in table.FOLDS] or values(rows, "data")
    return {name: {method: numbers(column(rows, f"{method} weights", data=name)[0]) for method in METHODS}
            for name in names}  # fmt: skip


def left_out(w):
    """Return the names of the kernels without weight."""
    names = VIEWS if len(w) == len(VIEWS) else range(len(w))
    return ", ".join(str(name) for name, each in zip(names, w, strict=True) if each <= 1e-3) or (
        f"none (smallest weight {w.min():.2f})"
    )


def verdicts(rows):
    """That SVM and RKDA are sparser than EM, and which kernels they find important."""
    found, label = [], load_script(rows_of).label
    for name, weights in weights_of(rows).items():
        counts = {method: int((w > 1e-3).sum()) for method, w in weights.items()}
        for method in METHODS[1:]:
            w = weights[method]
            left = {each: left_out(weights[each]) for each in (method, "EM")}
            found.append(claim(f"{label(name)}: kernels of {len(w)} with weight above 0.001, {method} and EM",
                               "sparser than EM", f"{counts[method]}, {counts['EM']}", counts[method] < counts["EM"],
                               f"left out by {method}: {left[method]}; by EM: {left['EM']}"))  # fmt: skip
            if len(w) == len(VIEWS):
                top = np.argsort(-w)[:3]
                shown = ", ".join(f"{VIEWS[k]} {w[k]:.2f}" for k in top)
                found.append(claim(f"{label(name)}: the three largest weights of {method}",
                                   f"{', '.join(IMPORTANT)} (2 of them)", shown,
                                   len({VIEWS[k] for k in top} & set(IMPORTANT)) >= 2,
                                   "view names recovered by us, rank 27" if name.endswith("public")
                                   else "other features and alignments than the paper's"))  # fmt: skip
    return found


def draw(rows, figure):
    """Draw the weights."""
    shown, label = weights_of(rows), load_script(rows_of).label
    axes = figure.subplots(len(shown), len(METHODS), squeeze=False, sharex=True)
    for line, (name, weights) in zip(axes, shown.items(), strict=True):
        for ax, (method, w) in zip(line, weights.items(), strict=True):
            ax.bar(VIEWS if len(w) == len(VIEWS) else range(len(w)), w)
            ax.set_title(f"{label(name)}, {method}", fontsize="small")
            ax.tick_params(axis="x", rotation=90, labelsize="small")
        line[0].set(ylabel="weight")


size = (9, 5)
