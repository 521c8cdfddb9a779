"""The weights of the largest kernel margin, problem (5) of Cortes, Mohri & Rostamizadeh 2013.

    max  h(beta)     over  beta >= 0,  sum beta = 1    (or ||beta||_q <= 1, q > 1)

h is a sum of concave functions h_g, one for each group of samples, and each h_g is the smallest of many linear
functions, of which few matter. Each round maximises sum_g t_g over t_g <= v_j . beta for the cuts v_j met so far (a
linear programme in HiGHS; for q > 1 a conic one in Clarabel), and adds the cuts of its solution. The programme
bounds the largest margin from above, the margin of the best weights bounds it from below. Where the two bounds meet,
the answer is that of the whole programme with its n(c - 1) rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from multikernel.mixing.base import Mixing
from multikernel.mixing.cones import ACCURACY, ConeRows, solve_conic
from multikernel.mixing.highs import HighsProgramme
from multikernel.mixing.margin_table import MarginTable
from multikernel.mixing.norms import Ball, Simplex, mixing_for

# rounds of cuts for one programme: a guard against rounding that keeps its bounds apart
ROUNDS = 1000


class Programme(ABC):
    """Maximise over beta in the set without margin and t_g <= v_j . beta, sum_g t_g >= level; margins in units of size.

    Parameters
    ----------
    table : MarginTable
        The margins.
    """

    def __init__(self, table: MarginTable) -> None:
        self.table, self.p, self.G = table, table.n_kernels, table.n_groups
        self.V = np.zeros((0, self.p))
        self.groups = np.zeros(0, np.intp)

    def add(self, rows: np.ndarray, groups: np.ndarray) -> None:
        """Add cuts, rows (m, p) in the units of the kernels, and the groups whose margins they bound."""
        self.V = np.vstack([self.V, rows / self.table.size])
        self.groups = np.append(self.groups, groups)

    def value(self, beta: np.ndarray) -> float:
        """Return the margin as the cuts so far have it, an upper bound on h(beta) / size."""
        least = np.full(self.G, np.inf)
        np.minimum.at(least, self.groups, self.V @ beta)
        return float(least.sum())

    def maximise(self, q: np.ndarray | None, level: float = -np.inf) -> tuple[np.ndarray, float, np.ndarray] | None:
        """Maximise q . beta, or the margin for None; return None where the programme was not solved.

        Returns
        -------
        beta : ndarray of shape (p,)
            The solution.
        multiplier : float
            Multiplier of sum_g t_g >= level; one for the margin itself.
        v : ndarray of shape (p,)
            The cut h(b) <= v . b, for every b >= 0, made of the cuts of groups and their multipliers.
        """
        answer = self._maximise(q, level)
        if answer is None:
            return None
        beta, multipliers = answer
        shares = np.bincount(self.groups, multipliers, self.G)
        total = 1.0 if q is None else float(shares.mean())
        # any non-negative multipliers of sum one in each group make a cut
        known = shares > 1e-12 * shares.max(initial=0.0)
        scale = np.divide(1.0, shares, out=np.zeros(self.G), where=known)
        weights = multipliers * scale[self.groups]
        for g in np.flatnonzero(~known):
            weights[np.flatnonzero(self.groups == g)[-1]] = 1.0
        return beta, total, weights @ self.V

    @abstractmethod
    def _maximise(self, q: np.ndarray | None, level: float) -> tuple[np.ndarray, np.ndarray] | None:
        """Return beta and the multipliers of the cuts."""


class LinearProgramme(Programme):
    """Over beta >= 0, sum beta = 1: stays loaded in HiGHS."""

    def __init__(self, table: MarginTable) -> None:
        super().__init__(table)
        p, G = self.p, self.G
        self._lp = HighsProgramme(np.append(np.zeros(p), np.full(G, -np.inf)))
        # row 0: sum beta = 1, row 1: sum_g t_g >= level
        which = np.repeat(np.eye(2), (p, G), axis=1)
        self._lp.add_rows(which, np.array([1.0, -np.inf]), np.array([1.0, np.inf]))

    def add(self, rows, groups):
        m, p = rows.shape
        A = np.hstack([rows / self.table.size, -np.ones((m, 1))])
        columns = np.hstack([np.tile(np.arange(p), (m, 1)), p + groups[:, None]])
        self._lp.add_rows(A, np.zeros(m), np.full(m, np.inf), columns)
        super().add(rows, groups)

    def _maximise(self, q, level):
        p, G = self.p, self.G
        self._lp.set_lower(1, level)
        gain = np.append(np.zeros(p), np.ones(G)) if q is None else np.append(q, np.zeros(G))
        answer = self._lp.minimise(-gain)
        if answer is None:
            return None
        x, multipliers = answer
        return Simplex().scale_to_boundary(np.maximum(x[:p], 0.0)), np.maximum(multipliers[2:], 0.0)


class ConicProgramme(Programme):
    """Over beta >= 0, ||beta||_q <= 1: solved anew by Clarabel each time."""

    def __init__(self, table: MarginTable, norm: float) -> None:
        super().__init__(table)
        self.rows = Ball(norm).cone_rows(table.n_kernels)

    def _maximise(self, q, level):
        m, p, G, width = len(self.V), self.p, self.G, self.rows.A.shape[1]
        t = width + np.arange(G)
        cuts = ConeRows(np.hstack([-self.V, np.eye(G)[self.groups]]), np.zeros(m), (("nonnegative", m),))
        blocks = [(self.rows, np.arange(width)), (cuts, np.append(np.arange(p), t))]
        if level > -np.inf:
            blocks.append((ConeRows(-np.ones((1, G)), np.array([-level]), (("nonnegative", 1),)), t))
        c = np.zeros(width + G)
        if q is None:
            c[t] = -1.0
        else:
            c[:p] = -q
        if (answer := solve_conic(np.zeros(width + G), c, blocks)) is None:
            return None
        x, z = answer
        return np.maximum(x[:p], 0.0), np.maximum(z[1], 0.0)


def programme_for(table: MarginTable, norm: float) -> Programme:
    """Return the programme of a norm."""
    return LinearProgramme(table) if norm == 1 else ConicProgramme(table, norm)


def largest_over(mixing: Mixing, v: np.ndarray) -> float:
    """Return the largest v . beta over the simplex or the ball, whatever the signs of v."""
    return float(v.max()) if mixing.norm == 1 else mixing.support(np.maximum(v, 0.0))[0]


@dataclass(frozen=True, eq=False)
class Largest:
    """The largest margin.

    Attributes
    ----------
    value : float
        h(weights).
    bound : float
        Upper bound on the largest margin.
    weights : ndarray of shape (p,)
        Weights that attain ``value``.
    cut : ndarray of shape (p,)
        v with h(b) <= v . b for every b >= 0, whose largest value over the set is ``bound``.
    rows, groups : ndarrays of shape (m, p) and (m,)
        The cuts of groups met on the way.
    """

    value: float
    bound: float
    weights: np.ndarray
    cut: np.ndarray
    rows: np.ndarray
    groups: np.ndarray

    @property
    def positive(self) -> bool:
        """Whether some weights have a positive margin, beyond rounding."""
        return self.value > 1e-9 * float(np.abs(self.cut).max())


def largest_margin(table: MarginTable, norm: float = 1.0) -> Largest:
    """Return the weights of the largest margin.

    Parameters
    ----------
    table : MarginTable
        The margins.
    norm : float
        Norm of the weights, 1 or more.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.mixing import largest_margin, margin_table
    >>> X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> table = margin_table(DenseGram(np.stack([X @ X.T, np.eye(4)])), np.array([0, 0, 1, 1]))
    >>> largest_margin(table).weights, largest_margin(table, norm=2.0).weights.round(5)
    (array([1., 0.]), array([0.89443, 0.44721]))
    """
    mixing, size = mixing_for(norm), table.size
    best = mixing.start(table.n_kernels)
    value, rows, groups = table.cuts(best)
    # one cut of each group: their sum bounds the margin from above, and for an only kernel is the margin
    cut = rows[np.unique(groups, return_index=True)[1]].sum(axis=0)
    bound = largest_over(mixing, cut) if table.n_kernels > 1 else value
    programme = programme_for(table, norm)
    programme.add(rows, groups)
    for _ in range(ROUNDS if table.n_kernels > 1 else 0):
        answer = programme.maximise(None)
        if answer is None:
            break
        target, _, v = answer
        if size * largest_over(mixing, v) < bound:
            bound, cut = size * largest_over(mixing, v), size * v
        if bound - value <= ACCURACY * size:
            break
        now, rows, groups = table.cuts(target)
        programme.add(rows, groups)
        if norm > 1 and now > 0:
            # longer weights have a larger margin
            longer = mixing.scale_to_boundary(target)
            now, target = now * float(np.linalg.norm(longer) / np.linalg.norm(target)), longer
        if now > value:
            value, best = now, target
    return Largest(value, max(bound, value), best, cut, size * programme.V, programme.groups)
