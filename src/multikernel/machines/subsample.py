"""A smaller problem of the same kind: some of the samples, their costs raised so that every class keeps its total.

    C_i' = C_i (sum of C over the class of i) / (sum of C over the chosen samples of that class)

Its solution is no solution of the whole problem, but tells which kernels are likely to have weight there.
"""

from __future__ import annotations

import numpy as np


def draw_samples(classes: np.ndarray, cost: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Choose about ``size`` samples at random, the same in every run, and their costs.

    Parameters
    ----------
    classes : ndarray of shape (n,)
        Class of each sample; rare ones are drawn more often, up to a quarter of all that are chosen.
    cost : ndarray of shape (n,)
        Costs C.
    size : int
        How many.

    Returns
    -------
    idx : ndarray of int
        The chosen samples, sorted.
    cost : ndarray of shape (len(idx),)
        Their costs.

    Examples
    --------
    >>> import numpy as np
    >>> idx, cost = draw_samples(np.repeat([0, 1], [90, 10]), np.ones(100), 20)
    >>> len(idx), float(cost.sum().round()), cost[-4:]
    (20, 100.0, array([2.5, 2.5, 2.5, 2.5]))
    """
    order, cost = np.random.default_rng(0).permutation(len(cost)), np.array(cost, float)
    values, counts = np.unique(classes, return_counts=True)
    share = np.maximum(counts / len(cost), min(0.25, 1.0 / len(values)))
    sizes = np.clip(np.round(size * share / share.sum()).astype(int), 1, counts)
    chosen = []
    for value, m in zip(values, sizes, strict=True):
        members = order[classes[order] == value]
        cost[members[:m]] *= cost[members].sum() / cost[members[:m]].sum()
        chosen.append(members[:m])
    idx = np.sort(np.concatenate(chosen))
    return idx, cost[idx]
