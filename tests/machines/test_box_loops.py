"""The loops of the box machine, step by step against their definition and at their end against optimality."""

import numpy as np
import pytest

from multikernel.machines.box_loops import CONVERGED, NEEDS_ROW, OUT_OF_STEPS, ascend, smo

pytestmark = pytest.mark.loops

LOOPS = [pytest.param(smo, id="smo"), pytest.param(ascend, id="ascend")]


class Case:
    """maximise p'a - eps |a|_1 - 1/2 a'Ka over lo <= a <= hi, K = scale * M + diag(h), and the a to begin with."""

    def __init__(self, K, p, lo, hi, a, eps=0.0, scale=1.0):
        self.K, self.p, self.lo, self.hi, self.a = (np.array(x, dtype=float) for x in (K, p, lo, hi, a))
        self.eps, self.scale = eps, scale
        self.have = np.ones(len(self.p), dtype=bool)
        # a part of the diagonal is not in the rows
        self.h = 0.25 * self.diag
        self.M = (self.K - np.diag(self.h)) / scale

    @property
    def diag(self):
        return np.diag(self.K).copy()

    @property
    def floor(self):
        return 1e-12 * self.diag.max()

    def masks(self, a):
        """What |a| and the bounds add to the slopes as a grows and as it shrinks."""
        up = [-np.inf if x >= h else -self.eps if x >= 0 else self.eps for x, h in zip(a, self.hi, strict=True)]
        low = [np.inf if x <= b else -self.eps if x > 0 else self.eps for x, b in zip(a, self.lo, strict=True)]
        return np.array(up), np.array(low)

    def slopes(self, a):
        up, low = self.masks(a)
        G = self.p - self.K @ a
        return G + up, G + low

    def value(self, a):
        return self.p @ a - self.eps * np.abs(a).sum() - 0.5 * a @ self.K @ a

    def ends(self, a, k):
        """The ends of the piece of variable k, on which the objective is quadratic: as it grows, as it shrinks."""
        return self.hi[k] if a[k] >= 0 else 0.0, self.lo[k] if a[k] <= 0 else 0.0

    def run(self, loop, steps, tol=0.0, relax=1.0, a=None):
        """Run a loop; check what it set; return the new a and (status, row, steps, top, bottom)."""
        a = (self.a if a is None else a).copy()
        up, low = self.masks(a)
        G = self.p - self.K @ a
        result = loop(
            self.M, self.scale, self.have, self.diag, self.h, self.lo, self.hi, self.eps, a, G, up, low, tol, relax,
            steps,
        )  # fmt: skip
        np.testing.assert_allclose(G, self.p - self.K @ a, rtol=0, atol=1e-11 * np.abs(self.p).max())
        np.testing.assert_array_equal(np.array([up, low]), self.masks(a))
        assert np.all((a >= self.lo) & (a <= self.hi))
        return a, result

    def pair(self, a):
        """The pair of a step: i of the largest slope, j of the largest gain of an unbounded step; and its numbers."""
        grow, shrink = self.slopes(a)
        i = int(np.argmax(grow))
        eta = np.maximum(self.diag[i] + self.diag - 2 * self.K[i], self.floor)
        d = np.maximum(grow[i] - shrink, 0.0)
        j = int(np.argmax(d * d / eta))
        room = min(self.ends(a, i)[0] - a[i], a[j] - self.ends(a, j)[1])
        return i, j, d[j], eta[j], room

    def moved(self, a, steps):
        """Coefficients after some variables moved; one that reaches the end of its piece is exactly there."""
        a = a.copy()
        for k, t in steps:
            end = self.ends(a, k)[0 if t > 0 else 1]
            a[k] = end if abs(t) >= abs(end - a[k]) * (1 - 1e-14) else a[k] + t
        return a

    def smo_step(self, a, relax):
        i, j, d, eta, room = self.pair(a)
        t = min(relax * d / eta, room)
        return self.moved(a, [(i, t), (j, -t)])

    def ascend_step(self, a, relax):
        grow, shrink = self.slopes(a)
        best, single = -1.0, None
        for k in range(len(a)):
            slope = grow[k] if grow[k] > 0 else shrink[k] if shrink[k] < 0 else 0.0
            end = self.ends(a, k)[0 if slope > 0 else 1] - a[k]
            curvature = max(self.diag[k], self.floor)
            t = np.sign(slope) * min(abs(slope) / curvature, abs(end))
            gain = slope * t - 0.5 * curvature * t * t
            if gain > best:
                best, single = gain, (k, t)
        if grow.max() > -np.inf:
            i, j, d, eta, room = self.pair(a)
            exact = min(d / eta, room)
            if d > 0 and exact * (d - 0.5 * eta * exact) > best:
                t = min(relax * d / eta, room)
                return self.moved(a, [(i, t), (j, -t)])
        return self.moved(a, [single])

    def step(self, loop, a, relax):
        return (self.smo_step if loop is smo else self.ascend_step)(a, relax)

    def violation(self, loop, a):
        """The two numbers whose difference is the violation of optimality."""
        grow, shrink = self.slopes(a)
        return (grow.max(), shrink.min()) if loop is smo else (max(grow.max(), -shrink.min()), 0.0)


