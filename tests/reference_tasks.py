"""The optima of support vector regression and of one-class learning by a general conic solver, with their own proof.

    maximise   p'a - eps |a|_1 - 1/2 ||(a' K_k a)_k||_{r*}      over  lo <= a <= hi,  sum_i a_i = total

    regression     p = y, lo = -C, hi = C, total = 0 (free without an intercept)
    one class      p = 0, eps = 0, lo = 0, hi_i = w_i / (nu sum w), total = 1

The cones are those of ``reference``: K_k = L_k L_k', whose multipliers are the primal vectors w_k; every feasible
a gives a lower bound and every w an upper one, 1/2 ||(||w_k||)_k||_{2r/(r+1)}^2 plus the least loss over the
intercept, found by trying all kinks. Nothing of ``multikernel`` is imported.
"""

from __future__ import annotations

import clarabel
import numpy as np
from certificates import bounds, dual_exponent, quadratic_forms, support_value
from reference import Optimum, _power, _Program, factor, optimal_weights
from scipy import sparse


def tube_loss(f, y, C, epsilon) -> float:
    """The loss sum_i C_i max(0, |y_i - f_i| - epsilon)."""
    return float(np.sum(bounds(C, len(y)) * np.maximum(0.0, np.abs(np.asarray(y) - f) - epsilon)))


def tube_intercept(f, y, C, epsilon) -> float:
    """A minimiser of the convex, piecewise linear b -> tube_loss(f + b): the best of its kinks."""
    kinks = np.concatenate([y - f - epsilon, y - f + epsilon])
    return float(kinks[np.argmin([tube_loss(f + b, y, C, epsilon) for b in kinks])])


def plane_loss(f, hi) -> tuple[float, float]:
    """The least -rho + sum_i hi_i max(0, rho - f_i), and its rho: the best of the kinks."""
    values = [-rho + float(hi @ np.maximum(0.0, rho - f)) for rho in f]
    best = int(np.argmin(values))
    return values[best], float(f[best])


def conic_svr(stack, y, C, epsilon, norm, sample_weight=None, fit_intercept=True) -> Optimum:
    """The row "SVR" of the design."""
    y = np.asarray(y, dtype=np.float64)
    C = bounds(C, len(y), sample_weight)

    def loss(f):
        b = tube_intercept(f, y, C, epsilon) if fit_intercept else 0.0
        return tube_loss(f + b, y, C, epsilon), b

    return _solve(stack, y, -C, C, epsilon, 0.0 if fit_intercept else None, float(norm), loss)


def conic_oneclass(stack, nu, norm, sample_weight=None) -> Optimum:
    """The row "one-class" of the design; the intercept is -rho."""
    weight = np.ones(len(stack[0])) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    hi = weight / (nu * weight.sum())

    def loss(f):
        value, rho = plane_loss(f, hi)
        return value, -rho

    return _solve(stack, np.zeros(len(hi)), np.zeros(len(hi)), hi, 0.0, 1.0, float(norm), loss)


def _solve(stack, p, lo, hi, eps, total, norm, loss, target=1e-9, accept=1e-7) -> Optimum:
    stack = np.asarray(stack, dtype=np.float64)
    factors = [factor(K, total == 0.0) for K in stack]
    splits = np.cumsum([L.shape[1] for L in factors])[:-1]
    blocks, back = factors, lambda w: w
    if np.isinf(norm):
        Q, R = np.linalg.qr(np.hstack(factors).T)
        blocks, back = [R.T], lambda w: np.split(Q @ w[0], splits)
    spread = max(np.sum(L**2) / len(p) for L in blocks)
    best, unit = None, min(hi.max(), np.abs(p).max() / spread if spread > 0 and p.any() else np.inf)
    for attempt in range(6):
        # a in units of its own size, the objective in units of its own
        guess = max(unit * np.abs(p).max(), unit**2 * spread, 1e-300)
        size = guess if best is None else abs(best.value) or guess
        a, w = _clarabel([unit / np.sqrt(size) * L for L in blocks], unit / size * p, lo / unit, hi / unit,
                         unit / size * eps, None if total is None else total / unit, norm, attempt >= 4)  # fmt: skip
        w = back([np.sqrt(size) * w_k for w_k in w])
        found = _bracket(stack, factors, p, lo, hi, eps, total, norm, loss, unit * a, w)
        if best is None or abs(found.gap) < abs(best.gap):
            best = found
        if abs(best.gap) <= target:
            return best
        largest = np.abs(best.dual_coef).max()
        unit = largest if 0 < largest and not 0.3 < largest / unit < 3 else unit / 10
    if not abs(best.gap) <= accept:
        raise RuntimeError(f"The conic solver left a relative gap of {best.gap:.2e}.")
    return best


