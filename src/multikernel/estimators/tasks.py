"""Losses by name and the machine that each stands for; a new one is one line of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from multikernel.machines.base import Machine
from multikernel.machines.svr import SVR


@dataclass(frozen=True)
class Task:
    """How an estimator, its targets and their costs become a machine.

    Attributes
    ----------
    machine : callable
        (estimator, y, C_i) -> Machine.
    several : bool
        Whether y may have several columns, which then share the weights of the kernels.
    """

    machine: Callable[[Any, np.ndarray, np.ndarray], Machine]
    several: bool = False


def _tube(estimator: Any, y: np.ndarray, cost: np.ndarray) -> Machine:
    return SVR(y, cost, estimator.epsilon, estimator.fit_intercept)


REGRESSION = {
    "epsilon_insensitive": Task(_tube),
}


def regression_machine(estimator: Any, y: np.ndarray, cost: np.ndarray) -> Machine:
    """Return the machine of the estimator's loss, or raise where it does not take so many targets."""
    task = REGRESSION[estimator.loss]
    if y.ndim > 1 and not task.several:
        joint = [name for name, other in REGRESSION.items() if other.several]
        instead = "".join(f"loss={name!r}, " for name in joint[:1])
        raise ValueError(
            f"{type(estimator).__name__} with loss={estimator.loss!r} takes one target. Got y of shape {y.shape}: use "
            f"{instead}sklearn.multioutput.MultiOutputRegressor or one fit for each."
        )
    return task.machine(estimator, y, cost)
