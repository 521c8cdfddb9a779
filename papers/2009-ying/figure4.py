"""Weights of 69 kernels on bacterial proteins, of MCKL-EM, over 30 splits (section 3.3, Figure 4)."""

from __future__ import annotations

import numpy as np
import proteins
from experiments import claim, column, load_script, note, numbers, standard_error, values

title = "Figure 4: weights on psort"
compared = """Setting and rows of table2: UniProt's bacterial proteins and kernels from their sequences in place
of the paper's, without and with proteins of several locations."""
rows_of = "2009-ying/table2"
METHODS = ("EM", "SVM", "RKDA")


def weights_of(rows, method):
    """Return the weights of all splits, (splits, kernels), by data set."""
    names = [name for name in values(rows, "data") if name.startswith("psort")]
    return {name: np.array([numbers(each) for each in column(rows, f"{method} weights", data=name)]) for name in names}


def verdicts(rows):
    """That the weights are sparse."""
    found, label = [], load_script(rows_of).label
    weights = {method: weights_of(rows, method) for method in METHODS}
    counts = {method: {name: (w > 1e-3).sum(axis=1) for name, w in sets.items()} for method, sets in weights.items()}
    for name, w in weights["EM"].items():
        total, count = w.shape[1], counts["EM"][name]
        found.append(claim(f"{label(name)}: kernels of {total} with weight above 0.001, EM", "sparse (under half)",
                           f"{count.mean():.1f}", count.mean() < total / 2, "more than half have a weight",
                           standard_error(count, 1)))  # fmt: skip
        others = ", ".join(f"{counts[method][name].mean():.1f}" for method in METHODS[1:])
        found.append(note(f"{label(name)}: the same of SVM, RKDA; largest weight of EM, mean",
                          f"{others}; {w.max(axis=1).mean():.2f}"))  # fmt: skip
    return found


def draw(rows, figure):
    """Draw the mean weights with their standard deviations over the splits."""
    shown, label = weights_of(rows, "EM"), load_script(rows_of).label
    axes = figure.subplots(len(shown), 1, squeeze=False, sharex=True)[:, 0]
    for ax, (name, w) in zip(axes, shown.items(), strict=True):
        ax.bar(range(w.shape[1]), w.mean(axis=0), yerr=w.std(axis=0))
        ax.set_title(label(name), fontsize="small")
        proteins.name_largest(ax, w.mean(axis=0))
        ax.set(ylabel="weight")
    axes[-1].set(xlabel="kernel")


size = (8, 8)
