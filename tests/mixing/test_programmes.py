"""Linear programmes by HiGHS and conic ones by Clarabel: solutions, multipliers, units, and that they keep quiet."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from multikernel.mixing.cones import ConeRows, solve_conic
from multikernel.mixing.highs import HighsProgramme

NO_LIMIT = np.inf


def draw(seed, m=4, p=3):
    """A programme min c'x over A x >= b, x >= 0 that is feasible and bounded."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, p))
    return A, A @ rng.random(p) - rng.random(m), rng.random(p) + 0.1


# ---- linear programmes


@pytest.mark.parametrize("seed", range(5))
def test_a_linear_programme_and_its_multipliers(seed):
    A, b, c = draw(seed)
    programme = HighsProgramme(np.zeros(3))
    programme.add_rows(A[:1], b[:1], np.full(1, NO_LIMIT))
    programme.add_rows(A[1:], b[1:], np.full(3, NO_LIMIT))
    x, multipliers = programme.minimise(c)
    expected = linprog(c, -A, -b)
    assert c @ x == pytest.approx(expected.fun, abs=1e-9) and np.all(A @ x >= b - 1e-9) and np.all(x >= 0)
    # a proof: the multipliers are feasible for the dual programme, whose value is that of the primal one
    assert np.all(multipliers >= -1e-9) and np.all(A.T @ multipliers <= c + 1e-9)
    assert b @ multipliers == pytest.approx(c @ x, abs=1e-9)


def test_rows_may_be_about_some_variables_and_have_two_bounds():
    programme = HighsProgramme(np.array([0.0, -np.inf, 0.0]))
    # 2 <= x_2 + x_0 and x_1 + 2 x_2 <= 3, -1 <= x_1 - x_0 <= 4
    A, columns = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, -1.0]]), np.array([[2, 0], [1, 2], [1, 0]])
    programme.add_rows(A, np.array([2.0, -np.inf, -1.0]), np.array([np.inf, 3.0, 4.0]), columns)
    x, _ = programme.minimise(np.array([1.0, 0.0, 0.0]))
    assert x[0] == pytest.approx(0.0, abs=1e-9)
    x, _ = programme.minimise(np.array([0.0, 1.0, 0.0]))
    assert x[1] == pytest.approx(-1.0)
    x, _ = programme.minimise(np.array([0.0, -1.0, 0.0]))
    assert x[1] == pytest.approx(3.0) and x[2] == pytest.approx(0.0, abs=1e-9)


def test_no_rows_are_nothing_to_add():
    programme = HighsProgramme(np.array([1.0, 2.0]))
    programme.add_rows(np.zeros((0, 2)), np.zeros(0), np.zeros(0))
    x, multipliers = programme.minimise(np.ones(2))
    np.testing.assert_array_equal(x, [1.0, 2.0])
    assert multipliers.shape == (0,)


def test_the_lower_bound_of_a_row_may_change():
    programme = HighsProgramme(np.zeros(2))
    programme.add_rows(np.eye(2), np.array([3.0, 5.0]), np.full(2, NO_LIMIT))
    for lower in (4.0, 1.0, -np.inf):
        programme.set_lower(1, lower)
        x, _ = programme.minimise(np.ones(2))
        assert x == pytest.approx([3.0, max(lower, 0.0)])


def test_a_programme_without_solution_has_none_until_it_is_feasible_again():
    programme = HighsProgramme(np.zeros(1))
    programme.add_rows(np.array([[-1.0]]), np.array([1.0]), np.array([NO_LIMIT]))
    assert programme.minimise(np.ones(1)) is None
    programme.set_lower(0, -3.0)
    assert programme.minimise(-np.ones(1))[0] == pytest.approx([3.0])
    programme.set_lower(0, -np.inf)
    # without a bound
    assert programme.minimise(-np.ones(1)) is None


def test_a_solver_that_gives_up_begins_anew():
    programme = HighsProgramme(np.zeros(1))
    programme.add_rows(np.eye(1), np.array([2.0]), np.array([NO_LIMIT]))
    real = programme._lp

    class Spoilt:
        """Fails until it is cleared."""

        cleared = False

        def __getattr__(self, name):
            return getattr(real, name)

        def clearSolver(self):
            self.cleared = True

        def getModelStatus(self):
            return real.getModelStatus() if self.cleared else None

    programme._lp = Spoilt()
    assert programme.minimise(np.ones(1))[0] == pytest.approx([2.0])
    # one that is fine is not cleared, which would cost it its basis
    programme._lp = Spoilt()
    programme._lp.getModelStatus = real.getModelStatus
    programme.minimise(np.ones(1))
    assert not programme._lp.cleared


