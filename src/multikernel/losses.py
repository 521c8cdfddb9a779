"""Losses: value, gradient, conjugate and task, each with its cost C inside.

A loss l(f, y) enters a machine twice: its value in the primal objective sum_i l(f_i, y_i), and its conjugate in the
dual, through g(a) = -sum_i l*(-a_i, y_i).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Hinge:
    """l(f, y) = C max(0, 1 - y f), for labels y = -1 or 1.

    The conjugate is l*(-a, y) = -y a on 0 <= y a <= C, and infinite elsewhere.

    Parameters
    ----------
    C : float or ndarray of shape (n,)
        Cost of each sample.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.losses import Hinge
    >>> Hinge(2.0).value(np.array([0.5, 3.0]), np.array([1.0, 1.0]))
    array([1., 0.])
    """

    C: float | np.ndarray = 1.0
    task: str = "classification"

    def value(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Loss of each sample."""
        return self.C * np.maximum(0.0, 1.0 - y * f)

    def gradient(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Derivative by f: the subgradient that is zero at the kink."""
        return np.where(y * f < 1.0, -self.C * y, 0.0)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l*(-a, y): what the dual pays for the coefficient a."""
        inside = (y * a >= 0) & (y * a <= self.C)
        return np.where(inside, -y * a, np.inf)

    def best_intercept(self, f: np.ndarray, y: np.ndarray) -> float:
        """Return the b that minimises sum_i l(f_i + b, y_i): the middle of the interval of minimisers.

        The sum is convex and piecewise linear in b; its slope starts at minus the cost of the positive samples
        and grows by C_i at every kink y_i - f_i.
        """
        C = np.broadcast_to(np.asarray(self.C, float), y.shape)
        kinks = y - f
        order = np.argsort(kinks)
        slope = np.cumsum(C[order]) - C[y > 0].sum()
        tiny = 1e-12 * C.sum()
        left = int(np.searchsorted(slope, -tiny))
        right = int(np.searchsorted(slope, tiny, side="right"))
        last = len(order) - 1
        low, high = kinks[order[min(left, last)]], kinks[order[min(right, last)]]
        return float(0.5 * (low + high))
