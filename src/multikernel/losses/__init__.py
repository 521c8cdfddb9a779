"""Losses: value, gradient, conjugate and task, each with its cost C inside.

A loss l(f, y) enters a machine twice: its value in the primal objective sum_i l(f_i, y_i), and its conjugate in the
dual, through g(a) = -sum_i l*(-a_i, y_i).
"""

from __future__ import annotations

from multikernel.losses.base import Loss
from multikernel.losses.differentiable import Huber, LogCosh, Logistic, SmoothHinge, Squared, SquaredHinge
from multikernel.losses.joint import BinaryMultinomial, LargestMargin, Multinomial, joint_form
from multikernel.losses.piecewise_linear import EpsilonInsensitive, Hinge, piecewise_minimiser

__all__ = [
    "BinaryMultinomial",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "LargestMargin",
    "LogCosh",
    "Logistic",
    "Loss",
    "Multinomial",
    "SmoothHinge",
    "Squared",
    "SquaredHinge",
    "joint_form",
    "loss_name",
    "piecewise_minimiser",
]

# what users call the losses
_NAMES: dict[type, str] = {
    BinaryMultinomial: "multinomial",
    EpsilonInsensitive: "epsilon_insensitive",
    Hinge: "hinge",
    Huber: "huber",
    LogCosh: "logcosh",
    Logistic: "logistic",
    Multinomial: "multinomial",
    SmoothHinge: "smooth_hinge",
    Squared: "squared",
    SquaredHinge: "squared_hinge",
}


def loss_name(loss: Loss | LargestMargin) -> str:
    """Return what users call a loss: its name, or the class of a loss that they wrote.

    Examples
    --------
    >>> from multikernel.losses import LogCosh
    >>> loss_name(LogCosh())
    'logcosh'
    """
    own = loss.loss if isinstance(loss, LargestMargin) else loss
    return _NAMES.get(type(own), type(own).__name__)