# ---- conic programmes


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array, sparse.coo_array])
def test_a_conic_programme_of_two_blocks_is_that_of_all_rows(kind, seed):
    # each block names the variables its columns stand for
    A, b, c = draw(seed)
    columns = np.array([2, 0])
    rows = ConeRows(kind(-A), -b, (("nonnegative", 4),))
    least = ConeRows(kind(-np.eye(2)), -np.array([0.3, 0.2]), (("nonnegative", 2),))
    below = ConeRows(kind(-np.eye(1)), np.zeros(1), (("nonnegative", 1),))
    x, z = solve_conic(np.zeros(3), c, [(rows, np.arange(3)), (least, columns), (below, np.array([1]))])
    expected = linprog(c, -A, -b, bounds=[(0.2, None), (0.0, None), (0.3, None)])
    assert c @ x == pytest.approx(expected.fun, abs=1e-7)
    assert [len(each) for each in z] == [4, 2, 1]
    # the slopes of the costs are those of the rows
    slopes = A.T @ z[0]
    slopes[columns] += z[1]
    slopes[1] += z[2][0]
    assert slopes == pytest.approx(c, abs=1e-7) and all(np.all(each >= -1e-9) for each in z)


@pytest.mark.parametrize("whole", [False, True])
def test_the_quadratic_term_may_be_a_matrix_or_its_diagonal(whole):
    # min 1/2 x'Px + c'x without rows that bind: P x = -c
    P = np.array([[2.0, 0.5], [0.5, 1.0]]) if whole else np.array([2.0, 4.0])
    c = np.array([-1.0, 3.0])
    far = ConeRows(np.eye(2), np.full(2, 10.0), (("nonnegative", 2),))
    x, _ = solve_conic(P, c, [(far, np.arange(2))])
    assert x == pytest.approx(np.linalg.solve(P if whole else np.diag(P), -c), abs=1e-7)


def test_cones_without_rows_are_left_out():
    none = ConeRows(np.zeros((0, 1)), np.zeros(0), (("nonnegative", 0),))
    least = ConeRows(-np.eye(1), np.array([-2.0]), (("nonnegative", 1),))
    for blocks in ([none, least], [least, none]):
        x, z = solve_conic(np.zeros(1), np.ones(1), [(rows, np.arange(1)) for rows in blocks])
        assert x == pytest.approx([2.0]) and [len(each) for each in z] == [len(rows.b) for rows in blocks]


@pytest.mark.parametrize(("size", "price"), [(1.0, 1.0), (1e6, 1.0), (1.0, 1e6), (1e6, 1e6), (1e9, 1e9)])
def test_no_unit_makes_a_feasible_programme_infeasible(size, price):
    # max 2 x + y over x >= 1, y >= 2, x + y <= 4, x - y <= 1/2: at x = y = 2
    rows = ConeRows(
        np.array([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0], [1.0, -1.0]]),
        size * np.array([-1.0, -2.0, 4.0, 0.5]),
        (("nonnegative", 4),),
    )
    x, (z,) = solve_conic(np.zeros(2), price * np.array([-2.0, -1.0]), [(rows, np.arange(2))])
    assert x / size == pytest.approx([2.0, 2.0], abs=1e-4)
    assert z / price == pytest.approx([0.0, 1.0, 2.0, 0.0], abs=1e-4)


@pytest.mark.parametrize("seed", range(12))
def test_badly_scaled_quadratic_programmes_have_the_right_minimiser(seed):
    # min 1/2 x'Hx + c'x over the simplex, costs from 1e-50 to 1e50: Clarabel gives up on most of them as they stand
    rng, p = np.random.default_rng(seed), 3
    R = rng.normal(size=(p, p)) * 10.0 ** rng.uniform(-50, 50, size=p)
    H, c = R.T @ R, rng.normal(size=p) * 10.0 ** rng.uniform(-100, 100)
    whole = ConeRows(
        np.vstack([np.ones((1, p)), -np.eye(p)]), np.append(1.0, np.zeros(p)), (("zero", 1), ("nonnegative", p))
    )
    x, _ = solve_conic(H, c, [(whole, np.arange(p))])
    assert abs(x.sum() - 1.0) <= 1e-4 and x.min() >= -1e-4
    # no other point is better by more than the accuracy, in units of the largest cost
    slope, unit = H @ x + c, max(np.abs(H).max(), np.abs(c).max())
    assert slope @ x - slope.min() <= 1e-4 * unit


def test_a_point_at_which_clarabel_gave_up_is_not_used(monkeypatch):
    import clarabel

    least, calls = ConeRows(-np.eye(1), np.array([-2.0]), (("nonnegative", 1),)), []

    def solver(P, c, *rest, make=clarabel.DefaultSolver):
        settings = rest[-1]
        settings.max_iter = 1
        calls.append(c[0])
        return make(P, c, *rest)

    monkeypatch.setattr(clarabel, "DefaultSolver", solver)
    assert solve_conic(np.zeros(1), np.array([3.0]), [(least, np.arange(1))]) is None
    # the second time in units of the cost
    assert calls == [3.0, 1.0]


def test_programmes_print_nothing(capfd):
    programme = HighsProgramme(np.zeros(1))
    programme.add_rows(np.eye(1), np.array([2.0]), np.array([NO_LIMIT]))
    programme.minimise(np.ones(1))
    solve_conic(np.zeros(1), np.ones(1), [(ConeRows(-np.eye(1), np.zeros(1), (("nonnegative", 1),)), np.arange(1))])
    assert capfd.readouterr() == ("", "")
