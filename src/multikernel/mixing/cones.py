"""Conic programmes by Clarabel.

    min  1/2 x'Px + c'x     over  b - A x in a product of cones

Clarabel is imported when a programme is solved. A point at which it gave up is not used. Other answers are not trusted
either: callers put weights back into their set, and use multipliers only for bounds that hold however exactly the
programme was solved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ConeRows:
    """A convex set as rows of a conic programme: b - A x in the product of ``cones``.

    Attributes
    ----------
    A : ndarray or sparse array of shape (m, n_variables)
        Coefficients; the first columns stand for the variables of the set, the rest for auxiliary ones.
    b : ndarray of shape (m,)
        Constants.
    cones : tuple of (name, size)
        In the order of the rows: ("zero", m), ("nonnegative", m), ("second_order", m), or ("power", alpha)
        for the three rows of {(x, y, z): x^alpha y^(1 - alpha) >= |z|}.
    """

    A: Any
    b: np.ndarray
    cones: tuple[tuple[str, float], ...]


# accuracy asked of linear and conic programmes: smaller numbers take longer and are lost to rounding
ACCURACY = 1e-10


def solve_conic(
    P: np.ndarray, c: np.ndarray, blocks: list[tuple[ConeRows, np.ndarray]]
) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """Minimise 1/2 x'Px + c'x over blocks of rows; None where Clarabel gives up, also with costs of size one.

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
        Minimiser.
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
    # one matrix from all entries: with blocks of SciPy this takes longer than the solver
    edges = np.cumsum([0, *[len(rows.b) for rows, _ in blocks]])
    entries = []
    for (rows, columns), first in zip(blocks, edges, strict=False):
        part = rows.A.tocoo() if sparse.issparse(rows.A) else None
        i, j = np.nonzero(rows.A) if part is None else (part.row, part.col)
        entries.append((rows.A[i, j] if part is None else part.data, i + first, columns[j]))
    data, i, j = (np.concatenate(each) for each in zip(*entries, strict=True))
    m, settings = len(c), clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = ACCURACY
    # every programme here is feasible and bounded
    settings.tol_infeas_abs = settings.tol_infeas_rel = 1e-300
    A, b = sparse.csc_array((data, (i, j)), (edges[-1], m)), np.concatenate([rows.b for rows, _ in blocks])
    cones = [kinds[name](size) for rows, _ in blocks for name, size in rows.cones if size]
    largest = max(float(np.abs(P).max()), float(np.abs(c).max()))
    for unit in (1.0, largest) if 0.0 < largest < np.inf else (1.0,):
        costs = P / unit
        H = sparse.diags_array(costs, format="csc") if P.ndim == 1 else sparse.csc_array(np.triu(costs))
        answer = clarabel.DefaultSolver(H, c / unit, A, b, cones, settings).solve()
        x, z = np.array(answer.x), unit * np.array(answer.z)
        solved = answer.status in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
        if solved and np.isfinite(x).all() and np.isfinite(z).all():
            return x, np.split(z, edges[1:-1])
    return None
