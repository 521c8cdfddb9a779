"""Weights of the largest kernel margin, after Cortes, Mohri & Rostamizadeh 2013, (4) and (5).

    max  (1/n) sum_i min_{u != y_i} beta . eta_iu     over  beta >= 0,  ||beta||_q = 1

with eta_iuk the mean similarity of sample i to its own class minus that to class u; or the same with the smallest of
all margins in the place of their mean, which the paper found poor. For q = 1 linear programmes in HiGHS, else conic
ones in Clarabel, over the few rows that matter: `multikernel.mixing.largest_margin`.
"""

from __future__ import annotations

from numbers import Real

from multikernel.estimators.baselines.weights import KernelWeights, TargetValues
from multikernel.mixing import SmallestMargins, largest_margin, margin_table

OBJECTIVES = ("mean", "smallest")


class KernelMarginWeights(KernelWeights):
    """Weights of the largest multi-class kernel margin.

    Parameters
    ----------
    norm : float, default=1.0
        Norm q of the weights. Above 1 the margin is maximised over ||beta||_q <= 1, which is the same wherever a mix of
        positive margin exists; where none does, it is refused.
    objective : {"mean", "smallest"}, default="mean"
        Whether the mean of the margins of the samples is maximised, or the smallest of them.

    Attributes
    ----------
    weights_ : ndarray of shape (p,)
        Weights of norm one.
    margin_ : float
        Their margin.

    References
    ----------
    C. Cortes, M. Mohri, A. Rostamizadeh, Multi-class classification with maximum margin multiple kernel, ICML 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.estimators.baselines import KernelMarginWeights
    >>> X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> found = KernelMarginWeights().fit([X @ X.T, np.eye(4)], ["a", "a", "b", "b"])
    >>> found.weights_, found.margin_
    (array([1., 0.]), 1.0)
    """

    _tasks = ("classification",)
    _rules = {  # noqa: RUF012
        "norm": (
            lambda v: isinstance(v, Real) and not isinstance(v, bool) and 1 <= float(v) < float("inf"),
            "a finite number of at least 1",
        ),
        "objective": (lambda v: isinstance(v, str) and v in OBJECTIVES, "'mean' or 'smallest'"),
    }

    def __init__(self, norm=1.0, objective="mean"):
        self.norm = norm
        self.objective = objective

    def _learn(self, gram, targets: TargetValues, tell):
        table = margin_table(gram, targets.values, targets.weight, targets.n_classes)
        if self.objective == "smallest":
            table = SmallestMargins(table.means, table.codes, table.weight)
        largest = largest_margin(table, float(self.norm))
        if self.norm > 1 and not largest.positive:
            raise ValueError(
                "The 'norm' parameter of KernelMarginWeights must be 1 where no mix of the kernels has a positive "
                f"margin. Got {self.norm!r} instead."
            )
        self.margin_ = largest.value
        return largest.weights
