"""Speed and memory of fits as multiples of other work in the same run; `make bench` prints them with their bars.

    python benchmarks/run.py [name ...]       passes, exact, machine, memory, start (all by default)

passes    whole fits on a precomputed stack, including checks, in passes over the stack (np.tensordot(beta, K, 1))
exact     what a certificate that holds in exact arithmetic adds to these fits, in passes of processor time
machine   the single-kernel machine against scikit-learn's SVC on the same matrix, cold and warm-started
memory    peak memory of a fit above the caller's stack, as a fraction of the stack
start     import, and the first fit of a new process, as fractions of the time allowed
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits
from workloads import binary, one_pass

REPEATS = 7

# (n, norm, C, tol, bar in passes)
FITS = [
    (2000, 1, 1.0, 1e-3, 15),
    (2000, 1, 1.0, 1e-5, 17),
    (2000, 2, 1.0, 1e-3, 13),
    (2000, 1, 0.1, 1e-3, 50),
    (2000, 1, 10.0, 1e-3, 50),
    (2000, 1, 100.0, 1e-3, 50),
    (5000, 1, 1.0, 1e-3, 13),
]


def report(what: str, figure: float, unit: str, bar: float) -> None:
    print(f"{what:<58} {figure:8.3g} {unit:<22} bar {bar:<6g} {'ok' if figure <= bar else 'MISSED'}", flush=True)


def timed(call) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def ratio(call, unit, repeats: int = REPEATS) -> float:
    """Return the median time of ``call`` divided by the median time of ``unit``, measured alternately."""
    pairs = [(timed(call), timed(unit)) for _ in range(repeats)]
    return float(np.median([c for c, _ in pairs]) / np.median([u for _, u in pairs]))


def known_fits() -> Iterator[tuple]:
    """Yield each of FITS, fitted once: name, model, a call that fits again, one that makes a pass, and the bar."""
    from multikernel import MKLClassifier, stack_kernels

    for n in sorted({fit[0] for fit in FITS}):
        K, _, y, _ = binary(n, 10)
        stack = stack_kernels(K)
        for _, norm, C, tol, bar in (fit for fit in FITS if fit[0] == n):
            model = MKLClassifier("precomputed", norm=norm, C=C, tol=tol).fit(stack, y)
            assert model.duality_gap_ <= tol
            name = f"n={n} p={len(K)} norm={norm} C={C:g} gap {tol:g}"
            yield name, model, partial(model.fit, stack, y), partial(one_pass, K, 1), bar


def passes() -> None:
    for name, _, fit, unit, bar in known_fits():
        report(f"fit {name}", ratio(fit, unit), "passes", bar)


@contextmanager
def taking_rounding_for_granted() -> Iterator[None]:
    """Let fits stop at the gap as it was computed: no bound of rounding, and no outputs summed anew because of it.

    What remains is that coefficients lie on a grid on which their sums are exact, some operations for each of them.
    """
    from multikernel.problem import Point

    def outputs(point):
        if point._outputs.coef is not point.a:
            point._outputs.update(point.a)
        return point._outputs

    own = {"exact_certificate": property(lambda point: point.certificate), "refresh": lambda point: False}
    own |= {"outputs": property(outputs), "sizes": lambda point, a: 0.0}
    before = {name: vars(Point)[name] for name in own}
    try:
        for name, value in own.items():
            setattr(Point, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(Point, name, value)


def processor(call) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def exact() -> None:
    for name, model, fit, unit, _ in known_fits():
        steps, times = model.n_iter_, []
        for _ in range(REPEATS):
            # threads of BLAS that wait for work after a pass would count as work of the fit behind it
            with threadpool_limits(1):
                rigorous = processor(fit)
                with taking_rounding_for_granted():
                    plain = processor(fit)
                times.append((rigorous, plain, processor(unit)))
        same = "" if model.n_iter_ == steps else f", {model.n_iter_} steps instead of {steps}"
        rigorous, plain, one = np.median(times, axis=0)
        report(f"exact {name}", (rigorous - plain) / one, f"passes of {rigorous / one:.3g}{same}", 1.0)


def machine() -> None:
    from sklearn.svm import SVC as Reference

    from multikernel.machines.svc import SVC

    for n in (1000, 2000, 5000):
        K, _, y, _ = binary(n, 10)
        K = K.mean(axis=0, dtype=np.float64)
        for C in (1.0, 10.0):
            baseline = Reference(kernel="precomputed", C=C)
            start = SVC(y, C / 1.25).fit(K)
            ours = SVC(y, C)
            ours.fit(K)
            cold = ratio(lambda: ours.fit(K), lambda: baseline.fit(K, y))
            warm = ratio(lambda: ours.fit(K, start=start), lambda: baseline.fit(K, y))
            report(f"machine n={n} C={C:g}", cold, "x SVC's time", 1.0)
            report(f"machine n={n} C={C:g} warm from C={C / 1.25:g}", warm, "x SVC's time", 0.2)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory() -> None:
    # a process each, in which freed memory of large arrays returns to the system at once
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    for n, p, C in ((2000, 20, 1), (2000, 8, 1), (2000, 8, 100), (5000, 10, 1), (5000, 10, 100)):
        subprocess.run([sys.executable, __file__, "memory_of", str(n), str(p), str(C)], env=environment, check=True)


def memory_of(n: str, p: str, C: str) -> None:
    from multikernel import MKLClassifier, stack_kernels

    K, _, y, _ = binary(int(n), 10)
    K = np.ascontiguousarray(K[np.linspace(0, len(K) - 1, int(p)).astype(int)])
    small = slice(0, 200)
    MKLClassifier("precomputed").fit(stack_kernels(np.ascontiguousarray(K[:, small, small])), y[small])
    peak = [before := resident()]
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.001):
            peak[0] = max(peak[0], resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    MKLClassifier("precomputed", C=float(C)).fit(stack_kernels(K), y)
    stop.set()
    watcher.join()
    report(f"memory n={n} p={p} C={C}", (peak[0] - before) / K.nbytes, "of the stack", 0.25)


START = """
import time
began = time.perf_counter()
import multikernel
imported = time.perf_counter() - began
import numpy as np
from multikernel import MKLClassifier, stack_kernels
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 5))
MKLClassifier().fit(X, X[:, 0] > 0)
print(imported, time.perf_counter() - began)
"""


def start() -> None:
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        for name, bar in (("empty cache", 15.0), ("warm cache", 2.0)):
            output = subprocess.run(
                [sys.executable, "-c", START], env=environment, check=True, capture_output=True, text=True
            ).stdout
            imported, first = map(float, output.split())
            report(f"import multikernel, {name}", imported / 1.0, "of 1 second", 1.0)
            report(f"first fit of a process, {name}", first / bar, f"of {bar:g} seconds", 1.0)


if __name__ == "__main__":
    parts = {"passes": passes, "exact": exact, "machine": machine, "memory": memory, "start": start}
    if sys.argv[1:2] == ["memory_of"]:
        memory_of(*sys.argv[2:])
    else:
        for part in sys.argv[1:] or parts:
            parts[part]()
