"""Least squares with many targets: the figures of `benchmarks/run.py` for the losses that share their weights.

    python benchmarks/losses.py [name ...]       ridge, himalaya (both by default)

ridge       a whole fit on a precomputed stack, checks included, in Cholesky factorisations of one kernel (float64)
himalaya    the same kernels and targets by himalaya's MultipleKernelRidgeCV (hyper-gradient), in our time, at its best
            held-out score against ours; needs the package himalaya, a rival that only this benchmark installs
"""

from __future__ import annotations

import sys

import numpy as np
from run import ratio, report, timed
from scipy.linalg import cholesky

TARGETS, WIDTHS = 10, (0.3, 1.0, 3.0)


def targets(n: int = 2000, n_test: int = 1000, seed: int = 1) -> tuple[np.ndarray, ...]:
    """Make ten targets that depend on two of four groups of columns, under Gaussian kernels of three widths each.

    Returns
    -------
    K : ndarray of shape (12, n, n), float32
    K_test : ndarray of shape (12, n_test, n), float32
    Y, Y_test : ndarrays of shape (n, 10) and (n_test, 10), noise of variance one fifth of the signal's
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + n_test, 8))
    G = np.tanh(X[:, :4] @ rng.standard_normal((4, TARGETS))) + np.sin(2 * X[:, :2] @ rng.standard_normal((2, TARGETS)))
    Y = G / G.std(axis=0) + np.sqrt(0.2) * rng.standard_normal(G.shape)
    K = np.empty((12, n + n_test, n), np.float32)
    for g in range(4):
        A = X[:, 2 * g : 2 * g + 2]
        square = np.square(A).sum(axis=1)
        distance = np.maximum(square[:, None] + square[:n] - 2 * A @ A[:n].T, 0)
        for w, width in enumerate(WIDTHS):
            part = np.exp(-distance / (2 * width**2))
            part[:n] = 0.5 * (part[:n] + part[:n].T)
            K[3 * g + w] = part / (1.0 - part[:n].mean())
    return np.ascontiguousarray(K[:, :n]), K[:, n:], Y[:n], Y[n:]


def ridge() -> None:
    from multikernel import MKLRegressor, stack_kernels

    K, _, Y, _ = targets()
    for dtype in (np.float32, np.float64):
        stack = stack_kernels(K.astype(dtype))
        S = K.mean(axis=0, dtype=np.float64) + np.eye(len(Y))
        for C in (1.0, 10.0):
            model = MKLRegressor("precomputed", loss="squared", C=C, tol=1e-4).fit(stack, Y)
            assert model.duality_gap_ <= 1e-4
            figure = ratio(lambda model=model, stack=stack: model.fit(stack, Y), lambda: cholesky(S), 3)
            name = f"least squares n=2000 c=10 p=12 C={C:g} gap 1e-4 {np.dtype(dtype).name}"
            report(name, figure, "Cholesky factors", 15.0)


def himalaya() -> None:
    from himalaya.kernel_ridge import MultipleKernelRidgeCV
    from sklearn.metrics import r2_score

    from multikernel import MKLRegressor, stack_kernels

    K, K_test, Y, Y_test = targets()
    stack, test = stack_kernels(K), stack_kernels(K_test)
    model = MKLRegressor("precomputed", loss="squared", C=10.0, tol=1e-4)
    model.fit(stack, Y)
    ours = float(np.median([timed(lambda: model.fit(stack, Y)) for _ in range(3)]))
    score = r2_score(Y_test, model.predict(test))
    rival = MultipleKernelRidgeCV(
        kernels="precomputed", solver="hyper_gradient", solver_params={"progress_bar": False}, cv=3, random_state=0
    )
    theirs = timed(lambda: rival.fit(K.copy(), Y))
    other = float(np.mean(rival.score(K_test.copy(), Y_test)))
    report("time of ours over himalaya's hyper-gradient", ours / theirs, "of its time", 0.2)
    report("held-out R2, himalaya's minus ours", other - score, f"(ours {score:.3f})", 0.0)


if __name__ == "__main__":
    parts = {"ridge": ridge, "himalaya": himalaya}
    for part in sys.argv[1:] or parts:
        parts[part]()
