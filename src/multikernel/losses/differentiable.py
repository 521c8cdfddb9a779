"""Losses with a derivative everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from multikernel.losses.base import Loss, largest_log


def _entropy(u: np.ndarray) -> np.ndarray:
    """u ln u + (1 - u) ln(1 - u) on [0, 1], infinite elsewhere."""
    inside = (u >= 0) & (u <= 1)
    v = np.clip(u, 0.0, 1.0)
    # 1 - v has lost the digits of a small v
    return np.where(inside, xlogy(v, v) + xlog1py(1.0 - v, -v), np.inf)


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

    name: ClassVar[str] = "squared"
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

    name: ClassVar[str] = "squared_hinge"
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

    name: ClassVar[str] = "smooth_hinge"
    C: float | np.ndarray = 1.0
    sigma: float = 10.0
    margin: float = 1.0
    task: str = "classification"

    @property
    def curvature_bound(self) -> float:
        """Upper bound of the second derivative at cost one."""
        return 0.25 * self.sigma

    @property
    def steepness(self) -> float:
        return largest_log() / self.sigma

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

    name: ClassVar[str] = "logistic"
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

    name: ClassVar[str] = "huber"
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

    name: ClassVar[str] = "logcosh"
    C: float | np.ndarray = 1.0
    task: str = "regression"
    curvature_bound: float = 1.0

    @property
    def steepness(self) -> float:
        return largest_log()

    def value(self, f, y):
        t = np.abs(f - y)
        # both to the last digits, of small numbers and of large ones
        near = np.log1p(2.0 * np.sinh(0.5 * np.minimum(t, 1.0)) ** 2)
        return self.C * np.where(t < 1.0, near, t + np.log1p(np.exp(-2.0 * t)) - np.log(2.0))

    def gradient(self, f, y):
        return self.C * np.tanh(f - y)

    def hessian(self, f, y):
        return self.C / np.cosh(np.clip(f - y, -300.0, 300.0)) ** 2

    def domain(self, y):
        edge = np.broadcast_to(np.asarray(self.C, float), np.shape(y))
        return -edge, edge

    def conjugate(self, a, y):
        u = np.clip(a / self.C, -1.0, 1.0)
        bracket = xlog1py(1.0 + u, u) + xlog1py(1.0 - u, -u)
        return np.where(np.abs(a) <= self.C, 0.5 * self.C * bracket - y * a, np.inf)
