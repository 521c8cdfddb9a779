"""The best biases of a differentiable joint loss: min_b sum_i C_i l(f_i + b), a convex problem in c numbers.

Given: outputs f, costs C, classes y, the loss l. Returned: biases b. The multinomial loss is minimised by Newton's
method. A loss of the largest wrong class, phi(max_u x_iu) with x_iu = D_iu + b_u - b_{y_i}, D_iu = f_iu - f_{i,y_i}, is
smoothed,

    phi(t_i),    t_i = mu log sum_{u != y_i} exp(x_iu / mu),      max_u x_iu <= t_i <= max_u x_iu + mu log (c - 1),

and Newton's method follows the minimiser as mu goes from the size of the outputs to zero. The multinomial loss (mu = 1)
and the smooth hinge (sigma = 1 / mu) are smoothed as much to begin with. At the minimum the derivatives q_iu = dt_i /
dx_iu give dual variables C_i phi'(t_i) q_iu whose columns balance. So the loss is above the least by at most
sum_i C_i (phi(max) - phi(t_i) + phi'(t_i) mu entropy(q_i)), which is the stopping rule.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from multikernel.machines.joint.hinge_biases import factorise, substitute
from multikernel.machines.joint.hinge_loops import MOST_STEPS
from multikernel.machines.joint.loss_loops import MULTINOMIAL, loss_of_excess

# factor of mu when a smoothed problem is solved: a smaller one takes fewer problems, of more steps each
SHRINK = 0.1
# longest first step of a smoothed problem, as a multiple of mu; after a whole step of that length the next one may be
# longer by 1 / SHRINK. Longer ones are cut back by the line search, shorter ones are many
_REACH = 30.0


def joint_biases(
    f: np.ndarray, C: np.ndarray, y: np.ndarray, form: tuple[int, float, float], enough: float
) -> np.ndarray:
    """Return biases whose loss is above the least by at most ``enough``, or by rounding.

    Parameters
    ----------
    f : ndarray of shape (n, c)
        Outputs.
    C, y : ndarrays of shape (n,)
        Costs and classes.
    form : (int, float, float)
        Kind, sigma and margin of the loss, as in ``loss_loops``.
    enough : float
        Accuracy of the loss.

    Examples
    --------
    >>> import numpy as np
    >>> f, y = np.zeros((4, 2)), np.array([0, 0, 0, 1])
    >>> b = joint_biases(f, np.ones(4), y, (0, 1.0, 0.0), 1e-12)
    >>> np.exp(b[0] - b[1]).round(6)
    np.float64(3.0)
    """
    here = np.flatnonzero(np.bincount(y, minlength=f.shape[1]))
    b = np.zeros(f.shape[1])
    if len(here) < 2:
        return b
    D = np.ascontiguousarray((f - f[np.arange(len(y)), y][:, None])[:, here])
    part = _smoothed_newton(D, C, np.searchsorted(here, y), *form, enough)
    b[here] = part - part.mean()
    if len(here) < len(b):
        # classes without samples: biases so low that these classes cost nothing
        rest = np.setdiff1d(np.arange(len(b)), here)
        b[rest] = np.min(D.min() + b[here]) - np.max(f[:, rest] - f[np.arange(len(y)), y][:, None], axis=0) - 800.0
    return b


@njit(cache=True, nogil=True)
def _evaluate(D, C, y, b, kind, sigma, margin, mu, q):
    """Return the smoothed loss; q is room to work in."""
    total = 0.0
    for i in range(D.shape[0]):
        total += C[i] * _smoothed_loss(D[i], y[i], b, kind, sigma, margin, mu, q)[0]
    return total


@njit(cache=True, nogil=True)
def _smoothed_loss(D, y, b, kind, sigma, margin, mu, q):
    """Return the smoothed loss, its derivatives by t, max x, and the entropy of q.

    Sets: q = dt / dx, at y zero or (multinomial) p_y.
    """
    c = D.shape[0]
    own = kind == MULTINOMIAL
    top = -np.inf
    for u in range(c):
        if u != y or own:
            top = max(top, D[u] + b[u] - b[y])
    total, entropy = 0.0, 0.0
    for u in range(c):
        q[u] = 0.0
        if u != y or own:
            x = (D[u] + b[u] - b[y] - top) / mu
            # what the sum would not show is left out
            if not x < -50.0:
                q[u] = np.exp(x)
                total += q[u]
                entropy -= q[u] * x
    for u in range(c):
        q[u] /= total
    t, entropy = top + mu * np.log(total), entropy / total + np.log(total)
    if own:
        return t, 1.0, 0.0, top, entropy
    value, slope, bend = loss_of_excess(kind, sigma, margin, t)
    return value, slope, bend, top, entropy


@njit(cache=True, nogil=True)
def _newton_direction(H, g, more):
    """Return -(H + more I)^-1 g by Cholesky, H made definite along the constants and against rounding."""
    c = g.shape[0]
    size = 0.0
    for u in range(c):
        size = max(size, H[u, u])
    size = max(size + more, 1e-300)
    L = H + size / c
    for u in range(c):
        L[u, u] += more
    factorise(L, 1e-15 * size)
    d = -g
    substitute(L, d)
    return d


@njit(cache=True, nogil=True)
def _smoothed_newton(D, C, y, kind, sigma, margin, enough):
    n, c = D.shape
    total = C.sum()
    q, Q, P, g = np.empty(c), np.empty((n, c)), np.empty((n, c)), np.empty(c)
    best, b, least = np.zeros(c), np.zeros(c), np.inf
    spread = 0.0
    for i in range(n):
        for u in range(c):
            spread = max(spread, abs(D[i, u]))
    mu = 0.1 * max(spread, 1e-3)
    if kind == MULTINOMIAL:
        mu = max(mu, 1.0)
    diagonal, reach = np.empty(c), _REACH
    for _ in range(MOST_STEPS):
        diagonal[:] = 0.0
        g[:] = 0.0
        value, true, loose = 0.0, 0.0, 0.0
        sharp = min(sigma, 1.0 / mu)
        last = mu == 1.0 if kind == MULTINOMIAL else sharp == sigma
        for i in range(n):
            loss, slope, bend, top, entropy = _smoothed_loss(D[i], y[i], b, kind, sharp, margin, mu, Q[i])
            value += C[i] * loss
            if kind == MULTINOMIAL:
                true += C[i] * loss
            else:
                exact = loss_of_excess(kind, sigma, margin, top)[0]
                true += C[i] * exact
                loose += C[i] * (exact - loss + slope * mu * entropy)
            first = C[i] * slope / mu
            for u in range(c):
                g[u] += C[i] * slope * Q[i, u]
                diagonal[u] += first * Q[i, u]
                P[i, u] = 0.5 * (C[i] * bend - first) * Q[i, u]
            g[y[i]] -= C[i] * slope
            # bend (q - e_y)(q - e_y)' where the class itself is not among the q
            P[i, y[i]] -= C[i] * bend
            diagonal[y[i]] += C[i] * bend
        half = np.dot(P.T, Q)
        H = half + half.T
        for u in range(c):
            H[u, u] += diagonal[u]
        if last and true < least:
            least = true
            best[:] = b
        d = _newton_direction(H, g, 0.0)
        # of the whole step: the decrement of a shortened one underestimates the distance to the minimum
        decrement = -np.dot(g, d)
        far = np.abs(d).max() > reach * mu
        if far:
            # the loss is nearly linear here: no further than the quadratic model holds
            d = _newton_direction(H, g, np.sqrt((g * g).sum()) / (reach * mu))
        rounding = 1e-15 * (abs(value) + total)
        settled = last and loose <= max(enough, rounding)
        # before mu is small enough, no more exact than the smoothing is
        wanted = 0.1 * enough if settled else max(0.1 * loose, 1e-3 * mu * total)
        if decrement <= max(wanted, rounding):
            if settled:
                # a last step: its gain is too small to show in the value
                if _evaluate(D, C, y, b + d, kind, sharp, margin, mu, q) <= value + rounding:
                    best[:] = b + d
                break
            mu, reach = mu * SHRINK, _REACH
            if kind == MULTINOMIAL:
                mu = max(mu, 1.0)
            continue
        t, slope = 1.0, np.dot(g, d)
        while t > 1e-9:
            if _evaluate(D, C, y, b + t * d, kind, sharp, margin, mu, q) <= value + 0.1 * t * slope:
                break
            t *= 0.5
        if t <= 1e-9:
            if settled or mu < 1e-14:
                break
            mu, reach = mu * SHRINK, _REACH
            if kind == MULTINOMIAL:
                mu = max(mu, 1.0)
            continue
        b = b + t * d
        if far:
            reach = reach / SHRINK if t == 1.0 else _REACH
    return best
