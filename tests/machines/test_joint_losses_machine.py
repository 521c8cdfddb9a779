"""The parts of the machine for joint losses: formulas, row steps, biases, Newton systems, warm starts."""

import numpy as np
import pytest
from problems_joint import draw
from problems_joint_losses import LOSSES, biases, names
from reference_joint import conic_other, joint_infeasibility
from scipy.optimize import minimize

from multikernel.gram.combined import HostCombined
from multikernel.gram.dense import DenseGram
from multikernel.losses import Hinge, LargestMargin, Logistic, Multinomial, SmoothHinge, SquaredHinge, joint_form
from multikernel.machines.base import inner_gap
from multikernel.machines.joint.interior_point import InteriorPoint, interior_point
from multikernel.machines.joint.joint_loss import JointLoss
from multikernel.machines.joint.loss_loops import (
    loss_of_excess,
    loss_row_steps,
    own_conjugate,
    row_conjugate,
    row_conjugates,
    row_gap,
    row_gaps,
    row_step,
)
from multikernel.machines.joint.newton_systems import (
    ClassBlocksNewtonSystem,
    DifferencesNewtonSystem,
    ProjectedNewtonSystem,
    with_ridge,
)
from multikernel.machines.joint.smooth_biases import joint_biases
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Point, Problem, Start
from multikernel.solve import solve

# ---- losses and rows


@names
def test_conjugates_are_those_of_the_values(loss):
    """The largest of -<a, f> - l(f) over f: no f does better, and one attains it; and Theorem 1 with its eta."""
    rng = np.random.default_rng(0)
    form = joint_form(LOSSES[loss])
    for _ in range(5):
        c, y = 4, np.array([int(rng.integers(4))])
        share = rng.dirichlet(np.ones(c - 1)) * rng.uniform(0.1, 0.9)
        a = np.insert(-share, y[0], share.sum())
        f = rng.normal(size=(2000, c)) * rng.uniform(0.1, 5.0, (2000, 1))
        worth = -f @ a - form.value(f, np.repeat(y, 2000))
        best = form.inverse_gradient(a[None], y)
        assert form.conjugate(a[None], y)[0] >= worth.max() - 1e-12
        assert form.conjugate(a[None], y)[0] == pytest.approx(-(best @ a)[0] - form.value(best, y)[0], abs=1e-12)
        if isinstance(form, LargestMargin):
            # no eta on the simplex does better than the sum
            eta = rng.dirichlet(np.ones(c - 1))
            other = float(eta @ form.loss.conjugate(share / eta, np.ones(c - 1)))
            assert form.conjugate(a[None], y)[0] <= other + 1e-12


@names
def test_derivatives_of_the_conjugate(loss):
    rng = np.random.default_rng(1)
    form, y = joint_form(LOSSES[loss]), np.array([2])
    share = rng.dirichlet(np.ones(3)) * 0.6
    a = np.insert(-share, 2, share.sum())
    f = form.inverse_gradient(a[None], y)
    # a step along e_u - e_v keeps the row in the set
    for u, v in ((0, 2), (2, 1), (1, 0)):
        d = 1e-5 * (np.eye(4)[u] - np.eye(4)[v])
        high, low, here = (form.conjugate((a + t * d)[None], y)[0] for t in (1, -1, 0))
        assert (high - low) / 2e-5 == pytest.approx(-(f[0, u] - f[0, v]), rel=1e-6, abs=1e-8)
        D = form.curvature(a[None], y)[0]
        assert (high + low - 2 * here) / 1e-10 == pytest.approx(D[u] + D[v], rel=1e-3, abs=1e-4)


def test_only_known_losses_have_a_joint_form():
    class Own(Logistic):
        pass

    assert joint_form(Hinge()) is None and joint_form(Own()) is None
    with pytest.raises(ValueError, match="must have a form for all classes at once"):
        JointLoss(np.array([0, 1, 2]), Hinge())


def gap_of_row(form, s, a, C, y):
    return row_gap(*form, s, a, C, y, row_conjugate(*form, a, C, y))


