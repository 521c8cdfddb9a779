"""Bounds on the error of a multi-class predictor, after Cortes, Mohri & Rostamizadeh 2013.

Theorem 1: with probability 1 - delta, for all h of a set H, c classes, n samples, margin rho > 0,

    R(h) <= R_rho(h) + (2 c^2 / rho) Rad(H) + 3 sqrt(log(2 / delta) / (2 n)).

Theorem 2, for H of c functions of norm at most Lambda in the space of K_beta, beta on the simplex with margin at least
gamma0: with g_k the mean of eta_k over samples and wrong classes,

    I = {k : g_k >= gamma0},     J = {(k, l) : g_k <= gamma0 <= g_l, g_k < g_l},
    T = max of tr K_k over I and of a tr K_k + (1 - a) tr K_l over J,  a = (g_l - gamma0) / (g_l - g_k),
    Rad(H) <= (Lambda / n) sqrt((23/22) T m),     m = min over integers s >= 1 of s (|I| + |J|)^(1/s).

The paper prints e log(|I| + |J|) for m, which is smaller: its proof allows integers s only. T decreases as gamma0 grows
(Lemma 4). For weights of norm 2 the paper has a factor of the order (|I| + |J|)^(1/4) in place of sqrt(m).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from multikernel.estimators.validation import check_vector
from multikernel.kernels.base import is_real


@dataclass(frozen=True)
class Bound:
    """A bound and its terms.

    Attributes
    ----------
    margin_loss, complexity, confidence : float
        Margin loss on the training samples, complexity term, and confidence term.
    """

    margin_loss: float
    complexity: float
    confidence: float

    @property
    def total(self) -> float:
        """The bound on the error, the sum of the three terms; a value of one or more says nothing."""
        return self.margin_loss + self.complexity + self.confidence


def margin_loss(scores: np.ndarray, codes: np.ndarray, rho: float = 1.0) -> float:
    """Return the share of samples with h(x, y) - max_{u != y} h(x, u) <= rho.

    Parameters
    ----------
    scores : ndarray of shape (n, c)
        h(x_i, u).
    codes : ndarray of int, shape (n,)
        Classes, 0 to c - 1.
    rho : float
        Margin, at least zero; at zero the loss is the share of errors.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[2.0, 0.0], [0.5, 0.0], [1.0, 0.0]])
    >>> round(margin_loss(scores, np.array([0, 0, 1])), 3), round(margin_loss(scores, np.array([0, 0, 1]), 0.0), 3)
    (0.667, 0.333)
    """
    scores, codes = np.asarray(scores), np.asarray(codes)
    numbers = scores.ndim == 2 and scores.dtype.kind in "biuf"
    if not (numbers and codes.shape == (len(scores),) and codes.dtype.kind in "iu"):
        raise ValueError(
            f"The 'scores' and 'codes' of a margin loss must be numbers of shape (n, c) and n classes. Got "
            f"{scores.dtype} of shape {scores.shape} and {codes.dtype} of shape {codes.shape} instead."
        )
    _check_numbers(rho=rho)
    at = np.arange(len(codes))
    others = scores.astype(float)
    others[at, codes] = -np.inf
    return float(np.mean(scores[at, codes] - others.max(axis=1) <= rho))


def confidence_term(n: int, delta: float = 0.05) -> float:
    """Return 3 sqrt(log(2 / delta) / (2 n)).

    Examples
    --------
    >>> round(confidence_term(1000), 4)
    0.1288
    """
    if not (is_real(delta) and 0 < delta < 1):
        raise ValueError(f"The 'delta' of a bound must be a number between 0 and 1. Got {delta!r} instead.")
    _check_numbers(n=n)
    if not n >= 1:
        raise ValueError(f"The 'n' of a bound must be a positive number of samples. Got {n!r} instead.")
    return float(3.0 * np.sqrt(np.log(2.0 / delta) / (2.0 * n)))


def margin_bound(loss: float, rademacher: float, c: int, n: int, rho: float = 1.0, delta: float = 0.05) -> Bound:
    """Return the bound of Theorem 1.

    Parameters
    ----------
    loss : float
        Empirical margin loss at rho.
    rademacher : float
        Empirical Rademacher complexity of the set {x -> h(x, u)}, or a bound on it.
    c, n : int
        Numbers of classes and samples.
    rho, delta : float
        Margin of the predictor; probability with which the bound may fail.

    Examples
    --------
    >>> bound = margin_bound(0.1, 0.001, c=3, n=1000)
    >>> round(bound.complexity, 3), round(bound.total, 4)
    (0.018, 0.2468)
    """
    if not (is_real(rho) and rho > 0):
        raise ValueError(f"The 'rho' of a bound must be a positive number. Got {rho!r} instead.")
    _check_numbers(loss=loss, rademacher=rademacher, c=c)
    return Bound(loss, 2.0 * c**2 / rho * rademacher, confidence_term(n, delta))


def trace_term(gamma: np.ndarray, traces: np.ndarray, gamma0: float) -> tuple[float, int, int]:
    """Return T of Theorem 2 and the sizes of the sets I and J.

    Parameters
    ----------
    gamma : ndarray of shape (p,)
        Mean of eta_k over samples and wrong classes.
    traces : ndarray of shape (p,)
        tr K_k.
    gamma0 : float
        Kernel margin that the weights must have, at most the largest gamma; ``-inf`` for no constraint.

    Examples
    --------
    >>> import numpy as np
    >>> gamma, traces = np.array([0.1, 0.5]), np.array([200.0, 100.0])
    >>> trace_term(gamma, traces, -np.inf), trace_term(gamma, traces, 0.3), trace_term(gamma, traces, 0.5)
    ((200.0, 2, 0), (150.0, 1, 1), (100.0, 1, 1))
    """
    gamma = check_vector(
        gamma, np.size(gamma), "The 'gamma' of a bound must be finite numbers, one per kernel", np.isfinite
    )
    what = f"The 'traces' of a bound must be {len(gamma)} non-negative numbers, one per kernel"
    traces = check_vector(traces, len(gamma), what, lambda trace: trace >= 0)
    if not (is_real(gamma0) or (isinstance(gamma0, float) and gamma0 == -np.inf)):
        raise ValueError(f"The 'gamma0' of a bound must be a number or -inf. Got {gamma0!r} instead.")
    inside = gamma >= gamma0
    if not inside.any():
        raise ValueError(
            f"The margin gamma0 must be at most {gamma.max():.9g}, the largest of the kernels. Got {gamma0:g} instead."
        )
    T = float(traces[inside].max())
    low, high = gamma[:, None], gamma[None, :]
    k, other = np.nonzero((low <= gamma0) & (gamma0 <= high) & (low < high))
    if len(k):
        a = (gamma[other] - gamma0) / (gamma[other] - gamma[k])
        T = max(T, float((a * traces[k] + (1.0 - a) * traces[other]).max()))
    return T, int(inside.sum()), len(k)


def moment_factor(count: int) -> float:
    """Return the least s count^(1/s) over integers s >= 1.

    Examples
    --------
    >>> moment_factor(1), moment_factor(2), round(moment_factor(100), 3)
    (1.0, 2.0, 12.559)
    """
    _check_numbers(count=count)
    s = np.arange(1, int(np.ceil(np.log(max(count, 2)))) + 2)
    return float((s * count ** (1.0 / s)).min())


def mixing_bound(
    loss: float,
    Lambda: float,
    T: float,
    count: int,
    c: int,
    n: int,
    rho: float = 1.0,
    delta: float = 0.05,
) -> Bound:
    """Return the bound of Theorem 2.

    Parameters
    ----------
    loss : float
        Empirical margin loss at rho.
    Lambda : float
        Largest norm of the c functions.
    T : float
        The trace term of `trace_term`.
    count : int
        |I| + |J|.
    c, n : int
        Numbers of classes and samples.
    rho, delta : float
        Margin of the predictor; probability with which the bound may fail.

    Examples
    --------
    >>> round(mixing_bound(0.1, Lambda=1.0, T=1000.0, count=3, c=2, n=1000).complexity, 4)
    0.448
    """
    _check_numbers(Lambda=Lambda, T=T, n=n)
    rademacher = Lambda / n * np.sqrt(23.0 / 22.0 * T * moment_factor(count))
    return margin_bound(loss, float(rademacher), c, n, rho, delta)


def proposition_bound(margin: float, largest_diagonal: float = 1.0) -> float:
    """Return 1 - margin / 2, Proposition 1's bound on the error of h*, which needs K(x, x) <= 1.

    Parameters
    ----------
    margin : float
        Mean kernel margin gamma.
    largest_diagonal : float
        Largest K(x, x).

    Examples
    --------
    >>> proposition_bound(0.5)
    0.75
    """
    _check_numbers(margin=margin, largest_diagonal=largest_diagonal)
    if largest_diagonal > 1.0 + 1e-9:
        raise ValueError(
            f"Proposition 1 needs a kernel with K(x, x) <= 1. Got one with {largest_diagonal:.6g} instead: use "
            "normalize='cosine', or divide the kernels by that number."
        )
    return 1.0 - 0.5 * margin


def _check_numbers(**values: Any) -> None:
    """Raise one sentence about the first value that is no number; of these only margins may be negative."""
    for name, value in values.items():
        if not is_real(value) or not (value >= 0 or name == "margin"):
            raise ValueError(f"The '{name}' of a bound must be a number of at least 0. Got {value!r} instead.")
