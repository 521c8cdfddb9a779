"""Joint multiclass fits on a precomputed stack, checks included, in passes over the stack of the same run.

    python benchmarks/joint.py [name ...]       toy, classes, samples (all by default)

Class centres at the vertices of the simplex, Gaussian kernels of many widths (Zien & Ong 2007, 3.1). Gaps are
recomputed here in float64 from weights, coefficients and intercepts alone.
"""

from __future__ import annotations

import sys

import numpy as np
from run import ratio, report
from tasks import stack_of
from workloads import one_pass

# name: (n, classes, norm, tol, bar in passes)
FITS = {
    "toy": [(1000, 5, 1, 1e-3, 60), (1000, 5, 1, 1e-5, 90), (1000, 5, 2, 1e-3, 60)],
    "classes": [(1000, 20, 1, 1e-3, 150)],
    "samples": [(2000, 5, 1, 1e-3, 40)],
}


def simplex(n: int, classes: int, kernels: int = 10, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Noise 0.3 around the vertices of the simplex."""
    y = np.arange(n) % classes
    X = np.eye(classes)[y] + 0.3 * np.random.default_rng(seed).standard_normal((n, classes))
    return stack_of(X, np.logspace(-2, 2, kernels)), y


def recomputed_gap(K: np.ndarray, y: np.ndarray, model, C: float = 1.0) -> float:
    """1/2 beta'q + the loss of (f + b) against sum_i A_iy - 1/2 ||q||_{r*}, A in its set."""
    n, c = len(y), len(model.classes_)
    A = np.zeros((n, c))
    A[model.support_] = model.dual_coef_.T
    E = np.eye(c)[y]
    assert (A <= C * E + 1e-12).all() and np.abs(A.sum(axis=0)).max() + np.abs(A.sum(axis=1)).max() < 1e-9 * C * n
    F = np.array([each.astype(np.float64) @ A for each in K])
    q = np.tensordot(F, A, 2)
    f = np.tensordot(model.weights_, F, 1) + model.intercept_
    loss = C * (1.0 - E + f - f[np.arange(n), y][:, None]).max(axis=1).sum()
    dual = np.inf if model.norm == 1 else model.norm / (model.norm - 1.0)
    upper = 0.5 * float(model.weights_ @ q) + float(loss)
    return (upper - float(np.sum(A * E)) + 0.5 * float(np.linalg.norm(q, dual))) / upper


def passes(fits) -> None:
    from multikernel import MKLClassifier, stack_kernels

    for n, classes, norm, tol, bar in fits:
        K, y = simplex(n, classes)
        stack = stack_kernels(K)
        model = MKLClassifier("precomputed", multiclass="joint", normalize=None, norm=norm, tol=tol)
        model.fit(stack, y)
        what = f"joint n={n} classes={classes} p={len(K)} norm={norm} gap {tol:g}"
        report(f"{what}: recomputed", recomputed_gap(K, y, model) / tol, "of the gap asked for", 1.001)
        figure = ratio(lambda model=model, stack=stack, y=y: model.fit(stack, y), lambda K=K: one_pass(K, 1))
        report(what, figure, "passes", bar)


if __name__ == "__main__":
    for name in sys.argv[1:] or FITS:
        passes(FITS[name])
