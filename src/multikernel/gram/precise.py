"""Products of a kernel with coefficients whose large terms add up without rounding.

    K v = K1 v1 + (K1 v2 + K2 v),     K = K1 + K2,  v = v1 + v2

K1 and v1 are the leading digits of K and v, on grids so coarse that every product and every partial sum of K1 v1 is a
whole number of at most 53 bits: in whatever order the library adds them up, nothing is rounded. The rest is smaller by
a factor of about a million, and so is its rounding. Entries are first divided by powers of two near the lengths
sqrt(K_ii) and sqrt(K_jj), after which none is larger than one: |K_ij| <= sqrt(K_ii K_jj).

Reference: Ozaki, Ogita, Oishi, Rump 2012, doi:10.1007/s11075-011-9478-1. We differ in splitting once only.
"""

from __future__ import annotations

import numpy as np

from multikernel.threads import ROWS


def product(M: np.ndarray, rows: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return M'v for the symmetric positive semidefinite M, v of shape (n, c) being zero but for ``rows``.

    An output i is off by at most `left_over` times len(rows) eps sqrt(M_ii) sum_j sqrt(M_jj) |v_j|, and one rounding of
    its value.
    """
    diag = np.diagonal(M).astype(np.float64)
    unit = np.where(diag > 0, np.ldexp(1.0, np.frexp(np.sqrt(np.maximum(diag, 0.0)))[1]), 1.0)
    scaled = unit[rows, None] * v[rows]
    bits = _bits(len(rows))
    size = np.ldexp(1.0, np.frexp(np.abs(scaled).sum(axis=0))[1])
    lead = _leading(scaled, size * 0.5 ** (_DIGITS - bits))
    parts = np.hstack([lead, scaled - lead])
    whole, rest = np.zeros((len(M), v.shape[1])), np.zeros((len(M), v.shape[1]))
    for start in range(0, len(rows), ROWS):
        some = slice(start, start + ROWS)
        T = M[rows[some]] / unit[rows[some], None]
        T /= unit
        first = _leading(T, 0.5**bits)
        T -= first
        both = first.T @ parts[some]
        whole += both[:, : v.shape[1]]
        rest += both[:, v.shape[1] :] + T.T @ scaled[some]
    return unit[:, None] * (whole + rest)


def left_over(m: int) -> float:
    """Return the rounding of `product` of m rows, as a share of that of one sum in float64."""
    bits = _bits(m)
    # units and the size of v are up to twice as large as what they stand for
    return 4.0 * (0.5**bits + m * 0.5 ** (_DIGITS - bits))


# bits of a sum of products that are whole numbers, with one to spare
_DIGITS = np.finfo(float).nmant - 1


def _bits(m: int) -> int:
    """Return the bits of an entry's leading digits: as many as leave the rest of m coefficients as small."""
    return int(_DIGITS - np.log2(max(m, 1))) // 2


def _leading(x: np.ndarray, grid: float | np.ndarray) -> np.ndarray:
    """Round to multiples of the grid, a power of two."""
    large = 1.5 * 2.0 ** np.finfo(float).nmant * grid
    return (x + large) - large
