"""Joint multiclass fits on a precomputed stack, including checks, in passes over the stack in the same run.

    python benchmarks/joint.py [name ...]       toy, classes, samples, views, outputs (all by default)

Class centres at the vertices of the simplex, Gaussian kernels of many widths (Zien & Ong 2007, 3.1); ``views`` is 102
classes of 15 samples with 48 kernels, and its peak memory; ``outputs`` has kernels on the classes, among them the
identity, which gives the problem without kernels on the classes. Gaps are recomputed here in float64 from weights,
coefficients and intercepts.
"""

from __future__ import annotations

import resource
import sys

import numpy as np
from gaps import joint_bounds
from run import ratio, report
from tasks import stack_of
from workloads import one_pass, views

# name: (n, classes, norm, tol, bar in passes)
FITS = {
    "toy": [(1000, 5, 1, 1e-3, 30), (1000, 5, 1, 1e-5, 90), (1000, 5, 2, 1e-3, 60)],
    "classes": [(1000, 20, 1, 1e-3, 75)],
    "samples": [(2000, 5, 1, 1e-3, 40)],
}


def simplex(n: int, classes: int, kernels: int = 10, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Noise 0.3 around the vertices of the simplex."""
    y = np.arange(n) % classes
    X = np.eye(classes)[y] + 0.3 * np.random.default_rng(seed).standard_normal((n, classes))
    return stack_of(X, np.logspace(-2, 2, kernels)), y


def recomputed_gap(K: np.ndarray, y: np.ndarray, model, C: float = 1.0) -> float:
    """Return the gap of a fitted model of the joint hinge."""
    A = np.zeros((len(y), len(model.classes_)))
    A[model.support_] = model.dual_coef_.T
    upper, lower = joint_bounds(K, y, model.weights_, A, model.intercept_, C, model.norm)
    return (upper - lower) / upper


def passes(fits) -> None:
    for n, classes, norm, tol, bar in fits:
        measure(*simplex(n, classes), norm, tol, bar)


def measure(K: np.ndarray, y: np.ndarray, norm: float, tol: float, bar: float, repeats: int = 7) -> None:
    """Report the gap and the passes of one fit."""
    from multikernel import MKLClassifier, stack_kernels

    stack = stack_kernels(K)
    model = MKLClassifier("precomputed", multiclass="joint", normalize=None, norm=norm, tol=tol).fit(stack, y)
    what = f"joint n={len(y)} classes={len(model.classes_)} p={len(K)} norm={norm} gap {tol:g}"
    report(f"{what}: recomputed", recomputed_gap(K, y, model) / tol, "of the gap asked for", 1.001)
    report(what, ratio(lambda: model.fit(stack, y), lambda: one_pass(K, 1), repeats), "passes", bar)


def many_classes(n_classes: int = 102, per_class: int = 15, n_kernels: int = 48) -> None:
    """Many classes of few samples, and the peak memory of this process."""
    measure(*views(n_classes, per_class, n_kernels), 1, 1e-2, 600, repeats=3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    report(f"memory of {n_classes} classes, {n_kernels} kernels", peak, "GiB", 8)


def outputs(n: int = 600, classes: int = 6) -> None:
    """Kernels on the classes, as multiples of the time without them."""
    from multikernel import MKLClassifier, stack_kernels

    K, y = simplex(n, classes)
    stack, groups = stack_kernels(K), np.arange(classes) % 2
    joint = MKLClassifier("precomputed", multiclass="joint", normalize=None)
    block = 1.0 * (groups[:, None] == groups)
    cases = {"the identity": ([np.eye(classes)], 1.2), "groups": ([np.eye(classes), block], 3.0)}
    for name, (kernels, bar) in cases.items():
        model = MKLClassifier(**{**joint.get_params(), "output_kernels": kernels})
        joint.fit(stack, y)
        model.fit(stack, y)
        figure = ratio(lambda model=model: model.fit(stack, y), lambda: joint.fit(stack, y))
        report(f"output kernels: {name}, n={n} classes={classes} p={len(K)}", figure, "x the plain fit", bar)


if __name__ == "__main__":
    for name in sys.argv[1:] or [*FITS, "views", "outputs"]:
        if name == "views":
            many_classes()
        elif name == "outputs":
            outputs()
        else:
            passes(FITS[name])
