"""What the cut methods share: how exactly to solve inner problems, and the in-out step.

In-out separation (Ben-Ameur & Neto 2007): instead of at the minimiser of the cut model, which jumps about,
the next cut is taken between it and the best weights known. The model's minimum rises to the optimum all
the same, and its multipliers certify where no single a does: with rank-deficient kernels, and where a
weight is zero.
"""

from __future__ import annotations

import numpy as np

from multikernel.certificate import Certificate
from multikernel.masters import CutModel
from multikernel.problem import Point


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
        point.set_weights(point.problem.mixing.saturate(0.5 * (self.beta + target)))
        point.solve(accuracy)
        return lower, self.observe(point)
