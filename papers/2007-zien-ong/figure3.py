"""Where proteins go: joint MKL against the plain sum of 69 kernels (section 3.3, Figure 3)."""

from __future__ import annotations

import numpy as np
import proteins
from experiments import average, claim, column, mean_and_error, number, numbers, sign, standard_error, values
from sklearn.metrics import f1_score, matthews_corrcoef
from sklearn.model_selection import StratifiedShuffleSplit

from multikernel import MKLClassifierCV

title = "Figure 3: subcellular localisation of proteins, 69 kernels"
compared = """The sets and the 69 kernels of the paper are not to be had. Stand-ins: TargetP 2.0 and UniProt's
bacterial proteins of one location, drawn to 940, 541 and 1444 proteins; the same 64 motif kernels, composition and
spectrum in place of phylogenetic profiles, local alignment in place of BLAST (papers/proteins.py). Ten splits 80/20,
kernels of variance one, C in {1/27, ..., 27} by three folds. Averages over the classes: Matthews' correlation on
plant, F1 on psort. One-versus-rest is not in the paper, which asks how many kernels it would choose."""
# joint MKL and the plain sum
PAPER = {"plant": (89.1, 87.6), "psort+": (93.8, 85.0), "psort-": (96.1, 88.0)}
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
        label = proteins.LABELS[name]
        ours = {method: column(rows, f"{method} {key}", data=name) for method in METHODS}
        for method, paper in zip(("joint", "sum"), PAPER[name], strict=True):
            found.append(number(f"{label}, {method}, {key.upper()}", paper, ours[method], why, same=False))
        found.append(sign(f"{label}: joint MKL - sum, points", PAPER[name][0] - PAPER[name][1], ours["joint"] -
                          ours["sum"], "here most kernels are of use, and the sum is hard to beat"))  # fmt: skip
        chosen = np.array([numbers(each) > 1e-6 for each in column(rows, "weights", data=name)])
        ever, rare = chosen.any(axis=0).sum(), chosen.any(axis=0) & ~chosen.all(axis=0)
        share = np.mean([numbers(each)[rare].sum() for each in column(rows, "weights", data=name)])
        found.append(claim(f"{label}: kernels of {chosen.shape[1]} chosen in any split",
                           "25, set not named (under half)", f"{ever}", ever < chosen.shape[1] / 2,
                           f"{rare.sum()} of them are chosen in some splits only, and "
                           f"have {share:.0%} of the weight together"))  # fmt: skip
        joint, rest = (column(rows, f"{method} kernels", data=name) for method in ("joint", "one-versus-rest"))
        fewer, error = mean_and_error(rest - joint)
        found.append(claim(f"{label}: kernels chosen jointly, and by one-versus-rest together",
                           "possibly fewer jointly (by two errors)", f"{joint.mean():.1f}, {rest.mean():.1f}",
                           fewer > 2 * error, "no clear difference", standard_error(joint, 1)))  # fmt: skip
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
    axes["scores"].set_xticks(range(len(names)), [proteins.LABELS[name] for name in names])
    axes["scores"].set(ylabel="MCC (plant), F1 (%)", ylim=(60, 100))
    figure.legend(ncols=4, fontsize="small", loc="outside upper center")
    for name in names:
        weights = np.mean([numbers(each) for each in column(rows, "weights", data=name)], axis=0)
        axes[name].bar(range(len(weights)), weights)
        axes[name].set(xlabel="kernel", ylabel="mean weight", title=proteins.LABELS[name])
        proteins.name_largest(axes[name], weights)


size = (9, 6)
