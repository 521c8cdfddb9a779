"""Kernels by rows with the workers of a Dask cluster of two processes: one JSON object a line.

    python benchmarks/cluster.py fit [--n 8000]               against the same fit in memory, kernels computed before
    python benchmarks/cluster.py kill [--n 1500] [--fits 20]   a worker killed at a random moment of each fit

Samples and ten kernels of the workload `binary`, C = 1, gap 1e-3. ``peak`` is how much the memory of the client, which
holds the scheduler as well, grew during the fit, in parts of the bytes of all kernels. Times are seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster
from gpu import partial_targets, timed, two_classes

from multikernel import MKLClassifier
from multikernel.training.prepare import prepare
from multikernel.training.train import train


def peak() -> int:
    """Return the largest memory of this process since the last call of `forget_peak`, in bytes."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def forget_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def measured(n: int, gram: str, repeats: int) -> dict:
    """Return what the training takes on prepared kernels, the best of some."""
    kernels, X, y = two_classes(n)
    estimator = MKLClassifier(kernels, gram=gram, tol=1e-3)
    settings = estimator._settings()
    before, prepared = timed(lambda: prepare(kernels, X, None, settings))
    targets = partial_targets(MKLClassifier(kernels, gram=gram, tol=1e-3), X, y)
    times, grown = [], []
    for _ in range(repeats):
        base = forget_peak()
        seconds, fit = timed(lambda: train(prepared, targets, settings))
        times.append(seconds)
        grown.append(peak() - base)
    size = len(kernels) * n * n * prepared.gram.dtype.itemsize
    solution = fit.solutions[0]
    return {
        "gram": gram, "n": n, "kernels": before, "fit": min(times), "all": times, "peak": max(grown) / size,
        "objective": solution.upper, "lower": solution.lower, "gap": solution.gap, "steps": solution.n_iter,
    }  # fmt: skip


def cluster() -> LocalCluster:
    return LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)


def fit(n: int, repeats: int) -> None:
    with cluster() as workers, Client(workers):
        far = measured(n, "dask", repeats)
        print(json.dumps(far), flush=True)
    near = measured(n, "dense", repeats)
    print(json.dumps(near))
    apart = abs(far["objective"] - near["objective"]) / near["objective"]
    print(json.dumps({"ratio": far["fit"] / near["fit"], "apart": apart}))


def kill(n: int, fits: int, seed: int) -> None:
    kernels, X, y = two_classes(n)
    rng = np.random.default_rng(seed)
    dense = MKLClassifier(kernels, gram="dense", tol=1e-3).fit(X, y)
    with cluster() as workers, Client(workers):
        # the first fit waits for workers that compile or load
        usual = min(timed(lambda: MKLClassifier(kernels, gram="dask", tol=1e-3).fit(X, y))[0] for _ in range(2))
    for number in range(fits):
        with cluster() as workers, Client(workers) as client:
            victims = list(client.run(os.getpid).values())
            wait = rng.uniform(0, usual)
            killer = threading.Timer(wait, os.kill, (int(rng.choice(victims)), signal.SIGKILL))
            killer.start()
            seconds, model = timed(lambda: MKLClassifier(kernels, gram="dask", tol=1e-3).fit(X, y))
            during = not killer.is_alive()
            killer.join()
        apart = abs(model.objective_ - dense.objective_) / dense.objective_
        right = bool(apart <= 1e-3 and model.duality_gap_ <= 1e-3)
        row = {"fit": number, "killed": wait, "during": during, "seconds": seconds, "usual": usual}
        print(json.dumps({**row, "apart": apart, "right": right}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("item", choices=["fit", "kill"])
    parser.add_argument("--n", type=int)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.item == "fit":
        fit(args.n or 8000, args.repeats)
    else:
        kill(args.n or 1500, args.fits, args.seed)


if __name__ == "__main__":
    main()
