"""Compiled passes over a kernel-major stack K of shape (p, n, n).

Rows stand for columns (each kernel is symmetric), so every loop reads contiguous memory. Nothing is checked here.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# rows combined together, also when one is missing: more rows mean fewer calls; fewer rows stay in the cache until all
# kernels are added, and fewer of them are never read
TOGETHER = 32


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written to, for which compiled loops need only one version."""
    view = array.view()
    view.flags.writeable = False
    return view


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def add_combined_rows(K, kernels, coef, rows, slots, first, last, fresh, out):
    """out[slots_r] += sum_k coef_k K[kernels_k, rows_r] for r in [first, last), or = where ``fresh``.

    Four kernels at a time, for a block of rows that stays in the cache: with more kernels at a time the processor no
    longer reads ahead, which takes half as long again.
    """
    n = out.shape[1]
    m = kernels.shape[0]
    for block in range(first, last, TOGETHER):
        end = min(block + TOGETHER, last)
        k = 0
        while k + 4 <= m:
            A0, A1, A2, A3 = K[kernels[k]], K[kernels[k + 1]], K[kernels[k + 2]], K[kernels[k + 3]]
            c0, c1, c2, c3 = coef[k], coef[k + 1], coef[k + 2], coef[k + 3]
            for r in range(block, end):
                i, o = rows[r], out[slots[r]]
                x0, x1, x2, x3 = A0[i], A1[i], A2[i], A3[i]
                if fresh and k == 0:
                    for j in range(n):
                        o[j] = (c0 * x0[j] + c1 * x1[j]) + (c2 * x2[j] + c3 * x3[j])
                else:
                    for j in range(n):
                        o[j] += (c0 * x0[j] + c1 * x1[j]) + (c2 * x2[j] + c3 * x3[j])
            k += 4
        while k < m:
            A0, c0 = K[kernels[k]], coef[k]
            for r in range(block, end):
                x0, o = A0[rows[r]], out[slots[r]]
                if fresh and k == 0:
                    for j in range(n):
                        o[j] = c0 * x0[j]
                else:
                    for j in range(n):
                        o[j] += c0 * x0[j]
            k += 1


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def add_scaled_rows(K, kernels, coef, U, rows, slots, first, last, fresh, out):
    """out[slots_r, j] += sum_k coef_k U_k,i U_k,j K[kernels_k, i, j], i = rows_r (= where ``fresh``)."""
    n = out.shape[1]
    for r in range(first, last):
        i = rows[r]
        o = out[slots[r]]
        if fresh:
            o[:] = 0.0
        for k in range(kernels.shape[0]):
            x = K[kernels[k], i]
            u = U[k]
            c = coef[k] * u[i]
            for j in range(n):
                o[j] += c * u[j] * x[j]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def add_outputs(K, kernels, rows, D, first, last, lo, hi, F):
    """F[k, lo:hi] += sum_r D[k, r] K[kernels_k, rows_r, lo:hi] for k in [first, last), accumulated in float64."""
    m = rows.shape[0]
    for k in range(first, last):
        A = K[kernels[k]]
        f = F[k, lo:hi]
        d = D[k]
        r = 0
        while r + 8 <= m:
            x0, x1 = A[rows[r], lo:hi], A[rows[r + 1], lo:hi]
            x2, x3 = A[rows[r + 2], lo:hi], A[rows[r + 3], lo:hi]
            x4, x5 = A[rows[r + 4], lo:hi], A[rows[r + 5], lo:hi]
            x6, x7 = A[rows[r + 6], lo:hi], A[rows[r + 7], lo:hi]
            d0, d1, d2, d3 = d[r], d[r + 1], d[r + 2], d[r + 3]
            d4, d5, d6, d7 = d[r + 4], d[r + 5], d[r + 6], d[r + 7]
            for j in range(hi - lo):
                f[j] += ((d0 * x0[j] + d1 * x1[j]) + (d2 * x2[j] + d3 * x3[j])) + (
                    (d4 * x4[j] + d5 * x5[j]) + (d6 * x6[j] + d7 * x7[j])
                )
            r += 8
        while r < m:
            x0 = A[rows[r], lo:hi]
            d0 = d[r]
            for j in range(hi - lo):
                f[j] += d0 * x0[j]
            r += 1


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def combine_kept(store, at, coef, slots, first, last, out):
    """out[slots_r] = sum_k coef_k store[at[k, r]] for r in [first, last)."""
    n = out.shape[1]
    m = at.shape[0]
    for r in range(first, last):
        o = out[slots[r]]
        o[:] = 0.0
        k = 0
        while k + 4 <= m:
            x0, x1 = store[at[k, r]], store[at[k + 1, r]]
            x2, x3 = store[at[k + 2, r]], store[at[k + 3, r]]
            c0, c1, c2, c3 = coef[k], coef[k + 1], coef[k + 2], coef[k + 3]
            for j in range(n):
                o[j] += (c0 * x0[j] + c1 * x1[j]) + (c2 * x2[j] + c3 * x3[j])
            k += 4
        while k < m:
            x0 = store[at[k, r]]
            c0 = coef[k]
            for j in range(n):
                o[j] += c0 * x0[j]
            k += 1


