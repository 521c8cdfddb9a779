"""The single-kernel learner: the set A, the concave g, and the maximiser of g(a) - 1/2 a'Ka over A.

A machine works in signed coefficients a (for classification a_i = y_i alpha_i), so that for every machine the
outputs of kernel k are K_k a and its quadratic form is q_k = a' K_k a.

`Machine` is what every machine has. What some machines can do beyond that are abilities, one protocol each:

    ability         protocol          what asks for it
    curvature       HasCurvature      newton
    partial_solve   HasPartialSolve   newton, where it is there
    conic           HasConic          qcqp
    compact         HasCompact        qcqp-compact, silp-compact
    epochs          HasEpochs         interleaved

A solver names them as "machine.curvature" in its ``requires`` or ``uses``; `multikernel.solvers.missing` finds those
that are not there. The protocols serve type checkers: ``isinstance`` with them is slow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from multikernel.gram.base import Outputs
from multikernel.gram.combined import Combined
from multikernel.losses import loss_name

# what counts as zero, as a fraction of the largest loss or as the probability of a class: digits against conditioning
FLOOR = 1e-13
# relative rounding of a sum of many terms
ROUNDING = 1e-15
# relative distance from a bound below which a coefficient counts as being on it
ON_BOUND = 1e-9
# iterations of a loop that ends by itself: a limit that no run should reach
STEPS = 1000
# steps per sample without convergence before another method is tried
PATIENCE = 20
# most factorisations of one inner solution: a limit that only rounding makes a run reach
MOST_FACTORISATIONS = 60
# fraction of the way to the boundary that a step of an interior-point method goes: nearer to one, and the next step may
# be blocked
TO_BOUNDARY = 0.995
# penalty of sums that should be zero, in units of the mean diagonal: speed of the sums against that of the coefficients
PENALTY = 0.05


def inner_gap(machine: Machine, a: np.ndarray, f: np.ndarray, accuracy: float = 0.0) -> tuple[float, Any]:
    """Return primal minus dual value of the single-kernel problem at a with outputs f, and the best intercept.

    The intercept is found to ``accuracy`` in the primal value.
    """
    quad = float(np.vdot(a, f))
    upper, b = machine.primal(f, quad, accuracy, a)
    return upper - (machine.dual(a) - 0.5 * quad), b


@dataclass(frozen=True)
class Curvature:
    """Second-order model of J(beta) = max_a g(a) - 1/2 sum_k beta_k q_k(a) at the inner solution.

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
    """Base class of the machines. Immutable: what a solve returns depends on its arguments alone.

    Attributes
    ----------
    n_samples : int
        Number n of training samples.
    scale : float
        Largest value of the loss term (sum of the costs).
    floor : float
        Smallest denominator of a relative gap: optima below it count as zero.
    total : float
        Sum of the coefficients where it is fixed to a number other than zero (one class). Kernels multiplied by s leave
        such coefficients as they are; the coefficients and costs of all other machines are then divided by s.
    reach : float
        Largest number that is added to an output or multiplied with a coefficient: targets, and slopes of a conjugate.
    """

    n_samples: int
    scale: float
    floor: float
    total: float = 0.0
    reach: float = 1.0

    @property
    def description(self) -> str:
        """What the user knows the machine by, for error sentences."""
        loss = getattr(self, "loss", None)
        return f"the machine {type(self).__name__}" if loss is None else f"the loss {loss_name(loss)!r}"

    @abstractmethod
    def start(self) -> np.ndarray:
        """Return a feasible a to begin with."""

    @abstractmethod
    def make_feasible(self, a: np.ndarray) -> np.ndarray:
        """Return the nearest convenient point that satisfies every constraint of A."""

    @abstractmethod
    def dual(self, a: np.ndarray) -> float:
        """Return g(a)."""

    @abstractmethod
    def solve(self, combined: Combined, a: np.ndarray, f: np.ndarray, accuracy: float) -> np.ndarray:
        """Maximise g(a) - 1/2 a' K_beta a from ``a`` with outputs f = K_beta a, to ``accuracy`` in the objective."""

    @abstractmethod
    def primal(
        self, f: np.ndarray, quad: float, accuracy: float = 0.0, a: np.ndarray | None = None
    ) -> tuple[float, Any]:
        """Return 1/2 quad + loss(f + b), minimised over the intercept b, and b.

        A machine that finds b by iterations stops at ``accuracy`` in the value, or where rounding ends the progress.
        Given the feasible coefficients ``a`` of outputs f, it may return the intercepts that follow from a instead,
        where the primal value there is within ``accuracy`` of the dual value of a.
        """

    @abstractmethod
    def risk(self, out: np.ndarray, b: Any, error: np.ndarray) -> float:
        """Return the largest sum of the losses at outputs that are within ``error`` of ``out``, b among them.

        Losses are convex: each is largest where its outputs are as far off as they can be.
        """

    def warm_start(
        self, other: Any, coef: np.ndarray, outputs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a start from a solution of the same problem with other costs.

        Parameters
        ----------
        other : Machine
            The machine with the other costs, of the same class.
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

    def _rescale(self, other: Any, coef: np.ndarray) -> np.ndarray:
        """Return ``coef``, a solution of ``other``, with the changes that new costs are known to bring."""
        return coef


class HasCurvature(Protocol):
    """A machine that differentiates its solution by the weights."""

    def curvature(
        self, combined: Combined, a: np.ndarray, f: np.ndarray, outputs: Outputs, rough: bool = False
    ) -> Curvature:
        """Return the second-order model of J at a solution ``a`` of outputs f; ``rough`` allows single precision."""


class HasPartialSolve(Protocol):
    """A machine whose problem can be solved in part, at a small part of the cost."""

    def partial_solve(self, combined: Combined, a: np.ndarray, f: np.ndarray, accuracy: float, size: int) -> np.ndarray:
        """Return better coefficients than ``a``: `solve`, limited to about ``size`` coefficients and steps."""


class HasConic(Protocol):
    """A machine that is a linear objective on a polyhedron."""

    def conic(self) -> ConicMachine:
        """Return the machine as data for a conic solver."""


class HasCompact(Protocol):
    """A machine with a smaller form in other variables."""

    def compact(self) -> ConicMachine:
        """Return that form as data for a conic solver."""


class HasEpochs(Protocol):
    """A machine on explicit features, which goes through its samples one by one."""

    def epochs(self, combined: Any, outputs: Any) -> Any:
        """Begin epochs between which the weights of ``combined`` may change."""
