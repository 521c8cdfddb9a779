"""Losses: value, gradient, conjugate and task, each with its cost C inside.

A loss l(f, y) enters a machine twice: its value in the primal objective sum_i l(f_i, y_i), and its conjugate in the
dual, through g(a) = -sum_i l*(-a_i, y_i).
"""

from __future__ import annotations

from multikernel.losses.base import Loss
from multikernel.losses.joint import LargestMargin, Multinomial, joint_form
from multikernel.losses.kinked import EpsilonInsensitive, Hinge, piecewise_minimiser
from multikernel.losses.smooth import Huber, LogCosh, Logistic, SmoothHinge, Squared, SquaredHinge

__all__ = [
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
    "piecewise_minimiser",
]
