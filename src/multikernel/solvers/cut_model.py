"""The cut model: a lower bound on J built from the coefficients met so far.

Each feasible a_t gives a cut  J(beta) >= g_t - 1/2 beta'q_t  with g_t = g(a_t), q_t = q(a_t). The minimum
of the largest cut over B is, by duality, the maximum over multipliers lambda on the simplex of

    sum_t lambda_t g_t - 1/2 sigma_B(sum_t lambda_t q_t),

which bounds the optimum from below for every lambda, so that the bound is rigorous however exactly the master
was solved. It also bounds lower(sum_t lambda_t a_t) from below, q being convex.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from multikernel.certificate import Certificate
from multikernel.mixing.base import Mixing
from multikernel.mixing.norms import Simplex
from multikernel.mixing.simplex_qp import simplex_qp
from multikernel.problem import Point
from multikernel.solvers.conic_cuts import minimise_conic
from multikernel.solvers.matrix_game import matrix_game

# relative gap at which a master counts as solved
_CLOSED = 1e-8


class CutModel:
    """Cuts over a set of weights.

    Parameters
    ----------
    mixing : Mixing
        The set B.
    p : int
        Number of kernels.
    limit : int, optional
        Number of cuts kept; beyond it the cut leaves that has gone longest without a multiplier.
    """

    def __init__(self, mixing: Mixing, p: int, limit: int | None = None) -> None:
        self.mixing = mixing
        self.p = p
        self.limit = limit
        self.g: list[float] = []
        self.q: list[np.ndarray] = []
        # when each cut was added or last had a multiplier
        self._needed: list[int] = []
        self._clock = 0

    def add(self, g: float, q: np.ndarray) -> None:
        """Add the cut of one feasible a, unless it is there already."""
        if any(g == h and np.array_equal(q, r) for h, r in zip(self.g, self.q, strict=True)):
            return
        if self.limit is not None and len(self.g) >= self.limit:
            oldest = int(np.argmin(self._needed))
            for column in (self.g, self.q, self._needed):
                del column[oldest]
        self._clock += 1
        self.g.append(g)
        self.q.append(q.copy())
        self._needed.append(self._clock)

    def bound(self, multipliers: np.ndarray) -> float:
        """Return the rigorous lower bound of multipliers (made feasible first)."""
        lam = np.maximum(multipliers, 0.0)
        if not 0 < lam.sum() < np.inf:
            return -np.inf
        lam = lam / lam.sum()
        self._clock += 1
        for t in np.flatnonzero(lam > 1e-9):
            self._needed[t] = self._clock
        return float(lam @ np.array(self.g) - 0.5 * self.mixing.support(lam @ np.array(self.q))[0])

    @property
    def quick(self) -> bool:
        """Whether the model is minimised in less time than any step on the weights takes."""
        return isinstance(self.mixing, Simplex)

    def reach(self, beta: np.ndarray, move: np.ndarray, upper: float) -> float:
        """Return how far along a move, at most once, no cut rises above ``upper``."""
        Q = 0.5 * np.array(self.q).reshape(-1, self.p)
        rise, room = -Q @ move, np.maximum(upper - (np.array(self.g) - Q @ beta), 0.0)
        rising = rise > 0
        return min(1.0, float(np.min(room[rising] / rise[rising], initial=np.inf)))

    def minimise(self) -> tuple[np.ndarray, float]:
        """Return the weights that minimise the model, and the rigorous bound of their multipliers.

        A matrix game on the simplex, another linear programme, or Newton's method where the support function is smooth;
        a conic programme where none applies, or where Newton's method does not close the gap of the master and the
        conic solver is there.
        """
        g, Q = np.array(self.g), np.array(self.q)
        if self.quick:
            beta, lam = matrix_game(g[:, None] - 0.5 * Q)
            value, bound = float(np.max(g - 0.5 * Q @ beta)), self.bound(lam)
            if value - bound <= _CLOSED * abs(value):
                return self.mixing.scale_to_boundary(beta), bound
        if hasattr(self.mixing, "linear_rows"):
            beta, lam = minimise_linear(g, Q, *self.mixing.linear_rows(self.p))
            while self.mixing.separate(np.maximum(beta, 0.0)):
                beta, lam = minimise_linear(g, Q, *self.mixing.linear_rows(self.p))
        elif hasattr(self.mixing, "support_curvature"):
            beta, lam = minimise_smooth(g, Q, self.mixing)
            value, bound = float(np.max(g - 0.5 * Q @ beta)), self.bound(lam)
            if value - bound > _CLOSED * abs(value) and find_spec("clarabel"):
                other, multipliers = minimise_conic(g, Q, self.mixing)
                beta = other if np.max(g - 0.5 * Q @ other) < value else beta
                lam = multipliers if self.bound(multipliers) > bound else lam
        else:
            beta, lam = minimise_conic(g, Q, self.mixing)
        return self.mixing.scale_to_boundary(np.maximum(beta, 0.0)), self.bound(lam)


def minimise_linear(g, Q, A, lower, upper) -> tuple[np.ndarray, np.ndarray]:
    """Minimise theta over theta >= g_t - 1/2 beta'q_t, lower <= A beta <= upper, beta >= 0.

    Returns weights and multipliers.
    """
    from scipy.optimize import linprog

    p = Q.shape[1]
    cost = np.eye(1, p + 1, p)[0]
    tail = np.zeros((len(A), 1))
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    # theta is measured in units of its own size, which is known when the programme was solved once
    unit = max(np.abs(Q).max(), np.abs(g).max(), 1e-300)
    for _ in range(3):
        rows = np.vstack(
            [np.hstack([-0.5 * Q / unit, -np.ones((len(g), 1))]), np.hstack([A, tail]), np.hstack([-A, tail])]
        )
        rhs = np.concatenate([-g / unit, upper, -lower])
        bounds = [(0, None)] * p + [(None, None)]
        result = linprog(cost, rows, rhs, bounds=bounds, options=options)
        size = abs(float(np.max(g - 0.5 * Q @ result.x[:p])))
        if not 0 < size < 0.1 * unit:
            break
        unit = size
    return result.x[:p], -result.ineqlin.marginals[: len(g)]


def minimise_smooth(g: np.ndarray, Q: np.ndarray, mixing) -> tuple[np.ndarray, np.ndarray]:
    """Maximise g'lambda - 1/2 sigma_B(Q'lambda) over the simplex by Newton's method; weights and multipliers.

    The weights are the maximiser of the support function at Q'lambda, and the largest cut there minus the
    value is the gap of the master: it stops at 1e-9 of the value, or when no step ascends.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.mixing.norms import Ball
    >>> g, Q = np.array([1.0, 0.0]), np.array([[0.3, 0.4], [0.0, 0.0]])
    >>> beta, multipliers = minimise_smooth(g, Q, Ball(2.0))
    >>> beta.round(5), multipliers
    (array([0.6, 0.8]), array([1., 0.]))
    """

    def value(lam):
        sigma, beta = mixing.support(lam @ Q)
        return float(lam @ g) - 0.5 * sigma, beta

    T = len(g)
    lam = np.eye(T)[int(np.argmax([value(row)[0] for row in np.eye(T)]))]
    best, beta = value(lam)
    for _ in range(100):
        slope = g - 0.5 * Q @ beta
        if slope.max() - best <= 1e-9 * abs(best):
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
    """The cuts of a run and its best weights, for methods that are not cut methods themselves.

    Parameters
    ----------
    point : Point
        Where the run begins.
    limit : int
        Number of cuts kept.
    """

    def __init__(self, point: Point, limit: int | None = 200) -> None:
        self.cuts = CutModel(point.problem.mixing, point.problem.gram.n_kernels, limit)
        self.upper = np.inf
        self.beta = point.beta

    def observe(self, point: Point) -> float:
        """Add the cut of the point as it stands, remember its weights if they are best, return its value."""
        self.cuts.add(point.problem.machine.dual(point.a), point.q)
        upper = point.primal[0]
        if upper < self.upper:
            self.upper, self.beta = upper, point.beta
        return upper

    def step(self, point: Point, accuracy: float) -> tuple[float, float]:
        """Solve halfway between the best weights and the model's minimiser.

        Returns the model's bound and the primal value there.
        """
        target, lower = self.cuts.minimise()
        point.set_weights(point.problem.mixing.scale_to_boundary(0.5 * (self.beta + target)))
        point.solve(accuracy)
        return lower, self.observe(point)
