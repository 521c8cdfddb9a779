"""Model selection: MKLClassifierCV against GridSearchCV(MKLClassifier) on the same folds, in one run.

    python benchmarks/selection.py [stack] [fixed] [learned]        all by default

Seven values of C, three folds, n = 1000, 20 kernels: a precomputed stack, Gaussian kernels of given widths, and of
learned widths. The figure is the ratio of median times, measured alternately; the ratio of processor times is printed
too.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.model_selection import GridSearchCV
from workloads import EVERYTHING, NOISE, RING, SHIFT, WIDTHS, binary, ring

from multikernel import MKLClassifier, MKLClassifierCV, stack_kernels
from multikernel.kernels import rbf_family

REPEATS = 15
BAR = 4.0
CS = np.logspace(-3, 3, 7)
SUBSETS = {"ring": RING, "shift": SHIFT, "noise": NOISE, "all": EVERYTHING}


def workload(name: str):
    """Return kernels, samples and labels."""
    if name == "stack":
        K, _, y, _ = binary(1000, 10)
        return "precomputed", stack_kernels(K), y
    family = rbf_family(WIDTHS) if name == "fixed" else rbf_family()
    X, y = ring(1000, 1)
    return [(label, family, list(columns)) for label, columns in SUBSETS.items()], X, y


def clocks(call) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - processor


def compare(name: str) -> None:
    kernels, X, y = workload(name)
    search = MKLClassifierCV(kernels, Cs=CS, cv=3, baselines=False)
    baseline = GridSearchCV(MKLClassifier(kernels), {"C": CS}, cv=3)
    search.fit(X, y)
    times = np.array([(clocks(lambda: search.fit(X, y)), clocks(lambda: baseline.fit(X, y))) for _ in range(REPEATS)])
    (ours, ours_cpu), (theirs, theirs_cpu) = np.median(times, axis=0)
    same = search.best_params_ == baseline.best_params_
    ratio = theirs / ours
    print(
        f"selection n=1000 p=20, {name:<8} {ratio:6.2f} x faster than GridSearchCV ({theirs_cpu / ours_cpu:.2f} x in "
        f"processor time)   bar {BAR:g} {'ok' if ratio >= BAR and same else 'MISSED'}   "
        f"{'same choice' if same else 'ANOTHER CHOICE'} C={search.C_:g}",
        flush=True,
    )


if __name__ == "__main__":
    for part in sys.argv[1:] or ("stack", "fixed", "learned"):
        compare(part)
