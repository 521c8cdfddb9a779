"""How close to optimal: a rigorous duality gap for any (beta, a), however inexactly it was found.

    upper(beta, a) = 1/2 sum_k beta_k q_k + loss(f + b)      a primal value, b the best intercept
    lower(a)       = g(a) - 1/2 sigma_B(q(a))                 a dual value, a feasible

Every optimum lies between the two. Both come from per-kernel outputs accumulated in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

from multikernel.problem import Point


@dataclass(frozen=True)
class Certificate:
    """Bounds on the optimum and the intercept of the primal value."""

    upper: float
    lower: float
    intercept: float
    floor: float

    @property
    def gap(self) -> float:
        """Absolute gap, at least zero."""
        return max(self.upper - self.lower, 0.0)

    @property
    def size(self) -> float:
        """What relative gaps are relative to: |upper|, or the floor where that is more."""
        return max(abs(self.upper), self.floor)

    @property
    def relative(self) -> float:
        """Gap relative to the primal value."""
        return relative_gap(self.upper, self.lower, self.floor)


def relative_gap(upper: float, lower: float, floor: float) -> float:
    """(upper - lower) / max(|upper|, floor), at least zero."""
    return max(upper - lower, 0.0) / max(abs(upper), floor)


def certify(point: Point) -> Certificate:
    """Certify the point as it stands."""
    machine = point.problem.machine
    upper, intercept = point.primal
    lower = machine.dual(point.a) - 0.5 * point.support
    return Certificate(upper, lower, intercept, machine.floor)