@pytest.mark.loops
@names
def test_row_steps_leave_no_gap(loss):
    """After the exact step k (a - z) is a subgradient: the row's gap is zero there, and positive elsewhere.

    Wherever the search begins: at no coefficients, at those of another step, at a bound.
    """
    rng = np.random.default_rng(0)
    form = joint_form(LOSSES[loss]).form
    for _ in range(60):
        c = int(rng.integers(2, 7))
        C, k, y = 10 ** rng.uniform(-2, 3), 10 ** rng.uniform(-3, 2), int(rng.integers(c))
        z, out = C * rng.normal(size=c) * 10 ** rng.uniform(-1, 2), np.empty(c)
        share, bound = rng.dirichlet(np.ones(c - 1)), np.zeros(c)
        bound[y], bound[y - 1] = C, -C
        for near in (np.zeros(c), C * np.insert(-share, y, 1.0) * rng.random(), bound):
            row_step(*form, z, k, C, y, near, np.empty(c), np.empty(c), out)
            s = k * (out - z)
            size = C * (1.0 + np.abs(s).max())
            assert abs(out.sum()) <= 1e-12 * np.abs(out).max() and (np.delete(out, y) <= 0).all()
            assert gap_of_row(form, s, out, C, y) <= 1e-8 * size
            assert gap_of_row(form, s + rng.normal(size=c), out, C, y) >= -1e-12 * size


@pytest.mark.loops
@pytest.mark.parametrize(("z", "k", "C", "y"), [
    ([4.1, -5.5, 8.5], 0.1, 10.0, 2), ([0.1, -0.1, -0.3], 100.0, 0.1, 0), ([-0.1, -0.1, -0.1, 0.0, 0.1], 1.0, 1.0, 3),
    ([-0.3, -0.2, -2.9, -1.1, 0.1], 0.1, 1.0, 0),
])  # fmt: skip
def test_row_steps_end_where_a_class_is_on_the_threshold(z, k, C, y):
    """Rounding puts it on one side with the threshold of the classes without it, on the other with that of all."""
    form, c, out = joint_form(LOSSES["squared_hinge"]).form, len(z), np.empty(len(z))
    row_step(*form, np.array(z), k, C, y, np.zeros(c), np.empty(c), np.empty(c), out)
    assert gap_of_row(form, k * (out - z), out, C, y) <= 1e-12 * C * (1.0 + k * np.abs(out - z).max())


@pytest.mark.loops
@names
def test_loops_have_the_formulas_of_the_losses(loss):
    form, rng = joint_form(LOSSES[loss]), np.random.default_rng(0)
    f, y = 3 * rng.normal(size=(20, 4)), np.arange(20) % 4
    share = 0.9 * rng.dirichlet(np.ones(3), 20)
    for i in range(20):
        a = np.insert(-share[i], y[i], share[i].sum())
        gap = form.value(f, y)[i] + form.conjugate(a[None], y[[i]])[0] + a @ f[i]
        assert gap_of_row(form.form, f[i], a, 1.0, y[i]) == pytest.approx(gap, abs=1e-12)
        if isinstance(form, LargestMargin):
            t = -form.margins(f, y)[i]
            assert loss_of_excess(*form.form, t)[0] == pytest.approx(form.value(f, y)[i], rel=1e-12)
            assert own_conjugate(*form.form, a[y[i]]) == pytest.approx(form.conjugate(a[None], y[[i]])[0], rel=1e-12)


@pytest.mark.loops
@names
def test_gaps_of_all_rows_are_those_of_each(loss):
    form, rng = joint_form(LOSSES[loss]).form, np.random.default_rng(1)
    c, n = 4, 15
    G, r, S, t = rng.normal(size=(c, n)), rng.normal(size=n), rng.normal(size=c), rng.normal(size=c)
    C, y = rng.uniform(0.1, 5.0, n), np.arange(n) % c
    A = np.array([C[j] * np.insert(-0.8 * rng.dirichlet(np.ones(c - 1)), y[j], 0.8) for j in range(n)]).T.copy()
    gaps, s = np.empty(n), -(G + S[:, None] * r + t[:, None])
    total = row_gaps(*form, G, A, r, S, t, C, y, row_conjugates(*form, A, C, y), gaps)
    assert gaps == pytest.approx([gap_of_row(form, s[:, j], A[:, j], C[j], y[j]) for j in range(n)], rel=1e-10)
    assert total == pytest.approx(gaps.sum())


@pytest.mark.loops
@names
@pytest.mark.parametrize("n, c, size", [(6, 2, 1.0), (30, 3, 5.0), (24, 5, 0.1), (30, 3, 300.0), (40, 8, 1e5)])
def test_best_biases_are_best(loss, n, c, size):
    """No loss of other biases is below, near or far: the problem is convex."""
    rng = np.random.default_rng([n, c])
    form = joint_form(LOSSES[loss])
    y, C = np.arange(n) % c, rng.uniform(0.5, 2.0, n)
    f = size * (rng.normal(size=(n, c)) + rng.normal(size=c)) + np.eye(c)[y]
    b = joint_biases(f, C, y, form.form, 1e-12)
    least = float(C @ form.value(f + b, y))
    for scale in (1e-4, 1e-2, 1.0):
        for _ in range(30):
            other = b + scale * size * rng.normal(size=c)
            assert float(C @ form.value(f + other, y)) >= least - 1e-10 * (least + C.sum())


