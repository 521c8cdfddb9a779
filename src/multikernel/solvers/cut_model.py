"""The cut model: a lower bound on J built from the coefficients met so far.

Each feasible a_t gives a cut  J(beta) >= g_t - 1/2 beta'q_t  with g_t = g(a_t), q_t = q(a_t). The minimum
of the largest cut over B is, by duality, the maximum over multipliers lambda on the simplex of

    sum_t lambda_t g_t - 1/2 sigma_B(sum_t lambda_t q_t),

which bounds the optimum from below for every lambda, so that the bound is rigorous however exactly the master
was solved. It also bounds lower(sum_t lambda_t a_t) from below, q being convex.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import cast

import numpy as np
from numba import njit
from scipy.linalg import LinAlgError

from multikernel.certificate import Certificate
from multikernel.mixing.base import SOLVED, HasConeRows, HasLinearRows, HasSupportCurvature, KeptRows, Mixing
from multikernel.mixing.cones import ACCURACY
from multikernel.mixing.simplex_qp import simplex_qp
from multikernel.problem import Point
from multikernel.solvers.conic_cuts import Answer, minimise_conic, solve_in_own_units

# smallest fraction of the gap to which methods of first order solve inner problems: less costs more than it buys
FINEST = 1e-2
# reduced costs above minus this count as not negative: rounding of a tableau with entries between one and two
_ZERO = 1e-11


class CutModel:
    """Cuts over a set of weights.

    Parameters
    ----------
    mixing : Mixing
        The set B.
    p : int
        Number of kernels.
    limit : int, optional
        Number of cuts kept; beyond it the cut that has gone longest without a multiplier is dropped.
    """

    def __init__(self, mixing: Mixing, p: int, limit: int | None = None) -> None:
        self.mixing = mixing
        self.p = p
        self.limit = limit
        self.kept = KeptRows(mixing)
        self.g: list[float] = []
        self.q: list[np.ndarray] = []
        self.a: list[np.ndarray | float | None] = []
        # the best bound so far, and what returns the mix of coefficients of which it is one
        self.lower = -np.inf
        self.mix: Callable[[], np.ndarray] | None = None
        # the time at which each cut was added or last had a multiplier
        self._needed: list[int] = []
        self._clock = 0

    def add(self, g: float, q: np.ndarray, a: np.ndarray | float | None = 0.0) -> None:
        """Add the cut of one feasible a, unless the model has it already; a is None where it is not to be mixed."""
        if g in self.g and any(g == h and np.array_equal(q, r) for h, r in zip(self.g, self.q, strict=True)):
            return
        if self.limit is not None and len(self.g) >= self.limit:
            oldest = int(np.argmin(self._needed))
            for column in (self.g, self.q, self.a, self._needed):
                del column[oldest]
        self._clock += 1
        self.g.append(g)
        self.q.append(q.copy())
        self.a.append(a)
        self._needed.append(self._clock)

    def bound(self, multipliers: np.ndarray) -> float:
        """Return the lower bound on the optimum that multipliers give, once they are made feasible; -inf for none."""
        lam = np.maximum(multipliers, 0.0)
        if not 0 < lam.sum() < np.inf:
            return -np.inf
        lam = lam / lam.sum()
        self._clock += 1
        for t in np.flatnonzero(lam > 1e-9):
            self._needed[t] = self._clock
        value = float(lam @ np.array(self.g) - 0.5 * self.mixing.support(lam @ np.array(self.q))[0])
        if value > self.lower:
            self.lower, self.mix = value, None if self.a[-1] is None else partial(_mixed, lam, self.a.copy())
        return value

    def minimise(self, known: np.ndarray | None = None) -> tuple[np.ndarray, float]:
        """Return the weights that minimise the model, and the rigorous bound of their multipliers.

        Masters are tried one after the other until one closes its gap: a matrix game on the simplex, another linear
        programme, or Newton's method; then a conic programme. Where none has an answer, the weights are ``known``, by
        default the uniform ones, and the bound is -inf.
        """
        g, Q, mixing = np.array(self.g), np.array(self.q), self.mixing
        masters: list[Callable[[], Answer | None]] = []
        if mixing.is_simplex:
            masters.append(partial(matrix_game, g[:, None] - 0.5 * Q))
        if isinstance(mixing, HasLinearRows):
            masters.append(partial(minimise_linear, g, Q, mixing, self.kept))
        elif isinstance(mixing, HasSupportCurvature):
            masters.append(partial(minimise_smooth, g, Q, mixing))
        if isinstance(mixing, HasConeRows) and find_spec("clarabel"):
            masters.append(partial(minimise_conic, g, Q, mixing, self.kept))
        best, least, lower = known, np.inf, -np.inf
        for master in masters:
            try:
                answer = master()
            except LinAlgError:
                continue
            if answer is None:
                continue
            value, bound = float(np.max(g - 0.5 * Q @ answer[0])), self.bound(answer[1])
            if value < least:
                best, least = answer[0], value
            lower = max(lower, bound)
            if least - lower <= SOLVED * abs(least):
                break
        return self.mixing.scale_to_boundary(self.mixing.start(self.p) if best is None else best), lower


def _mixed(lam: np.ndarray, a: list) -> np.ndarray:
    """Return the coefficients of the cuts, mixed by multipliers."""
    return cast(np.ndarray, sum(lam[t] * a[t] for t in np.flatnonzero(lam)))


@njit(cache=True, nogil=True)
def pivots(T, basis, limit):
    """Exchange variables until no reduced cost is negative: the most negative one first, then by Bland's rule."""
    m, n = T.shape[0] - 1, T.shape[1] - 1
    for step in range(limit):
        column, least = -1, -_ZERO
        for j in range(n):
            if T[m, j] < least:
                column, least = j, T[m, j]
                if 2 * step > limit:
                    break
        if column < 0:
            return
        row, ratio = -1, np.inf
        for i in range(m):
            if T[i, column] > _ZERO:
                t = T[i, n] / T[i, column]
                if t < ratio or (t == ratio and basis[i] < basis[row]):
                    row, ratio = i, t
        if row < 0:
            return
        pivot = T[row, column]
        for j in range(n + 1):
            T[row, j] /= pivot
        for i in range(m + 1):
            factor = T[i, column]
            if i != row and factor != 0.0:
                for j in range(n + 1):
                    T[i, j] -= factor * T[row, j]
        basis[row] = column


