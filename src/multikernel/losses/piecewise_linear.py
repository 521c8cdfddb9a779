"""Losses with kinks, linear in pieces: the hinge and the tube."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from multikernel.losses.base import Loss


def piecewise_minimiser(kinks: np.ndarray, jumps: np.ndarray, slope: float) -> float:
    """Minimise a convex piecewise linear function: the middle of the interval of minimisers.

    Parameters
    ----------
    kinks, jumps : ndarrays of shape (m,)
        Where the slope changes, and by how much it grows there.
    slope : float
        Slope to the left of every kink, at most zero.

    Examples
    --------
    >>> import numpy as np
    >>> piecewise_minimiser(np.array([3.0, 1.0]), np.array([1.0, 1.0]), -1.0)
    2.0
    """
    order = np.argsort(kinks)
    slopes = np.cumsum(jumps[order])
    tiny, last = 1e-12 * slopes[-1], len(order) - 1
    left = min(slopes.searchsorted(-slope - tiny), last)
    right = min(slopes.searchsorted(-slope + tiny, side="right"), last)
    return float(0.5 * (kinks[order[left]] + kinks[order[right]]))


@dataclass(frozen=True)
class Hinge(Loss):
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

    name: ClassVar[str] = "hinge"
    C: float | np.ndarray = 1.0
    task: str = "classification"

    def value(self, f, y):
        return self.C * np.maximum(0.0, 1.0 - y * f)

    def gradient(self, f, y):
        """Derivative by f: the subgradient that is zero at the kink."""
        return np.where(y * f < 1.0, -self.C * y, 0.0)

    def conjugate(self, a, y):
        inside = (y * a >= 0) & (y * a <= self.C)
        return np.where(inside, -y * a, np.inf)

    def best_intercept(self, f: np.ndarray, y: np.ndarray) -> float:
        """Return the b that minimises sum_i l(f_i + b, y_i): the middle of the interval of minimisers.

        The sum is convex and piecewise linear in b; its slope starts at minus the cost of the positive samples
        and grows by C_i at every kink y_i - f_i.
        """
        C = np.zeros(y.shape) + self.C
        return piecewise_minimiser(y - f, C, -float(C @ (y > 0)))


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """l(f, y) = C max(0, |y - f| - epsilon), for real targets y: errors within the tube cost nothing.

    The conjugate is l*(-a, y) = -y a + epsilon |a| on |a| <= C, and infinite elsewhere.

    Parameters
    ----------
    C : float or ndarray of shape (n,)
        Cost of each sample.
    epsilon : float
        Half the width of the tube, not negative; zero for the absolute error.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.losses import EpsilonInsensitive
    >>> EpsilonInsensitive(2.0, 0.5).value(np.array([0.0, 3.0]), np.array([0.25, 1.0]))
    array([0., 3.])
    """

    name: ClassVar[str] = "epsilon_insensitive"
    C: float | np.ndarray = 1.0
    epsilon: float = 0.1
    task: str = "regression"

    def value(self, f, y):
        return self.C * np.maximum(0.0, np.abs(y - f) - self.epsilon)

    def gradient(self, f, y):
        """Derivative by f: the subgradient that is zero at the kinks."""
        return np.where(np.abs(y - f) > self.epsilon, self.C * np.sign(f - y), 0.0)

    def conjugate(self, a, y):
        return np.where(np.abs(a) <= self.C, self.epsilon * np.abs(a) - y * a, np.inf)

    def best_intercept(self, f: np.ndarray, y: np.ndarray) -> float:
        """Return the b that minimises sum_i l(f_i + b, y_i): the middle of the interval of minimisers.

        The slope of the sum starts at minus the sum of the costs and grows by C_i at both edges of the tube,
        y_i - epsilon - f_i and y_i + epsilon - f_i.
        """
        C = np.zeros(y.shape) + self.C
        kinks = np.concatenate([y - self.epsilon - f, y + self.epsilon - f])
        return piecewise_minimiser(kinks, np.concatenate([C, C]), -float(C.sum()))
