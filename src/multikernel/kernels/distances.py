"""Distances between samples, and their weighted quantiles.

Metrics, by name:

    sqeuclidean   sum_j (x_j - z_j)^2
    cityblock     sum_j |x_j - z_j|
    chi2          sum_j (x_j - z_j)^2 / (x_j + z_j), for non-negative columns
"""

from __future__ import annotations

import hashlib
import itertools
import math

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from multikernel.kernels.base import ROUNDING
from multikernel.kernels.inputs import Matrix, dense
from multikernel.threads import BLOCK_BYTES, ROWS

# Samples whose pairs give a quantile of the distances: more take time and memory, fewer make the quantile less precise.
SAMPLES = 2000
# Squared distances are computed from differences up to so many columns, which is exact for close points, and from inner
# products above, which is faster there.
FEW_COLUMNS = 8
# The same for quantiles of distances, where rounding must not depend on the order of the samples.
MANY_COLUMNS = 1024


def distances(metric: str, X: Matrix, Y: Matrix, center: np.ndarray | None = None) -> np.ndarray:
    """Return a new (m, n) array of distances.

    Parameters
    ----------
    metric : {"sqeuclidean", "cityblock", "chi2"}
        The distance; see the module.
    X, Y : ndarray or csr_array of shapes (m, d), (n, d)
        Samples, both dense or both sparse.
    center : ndarray of shape (d,), optional
        A point amid the samples, which becomes the origin where the metric uses inner products: these are
        then small, and so is their rounding.
    """
    if metric == "chi2":
        from sklearn.metrics.pairwise import additive_chi2_kernel  # slow to import

        D = np.empty((X.shape[0], Y.shape[0]))
        # the compiled routine takes writeable arrays only, and writes to none
        left = np.require(dense(X), requirements="W")
        for start in range(0, Y.shape[0], ROWS):
            cols = slice(start, start + ROWS)
            D[:, cols] = additive_chi2_kernel(left, np.require(dense(Y[cols]), requirements="W"))
        return np.negative(D, out=D)
    if metric == "cityblock" and sparse.issparse(X):
        from sklearn.metrics.pairwise import manhattan_distances  # slow to import

        return manhattan_distances(X, Y)
    if not sparse.issparse(X) and (metric == "cityblock" or X.shape[1] <= FEW_COLUMNS):
        return cdist(X, Y, metric)
    if center is not None and not sparse.issparse(X):
        X, Y = X - center, Y - center
    # |x|^2 + |z|^2 - 2 <x, z>
    xx = row_norms(X, squared=True)[:, None]
    D = safe_sparse_dot(X, Y.T, dense_output=True)
    D *= -2.0
    D += xx
    D += row_norms(Y, squared=True)
    # where most digits of the terms cancel, the sum is computed again from differences
    close = D < math.sqrt(ROUNDING) * xx
    if close.any():
        i, j = np.nonzero(close)
        step = max(1, BLOCK_BYTES // (8 * X.shape[1]))
        for s in range(0, len(i), step):
            left, right = i[s : s + step], j[s : s + step]
            D[left, right] = row_norms(X[left] - Y[right], squared=True)
    return np.maximum(D, 0.0, out=D)


def quantile_distance(metric: str, X: Matrix, q: float, sample_weight: np.ndarray | None = None) -> float:
    """Return the q-quantile of the distances over all pairs of samples.

    A sample of weight w counts as w copies: the pair (i, j) has weight w_i w_j at its distance, and sample i
    alone weight w_i (w_i - 1) / 2 at distance zero (none where w_i < 1). The quantile is the smallest
    distance up to which the weights reach the fraction q of their sum, so that integer weights and repetition
    agree exactly. Where it is zero the same quantile of the positive distances is taken, and 1 where there
    are none. Above 2000 distinct samples the distances are those of 2000 draws, determined by the samples
    themselves and not by their order.

    Parameters
    ----------
    metric : {"sqeuclidean", "cityblock", "chi2"}
        For "sqeuclidean" the distances are |x - z|, not their squares.
    X : ndarray or csr_array of shape (n, d)
        Samples.
    q : float
        The fraction, 0 < q <= 1.
    sample_weight : ndarray of shape (n,), optional
        Weights of the samples.
    """
    if X.shape[0] > SAMPLES:
        X, sample_weight = _draw(*_distinct(X, sample_weight))
    if sample_weight is not None and np.all(sample_weight == 1):
        sample_weight = None
    largest = np.abs(X.data if sparse.issparse(X) else X).max(initial=0.0)
    if largest == 0.0:
        return 1.0
    # dividing by a power of two is exact, and keeps squares from overflowing
    unit = 2.0 ** math.frexp(largest)[1]
    X = X / unit
    if not sparse.issparse(X) and metric != "chi2" and (metric == "cityblock" or X.shape[1] <= MANY_COLUMNS):
        D = pdist(X, metric)
    else:
        center = None if sparse.issparse(X) else X.mean(axis=0)
        D = squareform(distances(metric, X, X, center), checks=False)
    # a third of three million pairs is the millionth pair, whatever the rounding of 1/3
    q *= 1 - ROUNDING
    value = 0.0
    if sample_weight is None:
        values = D
        while value == 0.0 and len(values):
            r = max(math.ceil(q * len(values)), 1) - 1
            values.partition(r)
            value = float(values[r])
            # of the positive distances, where that of all of them is zero
            values = D[D > 0] if value == 0.0 else values
    else:
        i, j = np.triu_indices(X.shape[0], 1)
        copies = np.maximum(sample_weight * (sample_weight - 1) / 2, 0).sum()
        value = _weighted_quantile(D, sample_weight[i] * sample_weight[j], copies, q)
    return unit * (math.sqrt(value) if metric == "sqeuclidean" else value) if value > 0 else 1.0


def _weighted_quantile(D: np.ndarray, weight: np.ndarray, copies: float, q: float) -> float:
    """Return the q-quantile of weighted distances, of the positive ones where it is zero, or zero.

    Pairs of the total weight ``copies`` are at distance zero beside them.
    """
    order = np.argsort(D, kind="stable")
    order = order[weight[order] > 0]
    values = D[order]
    for start, first in ((0, copies), (int(np.searchsorted(values, 0.0, side="right")), 0.0)):
        reached = first + np.cumsum(weight[order[start:]])
        if len(reached):
            r = int(np.searchsorted(reached, q * reached[-1]))
            below = start == 0 and first >= q * reached[-1]
            if not below and values[start + r] > 0:
                return float(values[start + r])
    return 0.0


def _distinct(X: Matrix, weight: np.ndarray | None) -> tuple[Matrix, np.ndarray]:
    """Return the distinct rows with their summed weights, in an order that depends on the rows alone."""
    rows = sparse.csr_array(X)
    if not rows.has_canonical_format or np.any(rows.data == 0):
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    indices, ends = rows.indices.astype(np.int64), rows.indptr
    keys = (
        np.array(
            [
                hashlib.blake2b(indices[s:e].tobytes() + rows.data[s:e].tobytes(), digest_size=16).digest()
                for s, e in itertools.pairwise(ends)
            ],
            dtype="V16",
        )
        .view("u8")
        .reshape(-1, 2)
    )
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    total = np.bincount(inverse.ravel(), weights=weight, minlength=len(first)).astype(np.float64)
    return X[first[total > 0]], total[total > 0]


def _draw(X: Matrix, weight: np.ndarray) -> tuple[Matrix, np.ndarray]:
    """Draw SAMPLES rows, where there are more, at even steps of the cumulated weight, and count them."""
    if X.shape[0] <= SAMPLES:
        return X, weight
    reached = np.cumsum(weight)
    at = (np.arange(SAMPLES) + 0.5) * (reached[-1] / SAMPLES)
    counts = np.bincount(np.searchsorted(reached, at, side="right"), minlength=X.shape[0])
    chosen = np.flatnonzero(counts)
    return X[chosen], counts[chosen].astype(np.float64)
