"""Sonnenburg, Raetsch & Schaefer 2005, Figure 4: the positions that separate true splice sites from false ones.

    MULTIKERNEL_DATA=... python papers/2005-sonnenburg/celegans.py figure4 [--n 65000]
    MULTIKERNEL_DATA=... python papers/2005-sonnenburg/celegans.py windows [--n 100000]

figure4   one sub-kernel for each of 54 positions around the site: celegans-figure4.png and .csv beside this file
windows   weighted degree kernels of 20 degrees in windows of the whole sequence, compared with one weighted degree
          kernel: celegans-windows.png and .csv

Both train on part 0 and test on the 100,000 sequences of part 1: areas under the precision-recall and the ROC curve.
Position 0 is the A of the AG that every sequence has, true site or not.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from multikernel import MKLClassifier
from multikernel.datasets import load
from multikernel.inspection import PositionImportance, position_importance, top_motifs
from multikernel.kernels import PositionBlocks, WeightedDegree

HERE = Path(__file__).parent
AG = 197
# names of the sub-kernels that cover only the AG
CONSTANT = ("(degree=1)[197:198]", "(degree=1)[198:199]", "window=(197, 198)", "window=(198, 199)")
# upstream of the site: the positions of the pyrimidine tract, and equally many positions before it
TRACT, BEFORE = (-20, -4), (-40, -24)


def single_positions(first: int = -40, number: int = 54) -> list[tuple[int, int]]:
    """Windows of one position each, around the AG."""
    return [(AG + first + i, AG + first + i + 1) for i in range(number)]


def windows(length: int, width: int = 4, reach: int = 60, far: int = 40) -> list[tuple[int, int]]:
    """Windows over the whole sequence but the AG: narrow ones near it, wide ones elsewhere."""
    before = [*range(0, AG - reach, far), *range(AG - reach, AG + 1, width)]
    after = [*range(AG + 2, AG + 2 + reach, width), *range(AG + 2 + reach, length, far), length]
    return [*pairwise(before), *pairwise(after)]


def fit(name: str, kernels, train, test, **options) -> MKLClassifier:
    """Fit a model; print its time, memory, gap and scores."""
    began, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        # sub-kernels of the AG are constant; the experiment shows that they get no weight
        warnings.filterwarnings("ignore", message=".*constant on the training samples")
        model = MKLClassifier(kernels, gram="features", **options).fit(*train)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    f = model.decision_function(test[0])
    print(
        f"{name}: {len(train[1])} examples, {len(model.kernel_names_)} kernels, {model.status_}, "
        f"gap {model.duality_gap_:.4f}, {seconds:.0f} s ({cpu:.0f} s of processor time), "
        f"{len(model.dual_coef_)} support vectors, "
        f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB\n"
        f"    area under precision-recall {average_precision_score(test[1], f):.4f}, "
        f"ROC {roc_auc_score(test[1], f):.4f}",
        flush=True,
    )
    return model


def describe(model: MKLClassifier) -> PositionImportance:
    """Print the profiles at the AG, at their peak and in the pyrimidine tract; return the profiles."""
    importance = position_importance(model)
    for quantity in ("weights", "contributions"):
        profile = importance.profile(quantity)
        tract, before = (profile[AG + start : AG + stop].sum() for start, stop in (TRACT, BEFORE))
        print(
            f"    {quantity}: AG itself {profile[AG : AG + 2].sum():.4f}, peak at {int(profile.argmax()) - AG}, "
            f"positions {TRACT[0]} to {TRACT[1] - 1} {tract:.3f}, {BEFORE[0]} to {BEFORE[1] - 1} {before:.3f}",
            flush=True,
        )
    # constant sub-kernels add nothing to the decision function: their tiny weights are not part of the profile
    constant = [beta for name, beta in zip(model.kernel_names_, model.weights_, strict=True) if is_constant(name)]
    print(f"    weights_ of the constant sub-kernels: {sum(constant):.2g}", flush=True)
    return importance


def is_constant(name: str) -> bool:
    """Whether a sub-kernel covers only the AG."""
    return any(part in name for part in CONSTANT)


def consensus(model: MKLClassifier, first: int = -20, last: int = 6) -> str:
    """Return the letter of largest weight at every position around the AG; a point where no letter has a weight."""
    motifs = top_motifs(model, 10**6, length=1, positions=(AG + first, AG + last))
    letters = {each.position: each.motif for each in reversed(motifs) if each.weight > 0}
    return "".join(letters.get(place, ".") for place in range(AG + first, AG + last))


def figure4(args: argparse.Namespace, train, test) -> None:
    """One sub-kernel for each position."""
    blocks = PositionBlocks(WeightedDegree(1), single_positions())
    model = fit("54 positions", blocks, train, test, C=args.C, tol=args.tol, n_jobs=args.threads)
    importance = describe(model)
    print(f"    letters from -20 on: {consensus(model)}", flush=True)
    draw(importance, "celegans-figure4", f"{len(train[1])} examples, 54 sub-kernels", -42, 16)


def by_windows(args: argparse.Namespace, train, test) -> None:
    """One sub-kernel for each window, compared with one kernel for the whole sequence."""
    length = len(train[0][0])
    options = {"C": args.C, "tol": args.tol, "n_jobs": args.threads}
    fit("one weighted degree kernel", [WeightedDegree(20)], train, test, **options)
    # and the d-mers that begin and end in the AG
    itself = [WeightedDegree(2, window=(AG, AG + 1)), WeightedDegree(1, window=(AG + 1, AG + 2))]
    kernels = [PositionBlocks(WeightedDegree(20), windows(length)), *itself]
    for norm in args.norms:
        model = fit(f"windows, norm {norm:g}", kernels, train, test, norm=norm, **options)
        importance = describe(model)
        if norm == args.norms[0]:
            print(f"    letters from -20 on: {consensus(model)}", flush=True)
            title = f"{len(train[1])} examples, {len(model.kernel_names_)} sub-kernels"
            draw(importance, "celegans-windows", title, -62, 62)


def draw(importance: PositionImportance, name: str, title: str, first: int, last: int) -> None:
    """Save the two profiles as a picture, and the positions around the site as a table."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from multikernel.inspection import SequenceImportanceDisplay

    figure, axes = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
    for ax, quantity in zip(axes, ("weights", "contributions"), strict=True):
        shown = {"origin": AG, "window": (AG + first, AG + last)}
        SequenceImportanceDisplay.from_importance(importance, ax=ax, quantity=quantity, **shown)
        ax.axvspan(-0.5, 1.5, color="0.85", zorder=0)
        ax.annotate("AG", (0.5, 0.98), xycoords=("data", "axes fraction"), ha="center", va="top", fontsize="small")
    axes[0].set(title=f"C. elegans acceptors: {title}", xlabel="")
    figure.savefig(HERE / f"{name}.png", dpi=100)
    plt.close(figure)
    table = importance.to_frame().groupby("position")[["weight", "contribution"]].sum().loc[AG + first : AG + last - 1]
    table.set_axis(table.index - AG).to_csv(HERE / f"{name}.csv", float_format="%.6f")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["figure4", "windows"])
    parser.add_argument("--n", type=int)
    parser.add_argument("--n-test", type=int, default=100_000)
    parser.add_argument("--C", type=float)
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--norms", type=float, nargs="+", default=[1.0, 2.0])
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    data = load("celegans_acceptor")
    n = chosen.n or {"figure4": 65_000, "windows": 100_000}[chosen.part]
    parts = [np.flatnonzero(data.part == part)[:size] for part, size in ((0, n), (1, chosen.n_test))]
    chosen.C = chosen.C or {"figure4": 0.01, "windows": 1.0}[chosen.part]
    samples = [(data.seq[rows], data.y[rows]) for rows in parts]
    {"figure4": figure4, "windows": by_windows}[chosen.part](chosen, *samples)
