"""Where proteins go: joint MKL against the plain sum of 69 kernels (section 3.3, Figure 3)."""

from __future__ import annotations

import numpy as np
import proteins
from experiments import average, claim, column, mean_and_error, note, number, numbers, values
from sklearn.metrics import f1_score, matthews_corrcoef
from sklearn.model_selection import StratifiedShuffleSplit

from multikernel import MKLClassifierCV

title = "Figure 3: subcellular localisation of proteins, 69 kernels"
compared = """The sets and the 69 kernels of the paper are not to be had. Stand-ins: TargetP 2.0 and UniProt's
bacterial proteins of one location, drawn to 940, 541 and 1444 proteins; the same 64 motif kernels, composition and
spectrum in place of phylogenetic profiles, local alignment in place of BLAST (papers/proteins.py). Ten splits 80/20,
kernels of variance one, C in {1/27, ..., 27} by three folds. Averages over the classes: Matthews' correlation on
plant, F1 on psort. One-versus-rest is not in the paper, which asks how many kernels it would choose."""
PAPER = {"plant": (89.1, 87.6, 85.3), "psort+": (93.8, 85.0, 90.0), "psort-": (96.1, 88.0, 87.5)}
METHODS = {"joint": {}, "sum": {}, "one-versus-rest": {"multiclass": "ovr"}}
COSTS = tuple(3.0**e for e in range(-3, 4))


def tasks(small):
    """Every set and split."""
    names, splits = (["psort+"], 5) if small else (PAPER, 10)
    return [{"data": name, "split": split} for split in range(splits) for name in names]


def scores(y, guess):
    """Return the averages over the classes of Matthews' correlation and of F1, in percent."""
    each = [matthews_corrcoef(y == u, guess == u) for u in np.unique(y)]
    return 100 * np.mean(each), 100 * f1_score(y, guess, average="macro")


def work(small, data, split):
    """Scores and weights of the three methods, on the same kernels."""
    stack, y = proteins.task(data, small)
    train, test = list(StratifiedShuffleSplit(10, test_size=0.2, random_state=0).split(y, y))[split]
    mean, row = average(stack), {}
    for method, options in METHODS.items():
        kernels = mean if method == "sum" else stack
        search = MKLClassifierCV(
            "precomputed", Cs=COSTS[2:5] if small else COSTS, cv=3, baselines=False, tol=1e-2, n_jobs=1, **options
        )
        guess = search.fit(kernels[train], y[train]).predict(kernels[test])
        weights = np.atleast_2d(search.weights_)
        row[f"{method} mcc"], row[f"{method} f1"] = scores(y[test], guess)
        row |= {f"{method} C": search.C_, f"{method} kernels": int((weights > 1e-6).any(axis=0).sum())}
        if method == "joint":
            row["weights"] = weights[0]
    return row


def verdicts(rows):
    """The bars of the figure, and how many kernels are chosen."""
    found = []
    for name in values(rows, "data"):
        key, why = "mcc" if name == "plant" else "f1", "other proteins and kernels than the paper's"
        ours = {method: column(rows, f"{method} {key}", data=name) for method in METHODS}
        for method, paper in zip(("joint", "sum"), PAPER[name], strict=False):
            found.append(number(f"{name}, {method}, {key.upper()}", paper, ours[method], why, same=False))
        gain, error = mean_and_error(ours["joint"] - ours["sum"])
        found.append(claim(f"{name}: joint MKL - sum, points", f"{PAPER[name][0] - PAPER[name][1]:.1f}", f"{gain:.1f}",
                           gain > 2 * error, "no gain: here most kernels are of use, and the sum is hard to beat",
                           f"{error:.2f}"))  # fmt: skip
        ever = np.sum([numbers(each) > 1e-6 for each in column(rows, "weights", data=name)], axis=0)
        found.append(note(f"{name}: kernels of 69 ever chosen (25 in one of the paper's sets)", f"{(ever > 0).sum()}"))
        counts = [
            mean_and_error(column(rows, f"{method} kernels", data=name)) for method in ("joint", "one-versus-rest")
        ]
        fewer = counts[0][0] < counts[1][0]
        found.append(
            claim(
                f"{name}: kernels chosen jointly, and by one-versus-rest together",
                "possibly fewer jointly",
                f"{counts[0][0]:.1f}, {counts[1][0]:.1f}",
                fewer,
                "not fewer",
                f"{counts[0][1]:.1f}",
            )
        )
    return found


def draw(rows, figure):
    """Draw the scores above, the weights of joint MKL below."""
    names = values(rows, "data")
    axes = figure.subplot_mosaic([["scores"] * len(names), names])
    for m, method in enumerate(METHODS):
        keys = [f"{method} {'mcc' if name == 'plant' else 'f1'}" for name in names]
        ours = np.array([mean_and_error(column(rows, key, data=name)) for key, name in zip(keys, names, strict=True)])
        at = np.arange(len(names)) + 0.22 * (m - 1)
        axes["scores"].bar(at, ours[:, 0], 0.22, yerr=ours[:, 1], label=method)
        if m < 2:
            axes["scores"].plot(at, [PAPER[name][m] for name in names], "kx", label="paper" if m == 1 else None)
    axes["scores"].set_xticks(range(len(names)), names)
    axes["scores"].set(ylabel="MCC (plant), F1 (%)", ylim=(60, 100))
    figure.legend(ncols=4, fontsize="small", loc="outside upper center")
    for name in names:
        weights = np.mean([numbers(each) for each in column(rows, "weights", data=name)], axis=0)
        axes[name].bar(range(len(weights)), weights)
        axes[name].set(xlabel="kernel", ylabel="mean weight", title=name)


size = (9, 6)