@njit(cache=True, nogil=True)
def matrix_game(M):
    """Solve max over lambda, min over beta of lambda'M beta, both on their simplices, by the primal simplex method.

    Shifted so that all entries are positive, the weights solve max sum x subject to M x <= 1, x >= 0, with
    beta = x / sum x, and lambda are the multipliers; the origin is a feasible start. The method works on a dense
    tableau, which is small: there are as many rows as cuts.

    Returns beta and lambda.

    Parameters
    ----------
    M : ndarray of shape (m, p)
        Finite payments.

    Examples
    --------
    >>> import numpy as np
    >>> matrix_game(np.array([[3.0, 1.0], [0.0, 2.0]]))
    (array([0.25, 0.75]), array([0.5, 0.5]))
    """
    m, p = M.shape
    low = M.min()
    spread = M.max() - low
    if spread == 0.0:
        return np.full(p, 1.0 / p), np.eye(1, m)[0]
    tableau = np.zeros((m + 1, p + m + 1))
    tableau[:m, :p] = 1.0 + (M - low) / spread
    tableau[:m, p : p + m] = np.eye(m)
    tableau[:m, -1] = 1.0
    tableau[m, :p] = -1.0
    basis = np.arange(p, p + m)
    pivots(tableau, basis, 20 * (m + p))
    x = np.zeros(p + m)
    x[basis] = tableau[:m, -1]
    beta, multipliers = np.maximum(x[:p], 0.0), np.maximum(tableau[m, p:-1], 0.0)
    return beta / beta.sum(), multipliers / multipliers.sum()


