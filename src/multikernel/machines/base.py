"""The single-kernel learner: the set A, the concave g, and the maximiser of g(a) - 1/2 a'Ka over A.

A machine works in signed coefficients a (for classification a_i = y_i alpha_i), so that for every machine the
outputs of kernel k are K_k a and its quadratic form is q_k = a' K_k a.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from multikernel.gram.base import Combined
from multikernel.losses import loss_name

# relative gaps are taken against the primal value or this fraction of the largest loss, whichever is more
_FLOOR = 1e-13
# relative rounding of a sum of many terms
ROUNDING = 1e-15
# relative distance from a bound below which a coefficient counts as being on it
ON_BOUND = 1e-9
# iterations of a loop that ends by itself: a limit that no run should reach
STEPS = 1000
# steps per sample without convergence before another method is tried
PATIENCE = 20
# steps between two returns to Python, where Ctrl-C is heard
CHUNK = 20_000
# penalty of sums that should be zero, in units of the mean diagonal: speed of the sums against that of the coefficients
PENALTY = 0.05


@dataclass(frozen=True)
class Curvature:
    """Second-order model of J(beta) = max_a g(a) - 1/2 sum_k beta_k q_k(a) at the inner solution.

    A machine that has one is told whether few digits of it will do (``rough``), and may make use of that.

    Attributes
    ----------
    H : ndarray of shape (p, p)
        Hessian of J by the weights, positive semidefinite.
    free : ndarray of int
        Coefficients (rows of a) strictly inside their bounds.
    response : ndarray of shape (len(free), p) or (len(free), c, p)
        da_free / dbeta = -response.
    correction : ndarray of shape (len(free),) or (len(free), c)
        Newton step of a_free itself at fixed weights.
    """

    H: np.ndarray
    free: np.ndarray
    response: np.ndarray
    correction: np.ndarray

    def predicted(self, a: np.ndarray, move: np.ndarray, corrected: bool) -> np.ndarray:
        """Return the coefficients after the weights moved by ``move``, to first order."""
        a = a.copy()
        a[self.free] -= self.response @ move
        if corrected:
            a[self.free] += self.correction
        return a


@dataclass(frozen=True)
class ConicMachine:
    """g(a) = linear'a - eps |a|_1 on {lower <= a <= upper, equality a = total}, for whole-problem solvers.

    Attributes
    ----------
    linear, lower, upper : ndarrays of shape (n columns,)
        Linear term and bounds; coefficients of several columns are (n, columns), row by row.
    equality : ndarray of shape (n columns,) or (m, n columns), optional
        Coefficients of one or m equations.
    total : float
        Their right-hand side.
    eps : float
        Weight of |a|_1.
    columns : int
        Number of columns, over which the quadratic forms are added up.
    centred : bool
        Whether every column sums to zero.
    lift : sparse array of shape (n columns, m), optional
        Where the programme has m other variables x, on which all of the above is then stated: a = lift x.
    sums, most : sparse array of shape (l, m) and ndarray of shape (l,), optional
        Further rows, sums x <= most.
    """

    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    equality: np.ndarray | None = None
    total: float = 0.0
    eps: float = 0.0
    columns: int = 1
    centred: bool = False
    lift: Any = None
    sums: Any = None
    most: np.ndarray | None = None


class Machine(ABC):
    """Base class of the machines.

    Attributes
    ----------
    n_samples : int
        Number n of training samples.
    scale : float
        Largest value of the loss term (sum of the costs); relative gaps have their floor at 1e-13 of it.
    loss : Loss or LargestMargin, optional
        The loss, where it is one.
    bursts : bool
        Whether a few inner steps cost much less than a whole solution, so that interleaving them with steps on
        the weights pays.
    has_frank_wolfe_step : bool
        Whether `frank_wolfe_step` does something.
    bursts_reach : float
        Relative gap that bursts should have reached before the last of them, which is left out otherwise.
    inner_accuracy : float
        How accurate a solution inside a second-order method should be, as a fraction of the outer gap: where it is
        cheap, more accuracy saves outer steps.
    """

    n_samples: int
    scale: float
    loss: Any = None
    bursts: bool = False
    has_frank_wolfe_step: bool = False
    bursts_reach: float = np.inf
    inner_accuracy: float = 0.3

    @property
    def description(self) -> str:
        """What the user knows the machine by, for error sentences."""
        return f"the machine {type(self).__name__}" if self.loss is None else f"the loss {loss_name(self.loss)!r}"

    @property
    def floor(self) -> float:
        """Smallest denominator of a relative gap: optima below it count as zero."""
        return _FLOOR * self.scale

    @abstractmethod
    def start(self) -> np.ndarray:
        """Return a feasible a to begin with."""

    @abstractmethod
    def dual(self, a: np.ndarray) -> float:
        """Return g(a)."""

    @abstractmethod
    def make_feasible(self, a: np.ndarray) -> np.ndarray:
        """Return the nearest convenient point that satisfies every constraint of A."""

    def on_bounds(self, a: np.ndarray) -> float:
        """Return which part of the coefficients is on a bound, where these have bounds."""
        return 0.0

    def frank_wolfe_step(self, combined: Combined, a: np.ndarray, f: np.ndarray, b: Any) -> np.ndarray:
        """Return a better start than ``a``, of outputs f and best intercept b, by moving all coefficients at once."""
        return a

    def deviation(self, gap: float, diag: np.ndarray) -> np.ndarray:
        """Bound sqrt(q_k(a - a*)) for every kernel of these diagonals (p, n), shape (p,).

        a* is the solution and lower(a) within ``gap`` of the optimum; without curvature of g nothing is known.
        """
        return np.full(len(diag), np.inf)

    def warm_start(
        self, other: Machine, coef: np.ndarray, outputs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a start from a solution of the same problem with other costs.

        Parameters
        ----------
        other : Machine
            The machine with the other costs.
        coef, outputs : ndarray
            Its solution, and the outputs of the kernels for it (K_k coef of every kernel, or of a single one).

        Returns
        -------
        a : ndarray
            A feasible start.
        b, F : ndarray
            Coefficients from which few of ``a`` differ, and their outputs: the given ones or a multiple of them.
        """
        a = self.make_feasible(self._rescale(other, coef))
        # coefficients that stay on their bounds are in proportion to the costs
        ratio = self.scale / other.scale
        differs = np.abs(a - ratio * coef) > ROUNDING * np.abs(a)
        if np.count_nonzero(differs) < np.count_nonzero(a != coef):
            return a, np.where(differs, ratio * coef, a), ratio * outputs
        return a, coef, outputs

    def _rescale(self, other: Machine, coef: np.ndarray) -> np.ndarray:
        """Return ``coef``, a solution of ``other``, with the changes that new costs are known to bring."""
        return coef

    @abstractmethod
    def solve(
        self, combined: Combined, a: np.ndarray, f: np.ndarray, accuracy: float, max_steps: int | None = None
    ) -> np.ndarray:
        """Maximise g(a) - 1/2 a' K_beta a from ``a`` with outputs f = K_beta a, to ``accuracy`` in the objective."""

    @abstractmethod
    def primal(self, f: np.ndarray, quad: float, accuracy: float = 0.0) -> tuple[float, Any]:
        """Return 1/2 quad + loss(f + b), minimised over the intercept b, and b.

        A machine that finds b by iterations stops at ``accuracy`` in the value, or where rounding ends the progress.
        """
