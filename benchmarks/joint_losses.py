"""Joint fits with losses other than the hinge, including checks, in passes over the stack in the same run.

    python benchmarks/joint_losses.py [loss ...]     squared_hinge, smooth_hinge, logistic, multinomial (all by default)

The problems of ``joint.py``. Gaps are recomputed here in float64 from weights, coefficients and intercepts, with
formulas of the conjugates written independently (Zien & Ong 2007, Theorem 1).
"""

from __future__ import annotations

import sys

import numpy as np
from joint import simplex
from run import ratio, report
from scipy.special import logsumexp, xlogy
from workloads import one_pass

# (n, classes, norm, C, tol, bar in passes)
FITS = [
    (1000, 5, 1, 1.0, 1e-3, 200),
    (1000, 5, 1, 1.0, 1e-6, 300),
    (1000, 5, 2, 1.0, 1e-3, 200),
    (1000, 5, 1, 100.0, 1e-3, 200),
    (1000, 20, 1, 1.0, 1e-3, 500),
    (2000, 5, 1, 1.0, 1e-3, 200),
]


def _entropy(u: np.ndarray) -> np.ndarray:
    return xlogy(u, u) + xlogy(1.0 - u, 1.0 - u)


# loss of (largest output of a wrong class) - (output of the right class), and its conjugate, at cost one
LARGEST = {
    "squared_hinge": (lambda t: np.maximum(0.0, 1.0 + t) ** 2, lambda u: 0.25 * u**2 - u),
    "smooth_hinge": (lambda t: np.logaddexp(0.0, 10.0 * (1.0 + t)) / 10.0, lambda u: _entropy(u) / 10.0 - u),
    "logistic": (lambda t: np.logaddexp(0.0, t), _entropy),
}


def recomputed_gap(K: np.ndarray, y: np.ndarray, model) -> float:
    """1/2 beta'q + the loss of (f + b) against -sum_i C l*(-A_i / C) - 1/2 ||q||_{r*}, A in its set."""
    n, c, C, rows = len(y), len(model.classes_), model.C, np.arange(len(y))
    A = np.zeros((n, c))
    A[model.support_] = model.dual_coef_.T
    E = np.eye(c)[y]
    sums = np.abs(A.sum(axis=0)).max() + np.abs(A.sum(axis=1)).max()
    assert sums < 1e-9 * C * n and (A[E == 0] <= 1e-12 * C).all()
    assert model.loss == "squared_hinge" or (A <= C * (1 + 1e-12)).all()
    F = np.array([each.astype(np.float64) @ A for each in K])
    q = np.tensordot(F, A, 2)
    f = np.tensordot(model.weights_, F, 1) + model.intercept_
    if model.loss == "multinomial":
        p = np.maximum(E - A / C, 0.0)
        loss, conjugate = logsumexp(f, axis=1) - f[rows, y], xlogy(p, p).sum(axis=1)
    else:
        value, price = LARGEST[model.loss]
        loss = value(np.where(E > 0, -np.inf, f).max(axis=1) - f[rows, y])
        conjugate = price(np.maximum(A[rows, y] / C, 0.0))
    dual = np.inf if model.norm == 1 else model.norm / (model.norm - 1.0)
    upper = 0.5 * float(model.weights_ @ q) + C * float(loss.sum())
    return (upper + C * float(conjugate.sum()) + 0.5 * float(np.linalg.norm(q, dual))) / upper


def passes(loss: str, fits=FITS, repeats: int = 5) -> None:
    """Report the gap and the passes of each fit."""
    from multikernel import MKLClassifier, stack_kernels

    for n, classes, norm, C, tol, bar in fits:
        K, y = simplex(n, classes)
        stack = stack_kernels(K)
        model = MKLClassifier("precomputed", loss=loss, normalize=None, norm=norm, C=C, tol=tol).fit(stack, y)
        what = f"{loss} n={n} classes={classes} norm={norm} C={C:g} gap {tol:g}"
        report(f"{what}: recomputed", recomputed_gap(K, y, model) / tol, "of the gap asked for", 1.001)
        fit = ratio(lambda model=model, stack=stack, y=y: model.fit(stack, y), lambda K=K: one_pass(K, 1), repeats)
        report(what, fit, "passes", bar)


if __name__ == "__main__":
    for name in sys.argv[1:] or [*LARGEST, "multinomial"]:
        passes(name)
