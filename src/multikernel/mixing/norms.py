"""The sets of weights of a norm.

    norm 1         the simplex  {beta >= 0, sum beta = 1}
    norm r > 1     the ball     {beta >= 0, ||beta||_r <= 1}
    norm inf       the plain sum: beta = 1

The closed-form step is that of Kloft et al. 2008; for norm 1 the update of Ying et al. 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit
from scipy.linalg.lapack import dposv

from multikernel.mixing.base import BACK, NEGLIGIBLE, Mixing
from multikernel.mixing.cones import ConeRows
from multikernel.mixing.simplex_qp import simplex_qp


@njit(cache=True, nogil=True)
def _step_of_norm_one(u, move, per_c, r, out):
    """Set ``out`` to u + (move - c per_c), with c such that exp(out) has norm one.

    Steps are clipped to a factor of ten; but a small weight may grow to the part BACK of the largest one, which hardly
    disturbs the others: from next to nothing it would take dozens of steps.
    """
    low, high = -1e6, 1e6
    small = u.max() + np.log(BACK)
    for _ in range(65):
        # the norm falls with c
        c = 0.5 * (low + high)
        total = 0.0
        for k in range(len(u)):
            step = min(max(move[k] - c * per_c[k], -2.3), max(2.3, small - u[k]))
            total += np.exp(min(r * (u[k] + step), 1.0))
        if total > 1.0:
            low = c
        else:
            high = c
    for k in range(len(u)):
        out[k] = u[k] + min(max(move[k] - high * per_c[k], -2.3), max(2.3, small - u[k]))


@njit(cache=True, nogil=True, error_model="numpy")
def _of_norm_one(x, r):
    """Return x >= 0 divided by its norm r."""
    top, total = x.max(), 0.0
    for k in range(len(x)):
        total += (x[k] / top) ** r
    return x / (top * total ** (1.0 / r))


@dataclass(frozen=True)
class Simplex(Mixing):
    """Sum of the weights one: sparse mixes (norm 1)."""

    norm: float = 1.0
    is_simplex: ClassVar[bool] = True

    def start(self, p):
        return np.full(p, 1.0 / p)

    def support(self, q):
        k = int(np.argmax(q))
        return float(q[k]), np.eye(1, len(q), k)[0]

    def scale_to_boundary(self, beta):
        total = beta.sum()
        return beta / total if total > 0 else self.start(len(beta))

    def reactivate(self, beta, q, share):
        missed = np.where((beta == 0) & (q > beta @ q), q, 0.0)
        total = missed.sum()
        return (1.0 - share) * beta + share / total * missed if total > 0 else beta

    def closed_form(self, beta, q, relax=1.0):
        return self.scale_to_boundary(beta * np.maximum(q, 0.0) ** (0.5 * relax))

    def newton_step(self, beta: np.ndarray, q: np.ndarray, H: np.ndarray) -> np.ndarray:
        new = simplex_qp(H, -0.5 * q - H @ beta, beta)
        new[new < NEGLIGIBLE] = 0.0
        return new / new.sum()

    def linear_rows(self, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.ones((1, p)), np.ones(1), np.ones(1)

    def cone_rows(self, p: int) -> ConeRows:
        return ConeRows(
            np.vstack([np.ones((1, p)), -np.eye(p)]), np.eye(1, p + 1)[0], (("zero", 1), ("nonnegative", p))
        )

    def support_rows(self, p: int) -> ConeRows:
        """Return {t_k <= s for every k}, the epigraph of the support function, as rows over (t, s)."""
        return ConeRows(np.hstack([np.eye(p), -np.ones((p, 1))]), np.zeros(p), (("nonnegative", p),))

    def take_kernels(self, kernels: np.ndarray) -> Simplex:
        return self

    def reduced_gradient(self, beta: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return the reduced-gradient descent direction, its entries summing to zero.

        The largest weight is the pivot (Rakotomamonjy et al. 2008, equation (12)).
        """
        pivot = int(np.argmax(beta))
        direction = gradient[pivot] - gradient
        direction[(beta <= 0) & (direction < 0)] = 0.0
        direction[pivot] = 0.0
        direction[pivot] = -direction.sum()
        return direction


