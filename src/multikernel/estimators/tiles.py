"""Raw kernels of a bank on its training samples, tile by tile, in parallel.

A tile is a block K[I, J] with I <= J: its transpose is the block K[J, I], so each value is computed once,
kernels of one family share their distances within a tile, and no more than a few tiles are in memory beside
the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from multikernel.kernels.bank import KernelBank, take_rows
from multikernel.threads import Team


def compute_tiles(
    bank: KernelBank,
    X,
    kernels: Sequence[int],
    weight: np.ndarray,
    team: Team,
    out: Sequence[np.ndarray] | None = None,
) -> np.ndarray:
    """Compute kernels on the training samples.

    Parameters
    ----------
    bank : KernelBank
        Fitted kernels.
    X : array, sparse matrix or data frame
        The n training samples.
    kernels : sequence of int
        Which of them.
    weight : ndarray of shape (n,)
        A vector w.
    team : Team
        Threads.
    out : sequence of ndarrays of shape (n, n), optional
        Where each kernel goes, in its precision; without it they are not kept.

    Returns
    -------
    ndarray of shape (len(kernels), n)
        The products K_k w, accumulated in float64.
    """
    n = len(weight)
    if not len(kernels):
        return np.zeros((0, n))
    size = 256 if n <= 4096 else 512
    blocks = [slice(i, min(i + size, n)) for i in range(0, n, size)]
    tiles = [(rows, cols) for i, rows in enumerate(blocks) for cols in blocks[i:]]
    parts = min(team.n_threads, len(tiles))
    return sum(
        team.run(
            partial(_some_tiles, bank, X, [int(k) for k in kernels], weight, out, tiles[t::parts]) for t in range(parts)
        )
    )


def _some_tiles(bank, X, kernels, weight, out, tiles) -> np.ndarray:
    products = np.zeros((len(kernels), len(weight)))
    place = {k: j for j, k in enumerate(kernels)}
    for rows, cols in tiles:
        left = take_rows(X, rows)
        right = None if rows is cols else take_rows(X, cols)
        for k, K in bank.raw_each(left, right, kernels):
            j = place[k]
            products[j, rows] += K @ weight[cols]
            if out is not None:
                out[j][rows, cols] = K
            if right is not None:
                products[j, cols] += weight[rows] @ K
                if out is not None:
                    out[j][cols, rows] = K.T
    return products
