"""Coefficients in a box that are brought to a given sum."""

from math import fsum

import numpy as np
import pytest

from multikernel.machines.box_loops import balance, compensated_sum

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
    assert abs(fsum([*a, -total])) <= 1e-14 * (np.abs(a).sum() + abs(total))
    excess = before.sum() - total
    room = np.where(free, before - lo if excess > 0 else hi - before, 0.0)
    if room.sum() > 1.001 * abs(excess):
        # those on their bounds stay there as long as the others have room, and each of these moves by its share
        np.testing.assert_array_equal(a[~free], before[~free])
        np.testing.assert_allclose(before - a, excess * room / room.sum(), atol=1e-13 * np.abs(hi).max())


def test_what_has_the_right_sum_is_left_alone():
    a = np.array([0.5, -0.25, -0.25, 1.0, -1.0])
    before = a.copy()
    balance(a, -np.ones(5), np.ones(5), 0.0, np.abs(a) < 1)
    np.testing.assert_array_equal(a, before)


def test_sums_are_compensated():
    a = np.array([1.0, 1e100, 1.0, -1e100])
    assert compensated_sum(a, 0.0) == 2.0
    assert compensated_sum(a[:1], -1.0) == 0.0
