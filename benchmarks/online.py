"""Epochs of the online learners on a precomputed stack, in passes over the stack in the same run.

    python benchmarks/online.py [name ...]       epochs, fits, m3k, memory (all by default)

The size is that of Cortes et al. 2013, table 3, NP: 1366 samples, 3 classes, 69 kernels, float32. Random labels are the
worst case: nearly every visited sample violates its margin, and every violation reads the rows of that sample in all
kernels.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
from run import report, resident
from tasks import stack_of
from workloads import one_pass

N, CLASSES, KERNELS, EPOCHS = 1366, 3, 69, 10
# passes an epoch
BARS = {"ufo": 3.0, "obscure": 4.0}


def nonplant(n: int = N, kernels: int = KERNELS, noise: float = 0.2, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Classes around the vertices of the simplex beside noise columns; a fraction of the labels is drawn at random."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % CLASSES
    X = np.hstack([np.eye(CLASSES)[y] + 0.5 * rng.standard_normal((n, CLASSES)), rng.standard_normal((n, 3))])
    drawn = rng.random(n) < noise
    y = np.where(drawn, rng.integers(0, CLASSES, n), y)
    widths = np.logspace(-1, 2, (kernels + 1) // 2)
    halves = [stack_of(X[:, :CLASSES], widths), stack_of(X[:, CLASSES:], widths)]
    return np.concatenate(halves)[:kernels], y


def cpu(call) -> float:
    began = time.thread_time()
    call()
    return time.thread_time() - began


def epochs(n: int = N, kernels: int = KERNELS, repeats: int = 5) -> None:
    """The cost of one more epoch, measured on ten epochs including their certificates."""
    from multikernel.estimators.baselines.obscure import obscure
    from multikernel.estimators.baselines.online_blocks import KernelBlocks
    from multikernel.estimators.baselines.online_run import Penalty, Sample, power_for
    from multikernel.estimators.baselines.ufo import ufo
    from multikernel.gram.dense import DenseGram

    for noise in (0.2, 1.0):
        K, y = nonplant(n, kernels, noise)
        sample = Sample(y, np.ones(n), np.arange(n), np.zeros(0, int))
        penalty = Penalty(1.0 / n, 0.0, power_for(kernels))
        for name, learn in (("ufo", ufo), ("obscure", lambda *a, **o: obscure(*a, online_epochs=0, **o))):

            def run(learn=learn, sample=sample, penalty=penalty, K=K):
                blocks = KernelBlocks(DenseGram(K), CLASSES, average=False)
                seed = np.random.RandomState(0)
                learn(blocks, sample, penalty, max_iter=EPOCHS, tol=1e-9, average=False, seed=seed)

            run()
            pairs = [(cpu(run), cpu(partial(one_pass, K, 1))) for _ in range(repeats)]
            figure = np.median([a for a, _ in pairs]) / np.median([b for _, b in pairs]) / EPOCHS
            report(f"{name} n={n} p={kernels} random labels {noise:.0%}: one epoch", figure, "passes", BARS[name])


def fits(n: int = N, kernels: int = KERNELS, repeats: int = 3) -> None:
    """Whole fits of ten epochs, including checks of the stack and averages."""
    from multikernel import OBSCUREClassifier, UFOMKLClassifier, stack_kernels

    K, y = nonplant(n, kernels)
    stack = stack_kernels(K)
    for kind in (UFOMKLClassifier, OBSCUREClassifier):
        model = kind("precomputed", max_iter=EPOCHS, tol=1e-9, n_jobs=1, random_state=0)
        model.fit(stack, y)
        pairs = [(cpu(partial(model.fit, stack, y)), cpu(partial(one_pass, K, 1))) for _ in range(repeats)]
        figure = np.median([a for a, _ in pairs]) / np.median([b for _, b in pairs])
        bar = 3.0 * EPOCHS if kind is UFOMKLClassifier else 4.0 * (EPOCHS + model.online_epochs)
        report(f"{kind.__name__} n={n} p={kernels}: fit of {EPOCHS} epochs", figure, "passes", bar)


def m3k(n: int = N, kernels: int = KERNELS, repeats: int = 3) -> None:
    """M3K to a gap of 1e-2 against ten epochs of UFO-MKL on the same stack."""
    from multikernel import M3KClassifier, UFOMKLClassifier, stack_kernels

    K, y = nonplant(n, kernels)
    stack = stack_kernels(K)
    baseline = UFOMKLClassifier("precomputed", max_iter=EPOCHS, n_jobs=1)
    models = M3KClassifier("precomputed", tol=1e-2, n_jobs=1), baseline
    for model in models:
        model.fit(stack, y)
    times = [[cpu(partial(model.fit, stack, y)) for model in models] for _ in range(repeats)]
    figure = np.median([a for a, _ in times]) / np.median([b for _, b in times])
    report(f"M3K n={n} p={kernels} gap 1e-2", figure, "x ten epochs of ufo", 7.0)


def memory() -> None:
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    subprocess.run([sys.executable, __file__, "memory_of"], env=environment, check=True)


def memory_of(n: int = N, kernels: int = KERNELS) -> None:
    from multikernel import UFOMKLClassifier, stack_kernels

    K, y = nonplant(n, kernels)
    few = slice(0, 50)
    UFOMKLClassifier("precomputed", max_iter=2).fit(stack_kernels(np.ascontiguousarray(K[:, few, few])), y[few])
    peak = [before := resident()]
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.001):
            peak[0] = max(peak[0], resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    UFOMKLClassifier("precomputed", max_iter=EPOCHS).fit(stack_kernels(K), y)
    stop.set()
    watcher.join()
    report(f"memory of UFOMKLClassifier n={n} p={kernels}", (peak[0] - before) / K.nbytes, "of the stack", 0.25)


if __name__ == "__main__":
    parts = {"epochs": epochs, "fits": fits, "m3k": m3k, "memory": memory}
    if sys.argv[1:2] == ["memory_of"]:
        memory_of()
    else:
        for part in sys.argv[1:] or parts:
            parts[part]()
