"""Pairs of samples as instances: z_ij = (K_1(x_i, x_j), ..., K_p(x_i, x_j)), labelled +1 within a class and -1 between.

The n^2 ordered pairs are taken as i <= j, off the diagonal twice; a pair costs w_i w_j. They come either as a drawn
sample, gathered in one pass over the stack, or all of them, block of rows by block of rows on every reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from multikernel.estimators.baselines.weights import TargetValues, row_blocks
from multikernel.gram.base import Gram

# values (m, p), labels and costs of m pairs, and their positions among all pairs
Block = tuple[np.ndarray, np.ndarray, np.ndarray, slice]


def kind_shares(targets: TargetValues, balanced: bool) -> np.ndarray:
    """Return the total cost of the pairs between classes and within them: one half each, or their shares."""
    if balanced:
        return np.array([0.5, 0.5])
    sums = np.bincount(targets.values, targets.weight)
    within = float(np.sum((sums / sums.sum()) ** 2))
    return np.array([1.0 - within, within])


@dataclass(frozen=True)
class AllPairs:
    """Every pair, read anew from the Gram each time."""

    gram: Gram
    targets: TargetValues
    balanced: bool

    def __len__(self) -> int:
        n = self.gram.n_samples
        return n * (n + 1) // 2

    def __iter__(self) -> Iterator[Block]:
        y, w, n = self.targets.values, self.targets.weight, self.gram.n_samples
        sums = np.bincount(y, w)
        within = float(np.sum(sums**2))
        totals = np.array([float(w.sum()) ** 2 - within, within])
        factor = kind_shares(self.targets, self.balanced) / totals
        done = 0
        for rows in row_blocks(self.gram, np.arange(n)):
            block = self.gram.rows(rows)
            i = np.repeat(np.arange(len(rows)), n - rows)
            j = np.concatenate([np.arange(row, n) for row in rows])
            same = y[rows[i]] == y[j]
            cost = w[rows[i]] * w[j] * np.where(rows[i] == j, 1.0, 2.0) * factor[same.astype(int)]
            yield np.ascontiguousarray(block[:, i, j].T), np.where(same, 1.0, -1.0), cost, slice(done, done + len(i))
            done += len(i)


@dataclass(frozen=True)
class DrawnPairs:
    """A sample of pairs, kept in the precision of the Gram."""

    Z: np.ndarray
    labels: np.ndarray
    costs: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Block]:
        yield self.Z, self.labels, self.costs, slice(0, len(self.labels))


def draw_pairs(gram: Gram, targets: TargetValues, count: int, balanced: bool, rng: np.random.RandomState) -> DrawnPairs:
    """Draw pairs without replacement: equal numbers within and between classes where balanced.

    Parameters
    ----------
    gram : Gram
        The kernels.
    targets : TargetValues
        Classes and sample weights.
    count : int
        Number of pairs, at most.
    balanced : bool
        Whether pairs within and between classes have the same total cost.
    rng : RandomState
        Source of the draw.
    """
    y, w = targets.values, targets.weight
    sizes = np.bincount(y)
    within = int(np.sum(sizes * (sizes + 1) // 2))
    there = np.array([len(y) * (len(y) + 1) // 2 - within, within])
    part = np.array([0.5, 0.5]) if balanced else there / there.sum()
    wanted = np.minimum(np.maximum(1, (part * count).astype(int)), there)
    pairs = [_draw(y, bool(same), int(wanted[same]), int(there[same]), rng) for same in (0, 1)]
    labels = np.repeat([-1.0, 1.0], wanted)
    i, j = np.concatenate(pairs, axis=1)
    order = rng.permutation(len(labels))
    i, j, labels = i[order], j[order], labels[order]
    costs = w[i] * w[j] * np.where(i == j, 1.0, 2.0)
    for sign, share in zip((-1.0, 1.0), kind_shares(targets, balanced), strict=True):
        costs[labels == sign] *= share / costs[labels == sign].sum()
    return DrawnPairs(_gather(gram, i, j), labels, costs)


def _draw(y: np.ndarray, same: bool, wanted: int, there: int, rng: np.random.RandomState) -> np.ndarray:
    """Return (i, j), i <= j, of ``wanted`` different pairs of one kind."""
    n = len(y)
    if 2 * wanted > there:
        partners = [i + np.flatnonzero((y[i:] == y[i]) == same) for i in range(n)]
        every = np.array([np.repeat(np.arange(n), [len(each) for each in partners]), np.concatenate(partners)])
        return every if wanted == there else every[:, np.sort(rng.permutation(there)[:wanted])]
    found = np.zeros(0, np.int64)
    while len(found) < wanted:
        i, j = np.sort(rng.randint(n, size=(2, 2 * wanted)), axis=0)
        # a pair off the diagonal can be drawn in two orders, one on the diagonal in one
        once = (i != j) | (rng.rand(len(i)) < 0.5)
        fits = ((y[i] == y[j]) == same) & once
        found = np.unique(np.concatenate([found, i[fits] * n + j[fits]]))
    return np.array(np.divmod(found[rng.permutation(len(found))[:wanted]], n))


def _gather(gram: Gram, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return the entries (i, j) of all kernels, shape (m, p)."""
    Z = np.empty((len(i), gram.n_kernels), gram.dtype)
    order = np.argsort(i, kind="stable")
    for rows in row_blocks(gram, np.unique(i)):
        first = np.searchsorted(i, rows[0], "left", sorter=order)
        at = order[first : np.searchsorted(i, rows[-1], "right", sorter=order)]
        Z[at] = gram.rows(rows)[:, np.searchsorted(rows, i[at]), j[at]].T
    return Z
