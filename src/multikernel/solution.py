"""What every solver returns, whatever its options."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

CONVERGED, MAX_ITER, STALLED, INTERRUPTED = "converged", "max_iter", "stalled", "interrupted"
# the weights no longer change by more than the solver was told to care for
SETTLED = "settled"


@dataclass(frozen=True)
class Solution:
    """The best certified model found.

    Attributes
    ----------
    weights : ndarray of shape (p,)
        Kernel weights beta.
    dual_coef : ndarray
        Signed coefficients a of the training samples.
    intercept : float
        Intercept of the decision function.
    upper, lower : float
        Primal and dual value of this model.
    gap : float
        Their distance, with all that rounding may have changed, relative to the primal value.
    outputs : ndarray of shape (p, n)
        K_k a for every kernel.
    curvature : ndarray of shape (p,)
        Smallest a' K_k a / a'a met on the way; clearly negative for a kernel that is not positive semidefinite.
    n_iter : int
        Outer iterations.
    status : str
        "converged", "max_iter", "stalled" (no further progress in float64), "interrupted" or, where the solver was
        told to stop on the change of the weights, "settled".
    solver : str
        Name of the solver that ran.
    history : dict of lists
        One entry per outer iteration: time, upper, lower, gap, active, the weights of the iteration and the primal
        value there (upper is the least so far), and what the solver adds.
    wander : float or ndarray of shape (p,)
        Rounding of the outputs, as `multikernel.problem.Point` counts it.
    """

    weights: np.ndarray
    dual_coef: np.ndarray
    intercept: float
    upper: float
    lower: float
    gap: float
    outputs: np.ndarray
    curvature: np.ndarray
    n_iter: int
    status: str
    solver: str
    history: dict[str, list] = field(default_factory=dict)
    wander: float | np.ndarray = np.inf
