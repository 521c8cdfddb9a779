"""Every solver on the same problems, in passes over the stack, the fastest marked: the evidence for what `auto` takes.

python benchmarks/solvers.py [n]        samples, 500 by default
"""

from __future__ import annotations

import sys
import time

import numpy as np
from workloads import binary, one_pass

from multikernel.gram.dense import DenseGram
from multikernel.machines.svc import SVC
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Problem
from multikernel.solve import choose_solver, solve
from multikernel.solvers import REGISTRY, get_solver, missing
from multikernel.threads import resolve_threads

LIMIT = 300  # outer iterations after which a solver counts as not arriving


def columns(n: int) -> tuple[np.ndarray, np.ndarray]:
    """40 linear kernels of one column each: rank one, where no single a certifies the optimum."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 40))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return np.stack([np.outer(x, x) for x in X.T]).astype(np.float32), y


def main(n: int) -> None:
    K, _, y, _ = binary(n, 10)
    linear, labels = columns(n)
    cases = [
        (f"gaussian norm={norm:g} C={C:g} gap {tol:g}", K, y, norm, C, tol)
        for norm, C, tol in ((1, 1, 1e-3), (1, 1, 1e-5), (1, 100, 1e-3), (4 / 3, 1, 1e-3), (2, 1, 1e-3), (2, 1, 1e-5))
    ]
    cases.append(("one column each, norm=1 C=10 gap 0.001", linear, labels, 1, 10, 1e-3))
    print(f"{'passes, n = ' + str(n):<42}" + "".join(f"{name:>13}" for name in REGISTRY))
    for title, stack, target, norm, C, tol in cases:
        problem = Problem(DenseGram(stack, n_threads=resolve_threads()), SVC(target, C), mixing_for(norm))
        figures = {}
        for name in REGISTRY:
            # the conic program of several hundred samples takes minutes
            if missing(problem, *get_solver(name).requires) or (name == "qcqp" and n > 100):
                continue
            seconds, unit = [], []
            for _ in range(3):
                began = time.perf_counter()
                solution = solve(problem, name, tol=tol, max_iter=LIMIT)
                seconds.append(time.perf_counter() - began)
                unit.append(one_pass(stack, 1))
            figures[name] = np.median(seconds) / np.median(unit) if solution.gap <= tol else np.inf
        best = min(figures, key=figures.get)
        cells = [f"{figures[name]:.0f}{'*' if name == best else ''}" if name in figures else "-" for name in REGISTRY]
        line = "".join(f"{cell:>13}" for cell in cells)
        print(f"{title:<42}{line}   auto: {choose_solver(problem)}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
