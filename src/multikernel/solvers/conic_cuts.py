"""Masters over cuts as conic programmes, by Clarabel, and the units in which masters are solved.

The set B of weights enters as the rows that its mixing describes (``cone_rows``) and those met on the way, so that
nothing here knows which norm it is. Answers are never trusted: weights are put back into B, and multipliers give bounds
that hold however exactly the programme was solved.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from multikernel.mixing.base import NEGLIGIBLE, HasConeRows, KeptRows, Mixing
from multikernel.mixing.cones import ConeRows, solve_conic

# weights and multipliers of the cuts
Answer = tuple[np.ndarray, np.ndarray]


def solve_in_own_units(
    g: np.ndarray, Q: np.ndarray, start: np.ndarray, solve: Callable[[np.ndarray, np.ndarray], Answer | None]
) -> Answer | None:
    """Minimise theta over cuts, theta in units of its own size, which is known once the master was solved.

    Parameters
    ----------
    g, Q : ndarrays of shape (T,) and (T, p)
        The cuts theta >= g_t - 1/2 beta'q_t.
    start : ndarray of shape (p,)
        Weights at which the size is taken first.
    solve : callable
        Takes A and b, minimises theta over A (beta, theta) <= b and beta in B; returns the weights and the multipliers
        of these rows, or None where it fails.

    Returns
    -------
    (beta, multipliers), the last answer; or None where there is none.
    """
    answer, unit = None, _size(g, Q, start)
    for _ in range(4):
        # each cut in units of its own largest coefficient
        row = np.maximum(1.0, 0.5 * Q.max(axis=1) / unit)
        found = solve(-np.column_stack([0.5 * Q / unit, np.ones(len(g))]) / row[:, None], -g / (unit * row))
        if found is None:
            break
        answer = found[0], np.maximum(found[1], 0.0) / row
        size = _size(g, Q, found[0])
        if 0.1 * unit < size < 10.0 * unit:
            break
        unit = size
    return answer


def _size(g: np.ndarray, Q: np.ndarray, beta: np.ndarray) -> float:
    """Size of the model at beta."""
    return abs(float(np.max(g - 0.5 * Q @ beta))) or 1.0


def minimise_conic(g: np.ndarray, Q: np.ndarray, mixing: Mixing, kept: KeptRows | None = None) -> Answer | None:
    """Minimise theta over theta >= g_t - 1/2 beta'q_t, beta in B, by Clarabel; None where it fails.

    Returns weights on the boundary of B, and multipliers of the cuts, not negative, which sum to one up to the solver's
    accuracy. Rows of B met on the way are added to ``kept``.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.mixing.norms import Ball
    >>> beta, multipliers = minimise_conic(np.array([1.0]), np.array([[3.0, 4.0]]), Ball(2.0))
    >>> beta.round(5), multipliers.round(5)
    (array([0.6, 0.8]), array([1.]))
    """
    assert isinstance(mixing, HasConeRows)
    p, weights = Q.shape[1], mixing.cone_rows(Q.shape[1])
    m, rows = weights.A.shape[1], kept or KeptRows(mixing)
    theta = np.eye(1, m + 1, m)[0]

    def solve(A: np.ndarray, b: np.ndarray) -> Answer | None:
        cuts = (ConeRows(A, b, (("nonnegative", len(b)),)), np.append(np.arange(p), m))
        while True:
            blocks = [(weights, np.arange(m)), (rows.as_cones(p), np.arange(p)), cuts]
            if (found := solve_conic(np.zeros(m + 1), theta, blocks)) is None:
                return None
            x, (_, _, z) = found
            if not rows.add_violated(x[:p]):
                return boundary_point(x[:p], mixing), z

    return solve_in_own_units(g, Q, mixing.start(p), solve)


def boundary_point(beta: np.ndarray, mixing: Mixing) -> np.ndarray:
    """Return the point on the boundary of B that an inexact beta stands for, negligible weights left out."""
    return mixing.scale_to_boundary(np.where(beta > NEGLIGIBLE * max(beta.max(), 0.0), beta, 0.0))


def project_to_level(
    beta0: np.ndarray, g: np.ndarray, Q: np.ndarray, level: float, mixing: Mixing, kept: KeptRows | None = None
) -> np.ndarray | None:
    """Return the point of B nearest to ``beta0`` at which every cut g_t - 1/2 beta'q_t is at most ``level``.

    None where Clarabel fails.
    The point is scaled to the boundary of B, where no cut is larger. Rows of B met on the way are added to ``kept``.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.mixing.norms import Simplex
    >>> uniform = np.array([0.5, 0.5])
    >>> project_to_level(uniform, np.array([2.0]), np.array([[0.0, 4.0]]), 0.5, Simplex()).round(5)
    array([0.25, 0.75])
    """
    assert isinstance(mixing, HasConeRows)
    T, p = Q.shape
    unit = np.maximum(np.abs(g - level), 0.5 * Q.max(axis=1))
    unit[unit == 0] = 1.0
    cuts = ConeRows(-0.5 * Q / unit[:, None], (level - g) / unit, (("nonnegative", T),))
    weights, rows = mixing.cone_rows(p), kept or KeptRows(mixing)
    m = weights.A.shape[1]
    # 1/2 |beta - beta0|^2, the auxiliary variables free of charge
    P, c = np.append(np.ones(p), np.zeros(m - p)), np.append(-beta0, np.zeros(m - p))
    while True:
        blocks = [(weights, np.arange(m)), (cuts, np.arange(p)), (rows.as_cones(p), np.arange(p))]
        if (found := solve_conic(P, c, blocks)) is None:
            return None
        if not rows.add_violated(found[0][:p]):
            return boundary_point(found[0][:p], mixing)