def _clarabel(factors, p, lo, hi, eps, total, norm, power_cones):
    """The signed a and the primal vectors w_k, in the units in which everything is given."""
    n, live = len(p), [k for k, L in enumerate(factors) if L.shape[1] > 0]
    program = _Program()
    a, s = program.variables(n), program.variables(1)
    if total is not None:
        program.rows(clarabel.ZeroConeT(1), (np.ones((1, n)), a), constant=-total)
    program.rows(clarabel.NonnegativeConeT(n), (np.eye(n), a), constant=-lo)
    program.rows(clarabel.NonnegativeConeT(n), (-np.eye(n), a), constant=hi)
    c = [-p, np.zeros(1)]
    if eps:
        size = program.variables(n)
        c.append(np.full(n, eps))
        for sign in (1.0, -1.0):
            program.rows(clarabel.NonnegativeConeT(n), (np.eye(n), size), (sign * np.eye(n), a))
    if len(live) <= 1 or norm == 1:
        u = np.repeat(s, len(live))
    else:
        u, v = program.variables(len(live)), program.variables(len(live))
        program.rows(clarabel.ZeroConeT(1), (np.ones((1, len(v))), v), (-np.ones((1, 1)), s))
        for u_k, v_k in zip(u, v, strict=True):
            if power_cones:
                exponent = 0.5 / dual_exponent(norm)
                program.rows(clarabel.PowerConeT(exponent), (np.eye(3), np.array([v_k, s[0], u_k])))
            else:
                _power(program, u_k, v_k, s[0], norm)
    first = {}
    for k, u_k in zip(live, u, strict=True):
        L = factors[k]
        head, tail = np.zeros((1 + L.shape[1], 1)), np.vstack([np.zeros(n), L.T])
        head[0] = 1.0
        first[k] = 1 + program.rows(clarabel.SecondOrderConeT(len(head)), (head, u_k), (tail, a))
    P = sparse.csc_matrix(([1.0], ([s[0]], [s[0]])), shape=(program.width, program.width))
    c = np.concatenate(c)
    answer = program.solve(P, np.concatenate([c, np.zeros(program.width - len(c))]))
    z = np.array(answer.z)
    w = [-z[first[k] : first[k] + L.shape[1]] if k in first else np.zeros(0) for k, L in enumerate(factors)]
    return np.array(answer.x[:n]), w


def _bracket(stack, factors, p, lo, hi, eps, total, norm, loss, a, w) -> Optimum:
    """Lower bound from a (moved into the feasible set), upper bound from w with the best intercept."""
    a = feasible_box(a, lo, hi, total)
    lower = float(p @ a) - eps * float(np.abs(a).sum()) - 0.5 * support_value(quadratic_forms(stack, a), norm)
    sizes = np.array([np.linalg.norm(w_k) for w_k in w])
    f = sum((L @ w_k for L, w_k in zip(factors, w, strict=True)), np.zeros(len(p)))
    order = 2.0 if np.isinf(norm) else 2.0 * norm / (norm + 1.0)
    value, b = loss(f)
    upper = 0.5 * float(np.linalg.norm(sizes, ord=order)) ** 2 + value
    gap = (upper - lower) / max(abs(upper), np.finfo(float).tiny)
    return Optimum((upper + lower) / 2, lower, upper, gap, a, optimal_weights(sizes, norm), b)


def feasible_box(a, lo, hi, total) -> np.ndarray:
    """A feasible point near a: clipped into the box, then the surplus of the sum taken back where there is room."""
    a = np.clip(np.nan_to_num(a), lo, hi)
    for _ in range(0 if total is None else 3):
        surplus = a.sum() - total
        room = a - lo if surplus > 0 else hi - a
        a = np.clip(a - surplus * room / max(room.sum(), np.finfo(float).tiny), lo, hi)
    return a
