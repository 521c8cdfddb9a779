"""The optimum of binary multiple kernel learning by a general conic solver (Clarabel), with its own proof.

    maximise   y'a - 1/2 ||(a' K_k a)_k||_{r*}      over  0 <= y_i a_i <= C_i,  sum_i a_i = 0 (with intercept)

Each K_k = L_k L_k' by an eigendecomposition, so that ||q||_{r*} = ||(||L_k' a||)_k||_m^2 = s^2 with m = 2r*:

    r = 1          ||L_k' a|| <= s for every k               one second-order cone for each kernel
    1 < r < inf    ||L_k' a|| <= u_k <= v_k^(1/m) s^(1 - 1/m), sum_k v_k = s
                   a tower of three-dimensional cones more for each kernel (1/m rational, or rounded to a
                   denominator of at most 1024)
    r = inf        ||(L_1, ..., L_p)' a|| <= s               one second-order cone

The multipliers of the cones of L_k are the primal vectors w_k, and for any w, b

    1/2 ||(||w_k||)_k||_{2r/(r+1)}^2 + sum_i C_i max(0, 1 - y_i (sum_k (L_k w_k)_i + b))

is an upper bound, while every feasible a gives a lower one (both with the true r): the value returned is
bracketed by the two, and a solve whose bracket is too wide is repeated in other units, then with power cones,
and finally refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import clarabel
import numpy as np
from certificates import best_intercept, bounds, dual_exponent, dual_value, hinge
from scipy import sparse


@dataclass(frozen=True)
class Optimum:
    """The optimum with its bracket lower <= optimum <= upper up to rounding; gap = 1 - lower / upper."""

    value: float
    lower: float
    upper: float
    gap: float
    dual_coef: np.ndarray
    weights: np.ndarray
    intercept: float


def conic_binary(stack, y, C, norm, sample_weight=None, fit_intercept=True) -> float:
    """The optimum of the row "binary SVC" of the design, for one kernel stack (p, n, n) and labels +-1."""
    return conic_solution(stack, y, C, norm, sample_weight, fit_intercept).value


def conic_solution(stack, y, C, norm, sample_weight=None, fit_intercept=True, target=1e-9, accept=1e-7) -> Optimum:
    """The optimum with dual coefficients, weights and bracket.

    Solved in several units of a until the relative gap of the bracket is below ``target``; the best is
    returned when it is below ``accept``, otherwise the function raises.
    """
    y = np.asarray(y, dtype=np.float64)
    stack = np.asarray(stack, dtype=np.float64)
    upper = bounds(C, len(y), sample_weight)
    use = np.flatnonzero(upper > 0)
    part = _solve(stack[:, use][:, :, use], y[use], upper[use], float(norm), fit_intercept, target, accept)
    a = np.zeros(len(y))
    a[use] = part.dual_coef
    return Optimum(part.value, part.lower, part.upper, part.gap, a, part.weights, part.intercept)


def factor(K, centre: bool) -> np.ndarray:
    """L with K = L L' up to rounding (of the centred K when sum a = 0 makes the constant part irrelevant).

    A kernel of zeros has one column of zeros: some versions of the conic solver's interface take no empty matrix.
    """
    size = np.abs(np.diag(K)).max()
    if centre:
        mean = K.mean(axis=0)
        K = K - mean[:, None] - mean[None, :] + mean.mean()
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    keep = values > 1e-14 * len(K) * size
    return vectors[:, keep] * np.sqrt(values[keep]) if keep.any() else np.zeros((len(K), 1))


def _solve(stack, y, C, norm, fit_intercept, target, accept) -> Optimum:
    factors = [factor(K, fit_intercept) for K in stack]
    splits = np.cumsum([L.shape[1] for L in factors])[:-1]
    if np.isinf(norm):
        # (L_1 ... L_p)' = Q R: the sum of the kernels is R'R, and w = Q times the vector of R'
        Q, R = np.linalg.qr(np.hstack(factors).T)
        blocks, back = [R.T], lambda w: np.split(Q @ w[0], splits)
    else:
        blocks, back = factors, lambda w: w
    spread = max(np.sum(L**2) / len(y) for L in blocks)
    best, unit = None, min(C.max(), 1.0 / spread if spread > 0 else np.inf)
    # a cap on C changes nothing when no a_i reaches it, and the bracket knows
    for attempt, cap in enumerate((np.inf, 1e4, 1e2, 1e6, np.inf, 1e4)):
        box, power_cones = np.minimum(C / unit, cap), attempt >= 4
        a, w = _clarabel([np.sqrt(unit) * L for L in blocks], y, box, norm, fit_intercept, power_cones)
        w = back([np.sqrt(unit) * w_k for w_k in w])
        found = _bracket(stack, factors, y, C, norm, fit_intercept, unit * a, w)
        if best is None or abs(found.gap) < abs(best.gap):
            best = found
        if abs(best.gap) <= target:
            return best
        # the size of the solution itself is the natural unit of a
        size = np.abs(best.dual_coef).max()
        unit = size if 0 < size and not 0.3 < size / unit < 3 else unit / 10
    if not abs(best.gap) <= accept:
        raise RuntimeError(f"The conic solver left a relative gap of {best.gap:.2e}.")
    return best


class _Program:
    """Minimise 1/2 x'Px + c'x over A x + slack = b, slack in a product of cones, assembled block by block."""

    def __init__(self):
        self.width, self.height = 0, 0
        self.i, self.j, self.value, self.b, self.cones = [], [], [], [], []

    def variables(self, count: int) -> np.ndarray:
        """The indices of ``count`` new variables."""
        self.width += count
        return np.arange(self.width - count, self.width)

    def rows(self, cone, *terms, constant=0.0) -> int:
        """Put constant + sum of M x[columns] over terms (M, columns) into ``cone``; return its first row."""
        terms = [(np.atleast_2d(M), np.atleast_1d(columns)) for M, columns in terms]
        height = len(terms[0][0])
        for M, columns in terms:
            i, j = np.nonzero(M)
            self.i.append(self.height + i)
            self.j.append(columns[j])
            self.value.append(-M[i, j])
        self.b.append(np.broadcast_to(constant, (height,)))
        self.cones.append(cone)
        self.height += height
        return self.height - height

    def solve(self, P, c):
        """The solver's answer."""
        A = sparse.csc_matrix(
            (np.concatenate(self.value), (np.concatenate(self.i), np.concatenate(self.j))),
            shape=(self.height, self.width),
        )
        return clarabel.DefaultSolver(P, c, A, np.concatenate(self.b), self.cones, _settings()).solve()


