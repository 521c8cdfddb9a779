"""Support vector classification on one kernel.

    max_a  y'a - 1/2 a'Ka,     0 <= y_i a_i <= C_i,     sum a = 0  (with an intercept)

The loss is the hinge; `SVC.fit` trains on one kernel matrix alone, without the outer loop.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multikernel.gram.dense import DenseGram
from multikernel.losses import Hinge
from multikernel.machines.base import FLOOR
from multikernel.machines.box import RELAX, SMO, BoxMachine


@dataclass(frozen=True)
class SVCFit:
    """What a machine learned on one kernel: coefficients y_i alpha_i, intercept, outputs K a, and the machine."""

    dual_coef: np.ndarray
    intercept: float
    outputs: np.ndarray
    machine: SVC


class SVC(BoxMachine):
    """Hinge loss with per-sample costs.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels -1 and 1.
    C : float or ndarray of shape (n,)
        Cost of each sample (C times its weight), positive.
    fit_intercept : bool
        Whether f has an intercept; without it the constraint sum a = 0 falls away.
    """

    def __init__(self, y: np.ndarray, C: float | np.ndarray = 1.0, fit_intercept: bool = True) -> None:
        self.y = np.asarray(y, float)
        self.C = np.broadcast_to(np.asarray(C, float), self.y.shape)
        self.balanced = fit_intercept
        self.loss = Hinge(self.C)
        self.n_samples = len(self.y)
        self.scale = float(self.C.sum())
        self.floor = FLOOR * self.scale
        self.p = self.y
        self.lo = np.where(self.y > 0, 0.0, -self.C)
        self.hi = np.where(self.y > 0, self.C, 0.0)

    def primal(self, f, quad, accuracy=0.0, a=None):
        b = self.loss.best_intercept(f, self.y) if self.balanced else 0.0
        return 0.5 * quad + float(self.loss.value(f + b, self.y).sum()), b

    def risk(self, out, b, error):
        return float(self.loss.value(out - self.y * error, self.y).sum())

    def fit(self, K: np.ndarray, start: SVCFit | None = None, tol: float = 1e-3) -> SVCFit:
        """Train on one kernel matrix alone, to the violation ``tol`` of the optimality conditions.

        Parameters
        ----------
        K : ndarray of shape (n, n)
            Kernel matrix, float32 or float64.
        start : SVCFit, optional
            A fit on the same samples and kernel with neighbouring costs, to begin with.
        tol : float
            Largest violation, as libsvm's tolerance.

        Returns
        -------
        SVCFit

        Examples
        --------
        >>> import numpy as np
        >>> from multikernel.machines.svc import SVC
        >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
        >>> fit = SVC(np.sign(x)).fit(np.outer(x, x), tol=1e-6)
        >>> fit.dual_coef.round(3), round(fit.intercept, 3)
        (array([ 0. , -0.5,  0.5,  0. ]), 0.0)
        """
        combined = DenseGram(K[None]).combined(np.ones(1))
        if start is None:
            a, f = self.start(), np.zeros(self.n_samples)
        else:
            a, b, f = self.warm_start(start.machine, start.dual_coef, start.outputs)
            f = f + combined.apply(a - b)
        # the accuracy for which slopes are found to tol
        smo_run = SMO(self, a, f, tol * self.scale, relax=RELAX)
        smo_run.run(combined)
        f = self.p - smo_run.G
        return SVCFit(self.make_feasible(smo_run.a), self.primal(f, 0.0)[1], f, self)
