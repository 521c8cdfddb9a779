"""Sets that hold a kernel margin, as programmes over all n(c - 1) rows of the definition have them."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from problems_margin import inexact, table_of, views
from reference_margin import eta_of, margin_programme, margins_at, rows_of

from multikernel.mixing import SmallestMargins, largest_margin, margin_mixing
from multikernel.mixing.cones import ConeRows, solve_conic
from multikernel.mixing.largest_margin import Largest, LinearProgramme, programme_for
from multikernel.mixing.margin_table import MarginTable

pytestmark = inexact

N, P, C = 20, 4, 3
WEIGHT = np.random.default_rng(5).uniform(0.5, 2.0, N)


def each_knows_one(seed):
    """Kernels of which each tells one class from the others, and a last one that tells none: the best is a mix."""
    rng = np.random.default_rng(seed)
    y = np.arange(N) % C
    views = [rng.normal(size=(N, 2)) + 2.0 * (y == k)[:, None] for k in range(P)]
    return np.array([np.exp(-np.square(X[:, None] - X).sum(axis=2) / 4.0) for X in views]), y


def make(norm=1.0, fraction=0.9, size=1.0, weight=WEIGHT, seed=1):
    """A set of few samples, sample weights and kernels of any size, and eta of its definition."""
    stack, y = each_knows_one(seed)
    table = table_of(size * stack, y, weight=weight)
    largest = largest_margin(table, norm)
    return margin_mixing(norm, table, fraction * largest.value, largest), eta_of(size * stack, y, weight=weight), y


def whole(mixing, eta, y, objective, maximise=True):
    """Optimise over the set with all rows of the definition: value and weights."""
    beta, g = cp.Variable(P, nonneg=True), cp.Variable(N)
    rows, sample = rows_of(eta, y)
    unit = np.abs(eta).max()
    constraints = [
        rows / unit @ beta >= np.eye(N)[sample] @ g,
        mixing.table.weight @ g >= mixing.gamma0 / unit,
        cp.sum(beta) == 1 if mixing.norm == 1 else cp.pnorm(beta, mixing.norm) <= 1,
    ]
    goal = cp.Maximize(objective(beta)) if maximise else cp.Minimize(objective(beta))
    problem = cp.Problem(goal, constraints)
    problem.solve(solver=cp.CLARABEL, max_threads=1)
    return float(problem.value), beta.value


NORMS = pytest.mark.parametrize("norm", [1.0, 1.5, 2.0])
SIZES = pytest.mark.parametrize("size", [1e-3, 1.0, 50.0])


@NORMS
@SIZES
def test_the_support_rows_are_the_support_function_exactly(norm, size):
    mixing, eta, y = make(norm, size=size)
    rows = mixing.support_rows(P)
    assert rows.A.shape[0] == len(rows.b)
    # no variable is about nothing
    assert np.all(np.abs(rows.A).sum(axis=0) > 0)
    rng = np.random.default_rng(0)
    for q in (rng.random(P), np.eye(P)[0], 3.0 * rng.random(P)):
        cost = np.zeros(rows.A.shape[1])
        cost[P] = 1.0
        fixed = ConeRows(np.eye(P), q, (("zero", P),))
        x, _ = solve_conic(np.zeros(len(cost)), cost, [(rows, np.arange(len(cost))), (fixed, np.arange(P))])
        expected, _ = whole(mixing, eta, y, lambda beta, q=q: q @ beta)
        assert x[P] == pytest.approx(expected, rel=1e-5)
        assert mixing.support(q)[0] == pytest.approx(expected, rel=1e-5)


@NORMS
@SIZES
def test_steps_minimise_their_models_over_the_set(norm, size):
    mixing, eta, y = make(norm, size=size, fraction=0.97)
    rng = np.random.default_rng(2)
    A = rng.normal(size=(P, P))
    # the model falls in every weight of the ball
    H, beta = 0.01 * A @ A.T, mixing.start(P)
    for unit, q in (
        (1e-6, rng.random(P) + 1.0),
        (1.0, rng.random(P) + 1.0),
        (1e6, 1.0 + 5.0 * (np.arange(P) == P - 1)),
    ):
        c = -0.5 * q - H @ beta
        expected, _ = whole(mixing, eta, y, lambda b, c=c: c @ b + 0.5 * cp.quad_form(b, H), maximise=False)
        step = mixing.newton_step(beta, unit * q, unit * H)
        assert c @ step + 0.5 * step @ H @ step == pytest.approx(expected, rel=1e-6)
        s2 = beta**2 * q
        expected, _ = whole(mixing, eta, y, lambda b, s2=s2: s2 @ cp.inv_pos(b), maximise=False)
        closed = mixing.closed_form(beta, unit * q)
        assert s2 @ (1.0 / closed) == pytest.approx(expected, rel=1e-6)


@NORMS
def test_an_overrelaxed_step_goes_further_in_the_logarithms(norm):
    # a margin that nothing violates near the step, so that only the norm holds it
    mixing, _, _ = make(norm, fraction=0.1)
    rng = np.random.default_rng(0)
    beta = mixing.base.scale_to_boundary(1.0 + 0.1 * rng.random(P))
    q = np.linspace(1.0, 1.6, P)
    exact, further = mixing.closed_form(beta, q), mixing.closed_form(beta, q, relax=1.5)
    # a minimiser is as exact as the root of its value
    assert exact == pytest.approx(mixing.base.closed_form(beta, q), abs=1e-5)
    moves = np.log(further / beta) - 1.5 * np.log(exact / beta)
    assert np.ptp(np.log(exact / beta)) > 0.05 and np.ptp(moves) == pytest.approx(0.0, abs=1e-9)
    # one of weight zero stays there, and does not keep the others
    beta = mixing.base.scale_to_boundary(beta * (np.arange(P) > 0))
    exact, further = mixing.closed_form(beta, q), mixing.closed_form(beta, q, relax=1.5)
    assert exact[0] == pytest.approx(0.0, abs=1e-4) and further[0] == 0.0
    assert mixing.closed_form(beta, q) == pytest.approx(mixing.closed_form(beta, q, relax=1.0))
    assert further[1:] == pytest.approx(mixing.base.closed_form(beta, q, relax=1.5)[1:], abs=1e-4)


@NORMS
@SIZES
def test_weights_are_moved_no_further_than_the_margin_asks(norm, size):
    mixing, eta, y = make(norm, size=size)
    rng = np.random.default_rng(0)
    moved = 0
    for beta in [mixing.base.scale_to_boundary(rng.dirichlet(np.full(P, 0.4))) for _ in range(20)]:
        new = mixing.make_feasible(beta)
        value = mixing.table.weight @ margins_at(eta, y, beta)
        assert mixing.table.weight @ margins_at(eta, y, new) >= mixing.gamma0 - 1.1e-10 * mixing.table.size
        if value >= mixing.gamma0:
            assert new is beta
            continue
        moved += 1
        # on the straight line to the best weights, where the line between the two margins reaches gamma0
        t = (mixing.gamma0 - value) / (mixing.largest.value - value)
        assert new == pytest.approx((1 - t) * beta + t * mixing.largest.weights, abs=1e-8)
    assert moved > 5


@NORMS
def test_what_a_set_with_a_margin_says_of_itself(norm):
    mixing, _, _ = make(norm)
    assert mixing.description == f"norm={norm:g} and a kernel margin gamma0={mixing.gamma0:.4g}"
    assert mixing.is_point is False
    # one kernel leaves no choice; all of the largest margin neither
    stack, y = views(n=N, c=C, p=5)
    one = table_of(stack[4:], y)
    only = margin_mixing(norm, one, 0.5 * largest_margin(one, norm).value)
    assert only.is_point and only.support(np.array([3.0])) == (3.0, only.largest.weights)
    point, _, _ = make(norm, fraction=1.0)
    best = point.largest.weights
    assert point.is_point
    for found in (
        point.make_feasible(np.eye(P)[0]),
        point.scale_to_boundary(np.eye(P)[0]),
        point.newton_step(best, np.arange(1.0, P + 1), np.eye(P)),
        point.closed_form(best, np.arange(1.0, P + 1)),
        point.support(np.arange(1.0, P + 1))[1],
    ):
        np.testing.assert_array_equal(found, best)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_a_step_to_a_vertex_has_weights_of_zero(size):
    mixing, _, _ = make(fraction=0.1)
    step = mixing.newton_step(mixing.start(P), size * np.array([0.1, 9.0, 0.2, 0.3]), 1e-3 * size * np.eye(P))
    np.testing.assert_array_equal(step, np.eye(P)[1])


@pytest.mark.parametrize("size", [1e-14, 1.0, 1e14])
def test_a_linear_model_of_any_size_is_least_at_a_vertex(size):
    mixing, _, _ = make(fraction=0.1)
    step = mixing.newton_step(mixing.start(P), size * np.eye(P)[1], np.zeros((P, P)))
    np.testing.assert_allclose(step, np.eye(P)[1], atol=1e-6)


def test_a_step_of_a_model_that_is_zero_stays_in_the_set():
    mixing, eta, y = make()
    step = mixing.newton_step(mixing.start(P), np.zeros(P), np.zeros((P, P)))
    assert step.sum() == pytest.approx(1.0) and mixing.table.weight @ margins_at(eta, y, step) >= 0.999 * mixing.gamma0


def test_without_an_answer_of_the_conic_solver_the_weights_stay(monkeypatch):
    mixing, _, _ = make(norm=2.0)
    start = mixing.start(P)
    for owner in (mixing.newton_step, programme_for):
        # the package has a function of the name of a module
        monkeypatch.setitem(owner.__globals__, "solve_conic", lambda *_: None)
    np.testing.assert_allclose(mixing.newton_step(start, np.arange(1.0, P + 1), np.eye(P)), start)
    np.testing.assert_allclose(mixing.closed_form(start, np.arange(1.0, P + 1)), start)
    # any bound is one of a larger set
    bound, beta = mixing.support(np.arange(1.0, P + 1))
    assert bound >= beta @ np.arange(1.0, P + 1)


@NORMS
def test_only_sets_of_nearly_the_largest_margin_are_examined_for_being_a_point(norm, monkeypatch):
    for size in (1e-3, 50.0):
        mixing, _, _ = make(norm, size=size)
        monkeypatch.setattr(type(mixing), "_support", None)
        assert mixing.is_point is False
        monkeypatch.undo()


def test_the_linear_rows_are_the_simplex_and_one_half_space_of_the_margin():
    for size in (1e-3, 1.0, 50.0):
        mixing, eta, y = make(size=size)
        A, lower, upper = mixing.linear_rows(P)
        np.testing.assert_array_equal(A[0], np.ones(P))
        assert (lower[0], upper[0], upper[1]) == (1.0, 1.0, np.inf)
        # it holds wherever the margin does, and touches the largest margin
        for beta in np.random.default_rng(0).dirichlet(np.ones(P), 200):
            assert A[1] @ beta >= mixing.table.weight @ margins_at(eta, y, beta) / mixing.table.size - 1e-12
        assert (A[1]).max() == pytest.approx(mixing.largest.value / mixing.table.size, rel=1e-8)
        assert lower[1] == pytest.approx(mixing.gamma0 / mixing.table.size, abs=2e-10)


@NORMS
def test_the_cone_rows_hold_on_the_set_and_not_far_from_it(norm):
    mixing, _, _ = make(norm)
    rows = mixing.cone_rows(P)
    x, _ = solve_conic(np.zeros(rows.A.shape[1]), np.zeros(rows.A.shape[1]), [(rows, np.arange(rows.A.shape[1]))])
    assert rows.cones[-1] == ("nonnegative", 1)
    last = rows.A[-1, :P]
    for beta in (mixing.start(P), mixing.largest.weights, x[:P]):
        assert rows.b[-1] - last @ beta >= -1e-7
    # the half-space of the largest margin, with the margin that is asked for
    assert -last == pytest.approx(mixing.largest.cut / mixing.table.size)
    assert -rows.b[-1] == pytest.approx(mixing.gamma0 / mixing.table.size, abs=2e-10)


def test_a_margin_may_exceed_the_largest_by_rounding_of_any_size():
    for size in (1e-6, 1e6):
        mixing, _, _ = make(fraction=1.0, size=size)
        for more, fine in ((0.5e-10, True), (2e-10, False)):
            gamma0 = mixing.largest.value + more * mixing.table.size
            if fine:
                level = margin_mixing(1, mixing.table, gamma0, mixing.largest).level
                assert level * mixing.table.size < mixing.largest.value
            else:
                with pytest.raises(ValueError, match="must be at most"):
                    margin_mixing(1, mixing.table, gamma0, mixing.largest)


def test_a_margin_of_zero_is_none_too_small_for_a_ball():
    mixing, _, _ = make(2.0, fraction=0.0)
    assert mixing.gamma0 == 0.0 and not mixing.is_point
    assert type(mixing)(mixing.table, mixing.largest, 0.0).norm == 2.0


# ---- the table


def test_the_unit_of_a_table_is_the_largest_difference():
    stack, y = views(n=N, c=C, p=P, seed=1)
    for size in (1e-3, 1.0, 50.0):
        assert table_of(size * stack, y).size == pytest.approx(size * np.abs(eta_of(stack, y)).max(), rel=1e-12)
    # kernels that know nothing
    assert table_of(np.zeros((2, N, N)), y).size == 1.0


@pytest.mark.parametrize("n", [5, 40])
def test_groups_share_the_classes_evenly(n):
    stack, y = views(n=n, c=C, p=P)
    table = table_of(stack, y)
    assert table.n_groups == min(n, 12) == len(np.unique(table.groups)) == table.groups.max() + 1
    counts = np.array([np.bincount(table.groups[y == u], minlength=table.n_groups) for u in range(C)])
    assert np.all(np.ptp(counts, axis=1) <= 1) and np.ptp(counts.sum(axis=0)) <= 1
    # the margins of the groups add up to that of all samples
    beta = np.full(P, 1 / P)
    value, rows, groups = table.cuts(beta)
    assert rows.shape == (table.n_groups, P) and groups.tolist() == list(range(table.n_groups))
    margins = margins_at(eta_of(stack, y), y, beta) / n
    assert rows @ beta == pytest.approx(np.bincount(table.groups, margins), abs=1e-14)
    assert value == pytest.approx(margins.sum())


def test_the_smallest_margins_give_at_most_twelve_cuts_the_smallest_first():
    stack, y = views(n=40, c=C, p=P)
    table = table_of(stack, y)
    table = SmallestMargins(table.means, table.codes, table.weight)
    beta = np.full(P, 1 / P)
    value, rows, groups = table.cuts(beta)
    margins = np.sort(margins_at(eta_of(stack, y), y, beta))
    assert rows @ beta == pytest.approx(margins[:12]) and value == pytest.approx(margins[0]) and not groups.any()


@pytest.mark.parametrize(("n_active", "loops"), [(1, True), (2, False), (4, False)])
def test_few_of_many_kernels_are_added_up_and_the_others_are_not_read(n_active, loops):
    stack, y = views(n=N, c=C, p=4)
    table = table_of(stack, y)
    beta = np.where(np.arange(4) < n_active, 1.0 / n_active, 0.0)
    means = table.means.copy()
    means[n_active:] = np.nan
    found = MarginTable(means, table.codes, table.weight).nearest(beta)[1]
    assert np.isfinite(found).all() == (loops or n_active == 4)
    assert table.nearest(beta)[1] == pytest.approx(margins_at(eta_of(stack, y), y, beta))


# ---- the largest margin


def test_the_largest_margin_of_an_only_kernel_takes_no_programme(monkeypatch):
    stack, y = views(n=N, c=C, p=1)
    monkeypatch.setattr(LinearProgramme, "maximise", None)
    for norm in (1.0, 2.0):
        table = table_of(stack, y)
        found = largest_margin(table, norm)
        value = np.mean(margins_at(eta_of(stack, y), y, np.ones(1)))
        assert found.value == found.bound == pytest.approx(value) and found.cut == pytest.approx([value])
        assert found.weights == pytest.approx([1.0])


@NORMS
@SIZES
def test_the_cut_of_the_largest_margin_proves_its_bound(norm, size):
    mixing, eta, y = make(norm, size=size)
    found, table = mixing.largest, mixing.table
    assert found.value <= found.bound <= found.value + 1e-7 * table.size
    expected = table.weight @ margins_at(eta, y, found.weights)
    assert found.value == pytest.approx(expected, rel=1e-12)
    for beta in np.random.default_rng(0).dirichlet(np.ones(P), 100):
        assert found.cut @ beta >= table.weight @ margins_at(eta, y, beta) - 1e-12 * size
    largest = found.cut.max() if norm == 1 else mixing.base.support(np.maximum(found.cut, 0.0))[0]
    assert largest == pytest.approx(found.bound, rel=1e-9)
    assert np.sum(found.weights**norm) == pytest.approx(1.0, abs=1e-12)
    # cuts of groups lie above the margins of groups
    order = np.argsort(found.groups, kind="stable")
    beta = mixing.start(P)
    least = [np.min(found.rows[order][found.groups[order] == g] @ beta) for g in range(table.n_groups)]
    assert np.all(least >= table.cuts(beta)[1] @ beta - 1e-12 * size)


def test_kernels_of_negative_margin_have_a_largest_one_too():
    # the means of wrong classes are larger: over the ball shorter weights would be better
    stack, y = views(n=N, c=C, p=P, seed=1)
    table = table_of(-stack, y)
    found = largest_margin(table)
    value, _ = margin_programme(eta_of(-stack, y), y, None)
    assert found.value == pytest.approx(value, abs=1e-9) and not found.positive
    ball = largest_margin(table, 2.0)
    assert ball.value < 0 and not ball.positive and ball.bound >= ball.value


def test_a_largest_margin_is_positive_beyond_rounding():
    cut = np.array([-2.0, 1e-3, 1e3])
    for value, positive in ((1e-5, True), (1e-7, False), (0.0, False), (-1.0, False), (0.5, True)):
        assert Largest(value, 1.0, np.ones(3), cut, np.zeros((0, 3)), np.zeros(0, int)).positive == positive
    assert not Largest(0.0, 0.0, np.ones(3), np.zeros(3), np.zeros((0, 3)), np.zeros(0, int)).positive


@NORMS
def test_a_programme_of_cuts_is_the_smallest_of_each_group(norm):
    mixing, _, _ = make(norm)
    table = mixing.table
    programme = programme_for(table, norm)
    seen = []
    for beta in np.random.default_rng(0).dirichlet(np.ones(P), 3):
        _, rows, groups = table.cuts(beta)
        programme.add(rows, groups)
        seen.append(rows)
    beta = np.full(P, 0.2)
    expected = np.min([rows @ beta for rows in seen], axis=0).sum() / table.size
    assert programme.value(beta) == pytest.approx(expected)
    # the multiplier of the margin is one where the margin is what is maximised
    _, multiplier, v = programme.maximise(None)
    assert multiplier == 1.0
    # its cut, and that of another programme, lie above the cuts so far, also where a group has no multiplier
    for answer in (v, programme.maximise(np.ones(P), -1.0)[2], programme.maximise(np.eye(P)[0], 0.5 * mixing.level)[2]):
        for other in np.random.default_rng(1).dirichlet(np.ones(P), 20):
            assert answer @ other >= programme.value(other) - 1e-9


@pytest.mark.parametrize("missing", ["none", "one", "all"])
def test_any_multipliers_make_a_cut_that_is_a_mean_of_the_cuts_of_each_group(missing):
    mixing, _, _ = make()
    table, rng = mixing.table, np.random.default_rng(3)
    G = table.n_groups
    programme = LinearProgramme(table)
    for beta in rng.dirichlet(np.ones(P), 3):
        programme.add(*table.cuts(beta)[1:])
    multipliers = rng.random(3 * G)
    if missing != "none":
        multipliers[slice(None) if missing == "all" else programme.groups == 4] = 0.0
    programme._maximise = lambda q, level: (np.ones(P) / P, multipliers)
    _, total, v = programme.maximise(np.ones(P), 0.0)
    assert total == pytest.approx(multipliers.sum() / G)
    cuts = programme.V.reshape(3, G, P)
    for other in np.random.default_rng(1).dirichlet(np.ones(P), 20):
        values = cuts @ other
        assert values.min(axis=0).sum() - 1e-12 <= v @ other <= values.max(axis=0).sum() + 1e-12
    if missing != "all":
        shares = multipliers.reshape(3, G) / np.maximum(multipliers.reshape(3, G).sum(axis=0), 1e-300)
        rest = v - np.einsum("jg,jgk->k", shares, cuts)
        # without multipliers, one of the cuts of that group
        assert np.abs(rest - (0.0 if missing == "none" else cuts[:, 4])).max(axis=-1).min() <= 1e-12
