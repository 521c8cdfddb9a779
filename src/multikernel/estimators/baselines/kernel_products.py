"""Inner products of centred kernels, two passes over the stack and no centred copy of it.

    M_kl = sum_ij w_i w_j K~_k,ij K~_l,ij        K~_ij = K_ij - r_i - r_j + t,    r = K w / |w|,  t = w'r / |w|
    a_k  = sum_ij w_i w_j K~_k,ij <T_i, T_j>     |w| = sum_i w_i

w are the sample weights. The first pass gives r and a, the second takes tiles of the upper triangle, centres them in
float64 and multiplies them as one matrix (kernels by entries) with itself: p^2 n^2 / 2 products. All kernels are
divided by the same power of two, next to their largest diagonal entry: products of large or small entries neither
overflow nor vanish. Quotients a_k / sqrt(M_kk), and weights up to a common factor, do not depend on it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import frexp

import numpy as np
from numba import njit

from multikernel.estimators.baselines.messages import Tell, silent
from multikernel.estimators.baselines.weights import rows_at_once, team_of
from multikernel.gram.base import Gram
from multikernel.threads import BLOCK_BYTES


@dataclass(frozen=True)
class Products:
    """Inner products of kernels with each other, M of shape (p, p) or only its diagonal, and with the targets, a.

    All kernels are multiplied by the power of two ``unit``.
    """

    M: np.ndarray
    a: np.ndarray
    unit: float


def kernel_products(
    gram: Gram,
    T: np.ndarray,
    weight: np.ndarray,
    *,
    centred: bool = True,
    cross: bool = True,
    tell: Tell = silent,
) -> Products:
    """Multiply kernels, divided by one power of two, with each other and with the target kernel T T'.

    Parameters
    ----------
    gram : Gram
        The kernels.
    T : ndarray of shape (n, m)
        Factor of the target kernel; with ``centred`` its columns have the weighted mean zero.
    weight : ndarray of shape (n,)
        Positive sample weights.
    centred : bool
        Whether kernels are centred.
    cross : bool
        Whether products of different kernels are wanted; else M is the vector of squared norms.
    tell : callable
        Told how many rows are done.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> x = np.array([[-1.0], [0.0], [1.0]])
    >>> kernel_products(DenseGram((x @ x.T)[None]), x, np.ones(3)).M        # of x x' / 2
    array([[1.]])
    """
    V = weight[:, None] * T
    F = gram.apply(np.column_stack([weight, V]) if centred else V)
    unit = 2.0 ** -max(frexp(np.abs(gram.diag()).max())[1], sys.float_info.min_exp)
    a = np.einsum("knm,nm->k", unit * F[:, :, -V.shape[1] :], V)
    matrices, scale = _stored(gram)
    shift = np.zeros((gram.n_kernels, gram.n_samples))
    if centred:
        # K~_ij = s (K_ij - shift_i - shift_j)
        total = weight.sum()
        np.divide(F[:, :, 0], total * scale[:, None], out=shift, where=scale[:, None] != 0)
        shift -= 0.5 * (shift @ weight / total)[:, None]
    root = None if np.all(weight == 1.0) else np.sqrt(weight)
    M = np.zeros((len(scale),) * (2 if cross else 1))
    team = team_of(gram)
    each = team.n_threads
    for tiles in _tiles(gram, matrices):
        M += sum(team.run(partial(_products, tiles[t::each], shift, unit * scale, root, cross) for t in range(each)))
        # the first tile lies on the diagonal
        tell({"done": tiles[0][2].stop, "of": gram.n_samples, "parts": "rows"})
    return Products(M, a, unit)


# a tile: the matrices that it is read from, the number of their first row, its rows and columns, how often it counts
Tile = tuple[Sequence[np.ndarray] | np.ndarray, int, slice, slice, float]


def _stored(gram: Gram) -> tuple[list[np.ndarray] | None, np.ndarray]:
    """Return the matrices that lie in memory and their factors; None and ones where rows have to be asked for."""
    direct = [found for k in range(gram.n_kernels) if (found := gram.stored(k)) is not None]
    if len(direct) < gram.n_kernels:
        return None, np.ones(gram.n_kernels)
    return [matrix for matrix, _ in direct], np.array([factor for _, factor in direct])


def _tiles(gram: Gram, matrices: list[np.ndarray] | None) -> Iterator[list[Tile]]:
    """Yield groups of tiles that cover the upper triangle, some rows each."""
    p, n = gram.n_kernels, gram.n_samples
    size = max(16, int(np.sqrt(BLOCK_BYTES / (8 * p))))
    if matrices is not None:
        for lo in range(0, n, size):
            yield [(matrices, 0, *tile) for tile in _row_tiles(lo, min(lo + size, n), n, size)]
        return
    step = min(rows_at_once(gram), size)
    for lo in range(0, n, step):
        hi = min(lo + step, n)
        block = gram.rows(np.arange(lo, hi))
        yield [(block, lo, *tile) for tile in _row_tiles(lo, hi, n, size * size // step)]


def _row_tiles(lo: int, hi: int, n: int, wide: int) -> Iterator[tuple[slice, slice, float]]:
    """Cut rows of the upper triangle into tiles: the square on the diagonal counts once, tiles right of it twice."""
    yield slice(lo, hi), slice(lo, hi), 1.0
    for first in range(hi, n, wide):
        yield slice(lo, hi), slice(first, min(first + wide, n)), 2.0


def _products(
    tiles: Sequence[Tile], shift: np.ndarray, scale: np.ndarray, root: np.ndarray | None, cross: bool
) -> np.ndarray:
    """Centre and scale tiles of all kernels in float64, multiply each with itself, and add up."""
    p = len(shift)
    M = np.zeros((p, p) if cross else p)
    space = np.empty(p * max(((r.stop - r.start) * (c.stop - c.start) for _, _, r, c, _ in tiles), default=0))
    for matrices, first, rows, columns, count in tiles:
        shape = rows.stop - rows.start, columns.stop - columns.start
        X = space[: p * shape[0] * shape[1]].reshape(p, *shape)
        for tile, K, own, factor in zip(X, matrices, shift, scale, strict=True):
            centre_tile(K, rows.start - first, columns.start, own[rows], own[columns], factor, tile)
        if root is not None:
            X *= np.multiply.outer(root[rows], root[columns])
        flat = X.reshape(p, -1)
        M += count * (flat @ flat.T if cross else np.array([x @ x for x in flat]))
    return M


@njit(cache=True, nogil=True)
def centre_tile(K, top, left, row_shift, column_shift, factor, out):
    """out_ij = factor (K[top + i, left + j] - row_shift_i - column_shift_j), in float64."""
    m = out.shape[1]
    for i in range(out.shape[0]):
        x, o, s = K[top + i, left : left + m], out[i], row_shift[i]
        for j in range(m):
            o[j] = factor * ((np.float64(x[j]) - s) - column_shift[j])
