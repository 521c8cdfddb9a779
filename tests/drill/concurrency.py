"""Fits at the same time, in threads and in processes: the same answers as one after the other."""

from __future__ import annotations

import gc
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from drill import Kind
from drill.child import blas_threads, in_child
from drill.fits import ESTIMATORS, draw_samples, evaluate, fit, make

VARIANTS = (
    {},
    {"gram": "lazy"},
    {"gram": "memmap"},
    {"norm": 2.0},
    {"solver": "silp"},
    {"n_jobs": 2},
    {"n_jobs": 2, "gram": "lazy"},
)


def count_threads() -> int:
    """Return the number of threads of this process; where it cannot be had, of those that Python knows by name."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.exists() else threading.active_count()


def answers(name: str, options: dict, X, y) -> np.ndarray:
    """Fit a new model and return its outputs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evaluate(fit(make(name, random_state=0, **options), X, y), X)


def in_threads(tasks: list) -> list[np.ndarray]:
    """Run all tasks at the same time in threads of this process."""
    start = threading.Barrier(len(tasks))

    def run(task):
        start.wait()
        return answers(*task)

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(run, tasks))


def in_processes(tasks: list) -> list[np.ndarray]:
    """Run each task in a fork of this process, while the others run in threads of this process."""

    def run(task):
        found = in_child(lambda folder: {"outputs": answers(*task).tolist()})
        return np.array(found["outputs"]) if "outputs" in found else found

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(run, tasks))


def case(rng):
    """Draw two to four fits, on the same samples or on others; run them in turn and at the same time."""
    tasks = []
    for _ in range(rng.integers(2, 5)):
        name = str(rng.choice(list(ESTIMATORS)))
        own = VARIANTS[rng.integers(len(VARIANTS))]
        X, y = draw_samples(make(name), rng, int(rng.integers(20, 60)), int(rng.integers(2, 4)))
        tasks += [(name, own, X, y)] * int(rng.integers(1, 3))
    together = in_threads if rng.random() < 0.7 else in_processes
    threads, limits = count_threads(), blas_threads()
    alone = [answers(*task) for task in tasks]
    found = together(tasks)
    label = f"{together.__name__}, {len(tasks)}"
    for task, one, other in zip(tasks, alone, found, strict=True):
        if not isinstance(other, np.ndarray):
            return label, f"{task[:2]}: {other}"
        if not np.array_equal(one, other):
            difference = np.abs(one - other).max() / max(np.ptp(one), 1e-300)
            return label, f"{task[:2]}: outputs differ by {difference:.2g} of their range"
    if blas_threads() != limits:
        return label, f"BLAS threads were {limits} and are {blas_threads()}"
    # workers of a team that is gone end by themselves, a moment later
    patience = time.monotonic() + 2.0
    while (left := count_threads() - threads) > 0 and time.monotonic() < patience:
        gc.collect()
        time.sleep(0.01)
    return label, f"{left} threads left" if left > 0 else None


KIND = Kind(
    "concurrency",
    "Two to eight fits at the same time, in threads of one process or in forks of it. A finding is an output "
    "that differs in any bit from that of the same fit alone, an exception, or a limit of BLAS threads or a "
    "thread that stays.",
    share=2,
    full=500,
    case=case,
)
