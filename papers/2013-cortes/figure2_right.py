"""Accuracy against the number of training examples a class (section 6.2, Figure 2 right)."""

from __future__ import annotations

import warnings

import numpy as np
from experiments import average, claim, column, load_script, mean_and_error, note, values

from multikernel import M3KClassifier, MKLClassifier, OBSCUREClassifier, UFOMKLClassifier
from multikernel.estimators.baselines import BinaryMKLWeights

title = "Figure 2 right: accuracy against examples a class"
compared = """leaves100 (100 classes of 16 leaves, 48 Gaussian kernels of three views) in place of Caltech-101
(102 classes, 48 kernels), which is not at hand: 2 to 8 examples a class for training, the rest for testing, five
draws. Kernels centred, of unit diagonal. C in {1, 10, 100} on one leaf of each class, left out of the training
leaves; gamma0 of M3K is 0.9 of the largest margin, OBSCURE and UFO-MKL make ten passes. The numbers of the paper are
in an appendix that we do not have."""
COUNTS = (2, 3, 4, 6, 8)
# the online methods stop after their passes, by design
warnings.filterwarnings("ignore", message=".*(OBSCURE|UFOMKL)Classifier reached max_iter")
warnings.filterwarnings("ignore", message="The number of unique classes")
METHODS = ("uniform", "BinaryMKL", "OBSCURE", "UFO-MKL", "joint", "M3K")


def tasks(small):
    """Every number of examples and draw."""
    counts, draws = ((4,), 1) if small else (COUNTS, 5)
    return [{"examples": count, "draw": draw} for count in counts for draw in range(draws)]


def samples(small):
    """Return the stack and the classes."""
    if small:
        return load_script("2013-cortes/table2").samples("psort+", True)
    return load_script("2013-cortes/table3").leaves()


def split_of(y, examples, draw):
    """Return training rows, so many of each class, and test rows."""
    rng = np.random.default_rng(draw)
    rows = [rng.permutation(np.flatnonzero(y == u)) for u in np.unique(y)]
    return np.concatenate([own[:examples] for own in rows]), np.concatenate([own[examples:] for own in rows])


def work(small, examples, draw):
    """Test accuracies of the methods; C is chosen on one training leaf of each class."""
    stack, y = samples(small)
    train, test = split_of(y, examples, draw)
    costs = (1.0, 10.0) if small else (1.0, 10.0, 100.0)
    weighted = average(stack, BinaryMKLWeights(random_state=0).fit(stack[train], y[train]).weights_)
    exact = {"tol": 1e-2, "normalize": None, "n_jobs": 1}
    joint = {"multiclass": "joint", "fit_intercept": False, **exact}
    online = {"max_iter": 10, "random_state": 0, "normalize": None, "n_jobs": 1}
    machines = {
        "uniform": (average(stack), lambda C: MKLClassifier("precomputed", C=C, **joint)),
        "BinaryMKL": (weighted, lambda C: MKLClassifier("precomputed", C=C, **joint)),
        "OBSCURE": (stack, lambda C: OBSCUREClassifier("precomputed", C=C, **online)),
        "UFO-MKL": (stack, lambda C: UFOMKLClassifier("precomputed", C=C, **online)),
        "joint": (stack, lambda C: MKLClassifier("precomputed", C=C, **joint)),
        "M3K": (stack, lambda C: M3KClassifier("precomputed", C=C, gamma0_fraction=0.9, **exact)),
    }  # fmt: skip
    # one leaf of each class is left out to choose C
    last = np.arange(examples - 1, len(train), examples)
    inner, held = np.delete(train, last), train[last]
    row = {}
    for method, (kernels, make) in machines.items():
        scores = [make(C).fit(kernels[inner], y[inner]).score(kernels[held], y[held]) for C in costs]
        best = costs[int(np.argmax(scores))]
        row |= {
            method: 100 * make(best).fit(kernels[train], y[train]).score(kernels[test], y[test]),
            f"{method} C": best,
        }
    return row


def table(rows):
    """Return numbers of examples, and mean and standard error of each method, (methods, numbers, 2)."""
    counts = values(rows, "examples")
    return counts, np.array([[mean_and_error(column(rows, method, examples=n)) for n in counts] for method in METHODS])


def verdicts(rows):
    """M3K comparable at few examples, ahead at many."""
    counts, means = table(rows)
    found = []
    for i, n in enumerate(counts):
        best = METHODS[int(means[:4, i, 0].argmax())]
        gain, error = mean_and_error(column(rows, "M3K", examples=n) - column(rows, best, examples=n))
        last = n == counts[-1] and len(counts) > 1
        why = f"joint MKL has {means[4, i, 0]:.1f} % as well: few leaves to learn 48 weights from"
        if last:
            why = f"all methods lie between {means[:, i, 0].min():.1f} and {means[:, i, 0].max():.1f} %"
        found.append(claim(f"leaves100, {n} examples a class: M3K - the best other method ({best}), points",
                           "ahead (above 0)" if last else "comparable (above -2)", f"{gain:.1f}",
                           gain > 2 * error if last else gain > -2.0, why, f"{error:.2f}"))  # fmt: skip
    shown = ", ".join(f"{method} {line[-1, 0]:.1f}" for method, line in zip(METHODS, means, strict=True))
    found.append(note(f"leaves100: accuracies at {counts[-1]} examples a class", shown))
    return found


def draw(rows, figure):
    """Draw the accuracies against the number of examples."""
    counts, means = table(rows)
    axes = figure.subplots()
    for method, line in zip(METHODS, means, strict=True):
        # M3K and joint MKL coincide
        dashes = "--" if method == "M3K" else "-"
        label = "joint MKL" if method == "joint" else method
        axes.errorbar(counts, *line.T, marker="o", ms=3, capsize=2, ls=dashes, label=label)
    axes.set(xlabel="training examples a class", ylabel="accuracy (%)", xticks=counts)
    axes.set(title="leaves100 (for Caltech-101)")
    axes.legend()