def random_case(seed, n, eps=0.0, scale=1.0, size=1.0, ranks=4, mean=0.0):
    """Coefficients on both bounds, at zero and between; bounds of which some are zero; a kernel of low rank."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, ranks)) + mean
    K = size * (X @ X.T / ranks + 0.1 * np.diag(rng.random(n)))
    hi = rng.random(n) / size * (rng.random(n) < 0.8)
    lo = -rng.random(n) / size * ((rng.random(n) < 0.8) | (hi == 0))
    a = np.where(rng.random(n) < 0.5, hi, lo) * rng.choice([0.0, 0.3, 0.7, 1.0], n)
    return Case(K, rng.normal(size=n), lo, hi, a, eps, scale)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("eps", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(12))
def test_each_step_is_the_one_of_the_definition(loop, eps, seed):
    n, relax, mean = (5, 8, 13, 30)[seed % 4], (1.0, 1.5)[seed % 2], (0.0, 2.0)[seed // 4 % 2]
    case = random_case(seed, n, eps, scale=(1.0, 2.5)[seed // 2 % 2], mean=mean)
    expected = case.a
    for _ in range(15):
        top, bottom = case.violation(loop, expected)
        if top - bottom <= 1e-6:
            break
        before, expected = expected, case.step(loop, expected, relax)
        a, result = case.run(loop, 1, relax=relax, a=before)
        assert result[:3] == (OUT_OF_STEPS, -1, 1)
        np.testing.assert_allclose(a, expected, rtol=0, atol=1e-12)
        assert case.value(a) > case.value(before)
        expected = a


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("size", [1.0, 1e-3, 1e3])
@pytest.mark.parametrize("seed", range(4))
def test_long_arrays_are_searched_whole(loop, size, seed):
    # several blocks; gains far below and far above one
    case = random_case(100 + seed, 300, eps=(0.0, 0.3)[seed % 2], size=size, mean=0.5 * (seed > 1))
    case.p *= 1e-2
    case = Case(case.K, case.p, case.lo, case.hi, case.a * (seed % 2), case.eps, scale=3.0)
    expected = case.a
    for _ in range(5):
        expected = case.step(loop, expected, 1.0)
    a, _ = case.run(loop, 5)
    np.testing.assert_allclose(a, expected, rtol=0, atol=1e-10 / size)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("place", [3, 127, 128, 200, 256, 299])
def test_the_best_is_found_wherever_it_is(loop, place):
    # orthogonal samples with small slopes, of which one is to grow and its neighbour to shrink
    p = np.linspace(-1e-3, 1e-3, 300)
    p[place], p[place - 1] = 1e-2, -2e-2
    case = Case(np.eye(300), p, -np.ones(300), np.ones(300), np.zeros(300))
    a, _ = case.run(loop, 1)
    np.testing.assert_array_equal(np.flatnonzero(a), [place - 1, place])
    assert a[place] == -a[place - 1] == pytest.approx(1.5e-2)


@pytest.mark.parametrize("place", [0, 127, 128, 200, 256, 299])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_best_single_coordinate_is_found_wherever_it_is(place, sign):
    # at their upper bound, or at their lower bound, no pair has room
    p = np.full(300, 1e-3)
    p[place] = 1e-2
    lo, hi = np.full(300, -0.5), np.full(300, 0.5)
    start = -0.5 * sign * np.ones(300)
    case = Case(np.eye(300), sign * p + start, lo, hi, start)
    a, _ = case.run(ascend, 1)
    np.testing.assert_array_equal(np.flatnonzero(a != start), [place])
    assert a[place] - start[place] == pytest.approx(sign * 1e-2)


@pytest.mark.parametrize("loop", LOOPS)
def test_of_equals_the_first_is_taken(loop):
    y = np.where(np.arange(300) % 3 == 1, 1.0, -1.0)
    case = Case(np.eye(300), y, np.minimum(y, 0), np.maximum(y, 0), np.zeros(300))
    a, _ = case.run(loop, 1)
    np.testing.assert_array_equal(np.flatnonzero(a), [0, 1])


def test_of_equal_single_coordinates_the_first_is_taken():
    case = Case(np.eye(300), np.ones(300), np.zeros(300), np.ones(300), np.zeros(300))
    a, _ = case.run(ascend, 1)
    np.testing.assert_array_equal(np.flatnonzero(a), [0])


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("relax", [1.0, 1.5])
@pytest.mark.parametrize("seed", range(6))
def test_the_end_is_optimal(loop, relax, seed):
    case = random_case(seed, 20, eps=(0.0, 0.2)[seed % 2], scale=0.5)
    a, (status, row, steps, top, bottom) = case.run(loop, 5000, tol=1e-8, relax=relax)
    assert (status, row) == (CONVERGED, -1) and steps > 0
    assert (top, bottom) == pytest.approx(case.violation(loop, a), abs=1e-12)
    grow, shrink = case.slopes(a)
    if loop is smo:
        assert a.sum() == pytest.approx(case.a.sum(), abs=1e-12)
        assert grow.max() - shrink.min() <= 1e-8 + 1e-12
    else:
        assert max(grow.max(), -shrink.min()) <= 1e-8 + 1e-12
    assert case.value(a) > case.value(case.a)
    again, result = case.run(loop, 10, tol=1e-8 + 1e-12, relax=relax, a=a)
    assert result[:3] == (CONVERGED, -1, 0)
    np.testing.assert_array_equal(again, a)


def test_the_three_ends_are_told_apart():
    assert len({CONVERGED, NEEDS_ROW, OUT_OF_STEPS}) == 3


@pytest.mark.parametrize("loop", LOOPS)
def test_no_steps_are_taken_where_none_are_allowed(loop):
    case = random_case(0, 10)
    a, (status, row, steps, top, bottom) = case.run(loop, 0)
    assert (status, row, steps) == (OUT_OF_STEPS, -1, 0)
    assert (top, bottom) == pytest.approx(case.violation(loop, a))
    np.testing.assert_array_equal(a, case.a)
    # what shrinks may violate optimality more than what grows
    case.p -= 10.0
    assert case.run(loop, 0)[1][3:] == pytest.approx(case.violation(loop, case.a))


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_that_runs_out_of_steps_tells_how_far_it_is(loop):
    case = random_case(1, 30)
    a, (status, row, steps, top, bottom) = case.run(loop, 3)
    assert (status, row, steps) == (OUT_OF_STEPS, -1, 3)
    assert (top, bottom) == pytest.approx(case.violation(loop, a))


@pytest.mark.parametrize("loop", LOOPS)
def test_a_violation_of_just_the_tolerance_is_allowed(loop):
    p = np.array([0.5, 0.5, -0.5]) if loop is smo else np.array([1.0, 0.5, -1.0])
    case = Case(np.eye(3), p, -np.ones(3), np.ones(3), np.zeros(3))
    assert case.run(loop, 5, tol=1.0)[1] == (CONVERGED, -1, 0, *case.violation(loop, case.a))
    assert case.run(loop, 1, tol=0.99)[1][2] == 1


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("seed", range(4))
def test_rows_are_asked_for_one_by_one_and_never_read_before(loop, seed):
    case = random_case(seed, 12, eps=(0.0, 0.2)[seed % 2])
    whole, _ = case.run(loop, 5000, tol=1e-8)
    rows = case.M.copy()
    case.M[:], case.have[:] = np.nan, False
    a, asked = case.a, []
    while True:
        a, (status, row, _, top, bottom) = case.run(loop, 5000, tol=1e-8, a=a)
        assert (top, bottom) == pytest.approx(case.violation(loop, a), abs=1e-11)
        if status != NEEDS_ROW:
            break
        asked.append(row)
        case.M[row], case.have[row] = rows[row], True
    assert status == CONVERGED
    assert len(asked) == len(set(asked))
    np.testing.assert_allclose(a, whole, rtol=0, atol=1e-6)


def test_where_nothing_may_grow_the_first_row_is_that_of_the_best_coordinate():
    case = Case(np.eye(4), [0.0, -1.0, -3.0, -2.0], -np.ones(4), np.zeros(4), np.zeros(4))
    case.have[:] = False
    assert case.run(ascend, 5)[1][:3] == (NEEDS_ROW, 2, 0)
    case.have[2] = True
    a, result = case.run(ascend, 1)
    np.testing.assert_array_equal(a, [0.0, 0.0, -1.0, 0.0])
    assert result[2] == 1


def test_rows_that_a_step_does_not_use_are_not_asked_for():
    # the single coordinate 0 gains more than any pair with it: only its row is needed
    case = Case(np.eye(3), [2.0, 0.5, 0.5], np.zeros(3), np.full(3, 5.0), [0.0, 0.25, 0.25])
    case.have[1:] = False
    a, result = case.run(ascend, 1)
    assert result[:3] == (OUT_OF_STEPS, -1, 1)
    np.testing.assert_array_equal(a, [2.0, 0.25, 0.25])


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_coefficient_that_reaches_its_bound_is_exactly_there(loop, sign):
    # little curvature: the step ends where the first of the two has no room left
    begin, end = 2.0**-53, 1.0 + 2.0**-52
    assert begin + (end - begin) != end
    bounds = sign * np.array([end, -1.5])
    lo, hi = np.minimum(bounds, 0.0), np.maximum(bounds, 0.0)
    a, _ = Case(1e-6 * np.ones((2, 2)), [sign, -sign], lo, hi, [sign * begin, 0.0]).run(loop, 1)
    assert a[0] == sign * end and a[1] == pytest.approx(-sign)


@pytest.mark.parametrize("seed", range(5))
def test_identical_samples_move_to_a_bound(seed):
    # no curvature along any pair: the partner is the one of the smallest slope, and the step as long as there is room
    rng = np.random.default_rng(seed)
    p = rng.normal(size=8)
    # one sample is zero, with a slope between those of the others
    K, p[7] = np.ones((8, 8)), np.median(p[:7])
    K[7] = K[:, 7] = 0.0
    case = Case(K, p, -rng.random(8), rng.random(8), np.zeros(8))
    i, j = np.argmax(p), np.argmin(p)
    expected = np.zeros(8)
    expected[i] = min(case.hi[i], -case.lo[j])
    expected[j] = -expected[i]
    np.testing.assert_array_equal(case.run(smo, 1)[0], expected)
    np.testing.assert_allclose(case.run(ascend, 1)[0], case.ascend_step(case.a, 1.0), rtol=0, atol=1e-14)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_kernel_of_zeros_puts_coefficients_on_their_bounds(loop):
    p = np.array([1.0, -0.5, 0.25, -2.0])
    case = Case(np.zeros((4, 4)), p, -np.ones(4), np.ones(4), np.zeros(4))
    with np.errstate(over="ignore"):
        a, result = case.run(loop, 100)
    assert result[0] == CONVERGED
    np.testing.assert_array_equal(a, np.sign(p))


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("size", [1e-40, 1e40])
def test_the_unit_of_the_kernel_does_not_matter(loop, size):
    # with K * size and bounds / size the solution is a / size
    case = random_case(3, 15)
    other = Case(case.K * size, case.p, case.lo / size, case.hi / size, case.a / size)
    a, b = case.run(loop, 12)[0], other.run(loop, 12)[0]
    np.testing.assert_allclose(b * size, a, rtol=0, atol=1e-10)


def test_without_a_partner_single_coordinates_ascend():
    # all slopes are alike and no coefficient may shrink at a gain: moving a pair would descend
    K = np.full((6, 6), 1.0) + 1e-3 * np.eye(6)
    case = Case(K, np.ones(6), -np.ones(6), np.ones(6), np.zeros(6), eps=0.3)
    a, _ = case.run(ascend, 1)
    np.testing.assert_allclose(a, case.ascend_step(case.a, 1.0), atol=1e-14)
    assert np.count_nonzero(a) == 1 and case.value(a) > 0


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("n", [3, 128, 200])
def test_slopes_that_are_no_numbers_are_not_followed_beyond_the_end(loop, n):
    a, G, none = np.zeros(n), np.full(n, np.nan), np.zeros(n)
    result = loop(
        np.eye(n), 1.0, np.ones(n, bool), np.ones(n), none, -np.ones(n), np.ones(n), 0.0, a, G, none, none, 0.0, 1.0, 3
    )
    assert result[:3] == (CONVERGED, -1, 0)
    np.testing.assert_array_equal(a, none)