def minimise_linear(g: np.ndarray, Q: np.ndarray, mixing: Mixing, kept: KeptRows | None = None) -> Answer | None:
    """Minimise theta over theta >= g_t - 1/2 beta'q_t, beta in a polyhedron B, by SciPy; None where it fails.

    Returns weights and multipliers of the cuts. Rows of B met on the way are added to ``kept``.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.mixing.norms import Simplex
    >>> beta, multipliers = minimise_linear(np.ones(2), np.eye(2), Simplex())
    >>> beta.round(9), multipliers.round(9)
    (array([0.5, 0.5]), array([0.5, 0.5]))
    """
    from scipy.optimize import linprog

    assert isinstance(mixing, HasLinearRows)
    p, rows = Q.shape[1], kept or KeptRows(mixing)
    A, lower, upper = mixing.linear_rows(p)
    below, above = np.isfinite(upper), np.isfinite(lower)
    cost, bounds = np.eye(1, p + 1, p)[0], [(0, None)] * p + [(None, None)]
    options = {"primal_feasibility_tolerance": ACCURACY, "dual_feasibility_tolerance": ACCURACY}

    def solve(cuts: np.ndarray, b: np.ndarray) -> Answer | None:
        while True:
            more = rows.as_cones(p)
            # theta has no part in the rows of B
            within = np.pad(np.vstack([A[below], -A[above], more.A]), ((0, 0), (0, 1)))
            rhs = np.concatenate([b, upper[below], -lower[above], more.b])
            result = linprog(cost, np.vstack([cuts, within]), rhs, bounds=bounds, options=options)
            if result.status != 0:
                return None
            if not rows.add_violated(result.x[:p]):
                return result.x[:p], -result.ineqlin.marginals[: len(b)]

    return solve_in_own_units(g, Q, mixing.start(p), solve)


def minimise_smooth(g: np.ndarray, Q: np.ndarray, mixing: Mixing) -> Answer:
    """Maximise g'lambda - 1/2 sigma_B(Q'lambda) over the simplex by Newton's method; weights and multipliers.

    The weights are the maximiser of the support function at Q'lambda, and the largest cut there minus the
    value is the gap of the master. The method stops where the gap is 1e-9 of the value, or when no step ascends.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.mixing.norms import Ball
    >>> g, Q = np.array([1.0, 0.0]), np.array([[0.3, 0.4], [0.0, 0.0]])
    >>> beta, multipliers = minimise_smooth(g, Q, Ball(2.0))
    >>> beta.round(5), multipliers
    (array([0.6, 0.8]), array([1., 0.]))
    """
    assert isinstance(mixing, HasSupportCurvature)

    def value(lam):
        sigma, beta = mixing.support(lam @ Q)
        return float(lam @ g) - 0.5 * sigma, beta

    T = len(g)
    lam = np.eye(T)[int(np.argmax([value(row)[0] for row in np.eye(T)]))]
    best, beta = value(lam)
    for _ in range(100):
        slope = g - 0.5 * Q @ beta
        if slope.max() - best <= SOLVED * abs(best):
            break
        H = 0.5 * Q @ mixing.support_curvature(lam @ Q) @ Q.T
        # H lambda = 0, sigma being homogeneous; a multiple of 11' is a constant on the simplex and cures it
        H += np.trace(H) / T
        linear = best - slope - H @ lam
        target = simplex_qp(H, linear - linear.min(), lam)
        move = target / target.sum() - lam
        step = 1.0
        while step > 1e-10:
            now, there = value(lam + step * move)
            if now >= best + 1e-4 * step * float(slope @ move):
                break
            step *= 0.5
        if step <= 1e-10 or now <= best:
            break
        lam, best, beta = lam + step * move, now, there
    return beta, lam


def inner_accuracy(certificate: Certificate, tol: float) -> float:
    """Return the gap that is left, or what is needed at the end of a run to ``tol``, whichever is more."""
    return max(certificate.gap, 0.3 * tol * certificate.size)


class InOut:
    """The cuts of a run and its best weights, with steps between the best weights and the minimiser of the cuts.

    Parameters
    ----------
    point : Point
        Where the run begins.
    """

    def __init__(self, point: Point) -> None:
        p = point.problem.gram.n_kernels
        self.cuts = CutModel(point.problem.mixing, p, limit=100 + 5 * p)
        self.upper = np.inf
        self.beta = point.beta

    def observe(self, point: Point) -> float:
        """Add the cut of the point, remember its weights if its primal value is the smallest, and return that value."""
        self.cuts.add(point.problem.machine.dual(point.a), point.q, point.a if point.mixes else None)
        upper = point.certificate.upper
        if upper < self.upper:
            self.upper, self.beta = upper, point.beta
        return upper

    def step(self, point: Point, accuracy: float) -> tuple[float, float]:
        """Solve halfway between the best weights and the model's minimiser.

        Returns the model's bound and the primal value there.
        """
        target, lower = self.cuts.minimise(self.beta)
        point.set_weights(point.problem.mixing.scale_to_boundary(0.5 * (self.beta + target)))
        point.solve(accuracy)
        return lower, self.observe(point)
