"""From targets and losses to problems: a specification is called with the prepared kernels and returns the problems.

joint  one problem for all classes, a column of labels for each; one set of weights; the largest output wins
ovr    one problem per class, that class against the rest; the largest output wins
ovo    one problem per pair of classes, on their samples alone; the pairs vote, ties go to the larger outputs
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, cast

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from multikernel.gram.base import Gram
from multikernel.kernels.class_kernels import ClassKernels, class_kernels
from multikernel.losses import (
    EpsilonInsensitive,
    Hinge,
    Loss,
    Multinomial,
    Squared,
    SquaredHinge,
    joint_form,
    loss_name,
    named_losses,
)
from multikernel.losses.joint import BinaryMultinomial
from multikernel.machines.base import Machine
from multikernel.machines.descent import Descent
from multikernel.machines.joint.class_products import ProductCrammerSinger
from multikernel.machines.joint.crammer_singer import CrammerSinger
from multikernel.machines.joint.joint_loss import JointLoss
from multikernel.machines.ridge import Ridge
from multikernel.machines.smooth import Smooth
from multikernel.machines.svc import SVC
from multikernel.machines.svr import SVR
from multikernel.mixing.norms import mixing_for
from multikernel.training.core import Prepared, Target

# losses by name; labels are numbers as well: the squared loss serves both
CLASSIFICATION: Mapping[str, Loss] = named_losses("classification") | {"squared": Squared()}
REGRESSION: Mapping[str, Loss] = named_losses("regression")
# sum of losses up to which its multiples, as in the step lengths, are numbers too
_LARGEST_LOSS = 1e-4 * np.finfo(float).max
# costs as powers of two. Above the first, fifth powers of costs leave the range of float64; below the second, with a
# third more than the digits of float64, losses of labels are linear, and coefficients are in proportion to the costs
_LARGEST, _LINEAR_BELOW = np.finfo(float).maxexp // 5, 4 * np.finfo(float).machep // 3
# losses whose machines have a version on explicit features
_LINEAR = (Hinge, EpsilonInsensitive, Squared, SquaredHinge)


def machine_for(loss: Loss, y: np.ndarray, cost: np.ndarray, fit_intercept: bool, gram: Gram) -> Machine | None:
    """Return the machine of a loss on some kernels.

    y is (n,), or (n, c) with a column of -1 and 1 for each class, or of targets. None where the loss does not take
    several columns, which share the weights of the kernels.
    """
    several = y.ndim > 1
    if type(loss) is Squared:
        # targets go to the device where the kernels are
        return Ridge(cast(Any, gram).hold(y) if hasattr(gram, "hold") else y, cost * loss.C, fit_intercept)
    if several and type(loss) is not Hinge and joint_form(loss) is None:
        return None
    if type(loss) is EpsilonInsensitive:
        return SVR(y, cost * loss.C, loss.epsilon, fit_intercept)
    if type(loss) is Hinge:
        cost = cost * loss.C
        if several:
            return CrammerSinger(y.argmax(axis=1), cost, fit_intercept, y.shape[1])
        return SVC(y, cost, fit_intercept)
    if several:
        return JointLoss(y.argmax(axis=1), loss, cost, fit_intercept, y.shape[1])
    # of two classes the softmax is the logistic function
    return Smooth(y, BinaryMultinomial(loss.C) if isinstance(loss, Multinomial) else loss, cost, fit_intercept)


def on_features(machine: Machine, gram: Gram) -> Machine:
    """Return the machine that solves the problem of another one on explicit features, in partitions or together."""
    if not hasattr(gram, "groups"):
        return Descent(machine)
    from multikernel.training.partition_point import Spread

    return Spread(machine)


def labelled_problems(
    codes: np.ndarray, classes: np.ndarray, multiclass: str
) -> Iterator[tuple[np.ndarray, np.ndarray | None, str]]:
    """Yield labels of -1 and 1, the samples that take part (None for all) and the name of each problem.

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
    >>> problems = labelled_problems(np.array([0, 1, 2]), np.array(["a", "b", "c"]), "ovo")
    >>> [(name, y.tolist(), samples.tolist()) for y, samples, name in problems][:2]
    [('a and b', [-1.0, 1.0], [0, 1]), ('a and c', [-1.0, 1.0], [0, 2])]
    """
    if len(classes) == 2 and multiclass != "products":
        yield np.where(codes == 1, 1.0, -1.0), None, f"{classes[0]} and {classes[1]}"
    elif multiclass in ("joint", "products"):
        yield np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0), None, "all classes"
    elif multiclass == "ovr":
        for c, name in enumerate(classes):
            yield np.where(codes == c, 1.0, -1.0), None, f"{name} and the rest"
    else:
        for i, j in combinations(range(len(classes)), 2):
            samples = np.flatnonzero((codes == i) | (codes == j))
            yield np.where(codes[samples] == j, 1.0, -1.0), samples, f"{classes[i]} and {classes[j]}"


@dataclass(frozen=True)
class Classification:
    """Problems of classes.

    Attributes
    ----------
    owner : str
        Name of the estimator, for error sentences.
    codes, classes : ndarrays
        The classes, and the position of each sample's class among them.
    weight : ndarray or None
        Sample weights, None for ones.
    loss : Loss
        The loss.
    C, norm, multiclass, class_weight, fit_intercept, output_kernels
        As the parameters of `MKLClassifier`; ``multiclass`` may also be "products", as in `labelled_problems`.
    """

    owner: str
    codes: np.ndarray
    classes: np.ndarray
    weight: np.ndarray | None
    loss: Loss = CLASSIFICATION["hinge"]
    C: float = 1.0
    norm: float = 1.0
    multiclass: str = "joint"
    class_weight: Any = None
    fit_intercept: bool = True
    output_kernels: Any = None

    def features_need(self) -> str | None:
        """What explicit features need, in the user's words; None where they go with this problem."""
        joint = len(self.classes) > 2 and self.multiclass == "joint"
        if self.output_kernels is None and not joint and type(self.loss) in _LINEAR:
            return None
        return (
            "two classes or multiclass='ovr' or 'ovo', output_kernels=None, and loss='hinge', 'squared' or "
            "'squared_hinge'"
        )

    def __call__(self, prepared: Prepared) -> Sequence[Target]:
        """Return the problems on the prepared kernels."""
        products = None
        cost = sample_costs(self.owner, self.C, self.class_weight, self.classes, self.codes, self.weight)
        cost, unit = costs_in_range(self.owner, cost, prepared.unit, labels=True)
        if self.output_kernels is not None:
            products = class_kernels(self.output_kernels, self.classes, prepared.names, self.owner)
            if prepared.gram.kind == "torch":
                raise ValueError(
                    f"The 'output_kernels' parameter of {self.owner} must be None for kernels on a device of PyTorch. "
                    "Leave it out, or use another 'gram' and arrays instead of tensors."
                )
        scheme = self.multiclass if products is None else "products"
        targets = []
        for y, samples, name in labelled_problems(self.codes, self.classes, scheme):
            own = cost if samples is None else cost[samples]
            machine = machine_for(self.loss, y, own, self.fit_intercept, prepared.gram) if products is None else None
            if products is not None:
                machine = self._product_machine(own, products)
            elif machine is None:
                raise ValueError(
                    f"The 'multiclass' parameter of {self.owner} must be 'ovr' or 'ovo' for more than two "
                    f"classes and the loss {self.loss!r}. Got 'joint' instead, which goes with the losses by name and "
                    "their objects."
                )
            if not machine.scale <= _LARGEST_LOSS:
                raise _too_large(self.owner, machine, "labels", "divide the 'loss', or 'C', by a large number")
            machine = on_features(machine, prepared.gram) if prepared.gram.kind == "features" else machine
            targets.append(
                Target(machine, mixing_for(self.norm), name, self.fit_intercept, samples, products, unit=unit)
            )
        return targets

    def on_kernels(self, prepared: Prepared, points: Sequence[Mapping[str, Any]]) -> Classification:
        """Return the specification with what all points of a grid share on these kernels."""
        return self

    def _product_machine(self, cost: np.ndarray, products: ClassKernels) -> Machine:
        """Return the machine of products with kernels on the classes, or raise where loss or scheme have none.

        Where the only kernel on the classes is the identity it is the machine without them.
        """
        if self.multiclass != "joint" or not isinstance(self.loss, Hinge):
            wrong, got = (
                ("loss", loss_name(self.loss)) if self.multiclass == "joint" else ("multiclass", self.multiclass)
            )
            raise ValueError(
                f"The '{wrong}' parameter of {self.owner} must be {'hinge' if wrong == 'loss' else 'joint'!r} where "
                f"output_kernels are given. Got {got!r} instead."
            )
        kind = CrammerSinger if products.trivial else ProductCrammerSinger
        return kind(self.codes, cost * self.loss.C, self.fit_intercept, len(self.classes))


