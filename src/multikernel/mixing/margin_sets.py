"""Weights held to a kernel margin: the set B of problem (7) of Cortes, Mohri & Rostamizadeh 2013.

    B = {beta >= 0, sum beta = 1, h(beta) >= gamma0}               (norm 1)
    B = {beta >= 0, ||beta||_q <= 1, h(beta) >= gamma0 >= 0}       (norm q > 1)

h is concave and the smallest of linear functions v . beta, so that B is the intersection of all half-spaces
v . beta >= gamma0. A programme over B begins with the cuts found with the largest margin. Where its solution violates
h, the cuts at that solution are added and the programme is solved again, so that nothing is approximated. Programmes
are made anew in each call: a set never changes.

What a set returns is always in B: beta + t (beta* - beta), with beta* of the largest margin, has a margin of at least
gamma0 for the t at which the straight line between the two margins reaches it. And the support function is bounded
from above for any multipliers lambda >= 0 of the half-spaces v_j,

    sigma_B(q) <= sigma_S(q + sum_j lambda_j v_j) - gamma0 sum_j lambda_j,      S the set without the margin,

so that certificates are rigorous however exactly a programme was solved. gamma0 is lowered by 1e-10 of the largest
eta: at the largest feasible value the set would otherwise have no interior for a solver to move in. A set of width
below 1e-6, as there mostly, counts as its only point beta*.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from multikernel.mixing.base import NEGLIGIBLE, SOLVED, KeptRows, Mixing, Row
from multikernel.mixing.cones import ACCURACY, ConeRows, solve_conic
from multikernel.mixing.largest_margin import ROUNDS, Largest, largest_margin, largest_over, programme_for
from multikernel.mixing.margin_table import MarginTable
from multikernel.mixing.norms import Ball, Simplex

# width, in some directions, below which the set counts as a point: solvers cannot move in narrower sets
_POINT = 1e-6


@dataclass(frozen=True, eq=False)
class _MarginSet(Mixing):
    """What the two sets share.

    Parameters
    ----------
    table : MarginTable
        The margins.
    largest : Largest
        The largest margin.
    gamma0 : float
        Smallest margin, at most the largest feasible one.
    """

    table: MarginTable
    largest: Largest
    gamma0: float

    def __post_init__(self) -> None:
        if self.gamma0 > self.largest.value + ACCURACY * self.table.size:
            raise ValueError(
                f"The margin gamma0 must be at most {self.largest.value:.9g}, the largest feasible value. "
                f"Got {self.gamma0:g} instead."
            )

    @property
    @abstractmethod
    def base(self) -> Simplex | Ball:
        """The set without the margin."""

    @property
    def description(self) -> str:
        return f"norm={self.norm:g} and a kernel margin gamma0={self.gamma0:.4g}"

    @property
    def level(self) -> float:
        """The margin that members have, a little less than gamma0, in units of the table's size."""
        return min(self.gamma0, self.largest.value) / self.table.size - ACCURACY

    @cached_property
    def is_point(self) -> bool:
        """Whether beta* is the only member, as far as float64 can tell."""
        return self.table.n_kernels == 1 or self._is_point()

    @abstractmethod
    def _is_point(self) -> bool:
        """Whether a set of several kernels has one member."""

    # ---- points of the set

    def start(self, p):
        return self.scale_to_boundary(self.base.start(p))

    def make_feasible(self, beta):
        """Return beta where it has the margin, else the first point towards beta* that has it."""
        return self.largest.weights if self.is_point else self._towards_best(beta)

    def _towards_best(self, beta: np.ndarray) -> np.ndarray:
        value, top = self.table.value(beta) / self.table.size, self.largest.value / self.table.size
        if value >= self.level:
            return beta
        # the level is below the largest margin
        t = min(1.0, (self.level - value) / (top - value) * (1.0 + 1e-12))
        return (1.0 - t) * beta + t * self.largest.weights

    def scale_to_boundary(self, beta):
        if self.is_point or not beta.any():
            return self.largest.weights
        return self._boundary(beta)

    def _boundary(self, beta: np.ndarray) -> np.ndarray:
        """Return a point of the set on the boundary of the norm, from weights that are not zero."""
        return self._towards_best(self.base.scale_to_boundary(beta))

    def violated_row(self, beta: np.ndarray) -> Row | None:
        """Return the half-space that beta violates most."""
        value, rows, _ = self.table.cuts(beta)
        # a solver that missed the first half-space by as much missed it by rounding
        if value / self.table.size >= min(self.level, float(self._first @ beta)) - ACCURACY:
            return None
        return self._half_space(rows)

    def _half_space(self, cuts: np.ndarray) -> Row:
        """Return the half-space in which the cuts of the groups have the margin together."""
        return cuts.sum(axis=0) / self.table.size, self.level

    @property
    def _first(self) -> np.ndarray:
        """The half-space that touches the set's largest margin, with which descriptions begin."""
        return self.largest.cut / self.table.size

    # ---- support function and steps

    def support(self, q):
        unit = float(np.abs(q).max())
        if unit == 0.0 or self.is_point:
            return float(self.largest.weights @ q), self.largest.weights
        value, beta = self._support(q / unit)
        return unit * value, beta

    def _support(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        """Bounds from both sides until they meet, or the cuts have no news; q of size one."""
        best, bound = self.largest.weights, largest_over(self.base, q)
        value, size = float(best @ q), self.table.size
        programme = programme_for(self.table, self.norm)
        programme.add(self.largest.rows, self.largest.groups)
        for _ in range(ROUNDS):
            answer = programme.maximise(q, self.level)
            if answer is None:
                break
            beta, multiplier, v = answer
            bound = min(bound, largest_over(self.base, q + multiplier * v) - multiplier * self.level)
            new = self._boundary(beta) if beta.any() else best
            if new @ q > value:
                best, value = new, float(new @ q)
            if bound - value <= SOLVED:
                break
            margin, rows, groups = self.table.cuts(beta)
            if margin / size >= min(self.level, programme.value(beta)) - ACCURACY:
                break
            programme.add(rows, groups)
        return max(bound, value), best

    def newton_step(self, beta: np.ndarray, q: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Minimise the second-order model of J over the set."""
        p = len(q)
        c = -0.5 * q - H @ beta
        unit = max(np.trace(H) / p, np.abs(c).max()) or 1.0
        return self.scale_to_boundary(self._quadratic(H / unit + 1e-10 * np.eye(p), c / unit, beta))

    def closed_form(self, beta, q, relax=1.0):
        s = beta * np.sqrt(np.maximum(q, 0.0))
        if not s.any():
            return self.start(len(q))
        new = self.scale_to_boundary(self._hyperbolic(s / s.max(), beta))
        if relax != 1.0:
            alive = beta > 0
            moved = np.zeros_like(new)
            moved[alive] = beta[alive] * (new[alive] / beta[alive]) ** relax
            new = self.scale_to_boundary(moved)
        return new

    # ---- as rows of conic programmes

    def cone_rows(self, p: int) -> ConeRows:
        """Return the set with one half-space for the margin, as rows over beta and what the norm adds."""
        rows = self.base.cone_rows(p)
        wide = np.append(-self._first, np.zeros(rows.A.shape[1] - p))
        return ConeRows(np.vstack([rows.A, wide]), np.append(rows.b, -self.level), (*rows.cones, ("nonnegative", 1)))

    def support_rows(self, p: int) -> ConeRows:
        """Return {sigma_B(t) <= s} for t >= 0 exactly, as rows over (t, s, ...), all n(c - 1) margins among them.

        sigma_B(t) = min of sigma_S(z) - gamma0 lambda over w_iu >= 0 with sum_u w_iu = lambda for each i, and
        z_k >= t_k + sum_iu w_iu (weight_i eta_iuk), z >= 0.
        """
        table, base = self.table, self.base.support_rows(p)
        _, c, n = table.means.shape
        sample, wrong = np.nonzero(np.arange(c) != table.codes[:, None])
        eta = table.means[:, table.codes[sample], sample] - table.means[:, wrong, sample]
        eta = eta * table.weight[sample] / table.size
        m, extra = len(sample), base.A.shape[1] - p - 1
        # columns: t, s, z, what the base adds, lambda, w
        t, s, z = np.arange(p), p, np.arange(p + 1, 2 * p + 1)
        other = np.arange(2 * p + 1, 2 * p + 1 + extra)
        lam, w = 2 * p + 1 + extra, np.arange(2 * p + 2 + extra, 2 * p + 2 + extra + m)
        width = 2 * p + 2 + extra + m
        A = sparse.lil_array((n + 2 * p + m + len(base.b), width))
        A[np.repeat(np.arange(n), c - 1), w] = 1.0
        A[np.arange(n), lam] = -1.0
        r = n + np.arange(p)
        A[r, t], A[r, z] = 1.0, -1.0
        A[np.ix_(r, w)] = eta
        A[r + p, z] = -1.0
        A[n + 2 * p + np.arange(m), w] = -1.0
        last = n + 2 * p + m + np.arange(len(base.b))
        A[np.ix_(last, np.concatenate([z, [s], other]))] = base.A
        # the base's bound is s + gamma0 lambda
        A[last, lam] = self.level * np.asarray(base.A)[:, p]
        b = np.append(np.zeros(n + 2 * p + m), base.b)
        cones = (("zero", n), ("nonnegative", 2 * p + m), *base.cones)
        return ConeRows(A.tocsc(), b, cones)

    # ---- programmes over the set

    def _quadratic(self, H: np.ndarray, c: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Minimise c'beta + 1/2 beta'H beta over the set."""
        p, rows = len(c), self.cone_rows(len(c))
        width = rows.A.shape[1]
        P = np.zeros((width, width))
        P[:p, :p] = H
        cost = np.append(c, np.zeros(width - p))
        blocks = [(rows, np.arange(width))]
        return self._inside(near, lambda kept: solve_conic(P, cost, [*blocks, (kept, np.arange(p))]))

    def _hyperbolic(self, s: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Minimise 1/2 sum_k s_k^2 / beta_k over the set."""
        p, rows = len(s), self.cone_rows(len(s))
        alive, width = np.flatnonzero(s), rows.A.shape[1]
        m = len(alive)
        # |(s_k, tau_k - beta_k)| <= tau_k + beta_k, which is s_k^2 / 4 <= tau_k beta_k
        j = np.arange(m)
        A, b = np.zeros((3 * m, 2 * m)), np.zeros(3 * m)
        A[3 * j, j], A[3 * j, m + j] = -1.0, -1.0
        A[3 * j + 2, j], A[3 * j + 2, m + j] = 1.0, -1.0
        b[3 * j + 1] = s[alive]
        hyperbolas = (ConeRows(A, b, (("second_order", 3),) * m), np.append(alive, width + j))
        cost = np.append(np.zeros(width), np.ones(m))
        blocks = [(rows, np.arange(width)), hyperbolas]
        return self._inside(near, lambda kept: solve_conic(0.0 * cost, cost, [*blocks, (kept, np.arange(p))]))

    def _inside(self, near: np.ndarray, solve: Callable[[ConeRows], tuple | None]) -> np.ndarray:
        """Solve, keep the half-space that the solution violates, and so on; return the solution.

        The first one kept is that of the weights ``near`` the solution, which are returned where there is none.
        """
        if self.is_point:
            return self.largest.weights
        p, kept = len(near), KeptRows(self, [self._half_space(self.table.cuts(near)[1])])
        beta = near
        for _ in range(ROUNDS):
            if (answer := solve(kept.as_cones(p))) is None:
                break
            beta = np.maximum(answer[0][:p], 0.0)
            beta[beta < NEGLIGIBLE * beta.max()] = 0.0
            if not beta.any() or not kept.add_violated(beta):
                break
        return beta


@dataclass(frozen=True, eq=False)
class MarginSimplex(_MarginSet):
    """Sum of the weights one, kernel margin at least gamma0; see `margin_mixing`.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.mixing import margin_mixing, margin_table
    >>> X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> table = margin_table(DenseGram(np.stack([X @ X.T, np.eye(4)])), np.array([0, 0, 1, 1]))
    >>> value, beta = margin_mixing(1, table, 0.75).support(np.array([0.0, 1.0]))
    >>> round(value, 6), beta.round(6)
    (0.5, array([0.5, 0.5]))
    """

    norm: float = 1.0

    @property
    def base(self) -> Simplex:
        return Simplex()

    def _is_point(self):
        if self.largest.value / self.table.size - self.level > 10 * ACCURACY:
            return False
        spread = np.cos(np.arange(1, self.table.n_kernels + 1) * np.sqrt(2.0))
        return all(self._support(d)[0] + self._support(-d)[0] <= _POINT for d in (spread, np.roll(spread, 1)))

    def linear_rows(self, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the set with one half-space for the margin, as lower <= A beta <= upper, beta >= 0."""
        return np.vstack([np.ones(p), self._first]), np.array([1.0, self.level]), np.array([1.0, np.inf])


@dataclass(frozen=True, eq=False)
class MarginBall(_MarginSet):
    """Weights whose norm, one above 1, is at most one, with a kernel margin of at least gamma0, which is not negative.

    A negative gamma0 would make beta = 0 feasible, and a set on whose boundary the optimum need not lie.
    """

    norm: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gamma0 < 0 or not self.largest.positive:
            raise ValueError(
                f"The margin gamma0 must not be negative for weights of norm {self.norm:g}, whose set would then hold "
                f"weights of zero: use norm=1. Got {min(self.gamma0, self.largest.value):g} instead."
            )

    @property
    def base(self) -> Ball:
        return Ball(self.norm)

    def _boundary(self, beta):
        # with a margin that is not negative, longer weights have a larger one
        return self.base.scale_to_boundary(super()._boundary(beta))

    def _is_point(self):
        # the ball is strictly convex: one point has the largest margin
        return self.largest.value / self.table.size - self.level <= 2 * ACCURACY


def margin_mixing(
    norm: float, table: MarginTable, gamma0: float, largest: Largest | None = None
) -> MarginSimplex | MarginBall:
    """Return the set of weights of a norm that have a margin of at least gamma0.

    Parameters
    ----------
    norm : float
        Norm of the weights, 1 or more.
    table : MarginTable
        The margins.
    gamma0 : float
        Smallest margin, at most the largest feasible one.
    largest : Largest, optional
        The largest margin of this norm, where it is known.
    """
    if largest is None:
        largest = largest_margin(table, norm)
    return MarginSimplex(table, largest, gamma0) if norm == 1 else MarginBall(table, largest, gamma0, norm)
