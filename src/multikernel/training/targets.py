"""Losses by name and the machine that each stands for; a new one is one line of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from multikernel.losses import (
    BinaryMultinomial,
    EpsilonInsensitive,
    Hinge,
    Huber,
    LogCosh,
    Logistic,
    Loss,
    Multinomial,
    SmoothHinge,
    Squared,
    SquaredHinge,
    joint_form,
)
from multikernel.machines.base import Machine
from multikernel.machines.joint.class_products import ProductCrammerSinger
from multikernel.machines.joint.crammer_singer import CrammerSinger
from multikernel.machines.joint.joint_loss import JointLoss
from multikernel.machines.ridge import Ridge
from multikernel.machines.smooth import Smooth
from multikernel.machines.svc import SVC
from multikernel.machines.svr import SVR


@dataclass(frozen=True)
class BinaryTask:
    """One problem of two classes.

    Attributes
    ----------
    y : ndarray of -1 and 1
        Labels of the samples that take part; for "joint" with a column per class.
    idx : ndarray of int or None
        These samples, None for all.
    label : str
        What the problem decides, in words.
    """

    y: np.ndarray
    idx: np.ndarray | None
    label: str


def binary_tasks(codes: np.ndarray, classes: np.ndarray, multiclass: str) -> list[BinaryTask]:
    """Return the problems: one for two classes, else those of the scheme.

    Parameters
    ----------
    codes : ndarray of int
        Position in ``classes`` of each sample's class.
    classes : ndarray
        The classes.
    multiclass : {"joint", "ovr", "ovo", "products"}
        The scheme; "products" is "joint", of two classes as well.

    Examples
    --------
    >>> import numpy as np
    >>> tasks = binary_tasks(np.array([0, 1, 2]), np.array(["a", "b", "c"]), "ovo")
    >>> [(task.label, task.y.tolist(), task.idx.tolist()) for task in tasks[:2]]
    [('a and b', [-1.0, 1.0], [0, 1]), ('a and c', [-1.0, 1.0], [0, 2])]
    """
    if len(classes) == 2 and multiclass != "products":
        return [BinaryTask(np.where(codes == 1, 1.0, -1.0), None, f"{classes[0]} and {classes[1]}")]
    if multiclass in ("joint", "products"):
        return [BinaryTask(np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0), None, "all classes")]
    if multiclass == "ovr":
        return [
            BinaryTask(np.where(codes == c, 1.0, -1.0), None, f"{label} and the rest")
            for c, label in enumerate(classes)
        ]
    tasks = []
    for i, j in combinations(range(len(classes)), 2):
        idx = np.flatnonzero((codes == i) | (codes == j))
        tasks.append(BinaryTask(np.where(codes[idx] == j, 1.0, -1.0), idx, f"{classes[i]} and {classes[j]}"))
    return tasks


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


def _hinge(estimator: Any, y: np.ndarray, cost: np.ndarray) -> Machine:
    if y.ndim > 1:
        return CrammerSinger(y.argmax(axis=1), cost, estimator.fit_intercept, y.shape[1])
    return SVC(y, cost, estimator.fit_intercept)


def _tube(estimator: Any, y: np.ndarray, cost: np.ndarray) -> Machine:
    return SVR(y, cost, estimator.epsilon, estimator.fit_intercept)


def _ridge(estimator: Any, y: np.ndarray, cost: np.ndarray) -> Machine:
    return Ridge(y, cost, estimator.fit_intercept)


def _smooth(loss: Loss) -> Task:
    several = joint_form(loss) is not None
    # of two classes the softmax is the logistic function
    one = BinaryMultinomial(loss.C) if isinstance(loss, Multinomial) else loss

    def machine(estimator: Any, y: np.ndarray, cost: np.ndarray) -> Machine:
        if y.ndim > 1:
            return JointLoss(y.argmax(axis=1), loss, cost, estimator.fit_intercept, y.shape[1])
        return Smooth(y, one, cost, estimator.fit_intercept)

    return Task(machine, several)


CLASSIFICATION = {
    "hinge": Task(_hinge, several=True),
    "squared": Task(_ridge, several=True),
    "squared_hinge": _smooth(SquaredHinge()),
    "smooth_hinge": _smooth(SmoothHinge()),
    "logistic": _smooth(Logistic()),
    "multinomial": _smooth(Multinomial()),
}


REGRESSION = {
    "epsilon_insensitive": Task(_tube),
    "squared": Task(_ridge, several=True),
    "huber": _smooth(Huber()),
    "logcosh": _smooth(LogCosh()),
}


# losses given as objects that have a machine of their own; all others are smooth
_OWN = {
    Hinge: lambda loss: Task(lambda est, y, cost: _hinge(est, y, cost * loss.C), several=True),
    Squared: lambda loss: Task(lambda est, y, cost: _ridge(est, y, cost * loss.C), several=True),
    EpsilonInsensitive: lambda loss: Task(lambda est, y, cost: SVR(y, cost * loss.C, loss.epsilon, est.fit_intercept)),
}


def _task(estimator: Any, table: dict[str, Task]) -> Task:
    loss = estimator.loss
    if isinstance(loss, str):
        return table[loss]
    return _OWN[type(loss)](loss) if type(loss) in _OWN else _smooth(loss)


def classification_machine(estimator: Any, y: np.ndarray, cost: np.ndarray) -> Machine:
    """Return the machine of the estimator's loss, or raise where it does not take all classes at once."""
    task = _task(estimator, CLASSIFICATION)
    if y.ndim > 1 and not task.several:
        raise ValueError(
            f"The 'multiclass' parameter of {type(estimator).__name__} must be 'ovr' or 'ovo' for more than two "
            f"classes and the loss {estimator.loss!r}. Got 'joint' instead, which goes with the losses by name and "
            "their objects."
        )
    return task.machine(estimator, y, cost)


def product_machine(estimator: Any, codes: np.ndarray, cost: np.ndarray, n_classes: int, trivial: bool) -> Machine:
    """Return the machine of products with kernels on the classes, or raise where the loss or the scheme has none.

    Where the only kernel on the classes is the identity (``trivial``) it is the machine without them.
    """
    hinge = isinstance(estimator.loss, Hinge)
    for name, wanted, right in (
        ("multiclass", "'joint'", estimator.multiclass == "joint"),
        ("loss", "'hinge'", hinge or (isinstance(estimator.loss, str) and estimator.loss == "hinge")),
    ):
        if not right:
            raise ValueError(
                f"The '{name}' parameter of {type(estimator).__name__} must be {wanted} where output_kernels are "
                f"given. Got {getattr(estimator, name)!r} instead."
            )
    kind = CrammerSinger if trivial else ProductCrammerSinger
    return kind(codes, cost * estimator.loss.C if hinge else cost, estimator.fit_intercept, n_classes)


def regression_machine(estimator: Any, y: np.ndarray, cost: np.ndarray) -> Machine:
    """Return the machine of the estimator's loss, or raise where it does not take so many targets."""
    task = _task(estimator, REGRESSION)
    if y.ndim > 1 and not task.several:
        joint = [name for name, other in REGRESSION.items() if other.several]
        instead = "".join(f"loss={name!r}, " for name in joint[:1])
        raise ValueError(
            f"{type(estimator).__name__} with loss={estimator.loss!r} takes one target. Got y of shape {y.shape}: use "
            f"{instead}sklearn.multioutput.MultiOutputRegressor or one fit for each."
        )
    return task.machine(estimator, y, cost)
