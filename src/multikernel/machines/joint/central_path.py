"""A joint loss on one kernel by Newton's method on the primal, along a path of smoother losses: for the hard cases.

    min_A,b  1/2 tr A'KA + sum_i C_i l_mu(f_i + b, y_i),      f = KA

The largest wrong output is replaced by mu log sum exp (x / mu), as in ``smooth_biases``. The conjugate of the smooth
loss has a diagonal Hessian D over rows that sum to zero: mu / -a_u for the wrong classes, psi''(a_y) - mu / a_y at y
(zero where that is negative); the multinomial loss is its own, at mu = 1, with D_u = mu / p_u. With r = -(A + grad) the
Newton step d of A solves

    (K + D) d = D r - 1 db'     over rows that sum to zero, and columns that keep their sums (with biases),

and is shortened until the primal falls, which a convex and smooth function always allows.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from multikernel.losses.joint import MULTINOMIAL, SQUARED_HINGE

# shares below this count as this in D
_TINY = 1e-13
# how mu shrinks
_FASTER = 0.1


def smooth_loss(
    f: np.ndarray, y: np.ndarray, form: tuple[int, float, float], mu: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, at cost one, the smooth loss of each row, minus its gradient and the diagonal D.

    Examples
    --------
    >>> import numpy as np
    >>> value, a, D = smooth_loss(np.array([[0.0, 0.0]]), np.array([0]), (0, 1.0, 0.0), 1.0)
    >>> value.round(4), a, D
    (array([0.6931]), array([[ 0.5, -0.5]]), array([[2., 2.]]))
    """
    kind, sigma, margin = form
    own = np.arange(len(y)), y
    x = f - f[own][:, None]
    if kind != MULTINOMIAL:
        x[own] = -np.inf
    top = x.max(axis=1)
    q = np.exp((x - top[:, None]) / mu)
    total = q.sum(axis=1)
    q /= total[:, None]
    t = top + mu * np.log(total)
    if kind == MULTINOMIAL:
        a = -q
        a[own] += 1.0
        return t, a, mu / np.maximum(q, _TINY)
    if kind == SQUARED_HINGE:
        slope = 2.0 * np.maximum(0.0, 1.0 + t)
        value = 0.25 * slope**2
        bend = np.full(len(t), 0.5)
    else:
        sharp = min(sigma, 1.0 / mu)
        value = np.logaddexp(0.0, sharp * (margin + t)) / sharp
        slope = expit(sharp * (margin + t))
        bend = 1.0 / np.maximum(sharp * slope * expit(-sharp * (margin + t)), _TINY)
    D = mu / np.maximum(slope[:, None] * q, _TINY)
    D[own] = np.maximum(bend - mu / np.maximum(slope, _TINY), 0.0)
    a = -slope[:, None] * q
    a[own] = slope
    return value, a, D


class CentralPath:
    """Newton steps for one machine and one combined kernel.

    Parameters
    ----------
    machine : JointLoss
        The machine.
    combined : Combined
        The kernel.
    a, f : ndarrays of shape (n, c)
        Coefficients with zero rows (and columns, with biases), and their outputs.
    b : ndarray of shape (c,)
        Biases to begin with.
    """

    def __init__(self, machine, combined, a: np.ndarray, f: np.ndarray, b: np.ndarray) -> None:
        self.machine, self.combined = machine, combined
        self.a, self.f, self.b = a, f, b
        self.C = machine.C[:, None]

    def smooth(self, f: np.ndarray, mu: float):
        """Return the smooth losses, minus their gradients and D, with the costs."""
        value, a, D = smooth_loss(f, self.machine.y, self.machine.loss.form, mu)
        return float(self.machine.C @ value), self.C * a, D / self.C

    def step(self, mu: float) -> float:
        """One Newton step; return by how much the primal was promised to fall, zero where it did not."""
        value, target, D = self.smooth(self.f + self.b, mu)
        r = target - self.a
        free = np.ones(r.shape, bool)
        d = np.empty_like(r)
        rows, moves = self.machine._newton(self.combined, free, (D * r)[None], D)
        d[rows] = moves[..., 0]
        df = self.combined.apply(d)
        db = self._bias_step(D * r - df - D * d, D) if self.machine.balanced else 0.0
        quad, slope, bend = 0.5 * float(np.vdot(self.a, self.f)), float(np.vdot(d, self.f)), 0.5 * float(np.vdot(d, df))
        descent = -slope + float(np.vdot(target, df + db))
        if not descent > 1e-15 * (abs(value) + abs(quad)):
            # less than the value can show, and still a Newton step
            self.a, self.f, self.b = self.a + d, self.f + df, self.b + db
            return 0.0
        t = 1.0
        while t > 1e-8:
            b = self.b + t * db
            new = t * slope + t**2 * bend + self.smooth(self.f + t * df + b, mu)[0] - value
            if new <= -1e-3 * t * descent:
                self.a, self.f, self.b = self.a + t * d, self.f + t * df, b
                return descent
            t *= 0.5
        return 0.0

    def _bias_step(self, left: np.ndarray, D: np.ndarray) -> np.ndarray:
        """Return db of left_iu = db_u + lambda_i, entries of large D counting for less."""
        w = 1.0 / (self.combined.diag[:, None] + D + 1e-300)
        shares = w / w.sum(axis=1, keepdims=True)
        L = np.diag(w.sum(axis=0)) - shares.T @ w
        rhs = np.sum(w * (left - np.sum(shares * left, axis=1, keepdims=True)), axis=0)
        return np.linalg.lstsq(L, rhs, rcond=1e-12)[0]
