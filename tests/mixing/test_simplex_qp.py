"""The quadratic programme over the simplex, against all supports tried one by one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from multikernel.mixing import simplex_qp as module
from multikernel.mixing.simplex_qp import simplex_qp

# both methods, block pivots first; block pivots alone; one variable at a time alone
METHODS = ["both", "blocks", "one by one"]


@pytest.fixture(params=METHODS)
def solve(request, monkeypatch):
    if request.param == "blocks":
        monkeypatch.setattr(module, "_one_by_one", None)
    if request.param == "one by one":
        monkeypatch.setattr(module, "_BLOCK_PIVOTS", 0)
    return simplex_qp


@pytest.fixture
def steps(monkeypatch):
    """Count the linear systems that are solved."""
    real, count = module._equality_step, []

    def counted(H, c, free):
        count.append(free.copy())
        return real(H, c, free)

    monkeypatch.setattr(module, "_equality_step", counted)
    return count


def by_enumeration(H, c):
    """The solution of a strictly convex programme: the best feasible minimiser over any support."""
    p = len(c)
    best, value = None, np.inf
    for size in range(1, p + 1):
        for support in map(list, combinations(range(p), size)):
            K = np.zeros((size + 1, size + 1))
            K[:size, :size], K[size, :size], K[:size, size] = H[np.ix_(support, support)], 1.0, 1.0
            x = np.zeros(p)
            x[support] = np.linalg.solve(K, np.append(-c[support], 1.0))[:size]
            now = c @ x + 0.5 * x @ H @ x
            if x.min() >= 0 and now < value:
                best, value = x, now
    return best


def draw(seed, p=6):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(p, p))
    return A @ A.T + 0.1 * np.eye(p), 2.0 * rng.normal(size=p), rng


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
@pytest.mark.parametrize("seed", range(8))
def test_agrees_with_the_best_support(solve, seed, scale):
    H, c, rng = draw(seed)
    start = rng.dirichlet(np.full(6, 0.5))
    start[start < 0.05] = 0.0
    x = solve(scale * H, scale * c, start / start.sum())
    assert x == pytest.approx(by_enumeration(H, c), abs=3e-9)
    assert np.all(x >= 0)


@pytest.mark.parametrize("seed", range(30))
def test_satisfies_its_optimality_conditions(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 15))
    A = rng.normal(size=(p, rng.integers(1, p + 1)))
    H, c = A @ A.T * 10.0 ** rng.integers(-4, 4), rng.normal(size=p)
    start = rng.dirichlet(np.ones(p))
    x = simplex_qp(H, c, start)
    assert x.sum() == pytest.approx(1.0) and np.all(x >= 0)
    slope = H @ x + c
    room = x > 1e-7
    level = slope[room].mean()
    size = np.abs(slope).max() + np.abs(c).max()
    assert np.ptp(slope[room]) <= 1e-5 * size
    assert np.all(slope[~room] >= level - 1e-5 * size)


@pytest.mark.parametrize("p", [20, 60])
def test_block_pivots_take_few_steps(steps, p):
    H, c, _ = draw(0, p)
    x = simplex_qp(H, c, np.full(p, 1.0 / p))
    slope = H @ x + c
    assert np.ptp(slope[x > 0]) <= 1e-7 and np.all(slope[x == 0] >= slope[x > 0].mean())
    assert len(steps) <= 12


def test_a_solution_is_recognised_at_once(solve, steps):
    # with the ridge the multiplier of the second variable is zero but for rounding: it is not freed
    x = solve(np.eye(2), np.array([0.0, 1.0 + 1e-10]), np.array([1.0, 0.0]))
    np.testing.assert_allclose(x, [1.0, 0.0], atol=1e-9)
    assert [free.tolist() for free in steps] == [[True, False]]


@pytest.mark.parametrize(("diagonal", "linear"), [((1.0, 1.0, 1e6), 1e3), ((1.0, 1.0, 1.0), 1e6)])
def test_multipliers_that_are_rounding_of_large_entries_free_nothing(solve, steps, diagonal, linear):
    # the second variable has the multiplier -1e-7 but for the ridge, the third a large one
    H, c = np.diag(diagonal), np.array([0.0, 0.0, linear])
    ridge = 1e-10 * max(sum(diagonal) / 3, linear)
    c[1] = 1.0 + ridge - 1e-7
    x = solve(H, c, np.array([1.0, 0.0, 0.0]))
    np.testing.assert_array_equal(x, [1.0, 0.0, 0.0])
    assert len(steps) == 1


def test_freed_variables_stay_free(solve, steps):
    # the optimum is uniform; begun at a vertex every other variable is freed, one or all of them at a time
    x = solve(np.eye(5), np.zeros(5), np.eye(5)[2])
    np.testing.assert_allclose(x, np.full(5, 0.2), atol=1e-9)
    assert len(steps) <= 5


def free_sets(H, c, x):
    """The free variables of the primal active-set method at each of its steps, written anew from the textbook."""
    p, sets = len(c), []
    H = H + 1e-10 * max(np.trace(H) / p, np.abs(c).max()) * np.eye(p)
    free = set(np.flatnonzero(x > 0))
    while True:
        idx = sorted(free)
        sets.append(idx)
        m = len(idx)
        K = np.block([[H[np.ix_(idx, idx)], np.ones((m, 1))], [np.ones((1, m)), np.zeros((1, 1))]])
        *values, multiplier = np.linalg.solve(K, np.append(-c[idx], 1.0))
        target = np.zeros(p)
        target[idx] = values
        ways = {k: x[k] / (x[k] - target[k]) for k in idx if target[k] < 0}
        if ways:
            k = min(ways, key=ways.get)
            x = x + ways[k] * (target - x)
            x[k] = 0.0
            free.remove(k)
            continue
        x = target
        slack = H @ x + c + multiplier
        held = {k: slack[k] for k in range(p) if k not in free and slack[k] < -1e-9}
        if not held:
            return sets
        free.add(min(held, key=held.get))


@pytest.mark.parametrize("seed", range(12))
def test_one_by_one_is_the_textbook_method(monkeypatch, steps, seed):
    monkeypatch.setattr(module, "_BLOCK_PIVOTS", 0)
    H, c, rng = draw(seed, 9)
    start = rng.dirichlet(np.ones(9))
    expected = free_sets(H, c, start)
    simplex_qp(H, c, start)
    assert [np.flatnonzero(free).tolist() for free in steps] == expected
    assert len(expected) > 2


def test_a_programme_without_objective_stays_where_it_is():
    start = np.array([0.3, 0.7])
    x = simplex_qp(np.zeros((2, 2)), np.zeros(2), start)
    np.testing.assert_array_equal(x, start)
    assert x is not start


def test_a_linear_programme_is_solved_by_its_ridge():
    x = simplex_qp(np.zeros((3, 3)), np.array([3.0, -1.0, 0.0]), np.full(3, 1 / 3))
    np.testing.assert_allclose(x, [0.0, 1.0, 0.0], atol=1e-6)


def test_the_start_and_the_programme_are_left_as_they_are():
    H, c, _ = draw(1)
    start = np.full(6, 1 / 6)
    given = H.copy(), c.copy(), start.copy()
    simplex_qp(H, c, start)
    for after, before in zip((H, c, start), given, strict=True):
        np.testing.assert_array_equal(after, before)


def test_multipliers_are_slopes_less_those_of_the_free_variables():
    H, c, _ = draw(2)
    free = np.array([True, False, True, True, False, False])
    x, multiplier = module._equality_step(H, c, free)
    slope = H @ x + c
    assert x.sum() == pytest.approx(1.0) and not x[~free].any() and np.ptp(slope[free]) == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_array_equal(multiplier[free], 0.0)
    assert multiplier[~free] == pytest.approx(slope[~free] - slope[0])
