"""Training times of M3K, BinaryMKL, OBSCURE and UFO-MKL (section 6.2, Table 3)."""

from __future__ import annotations

import time
import warnings

import numpy as np
import proteins
from experiments import claim, column, load_script, normalised, note, values
from sklearn.model_selection import StratifiedShuffleSplit

from multikernel import M3KClassifier, OBSCUREClassifier, TwoStageClassifier, UFOMKLClassifier, stack_kernels
from multikernel.datasets import load_dataset
from multikernel.estimators.baselines import BinaryMKLWeights
from multikernel.kernels import RBF

title = "Table 3: training times"
compared = """Ratios to UFO-MKL of the same run, because machines differ: processor seconds of one thread, kernels
computed beforehand, C = 1, two splits. Sets are the stand-ins of table2, and leaves100 (100 classes, 12 per class
for training, 48 Gaussian kernels of its three views) in place of Caltech-101. Each method stops by its own rule: M3K
at a certified gap of 1e-2 with the largest kernel margin, OBSCURE and UFO-MKL after ten passes, BinaryMKL on all
pairs of samples, balanced, then an SVM."""
one_at_a_time = True
# fraction for training; seconds of M3K, BinaryMKL, OBSCURE, UFO-MKL
PAPER = {
    "protein fold, recomputed": (0.5, (51.9, 3.4, 11.6, 0.2)),
    "leaves100": (0.75, (1048.8, 24.6, 330.9, 18.8)),
    "psort-": (0.65, (190.6, 238.6, 66.5, 2.4)),
    "nonplant": (0.5, (821.8, 1084.6, 462.9, 5.35)),
}
# the online methods stop after their passes, by design
warnings.filterwarnings("ignore", message=".*(OBSCURE|UFOMKL)Classifier reached max_iter")
METHODS = ("M3K", "BinaryMKL", "OBSCURE", "UFO-MKL")
# why one of the first three may be as fast as UFO-MKL
REASONS = (
    "our M3K with the largest margin is one fit on fixed weights",
    "BinaryMKL has few pairs of samples",
    "our OBSCURE makes no more passes than UFO-MKL",
)


def tasks(small):
    """Every set and split."""
    return [{"data": name, "split": split} for name in (["psort-"] if small else PAPER)
            for split in range(1 if small else 2)]  # fmt: skip


def leaves(factors=tuple(2.0 ** (np.arange(16) / 2 - 4))):
    """Return 48 Gaussian kernels of the three views of leaves100, centred, of unit diagonal, and the classes."""
    data = load_dataset("leaves100")
    views = [np.asarray(data[f"X_{i}"], float) for i in range(3)]
    # one at a time, centred before it is rounded to single precision
    K = [normalised(RBF(factor=f).fit(X)(X), "center", "cosine") for X in views for f in factors]
    return stack_kernels(np.array(K)), data["y"]


def work(small, data, split):
    """Processor seconds and accuracy of the four methods."""
    stack, y = leaves() if data == "leaves100" else load_script("2013-cortes/table2").samples(data, small)
    parts = StratifiedShuffleSplit(10, train_size=PAPER[data][0], random_state=0)
    train, test = list(parts.split(y, y))[split]
    options = {"normalize": None}
    models = (
        M3KClassifier("precomputed", tol=1e-2, n_jobs=1, **options),
        TwoStageClassifier("precomputed", weights=BinaryMKLWeights(max_pairs=None), **options),
        OBSCUREClassifier("precomputed", max_iter=10, random_state=0, n_jobs=1, **options),
        UFOMKLClassifier("precomputed", max_iter=10, random_state=0, n_jobs=1, **options),
    )
    row, few = {}, np.concatenate([np.flatnonzero(y[train] == u)[:4] for u in np.unique(y)])
    for method, model in zip(METHODS, models, strict=True):
        # the first fit of a process compiles
        model.fit(stack[train[few]], y[train[few]])
        began = time.process_time()
        model.fit(stack[train], y[train])
        row[f"{method} seconds"] = time.process_time() - began
        row[method] = 100 * model.score(stack[test], y[test])
    return row


def verdicts(rows):
    """The ratios, and which of the methods are fast."""
    found = []
    for name in values(rows, "data"):
        ours = np.array([column(rows, f"{method} seconds", data=name).mean() for method in METHODS])
        paper = np.array(PAPER[name][1])
        slower, needed = ours[:3] / ours[3], np.minimum(1.5, paper[:3] / paper[3])
        texts = [", ".join(f"{each:.3g}" for each in times) for times in (paper[:3] / paper[3], slower)]
        label = proteins.LABELS[name]
        found.append(claim(f"{label}: times of M3K, BinaryMKL, OBSCURE over that of UFO-MKL",
                           f"{texts[0]} (all above 1.5, or the paper's)", texts[1], np.all(slower > needed),
                           "; ".join(REASONS[k] for k in np.flatnonzero(slower <= needed))))  # fmt: skip
        ratios, first = [times[0] / times[1] for times in (paper, ours)], METHODS[int(paper[1] < paper[0])]
        found.append(claim(f"{label}: time of M3K over that of BinaryMKL", f"{ratios[0]:.2f} ({first} faster)",
                           f"{ratios[1]:.2f}", (ratios[0] < 1) == (ratios[1] < 1), REASONS[0],
                           remark=REASONS[0]))  # fmt: skip
        accuracy = ", ".join(f"{column(rows, method, data=name).mean():.1f}" for method in METHODS)
        shown = ", ".join(f"{each:.2g}" for each in ours)
        found.append(note(f"{label}: seconds; accuracy of the four", f"{shown}; {accuracy}"))
    return found


def draw(rows, figure):
    """Draw the seconds on a logarithmic scale, beside the paper's."""
    axes, names = figure.subplots(), values(rows, "data")
    for m, method in enumerate(METHODS):
        at = np.arange(len(names)) + 0.2 * (m - 1.5)
        axes.bar(at, [column(rows, f"{method} seconds", data=name).mean() for name in names], 0.2, label=method)
        axes.plot(at, [PAPER[name][1][m] for name in names], "kx", label="paper, its machine" if m == 0 else None)
    axes.set_xticks(range(len(names)), [proteins.LABELS[name].replace(" (", "\n(") for name in names])
    axes.set(ylabel="seconds", yscale="log")
    figure.legend(ncols=5, fontsize="small", loc="outside upper center")


size = (8, 4)
