"""How close to optimal: a rigorous duality gap for any (beta, a), however inexactly it was found.

    upper(beta, a) = 1/2 sum_k beta_k q_k + loss(f + b)      a primal value, b the best intercept
    lower(a)       = g(a) - 1/2 sigma_B(q(a))                 a dual value, a feasible

Every optimum lies between the two. Both come from per-kernel outputs accumulated in float64. The gap that is reported
is widened by all that rounding may have changed (`Point.exact_certificate`), and holds in exact arithmetic. ``Best``
keeps the best bounds and the best model of a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

# values of the objective that differ by less than this fraction count as equal
ROUNDING = 1e-12
# a bound has improved once it has moved, since the last improvement, by this share of the gap then, or of its own size
# if that is smaller; a larger share stops slow runs earlier
BETTER = 0.001
# a run has stalled after this many points without a better bound, times the number of kernels plus four, since a
# cutting-plane method may need several cuts a kernel before its first useful bound; and of so many points one is
# examined for rounding, below which no bound is better
STALL = 10


@dataclass
class Certificate:
    """Bounds on the optimum, and the intercept of the primal value.

    Attributes
    ----------
    inner_gap : float
        Primal minus dual value of the single-kernel problem at the current weights.
    rounding : float
        By how much upper and lower together may be off; zero where that was not asked for.
    gap : float
        upper - lower, at least zero, plus the rounding.
    size : float
        The denominator of the relative gap: the least that |upper| can be, or the floor where that is larger.
    relative, computed : float
        gap / size, and the same as if nothing were rounded; infinite where upper bound or floor are not finite.
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
    computed: float = field(init=False)

    def __post_init__(self) -> None:
        self.gap = max(self.upper - self.lower, 0.0) + self.rounding
        self.size = max(abs(self.upper) - self.rounding, self.floor)
        # an infinite upper bound or floor leaves the relative gap unknown
        known = max(self.upper, self.floor) < np.inf
        self.relative = self.gap / self.size if known else np.inf
        self.computed = max(self.upper - self.lower, 0.0) / max(abs(self.upper), self.floor) if known else np.inf


# the certificate before the first point
_unknown = partial(Certificate, np.inf, -np.inf, 0.0, 0.0)


@dataclass(frozen=True)
class Model:
    """Weights, coefficients and the outputs of every kernel, with their rounding, at one point of a run."""

    weights: np.ndarray
    coef: np.ndarray
    outputs: np.ndarray
    wander: np.ndarray


@dataclass
class Best:
    """The best bounds and the best model among the points of a run.

    Parameters
    ----------
    tol : float
        Relative gap that the run is to reach.

    Attributes
    ----------
    certificate : Certificate
        The smallest primal value of a point and the largest lower bound, which may come from several points together.
    lowest : Model or None
        The point of that primal value.
    own : Certificate
        Certificate of the model, by its own weights and coefficients alone.
    model : Model or None
        The point whose own gap is the smallest, None before the first `take`.
    met : bool
        Whether the bounds, those of several points together, are as close as was asked for, or as rounding allows.
    converged : bool
        Whether the model's own relative gap is at most ``tol``.
    idle : int
        Points in a row that have improved neither bound by enough since ``mark``, or not the own gap once the bounds
        have met.
    mark : Certificate
        The bounds when one of them, or the own gap, had last improved.
    taken : int
        Number of points.
    """

    tol: float
    certificate: Certificate = field(default_factory=_unknown)
    own: Certificate = field(default_factory=_unknown)
    lowest: Model | None = None
    model: Model | None = None
    mark: Certificate = field(default_factory=_unknown)
    met: bool = False
    converged: bool = False
    idle: int = 0
    taken: int = 0

    def take(self, point: Any, lower: float = -np.inf) -> Certificate:
        """Take the point into account, and a lower bound known from elsewhere; return the point's own certificate."""
        now, best = point.certificate, self.certificate
        self.taken += 1
        if now.relative <= self.tol or self.idle or self.taken % STALL == 0:
            # the gap that was asked for, or rounding that may keep it from being reached
            now = point.exact_certificate
            if now.relative > self.tol >= now.computed and point.refresh():
                now = point.exact_certificate
        lower = max(best.lower, now.lower, lower)
        # improved: a bound has moved since the mark by more than rounding, and by more than a slow drift
        upper, mark = min(now.upper, best.upper), self.mark
        least, unit = max(ROUNDING * abs(upper), now.rounding), BETTER * mark.gap if np.isfinite(mark.gap) else 0.0
        fall = max(min(unit, BETTER * max(abs(mark.upper), mark.floor)), least)
        rise = max(min(unit, BETTER * max(abs(mark.lower), mark.floor)), least)
        improved = not self.met and (upper < mark.upper - fall or lower > mark.lower + rise)
        lower_primal = now.upper < best.upper
        closer = self.model is None or now.computed < self.own.computed
        if lower_primal or closer:
            model = Model(point.beta, point.a, point.outputs.known()[1], point.wander)
            best, self.lowest = (now, model) if lower_primal else (best, self.lowest)
            if closer:
                improved |= now.gap < 0.9 * self.own.gap
                self.own, self.model, self.converged = now, model, now.relative <= self.tol
        # the last rounding that is known
        rounding = now.rounding or self.certificate.rounding
        self.certificate = Certificate(best.upper, lower, best.intercept, best.floor, best.inner_gap, rounding)
        gap, size = self.certificate.gap, self.certificate.size
        self.met = self.certificate.relative <= self.tol or gap <= min(2.0 * rounding, 0.1 * size) < np.inf
        self.mark, self.idle = (self.certificate, 0) if improved else (self.mark, self.idle + 1)
        return now
