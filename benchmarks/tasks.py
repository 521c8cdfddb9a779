"""Regression and one class: whole fits against scikit-learn's machine on the mean of the kernels, in one run.

    python benchmarks/tasks.py [name ...]       regression, oneclass (both by default)

A fit may take 10 times the time of scikit-learn or 150 passes over the stack, whichever is more. Gaps are recomputed
here in float64 from weights and coefficients.
"""

from __future__ import annotations

import sys

import numpy as np
from run import ratio, report
from workloads import _gaussian, one_pass

# (norm, C, tol)
REGRESSIONS = [(1, 1.0, 1e-3), (2, 1.0, 1e-3), (1, 10.0, 1e-3), (1, 100.0, 1e-3), (1, 1.0, 1e-5)]
# (norm, nu, tol)
PLANES = [(1, 0.5, 1e-3), (2, 0.5, 1e-3), (1, 0.1, 1e-3), (2, 0.01, 1e-3), (2, 0.5, 1e-5)]
EPSILON = 0.1


def stack_of(X: np.ndarray, widths) -> np.ndarray:
    """Gaussian kernels exp(-|x - z|^2 / width), each divided by its variance in feature space, float32."""
    K = np.empty((len(widths), len(X), len(X)), np.float32)
    for k, width in enumerate(widths):
        G = _gaussian(X, X, width)
        G = 0.5 * (G + G.T)
        np.fill_diagonal(G, 1.0)
        K[k] = G / (1.0 - G.mean())
    return K


def wave_samples(n: int, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """A line plus two sines, noise 0.1 (Sonnenburg et al. 2005, 5.2)."""
    rng = np.random.default_rng(seed)
    x = 10 * rng.random(n)
    return x[:, None], 0.2 * x + np.sin(x) + np.sin(6 * x) + 0.1 * rng.standard_normal(n)


def waves(n: int = 2000, kernels: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """The samples of `wave_samples` under Gaussian kernels of many widths."""
    X, y = wave_samples(n)
    return stack_of(X, np.logspace(-3, 2, kernels)), y


def blob_samples(n: int, seed: int = 9) -> np.ndarray:
    """Two Gaussian clusters in four columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4)) * [1.0, 1.0, 0.3, 0.3]
    return X + np.where(rng.random((n, 1)) < 0.5, 2.0, -2.0)


def blobs(n: int = 2000) -> np.ndarray:
    """The samples of `blob_samples` under five widths."""
    return stack_of(blob_samples(n), (0.5, 2.0, 8.0, 32.0, 128.0))


def bounds(K: np.ndarray, model, loss, linear) -> float:
    """Relative gap of a model: 1/2 beta'q + loss(f) against linear(a) - 1/2 ||q||_{r*}."""
    a = np.zeros(K.shape[1])
    a[model.support_] = model.dual_coef_
    F = np.array([each.astype(np.float64) @ a for each in K])
    q = np.maximum(F @ a, 0.0)
    dual = np.inf if model.norm == 1 else model.norm / (model.norm - 1.0)
    upper = 0.5 * float(model.weights_ @ q) + loss(model.weights_ @ F)
    return (upper - linear(a) + 0.5 * float(np.linalg.norm(q, dual))) / abs(upper)


def compare(what: str, K: np.ndarray, model, baseline, tol: float, gap: float) -> None:
    against, passes = ratio(model, baseline), ratio(model, lambda: one_pass(K, 1))
    report(f"{what} gap {tol:g}: recomputed", gap / tol, "of the gap asked for", 1.001)
    report(f"{what} gap {tol:g}", against, "x the baseline's time", max(10.0, 150.0 * against / passes))
    report(f"{what} gap {tol:g}", passes, "passes", max(150.0, 10.0 * passes / against))


def regression() -> None:
    from sklearn.svm import SVR

    from multikernel import MKLRegressor, stack_kernels

    K, y = waves()
    stack, uniform = stack_kernels(K), K.mean(axis=0, dtype=np.float64)
    for norm, C, tol in REGRESSIONS:
        model = MKLRegressor("precomputed", norm=norm, C=C, epsilon=EPSILON, normalize=None, tol=tol).fit(stack, y)

        def loss(f, model=model, C=C):
            return C * float(np.maximum(0.0, np.abs(y - f - model.intercept_) - EPSILON).sum())

        gap = bounds(K, model, loss, lambda a: float(y @ a) - EPSILON * float(np.abs(a).sum()))
        baseline = SVR(kernel="precomputed", C=C, epsilon=EPSILON)
        compare(f"SVR n={len(y)} p={len(K)} norm={norm} C={C:g}", K, lambda model=model: model.fit(stack, y),
                lambda baseline=baseline: baseline.fit(uniform, y), tol, gap)  # fmt: skip


def oneclass() -> None:
    from sklearn.svm import OneClassSVM

    from multikernel import MKLOneClass, stack_kernels

    K = blobs()
    stack, uniform = stack_kernels(K), K.mean(axis=0, dtype=np.float64)
    for norm, nu, tol in PLANES:
        model = MKLOneClass("precomputed", norm=norm, nu=nu, normalize=None, tol=tol).fit(stack)

        def loss(f, nu=nu):
            # rho = f_(m), m = nu n: the nu-quantile of the outputs
            rho = np.sort(f)[max(int(np.ceil(nu * len(f))) - 1, 0)]
            return -rho + float(np.maximum(0.0, rho - f).sum()) / (nu * len(f))

        gap = bounds(K, model, loss, lambda a: 0.0)
        baseline = OneClassSVM(kernel="precomputed", nu=nu)
        compare(f"one class n={K.shape[1]} p={len(K)} norm={norm} nu={nu:g}", K, lambda model=model: model.fit(stack),
                lambda baseline=baseline: baseline.fit(uniform), tol, gap)  # fmt: skip


if __name__ == "__main__":
    parts = {"regression": regression, "oneclass": oneclass}
    for part in sys.argv[1:] or parts:
        parts[part]()
