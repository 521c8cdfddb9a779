"""Coefficients in a box that are brought to a given sum."""

from fractions import Fraction
from math import fsum

import numpy as np
import pytest

from multikernel.machines.box_loops import balance, compensated_sum, settle

pytestmark = pytest.mark.loops


@pytest.mark.parametrize("seed", range(20))
def test_the_sum_is_reached_within_the_bounds(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    hi = rng.random(n) * 10.0 ** rng.uniform(-3, 3)
    lo = -rng.random(n) * rng.integers(0, 2, n)
    a = np.clip(lo + (hi - lo) * rng.choice([0.0, 1.0, 0.3, 0.7], n), lo, hi)
    total = float(lo.sum() + rng.random() * (hi - lo).sum())
    free = (a > lo) & (a < hi)
    before = a.copy()
    balance(a, lo, hi, total, free)
    assert np.all((a >= lo) & (a <= hi))
    # exactly, where the sum is a multiple of the last digit of the largest coefficient
    assert abs(fsum([*a, -total])) <= 2.0**-53 * np.abs(a).max()
    excess = before.sum() - total
    room = np.where(free, before - lo if excess > 0 else hi - before, 0.0)
    if room.sum() > 1.001 * abs(excess):
        # those on their bounds stay there as long as the others have room, and each of these moves by its share
        np.testing.assert_allclose(a[~free], before[~free], rtol=0, atol=2.0**-52 * np.abs(a).max())
        np.testing.assert_allclose(before - a, excess * room / room.sum(), atol=1e-13 * np.abs(hi).max())


def test_what_has_the_right_sum_is_left_alone():
    a = np.array([0.5, -0.25, -0.25, 1.0, -1.0])
    before = a.copy()
    balance(a, -np.ones(5), np.ones(5), 0.0, np.abs(a) < 1)
    np.testing.assert_array_equal(a, before)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_each_moves_by_its_share_of_the_room(sign):
    # rooms and sums far from one, and an excess of one
    for size in (1e-3, 1.0, 1e3):
        a = sign * size * np.array([0.1, 0.2, 0.3, 0.4])
        lo, hi = np.minimum(0.0, 2 * a), np.maximum(0.0, 2 * a)
        balance(a, lo, hi, 0.75 * sign * size, np.ones(4, dtype=bool))
        np.testing.assert_allclose(a, 0.75 * sign * size * np.array([0.1, 0.2, 0.3, 0.4]), rtol=1e-14)
    a = np.array([0.5, 0.5])
    balance(a, np.zeros(2), np.ones(2), 0.0, np.ones(2, dtype=bool))
    np.testing.assert_array_equal(a, np.zeros(2))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("some_free", [True, False])
def test_rounding_goes_to_the_roomiest(sign, seed, some_free):
    rng = np.random.default_rng(seed)
    # whole numbers, whose last digit is that of numbers from 2^20 on
    a = np.floor(2.0**20 * (1.0 + 0.9 * rng.random(10)))
    lo, hi = a - 1e5 * rng.random(10), a + 1e5 * rng.random(10)
    free = (np.arange(10) % 3 > 0) & some_free
    total = a.sum() - sign * 5 * 2.0**-32
    before = a.copy()
    balance(a, lo, hi, total, free)
    room = before - lo if sign > 0 else hi - before
    (moved,) = np.flatnonzero(a != before)
    assert moved == np.argmax(np.where(free | (not some_free), room, -1.0))
    assert fsum([*a, -total]) == 0.0


@pytest.mark.parametrize("total", [0.0, 1.0])
@pytest.mark.parametrize("n", [2, 50, 3000])
def test_sums_are_exact(n, total):
    rng = np.random.default_rng(n)
    for size in (1e-200, 1e-3, 1.0, 1e5):
        lo, hi = -rng.random(n) * size * (total == 0), rng.random(n) * max(size, total)
        lo[0], hi[0] = -size * (total == 0), max(size, total)
        a = lo + (hi - lo) * rng.random(n)
        balance(a, lo, hi, total, (a > lo) & (a < hi))
        assert sum(map(Fraction, a.tolist())) == Fraction(total)
        assert np.all((lo <= a) & (a <= hi))
        again = a.copy()
        balance(again, lo, hi, total, (a > lo) & (a < hi))
        np.testing.assert_array_equal(again, a)


def test_a_common_bound_is_kept_exactly():
    C = 0.1
    a = C * np.array([1.0, 1.0, -1.0, -0.7, -0.3 - 1e-12, 0.0])
    hi = np.full(6, C)
    balance(a, -hi, hi, 0.0, np.abs(a) < C)
    assert a[0] == a[1] == -a[2] == C and sum(map(Fraction, a.tolist())) == 0


def test_sums_are_compensated():
    a = np.array([1.0, 1e100, 1.0, -1e100])
    assert compensated_sum(a, 0.0) == 2.0
    assert compensated_sum(a[:1], -1.0) == 0.0


@pytest.mark.parametrize("n", [1500, 3000, 6000, 12000])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_sums_of_more_last_digits_than_a_whole_number_holds_are_exact(n, sign):
    # coefficients have up to 2^53 units, their sum up to n times as many: more than 2^63, and than 2^64
    a = sign * (1.0 - 2.0**-20 * np.random.default_rng(n).random(n))
    a[0], total = sign, sign * (n - n * 2.0**-21)
    bounds = sign * np.vstack([np.full(n, -0.5), np.full(n, 1.5)])
    with np.errstate(over="ignore"):
        settle(a, bounds.min(axis=0), bounds.max(axis=0), float(sum(map(Fraction, a.tolist()))), np.ones(n, bool))
        before = a.copy()
        settle(a, bounds.min(axis=0), bounds.max(axis=0), total, np.ones(n, bool))
    assert sum(map(Fraction, a.tolist())) == Fraction(total)
    # what is missing goes to the roomiest
    assert np.count_nonzero(a != before) == 1


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_no_coefficient_gets_more_digits_than_it_can_hold(sign):
    # the first has the most room, but one unit more than 1 - u would be followed by half a digit
    u = 2.0**-53
    a = sign * np.array([1.0 - u, -0.5])
    bounds = sign * np.array([[10.0, 0.0], [-1.0, -0.75]])
    settle(a, bounds.min(axis=0), bounds.max(axis=0), sign * (0.5 + u), np.ones(2, bool))
    np.testing.assert_array_equal(a, sign * np.array([1.0 - u, -0.5 + 2 * u]))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_largest_coefficient_of_one_is_as_good_as_any(sign):
    a, u = sign * np.array([1.0, -0.5]), 2.0**-52
    bounds = sign * np.array([[1.0, 0.0], [0.0, -1.0]])
    settle(a, bounds.min(axis=0), bounds.max(axis=0), sign * (0.5 + u), np.ones(2, bool))
    np.testing.assert_array_equal(a, sign * np.array([1.0, -0.5 + u]))


def test_what_is_no_number_is_left_alone():
    for bad in (np.inf, -np.inf, np.nan):
        a = np.array([0.3, bad, 0.1])
        settle(a, np.full(3, -np.inf), np.full(3, np.inf), 1.0, np.ones(3, bool))
        np.testing.assert_array_equal(a, [0.3, bad, 0.1])
