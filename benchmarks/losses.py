"""Least squares with many targets that share one set of weights, in the manner of `benchmarks/run.py`.

    python benchmarks/losses.py [name ...]       ridge, himalaya (both by default)

ridge       a whole fit on a precomputed stack, including checks, in Cholesky factorisations of that size (float64);
            both on one thread
himalaya    time and held-out score, n = 1000, of a grid over C on three folds and of himalaya's MultipleKernelRidgeCV
            (hyper-gradient, ten steps) on the same kernels; needs the package himalaya, which only this benchmark uses
"""

from __future__ import annotations

import sys

import numpy as np
from run import ratio, report, timed
from scipy.linalg import cholesky

TARGETS, WIDTHS = 10, (0.3, 1.0, 3.0)


def targets(n: int = 2000, n_test: int = 1000, seed: int = 1, dtype: type = np.float32) -> tuple[np.ndarray, ...]:
    """Make ten targets that depend on two of four groups of columns, under Gaussian kernels of three widths each.

    Returns
    -------
    K : ndarray of shape (12, n, n), of ``dtype``
    K_test : ndarray of shape (12, n_test, n), of ``dtype``
    Y, Y_test : ndarrays of shape (n, 10) and (n_test, 10), noise of variance one fifth of the signal's
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + n_test, 8))
    G = np.tanh(X[:, :4] @ rng.standard_normal((4, TARGETS))) + np.sin(2 * X[:, :2] @ rng.standard_normal((2, TARGETS)))
    Y = G / G.std(axis=0) + np.sqrt(0.2) * rng.standard_normal(G.shape)
    K = np.empty((12, n + n_test, n), dtype)
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
    from multikernel.threads import single_threaded_blas

    for dtype in (np.float32, np.float64):
        K, _, Y, _ = targets(n_test=1, dtype=dtype)
        stack, S = stack_kernels(K), K.mean(axis=0, dtype=np.float64) + np.eye(len(Y))

        def factorise(S=S) -> None:
            # one thread: threads that wait by spinning would measure other work on a shared machine
            with single_threaded_blas():
                cholesky(S)

        for C in (1.0, 10.0):
            model = MKLRegressor("precomputed", loss="squared", C=C, tol=1e-4, n_jobs=1).fit(stack, Y)
            assert model.duality_gap_ <= 1e-4
            figure = ratio(lambda model=model, stack=stack: model.fit(stack, Y), factorise, 3)
            name = f"least squares n=2000 c=10 p=12 C={C:g} gap 1e-4 {np.dtype(dtype).name}"
            report(name, figure, "Cholesky factors", 15.0)


def himalaya() -> None:
    from himalaya.kernel_ridge import MultipleKernelRidgeCV
    from sklearn.metrics import r2_score
    from sklearn.model_selection import GridSearchCV

    from multikernel import MKLRegressor, stack_kernels

    K, K_test, Y, Y_test = targets(1000, 500)
    stack, test = stack_kernels(K), stack_kernels(K_test)
    model = MKLRegressor("precomputed", loss="squared", tol=1e-4)
    model.fit(stack, Y)
    # both choose the regularisation on three folds
    search = GridSearchCV(model, {"C": [0.03, 0.1, 0.3, 1.0, 3.0, 10.0]}, cv=3)
    ours = timed(lambda: search.fit(stack, Y))
    score = r2_score(Y_test, search.predict(test))
    options = {"progress_bar": False, "max_iter": 10}
    baseline = MultipleKernelRidgeCV(
        kernels="precomputed", solver="hyper_gradient", solver_params=options, cv=3, random_state=0
    )
    theirs = timed(lambda: baseline.fit(K.copy(), Y))
    other = float(np.mean(baseline.score(K_test.copy(), Y_test)))
    report("grid over C, 3 folds, over himalaya's 10 hyper-gradient steps", ours / theirs, "of its time", 0.2)
    report("held-out R2, himalaya's minus ours", other - score, f"(ours {score:.3f})", 0.0)


if __name__ == "__main__":
    parts = {"ridge": ridge, "himalaya": himalaya}
    for part in sys.argv[1:] or parts:
        parts[part]()