# ---- Newton's method


@biases
@names
def test_the_interior_point_method_alone_reaches_the_optimum(loss, fit_intercept):
    stack, y, C, norm, c, _ = draw(21, n=20, norm=np.inf)
    machine = JointLoss(y, LOSSES[loss], C, fit_intercept, c)
    point = Point(Problem(DenseGram(stack), machine, mixing_for(norm)))
    a = interior_point(machine, point.combined, point.a, point.f, 1e-9 * machine.scale)
    f = point.combined.apply(a)
    assert inner_gap(machine, a, f)[0] <= 1e-9 * machine.scale
    upper = machine.primal(f, float(np.vdot(a, f)))[0]
    assert upper == pytest.approx(conic_other(stack, y, C, norm, loss, fit_intercept), rel=1e-5)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("kind", [DifferencesNewtonSystem, ClassBlocksNewtonSystem])
def test_newton_systems_with_a_diagonal(kind, balanced):
    """Stationary over its directions: R - KZ - D Z is b_u + tau_i on the free entries."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    combined = HostCombined(DenseGram(np.exp(-2.0 * ((X[:, None] - X) ** 2).sum(axis=2))[None]), np.ones(1))
    free = rng.random((20, 4)) < 0.7
    free &= free.sum(axis=1, keepdims=True) > 1
    R, D = rng.normal(size=(1, 20, 4)), rng.uniform(0.0, 3.0, (20, 4))
    blocks = kind(combined, free, balanced, D)
    Z = np.zeros((20, 4))
    Z[blocks.rows] = blocks.solve(R)[..., 0]
    left = R[0] - combined.host_rows().matrix @ Z - D * Z
    i, u = np.nonzero(free)
    design = np.hstack([np.eye(20)[i], np.eye(4)[u] if balanced else np.zeros((len(i), 0))])
    assert np.abs(left[i, u] - design @ np.linalg.lstsq(design, left[i, u], rcond=None)[0]).max() < 1e-6
    np.testing.assert_allclose(Z.sum(axis=1), 0.0, atol=1e-9)
    if balanced:
        np.testing.assert_allclose(Z.sum(axis=0), 0.0, atol=1e-8)


@pytest.mark.parametrize("held", [1e4, 1e8])
def test_an_entry_that_is_held_does_not_drown_its_row(held):
    """One entry of each row, the first one among them, hardly moves; single precision does for the others."""
    rng = np.random.default_rng(0)
    X, rows = rng.normal(size=(12, 3)), np.arange(12)
    combined = HostCombined(DenseGram(np.exp(-np.square(X[:, None] - X).sum(axis=2))[None]), np.ones(1))
    free, D, R = np.ones((12, 4), bool), np.full((12, 4), 1e-3), rng.normal(size=(1, 12, 4))
    D[rows, rows % 4] = held
    exact = ClassBlocksNewtonSystem(combined, free, True, D).solve(R)
    rough = DifferencesNewtonSystem(combined, free, True, D, single=True).solve(R)
    assert np.abs(rough - exact).max() <= 1e-3 * np.abs(exact).max()


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_newton_systems_by_iterations(dtype, balanced):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2)).astype(dtype)
    combined = HostCombined(DenseGram(K[None]), np.ones(1))
    R, D = rng.normal(size=(3, 30, 4)) + 50.0, 10 ** rng.uniform(-1, 6, (30, 4))
    exact = DifferencesNewtonSystem(
        HostCombined(DenseGram(K[None].astype(float)), np.ones(1)), np.ones((30, 4), bool), balanced, D
    )
    projected = ProjectedNewtonSystem(combined, D, balanced)
    Z = projected.solve(R, 1e-12 if dtype == np.float64 else 1e-8, 100)
    np.testing.assert_allclose(Z, exact.solve(R), atol=(1e-6 if dtype == np.float64 else 1e-3) * np.abs(Z).max())
    np.testing.assert_allclose(Z.sum(axis=1), 0.0, atol=1e-5)
    assert projected.solve(R, 1e-12, 1) is None


def test_a_ridge_grows_until_the_factorisation_succeeds():
    tried = []

    def matrix(least):
        tried.append(least)
        return np.diag([1.0, least])

    factor = with_ridge(lambda: matrix(-3e-4), 1.0, np.linalg.cholesky)
    np.testing.assert_allclose(factor @ factor.T, np.diag([1.001, 7e-4]), rtol=1e-9)
    assert len(tried) == 9
    with pytest.raises(np.linalg.LinAlgError, match="not positive semidefinite"):
        with_ridge(lambda: matrix(-2.0), 1.0, np.linalg.cholesky)


def noisy_corners(n: int) -> tuple[np.ndarray, DenseGram]:
    """Three classes, and Gaussian kernels of two widths."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 3))
    y = np.argmax(X + 0.5 * rng.normal(size=X.shape), axis=1)
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    return y, DenseGram(np.exp(-np.array([[[0.1]], [[1.0]]]) * distances))