def sample_costs(
    owner: str, C: float, class_weight: Any, classes: np.ndarray, codes: np.ndarray, weight: np.ndarray | None
) -> np.ndarray:
    """Return C_i = C * sample weight * class weight.

    Parameters
    ----------
    owner : str
        Name of the estimator, for the error sentence.
    C : float
        Cost of the losses.
    class_weight : None, "balanced" or mapping
        Factors by class.
    classes, codes : ndarrays
        The classes, and the position of each sample's class among them.
    weight : ndarray or None
        Sample weights, None for ones.

    Examples
    --------
    >>> import numpy as np
    >>> sample_costs("me", 1.0, "balanced", np.array(["a", "b"]), np.array([0, 0, 0, 1]), None).round(2)
    array([0.67, 0.67, 0.67, 2.  ])
    """
    factors = np.ones(len(classes))
    if isinstance(class_weight, str):
        counts = np.bincount(codes, weight, len(factors))
        factors = counts.sum() / (len(factors) * counts)
    elif class_weight is not None:
        factors = compute_class_weight(dict(class_weight), classes=classes, y=classes[codes])
        if not np.all(np.isfinite(factors) & (factors > 0)):
            raise ValueError(
                f"The 'class_weight' parameter of {owner} must hold positive numbers. Got {class_weight!r} instead."
            )
    with np.errstate(over="ignore"):
        cost = C * factors[codes]
        return cost if weight is None else cost * weight


