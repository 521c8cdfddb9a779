"""Where the weights live: the set B of a problem  min_{beta in B} max_{a in A} g(a) - 1/2 beta'q(a).

Each set owns its support function sigma(q) = max_{beta in B} beta'q and the closed-form step of the alternating method.
A set is immutable: its methods give the same answer whatever was called before. What only some sets can do is an
ability, one of the protocols ``Has...`` below. A solver names the abilities it cannot do without in ``requires``, as
"mixing.linear_rows", and tests for others by ``isinstance(mixing, HasLinearRows)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from multikernel.mixing.cones import ACCURACY, ConeRows

# weights below this fraction of the largest are set to zero: rounding of second-order steps and interior-point methods
NEGLIGIBLE = 1e-9
# weight that a kernel gets back at once where it was dropped in error: more disturbs the others, less takes more steps
BACK = 0.02
# relative distance of its two bounds at which a programme over weights or cuts counts as solved
SOLVED = 1e-9

# a linear row v . beta >= least, as (v, least)
Row = tuple[np.ndarray, float]


class Mixing(ABC):
    """Base class of the sets of weights.

    Attributes
    ----------
    norm : float
        Norm of the weights.
    is_simplex : bool
        Whether B is the whole simplex, over which a cut model is a matrix game, minimised in less time than any
        other step takes.
    is_fixed : bool
        Whether the optimal weights are known beforehand, whatever the kernels.
    """

    norm: float
    is_simplex: ClassVar[bool] = False
    is_fixed: ClassVar[bool] = False

    @property
    def description(self) -> str:
        """What the user knows the set by, for error sentences."""
        return f"norm={self.norm:g}"

    @abstractmethod
    def start(self, p: int) -> np.ndarray:
        """Return the uniform point of B, or a point of B near it."""

    @abstractmethod
    def support(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        """Return max over B of beta'q for q >= 0, and a maximiser."""

    def make_feasible(self, beta: np.ndarray) -> np.ndarray:
        """Return a point of B near the weights of another problem with the same norm."""
        return beta

    def violated_row(self, beta: np.ndarray) -> Row | None:
        """Return a row that holds on B and that ``beta`` violates, for the programme that asks to keep; None in B.

        Sets whose ``linear_rows`` and ``cone_rows`` are complete have none to add.
        """
        return None

    @abstractmethod
    def scale_to_boundary(self, beta: np.ndarray) -> np.ndarray:
        """Return the multiple of beta >= 0 on the boundary of B; J falls in every weight and is least there."""

    @abstractmethod
    def closed_form(self, beta: np.ndarray, q: np.ndarray, relax: float = 1.0) -> np.ndarray:
        """Minimise 1/2 sum_k s_k^2 / beta_k over B, s_k = beta_k sqrt(q_k).

        ``relax`` > 1 extrapolates in log beta.
        """

    def reactivate(self, beta: np.ndarray, q: np.ndarray, share: float) -> np.ndarray:
        """Give kernels of weight zero with q_k > beta'q a share of the weight together; return beta if there are none.

        Sets whose steps leave no weight at zero have nothing to reactivate.
        """
        return beta


@runtime_checkable
class HasNewtonStep(Protocol):
    """Second-order steps on the weights."""

    def newton_step(self, beta: np.ndarray, q: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return the minimiser of a second-order model of J, whose gradient is -q/2 and whose Hessian is H."""


@runtime_checkable
class HasTakeKernels(Protocol):
    """Kernels of weight zero can be left out."""

    def take_kernels(self, kernels: np.ndarray) -> Mixing:
        """Return the set of the weights of some kernels, the weights of all others being zero."""


@runtime_checkable
class HasLinearRows(Protocol):
    """A polyhedron, or a set inside one that ``violated_row`` describes further."""

    def linear_rows(self, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (A, lower, upper), the set being lower <= A beta <= upper, beta >= 0."""


@runtime_checkable
class HasConeRows(Protocol):
    """A set that a conic solver takes, or one inside such a set that ``violated_row`` describes further."""

    def cone_rows(self, p: int) -> ConeRows:
        """Return the set as rows over beta and auxiliary variables."""


@runtime_checkable
class HasSupportRows(Protocol):
    """A support function that a conic solver takes."""

    def support_rows(self, p: int) -> ConeRows:
        """Return {sigma(t) <= s} for t >= 0, the epigraph of the support function, as rows over (t, s, ...)."""


@runtime_checkable
class HasReducedGradient(Protocol):
    """Descent directions within the set."""

    def reduced_gradient(self, beta: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return a descent direction whose entries sum to zero."""


@runtime_checkable
class HasSupportCurvature(Protocol):
    """A support function with second derivatives."""

    def support_curvature(self, q: np.ndarray) -> np.ndarray:
        """Return the Hessian of the support function at q, shape (p, p)."""


@dataclass
class KeptRows:
    """Rows that describe a set beyond its own ``linear_rows`` or ``cone_rows``, kept by the programme that met them."""

    mixing: Mixing
    rows: list[Row] = field(default_factory=list)

    def add_violated(self, beta: np.ndarray) -> bool:
        """Keep a row that ``beta`` violates; return whether there was a new one.

        A solution that misses a kept row by as much as the new one misses it by rounding.
        """
        row = self.mixing.violated_row(np.maximum(beta, 0.0))
        if row is None:
            return False
        worst = min((v @ beta - least for v, least in self.rows), default=np.inf)
        if row[0] @ beta - row[1] >= worst - ACCURACY:
            return False
        self.rows.append(row)
        return True

    def as_cones(self, p: int) -> ConeRows:
        """Return the kept rows as rows over beta."""
        m = len(self.rows)
        A = -np.array([v for v, _ in self.rows]).reshape(m, p)
        return ConeRows(A, -np.array([least for _, least in self.rows]), (("nonnegative", m),))
