"""Thousands of fits in one process: memory, threads and open files stay what they were."""

from __future__ import annotations

import gc
import os
import resource
from dataclasses import dataclass
from pathlib import Path

from drill import Kind
from drill.fits import ESTIMATORS, draw_samples, evaluate, fit, make

# fits of all estimators before the first measurement, and between two of them
ROUND = 5 * len(ESTIMATORS)
# bytes by which the memory may differ: the allocator keeps some
SLACK = 24 << 20


@dataclass
class Use:
    """What the process holds."""

    memory: int
    threads: int
    files: int

    @classmethod
    def now(cls) -> Use:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        threads, files = (len(os.listdir(f"/proc/self/{each}")) for each in ("task", "fd"))
        return cls(pages * resource.getpagesize(), threads, files)


STATE: dict[str, Use | int] = {"fits": 0}


def case(rng):
    """Fit one estimator after the other; compare what the process holds after every few rounds with the first time."""
    number = int(STATE["fits"])
    STATE["fits"] = number + 1
    name = list(ESTIMATORS)[number % len(ESTIMATORS)]
    # the same sizes and settings in every round, other numbers
    variant = ({}, {"gram": "lazy"}, {"gram": "memmap"}, {"norm": 2.0}, {"n_jobs": 2})[number // len(ESTIMATORS) % 5]
    model = make(name, **variant)
    X, y = draw_samples(model, rng, 40)
    evaluate(fit(model, X, y), X)
    del model
    if (number + 1) % ROUND:
        return name, None
    use = Use.now()
    # the first round loads and compiles, the second fills caches
    before = STATE.setdefault("first", use) if number >= 2 * ROUND - 1 else use
    grown = [
        f"{field}: {getattr(before, field)} -> {getattr(use, field)}"
        for field, slack in (("memory", SLACK), ("threads", 0), ("files", 0))
        if getattr(use, field) > getattr(before, field) + slack
    ]
    return name, f"after {number + 1} fits: {'; '.join(grown)}" if grown else None


KIND = Kind(
    "growth",
    "Fits of all estimators in one process, in turn. A finding is more resident memory (by more than 24 MB), "
    "more threads or more open files than after the first 140 fits.",
    share=2,
    full=2000,
    case=case,
    alone=True,
    absent=lambda: None if Path("/proc/self/statm").exists() else "memory is measured on Linux only.",
)
