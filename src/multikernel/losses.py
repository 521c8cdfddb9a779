"""Losses: value, gradient, conjugate and task, each with its cost C inside.

A loss l(f, y) enters a machine twice: its value in the primal objective sum_i l(f_i, y_i), and its conjugate in the
dual, through g(a) = -sum_i l*(-a_i, y_i).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy


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
    slopes = np.cumsum(jumps[order]) + slope
    tiny = 1e-12 * float(jumps.sum())
    last = len(order) - 1
    left = min(int(np.searchsorted(slopes, -tiny)), last)
    right = min(int(np.searchsorted(slopes, tiny, side="right")), last)
    return float(0.5 * (kinks[order[left]] + kinks[order[right]]))


# outputs between which the slopes of a loss without formulas are looked at, in its own units
_FAR = 1e8
# steps from y of a global search for the conjugate
_GRID = np.concatenate([-np.geomspace(_FAR, 1e-4, 40), [0.0], np.geomspace(1e-4, _FAR, 40)])


class Loss:
    """A convex loss l(f, y) of one output, differentiable: what a user writes from value and gradient alone.

    A subclass defines ``value`` and ``gradient``; the second derivative, the conjugate and its domain follow from
    those by differences and one-dimensional searches. A formula given for one of them is faster. The cost of a sample
    multiplies the loss from outside: (C l)*(-a) = C l*(-a / C).

    Attributes
    ----------
    task : {"classification", "regression"}
        What y is: labels -1 and 1, or real numbers.
    curvature_bound : float
        Upper bound of the second derivative at cost one, infinity where none is known.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.losses import Loss
    >>> class Quartic(Loss):
    ...     task = "regression"
    ...     def value(self, f, y):
    ...         return (f - y) ** 4
    ...     def gradient(self, f, y):
    ...         return 4 * (f - y) ** 3
    >>> # the conjugate of t^4 at 4 is 3
    >>> Quartic().conjugate(np.array([-4.0]), np.array([0.0])).round(9)
    array([3.])
    """

    task: str = "regression"
    curvature_bound: float = np.inf

    def value(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Loss of each sample."""
        raise NotImplementedError(f"A loss must define 'value'. {type(self).__name__} does not.")

    def gradient(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Derivative by f."""
        raise NotImplementedError(f"A loss must define 'gradient'. {type(self).__name__} does not.")

    def concavity(self) -> tuple[float, float, float] | None:
        """Return y, f and a larger f between which the gradient falls, None where it grows at all outputs tried."""
        f = np.linspace(-20.0, 20.0, 2001)
        for y in (1.0, -1.0, 0.0) if self.task == "regression" else (1.0, -1.0):
            slope = np.asarray(self.gradient(y + f, np.full(len(f), y)), float)
            falling = np.flatnonzero(np.diff(slope) < -1e-9 * max(np.abs(slope).max(), 1e-300))
            if len(falling):
                return y, float(y + f[falling[0]]), float(y + f[falling[0] + 1])
        return None

    def hessian(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivative by f, at least zero: here by a central difference of the gradient."""
        h = 1e-5 * np.maximum(1.0, np.abs(f))
        return np.maximum((self.gradient(f + h, y) - self.gradient(f - h, y)) / (2.0 * h), 0.0)

    def domain(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and largest a with a finite conjugate l*(-a, y): here the slopes far out."""
        y = np.asarray(y, float)
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = (-np.asarray(self.gradient(y + sign * _FAR, y), float) for sign in (1.0, -1.0))
        return np.where(np.isfinite(low), low, -1e300), np.where(np.isfinite(high), high, 1e300)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l*(-a, y) = max over f of -a f - l(f, y): here by a global search, then by halving where the slope falls.

        The search looks at outputs on both sides of y, from 1e-4 to 1e8 away: where l is not convex, the result is
        that of its convex hull, up to the steps of the search, and the duality gap stays open.
        """
        a, y = np.asarray(a, float), np.asarray(y, float)
        a, y = np.broadcast_arrays(a, y)
        low, high = self.domain(y)
        # a slope of -a that the loss nowhere has
        outside = (a < low - 1e-12 * np.abs(low)) | (a > high + 1e-12 * np.abs(high))

        def worth(f):
            with np.errstate(over="ignore", invalid="ignore"):
                return np.nan_to_num(-a * f - self.value(f, y), nan=-np.inf, posinf=-np.inf)

        best = np.argmax([worth(y + step) for step in _GRID], axis=0)
        left = y + _GRID[np.maximum(best - 1, 0)]
        right = y + _GRID[np.minimum(best + 1, len(_GRID) - 1)]
        top = worth(y + _GRID[best])
        for _ in range(60):
            middle = 0.5 * (left + right)
            # beyond the maximum the slope -a - l' is negative
            past = -a - self.gradient(middle, y) < 0
            left, right = np.where(past, left, middle), np.where(past, middle, right)
        top = np.maximum(top, np.maximum(worth(left), worth(right)))
        return np.where(outside, np.inf, top)


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
        return piecewise_minimiser(y - f, C, -float(C[y > 0].sum()))


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

    C: float | np.ndarray = 1.0
    epsilon: float = 0.1
    task: str = "regression"

    def value(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Loss of each sample."""
        return self.C * np.maximum(0.0, np.abs(y - f) - self.epsilon)

    def gradient(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Derivative by f: the subgradient that is zero at the kinks."""
        return np.where(np.abs(y - f) > self.epsilon, self.C * np.sign(f - y), 0.0)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l*(-a, y): what the dual pays for the coefficient a."""
        return np.where(np.abs(a) <= self.C, self.epsilon * np.abs(a) - y * a, np.inf)

    def best_intercept(self, f: np.ndarray, y: np.ndarray) -> float:
        """Return the b that minimises sum_i l(f_i + b, y_i): the middle of the interval of minimisers.

        The slope of the sum starts at minus the sum of the costs and grows by C_i at both edges of the tube,
        y_i - epsilon - f_i and y_i + epsilon - f_i.
        """
        C = np.broadcast_to(np.asarray(self.C, float), y.shape)
        kinks = np.concatenate([y - self.epsilon - f, y + self.epsilon - f])
        return piecewise_minimiser(kinks, np.concatenate([C, C]), -float(C.sum()))


def _entropy(u: np.ndarray) -> np.ndarray:
    """u ln u + (1 - u) ln(1 - u) on [0, 1], infinite elsewhere."""
    inside = (u >= 0) & (u <= 1)
    v = np.clip(u, 0.0, 1.0)
    return np.where(inside, xlogy(v, v) + xlogy(1.0 - v, 1.0 - v), np.inf)


@dataclass(frozen=True)
class Squared(Loss):
    """l(f, y) = C (y - f)^2; the conjugate is l*(-a, y) = a^2 / (4C) - y a.

    Parameters
    ----------
    C : float or ndarray of shape (n,)
        Cost of each sample.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.losses import Squared
    >>> Squared(2.0).value(np.array([0.0, 3.0]), np.array([0.5, 1.0]))
    array([0.5, 8. ])
    """

    C: float | np.ndarray = 1.0
    task: str = "regression"
    curvature_bound: float = 2.0

    def value(self, f, y):
        return self.C * (y - f) ** 2

    def gradient(self, f, y):
        return 2.0 * self.C * (f - y)

    def hessian(self, f, y):
        return np.broadcast_to(2.0 * np.asarray(self.C, float), np.shape(f)).copy()

    def domain(self, y):
        return np.full(np.shape(y), -np.inf), np.full(np.shape(y), np.inf)

    def conjugate(self, a, y):
        return a**2 / (4.0 * self.C) - y * a


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """l(f, y) = C max(0, 1 - y f)^2, for labels y = -1 or 1.

    The conjugate is l*(-a, y) = a^2 / (4C) - y a on y a >= 0, and infinite elsewhere.

    Parameters
    ----------
    C : float or ndarray of shape (n,)
        Cost of each sample.
    """

    C: float | np.ndarray = 1.0
    task: str = "classification"
    curvature_bound: float = 2.0

    def value(self, f, y):
        return self.C * np.maximum(0.0, 1.0 - y * f) ** 2

    def gradient(self, f, y):
        return -2.0 * self.C * y * np.maximum(0.0, 1.0 - y * f)

    def hessian(self, f, y):
        return np.where(y * f < 1.0, 2.0 * self.C, 0.0)

    def domain(self, y):
        return np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)

    def conjugate(self, a, y):
        return np.where(y * a >= 0, a**2 / (4.0 * self.C) - y * a, np.inf)


@dataclass(frozen=True)
class SmoothHinge(Loss):
    """L_sigma, l(f, y) = (C / sigma) log(1 + exp(sigma (1 - y f))): the hinge as sigma grows.

    The conjugate is l*(-a, y) = -y a + (C / sigma) (u ln u + (1 - u) ln(1 - u)), u = y a / C in [0, 1]
    (Sonnenburg et al. 2005, section 3; the S_k printed there is not this).

    Parameters
    ----------
    C : float or ndarray of shape (n,)
        Cost of each sample.
    sigma : float
        Sharpness, positive: the loss is above the hinge by at most C ln 2 / sigma.
    """

    C: float | np.ndarray = 1.0
    sigma: float = 10.0
    margin: float = 1.0
    task: str = "classification"

    @property
    def curvature_bound(self) -> float:  # type: ignore[override]
        """Upper bound of the second derivative at cost one."""
        return 0.25 * self.sigma

    def value(self, f, y):
        return self.C / self.sigma * np.logaddexp(0.0, self.sigma * (self.margin - y * f))

    def gradient(self, f, y):
        return -self.C * y * expit(self.sigma * (self.margin - y * f))

    def hessian(self, f, y):
        u = self.sigma * (self.margin - y * f)
        return self.C * self.sigma * expit(u) * expit(-u)

    def domain(self, y):
        C = np.broadcast_to(np.asarray(self.C, float), np.shape(y))
        return np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)

    def conjugate(self, a, y):
        return -self.margin * y * a + self.C / self.sigma * _entropy(y * a / self.C)


@dataclass(frozen=True)
class Logistic(SmoothHinge):
    """l(f, y) = C log(1 + exp(-y f)), for labels y = -1 or 1: exp(f) / (1 + exp(f)) is the probability of y = 1.

    The conjugate is l*(-a, y) = C (u ln u + (1 - u) ln(1 - u)), u = y a / C in [0, 1].

    Parameters
    ----------
    C : float or ndarray of shape (n,)
        Cost of each sample.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.losses import Logistic
    >>> Logistic().value(np.array([0.0]), np.array([1.0])).round(6)
    array([0.693147])
    """

    sigma: float = 1.0
    margin: float = 0.0


@dataclass(frozen=True)
class Huber(Loss):
    """l(f, y) = C t^2 / 2 for |t| <= delta, C delta (|t| - delta / 2) beyond, t = f - y.

    The conjugate is l*(-a, y) = a^2 / (2C) - y a on |a| <= C delta, and infinite elsewhere.

    Parameters
    ----------
    C : float or ndarray of shape (n,)
        Cost of each sample.
    delta : float
        Where the loss becomes linear, positive, in the units of y.
    """

    C: float | np.ndarray = 1.0
    delta: float = 1.0
    task: str = "regression"
    curvature_bound: float = 1.0

    def value(self, f, y):
        t = np.abs(f - y)
        near = np.minimum(t, self.delta)
        return self.C * (0.5 * near**2 + self.delta * (t - near))

    def gradient(self, f, y):
        return self.C * np.clip(f - y, -self.delta, self.delta)

    def hessian(self, f, y):
        return np.where(np.abs(f - y) <= self.delta, self.C, 0.0)

    def domain(self, y):
        edge = np.broadcast_to(np.asarray(self.C * self.delta, float), np.shape(y))
        return -edge, edge

    def conjugate(self, a, y):
        return np.where(np.abs(a) <= self.C * self.delta, a**2 / (2.0 * self.C) - y * a, np.inf)


@dataclass(frozen=True)
class LogCosh(Loss):
    """l(f, y) = C log cosh(f - y): quadratic for small errors, linear for large ones.

    The conjugate is l*(-a, y) = -y a + C/2 ((1 + u) ln(1 + u) + (1 - u) ln(1 - u)), u = a / C in [-1, 1].

    Parameters
    ----------
    C : float or ndarray of shape (n,)
        Cost of each sample.
    """

    C: float | np.ndarray = 1.0
    task: str = "regression"
    curvature_bound: float = 1.0

    def value(self, f, y):
        t = np.abs(f - y)
        return self.C * (t + np.log1p(np.exp(-2.0 * t)) - np.log(2.0))

    def gradient(self, f, y):
        return self.C * np.tanh(f - y)

    def hessian(self, f, y):
        return self.C / np.cosh(np.clip(f - y, -300.0, 300.0)) ** 2

    def domain(self, y):
        edge = np.broadcast_to(np.asarray(self.C, float), np.shape(y))
        return -edge, edge

    def conjugate(self, a, y):
        # with v = (1 + u) / 2 the bracket is 2 (entropy(v) + ln 2)
        return -y * a + self.C * (_entropy(0.5 * (1.0 + a / self.C)) + np.log(2.0))