def costs_in_range(
    owner: str, cost: np.ndarray, unit: float = 1.0, labels: bool = False, what: str = "'C' times the sample weights"
) -> tuple[np.ndarray, float]:
    """Return the costs of kernels that were divided by ``unit``, and the factor that they were multiplied by.

    The factor is the unit. Very small costs of ``labels``, which are -1 and 1, are multiplied by a larger power of two:
    losses are linear there, and coefficients are in proportion to the costs. Costs that float64 cannot work with are
    refused, in a sentence about ``what``.
    """
    top, limits = float(cost.max()), np.finfo(float)
    size, own = math.frexp(top)[1], math.frexp(unit)[1] - 1
    above = top == np.inf or size + own > _LARGEST
    if above or top == 0.0 or (not labels and size + own < limits.minexp):
        end = (_LARGEST if above else limits.minexp) - own
        # a cost that is a float64 itself
        end = min(max(end, limits.minexp - limits.nmant), limits.maxexp - 1)
        raise ValueError(
            f"The costs of {owner}, {what}, must be at {'most' if above else 'least'} {math.ldexp(1.0, end):.0e} on "
            f"kernels of this size: float64 cannot work with other costs. Got {top:.0e} instead."
        )
    power = max(own, _LINEAR_BELOW - size) if labels else own
    return np.ldexp(cost, power), math.ldexp(1.0, power)


@dataclass(frozen=True)
class Regression:
    """One problem of numbers.

    Attributes
    ----------
    owner : str
        Name of the estimator, for error sentences.
    y : ndarray of shape (n,) or (n, c)
        Targets; several share the weights of the kernels.
    weight : ndarray or None
        Sample weights, None for ones.
    loss : str or Loss
        A name of `REGRESSION`, or a loss.
    epsilon, C, norm, fit_intercept
        As the parameters of `MKLRegressor`.
    """

    owner: str
    y: np.ndarray
    weight: np.ndarray | None
    loss: Any = "epsilon_insensitive"
    epsilon: float = 0.1
    C: float = 1.0
    norm: float = 1.0
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        own = getattr(self.loss, "epsilon", None)
        if own is not None and self.epsilon not in (Regression.epsilon, own):
            raise ValueError(
                f"The 'epsilon' parameter of {self.owner} must be left out for loss={self.loss!r}, which has its own. "
                f"Got {self.epsilon!r}: use loss='epsilon_insensitive', or a loss with this epsilon."
            )

    def features_need(self) -> str | None:
        """What explicit features need, in the user's words; None where they go with this problem."""
        if self.y.ndim == 1 and type(self._loss()) in _LINEAR:
            return None
        return "one target and loss='epsilon_insensitive' or 'squared'"

    def on_kernels(self, prepared: Prepared, points: Sequence[Mapping[str, Any]]) -> Regression:
        """Return the specification with what all points of a grid share on these kernels."""
        return self

    def _loss(self) -> Loss:
        if self.loss == "epsilon_insensitive":
            return EpsilonInsensitive(epsilon=self.epsilon)
        return REGRESSION[self.loss] if isinstance(self.loss, str) else self.loss

    def __call__(self, prepared: Prepared) -> Sequence[Target]:
        """Return the one problem."""
        loss = self._loss()
        with np.errstate(over="ignore"):
            cost = np.full(len(self.y), float(self.C)) if self.weight is None else self.C * self.weight
        cost, unit = costs_in_range(self.owner, cost, prepared.unit)
        machine = machine_for(loss, self.y, cost, self.fit_intercept, prepared.gram)
        if machine is None:
            raise ValueError(
                f"{self.owner} with loss={self.loss!r} takes one target. Got y of shape {self.y.shape}: use "
                "loss='squared', sklearn.multioutput.MultiOutputRegressor or one fit for each."
            )
        if not machine.scale <= _LARGEST_LOSS:
            raise _too_large(self.owner, machine, "targets", "divide y by a number of the size of the largest")
        machine = on_features(machine, prepared.gram) if prepared.gram.kind == "features" else machine
        return [Target(machine, mixing_for(self.norm), "regression", self.fit_intercept, unit=unit)]


def _too_large(owner: str, machine: Machine, targets: str, advice: str) -> ValueError:
    """Return the error for losses at outputs of zero whose sum overflows float64, or nearly."""
    return ValueError(
        f"The {targets} of {owner} must have losses at zero, times 'C' and the sample weights, that sum to at most "
        f"{_LARGEST_LOSS:.0e}: float64 cannot work with larger ones. Got {machine.scale:.0e}: {advice}."
    )


def one_problem(
    make: Callable[[Prepared], Machine], norm: float, label: str, balanced: bool
) -> Callable[[Prepared], Sequence[Target]]:
    """Return a specification of one problem whose machine is made from the prepared kernels."""

    def targets(prepared: Prepared) -> Sequence[Target]:
        return [Target(make(prepared), mixing_for(norm), label, balanced, unit=prepared.unit)]

    return targets
