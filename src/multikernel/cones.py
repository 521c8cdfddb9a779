"""Masters over cuts and whole problems as conic programmes, by Clarabel.

    min  1/2 x'Px + c'x     over  b - A x in a product of cones

The set B of weights enters as the rows that its mixing describes (``cone_rows``), so that nothing here
knows which norm it is. Clarabel is imported when a programme is solved. Its answers are never trusted:
weights are put back into B, and multipliers give bounds that hold however exactly the programme was solved.
"""

from __future__ import annotations

import numpy as np

from multikernel.mixing import ConeRows, Mixing

# relative accuracy asked of the solver; it may stop earlier with what it has
_ACCURACY = 1e-10
# weights below this fraction of the largest are zero as far as an interior-point method can tell
_NEGLIGIBLE = 1e-8


def solve_conic(
    P: np.ndarray, c: np.ndarray, blocks: list[tuple[ConeRows, np.ndarray]]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Minimise 1/2 x'Px + c'x over blocks of rows.

    Parameters
    ----------
    P : ndarray of shape (m,) or (m, m)
        Quadratic term: its diagonal, or the whole symmetric matrix.
    c : ndarray of shape (m,)
        Linear term.
    blocks : list of (ConeRows, ndarray of int)
        Rows, and the variables that their columns stand for.

    Returns
    -------
    x : ndarray of shape (m,)
        Minimiser, as far as the solver came.
    z : list of ndarrays
        Multipliers of each block.

    Examples
    --------
    >>> import numpy as np
    >>> half = ConeRows(-np.eye(2), -np.array([1.0, 2.0]), (("nonnegative", 2),))
    >>> x, (z,) = solve_conic(np.zeros(2), np.array([1.0, 3.0]), [(half, np.arange(2))])
    >>> x.round(6), z.round(6)
    (array([1., 2.]), array([1., 3.]))
    """
    import clarabel
    from scipy import sparse

    kinds = {
        "zero": clarabel.ZeroConeT,
        "nonnegative": clarabel.NonnegativeConeT,
        "second_order": clarabel.SecondOrderConeT,
        "power": clarabel.PowerConeT,
    }
    parts = []
    for rows, columns in blocks:
        part = sparse.coo_matrix(rows.A)
        parts.append(sparse.coo_matrix((part.data, (part.row, columns[part.col])), (part.shape[0], len(c))))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _ACCURACY
    # every programme here is feasible and bounded
    settings.tol_infeas_abs = settings.tol_infeas_rel = 1e-300
    answer = clarabel.DefaultSolver(
        sparse.diags_array(P, format="csc") if P.ndim == 1 else sparse.csc_array(np.triu(P)),
        c,
        sparse.vstack(parts, format="csc"),
        np.concatenate([rows.b for rows, _ in blocks]),
        [kinds[name](size) for rows, _ in blocks for name, size in rows.cones],
        settings,
    ).solve()
    edges = np.cumsum([len(rows.b) for rows, _ in blocks])[:-1]
    return np.nan_to_num(np.array(answer.x)), np.split(np.nan_to_num(np.array(answer.z)), edges)


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
    >>> from multikernel.mixing import Ball
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
    return mixing.saturate(np.where(beta > _NEGLIGIBLE * max(beta.max(), 0.0), beta, 0.0))


def project_to_level(beta0: np.ndarray, g: np.ndarray, Q: np.ndarray, level: float, mixing: Mixing) -> np.ndarray:
    """Return the point of B nearest to ``beta0`` at which every cut g_t - 1/2 beta'q_t is at most ``level``.

    It is scaled to the boundary of B, where no cut is larger.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.mixing import Simplex
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
