"""One binary task with seven kernels: each alone, MKL, the plain sum, and noise kernels (section 3.2, Figure 2)."""

from __future__ import annotations

import numpy as np
import proteins
from experiments import average, claim, column, mean_and_error, normalised, note, numbers, standard_error, values
from sklearn.model_selection import StratifiedShuffleSplit

from multikernel import MKLClassifier, stack_kernels

title = "Figure 2: membrane proteins, seven kernels and noise"
compared = """The paper's membrane data (2316 yeast proteins, 7 kernels) are not at hand: inner membrane proteins
against the rest among 1444 bacterial proteins of psort- (papers/proteins.py), with seven of their kernels. Ten
splits 80/20, C = 1, kernels of variance one. Noise: Gram matrices of independent normal columns, as many as there
are samples."""
# stands in for the membrane proteins of yeast
DATA = f"inner membrane of {proteins.LABELS['psort-']}"
# positions in the 69 kernels of proteins.py
KERNELS = {
    "motif 1----": 0,
    "motif 1---1": 1,
    "motif 11---": 8,
    "first 15": 24,
    "composition": 64,
    "spectrum 3": 65,
    "alignment": 66,
}
NOISE = (0, 1, 3, 7)


def tasks(small):
    """Every split and number of noise kernels."""
    return [
        {"noise": noise, "split": split}
        for noise in ((0, 3) if small else NOISE)
        for split in range(5 if small else 10)
    ]


def samples(small, noise):
    """Return the kernels, the useful ones first, each of variance one, and the labels."""
    stack, y = proteins.task("psort-", small)
    chosen = list(range(7)) if small else list(KERNELS.values())
    K = [stack.train_kernels()[k] for k in chosen]
    rng = np.random.default_rng(0)
    for _ in range(noise):
        Z = rng.normal(size=(len(y), len(y))) / np.sqrt(len(y))
        K.append((Z @ Z.T).astype(np.float32))
    return stack_kernels([normalised(each, "variance") for each in K]), np.where(y == 1, 1, -1)


def work(small, noise, split):
    """Accuracies of the single kernels (without noise only), of MKL and of the sum, and the weights."""
    stack, y = samples(small, noise)
    train, test = list(StratifiedShuffleSplit(10, test_size=0.2, random_state=0).split(y, y))[split]

    def score(kernels):
        model = MKLClassifier("precomputed", normalize=None, tol=1e-2, n_jobs=1).fit(kernels[train], y[train])
        return 100 * model.score(kernels[test], y[test]), model.weights_

    single = [] if noise else [score(stack.take_kernels([k]))[0] for k in range(7)]
    (mkl, weights), (mean, _) = score(stack), score(average(stack))
    return {"mkl": mkl, "sum": mean, "weights": weights, "single": np.array(single)}


def verdicts(rows):
    """MKL and the sum alike without noise, MKL ahead with it."""
    found, most = [], max(column(rows, "noise"))
    single = np.mean([numbers(each) for each in column(rows, "single", noise=0)], axis=0)
    mkl, mean = (column(rows, method, noise=0).mean() for method in ("mkl", "sum"))
    without = column(rows, "mkl", noise=0) - column(rows, "sum", noise=0)
    for noise in values(rows, "noise"):
        difference = column(rows, "mkl", noise=noise) - column(rows, "sum", noise=noise)
        gain, error = mean_and_error(difference)
        paper, holds, why = "above 0", gain > 2 * error, "no clear difference"
        # paired by split with the runs without noise
        more, off = mean_and_error(difference - without)
        clear = "clearly" if more > 2 * off else "not clearly"
        remark = f"{clear} more than without noise, by {more:.2f} (error {off:.2f})" if noise else ""
        many = f"{noise} noise kernel{'s' if noise != 1 else ''}"
        if not noise:
            paper, holds = "0 (within two errors, or half a point)", abs(gain) <= max(2 * error, 0.5)
            why = f"one kernel alone reaches {single.max():.1f} %, the sum {mean:.1f} %, MKL {mkl:.1f} %: most of its "
            why += "weight is on that one"
        found.append(claim(f"{DATA}, {many}: MKL - sum, points", paper, f"{gain:.2f}", holds, why,
                           standard_error(difference), remark))  # fmt: skip
    weights = np.mean([numbers(each) for each in column(rows, "weights", noise=0)], axis=0)
    near = int((single > single.max() - 2.0).sum())
    found.append(claim(f"{DATA}: kernels of 7 within 2 points of the best one; their weights",
                       "most (at least 5); very different (by over 0.2)",
                       f"{near}; {weights.min():.2f} to {weights.max():.2f}", near >= 5 and np.ptp(weights) > 0.2,
                       "these kernels differ in accuracy as well"))  # fmt: skip
    noisy = [numbers(each)[7:].sum() for each in column(rows, "weights", noise=most)]
    found.append(claim(f"{DATA}: weight of {most} noise kernels together", "low (below 0.2)", f"{np.mean(noisy):.3f}",
                       np.mean(noisy) < 0.2, "they get weight", standard_error(noisy, 3)))  # fmt: skip
    found.append(note(f"{DATA}: accuracy of MKL and of the sum without noise", f"{mkl:.1f}, {mean:.1f}"))
    return found


def draw(rows, figure):
    """Draw accuracies above and weights below; on the right accuracy against noise."""
    axes = figure.subplot_mosaic([["single", "noise"], ["weights", "noise"]])
    single = np.array([numbers(each) for each in column(rows, "single", noise=0)])
    weights = np.array([numbers(each) for each in column(rows, "weights", noise=0)])
    axes["single"].bar(range(7), single.mean(axis=0), yerr=single.std(axis=0))
    for key, colour, label in (("mkl", "tab:red", "MKL"), ("sum", "tab:green", "plain sum")):
        axes["single"].axhline(column(rows, key, noise=0).mean(), color=colour, label=label)
        line = np.array([mean_and_error(column(rows, key, noise=noise)) for noise in values(rows, "noise")])
        axes["noise"].errorbar(values(rows, "noise"), *line.T, color=colour, marker="o", capsize=2, label=label)
    axes["single"].set(ylim=(max(0, single.min() - 5), 100), ylabel="accuracy (%)", xticks=[])
    axes["single"].set(title="each kernel alone; lines: all seven")
    axes["weights"].bar(list(KERNELS), weights.mean(axis=0), yerr=weights.std(axis=0))
    axes["weights"].tick_params(axis="x", rotation=60, labelsize="small")
    axes["weights"].set(ylabel="weight in MKL")
    axes["noise"].set(xlabel="noise kernels", ylabel="accuracy (%)", title="with noise kernels beside the seven")
    axes["noise"].legend()
    figure.suptitle(f"{DATA} (bars: deviation over the splits; right: standard error)", fontsize="medium")


size = (10, 5)