def _clarabel(factors, y, C, norm, fit_intercept, power_cones):
    """The signed a and the primal vectors w_k, in the units in which the factors and C are given."""
    n, live = len(y), [k for k, L in enumerate(factors) if L.shape[1] > 0]
    program = _Program()
    a, s = program.variables(n), program.variables(1)
    if fit_intercept:
        program.rows(clarabel.ZeroConeT(1), (np.ones((1, n)), a))
    program.rows(clarabel.NonnegativeConeT(n), (np.diag(y), a))
    program.rows(clarabel.NonnegativeConeT(n), (-np.diag(y), a), constant=C)
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
    answer = program.solve(P, np.concatenate([-y, np.zeros(program.width - n)]))
    z = np.array(answer.z)
    w = [-z[first[k] : first[k] + L.shape[1]] if k in first else np.zeros(0) for k, L in enumerate(factors)]
    return np.array(answer.x[:n]), w


def _power(program, u, v, s, norm) -> None:
    """The constraint u <= v^(h/t) s^(1 - h/t), h/t = 1/(2r*), by cones g^2 <= xy.

    u^N <= v^h s^(t-h) u^(N-t) with N the power of two above t; a pair of equal factors is its own mean, a
    pair of different ones x, y has a mean g <= sqrt(xy), and the last mean is u itself.
    """
    ratio = Fraction(0.5 / dual_exponent(norm)).limit_denominator(1024)
    h, t = ratio.numerator, ratio.denominator
    N = 1 << (t - 1).bit_length()
    level = [v] * h + [s] * (t - h) + [u] * (N - t)
    mix = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 0.0, 2.0]])
    while len(level) > 1:
        above = []
        for x, y in zip(level[::2], level[1::2], strict=True):
            mean = x if x == y else u if len(level) == 2 else program.variables(1)[0]
            if x != y:
                program.rows(clarabel.SecondOrderConeT(3), (mix, np.array([x, y, mean])))
            above.append(mean)
        level = above


def _settings():
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 200
    settings.tol_gap_abs = settings.tol_gap_rel = 1e-10
    settings.tol_feas = 1e-10
    # a = 0 is feasible and the value is at most sum C_i: an infeasibility is never true
    settings.tol_infeas_abs = settings.tol_infeas_rel = 1e-300
    settings.max_threads = 1
    settings.direct_solve_method = "qdldl"
    return settings


def _bracket(stack, factors, y, C, norm, fit_intercept, a, w) -> Optimum:
    """Lower bound from a (moved into the feasible set), upper bound from w with the best intercept."""
    a = feasible(a, y, C, fit_intercept)
    lower = max(dual_value(stack, y, a, norm), 0.0)
    sizes = np.array([np.linalg.norm(w_k) for w_k in w])
    f = sum((L @ w_k for L, w_k in zip(factors, w, strict=True)), np.zeros(len(y)))
    order = 2.0 if np.isinf(norm) else 2.0 * norm / (norm + 1.0)
    upper, b = np.inf, 0.0
    # w as it is, and w scaled to margin one: with no a_i at its bound the optimum has no loss at all
    centre = (f[y > 0].min() + f[y < 0].max()) / 2 if fit_intercept and abs(y.sum()) < len(y) else 0.0
    margin = np.min(y * (f - centre))
    for scale in (1.0, 1.0 / margin) if margin > 0 else (1.0,):
        intercept = best_intercept(scale * f, y, C) if fit_intercept else 0.0
        value = 0.5 * (scale * np.linalg.norm(sizes, ord=order)) ** 2 + hinge(scale * f + intercept, y, C)
        if value < upper:
            upper, b = value, intercept
    gap = (upper - lower) / max(upper, np.finfo(float).tiny)
    return Optimum((upper + lower) / 2, lower, upper, gap, a, optimal_weights(sizes, norm), b)


def feasible(a, y, C, fit_intercept=True) -> np.ndarray:
    """A point of A near a: clipped into the box, then the surplus of sum a taken back where there is room."""
    low, high = np.minimum(0.0, y * C), np.maximum(0.0, y * C)
    a = np.clip(np.nan_to_num(a), low, high)
    if fit_intercept:
        for _ in range(3):
            surplus = a.sum()
            room = a - low if surplus > 0 else high - a
            a = np.clip(a - surplus * room / max(room.sum(), np.finfo(float).tiny), low, high)
    return a


def optimal_weights(sizes, norm: float) -> np.ndarray:
    """The minimiser of sum_k ||w_k||^2 / beta_k over ||beta||_r <= 1, proportional to ||w_k||^(2/(r+1))."""
    p = len(sizes)
    if np.isinf(norm):
        return np.ones(p)
    top = sizes.max(initial=0.0)
    beta = (sizes / top) ** (2.0 / (norm + 1.0)) if top > 0 else np.ones(p)
    return beta / np.linalg.norm(beta, ord=norm)
