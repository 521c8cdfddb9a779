"""Weights held to a kernel margin: the set B of problem (7) of Cortes, Mohri & Rostamizadeh 2013.

    B = {beta >= 0, sum beta = 1, h(beta) >= gamma0}               (norm 1)
    B = {beta >= 0, ||beta||_q <= 1, h(beta) >= gamma0 >= 0}       (norm q > 1)

h is concave and the least of linear functions v . beta, so that B is the intersection of all half-spaces
v . beta >= gamma0. The set keeps those met so far. Every programme over B is solved over the kept ones; where its
solution violates h, the half-space it violates is added and the programme solved again, so that nothing is
approximated. What leaves this room is always in B: beta + t (beta* - beta), with beta* of the largest margin, has a
margin of at least gamma0 for the t at which the straight line between the two margins reaches it. And the support
function is bounded from above for any multipliers lambda >= 0 of the half-spaces v_j,

    sigma_B(q) <= sigma_S(q + sum_j lambda_j v_j) - gamma0 sum_j lambda_j,      S the set without the margin,

so that certificates are rigorous however exactly a programme was solved. gamma0 is lowered by 1e-10 of the largest
eta: at the largest feasible value the set would otherwise have no interior for a solver to move in. A set of width
below 1e-6, as there mostly, counts as its only point beta*.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from scipy import sparse

from multikernel.mixing.base import Mixing
from multikernel.mixing.cones import ConeRows, solve_conic
from multikernel.mixing.largest_margin import Largest, Programme, largest_margin, largest_over, programme_for
from multikernel.mixing.margin_table import MarginTable
from multikernel.mixing.norms import Ball, Simplex

# by how much gamma0 is lowered, and by how much a solution may miss it before a cut is added, in units of size
_SLACK, _MISS = 1e-10, 1e-10
# rounds of cuts for one programme; relative distance of its bounds at which a support function counts as known
_ROUNDS, _KNOWN = 60, 1e-9
# weights below this fraction of the largest are zero as far as an interior-point method can tell
_NEGLIGIBLE = 1e-9
# width, in some directions, below which the set is a point
_POINT = 1e-6


class _Margin(Mixing):
    """What the two sets share.

    Parameters
    ----------
    table : MarginTable
        The margins.
    gamma0 : float
        Smallest margin, at most the largest feasible one.
    largest : Largest, optional
        The largest margin, where it is known.
    """

    base: Mixing

    @property
    def description(self) -> str:
        return f"norm={self.norm:g} and a kernel margin gamma0={self.gamma0:.4g}"

    def __init__(self, base: Mixing, table: MarginTable, gamma0: float, largest: Largest | None) -> None:
        self.base, self.norm, self.table = base, base.norm, table
        self.largest = largest_margin(table, base.norm) if largest is None else largest
        slack = _SLACK * table.size
        if gamma0 > self.largest.value + slack:
            raise ValueError(
                f"The margin gamma0 must be at most {self.largest.value:.9g}, the largest feasible value. "
                f"Got {gamma0:g} instead."
            )
        self.gamma0 = min(gamma0, self.largest.value) - slack
        # V beta >= level, in units of size
        self.V = self.largest.cut[None] / table.size
        self.level = self.gamma0 / table.size
        self._programme: Programme | None = None
        self._point: bool | None = None
        self._seen: list[tuple[np.ndarray, tuple[float, np.ndarray, np.ndarray]]] = []

    # ---- the half-spaces

    def separate(self, beta: np.ndarray) -> bool:
        """Add the half-space that beta violates most; return whether there was one.

        Sets: V.
        """
        value, rows, groups = self._cuts(beta)
        # a half-space that is kept already tells a solver nothing new: it missed it by rounding
        if value / self.table.size >= min(self.level, float((self.V @ beta).min())) - _MISS:
            return False
        self._keep(rows.sum(axis=0) / self.table.size)
        self.programme.add(rows, groups)
        return True

    def _keep(self, v: np.ndarray) -> None:
        """Keep the half-space v . beta >= level."""
        if np.abs(self.V - v).max(axis=1).min() > 1e-13:
            self.V = np.vstack([self.V, v])

    @property
    def programme(self) -> Programme:
        """The programme over the cuts of groups of samples, from which half-spaces are made."""
        if self._programme is None:
            self._programme = programme_for(self.table, self.norm)
            self._programme.add(self.largest.rows, self.largest.groups)
        return self._programme

    def make_feasible(self, beta: np.ndarray) -> np.ndarray:
        """Return beta where it has the margin, else the first point towards beta* that has it."""
        if self._point:
            return self.largest.weights
        value = self._cuts(beta)[0]
        if value >= self.gamma0:
            return beta
        room = self.largest.value - value
        t = min(1.0, (self.gamma0 - value) / room * (1.0 + 1e-12)) if room > 0 else 1.0
        return (1.0 - t) * beta + t * self.largest.weights

    def _cuts(self, beta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Margin and cuts at beta; those of the last two weights are remembered."""
        for known, answer in self._seen:
            if np.array_equal(known, beta):
                return answer
        answer = self.table.cuts(beta)
        self._seen = [(beta.copy(), answer), *self._seen[:1]]
        return answer

    # ---- what a mixing is

    def start(self, p):
        return self.scale_to_boundary(self.base.start(p))

    @property
    def is_point(self) -> bool:
        """Whether beta* is the only member, as far as float64 can tell."""
        if self._point is None:
            self._point = self.table.n_kernels == 1 or self._is_point()
        return self._point

    @abstractmethod
    def _is_point(self) -> bool:
        """Whether the set has one member."""

    def project(self, x):
        return self.make_feasible(self.base.project(self._quadratic(np.eye(len(x)), -x)))

    def scale_to_boundary(self, beta):
        if not beta.any() or self.is_point:
            return self.largest.weights
        return self._boundary(self.base.scale_to_boundary(beta))

    def _boundary(self, beta: np.ndarray) -> np.ndarray:
        """Return a point of the set, on the boundary of the norm, from one on that boundary."""
        return self.make_feasible(beta)

    def support(self, q):
        unit = float(np.abs(q).max())
        if unit == 0.0 or self.is_point:
            return float(self.largest.weights @ q), self.largest.weights
        value, beta = self._support(q / unit)
        return unit * value, beta

    def _support(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        """Bounds from both sides until they meet, or no cut is violated; q of size one."""
        best, value, bound = self.largest.weights, float(self.largest.weights @ q), np.inf
        for _ in range(_ROUNDS):
            beta, multiplier, v = self.programme.maximise(q, self.level)
            now = largest_over(self.base, q + multiplier * v) - multiplier * self.level
            if now < bound:
                bound, cut = now, v
            new = self._boundary(self.base.scale_to_boundary(beta))
            if new @ q > value:
                best, value = new, float(new @ q)
            margin, rows, groups = self._cuts(beta)
            if bound - value <= _KNOWN or margin >= self.gamma0:
                break
            self.programme.add(rows, groups)
        self._keep(cut)
        return max(bound, value), best

    def newton_step(self, beta, q, H):
        p = len(q)
        c = -0.5 * q - H @ beta
        ridge = 1e-10 * max(np.trace(H) / p, np.abs(c).max())
        return self.scale_to_boundary(self._quadratic(H + ridge * np.eye(p), c))

    def closed_form(self, beta, q, relax=1.0):
        s = beta * np.sqrt(np.maximum(q, 0.0))
        if not s.any():
            return self.start(len(q))
        new = self.scale_to_boundary(self._hyperbolic(s / s.max()))
        if relax != 1.0:
            alive = (new > 0) & (beta > 0)
            moved = np.zeros_like(new)
            moved[alive] = beta[alive] * (new[alive] / beta[alive]) ** relax
            new = self.scale_to_boundary(moved)
        return new

    # ---- as rows of conic programmes

    def cone_rows(self, p: int) -> ConeRows:
        """Return the set with the half-spaces met so far, as rows over beta and what the norm adds."""
        rows = self.base.cone_rows(p)  # type: ignore[attr-defined]
        m = len(self.V)
        wide = np.hstack([-self.V, np.zeros((m, rows.A.shape[1] - p))])
        return ConeRows(
            np.vstack([rows.A, wide]), np.append(rows.b, np.full(m, -self.level)), (*rows.cones, ("nonnegative", m))
        )

    def support_rows(self, p: int) -> ConeRows:
        """Return {sigma_B(t) <= s} for t >= 0 exactly, as rows over (t, s, ...), all n(c - 1) margins among them.

        sigma_B(t) = min of sigma_S(z) - gamma0 lambda over lambda >= 0, w_iu >= 0 with sum_u w_iu = lambda for each
        i, and z_k >= t_k + sum_iu w_iu (weight_i eta_iuk), z >= 0.
        """
        table, base = self.table, self.base.support_rows(p)  # type: ignore[attr-defined]
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
        A = sparse.lil_array((n + 2 * p + 1 + m + len(base.b), width))
        A[np.repeat(np.arange(n), c - 1), w] = 1.0
        A[np.arange(n), lam] = -1.0
        r = n + np.arange(p)
        A[r, t], A[r, z] = 1.0, -1.0
        A[n : n + p, w[0] : w[0] + m] = eta
        A[r + p, z] = -1.0
        A[n + 2 * p, lam] = -1.0
        A[n + 2 * p + 1 + np.arange(m), w] = -1.0
        last = n + 2 * p + 1 + m + np.arange(len(base.b))
        A[np.ix_(last, np.concatenate([z, [s], other]))] = base.A
        # the base's bound is s + gamma0 lambda
        A[last, lam] = self.level * np.asarray(base.A)[:, p]
        b = np.append(np.zeros(n + 2 * p + 1 + m), base.b)
        cones = (("zero", n), ("nonnegative", 2 * p + 1 + m), *base.cones)
        return ConeRows(A.tocsc(), b, cones)

    # ---- programmes over the set

    def _quadratic(self, H: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Minimise c'beta + 1/2 beta'H beta over the set."""
        p = len(c)
        unit = max(np.abs(c).max(), np.abs(H).max()) or 1.0

        def solved() -> np.ndarray:
            rows = self.cone_rows(p)
            width = rows.A.shape[1]
            P = np.zeros((width, width))
            P[:p, :p] = H / unit
            return solve_conic(P, np.append(c / unit, np.zeros(width - p)), [(rows, np.arange(width))])[0][:p]

        return self._inside(solved)

    def _hyperbolic(self, s: np.ndarray) -> np.ndarray:
        """Minimise 1/2 sum_k s_k^2 / beta_k over the set."""
        p = len(s)
        alive = np.flatnonzero(s)
        m = len(alive)

        def solved() -> np.ndarray:
            rows = self.cone_rows(p)
            width = rows.A.shape[1]
            # |(2 s_k, tau_k - beta_k)| <= tau_k + beta_k
            A = np.zeros((3 * m, 2 * m))
            j = np.arange(m)
            A[3 * j, j], A[3 * j, m + j] = -1.0, -1.0
            A[3 * j + 2, j], A[3 * j + 2, m + j] = 1.0, -1.0
            b = np.zeros(3 * m)
            b[3 * j + 1] = 2.0 * s[alive]
            cones = ConeRows(A, b, (("second_order", 3),) * m)
            cost = np.append(np.zeros(width), np.ones(m))
            blocks = [(rows, np.arange(width)), (cones, np.append(alive, width + j))]
            return solve_conic(np.zeros(width + m), cost, blocks)[0][:p]

        return self._inside(solved)

    def _inside(self, solved) -> np.ndarray:
        """Solve, add the half-space that the solution violates, and so on; return the solution."""
        if self.is_point:
            return self.largest.weights
        for _ in range(_ROUNDS):
            beta = np.maximum(solved(), 0.0)
            beta[beta < _NEGLIGIBLE * beta.max()] = 0.0
            if not beta.any() or not self.separate(beta):
                break
        return beta


class MarginSimplex(_Margin):
    """Sum of the weights one, kernel margin at least gamma0.

    Parameters
    ----------
    table : MarginTable
        The margins.
    gamma0 : float
        Smallest margin, at most the largest feasible one.
    largest : Largest, optional
        The largest margin, where it is known.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.mixing import MarginSimplex, margin_table
    >>> X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> table = margin_table(DenseGram(np.stack([X @ X.T, np.eye(4)])), np.array([0, 0, 1, 1]))
    >>> value, beta = MarginSimplex(table, 0.75).support(np.array([0.0, 1.0]))
    >>> round(value, 6), beta.round(6)
    (0.5, array([0.5, 0.5]))
    """

    def __init__(self, table: MarginTable, gamma0: float, largest: Largest | None = None) -> None:
        super().__init__(Simplex(), table, gamma0, largest)

    def _is_point(self):
        if self.largest.value - self.gamma0 > 10 * _SLACK * self.table.size:
            return False
        spread = np.cos(np.arange(1, self.table.n_kernels + 1) * np.sqrt(2.0))
        return all(self._support(d)[0] + self._support(-d)[0] <= _POINT for d in (spread, np.roll(spread, 1)))

    def linear_rows(self, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the set with the half-spaces met so far as lower <= A beta <= upper, beta >= 0: (A, lower, upper)."""
        A = np.vstack([np.ones((1, p)), self.V])
        lower = np.append(1.0, np.full(len(self.V), self.level))
        return A, lower, np.append(1.0, np.maximum(self.V.max(axis=1, initial=-np.inf), self.level))


class MarginBall(_Margin):
    """Norm of the weights at most one (above 1), kernel margin at least gamma0, which is not negative.

    A negative gamma0 would make_feasible beta = 0, and a set on whose boundary the optimum need not lie.

    Parameters
    ----------
    norm : float
        Norm of the weights, above 1.
    table : MarginTable
        The margins.
    gamma0 : float
        Smallest margin, at most the largest feasible one.
    largest : Largest, optional
        The largest margin, where it is known.
    """

    def __init__(self, norm: float, table: MarginTable, gamma0: float, largest: Largest | None = None) -> None:
        super().__init__(Ball(norm), table, gamma0, largest)
        if gamma0 < 0 or not self.largest.positive:
            raise ValueError(
                f"The margin gamma0 must not be negative for weights of norm {norm:g}, whose set would then hold "
                f"weights of zero: use norm=1. Got {min(gamma0, self.largest.value):g} instead."
            )

    def _boundary(self, beta):
        # with a margin that is not negative, longer weights have a larger one
        return self.base.scale_to_boundary(self.make_feasible(beta))

    def _is_point(self):
        # the ball is strictly convex: one point has the largest margin
        return self.largest.value - self.gamma0 <= 2 * _SLACK * self.table.size


def margin_mixing(norm: float, table: MarginTable, gamma0: float, largest: Largest | None = None) -> Mixing:
    """Return the set of weights of a norm that hold a margin."""
    if norm == 1:
        return MarginSimplex(table, gamma0, largest)
    return MarginBall(norm, table, gamma0, largest)