@biases
def test_large_multinomial_problems_answer_by_iterations(fit_intercept):
    y, gram = noisy_corners(350)
    machine = JointLoss(y, Multinomial(), 0.5, fit_intercept)
    problem = Problem(gram, machine, mixing_for(1.0))
    beta, move = np.array([0.4, 0.6]), np.array([1e-4, -1e-4])
    here, there = Point(problem, beta), Point(problem, beta + move)
    for point in (here, there):
        point.solve(1e-11)
    c = machine.curvature(here.combined, here.a, here.f, here.outputs)
    assert len(c.free) == 350
    np.testing.assert_allclose(-0.5 * (there.q - here.q), c.H @ move, rtol=0.03)
    solution = solve(problem, tol=1e-6)
    assert solution.status == "converged" and solution.n_iter <= 10


@biases
@names
def test_curvature_predicts_the_next_solution(loss, fit_intercept):
    y, gram = noisy_corners(40)
    machine = JointLoss(y, LOSSES[loss], 1.0, fit_intercept)
    problem = Problem(gram, machine, mixing_for(1.0))
    beta, move = np.array([0.4, 0.6]), np.array([1e-4, -1e-4])
    here, there = Point(problem, beta), Point(problem, beta + move)
    for point in (here, there):
        point.solve(1e-12)
    c = machine.curvature(here.combined, here.a, here.f, here.outputs)
    change, predicted = there.a - here.a, np.zeros_like(here.a)
    predicted[c.free] = -c.response @ move
    np.testing.assert_allclose(predicted, change, atol=0.03 * np.abs(change).max())
    np.testing.assert_allclose(-0.5 * (there.q - here.q), c.H @ move, rtol=0.03)
    assert np.abs(c.response.sum(axis=1)).max() < 1e-9 * np.abs(c.response).max()


@biases
@names
def test_interior_points_have_the_curvature_of_the_solution(loss, fit_intercept):
    """Entries that the method leaves near their bounds count as far as their slopes let them move."""
    y, gram = noisy_corners(40)
    machine = JointLoss(y, LOSSES[loss], 1.0, fit_intercept)
    point = Point(Problem(gram, machine, mixing_for(1.0)), np.array([0.4, 0.6]))
    path = InteriorPoint(machine, point.combined, point.a, point.f, np.zeros(3), 1e-2 * machine.scale)
    steps = 0
    while path.products > 1e-9 * machine.scale:
        path.step()
        steps += 1
    assert steps <= 30
    point.solve(1e-12)
    H = [machine.curvature(point.combined, point.a, point.f, point.outputs).H]
    point.set_dual(machine.make_feasible(path.A))
    H.append(machine.curvature(point.combined, point.a, point.f, point.outputs).H)
    np.testing.assert_allclose(*H, rtol=0.05, atol=1e-3 * np.abs(H[0]).max())


# ---- starts


@biases
@names
def test_repair_is_feasible_and_leaves_feasible_points_alone(loss, fit_intercept):
    rng = np.random.default_rng(0)
    y, C = rng.integers(0, 5, 40), rng.uniform(0.1, 10.0, 40)
    machine = JointLoss(y, LOSSES[loss], C, fit_intercept, 5)
    for A in (machine.start(), machine.make_feasible(10 * rng.normal(size=(40, 5)))):
        most = np.maximum(C, A.max(axis=1)) if loss == "squared_hinge" else C
        assert joint_infeasibility(A, y, most, fit_intercept) < 1e-12
        np.testing.assert_allclose(machine.make_feasible(A), A, atol=1e-11)
        assert np.isfinite(machine.dual(A))


