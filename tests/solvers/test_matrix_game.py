"""Matrix games: strategies that prove each other optimal, and agree with a general solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from multikernel.mixing.norms import Simplex
from multikernel.solvers.cut_model import CutModel, matrix_game


def value_of(M: np.ndarray) -> float:
    """The value by scipy: min t with M beta <= t on the simplex."""
    m, p = M.shape
    rows = np.hstack([M, -np.ones((m, 1))])
    total = np.append(np.ones(p), 0.0)[None]
    return linprog(np.eye(1, p + 1, p)[0], rows, np.zeros(m), total, [1.0], bounds=[(0, None)] * p + [(None, None)]).fun


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (2, 3), (7, 7), (40, 12), (12, 40)])
@pytest.mark.parametrize("seed", range(5))
def test_strategies_prove_each_other(shape, seed):
    rng = np.random.default_rng(seed)
    M = rng.normal(size=shape) * 10.0 ** rng.integers(-6, 7) + rng.normal()
    beta, multipliers = matrix_game(M)
    for x in (beta, multipliers):
        assert x.min() >= 0 and x.sum() == pytest.approx(1.0, rel=1e-12)
    upper, lower = np.max(M @ beta), np.min(multipliers @ M)
    assert upper == pytest.approx(lower, abs=1e-10 * np.abs(M).max())
    assert upper == pytest.approx(value_of(M), abs=1e-7 * np.abs(M).max())


@pytest.mark.parametrize("p", [3, 20])
def test_cuts_of_a_smooth_function_that_are_nearly_parallel(p):
    rng = np.random.default_rng(p)
    A = rng.normal(size=(p, p))
    H, c = A @ A.T, rng.normal(size=p)
    centre = rng.dirichlet(np.ones(p))
    points = centre + 1e-5 * (rng.dirichlet(np.ones(p), size=30) - centre)
    slopes = points @ H + c
    M = (0.5 * np.einsum("tk,kl,tl->t", points, H, points) + points @ c - np.sum(slopes * points, axis=1))[:, None]
    beta, multipliers = matrix_game(M + slopes)
    assert np.max((M + slopes) @ beta) - np.min(multipliers @ (M + slopes)) <= 1e-9


@pytest.mark.parametrize("M", [np.zeros((3, 4)), np.full((2, 2), -7.0), np.repeat([[1.0, 2.0]], 5, axis=0)])
def test_games_without_a_choice(M):
    beta, multipliers = matrix_game(M)
    assert np.max(M @ beta) == pytest.approx(M.min()) == np.min(multipliers @ M)


def test_the_bound_of_cuts_is_that_of_the_game():
    rng = np.random.default_rng(3)
    cuts = CutModel(Simplex(), 4)
    for _ in range(9):
        cuts.add(float(rng.normal()), rng.random(4))
    beta, bound = cuts.minimise()
    M = np.array(cuts.g)[:, None] - 0.5 * np.array(cuts.q)
    assert bound == pytest.approx(value_of(M), abs=1e-9)
    assert np.max(M @ beta) == pytest.approx(bound, abs=1e-9)
