"""Kernel learning as binary classification of pairs of samples.

    min over mu >= 0    reg/2 |mu|^2 + sum_e c_e max(0, 1 - t_e mu'z_e),            sum_e c_e = 1
    max over alpha      sum_e alpha_e - 1/(2 reg) |[sum_e alpha_e t_e z_e]_+|^2,    0 <= alpha_e <= c_e

e runs over pairs of samples, z_e holds the p kernels' values and t_e = 1 within a class, -1 between classes. Coordinate
ascent on the dual, mu = [theta]_+ / reg with theta = sum_e alpha_e t_e z_e; the curvature along alpha_e is at most
|z_e|^2 / reg, so that every step ascends. The duality gap is the stopping rule.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from numba import njit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from multikernel.estimators.baselines.messages import Tell
from multikernel.estimators.baselines.pair_draws import AllPairs, DrawnPairs, draw_pairs
from multikernel.estimators.baselines.weights import KernelWeights, shares
from multikernel.kernels.base import is_integer, is_real
from multikernel.solution import INTERRUPTED, MAX_ITER
from multikernel.solve import Recorder
from multikernel.threads import RUN, interruptible

# pairs that "auto" draws for each sample: more are nearer to all pairs, and take longer
_PAIRS = 40


class BinaryMKLWeights(KernelWeights):
    """A nonnegative linear support vector machine on pairs of samples (BinaryMKL) [1]_.

        mu minimises reg/2 |mu|^2 + sum_e c_e max(0, 1 - t_e mu'z_e) over mu >= 0,       beta = mu / sum_k mu_k

    Each pair of samples is an instance z_ij = (K_1(x_i, x_j), ..., K_p(x_i, x_j)) with the label 1 if both are of one
    class and -1 if not. There is no intercept: kernels should be centred (``normalize=["center", "trace"]``), so that
    pairs of different classes can have negative values.

    Parameters
    ----------
    reg : float, default=1e-2
        lambda, the weight of the penalty.
    max_pairs : int, "auto" or None, default="auto"
        Number of pairs that are drawn; "auto" for 40 times the number of samples. None takes all pairs, streamed from
        the kernels in every sweep.
    balanced : bool, default=True
        Whether pairs within and between classes weigh the same: as many of each are drawn, or, of all pairs, each
        kind has half of the costs. Otherwise all pairs weigh the same.
    tol : float, default=1e-4
        Relative duality gap to reach.
    max_iter : int, default=2000
        Largest number of sweeps over the pairs.
    random_state : int, RandomState or None, default=0
        Seed of the draw.

    Attributes
    ----------
    weights_ : ndarray of shape (p,)
        Weights of sum one; equal ones, with a warning, where mu = 0.
    mu_ : ndarray of shape (p,)
        The solution itself.
    objective_, duality_gap_ : float
        Its value, and the relative distance from a lower bound.
    n_pairs_, n_iter_ : int
        Pairs used (i <= j), and sweeps over them.
    status_ : str
        "converged", "max_iter" or "interrupted".

    References
    ----------
    .. [1] A. Kumar, A. Niculescu-Mizil, K. Kavukcuoglu, H. Daume III, A binary classification framework for two-stage
    multiple kernel learning, ICML 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.estimators.baselines import BinaryMKLWeights
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> weights = BinaryMKLWeights().fit([np.outer(x, x) for x in X.T], X[:, 0] > 0)
    >>> weights.weights_.round(1), bool(weights.duality_gap_ <= 1e-4)
    (array([1., 0., 0.]), True)
    """

    _tasks = ("classification",)
    _rules = {  # noqa: RUF012
        "reg": (lambda v: is_real(v) and v > 0, "a positive number"),
        "max_pairs": (
            lambda v: v is None or (isinstance(v, str) and v == "auto") or (is_integer(v) and v >= 2),
            "'auto', None or an integer of at least 2",
        ),
        "balanced": (lambda v: isinstance(v, (bool, np.bool_)), "True or False"),
        "tol": (lambda v: is_real(v) and v > 0, "a positive number"),
        "max_iter": (lambda v: is_integer(v) and v >= 1, "a positive integer"),
    }

    def __init__(self, *, reg=1e-2, max_pairs="auto", balanced=True, tol=1e-4, max_iter=2000, random_state=0):
        self.reg = reg
        self.max_pairs = max_pairs
        self.balanced = balanced
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _learn(self, gram, targets, tell):
        pairs: AllPairs | DrawnPairs
        # kernels divided by their size and mu multiplied by it are the same problem, with reg divided by its square
        limits, size = np.finfo(float), float(gram.diag().max())
        power, own = max(math.frexp(size)[1], -1000), math.frexp(self.reg)[1]
        if own - 2 * power < limits.minexp // 5:
            raise ValueError(
                f"The 'reg' parameter of {type(self).__name__} must be larger for kernels whose largest k(x, x) is "
                f"{size:.0e}. Got {self.reg!r}: divide the kernels by their traces first."
            )
        # where reg is very large mu is in proportion to 1 / reg
        reg = math.ldexp(self.reg, min(-2 * power, limits.maxexp // 5 - own))
        gram = gram.rescaled(2.0**-power)
        if self.max_pairs is None:
            pairs = AllPairs(gram, targets, self.balanced)
        else:
            count = _PAIRS * gram.n_samples if isinstance(self.max_pairs, str) else self.max_pairs
            pairs = draw_pairs(gram, targets, count, self.balanced, check_random_state(self.random_state))
        self.n_pairs_ = len(pairs)
        theta = self._ascend(pairs, gram.n_kernels, reg, tell)
        theta = np.maximum(theta, 0.0)
        self.mu_ = np.ldexp(theta, power) / self.reg
        if not theta.any():
            warnings.warn(
                "BinaryMKLWeights found no kernel that is larger within the classes than between them: all weights are "
                "equal. Try kernels that are centred, normalize=['center', 'trace'].",
                UserWarning,
                stacklevel=3,
            )
        return shares(theta)

    def _ascend(self, pairs: AllPairs | DrawnPairs, p: int, reg: float, tell: Tell) -> np.ndarray:
        """Sweep over the pairs until the gap is closed; return theta at the best primal value.

        Ctrl-C passes through before the first certificate.
        """
        alpha, theta = np.zeros(len(pairs)), np.zeros(p)
        best, upper, lower, gap = theta.copy(), np.inf, -np.inf, np.inf
        shuffle = np.random.default_rng(0)
        recorder, interrupted = Recorder(tell), False
        try:
            while recorder.n_rows < self.max_iter and gap > self.tol:
                for Z, labels, costs, at in pairs:
                    order = _order(len(labels), shuffle)
                    with interruptible():
                        ascend_pairs(Z, labels, costs, order, reg, alpha[at], theta)
                mu = np.maximum(theta, 0.0) / reg
                quad = 0.5 * reg * float(mu @ mu)
                now = quad + sum(pair_loss(Z, labels, costs, mu) for Z, labels, costs, _ in pairs)
                lower = max(lower, float(alpha.sum()) - quad)
                if now < upper:
                    upper, best = now, theta.copy()
                gap = max(upper - lower, 0.0) / upper
                recorder.record({"gap": gap, "active": int(np.count_nonzero(best > 0))})
        except KeyboardInterrupt:
            interrupted = True
        if upper == np.inf:
            raise KeyboardInterrupt
        self.n_iter_, self.objective_, self.duality_gap_ = recorder.n_rows, upper, gap
        if interrupted:
            self.status_ = INTERRUPTED
        elif gap > self.tol:
            self.status_ = MAX_ITER
            warnings.warn(
                f"BinaryMKLWeights reached max_iter: after {self.n_iter_} sweeps the relative duality gap is "
                f"{gap:.2g}, above tol={self.tol:g}: raise max_iter, tol or reg.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return best

    def _reached(self) -> str:
        worth = f"The weights are the best found, certified to within a relative gap of {self.duality_gap_:.2g}."
        return f"{self.n_iter_} sweeps. {worth}"


def _order(m: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random order of runs of neighbours, which are read faster than scattered pairs; each run random too."""
    starts = RUN * rng.permutation(-(-m // RUN))
    order = (starts[:, None] + rng.permutation(RUN)).ravel()
    return order[order < m]


@njit(cache=True, nogil=True)
def pair_loss(Z, labels, costs, mu):
    """sum_e c_e max(0, 1 - t_e mu'z_e), in float64."""
    total = 0.0
    for e in range(Z.shape[0]):
        z, margin = Z[e], 0.0
        for k in range(Z.shape[1]):
            margin += mu[k] * z[k]
        total += costs[e] * max(0.0, 1.0 - labels[e] * margin)
    return total


@njit(cache=True, nogil=True)
def ascend_pairs(Z, labels, costs, order, reg, alpha, theta):
    """One sweep in the given order: each alpha_e moves to the maximum of its quadratic bound within [0, c_e].

    Sets: alpha, and theta = sum_e alpha_e t_e z_e.
    """
    p = Z.shape[1]
    for e in order:
        z = Z[e]
        size, margin = 0.0, 0.0
        for k in range(p):
            size += np.float64(z[k]) * z[k]
            margin += max(theta[k], 0.0) * z[k]
        slope = 1.0 - labels[e] * margin / reg
        old = alpha[e]
        if size > 0.0:
            new = min(max(old + slope * reg / size, 0.0), costs[e])
        else:
            new = costs[e]
        if new != old:
            alpha[e] = new
            change = (new - old) * labels[e]
            for k in range(p):
                theta[k] += change * z[k]
