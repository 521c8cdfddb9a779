"""Hundreds of kernels that are never stored: 50 groups of columns, 11 Gaussian kernels on each, norm 1.

    python benchmarks/many.py [--samples 10000] [--groups 50] [--C 1] [--tol 1e-2] [--memory 8GiB] [--check]

    python benchmarks/many.py --weak 500 [--samples 500] [--C 1] [--tol 1e-2] [--memory 2GB]

The second form draws weak kernels: one Gaussian a column, of which two matter. It fits them as a stored stack, checks
included, in passes over the stack (np.tensordot(beta, K, 1)); and from the columns, never stored, in sweeps.

A sweep is the computation of all n^2 p kernel values. Printed: values computed, in sweeps (by symmetry half a sweep
can give all values); seconds, and seconds of one sweep of rows in the same run; peak memory of the process; the gap,
and the gap recomputed here from kernels, weights and coefficients.
"""

from __future__ import annotations

import argparse
import resource
import sys
import threading
import time

import numpy as np

WIDTHS, COLUMNS = 11, 3
# number of rows, of all kernels, timed to estimate a sweep
ROWS = 64
# bytes up to which weak kernels are fitted as a stored stack as well, and how often
STORED, REPEATS = 2**31, 3


def informative(groups: int) -> list[int]:
    return list(range(2, groups, max(1, groups // 5)))[:5]


def many(n: int, groups: int = 50, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw n samples of two classes in ``groups`` groups of three columns; five groups separate the classes.

    Each of the five adds a wave along a line, the radius or a slope; noise blurs the boundary, and 5 % of the labels
    are flipped.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, COLUMNS * groups))
    score = 0.3 * rng.standard_normal(n)
    for j, g in enumerate(informative(groups)):
        Z = X[:, COLUMNS * g : COLUMNS * (g + 1)]
        part = (np.sin(2.0 * Z @ np.ones(COLUMNS)), np.square(Z).sum(axis=1), Z[:, 0] + Z[:, 1])[j % 3]
        score += (part - part.mean()) / part.std()
    y = np.where(score > np.median(score), 1.0, -1.0)
    y[rng.random(n) < 0.05] *= -1.0
    return X, y


def weak(n: int, p: int, seed: int = 13) -> tuple[np.ndarray, np.ndarray]:
    """Draw n samples of p columns and noisy labels; two columns matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.sign(np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 1 + 0.3 * rng.standard_normal(n))


def run_weak(options) -> None:
    from multikernel import MKLClassifier, stack_kernels
    from multikernel.kernels import RBF, per_column

    n, p, common = options.samples, options.weak, {"C": options.C, "tol": options.tol, "solver": options.solver}
    X, y = weak(n, p)
    if 4 * p * n * n <= STORED:
        K = np.array([np.exp(-np.square(x[:, None] - x) / 2.0) for x in X.T], np.float32)
        K /= (1.0 - K.mean(axis=(1, 2)))[:, None, None]
        stack, beta, times = stack_kernels(K), np.full(p, 1.0 / p, np.float32), []
        MKLClassifier("precomputed", **common).fit(stack[: n // 4], y[: n // 4])
        for _ in range(REPEATS):
            model = MKLClassifier("precomputed", **common)
            began = time.process_time()
            model.fit(stack, y)
            fitted = time.process_time()
            np.tensordot(beta, K, 1)
            times.append((fitted - began, time.process_time() - fitted))
        fit, one = np.median(times, axis=0)
        print(f"n={n} p={p} C={options.C:g} stored, {model.solver_}: {model.status_}, gap {model.duality_gap_:.3g}")
        print(f"  {fit / one:.3g} passes, {model.n_iter_} iterations, {np.count_nonzero(model.weights_)} with weight")
    model = MKLClassifier([per_column(RBF())], gram="lazy", memory_limit=options.memory, **common)
    began = time.process_time()
    with Counter() as counter:
        model.fit(X, y)
    fit = time.process_time() - began
    sweep = sweep_seconds(model, X, n_jobs=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"n={n} p={p} C={options.C:g} lazy, {model.solver_}: {model.status_}, gap {model.duality_gap_:.3g}")
    print(
        f"  {counter.values / (n * n * p):.3g} sweeps of values, {fit / sweep:.3g} of time, {peak:.2f} GiB", flush=True
    )


def kernels(groups: int, widths: int = WIDTHS) -> list:
    from multikernel.kernels import per_group, rbf_family

    columns = {f"g{g}": list(range(COLUMNS * g, COLUMNS * (g + 1))) for g in range(groups)}
    return [per_group(rbf_family(factors=widths), columns)]


class Counter:
    """Counts the kernel values that a bank computes."""

    def __init__(self) -> None:
        from multikernel.kernels.bank import KernelBank

        self.values, self._lock, self._bank = 0, threading.Lock(), KernelBank
        self._each = KernelBank.raw_each

    def __enter__(self) -> Counter:
        def counted(bank, *args, **options):
            for k, K in self._each(bank, *args, **options):
                with self._lock:
                    self.values += K.size
                yield k, K

        self._bank.raw_each = counted
        return self

    def __exit__(self, *_) -> None:
        self._bank.raw_each = self._each


def recomputed_gap(model, X: np.ndarray, y: np.ndarray, C: float) -> float:
    """Bounds over all kernels, recomputed from weights and coefficients: hinge loss, norm 1."""
    from multikernel.kernels import KernelBank

    n = len(y)
    a = np.zeros(n)
    a[model.support_] = np.ravel(model.dual_coef_)
    assert np.all(y * a >= 0) and np.all(y * a <= C * (1 + 1e-12)) and abs(a.sum()) <= 1e-9 * C * n
    bank = KernelBank.fit(model.kernels, X)
    q, f = np.zeros(bank.n_kernels), np.zeros(n)
    sums, traces = np.zeros(bank.n_kernels), np.zeros(bank.n_kernels)
    F = np.zeros((bank.n_kernels, n))
    for i in range(0, n, 256):
        rows = slice(i, min(i + 256, n))
        for k, K in bank.raw_each(X[rows], X, None, np.float32):
            F[k, rows] = K.astype(np.float64) @ a
            sums[k] += K.sum(dtype=np.float64)
            traces[k] += len(K)
    scale = 1.0 / (traces / n - sums / n**2)
    q = scale * (F @ a)
    f = (model.weights_ * scale) @ F + np.ravel(model.intercept_)[0]
    upper = 0.5 * float(model.weights_ @ q) + C * float(np.maximum(0.0, 1.0 - y * f).sum())
    return (upper - (float(y @ a) - 0.5 * float(q.max()))) / upper


def sweep_seconds(model, X: np.ndarray, n_jobs: int | None = None) -> float:
    """Seconds for all rows of all kernels, estimated from a few rows."""
    from multikernel.threads import resolve_threads
    from multikernel.training.core import Settings
    from multikernel.training.prepare import prepare

    # memory for the combined kernel, none for stored rows
    limit = 8.001 * len(X) ** 2
    settings = Settings("the benchmark", gram="lazy", memory_limit=limit, n_threads=resolve_threads(n_jobs))
    prepared = prepare(model.kernels, X, None, settings)
    idx = np.arange(0, len(X), max(1, len(X) // ROWS))[:ROWS]
    began = time.perf_counter()
    prepared.gram.rows(idx)
    return (time.perf_counter() - began) * len(X) / len(idx)


COLUMNS_OF_HISTORY = ("time", "upper", "gap", "active", "listed", "inner_steps")


def run(options) -> None:
    from multikernel import MKLClassifier, MKLRegressor

    n, p = options.samples, options.groups * options.widths
    X, y = many(n, options.groups)
    common = {key: getattr(options, key) for key in ("C", "tol", "solver")}
    common |= {"gram": "lazy", "memory_limit": options.memory}
    if options.loss == "hinge":
        model = MKLClassifier(kernels(options.groups, options.widths), **common)
    else:
        model = MKLRegressor(kernels(options.groups, options.widths), loss="squared", **common)
    began, cpu = time.perf_counter(), time.process_time()
    with Counter() as counter:
        model.fit(X, y)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    if options.history:
        keys = [key for key in COLUMNS_OF_HISTORY if key in model.history_]
        print("  ", *keys)
        for row in zip(*(model.history_[key] for key in keys), strict=True):
            print("  ", *(f"{value:.5g}" for value in row))
    useful = tuple(f"[g{g}]" for g in informative(options.groups))
    share = sum(model.weights_[[name.endswith(useful) for name in model.kernel_names_]])
    print(f"n={n} p={p} loss={options.loss} C={options.C:g} tol={options.tol:g} {model.solver_}: {model.status_}")
    print(f"  gap {model.duality_gap_:.3g}, {model.n_iter_} iterations, {len(model.support_)} support vectors")
    print(f"  {np.count_nonzero(model.weights_)} kernels with weight, {share:.3f} of it on the groups that matter")
    print(f"  {counter.values / (n * n * p):.3g} sweeps of values, {seconds:.1f} s, {cpu:.1f} s of processors")
    print(f"  peak memory {peak:.2f} GiB", flush=True)
    if options.check:
        sweep = sweep_seconds(model, X)
        print(f"  {seconds / sweep:.3g} sweeps of time (one sweep of all rows: {sweep:.1f} s)", flush=True)
        if options.loss == "hinge":
            print(f"  gap recomputed over all kernels {recomputed_gap(model, X, y, options.C):.3g}")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, help="10,000, or 500 with --weak")
    parser.add_argument("--weak", type=int)
    parser.add_argument("--groups", type=int, default=50)
    parser.add_argument("--widths", type=int, default=WIDTHS)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--memory", default="8GiB")
    parser.add_argument("--loss", default="hinge", choices=["hinge", "squared"])
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--history", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    options.samples = options.samples or (500 if options.weak else 10_000)
    (run_weak if options.weak else run)(options)


if __name__ == "__main__":
    main(sys.argv[1:])
