"""Bounds that the benchmarks compute from kernels and weights alone."""

from pathlib import Path

import numpy as np
import pytest

from multikernel import MKLRegressor, stack_kernels


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_the_optimum_of_least_squares_is_between_the_bounds_at_any_weights(C, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
    from gaps import squares_bounds

    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 3)), rng.standard_normal((60, 4)) + 5.0
    Y[:, 0] += 3.0 * np.sin(X[:, 0])
    K = np.exp(-((X.T[:, :, None] - X.T[:, None, :]) ** 2))
    model = MKLRegressor("precomputed", loss="squared", normalize=None, C=C, tol=1e-9).fit(stack_kernels(K), Y)
    upper, lower = squares_bounds(K, Y, model.weights_, C)
    assert lower <= model.objective_ <= upper <= lower * (1.0 + 1e-7)
    for weights in (np.full(3, 1 / 3), np.eye(3)[1]):
        above, below = squares_bounds(K, Y, weights, C)
        assert below <= lower < upper <= above and above > below * 1.001
    assert squares_bounds(K, Y, 2.0 * model.weights_, C) == (np.inf, -np.inf)
