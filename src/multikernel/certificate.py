"""How close to optimal: a rigorous duality gap for any (beta, a), however inexactly it was found.

    upper(beta, a) = 1/2 sum_k beta_k q_k + loss(f + b)      a primal value, b the best intercept
    lower(a)       = g(a) - 1/2 sigma_B(q(a))                 a dual value, a feasible

Every optimum lies between the two. Both come from per-kernel outputs accumulated in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from multikernel.problem import Point

# values of the objective that differ by less than this fraction count as equal
ROUNDING = 1e-12


@dataclass(frozen=True)
class Certificate:
    """Bounds on the optimum and the intercept of the primal value."""

    upper: float
    lower: float
    intercept: Any
    floor: float

    @property
    def gap(self) -> float:
        """Absolute gap, at least zero."""
        return max(self.upper - self.lower, 0.0)

    @property
    def size(self) -> float:
        """The denominator of the relative gap: |upper|, or the floor where that is larger."""
        return max(abs(self.upper), self.floor)

    @property
    def relative(self) -> float:
        """Gap relative to the primal value."""
        return relative_gap(self.upper, self.lower, self.floor)


def relative_gap(upper: float, lower: float, floor: float) -> float:
    """(upper - lower) / max(|upper|, floor), at least zero; infinite where no upper bound is known."""
    return max(upper - lower, 0.0) / max(abs(upper), floor) if upper < np.inf else np.inf


def certify(point: Point) -> Certificate:
    """Certify the point as it stands."""
    machine = point.problem.machine
    upper, intercept = point.primal
    lower = machine.dual(point.a) - 0.5 * point.support
    return Certificate(upper, lower, intercept, machine.floor)


@dataclass(frozen=True)
class Model:
    """Weights, coefficients and the outputs of every kernel at one point of a run."""

    weights: np.ndarray
    coef: np.ndarray
    outputs: np.ndarray


class Best:
    """The best bounds and the best model among the points of a run.

    The model is the one with the smallest primal value; once the gap asked for is reached, the one whose own
    coefficients certify it best.

    Parameters
    ----------
    point : Point
        The point that will move. It is not certified yet: `take` does that.
    tol : float
        Relative gap that the run is to reach.

    Attributes
    ----------
    certificate : Certificate
        Primal value and intercept of the model, and the largest lower bound so far.
    upper : float
        Smallest primal value so far. The model's own may be larger by less than the gap.
    model : Model or None
        The best model, None before the first `take`.
    own_gap : float
        Absolute gap of the model, certified by its own coefficients alone.
    curvature : ndarray of shape (p,)
        Smallest a' K_k a / a'a so far; clearly negative for a kernel that is not positive semidefinite.
    idle : int
        Points in a row that have improved neither bound.
    """

    def __init__(self, point: Point, tol: float) -> None:
        self.tol = tol
        self.certificate = Certificate(np.inf, -np.inf, 0.0, point.problem.machine.floor)
        self.upper = self.own_gap = np.inf
        self.model: Model | None = None
        self.curvature = np.full(point.problem.gram.n_kernels, np.inf)
        self.idle = 0

    @property
    def converged(self) -> bool:
        """Whether the relative gap is at most ``tol``."""
        return self.certificate.relative <= self.tol

    def take(self, point: Point, lower: float = -np.inf, curvature: np.ndarray | float = np.inf) -> Certificate:
        """Take the point into account, and a lower bound and curvature known from elsewhere.

        Returns the point's own certificate.
        """
        now, best = certify(point), self.certificate
        self.curvature = np.minimum(self.curvature, curvature)
        if size := float(np.vdot(point.a, point.a)):
            self.curvature = np.minimum(self.curvature, point.quadratic_forms / size)
        lower = max(best.lower, now.lower, lower)
        eps = ROUNDING * abs(now.upper)
        improved = now.upper < best.upper - eps or lower > best.lower + eps
        self.idle = 0 if improved else self.idle + 1
        reached = relative_gap(now.upper, lower, now.floor) <= self.tol
        if now.upper < best.upper or (reached and now.gap < self.own_gap):
            best, self.own_gap = now, now.gap
            self.model = Model(point.beta, point.a, point.outputs.known()[1])
        self.certificate = replace(best, lower=lower)
        self.upper = min(self.upper, now.upper)
        return now
