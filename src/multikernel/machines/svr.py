"""Support vector regression on one kernel.

    max_a  y'a - eps |a|_1 - 1/2 a'Ka,     |a_i| <= C_i,     sum a = 0  (with an intercept)

The signed a is alpha - alpha* of the usual problem in doubled variables, one of each pair being zero.
"""

from __future__ import annotations

import numpy as np

from multikernel.losses import EpsilonInsensitive
from multikernel.machines.base import FLOOR
from multikernel.machines.box import BoxMachine


class SVR(BoxMachine):
    """Epsilon-insensitive loss with per-sample costs.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Targets.
    C : float or ndarray of shape (n,)
        Cost of each sample (C times its weight), positive.
    epsilon : float
        Half the width of the tube in which errors cost nothing, not negative.
    fit_intercept : bool
        Whether f has an intercept; without it the constraint sum a = 0 falls away.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.mixing.norms import Simplex
    >>> from multikernel.problem import Problem
    >>> from multikernel.solve import solve
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> K = np.stack([np.outer(x, x), np.eye(4)])
    >>> solution = solve(Problem(DenseGram(K), SVR(0.5 * x + 7.0, 10.0, 0.1), Simplex()), tol=1e-6)
    >>> solution.weights.round(3), round(solution.intercept, 3), round(solution.upper, 5)
    (array([1., 0.]), 7.0, 0.10125)
    """

    def __init__(
        self, y: np.ndarray, C: float | np.ndarray = 1.0, epsilon: float = 0.1, fit_intercept: bool = True
    ) -> None:
        self.y = np.asarray(y, float)
        self.C = np.broadcast_to(np.asarray(C, float), self.y.shape)
        self.balanced = fit_intercept
        self.loss = EpsilonInsensitive(self.C, float(epsilon))
        self.n_samples = len(self.y)
        # with sum a = 0 a shift of y changes nothing but the intercept; y near zero loses fewest digits in y'a
        self.shift = self.loss.best_intercept(np.zeros(self.n_samples), self.y) if fit_intercept else 0.0
        self.p = self.y - self.shift
        self.lo, self.hi = -self.C, self.C
        self.eps = float(epsilon)
        # loss of the constant zero; where all targets are equal any size will do
        with np.errstate(over="ignore"):
            whole = float(self.C @ (np.abs(self.p) + self.eps)) or float(self.C.sum())
        self.scale = min(whole, float(np.finfo(float).max))
        self.floor = FLOOR * self.scale
        self.reach = float(np.abs(self.y).max()) + self.eps

    def primal(self, f, quad, accuracy=0.0, a=None):
        b = self.loss.best_intercept(f, self.p) if self.balanced else 0.0
        return 0.5 * quad + float(self.loss.value(f + b, self.p).sum()), b + self.shift

    def risk(self, out, b, error):
        # an error in the direction that the output has from its target
        return float(self.loss.value(out + np.where(out < self.y, -error, error), self.y).sum())
