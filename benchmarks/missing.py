"""Views that samples lack: the rule of `Views` against two rules that people use, on the multi-view sets.

    python benchmarks/missing.py [--share 0.3] [--splits 5] [--most 600] [name ...]

Of every sample each view is removed with this probability, at random, in training and test; a sample keeps at least
one.
Views are encoded as `make_views` proposes, then the same model (Gaussians of three widths and a linear kernel on each
view, squared loss, norm 2, C = 10) is trained on the same splits with

neighbours   the views as they are, with gaps, completed by the rule of `Views`
mean         gaps filled by the means of the columns in training
drop         training samples with a gap left out; gaps of test samples filled by the means

Printed for each set: accuracy of the three rules and of the complete data, means over the splits; at the end the paired
differences over the sets, with their standard error. Sets are read from the folder that MULTIKERNEL_DATA names.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from multikernel import MKLClassifier, Views, make_views
from multikernel.datasets import load
from multikernel.kernels import RBF, Linear
from multikernel.kernels.views.encoders import ColumnEncoder

SETS = (
    "nutrimouse", "breast_tcga", "threesources", "msrcv1", "bbcsport", "leaves100", "protein_fold", "mfeat", "scene15",
)  # fmt: skip
RULES = ("complete", "neighbours", "mean", "drop")


def read(name: str, most: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the views and the classes of at most so many samples, of classes with four samples or more."""
    data = load(name)
    views = [np.asarray(view, np.float64) for view in data.data]
    y = np.unique(data.target, return_inverse=True)[1]
    rows = np.random.default_rng(0).permutation(len(y))[:most]
    rows = rows[np.bincount(y[rows])[y[rows]] >= 4]
    return [view[rows] for view in views], y[rows]


def remove(views: list[np.ndarray], share: float, seed: int) -> list[np.ndarray]:
    """Return the views with rows of NaN where a sample lacks a view."""
    rng, there = np.random.default_rng(seed), [~np.isnan(view).all(axis=1) for view in views]
    gone = rng.random((len(views), len(views[0]))) < share
    for i in np.flatnonzero((gone | ~np.array(there)).all(axis=0)):
        gone[rng.choice([v for v, own in enumerate(there) if own[i]]), i] = False
    return [np.where(lost[:, None], np.nan, view) for view, lost in zip(views, gone, strict=True)]


def encoded(views: list[np.ndarray], gaps: list[np.ndarray], train: np.ndarray) -> tuple[list, list]:
    """Return views and views with gaps as `make_views` encodes them, learned on the training samples with a view."""
    whole, holes = [], []
    for view, own, proposed in zip(views, gaps, make_views(gaps, verbose=False)._store.views, strict=True):
        have = train[~np.isnan(own[train]).all(axis=1)]
        encoder = proposed.encoder if proposed.encoder is not None else ColumnEncoder(scale=False)
        encoder = encoder.fit(own[have])
        for data, out in ((view, whole), (own, holes)):
            numbers = encoder.transform(data)
            numbers = numbers.toarray() if hasattr(numbers, "toarray") else numbers
            out.append(np.where(np.isnan(data).all(axis=1)[:, None], np.nan, numbers))
    return whole, holes


def filled(views: list[np.ndarray], train: np.ndarray) -> list[np.ndarray]:
    """Return the views with gaps filled by the means of the columns in training."""
    return [np.where(np.isnan(view), np.nanmean(view[train], axis=0), view) for view in views]


def scores(views: list[np.ndarray], y: np.ndarray, train: np.ndarray, test: np.ndarray, share: float, seed: int):
    """Return the accuracy of each rule."""
    gaps = remove(views, share, seed)
    views, gaps = encoded(views, gaps, train)
    means = filled(gaps, train)
    whole = train[~np.any([np.isnan(view).any(axis=1) for view in gaps], axis=0)[train]]
    found = {}
    for rule, data, rows in (
        ("complete", views, train), ("neighbours", gaps, train), ("mean", means, train), ("drop", means, whole),
    ):  # fmt: skip
        if len(rows) == 0 or len(np.unique(y[rows])) < 2:
            # nothing to learn from: the largest class
            found[rule] = float(np.mean(y[test] == np.bincount(y[train]).argmax()))
            continue
        X, kernels = Views(data), [RBF(factor=0.5), RBF(), RBF(factor=2.0), Linear()]
        model = MKLClassifier(kernels, loss="squared", norm=2.0, C=10.0, n_jobs=1).fit(X[rows], y[rows])
        found[rule] = model.score(X[test], y[test])
    return found


def run(name: str, share: float, splits: int, most: int) -> dict[str, float]:
    """Return the mean accuracy of each rule on one set."""
    views, y = read(name, most)
    cut = StratifiedShuffleSplit(splits, test_size=0.3, random_state=0)
    each = [scores(views, y, train, test, share, seed) for seed, (train, test) in enumerate(cut.split(views[0], y))]
    found = {rule: float(np.mean([one[rule] for one in each])) for rule in RULES}
    print(f"{name:14}" + "".join(f"{rule} {found[rule]:.3f}   " for rule in RULES), flush=True)
    return found


def main(arguments: list[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=SETS)
    parser.add_argument("--share", type=float, default=0.3)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--most", type=int, default=600)
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    table = [run(name, given.share, given.splits, given.most) for name in given.names or SETS]
    ahead = {}
    for other in ("mean", "drop"):
        differences = np.array([row["neighbours"] - row[other] for row in table])
        error = differences.std(ddof=1) / np.sqrt(len(differences)) if len(differences) > 1 else np.nan
        ahead[other] = float(differences.mean())
        print(f"neighbours ahead of {other} by {100 * ahead[other]:.1f} points, standard error {100 * error:.1f}")
    return ahead


if __name__ == "__main__":
    main()
