"""Sparse rows against tables: scores, updates, and the pairs among a few rows."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def score_rows(start, column, value, kernel, coef, T, rows, out):
    """out[r] += sum_j coef[kernel_j] value_ij T_j over the features j of row i."""
    for r in range(len(rows)):
        i = rows[r]
        total = 0.0
        for t in range(start[i], start[i + 1]):
            j = column[t]
            total += coef[kernel[j]] * value[t] * T[j]
        out[r] += total


@njit(cache=True, nogil=True)
def add_rows(start, column, value, kernel, T, rows, delta, q):
    """T_j += delta value_ij, and q the growth of the sums of T_j^2 by kernel."""
    for r in range(len(rows)):
        i = rows[r]
        for t in range(start[i], start[i + 1]):
            j = column[t]
            v = delta[r] * value[t]
            q[kernel[j]] += v * (2.0 * T[j] + v)
            T[j] += v


@njit(cache=True, nogil=True)
def pair_rows(start, column, value, kernel, coef, rows, scratch, G):
    """G[r, s] += sum_j coef[kernel_j] value_rj value_sj; scratch is zero before and after."""
    for r in range(len(rows)):
        i = rows[r]
        for t in range(start[i], start[i + 1]):
            scratch[column[t]] = coef[kernel[column[t]]] * value[t]
        for s in range(r):
            k = rows[s]
            total = 0.0
            for t in range(start[k], start[k + 1]):
                total += scratch[column[t]] * value[t]
            G[r, s] += total
            G[s, r] += total
        for t in range(start[i], start[i + 1]):
            scratch[column[t]] = 0.0
