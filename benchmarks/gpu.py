"""Fits on a GPU against the bars for it: one JSON object a line, each item on its own.

    python benchmarks/gpu.py [item ...] [--device cuda] [--quick] [--profile]

Items: binary20k (with the same fit on all threads of the host), stored (50,000 samples), recomputed (100,000), joint
(20,000 samples, 10 classes), squares (10,000 samples, 5,000 targets; bounds on the optimum computed on the host in
float64 at the weights of the device), certificates (50 random problems, bounds recomputed on the host in float64),
prediction, parts (where the time of a fit goes). Kernels are computed on the
device from samples. ``--quick`` takes a twentieth of the samples, for a machine without a GPU. ``--profile`` adds the
functions that each item spent its time in; with CUDA_LAUNCH_BLOCKING=1 work of the GPU counts where it was asked for.
Times are seconds.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import pstats
import signal
import sys
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from gaps import hinge_bounds, squares_bounds
from workloads import EVERYTHING, RING, WIDTHS, ring

from multikernel import MKLClassifier, MKLRegressor, stack_kernels
from multikernel.gram import TorchStorage
from multikernel.kernels import RBF
from multikernel.training.prepare import prepare
from multikernel.training.train import train

# seconds after which an item is given up
LIMIT = 75


def two_classes(n: int) -> tuple[list, np.ndarray, np.ndarray]:
    """Return the ten kernels of the binary workload, its samples and labels."""
    X, y = ring(n, 1)
    pairs = [("ring", RING), ("all", EVERYTHING)]
    return [(f"{name} {w}", RBF(width=w), list(columns)) for name, columns in pairs for w in WIDTHS], X, y


def classes(n: int, c: int) -> tuple[list, np.ndarray, np.ndarray]:
    """Return ten kernels on samples around the vertices of the simplex."""
    y = np.arange(n) % c
    X = np.eye(c)[y] + 0.3 * np.random.default_rng(5).standard_normal((n, c))
    return [RBF(width=w) for w in np.logspace(-2, 2, 10)], X, y


def timed(call) -> tuple[float, object]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def fit_parts(kernels, X, y, device, **params) -> dict:
    """Return the seconds of a fit, those of its kernels apart, and what it reached."""
    estimator = MKLClassifier(kernels, gram=TorchStorage(device), **params)
    settings = estimator._settings()
    before, prepared = timed(lambda: prepare(kernels, X, None, settings))
    targets = partial_targets(estimator, X, y)
    after, fit = timed(lambda: train(prepared, targets, settings))
    solution, gram = fit.solutions[0], prepared.gram
    return {
        "kernels": before, "fit": after, "gap": solution.gap, "steps": solution.n_iter, "objective": solution.upper,
        "recomputed": gram.recomputed, "status": solution.status,
        "active": int(np.count_nonzero(solution.weights)), "history": [round(t, 3) for t in solution.history["time"]],
    }  # fmt: skip


def partial_targets(estimator, X, y):
    """Return the problems of a classifier on checked samples."""
    found = {}

    class Stop(Exception):
        pass

    def learn(samples, targets, settings):
        found["targets"] = targets
        raise Stop

    estimator._learn = learn
    try:
        estimator.fit(X, y)
    except Stop:
        return found["targets"]


def binary20k(device, share):
    kernels, X, y = two_classes(20_000 // share)
    model = MKLClassifier(kernels, gram=TorchStorage(device))
    model.fit(X, y)
    seconds = [timed(lambda: model.fit(X, y))[0] for _ in range(3)]
    out = {"n": len(y), "whole": seconds, "bar": 0.8, "gap": model.duality_gap_, **fit_parts(kernels, X, y, device)}
    host = MKLClassifier(kernels)
    small = host.fit(X[:3000], y[:3000])
    t, small = timed(lambda: host.fit(X, y))
    return {
        **out,
        "host": t,
        "host gap": small.duality_gap_,
        "host objective": small.objective_,
        "ratio": t / min(seconds),
    }


def stored(device, share):
    kernels, X, y = two_classes(50_000 // share)
    return {"n": len(y), "bar of fit": 4.0, **fit_parts(kernels, X, y, device)}


def recomputed(device, share):
    kernels, X, y = two_classes(100_000 // share)
    limit = None if share == 1 else 3.0 * len(y) ** 2 * 8
    return {"n": len(y), "bar": 60.0, **fit_parts(kernels, X, y, device, memory_limit=limit)}


def joint(device, share):
    # compiled before
    fit_parts(*classes(6000 // share, 10), device)
    kernels, X, y = classes(20_000 // share, 10)
    return {"n": len(y), "bar": 10.0, **fit_parts(kernels, X, y, device)}


def squares(device, share):
    """The fit at the default tolerance is timed; one at 1e-5 is held against the host."""
    n, c = 10_000 // share, 5_000 // share
    kernels, X, _ = two_classes(n)
    rng = np.random.default_rng(3)
    W = rng.standard_normal((8, c))
    Y = np.tanh(X @ W) + 0.5 * rng.standard_normal((n, c))
    model = MKLRegressor(kernels, loss="squared", gram=TorchStorage(device))
    seconds = [timed(lambda: model.fit(X, Y))[0] for _ in range(2)]
    out = {
        "n": n, "targets": c, "bar": 5.0, "first": seconds[0], "seconds": seconds[1], "gap": model.duality_gap_,
        "objective": model.objective_, "steps": model.n_iter_,
        "history": [round(t, 3) for t in model.history_["time"]],
    }  # fmt: skip
    took, close = timed(lambda: model.set_params(tol=1e-5).fit(X, Y))
    host, (upper, lower) = timed(lambda: squares_bounds(on_host(kernels, X), Y, close.weights_))
    apart = max(abs(close.objective_ - upper), abs(close.objective_ - lower)) / lower
    return {
        **out, "seconds at 1e-5": took, "gap at 1e-5": close.duality_gap_, "objective at 1e-5": close.objective_,
        "host": host, "host upper": upper, "host lower": lower, "bar of apart": 1e-4,
        # of the objectives at 1e-5 and at the default tolerance from the host's optimum, at most
        "apart": apart, "apart at default": max(abs(out["objective"] - upper), abs(out["objective"] - lower)) / lower,
    }  # fmt: skip


def on_host(kernels, X) -> list[np.ndarray]:
    """Return the kernels in float64, divided by the mean of the diagonal less the mean of all entries."""

    def one(kernel):
        _, function, columns = kernel
        K = function(X[:, columns], X[:, columns])
        K /= np.diagonal(K).mean() - K.mean()
        return K

    with ThreadPoolExecutor() as pool:
        return list(pool.map(one, kernels))


def certificates(device, share):
    """Largest relative difference of both bounds from those recomputed on the host in float64."""
    import torch

    from multikernel.gram.device import StoredValues
    from multikernel.gram.torch import TorchGram
    from multikernel.machines.svc import SVC
    from multikernel.mixing.norms import mixing_for
    from multikernel.problem import Point, Problem

    worst = 0.0
    rng = np.random.default_rng(0)
    for i in range(50 if share == 1 else 10):
        n, p = int(rng.integers(20, 400)), int(rng.integers(1, 6))
        X = rng.standard_normal((n, p))
        y = np.where(X[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)
        y[:2] = -1.0, 1.0
        K = np.array([np.exp(-rng.uniform(0.1, 5.0) * (x[:, None] - x) ** 2) for x in X.T]).astype(np.float32)
        C, norm = 10.0 ** rng.uniform(-1, 2), float(rng.choice([1.0, 1.5, 2.0]))
        stack = stack_kernels(torch.from_numpy(K).to(device))
        model = MKLClassifier(
            "precomputed", C=C, norm=norm, normalize=None, tol=10.0 ** rng.uniform(-5, -2), gram="torch"
        ).fit(stack, y)
        a = np.zeros(n)
        a[model.support_] = model.dual_coef_
        upper, lower = hinge_bounds(K, y, model.weights_, a, model.intercept_, C, norm)
        gram = TorchGram(StoredValues(stack.train_tensors()))
        point = Point(Problem(gram, SVC(y, C), mixing_for(norm)), model.weights_, a).certificate
        worst = max(worst, abs(upper / point.upper - 1.0), abs(lower - point.lower) / abs(upper))
        worst = max(worst, abs(upper / model.objective_ - 1.0))
    return {"bar": 1e-9, "worst": worst}


def prediction(device, share):
    kernels, X, y = two_classes(20_000 // share)
    model = MKLClassifier(kernels, gram=TorchStorage(device)).fit(X[: len(X) // 4], y[: len(X) // 4])
    model.decision_function(X[:100])
    t, out = timed(lambda: model.decision_function(X))
    host, other = timed(lambda: super(type(model.model_.expansion), model.model_.expansion).evaluate(X, 16))
    return {"rows": len(X), "seconds": t, "host": host, "difference": float(np.abs(out - other[:, 0]).max())}


def parts(device, share):
    """Seconds and calls by kind of work at 20,000 and 50,000 samples; the device is waited for after each call."""
    import torch

    from multikernel.gram.torch import TorchCholesky, TorchCombined, TorchGram
    from multikernel.machines.box_ascent import ProjectedAscent
    from multikernel.problem import Point

    found: dict = {}

    def watch(cls, name):
        plain = getattr(cls, name)

        def watched(self, *args, **options):
            key = f"{name} {options['exact']}" if "exact" in options else name
            seconds, result = timed(lambda: (plain(self, *args, **options), sync())[0])
            entry = found.setdefault(f"{cls.__name__}.{key}", [0, 0.0])
            entry[0], entry[1] = entry[0] + 1, round(entry[1] + seconds, 4)
            return result

        setattr(cls, name, watched)
        return partial(setattr, cls, name, plain)

    def sync():
        if device.startswith("cuda"):
            torch.cuda.synchronize()

    work = {
        TorchGram: ("products", "combine"), TorchCombined: ("apply", "factor"), TorchCholesky: ("solve",),
        ProjectedAscent: ("steps", "newton", "refresh"), Point: ("solve",),
    }  # fmt: skip
    undo = [watch(cls, name) for cls, names in work.items() for name in names]
    out = {}
    try:
        for n in (20_000, 50_000):
            found.clear()
            fit = fit_parts(*two_classes(n // share), device)
            out[str(n // share)] = {"fit": fit["fit"], "history": fit["history"], **found}
    finally:
        for call in undo:
            call()
    return out


ITEMS = {
    "certificates": certificates, "binary20k": binary20k, "stored": stored, "parts": parts, "squares": squares,
    "prediction": prediction, "recomputed": recomputed, "joint": joint,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("items", nargs="*")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--profile", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")

    def stop(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    # compile, and start the device
    kernels, X, y = two_classes(6000 if not args.quick else 500)
    first, _ = timed(lambda: MKLClassifier(kernels, gram=TorchStorage(args.device)).fit(X, y))
    print(json.dumps({"item": "first fit", "seconds": first}), flush=True)
    for name in args.items or ITEMS:
        signal.alarm(LIMIT)
        profile = cProfile.Profile()
        call = partial(ITEMS[name], args.device, 20 if args.quick else 1)
        try:
            seconds, out = timed(partial(profile.runcall, call) if args.profile else call)
            print(json.dumps({"item": name, "all": seconds, **out}, default=float), flush=True)
        except BaseException as error:
            print(
                json.dumps({"item": name, "error": repr(error)[:300], "at": traceback.format_exc()[-800:]}), flush=True
            )
            if isinstance(error, KeyboardInterrupt):
                raise
        finally:
            signal.alarm(0)
            if args.profile:
                pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(30)
            gc.collect()
            if args.device.startswith("cuda"):
                import torch

                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