@names
def test_warm_starts_carry_over_to_other_costs(loss):
    stack, y, C, norm, c, flag = draw(24, n=40)
    machines = [JointLoss(y, LOSSES[loss], cost, flag, c) for cost in (C, 1.2 * C)]
    gram = DenseGram(stack)
    first = solve(Problem(gram, machines[0], mixing_for(norm)), tol=1e-7)
    a, b, F = machines[1].warm_start(machines[0], first.dual_coef, first.outputs)
    most = np.maximum(1.2 * C, a.max(axis=1)) if loss == "squared_hinge" else 1.2 * C
    assert joint_infeasibility(a, y, most, flag) < 1e-12
    problem = Problem(gram, machines[1], mixing_for(norm))
    warm = solve(problem, tol=1e-6, start=Start(first.weights, a, (b, F)))
    cold = solve(problem, tol=1e-6)
    assert warm.upper == pytest.approx(cold.upper, rel=1e-5) and warm.n_iter <= cold.n_iter
    again = solve(problem, tol=1e-4, start=Start(cold.weights, cold.dual_coef))
    assert again.n_iter == 0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_biases_far_from_those_of_the_smoothed_loss_are_reached(sign):
    """Few samples, all but one far on their side: the loss is nearly linear in the biases, whose steps are short."""
    y = np.array([4, 0, 3, 3, 1, 0, 2, 2, 1])
    f = np.array(
        [
            [-0.42, -4.434, -1.157, -5.077, 11.087],
            [6.023, -1.123, -0.15, -5.705, 0.956],
            [-12.59, -3.744, 2.648, 8.789, 4.897],
            [-2.676, -1.17, -0.198, 3.136, 0.909],
            [0.652, 8.123, -3.673, -5.799, 0.697],
            [9.556, 0.776, 1.749, -14.934, 2.855],
            [0.287, -5.205, 9.632, -4.371, -0.343],
            [5.852, -17.111, 16.131, -8.048, 3.176],
            [-0.534, 8.105, -2.04, -6.903, 1.372],
        ]
    )
    machine = JointLoss(y, Logistic(), 672.0)
    loss = [float(machine.losses(f + machine.best_biases(f, enough)).sum()) for enough in (1e-3, 1e-6, 1e-9)]
    assert loss[0] <= loss[2] + 1e-3 and loss[1] <= loss[2] + 1e-6
    # a shift of one class by a little is no better
    b = machine.best_biases(f, 1e-9)
    for shift in 1e-3 * sign * np.eye(5):
        assert machine.losses(f + b + shift).sum() >= loss[2]


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_at_small_costs_few_row_steps_find_the_biases(seed, monkeypatch):
    """The conjugate curves so much that biases must move far before the column sums do."""
    steps = []

    def counted(*args):
        found = loss_row_steps(*args)
        steps.append(found[1])
        return found

    monkeypatch.setattr("multikernel.machines.joint.joint_loss.loss_row_steps", counted)
    rng = np.random.default_rng(seed)
    n, c = 200, 5
    y = np.arange(n) % c
    X = rng.normal(size=(n, 6))
    X[:, :2] += 2 * np.c_[np.cos(2 * np.pi * y / c), np.sin(2 * np.pi * y / c)]
    stack = np.stack([(1 + X @ X.T / 6) ** degree for degree in range(1, 5)])
    stack /= np.array([np.trace(K) / n - K.mean() for K in stack])[:, None, None]
    machine = JointLoss(y, SmoothHinge(), 1e-4)
    assert solve(Problem(DenseGram(stack), machine, mixing_for(1))).status == "converged"
    assert sum(steps) <= 2 * n


# of a direct search, which needs no derivatives
SEARCH = {"xatol": 1e-12, "fatol": 1e-15, "maxiter": 6000, "maxfev": 6000}


@pytest.mark.parametrize("seed", [28, 56, 76, 101])
def test_best_biases_are_as_good_as_was_asked_for(seed):
    """Classes so far apart that the smoothed problems are nearly linear, where steps are cut back for long."""
    rng = np.random.default_rng(seed)
    n, c = int(rng.integers(4, 30)), int(rng.integers(2, 6))
    y, f = rng.integers(0, c, n), rng.normal(size=(n, c)) * 10 ** rng.uniform(-1, 2)
    f[np.arange(n), y] += rng.uniform(0, 20)
    loss = [Logistic(), SmoothHinge(), SquaredHinge(), Multinomial()][seed % 4]
    machine = JointLoss(y, loss, 10 ** rng.uniform(-6, 6), True, c)
    total = machine.C.sum()

    def loss_at(b):
        return float(machine.losses(f + b).sum()) / total

    b = machine.best_biases(f, 1e-9 * total)
    least = min(
        minimize(loss_at, b + size * rng.normal(size=c), method="Nelder-Mead", options=SEARCH).fun
        for size in (0.0, 1e-3, 0.1)
    )
    assert loss_at(b) - least <= 1.1e-9
