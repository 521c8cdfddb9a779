"""Where the weights live: the set B of a problem  min_{beta in B} max_{a in A} g(a) - 1/2 beta'q(a).

Each set owns its support function sigma(q) = max_{beta in B} beta'q, the closed-form step of the alternating method,
and, as abilities that solvers ask for by name, the second-order step on J and descriptions as linear rows or as cones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np


class Mixing(ABC):
    """Base class of the sets of weights."""

    norm: float

    @property
    def description(self) -> str:
        """What the user knows the set by, for error sentences."""
        return f"norm={self.norm:g}"

    @abstractmethod
    def start(self, p: int) -> np.ndarray:
        """Return the uniform point of B."""

    def is_singleton(self, p: int) -> bool:
        """Whether the optimal weights are known beforehand, whatever the kernels."""
        return p == 1

    @abstractmethod
    def support(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        """Return max over B of beta'q for q >= 0, and a maximiser."""

    @abstractmethod
    def project(self, x: np.ndarray) -> np.ndarray:
        """Return the nearest point of B."""

    def separate(self, beta: np.ndarray) -> bool:
        """Add to the rows that describe B one that ``beta`` violates; return whether there was one.

        Sets described by all of their rows from the beginning have none to add.
        """
        return False

    def make_feasible(self, beta: np.ndarray) -> np.ndarray:
        """Return a point of B near the weights of another problem with the same norm."""
        return beta

    def reactivate(self, beta: np.ndarray, q: np.ndarray, share: float) -> np.ndarray:
        """Return weights in which kernels that matter, but have none, get a share together; beta where there are none.

        They matter where their forms exceed beta'q. Sets that leave no weight at zero have nothing to let in.
        """
        return beta

    @abstractmethod
    def scale_to_boundary(self, beta: np.ndarray) -> np.ndarray:
        """Return the multiple of beta >= 0 on the boundary of B; J falls in every weight and is least there."""

    @abstractmethod
    def closed_form(self, beta: np.ndarray, q: np.ndarray, relax: float = 1.0) -> np.ndarray:
        """Minimise 1/2 sum_k s_k^2 / beta_k over B, s_k = beta_k sqrt(q_k).

        ``relax`` > 1 extrapolates in log beta.
        """

    @abstractmethod
    def newton_step(self, beta: np.ndarray, q: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Second-order step on J, gradient -q/2 and Hessian H."""
