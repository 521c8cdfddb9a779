"""Losses of all classes at once: l(f, y) of a row f of c outputs and a class y, with the conjugate l*(-a, y).

    largest margin   max over u != y of l(f_y - f_u)      l*(-a_y) for a_u <= 0 elsewhere (Zien & Ong 2007, Theorem 1)
    multinomial      log sum_u exp(f_u) - f_y             sum_u p_u log p_u,  p = e_y - a >= 0

Rows a sum to zero. In Theorem 1 the conjugate of a row is the smallest value of sum_u eta_u l*(-a_u / eta_u) over eta
on the simplex, where l* is the conjugate of the loss of one output. As l* is convex, eta proportional to a is best, and
the smallest value depends on a_y alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import softmax, xlog1py, xlogy

from multikernel.losses.base import Loss, largest_log
from multikernel.losses.differentiable import Logistic, SmoothHinge, SquaredHinge

# kinds of the compiled loops
MULTINOMIAL, SQUARED_HINGE, SMOOTH_HINGE = 0, 1, 2


def _own(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Index of the output of each sample's own class."""
    return np.arange(len(y)), y


@dataclass(frozen=True)
class Multinomial(Loss):
    """l(f, y) = C (log sum_u exp(f_u) - f_y) for c outputs f and a class y: exp(f) / sum exp(f) are probabilities.

    The conjugate is C sum_u p_u log p_u with p = e_y - a / C, for rows a that sum to zero and p >= 0. With two classes
    it is the logistic loss of f_1 - f_0.

    Parameters
    ----------
    C : float
        Cost of each sample.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.losses import Multinomial
    >>> Multinomial().value(np.zeros((1, 4)), np.array([2])).round(6)
    array([1.386294])
    """

    name: ClassVar[str] = "multinomial"
    C: float = 1.0
    task: str = "classification"
    curvature_bound: float = 0.5

    @property
    def steepness(self) -> float:
        return largest_log()

    @property
    def form(self) -> tuple[int, float, float]:
        """Kind, sigma and margin, for the compiled loops."""
        return MULTINOMIAL, 1.0, 0.0

    @property
    def bound(self) -> float:
        """Largest a_y."""
        return self.C

    def value(self, f, y):
        wrong = f - f[_own(y)][:, None]
        wrong[_own(y)] = -np.inf
        # as scipy.special.logsumexp, which takes several times as long on few samples
        top = np.minimum(wrong.max(axis=1), np.finfo(float).max)
        return self.C * np.logaddexp(0.0, top + np.log(np.exp(wrong - top[:, None]).sum(axis=1)))

    def gradient(self, f, y):
        p = softmax(f, axis=1)
        p[_own(y)] -= 1.0
        return self.C * p

    def shares(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """p = e_y - a / C, at least zero."""
        p = -a / self.C
        p[_own(y)] += 1.0
        return np.maximum(p, 0.0)

    def conjugate(self, a, y):
        p, own = self.shares(a, y), np.minimum(a[_own(y)] / self.C, 1.0)
        p[_own(y)] = 0.0
        # of the own share, one minus a small number, the digits of that number
        return self.C * (xlogy(p, p).sum(axis=1) + xlog1py(1.0 - own, -own))

    def inverse_gradient(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Outputs at which a is minus the gradient, up to a constant in each row; -inf where p is zero."""
        with np.errstate(divide="ignore"):
            return np.log(self.shares(a, y))

    def curvature(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivatives of the conjugate by each a_u, infinite on the boundary."""
        with np.errstate(divide="ignore", over="ignore"):
            return 1.0 / (self.C * self.shares(a, y))


@dataclass(frozen=True)
class BinaryMultinomial(Logistic):
    """The multinomial loss of two classes: the logistic loss, under the name that the user gave."""

    name: ClassVar[str] = "multinomial"


@dataclass(frozen=True)
class LargestMargin:
    """The largest over u != y of l(f_y - f_u), l a loss of one output that falls in the margin.

    Parameters
    ----------
    loss : SquaredHinge or SmoothHinge
        The loss l; the logistic one is a SmoothHinge.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.losses import SquaredHinge
    >>> LargestMargin(SquaredHinge()).value(np.array([[2.0, 1.5, 0.0]]), np.array([0]))
    array([0.25])
    """

    loss: SquaredHinge | SmoothHinge

    @property
    def steepness(self) -> float:
        """That of the loss of one output."""
        return self.loss.steepness

    @property
    def form(self) -> tuple[int, float, float]:
        """Kind, sigma and margin, for the compiled loops."""
        if isinstance(self.loss, SmoothHinge):
            return SMOOTH_HINGE, float(self.loss.sigma), float(self.loss.margin)
        return SQUARED_HINGE, 1.0, 1.0

    @property
    def bound(self) -> float:
        """Largest a_y."""
        return float(self.loss.domain(np.ones(1))[1][0])

    def margins(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The least f_y - f_u over the wrong classes u."""
        wrong = f.copy()
        wrong[_own(y)] = -np.inf
        return f[_own(y)] - wrong.max(axis=1)

    def value(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Loss of each sample."""
        return self.loss.value(self.margins(f, y), np.ones(len(f)))

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l*(-a_y), for rows that sum to zero with a_u <= 0 but at y."""
        return self.loss.conjugate(a[_own(y)], np.ones(len(a)))

    def inverse_gradient(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Outputs at which a is minus a subgradient: the margin at y, zero elsewhere."""
        u = a[_own(y)] / self.loss.C
        if isinstance(self.loss, SmoothHinge):
            # rounding may have left the domain
            u = np.clip(u, 0.0, 1.0)
            with np.errstate(divide="ignore"):
                margin = self.loss.margin - np.log(u / (1.0 - u)) / self.loss.sigma
        else:
            margin = 1.0 - 0.5 * u
        out = np.zeros_like(a)
        out[_own(y)] = margin
        return out

    def curvature(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivatives of the conjugate by each a_u: none but at y."""
        C, out = self.loss.C, np.zeros_like(a)
        if isinstance(self.loss, SmoothHinge):
            u = np.clip(a[_own(y)] / C, 0.0, 1.0)
            with np.errstate(divide="ignore", over="ignore"):
                out[_own(y)] = 1.0 / (C * self.loss.sigma * u * (1.0 - u))
        else:
            out[_own(y)] = 0.5 / C
        return out


def joint_form(loss: Loss) -> Multinomial | LargestMargin | None:
    """Return the loss of all classes that a loss stands for, None where there is none.

    Examples
    --------
    >>> from multikernel.losses import Huber, Logistic
    >>> joint_form(Logistic()), joint_form(Huber())
    (LargestMargin(loss=Logistic(C=1.0, sigma=1.0, margin=0.0, task='classification')), None)
    """
    if isinstance(loss, Multinomial):
        return loss
    # a user's subclass may have changed the formulas
    if isinstance(loss, SquaredHinge | SmoothHinge) and type(loss) in (SquaredHinge, SmoothHinge, Logistic):
        return LargestMargin(loss)
    return None
