"""How close to optimal: a rigorous duality gap for any (beta, a), however inexactly it was found.

    upper(beta, a) = 1/2 sum_k beta_k q_k + loss(f + b)      a primal value, b the best intercept
    lower(a)       = g(a) - 1/2 sigma_B(q(a))                 a dual value, a feasible

Every optimum lies between the two. Both come from per-kernel outputs accumulated in float64 (`Point.certificate`);
``Best`` keeps the best bounds and the best model of a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

# values of the objective that differ by less than this fraction count as equal
ROUNDING = 1e-12


@dataclass
class Certificate:
    """Bounds on the optimum, and the intercept of the primal value.

    Attributes
    ----------
    inner_gap : float
        Primal minus dual value of the single-kernel problem at the current weights.
    rounding : float
        By how much the rounding of the outputs may move the primal value.
    gap : float
        upper - lower, at least zero, plus the rounding.
    size : float
        The denominator of the relative gap: |upper|, or the floor where that is larger.
    relative : float
        gap / size; infinite where no upper bound is known.
    """

    upper: float
    lower: float
    intercept: Any
    floor: float
    inner_gap: float = np.inf
    rounding: float = 0.0
    gap: float = field(init=False)
    size: float = field(init=False)
    relative: float = field(init=False)

    def __post_init__(self) -> None:
        self.gap = max(self.upper - self.lower, 0.0) + self.rounding
        self.size = max(abs(self.upper), self.floor)
        self.relative = self.gap / self.size if self.upper < np.inf else np.inf


@dataclass(frozen=True)
class Model:
    """Weights, coefficients and the outputs of every kernel at one point of a run."""

    weights: np.ndarray
    coef: np.ndarray
    outputs: np.ndarray


@dataclass
class Best:
    """The best bounds and the best model among the points of a run.

    The model is the one with the smallest primal value; once the gap asked for is reached, the one whose own
    coefficients certify it best.

    Parameters
    ----------
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
    converged : bool
        Whether the relative gap is at most ``tol``.
    idle : int
        Points in a row that have improved neither bound.
    """

    tol: float
    certificate: Certificate = field(default_factory=partial(Certificate, np.inf, -np.inf, 0.0, 0.0))
    upper: float = np.inf
    model: Model | None = None
    own_gap: float = np.inf
    converged: bool = False
    idle: int = 0

    def take(self, point: Any, lower: float = -np.inf) -> Certificate:
        """Take the point into account, and a lower bound known from elsewhere; return the point's own certificate."""
        now, best = point.certificate, self.certificate
        lower = max(best.lower, now.lower, lower)
        eps = max(ROUNDING * abs(now.upper), now.rounding)
        improved = now.upper < best.upper - eps or lower > best.lower + eps
        self.idle = 0 if improved else self.idle + 1
        reached = replace(now, lower=lower).relative <= self.tol
        if now.upper < best.upper or (reached and now.gap < self.own_gap):
            best, self.own_gap = now, now.gap
            self.model = Model(point.beta, point.a, point.outputs.known()[1])
        self.certificate = replace(best, lower=lower)
        self.converged = self.certificate.relative <= self.tol
        self.upper = min(self.upper, now.upper)
        return now