@dataclass(frozen=True)
class Ball(Mixing):
    """Norm r of the weights at most one, r > 1: mixes that keep every useful kernel."""

    norm: float = 2.0

    def start(self, p):
        return np.full(p, p ** (-1.0 / self.norm))

    def _normalised(self, x: np.ndarray) -> np.ndarray:
        return _of_norm_one(x, self.norm)

    def support(self, q):
        q = np.maximum(q, 0.0)
        top = q.max()
        if top == 0:
            return 0.0, self.start(len(q))
        beta = self._normalised((q / top) ** (1.0 / (self.norm - 1.0)))
        return float(beta @ q), beta

    def support_curvature(self, q: np.ndarray) -> np.ndarray:
        """Return the Hessian of the support function ||q||_{r*}, zero at q = 0."""
        sigma, beta = self.support(q)
        if sigma == 0:
            return np.zeros((len(q), len(q)))
        power = 1.0 / (self.norm - 1.0)
        # (r* - 1) / sigma (diag((q / sigma)^(r* - 2)) - beta beta'), r* - 1 = 1 / (r - 1)
        inner = np.diag(np.maximum(q / sigma, 1e-30) ** (power - 1.0))
        return power / sigma * (inner - np.outer(beta, beta))

    def scale_to_boundary(self, beta):
        return self._normalised(beta) if beta.any() else self.start(len(beta))

    def closed_form(self, beta, q, relax=1.0):
        s = beta * np.sqrt(np.maximum(q, 0.0))
        if not s.any():
            return self.start(len(q))
        exact, moved = self._normalised(s ** (2.0 / (self.norm + 1.0))), np.zeros_like(s)
        # below the normal numbers the ratio may overflow
        alive = beta >= np.finfo(np.float64).tiny
        moved[alive] = exact[alive] * (exact[alive] / beta[alive]) ** (relax - 1.0)
        return self._normalised(moved)

    def newton_step(self, beta: np.ndarray, q: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Newton on log q_k - (r - 1) log beta_k = const, in u = log beta.

        The linear system is ((r - 1) I + 2 diag(1/q) H diag(beta)) du = log q - (r - 1) u - c, with c found
        by dividing an interval so that the norm stays one; steps are clipped. With
        S = diag(sqrt(beta / q)) the matrix (r - 1) I + 2 S H S is positive definite, and its system has the solution
        S^-1 diag(beta) du. The equation above then gives du, that of small weights as well.
        """
        r = self.norm
        top = q.max()
        if top <= 0:
            return beta
        x = np.maximum(q / top, 1e-30)
        u, size = np.log(np.maximum(beta, 1e-200)), x * top
        rhs, S = np.array([np.log(x) - (r - 1.0) * u, np.ones(len(q))]), np.sqrt(beta / size)
        M = H * (2.0 * S)
        M *= S[:, None]
        M.flat[:: len(M) + 1] += r - 1.0
        _, solved, failed = dposv(M.T, (rhs * (S * size)).T, lower=1, overwrite_a=1)
        if failed:
            # quadratic forms that are zero but for rounding make M anything
            return self.closed_form(beta, q)
        move, per_c = (rhs - 2.0 / size * ((solved.T * S) @ H)) / (r - 1.0)
        new = np.empty(len(q))
        _step_of_norm_one(u, move, per_c, r, new)
        return self._normalised(np.exp(new))

    def cone_rows(self, p: int) -> ConeRows:
        """Return the set as rows over (beta, u): a second-order cone for norm 2, else p power cones.

        ||beta||_r <= 1 where beta_k <= u_k^(1/r) 1^(1 - 1/r) and sum u <= 1.
        """
        if self.norm == 2:
            ball = np.vstack([np.zeros((1, p)), -np.eye(p)])
            return ConeRows(
                np.vstack([-np.eye(p), ball]), np.eye(1, 2 * p + 1, p)[0], (("nonnegative", p), ("second_order", p + 1))
            )
        total = np.concatenate([np.zeros(p), np.ones(p)])
        rows = _power_rows(p, 2 * p)
        # in (u_k, 1, beta_k) the second entry is a constant
        b = np.concatenate([np.zeros(p), [1.0], np.tile([0.0, 1.0, 0.0], p)])
        return ConeRows(
            np.vstack([-np.eye(p, 2 * p), total, rows]),
            b,
            (("nonnegative", p), ("nonnegative", 1), *[("power", 1.0 / self.norm)] * p),
        )

    def support_rows(self, p: int) -> ConeRows:
        """Return {||t||_{r*} <= s} for t >= 0, the epigraph of the support function, as rows over (t, s, u).

        t_k <= u_k^(1/r*) s^(1 - 1/r*) and sum u <= s.
        """
        if self.norm == 2:
            return ConeRows(
                np.vstack([-np.eye(1, p + 1, p), -np.eye(p, p + 1)]), np.zeros(p + 1), (("second_order", p + 1),)
            )
        total = np.concatenate([np.zeros(p), [-1.0], np.ones(p)])
        rows = _power_rows(p, 2 * p + 1)
        rows[1::3, p] = -1.0
        return ConeRows(
            np.vstack([total, rows]), np.zeros(3 * p + 1), (("nonnegative", 1), *[("power", 1.0 - 1.0 / self.norm)] * p)
        )


def _power_rows(p: int, width: int) -> np.ndarray:
    """Rows -(u_k, ., x_k) for k = 1..p: x the first p columns, u the last p, the middle rows left empty."""
    rows = np.zeros((3 * p, width))
    k = np.arange(p)
    rows[3 * k, width - p + k] = -1.0
    rows[3 * k + 2, k] = -1.0
    return rows


@dataclass(frozen=True)
class PlainSum(Mixing):
    """All weights one (norm infinity): the largest element of the box 0 <= beta <= 1 is optimal."""

    norm: float = np.inf
    is_fixed: ClassVar[bool] = True

    def start(self, p):
        return np.ones(p)

    def support(self, q):
        return float(np.maximum(q, 0.0).sum()), np.ones(len(q))

    def scale_to_boundary(self, beta):
        return np.ones_like(beta)

    def closed_form(self, beta, q, relax=1.0):
        return np.ones_like(beta)

    def newton_step(self, beta: np.ndarray, q: np.ndarray, H: np.ndarray) -> np.ndarray:
        return np.ones_like(beta)

    def linear_rows(self, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.eye(p), np.zeros(p), np.ones(p)

    def cone_rows(self, p: int) -> ConeRows:
        return ConeRows(np.vstack([-np.eye(p), np.eye(p)]), np.repeat([0.0, 1.0], p), (("nonnegative", 2 * p),))

    def support_rows(self, p: int) -> ConeRows:
        """Return {sum t <= s}, the epigraph of the support function for t >= 0, as a row over (t, s)."""
        return ConeRows(np.append(np.ones(p), -1.0)[None], np.zeros(1), (("nonnegative", 1),))


def mixing_for(norm: float) -> Mixing:
    """Return the set of weights of a norm.

    Examples
    --------
    >>> from multikernel.mixing.norms import mixing_for
    >>> mixing_for(1), mixing_for(float("inf"))
    (Simplex(norm=1.0), PlainSum(norm=inf))
    """
    if norm == 1:
        return Simplex()
    return PlainSum() if np.isinf(norm) else Ball(float(norm))
