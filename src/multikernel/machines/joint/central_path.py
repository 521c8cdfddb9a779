"""A differentiable joint loss on one kernel by Newton's method on smoothed losses, where row steps are slow.

    min_A,b  1/2 tr A'KA + sum_i C_i l_mu(f_i + b, y_i),      f = KA

Given: a machine, the combined kernel K, coefficients A with outputs f, biases b. Moved: A, f and b. The largest wrong
output is replaced by mu log sum exp (x / mu), as in ``smooth_biases``. The conjugate of the smoothed loss has a
diagonal Hessian D over rows that sum to zero: mu / -a_u for the wrong classes, psi''(a_y) - mu / a_y at y (zero where
that is negative). The multinomial loss is its own smoothed loss at mu = 1, with D_u = mu / p_u. With r = -(A + grad)
the Newton step d of A solves

    (K + D) d = D r - 1 db'     over rows that sum to zero, and columns that keep their sums (with biases),

and is halved until the primal falls (Armijo's rule), which a convex and smooth function always allows.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from multikernel.losses.joint import MULTINOMIAL, SQUARED_HINGE

# smallest probability of a class in D: a smaller one makes the system too ill-conditioned
TINY = 1e-13


def smooth_loss(
    f: np.ndarray, y: np.ndarray, form: tuple[int, float, float], mu: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, at cost one, the smoothed loss of each row, minus its gradient, and the diagonal D.

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
        return t, a, mu / np.maximum(q, TINY)
    if kind == SQUARED_HINGE:
        slope = 2.0 * np.maximum(0.0, 1.0 + t)
        value = 0.25 * slope**2
        bend = np.full(len(t), 0.5)
    else:
        sharp = min(sigma, 1.0 / mu)
        value = np.logaddexp(0.0, sharp * (margin + t)) / sharp
        slope = expit(sharp * (margin + t))
        bend = 1.0 / np.maximum(sharp * slope * expit(-sharp * (margin + t)), TINY)
    D = mu / np.maximum(slope[:, None] * q, TINY)
    D[own] = np.maximum(bend - mu / np.maximum(slope, TINY), 0.0)
    a = -slope[:, None] * q
    a[own] = slope
    return value, a, D


class SmoothedNewton:
    """Newton steps on the primal of smoothed losses, for one machine and one combined kernel.

    Parameters
    ----------
    machine : JointLoss
        Machine.
    combined : Combined
        Kernel.
    a, f : ndarrays of shape (n, c)
        Coefficients whose rows (with biases, columns too) sum to zero, and their outputs.
    b : ndarray of shape (c,)
        Biases to begin with.
    """

    def __init__(self, machine, combined, a: np.ndarray, f: np.ndarray, b: np.ndarray) -> None:
        self.machine, self.combined = machine, combined
        self.a, self.f, self.b = a, f, b
        self.C = machine.C[:, None]

    def smooth(self, f: np.ndarray, mu: float):
        """Return the sum of the smoothed losses, minus their gradients, and D, all with the costs."""
        value, a, D = smooth_loss(f, self.machine.y, self.machine.loss.form, mu)
        return float(self.machine.C @ value), self.C * a, D / self.C

    def step(self, mu: float) -> float:
        """One Newton step; return the fall of the primal to first order, zero where no step length makes it fall."""
        value, target, D = self.smooth(self.f + self.b, mu)
        r = target - self.a
        free = np.ones(r.shape, bool)
        d = np.empty_like(r)
        rows, moves = self.machine._newton_moves(self.combined, free, (D * r)[None], D)
        d[rows] = moves[..., 0]
        df = self.combined.apply(d)
        db = self._bias_step(D * r - df - D * d, D) if self.machine.balanced else 0.0
        quad, slope, bend = 0.5 * float(np.vdot(self.a, self.f)), float(np.vdot(d, self.f)), 0.5 * float(np.vdot(d, df))
        descent = -slope + float(np.vdot(target, df + db))
        if not descent > 1e-15 * (abs(value) + abs(quad)):
            # the fall is less than the rounding of the value: take the step without looking
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
        """Return db of the least-squares fit left_iu = db_u + lambda_i, weighted by 1 / (K_ii + D_iu)."""
        w = 1.0 / (self.combined.diag[:, None] + D + 1e-300)
        shares = w / w.sum(axis=1, keepdims=True)
        L = np.diag(w.sum(axis=0)) - shares.T @ w
        rhs = np.sum(w * (left - np.sum(shares * left, axis=1, keepdims=True)), axis=0)
        return np.linalg.lstsq(L, rhs, rcond=1e-12)[0]
