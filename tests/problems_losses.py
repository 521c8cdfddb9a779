"""Losses with formulas, one without, and one that is not convex."""

import numpy as np
from reference_losses import LOSSES as FORMULAS

from multikernel.losses import EpsilonInsensitive, Hinge, Huber, Loss, SmoothHinge, named_losses


class Quartic(Loss):
    """(f - y)^4 from value and gradient alone."""

    task = "regression"

    def __repr__(self):
        return "Quartic()"

    def value(self, f, y):
        return (f - y) ** 4

    def gradient(self, f, y):
        return 4.0 * (f - y) ** 3


class Bump(Loss):
    """Not convex: 1 - exp(-(f - y)^2)."""

    task = "regression"

    def value(self, f, y):
        return 1.0 - np.exp(-((f - y) ** 2))

    def gradient(self, f, y):
        return 2.0 * (f - y) * np.exp(-((f - y) ** 2))


NAMED = named_losses("classification") | named_losses("regression")
# every loss that the reference has a formula of
LOSSES = {name: {**NAMED, "quartic": Quartic()}[name] for name in FORMULAS}
ALL = [*LOSSES.values(), SmoothHinge(sigma=3.0), Huber(delta=0.3), Hinge(), EpsilonInsensitive(1.0, 0.2)]


def draw(loss, n=40, seed=0):
    """Outputs, and labels or targets."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    return 2.0 * rng.normal(size=n), np.where(y > 0, 1.0, -1.0) if loss.task == "classification" else y
