"""Sonnenburg, Raetsch & Schaefer 2005, section 5.3: a million sequences and twenty kernels.

    python papers/2005-sonnenburg/run.py fit [--n 1000000] [--length 42] [--data splice42|dna] [--C 1] [--tol 0.01]
    python papers/2005-sonnenburg/run.py growth [--sizes 10000 31623 100000 316228 1000000]

fit       weighted degree kernels split by degree, d = 1, ..., 20; time, peak memory, and 100,000 predictions, some
          of them compared with the kernel expansion (unless --no-predict)
growth    processor seconds of an epoch through all samples, against their number: growth.csv and growth.svg beside
          this file

splice42 (acceptors and donors together) is read from the folder named by MULTIKERNEL_DATA; dna is generated, and the
default without that folder.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from multikernel import MKLClassifier
from multikernel.datasets import dna, load
from multikernel.datasets.loaders import VARIABLE
from multikernel.kernels import DegreeBlocks, WeightedDegree

HERE = Path(__file__).parent
DEGREE, N_TEST = 20, 100_000


def sequences(data: str, n: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n sequences and their classes, in random order."""
    if data == "dna":
        return dna(n, length)
    parts = [load("splice42_acc"), load("splice42_don")]
    S, y = np.concatenate([part.seq for part in parts]), np.concatenate([part.y for part in parts])
    chosen = np.random.default_rng(0).permutation(len(S))[:n]
    return S[chosen], y[chosen]


def model(C: float, tol: float, **options) -> MKLClassifier:
    """Return the classifier of the section, on explicit features."""
    return MKLClassifier(DegreeBlocks(WeightedDegree(DEGREE)), C=C, tol=tol, gram="features", **options)


def peak_gib() -> float:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def fit(args: argparse.Namespace) -> None:
    """Train; print time, memory and gap."""
    S, y = sequences(args.data, args.n + N_TEST, args.length)
    began, cpu = time.perf_counter(), time.process_time()

    def report(row: dict) -> None:
        bounds = f"upper {row['upper']:.6g}   lower {row['lower']:.6g}   gap {row['gap']:.4f}"
        cpu_now = time.process_time() - cpu
        epoch = f"{row['epoch_seconds']:.2f} s an epoch, {cpu_now:.0f} s in all"
        print(f"  {row['time']:7.1f} s   {bounds}   {epoch}", flush=True)

    fitted = model(args.C, args.tol, callback=report, n_jobs=args.threads).fit(S[: args.n], y[: args.n])
    print(
        f"{args.data} n={args.n} length={len(S[0])} C={args.C:g}: {fitted.status_}, gap {fitted.duality_gap_:.4f} "
        f"after {fitted.n_iter_} steps, {time.perf_counter() - began:.0f} s "
        f"({time.process_time() - cpu:.0f} s of processor time), "
        f"peak {peak_gib():.2f} GiB, {len(fitted.dual_coef_)} support vectors",
        flush=True,
    )
    print("weights by degree:", np.array2string(fitted.weights_, precision=3, suppress_small=True), flush=True)
    if args.predict:
        predict(fitted, S, y, args)


def predict(fitted: MKLClassifier, S: np.ndarray, y: np.ndarray, args: argparse.Namespace) -> None:
    """Predict; compare some of the outputs with the kernel expansion."""
    began = time.perf_counter()
    f = fitted.decision_function(S[args.n :])
    seconds = time.perf_counter() - began
    # the kernel expansion itself, on a few of them
    few = np.random.default_rng(1).choice(len(f), 200, replace=False)
    some = fitted.decision_function(S[args.n :][few])
    wrong = np.mean(fitted.classes_[(f > 0).astype(int)] != y[args.n :])
    print(
        f"{len(f)} predictions in {seconds:.1f} s, error rate {wrong:.4f}; off the kernel expansion by at most "
        f"{np.abs(f[few] - some).max():.1e} on 200 of them; peak {peak_gib():.2f} GiB",
        flush=True,
    )


def growth(args: argparse.Namespace) -> None:
    """Measure an epoch at several sizes, and plot the times."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    S, y = sequences(args.data, max(args.sizes), args.length)
    rows = []
    for n in args.sizes:
        # the first step goes through all samples
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = model(args.C, 1e-9, max_iter=1, n_jobs=1).fit(S[:n], y[:n])
        rows.append((n, float(fitted.history_["epoch_seconds"][0])))
        print(f"n = {n:8d}   {rows[-1][1]:8.3f} s an epoch   {1e6 * rows[-1][1] / n:.2f} us a sample", flush=True)
    n, seconds = np.array(rows).T
    slope = np.polyfit(np.log(n), np.log(seconds), 1)[0]
    ends = np.log(seconds[-1] / seconds[0]) / np.log(n[-1] / n[0])
    print(f"seconds ~ n^{slope:.2f} (least squares), n^{ends:.2f} (from the first to the last)", flush=True)
    with open(HERE / "growth.csv", "w", newline="") as file:
        csv.writer(file).writerows([("n", "epoch_seconds"), *rows])
    figure, axes = plt.subplots(figsize=(5, 3.5), layout="constrained")
    axes.loglog(n, seconds, "o-", label=f"one epoch, n^{ends:.2f} end to end")
    axes.loglog(n, seconds[0] * (n / n[0]) ** 1.2, "--", color="grey", label="n^1.2")
    axes.set(xlabel="sequences n", ylabel="processor seconds", title=f"{args.data}, {len(S[0])} letters, 20 kernels")
    axes.legend()
    figure.savefig(HERE / "growth.svg", metadata={"Date": None})


def main(arguments: list[str] | None = None) -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=["fit", "growth"], default="fit")
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--length", type=int, default=42)
    known = "splice42" if os.environ.get(VARIABLE) else "dna"
    parser.add_argument("--data", choices=["splice42", "dna"], default=known)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 31_623, 100_000, 316_228, 1_000_000])
    parser.add_argument("--no-predict", dest="predict", action="store_false")
    chosen = parser.parse_args(arguments)
    {"fit": fit, "growth": growth}[chosen.part](chosen)


if __name__ == "__main__":
    main()
