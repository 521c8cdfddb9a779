"""One class: the half-space that holds all but a fraction nu of the samples, farthest from the origin.

    max_a  -1/2 a'Ka,     0 <= a_i <= w_i / (nu sum w),     sum a = 1

w the weights of the samples, all one without them. The primal is 1/2 |f|^2 - rho + sum_i hi_i max(0, rho - f_i), and
the optimum is minus half the squared distance of a hull of the samples from the origin: at most zero, and zero where
they surround it. Schoelkopf et al. 2001, divided by nu n; scikit-learn's alpha is nu n times ours.

For given outputs the best borders rho are an interval, the nu-quantiles of the outputs. The largest of them is taken:
the samples below it have a share of at most nu whatever the outputs are, also far from the optimum. At the optimum all
samples below the border are on their bound; where others are, the border is lowered to them, by no more than the gap.
"""

from __future__ import annotations

import numpy as np

from multikernel.machines.base import FLOOR, ON_BOUND
from multikernel.machines.box import BoxMachine

# optima below this fraction of 1 / n, in units of the kernels, count as zero: those of the identity are -1 / (2n)
_ZERO = 1e-4


class OneClass(BoxMachine):
    """Novelty detection with per-sample weights; the intercept is -rho.

    Parameters
    ----------
    weight : ndarray of shape (n,)
        Weight of each sample, positive; ones without weights.
    nu : float
        Upper bound on the fraction of samples outside, in (0, 1].
    size : float
        Mean k(x, x) of the kernels. The objective is a squared length in feature space and has no cost C to compare
        it with; a kernel that keeps n samples apart best, the identity, has the optimum -1 / (2n). So relative gaps
        have their floor at 1e-4 / n of this size: samples that surround the origin, with optimum zero, are solved to
        an absolute gap.
    rounding : float
        Relative rounding of outputs that a prediction computes again: rho is smaller by as much, so that training
        samples on the border are inside when they are predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.mixing.norms import Simplex
    >>> from multikernel.problem import Problem
    >>> from multikernel.solve import solve
    >>> x = np.array([1.0, 2.0, 3.0, 4.0])
    >>> K = np.outer(x, x)[None]
    >>> solution = solve(Problem(DenseGram(K), OneClass(np.ones(4), nu=0.5), Simplex()), tol=1e-6)
    >>> solution.dual_coef.round(3), round(solution.upper, 3)
    (array([0.5, 0.5, 0. , 0. ]), -1.125)
    """

    total = 1.0
    description = "a problem of one class"

    def __init__(self, weight: np.ndarray, nu: float = 0.5, size: float = 1.0, rounding: float = 0.0) -> None:
        weight = np.asarray(weight, float)
        self.n_samples = len(weight)
        self.p = np.zeros(self.n_samples)
        self.lo = np.zeros(self.n_samples)
        # not above two, so that a sample with all coefficients, which sum to one, is not on its bound
        self.hi = weight / np.maximum(nu * weight.sum(), 0.5 * weight)
        self.scale = float(size)
        self.floor = _ZERO * self.scale / self.n_samples
        self.reach = 0.0
        self.rounding = rounding

    def start(self):
        # the first samples at their bound, as many as the sum asks for: few rows, and few coefficients to move
        room = self.total - (np.cumsum(self.hi) - self.hi)
        return self.make_feasible(np.clip(room, 0.0, self.hi))

    def primal(self, f, quad, accuracy=0.0, a=None):
        order = np.argsort(f)
        # the first sample at which the sum is one, but for its rounding: those before it have a share below nu
        share, eps = np.cumsum(self.hi[order]), self.n_samples * float(np.finfo(float).eps)
        first = min(int(share.searchsorted(1.0 - eps)), self.n_samples - 1)
        low = rho = f[order[first]]
        if a is not None:
            # lowered so that samples off their bound are inside, by at most the gap or its rounding
            high = f[order[first + 1]] if first + 1 < self.n_samples and share[first] <= 1.0 + eps else low
            gap = quad - low + float(self.hi @ np.maximum(0.0, low - f))
            least = low - max(gap, FLOOR * float(np.abs(f).max()))
            rho = max(f[a < (1.0 - ON_BOUND) * self.hi].min(initial=high), least)
        # outputs that cancel have the rounding of their terms
        rho = float(rho - self.rounding * np.abs(f).max() - min(self.rounding, eps) * self.scale)
        return 0.5 * quad - rho + float(self.hi @ np.maximum(0.0, rho - f)), -rho

    def risk(self, out, b, error):
        outside = float(self.hi @ np.maximum(0.0, error - out))
        # the rounding of the sum, before b cancels most of it
        return outside * (1.0 + self.n_samples * float(np.finfo(float).eps)) + b