@njit(cache=True, nogil=True)
def complete(W):
    """Copy the upper triangle of W to the lower one, in squares that stay in the cache."""
    n, size = W.shape[0], 16
    for first in range(0, n, size):
        for left in range(0, first + 1, size):
            for i in range(first, min(first + size, n)):
                for j in range(left, min(left + size, i)):
                    W[i, j] = W[j, i]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def add_both_sides(T, left, right, above, beside):
    """above_j += sum_i left_i T_ij and beside_i += sum_j T_ij right_j in one reading of T, accumulated in float64."""
    m, n = T.shape
    i = 0
    while i + 4 <= m:
        t0, t1, t2, t3 = T[i], T[i + 1], T[i + 2], T[i + 3]
        l0, l1, l2, l3 = left[i], left[i + 1], left[i + 2], left[i + 3]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            x0, x1 = np.float64(t0[j]), np.float64(t1[j])
            x2, x3 = np.float64(t2[j]), np.float64(t3[j])
            above[j] += (l0 * x0 + l1 * x1) + (l2 * x2 + l3 * x3)
            s0 += x0 * right[j]
            s1 += x1 * right[j]
            s2 += x2 * right[j]
            s3 += x3 * right[j]
        beside[i] += s0
        beside[i + 1] += s1
        beside[i + 2] += s2
        beside[i + 3] += s3
        i += 4
    while i < m:
        t0, l0, s0 = T[i], left[i], 0.0
        for j in range(n):
            x0 = np.float64(t0[j])
            above[j] += l0 * x0
            s0 += x0 * right[j]
        beside[i] += s0
        i += 1


@njit(cache=True, nogil=True, error_model="numpy")
def gather_block(M, scale, idx, first, last, out):
    """out[r, c] = scale M[idx_r, idx_c] for r in [first, last)."""
    m = idx.shape[0]
    start = idx[0] if m else 0
    # neighbours lie next to each other, and are read several at a time
    together = np.all(idx == np.arange(start, start + m))
    for r in range(first, last):
        row = M[idx[r]]
        o = out[r]
        if together:
            row = row[start : start + m]
            for c in range(m):
                o[c] = scale * row[c]
        else:
            for c in range(m):
                o[c] = scale * row[idx[c]]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def add_row_products(K, V, out):
    """out[i, c] += sum_j K[i, j] V[c, j], four rows and three columns at a time; of one or two that are left, two."""
    n, m, size = K.shape[1], V.shape[0], K.shape[0] // 4 * 4
    for i in range(0, size, 4):
        k0, k1, k2, k3, rows = K[i], K[i + 1], K[i + 2], K[i + 3], out[i : i + 4]
        for c in range(0, m - 2, 3):
            u, v, w = V[c], V[c + 1], V[c + 2]
            a0, a1, a2, a3 = 0.0, 0.0, 0.0, 0.0
            b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0
            c0, c1, c2, c3 = 0.0, 0.0, 0.0, 0.0
            for j in range(n):
                x, y, z = u[j], v[j], w[j]
                p, q, r, s = np.float64(k0[j]), np.float64(k1[j]), np.float64(k2[j]), np.float64(k3[j])
                a0 += p * x
                a1 += q * x
                a2 += r * x
                a3 += s * x
                b0 += p * y
                b1 += q * y
                b2 += r * y
                b3 += s * y
                c0 += p * z
                c1 += q * z
                c2 += r * z
                c3 += s * z
            for t, sums in enumerate(((a0, b0, c0), (a1, b1, c1), (a2, b2, c2), (a3, b3, c3))):
                rows[t, c] += sums[0]
                rows[t, c + 1] += sums[1]
                rows[t, c + 2] += sums[2]
        if m % 3:
            c = m - m % 3
            u, v = V[c], V[m - 1]
            a0, a1, a2, a3 = 0.0, 0.0, 0.0, 0.0
            b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0
            for j in range(n):
                x, y = u[j], v[j]
                p, q, r, s = np.float64(k0[j]), np.float64(k1[j]), np.float64(k2[j]), np.float64(k3[j])
                a0 += p * x
                a1 += q * x
                a2 += r * x
                a3 += s * x
                b0 += p * y
                b1 += q * y
                b2 += r * y
                b3 += s * y
            for t, pair in enumerate(((a0, b0), (a1, b1), (a2, b2), (a3, b3))):
                rows[t, c] += pair[0]
                if m % 3 == 2:
                    rows[t, c + 1] += pair[1]
    for i in range(size, K.shape[0]):
        for c in range(m):
            a0 = 0.0
            for j in range(n):
                a0 += np.float64(K[i, j]) * V[c, j]
            out[i, c] += a0
