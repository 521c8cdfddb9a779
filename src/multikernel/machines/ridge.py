"""Least squares on one kernel, one output or many that share it.

    max_A  <A, Y> - sum_i |A_i|^2 / (4 C_i) - 1/2 tr A'KA,       A of the shape of Y, (n,) or (n, c),
                                                                 1'A = 0 (with an intercept for each column)

whose solution without intercepts is A = (K + diag(1/(2C)))^-1 Y; the primal is 1/2 tr A'KA + sum_i C_i |Y_i - F_i|^2,
F = KA + b. Reference: Ying et al. 2009, (2) and (3), with mu = C; they have no intercepts.
"""

from __future__ import annotations

import numpy as np

from multikernel.gram.base import Outputs
from multikernel.gram.combined import Combined
from multikernel.losses import Squared
from multikernel.machines.base import FLOOR, STEPS, Curvature, Machine
from multikernel.machines.weighted_inverse import WeightedInverse


class Ridge(Machine):
    """Squared loss.

    Parameters
    ----------
    Y : ndarray of shape (n,) or (n, c)
        Targets; the columns share the kernel weights.
    C : float or ndarray of shape (n,)
        Cost of each sample (C times its weight), positive.
    fit_intercept : bool
        Whether each column has an intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.machines.ridge import Ridge
    >>> from multikernel.mixing.norms import Simplex
    >>> from multikernel.problem import Problem
    >>> from multikernel.solve import solve
    >>> x = np.array([-1.0, 0.0, 1.0])
    >>> K = np.stack([np.outer(x, x), np.eye(3)])
    >>> solution = solve(Problem(DenseGram(K), Ridge(3 * x + 7, fit_intercept=True), Simplex()), tol=1e-9)
    >>> solution.weights.round(6), round(solution.upper, 6), round(solution.intercept, 6)
    (array([1., 0.]), 3.6, 7.0)
    """

    def __init__(self, Y: np.ndarray, C: float | np.ndarray = 1.0, fit_intercept: bool = False) -> None:
        # an array on a device stays there
        Y = Y if hasattr(Y, "tensor") else np.asarray(Y, float)
        self.n_samples = len(Y)
        self.balanced = fit_intercept
        self.w = 2.0 * np.broadcast_to(np.asarray(C, float), (self.n_samples,))
        # the costs, in a shape that multiplies arrays of the shape of Y
        self.C = (0.5 * self.w).reshape(-1, *[1] * (Y.ndim - 1))
        # with 1'A = 0 a shift of Y changes nothing but the intercepts; Y near zero loses fewest digits in <A, Y>
        self.shift = self._mean(Y)
        self.Y = Y - self.shift
        self.loss = Squared(self.C)
        with np.errstate(over="ignore"):
            # infinite for targets that are too large, which the caller refuses
            size = float(np.sum(self.C * self.Y**2))
        self.scale = size if size > 0 else float(self.C.sum())
        self.floor = FLOOR * self.scale
        self.targets, self.reach = Y, float(np.abs(Y).max())

    def start(self):
        return np.zeros_like(self.Y)

    def dual(self, a):
        return -float(np.sum(self.loss.conjugate(a, self.Y)))

    def make_feasible(self, a):
        if not self.balanced:
            return a
        columns = (a - self.C * (a.sum(axis=0, keepdims=True) / self.C.sum())).reshape(self.n_samples, -1)
        # multiples of the last digit of the largest entry, which add up to zero as whole numbers
        top = np.abs(columns).max(axis=0)
        if not np.isfinite(top).all():
            return columns.reshape(a.shape)
        unit = np.ldexp(1.0, np.maximum(np.frexp(top)[1] - 53, -1074))
        whole = np.rint(columns / unit)
        rest = whole.astype(np.int64).sum(axis=0)
        at = np.where(rest > 0, whole.argmax(axis=0), whole.argmin(axis=0)), np.arange(len(rest))
        whole[at] = whole[at] - rest
        return (whole * unit).reshape(a.shape)

    def primal(self, f, quad, accuracy=0.0, a=None):
        b = self._mean(self.Y - f)
        value = 0.5 * quad + float(np.sum(self.loss.value(f + b, self.Y)))
        b = b + self.shift
        return value, float(b) if np.ndim(b) == 0 else b

    def risk(self, out, b, error):
        return float(np.sum(self.loss.value(out + np.where(out < self.targets, -error, error), self.targets)))

    def _mean(self, X: np.ndarray) -> np.ndarray:
        """Return the best intercepts for the residuals X: their means weighted by C, zero without intercepts."""
        return np.sum(self.C * X, axis=0) / self.C.sum() if self.balanced else np.zeros(X.shape[1:])

    def _residual(self, a: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Y - f - b - a / (2C), zero at the solution; the inner gap is sum_i C_i |residual_i|^2."""
        R = self.Y - f - 0.5 * a / self.C
        return R - self._mean(R)

    def _inverse(self, combined: Combined) -> WeightedInverse:
        if "inverse" not in combined.cache:
            combined.cache["inverse"] = WeightedInverse(combined, self.w, self.balanced, refined=True)
        return combined.cache["inverse"]

    def solve(self, combined, a, f, accuracy):
        """One solve with the factorisation, refined by preconditioned conjugate gradients, column by column."""
        R = self._residual(a, f)
        if not R.any():
            return a
        inverse = self._inverse(combined)
        D = inverse.apply(R)
        descent = np.sum(R * D, axis=0)
        best, gap = a, float(np.sum(self.C * R**2))
        if inverse.single:
            # the accuracy that a factorisation in full precision would have given
            accuracy = min(accuracy, float(np.finfo(float).eps) * gap)
        for _ in range(STEPS):
            MD = combined.apply(D) + 0.5 * D / self.C
            curvature = np.sum(D * MD, axis=0)
            length = np.divide(descent, curvature, out=np.zeros_like(descent), where=curvature > 0)
            a, R = a + length * D, R - length * MD
            R = R - self._mean(R)
            now = float(np.sum(self.C * R**2))
            if now < gap:
                best = a
            if now <= accuracy or now > 0.5 * gap:
                break
            gap = now
            step = inverse.apply(R)
            new = np.sum(R * step, axis=0)
            D = step + np.divide(new, descent, out=np.zeros_like(new), where=descent > 0) * D
            descent = new
        return self.make_feasible(best)

    def curvature(self, combined: Combined, a, f, outputs: Outputs, rough: bool = False) -> Curvature:
        """With M = K + diag(1/(2C)) a change of weights moves A by -M^-1 F_k, and H_kl = <F_k, M^-1 F_l>."""
        F = outputs.kernel_outputs()
        p = len(F)
        inverse = self._inverse(combined)
        rhs = np.moveaxis(np.concatenate([F, self._residual(a, f)[None]]), 0, -1)
        Z = inverse.apply(rhs.reshape(len(rhs), -1)).reshape(rhs.shape)
        response, correction = Z[..., :p], Z[..., p]
        H = np.asarray(F.reshape(p, -1) @ response.reshape(-1, p))
        return Curvature(0.5 * (H + H.T), np.arange(self.n_samples), response, correction)
