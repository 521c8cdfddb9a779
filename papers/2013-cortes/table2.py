"""Uniform combination, BinaryMKL and M3K on five biological sets (section 6.2, Table 2)."""

from __future__ import annotations

import numpy as np
import proteins
from experiments import average, column, note, number, standard_error, values
from sklearn.model_selection import StratifiedShuffleSplit

from multikernel import M3KClassifierCV, MKLClassifierCV, stack_kernels
from multikernel.estimators.baselines import BinaryMKLWeights

title = "Table 2: several classes, biological sets"
compared = """TargetP 2.0 and UniProt's bacterial proteins with 69 kernels from their sequences stand in for four
sets (papers/proteins.py). Protein fold has the paper's 694 proteins, with the public kernels, which seem to be the
paper's cut to rank 27, and with kernels recomputed from the sequences. Ten random splits at the paper's fractions;
kernels centred, then of unit diagonal, over all samples; C in {0.5, 1, 2, 4, 8, 16} and, for M3K, gamma0 in {0, 0.5,
0.9, 1} of the largest margin by three folds. All methods train the same machine (Crammer and Singer's without
biases). Joint MKL (gamma0 free) is added."""
# fraction for training; accuracy and deviation of uniform, BinaryMKL and M3K
PAPER = {
    "plant": (0.5, (86.9, 1.7), (90.1, 1.4), (91.2, 1.5)),
    "nonplant": (0.5, (89.3, 0.8), (87.7, 0.5), (91.2, 0.9)),
    "psort+": (0.8, (88.4, 2.8), (90.0, 3.0), (90.8, 3.4)),
    "psort-": (0.65, (87.9, 1.2), (91.2, 0.8), (91.5, 0.9)),
    "protein fold, public": (0.5, (59.2, 2.3), (64.9, 2.6), (67.2, 2.5)),
    "protein fold, recomputed": (0.5, (59.2, 2.3), (64.9, 2.6), (67.2, 2.5)),
}
METHODS = ("uniform", "binarymkl", "m3k")
SHOWN = {"uniform": "uniform", "binarymkl": "BinaryMKL", "joint": "joint MKL", "m3k": "M3K"}
# why the accuracies on a set differ from the paper's
OTHER = {
    "plant": "TargetP 2.0's proteins, kernels from their sequences alone",
    "nonplant": "TargetP 2.0's proteins, kernels from their sequences alone",
    "psort+": "UniProt's proteins, kernels from their sequences alone",
    "psort-": "UniProt's proteins, kernels from their sequences alone",
    "protein fold, public": "the paper's proteins, kernels of rank 27",
    "protein fold, recomputed": "the paper's proteins, kernels recomputed from their sequences",
}
COSTS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


def tasks(small):
    """Every set and split."""
    names, splits = (["psort+"], 5) if small else (PAPER, 10)
    return [{"data": name, "split": split} for split in range(splits) for name in names]


def samples(name, small=False):
    """Return the kernels, (p, n, n), as a stack, and the classes."""
    if name.startswith("protein fold"):
        data = proteins.folds(name.split(", ")[1])
        return stack_kernels(proteins.centred(data.kernels), names=data.names), data.y
    return proteins.task(name, small, centre=True)


def work(small, data, split):
    """Accuracies of the four methods on one split, on the same kernels."""
    stack, y = samples(data, small)
    parts = StratifiedShuffleSplit(10, train_size=PAPER[data][0], random_state=0)
    train, test = list(parts.split(y, y))[split]
    part = stack[train]
    options = {"normalize": None, "tol": 1e-2, "n_jobs": 1, "cv": 3, "Cs": COSTS[1:3] if small else COSTS}
    machine = {"multiclass": "joint", "fit_intercept": False, "baselines": False, **options}
    weights = BinaryMKLWeights(random_state=0).fit(part, y[train]).weights_
    fractions = (0.5, 1.0) if small else (0.0, 0.5, 0.9, 1.0)
    models = {
        "uniform": (MKLClassifierCV("precomputed", **machine), average(stack)),
        "binarymkl": (MKLClassifierCV("precomputed", **machine), average(stack, weights)),
        "joint": (MKLClassifierCV("precomputed", **machine), stack),
        "m3k": (M3KClassifierCV("precomputed", gamma0_fractions=fractions, **options), stack),
    }
    row = {}
    for method, (search, kernels) in models.items():
        search.fit(kernels[train], y[train])
        row |= {method: 100 * search.score(kernels[test], y[test]), f"{method} C": search.C_}
    return row | {"fraction": search.best_params_["gamma0_fraction"]}


def verdicts(rows):
    """The numbers of the table."""
    found = []
    for name in values(rows, "data"):
        label = proteins.LABELS[name]
        for method, (paper, spread) in zip(METHODS, PAPER[name][1:], strict=True):
            ours = column(rows, method, data=name)
            found.append(number(f"{label}, {SHOWN[method]}", paper, ours, OTHER[name], spread, same=False))
        joint = column(rows, "joint", data=name)
        found.append(note(f"{label}, joint MKL", f"{joint.mean():.1f}", standard_error(joint)))
    return found


def draw(rows, figure):
    """Draw how far ours are from the paper's, and the deviation that the paper prints."""
    axes, names = figure.subplots(), values(rows, "data")
    for m, method in enumerate(METHODS):
        ours = np.array([column(rows, method, data=name).mean() for name in names])
        paper, deviation = np.array([PAPER[name][m + 1] for name in names]).T
        at = np.arange(len(names)) + 0.25 * (m - 1)
        axes.bar(at, ours - paper, 0.25, yerr=deviation, label=SHOWN[method])
    axes.axhline(0, color="black", lw=0.8)
    labels = [proteins.LABELS[name].replace(" (", "\n(") for name in names]
    axes.set_xticks(range(len(names)), labels, fontsize="small")
    axes.set(ylabel="ours - the paper's accuracy, points")
    figure.legend(ncols=3, fontsize="small", loc="outside upper center",
                  title="lines: the deviation that the paper prints")  # fmt: skip


size = (10, 4)
