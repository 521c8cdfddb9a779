"""Raw kernels of a bank on its training samples, tile by tile, in parallel.

A tile is a block K[I, J] with I <= J: its transpose is the block K[J, I], so each value is computed once,
kernels of one family share their distances within a tile, and no more than a few tiles are in memory beside
the result. Products with a vector need no more than the tiles in which it is not zero: samples outside of it come last,
and tiles between two of them are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from multikernel.gram.dense_loops import add_both_sides
from multikernel.kernels.bank import KernelBank, take_rows
from multikernel.threads import Team


def compute_tiles(
    bank: KernelBank,
    X,
    kernels: Sequence[int],
    weight: np.ndarray,
    team: Team,
    out: Sequence[np.ndarray] | None = None,
    dtype: np.dtype | type = np.float64,
    factors: np.ndarray | None = None,
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
    weight : ndarray of shape (n,) or (n, c)
        A vector w, or several.
    team : Team
        Threads.
    out : sequence of ndarrays of shape (n, n), optional
        Where each kernel goes, in its precision; without it they are not kept.
    dtype : dtype
        Precision of the values that are not kept.
    factors : ndarray of shape (len(kernels), n), optional
        Factors u_k of the samples, one by default.

    Returns
    -------
    ndarray of shape (len(kernels), n) or (len(kernels), n, c)
        The products K_k (u_k w), accumulated in float64.
    """
    n, p = len(weight), len(kernels)
    if not p:
        return np.zeros((0, *weight.shape))
    weight = np.array(weight, np.float64)
    order, m = np.arange(n), n
    if out is None:
        some = weight.reshape(n, -1).any(axis=1)
        order, m = np.argsort(~some, kind="stable"), int(some.sum())
    if m < n:
        X, weight = take_rows(X, order), weight[order]
        factors = None if factors is None else factors[:, order]
    size = 256 if n <= 4096 else 512
    inside = [slice(i, min(i + size, m)) for i in range(0, m, size)]
    blocks = [*inside, *(slice(i, min(i + size, n)) for i in range(m, n, size))]
    tiles = [(rows, cols) for i, rows in enumerate(inside) for cols in blocks[i:]]
    parts = max(1, min(team.n_threads, len(tiles)))
    work = partial(_some_tiles, bank, X, [int(k) for k in kernels], weight, factors, out, dtype)
    products = sum(team.run(partial(work, tiles[t::parts]) for t in range(parts)))
    if m == n:
        return products
    ordered = np.empty_like(products)
    ordered[:, order] = products
    return ordered


def _some_tiles(bank, X, kernels, weight, factors, out, dtype, tiles) -> np.ndarray:
    products = np.zeros((len(kernels), *weight.shape))
    place = {k: j for j, k in enumerate(kernels)}
    asked = weight.any()
    for rows, cols in tiles:
        left = take_rows(X, rows)
        right = None if rows is cols else take_rows(X, cols)
        for k, K in bank.raw_each(left, right, kernels, np.float64 if out is not None else dtype):
            j = place[k]
            if asked:
                w = _scaled(weight, factors, j)
                _multiply(np.ascontiguousarray(K), w, rows, None if right is None else cols, products[j])
            if out is not None:
                out[j][rows, cols] = K
                if right is not None:
                    out[j][cols, rows] = K.T
    return products


def _scaled(weight: np.ndarray, factors: np.ndarray | None, j: int) -> np.ndarray:
    """Return u_k w for the j-th of the kernels."""
    return weight if factors is None else factors[j].reshape(-1, *[1] * (weight.ndim - 1)) * weight


def _multiply(K: np.ndarray, w: np.ndarray, rows: slice, cols: slice | None, product: np.ndarray) -> None:
    """Add what a tile, and its transpose where it is not on the diagonal (None), brings to a product."""
    if cols is None:
        product[rows] += K.astype(np.float64, copy=False) @ w[rows]
    elif product.ndim == 1:
        add_both_sides(K, w[rows], w[cols], product[cols], product[rows])
    else:
        K = K.astype(np.float64, copy=False)
        product[rows] += K @ w[cols]
        product[cols] += K.T @ w[rows]
