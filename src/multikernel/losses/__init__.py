"""Losses: value, gradient, conjugate and task, each with its cost C inside.

A loss l(f, y) enters a machine twice: its value in the primal objective sum_i l(f_i, y_i), and its conjugate in the
dual, through g(a) = -sum_i l*(-a_i, y_i).
"""

from __future__ import annotations

# One line makes a loss public, and those that have a name and a task are offered to users by that name.
from multikernel.losses.base import Loss as Loss
from multikernel.losses.differentiable import Huber as Huber
from multikernel.losses.differentiable import LogCosh as LogCosh
from multikernel.losses.differentiable import Logistic as Logistic
from multikernel.losses.differentiable import SmoothHinge as SmoothHinge
from multikernel.losses.differentiable import Squared as Squared
from multikernel.losses.differentiable import SquaredHinge as SquaredHinge
from multikernel.losses.joint import LargestMargin as LargestMargin
from multikernel.losses.joint import Multinomial as Multinomial
from multikernel.losses.joint import joint_form as joint_form
from multikernel.losses.piecewise_linear import EpsilonInsensitive as EpsilonInsensitive
from multikernel.losses.piecewise_linear import Hinge as Hinge
from multikernel.losses.piecewise_linear import piecewise_minimiser as piecewise_minimiser


def loss_name(loss: Loss | LargestMargin) -> str:
    """Return what users call a loss: its name, or the class of a loss that they wrote.

    Examples
    --------
    >>> from multikernel.losses import LogCosh
    >>> loss_name(LogCosh())
    'logcosh'
    """
    own = type(loss.loss if isinstance(loss, LargestMargin) else loss)
    # a subclass may have changed the formulas: it does not inherit the name
    name = vars(own).get("name")
    return name if isinstance(name, str) else own.__name__


def named_losses(task: str) -> dict[str, Loss]:
    """Return the losses for a task, with their defaults, by the names that users call them.

    Examples
    --------
    >>> from multikernel.losses import named_losses
    >>> named_losses("regression")["huber"]
    Huber(C=1.0, delta=1.0, task='regression', curvature_bound=1.0)
    """
    public = [value for value in globals().values() if isinstance(value, type) and issubclass(value, Loss)]
    named = {vars(kind)["name"]: kind() for kind in public if "name" in vars(kind) and kind.task == task}
    return dict(sorted(named.items()))


__all__ = sorted(name for name, value in globals().items() if getattr(value, "__module__", "").startswith(__name__))
