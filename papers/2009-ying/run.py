"""Table 1 and Figure 1 of Ying, Campbell, Damoulas, Girolami 2009: MCKL-EM, MCKL-SILP and LSR-CV on UCI data.

    python papers/2009-ying/run.py [--small] [--output FOLDER]

Ten random splits into 60 % training and 40 % test, mu = C = 10, no intercepts, and both methods stop when the weights
change by at most 1e-4 in sum. The paper does not print its Gaussian widths; ours are 2^-4, ..., 2^5 times the median
squared distance, on columns of unit variance. LSR-CV chooses one of these kernels and C in {0.1, 1, ..., 1000} by five
folds. Figure 1 is drawn from ``history_`` and a callback. The data are read from MULTIKERNEL_DATA; ``--small`` takes
60 samples of wine, three widths and one split.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from multikernel import MKLClassifier, MKLClassifierCV
from multikernel.datasets import load_dataset
from multikernel.kernels import RBF, rbf_family
from multikernel.solvers.alternating import Alternating
from multikernel.solvers.silp import SILP

# data set, classes, largest number of samples (the larger sets are subsampled, as the times of the paper suggest)
TASKS = {
    "wine": ("wine", 3, None),
    "waveform3": ("waveform", 3, 1000),
    "segment3": ("segment", 3, None),
    "satimage3": ("satimage", 3, 1000),
    "segment7": ("segment", 7, 1500),
    "satimage6": ("satimage", 6, 1500),
}
# accuracy in percent: MCKL-EM, MCKL-SILP, LSR-CV
PAPER = {
    "wine": (98.19, 98.05, 98.75),
    "waveform3": (85.54, 85.95, 86.75),
    "segment3": (98.66, 98.58, 97.16),
    "satimage3": (99.58, 99.58, 99.66),
    "segment7": (93.76, 94.12, 92.71),
    "satimage6": (90.14, 90.14, 91.14),
}
FACTORS = 2.0 ** np.arange(-4, 6)
CHANGE, MU = 1e-4, 10.0


def task(name: str, small: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return samples of unit variance and labels."""
    source, classes, size = TASKS[name]
    data = load_dataset(source)
    X, y = np.asarray(data["X"], float), np.asarray(data["y"])
    keep = np.flatnonzero(np.isin(y, np.unique(y)[:classes]))
    size = 60 if small else size
    if size is not None and size < len(keep):
        keep = np.sort(np.random.default_rng(0).permutation(keep)[:size])
    return StandardScaler().fit_transform(X[keep]), y[keep]


def learner(solver, kernels, callback=None) -> MKLClassifier:
    """Return the estimator of (2) with the stopping rule of the paper."""
    return MKLClassifier(
        kernels, loss="squared", multiclass="joint", fit_intercept=False, C=MU, normalize=None, solver=solver,
        tol=1e-10, max_iter=5000, callback=callback,
    )  # fmt: skip


def methods(widths: np.ndarray) -> dict:
    """Return the three learners."""
    family = rbf_family(widths)
    return {
        "MCKL-EM": learner(Alternating(change=CHANGE), family),
        "MCKL-SILP": learner(SILP(change=CHANGE), family),
    }


def single(widths: np.ndarray, X, y) -> MKLClassifierCV:
    """LSR-CV: the best of the single kernels, its C by cross-validation."""
    searches = [
        MKLClassifierCV(
            [RBF(width=width)], Cs=10.0 ** np.arange(-1, 4), cv=5, loss="squared", multiclass="joint",
            fit_intercept=False, normalize=None,
        ).fit(X, y)
        for width in widths
    ]  # fmt: skip
    return max(searches, key=lambda search: search.best_score_)


def table(names, splits: int, small: bool) -> dict:
    """Return accuracies (splits, 3), seconds (splits, 2) and the largest differences of objectives, by task."""
    results = {}
    for name in names:
        X, y = task(name, small)
        widths = (FACTORS[3:6] if small else FACTORS) * np.median(pdist(X, "sqeuclidean"))
        accuracy, seconds, apart = np.zeros((splits, 3)), np.zeros((splits, 2)), 0.0
        folds = StratifiedShuffleSplit(splits, train_size=0.6, random_state=0).split(X, y)
        for s, (train, test) in enumerate(folds):
            values = []
            for m, model in enumerate(methods(widths).values()):
                began = time.process_time()
                model.fit(X[train], y[train])
                seconds[s, m] = time.process_time() - began
                accuracy[s, m] = 100 * model.score(X[test], y[test])
                values.append(model.objective_)
            apart = max(apart, abs(values[0] - values[1]) / max(values))
            accuracy[s, 2] = 100 * single(widths, X[train], y[train]).score(X[test], y[test])
        results[name] = accuracy, seconds, apart
        row = "   ".join(f"{a:6.2f} +- {b:4.2f}" for a, b in zip(accuracy.mean(0), accuracy.std(0), strict=True))
        paper = " ".join(f"{value:6.2f}" for value in PAPER[name])
        print(
            f"{name:<10} n={len(y):<5} EM, SILP, LSR-CV: {row}   paper {paper}   CPU seconds "
            f"{seconds[:, 0].mean():.2f}, {seconds[:, 1].mean():.2f}   objectives within {apart:.1e}",
            flush=True,
        )
    return results


def figure(names, small: bool, path: Path) -> None:
    """Draw the objective, the test accuracy and the two largest weights against the iteration."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = (5 * len(names), 9)
    fig, axes = plt.subplots(3, len(names), figsize=size, sharex="col", squeeze=False, layout="constrained")
    for column, name in enumerate(names):
        X, y = task(name, small)
        widths = FACTORS * np.median(pdist(X, "sqeuclidean"))
        train, test = next(StratifiedShuffleSplit(1, train_size=0.6, random_state=0).split(X, y))
        for (label, model), colour in zip(methods(widths).items(), ("tab:blue", "tab:red"), strict=True):
            scores: list[float] = []

            def watch(row, scores=scores, model=model, X=X, y=y, test=test) -> None:
                guess = np.unique(y)[row["decision_function"](X[test]).argmax(axis=1)]
                scores.append(100 * float(np.mean(guess == y[test])))

            model.set_params(callback=watch).fit(X[train], y[train])
            top = np.sort(model.history_["weights"], axis=1)[:, -2:]
            steps = np.arange(1, model.n_iter_ + 1)
            axes[0, column].plot(steps, model.history_["primal"], color=colour, label=label)
            axes[1, column].plot(steps, scores, color=colour)
            axes[2, column].plot(steps, top, color=colour)
        axes[0, column].set(title=name, ylabel="objective" if column == 0 else "")
        axes[1, column].set(ylabel="test accuracy (%)" if column == 0 else "")
        axes[2, column].set(xlabel="iteration", xscale="log", ylabel="two largest weights" if column == 0 else "")
    axes[0, 0].legend()
    fig.savefig(path, dpi=100)
    plt.close(fig)


def main(arguments: list[str] | None = None) -> dict:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="wine only, 60 samples, three widths, one split")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="folder of the figure")
    options = parser.parse_args(arguments)
    names = ["wine"] if options.small else list(TASKS)
    results = table(names, 1 if options.small else 10, options.small)
    figure(["wine"] if options.small else ["satimage6", "segment7"], options.small, options.output / "figure1.png")
    return results


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
