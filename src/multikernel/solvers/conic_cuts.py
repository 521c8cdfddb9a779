"""Masters over cuts as conic programmes, by Clarabel.

The set B of weights enters as the rows that its mixing describes (``cone_rows``), so that nothing here knows which norm
it is. Answers are never trusted: weights are put back into B, and multipliers give bounds that hold however exactly the
programme was solved.
"""

from __future__ import annotations

import numpy as np

from multikernel.mixing.base import Mixing
from multikernel.mixing.cones import ConeRows, solve_conic

# weights below this fraction of the largest are zero as far as an interior-point method can tell
_NEGLIGIBLE = 1e-8


def minimise_conic(g: np.ndarray, Q: np.ndarray, mixing: Mixing) -> tuple[np.ndarray, np.ndarray]:
    """Minimise theta over theta >= g_t - 1/2 beta'q_t, beta in B.

    Parameters
    ----------
    g : ndarray of shape (T,)
        Constants of the cuts.
    Q : ndarray of shape (T, p)
        Their quadratic forms, one row a cut.
    mixing : Mixing
        The set B.

    Returns
    -------
    beta : ndarray of shape (p,)
        Weights on the boundary of B.
    multipliers : ndarray of shape (T,)
        Multipliers of the cuts, not negative; they sum to one up to the solver's accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.mixing.norms import Ball
    >>> beta, multipliers = minimise_conic(np.array([1.0]), np.array([[3.0, 4.0]]), Ball(2.0))
    >>> beta.round(5), multipliers.round(5)
    (array([0.6, 0.8]), array([1.]))
    """
    T, p = Q.shape
    beta = mixing.start(p)
    # theta is measured in units of its own size, which is known when the programme was solved once
    unit, attempts = _size(g, Q, beta), 0
    while attempts < 4:
        weights = mixing.cone_rows(p)
        m = weights.A.shape[1]
        theta = np.eye(1, m + 1, m)[0]
        # and each cut in units of its own largest coefficient
        row = np.maximum(1.0, 0.5 * Q.max(axis=1) / unit)
        A = -np.hstack([0.5 * Q / unit, np.ones((T, 1))]) / row[:, None]
        cuts = ConeRows(A, -g / (unit * row), (("nonnegative", T),))
        x, (_, z) = solve_conic(np.zeros(m + 1), theta, [(weights, np.arange(m)), (cuts, np.append(np.arange(p), m))])
        if mixing.separate(np.maximum(x[:p], 0.0)):
            continue
        attempts += 1
        beta = boundary_point(x[:p], mixing)
        size = _size(g, Q, beta)
        if 0.1 * unit < size < 10.0 * unit:
            break
        unit = size
    return beta, np.maximum(z, 0.0) / row


def _size(g: np.ndarray, Q: np.ndarray, beta: np.ndarray) -> float:
    """Size of the model at beta."""
    return abs(float(np.max(g - 0.5 * Q @ beta))) or 1.0


def boundary_point(beta: np.ndarray, mixing: Mixing) -> np.ndarray:
    """Return the point on the boundary of B that an inexact beta stands for, negligible weights left out."""
    return mixing.scale_to_boundary(np.where(beta > _NEGLIGIBLE * max(beta.max(), 0.0), beta, 0.0))


def project_to_level(beta0: np.ndarray, g: np.ndarray, Q: np.ndarray, level: float, mixing: Mixing) -> np.ndarray:
    """Return the point of B nearest to ``beta0`` at which every cut g_t - 1/2 beta'q_t is at most ``level``.

    It is scaled to the boundary of B, where no cut is larger.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.mixing.norms import Simplex
    >>> uniform = np.array([0.5, 0.5])
    >>> project_to_level(uniform, np.array([2.0]), np.array([[0.0, 4.0]]), 0.5, Simplex()).round(5)
    array([0.25, 0.75])
    """
    T, p = Q.shape
    unit = np.maximum(np.abs(g - level), 0.5 * Q.max(axis=1))
    unit[unit == 0] = 1.0
    cuts = ConeRows(-0.5 * Q / unit[:, None], (level - g) / unit, (("nonnegative", T),))
    while True:
        weights = mixing.cone_rows(p)
        m = weights.A.shape[1]
        # 1/2 |beta - beta0|^2, the auxiliary variables free of charge
        P = np.append(np.ones(p), np.zeros(m - p))
        c = np.append(-beta0, np.zeros(m - p))
        x, _ = solve_conic(P, c, [(weights, np.arange(m)), (cuts, np.arange(p))])
        if not mixing.separate(np.maximum(x[:p], 0.0)):
            return boundary_point(x[:p], mixing)
