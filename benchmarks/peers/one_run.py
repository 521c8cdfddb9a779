"""One contestant on one problem, in whatever environment runs this file: only the fit is timed.

    python one_run.py PROBLEM_FOLDER CONTESTANT.py VARIANT EFFORTS_AS_JSON OUT_FOLDER LIMIT

Needs NumPy only. For every effort it writes what the contestant returns (predictions, and weights, coefficients and
intercept where it solves the problem of the objective), the seconds of its fit and the peak of memory during the fit
above that before it. A fit of a few samples comes first, so that modules and compiled code are loaded.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
import threading
import time
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from clock import processor_seconds

# seconds from which on the fit during which memory is watched is timed too
LONG = 1.0
# samples of the first fit, which does not count
FEW = 100
# seconds from which the clock of the processor time is fine enough
FINE = 0.2


def load(folder: Path) -> SimpleNamespace:
    arrays = {key: np.load(folder / f"{key}.npy") for key in ("K", "K_test", "X", "X_test", "y", "y_test")}
    return SimpleNamespace(**arrays, **json.loads((folder / "about.json").read_text(encoding="utf-8")))


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_during(call):
    """Return what a call returns, the peak of memory during the call above that before it, and processor seconds."""
    peak, stop = [before := resident()], threading.Event()

    def watch() -> None:
        while not stop.wait(0.002):
            peak[0] = max(peak[0], resident())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    began = time.process_time()
    result = call()
    seconds = time.process_time() - began
    stop.set()
    return result, max(peak[0], resident()) - before, seconds


def some(data: SimpleNamespace, n: int) -> SimpleNamespace:
    """Return the first n samples, for training and test."""
    rows = slice(0, n)
    K, K_test = (np.ascontiguousarray(K[:, rows, rows]) for K in (data.K, data.K_test))
    parts = {key: getattr(data, key)[rows] for key in ("X", "X_test", "y", "y_test")}
    return SimpleNamespace(**{**vars(data), **parts, "K": K, "K_test": K_test})


def main(folder: str, contestant: str, variant: str, efforts: str, out: str, limit: str) -> None:
    warnings.simplefilter("ignore")
    spec = importlib.util.spec_from_file_location("contestant", contestant)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    data = load(Path(folder))
    few = some(data, FEW)
    module.fit(module.prepare(few, variant), few, variant, **json.loads(efforts)[0])
    prepared = module.prepare(data, variant)
    for number, settings in enumerate(json.loads(efforts)):
        # the default action of this signal is to end the process, whatever compiled code it is in
        signal.setitimer(signal.ITIMER_PROF, float(limit))
        fit = partial(module.fit, prepared, data, variant, **settings)
        model, memory, seconds = peak_during(fit)
        if seconds < LONG:
            seconds = processor_seconds(fit, warm=True)
        signal.setitimer(signal.ITIMER_PROF, 0)
        predicted = np.asarray(module.predict(model, prepared, data, variant))
        found = {
            "predicted": predicted,
            "seconds": seconds,
            "memory": memory,
            **(module.solution(model, data) or {}),
        }
        np.savez(Path(out) / f"{number}.npz", **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
