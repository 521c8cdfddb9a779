"""Two-stage baselines on the binary workload: passes over the stack, and peak memory above it.

    python benchmarks/baselines.py [name ...]       weights, fits, memory (all by default)

weights   learning the weights alone, from a stack in memory, including the checks of the stack
fits      whole fits including checks; MKLpy 0.6 takes 433 passes for the first of them
memory    peak memory of a fit above the caller's stack, as a fraction of the stack
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings

import numpy as np
from run import ratio, report, resident
from workloads import binary, one_pass

# (n, name of the weights, bar in passes)
WEIGHTS = [
    (2000, "UniformWeights", 5),
    (2000, "AlignWeights", 10),
    (2000, "FHeuristicWeights", 10),
    (2000, "AlignFWeights", 15),
    (2000, "BinaryMKLWeights", 40),
]
# (n, name of the estimator, bar in passes)
FITS = [(2000, "EasyMKLClassifier", 20), (5000, "EasyMKLClassifier", 20), (2000, "TwoStageClassifier", 25)]
# (n, p, name of the estimator)
MEMORY = [
    (2000, 20, "TwoStageClassifier"),
    (2000, 20, "EasyMKLClassifier"),
    (2000, 8, "EasyMKLClassifier"),
    (2000, 20, "LPBetaClassifier"),
    (2000, 8, "LPBetaClassifier"),
]


def weights(cases=WEIGHTS, repeats: int = 5) -> None:
    from multikernel import stack_kernels
    from multikernel.estimators import baselines as twostage

    for n, name, bar in cases:
        K, _, y, _ = binary(n, 10)
        stack, rule = stack_kernels(K), getattr(twostage, name)()
        rule.fit(stack, y)
        figure = ratio(lambda rule=rule, stack=stack, y=y: rule.fit(stack, y), lambda K=K: one_pass(K, 1), repeats)
        report(f"{name} n={n} p={len(K)}", figure, "passes", bar)


def fits(cases=FITS, repeats: int = 5) -> None:
    import multikernel

    for n, name, bar in cases:
        K, K_test, y, y_test = binary(n, 1000)
        stack, model = multikernel.stack_kernels(K), getattr(multikernel, name)("precomputed")
        model.fit(stack, y)
        right = model.score(multikernel.stack_kernels(K_test), y_test)
        figure = ratio(lambda model=model, stack=stack, y=y: model.fit(stack, y), lambda K=K: one_pass(K, 1), repeats)
        report(f"{name} n={n} p={len(K)} (test accuracy {right:.3f})", figure, "passes", bar)


def memory(cases=MEMORY) -> None:
    # a process each, in which freed memory of large arrays returns to the system at once
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    for n, p, name in cases:
        subprocess.run([sys.executable, __file__, "memory_of", str(n), str(p), name], env=environment, check=True)


def memory_of(n: str, p: str, name: str) -> None:
    import multikernel

    K, _, y, _ = binary(int(n), 10)
    K = np.ascontiguousarray(K[np.linspace(0, len(K) - 1, int(p)).astype(int)])
    small = slice(0, 200)
    kind = getattr(multikernel, name)
    kind("precomputed").fit(multikernel.stack_kernels(np.ascontiguousarray(K[:, small, small])), y[small])
    peak = [before := resident()]
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.001):
            peak[0] = max(peak[0], resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    kind("precomputed").fit(multikernel.stack_kernels(K), y)
    stop.set()
    watcher.join()
    report(f"memory {name} n={n} p={p}", (peak[0] - before) / K.nbytes, "of the stack", 0.25)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parts = {"weights": weights, "fits": fits, "memory": memory}
    if sys.argv[1:2] == ["memory_of"]:
        memory_of(*sys.argv[2:])
    else:
        for part in sys.argv[1:] or parts:
            parts[part]()
