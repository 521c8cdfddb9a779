"""Sums over the nodes that hold a sample: one sample of a weighted degree kernel takes a walk to the root.

    T[x] = sum of a_i over the samples of node x          K(i, .) a = sum over places and nodes x of i of  w_ld T[x]

A table lies in memory as it is walked. In the complete tree a node of length e (e = direct, direct - 2, ...) stands
with its siblings and their parent in one group of ``stride`` numbers, the parent first: one line of the cache for two
lengths. Beyond it a node is a pair (T, link), and stands for all lengths d in (bottom of its parent, bottom].
"""

from __future__ import annotations

import numpy as np
from numba import njit

from multikernel.gram.tries import DEPTH_BITS, DEPTH_MASK


def table_layout(direct: int, bits: int) -> tuple[np.ndarray, int, int]:
    """Return where the groups of each length begin, the stride of a group, and the size of the complete tree.

    Examples
    --------
    >>> groups, stride, size = table_layout(2, 2)
    >>> int(groups[2]), stride, size
    (0, 8, 32)
    """
    stride = 4 if bits == 1 else -(-(1 + (1 << bits)) // 8) * 8
    groups, size = np.zeros(direct + 2, np.int64), 0
    for e in range(direct, 0, -2):
        groups[e] = size
        size += stride << (bits * (e - 1))
    return groups, stride, size


@njit(cache=True, nogil=True)
def touch(own, rows, T, deep, first, code):
    """Read the longest nodes of the rows, which brings them into the cache. Sets: code, the numbers of these nodes."""
    total = 0.0
    for r in range(len(rows)):
        x = np.int64(own[rows[r]])
        code[r] = x
        if x >= first:
            total += T[deep + 2 * x]
    return total


@njit(cache=True, nogil=True)
def score(leaf, T, at, size, groups, stride, starts, direct, bits, cum, rows, out):
    """out[r] += sum over places and lengths of w_ld T, w_ld of the combined kernel, given by running sums over d.

    Three passes over the rows at each place, so that many reads of the memory are under way at once: the longest
    nodes are only touched, then walked up to the complete tree, then the complete tree is read. Returns what keeps
    the touching alive.
    """
    first = starts[direct + 1]
    mask = (1 << bits) - 1
    m = len(rows)
    code, length = np.empty(m, np.int64), np.empty(m, np.int64)
    touched = 0.0
    for place in range(leaf.shape[0]):
        base = at[place]
        deep = base + size - 2 * first
        c, own = cum[place], leaf[place]
        touched += touch(own, rows, T, deep, first, code)
        for r in range(m):
            x = code[r]
            e = direct
            if x >= first:
                total = 0.0
                link = np.int64(T[deep + 2 * x + 1])
                while x >= first:
                    parent = link >> DEPTH_BITS
                    above = np.int64(direct)
                    below = link & DEPTH_MASK
                    if parent >= first:
                        link = np.int64(T[deep + 2 * parent + 1])
                        above = link & DEPTH_MASK
                    total += (c[below] - c[above]) * T[deep + 2 * x]
                    x = parent
                out[r] += total
            else:
                while x < starts[e]:
                    e -= 1
            code[r], length[r] = x - starts[e], e
        for r in range(m):
            x, e = code[r], length[r]
            total = 0.0
            if e > 0 and (direct - e) & 1:
                total += (c[e] - c[e - 1]) * T[base + groups[e + 1] + x * stride]
                x >>= bits
                e -= 1
            while e > 0:
                s = base + groups[e] + (x >> bits) * stride
                total += (c[e] - c[e - 1]) * T[s + 1 + (x & mask)]
                if e > 1:
                    total += (c[e - 1] - c[e - 2]) * T[s]
                x >>= 2 * bits
                e -= 2
            out[r] += total
    return touched


@njit(cache=True, nogil=True)
def add(leaf, T, at, size, groups, stride, starts, direct, bits, rows, delta, growth):
    """T += delta on the nodes of each row; growth[l, d] += the change of sum T^2 over the nodes of length d at l.

    In three passes, as `score`.
    """
    first = starts[direct + 1]
    mask = (1 << bits) - 1
    m = len(rows)
    code, length = np.empty(m, np.int64), np.empty(m, np.int64)
    touched = 0.0
    for place in range(leaf.shape[0]):
        base = at[place]
        deep = base + size - 2 * first
        own, g = leaf[place], growth[place]
        touched += touch(own, rows, T, deep, first, code)
        for r in range(m):
            v = delta[r]
            x = code[r]
            e = direct
            if x >= first:
                link = np.int64(T[deep + 2 * x + 1])
                while x >= first:
                    parent = link >> DEPTH_BITS
                    above = np.int64(direct)
                    below = link & DEPTH_MASK
                    if parent >= first:
                        link = np.int64(T[deep + 2 * parent + 1])
                        above = link & DEPTH_MASK
                    t = T[deep + 2 * x]
                    T[deep + 2 * x] = t + v
                    for d in range(above + 1, below + 1):
                        g[d] += v * (2.0 * t + v)
                    x = parent
            else:
                while x < starts[e]:
                    e -= 1
            code[r], length[r] = x - starts[e], e
        for r in range(m):
            v, x, e = delta[r], code[r], length[r]
            if (direct - e) & 1:
                s = base + groups[e + 1] + x * stride
                g[e] += v * (2.0 * T[s] + v)
                T[s] += v
                x >>= bits
                e -= 1
            while e > 0:
                s = base + groups[e] + (x >> bits) * stride
                child = s + 1 + (x & mask)
                g[e] += v * (2.0 * T[child] + v)
                T[child] += v
                g[e - 1] += v * (2.0 * T[s] + v)
                T[s] += v
                x >>= 2 * bits
                e -= 2
    return touched


@njit(cache=True, nogil=True)
def outputs(leaf, T, at, size, groups, stride, starts, direct, bits, weight, kernel, lo, hi, F):
    """F[i - lo, k] += sum of w_ld T over the places l and lengths d of kernel k, for the samples lo, ..., hi - 1."""
    first = starts[direct + 1]
    mask = (1 << bits) - 1
    for place in range(leaf.shape[0]):
        base = at[place]
        deep = base + size - 2 * first
        own, w, which = leaf[place], weight[place], kernel[place]
        for i in range(lo, hi):
            x = np.int64(own[i])
            f = F[i - lo]
            e = direct
            if x >= first:
                link = np.int64(T[deep + 2 * x + 1])
                while x >= first:
                    parent = link >> DEPTH_BITS
                    above = np.int64(direct)
                    below = link & DEPTH_MASK
                    if parent >= first:
                        link = np.int64(T[deep + 2 * parent + 1])
                        above = link & DEPTH_MASK
                    t = T[deep + 2 * x]
                    for d in range(above + 1, below + 1):
                        f[which[d]] += w[d] * t
                    x = parent
            else:
                while x < starts[e]:
                    e -= 1
            code = x - starts[e]
            if (direct - e) & 1:
                f[which[e]] += w[e] * T[base + groups[e + 1] + code * stride]
                code >>= bits
                e -= 1
            while e > 0:
                s = base + groups[e] + (code >> bits) * stride
                f[which[e]] += w[e] * T[s + 1 + (code & mask)]
                # the root has weight zero
                f[which[e - 1]] += w[e - 1] * T[s]
                code >>= 2 * bits
                e -= 2


@njit(cache=True, nogil=True)
def add_lengths(low, high, weight, kernel, out):
    """out[kernel[d], i] += w[d] for the lengths d in (low_i, high_i] at one place."""
    for i in range(len(low)):
        for d in range(np.int64(low[i]) + 1, np.int64(high[i]) + 1):
            out[kernel[d], i] += weight[d]


@njit(cache=True, nogil=True)
def pairs(codes, size, cum, rows, G):
    """G[r, s] += the combined kernel of two different rows: each place adds cum[l, letters that agree from l on]."""
    degree = cum.shape[1] - 1
    for r in range(len(rows)):
        x = codes[rows[r]]
        for s in range(r):
            z = codes[rows[s]]
            total = 0.0
            run = 0
            for place in range(codes.shape[1] - 1, -1, -1):
                if x[place] == z[place] and x[place] < size:
                    run = min(run + 1, degree)
                    total += cum[place, run]
                else:
                    run = 0
            G[r, s] += total
            G[s, r] += total


@njit(cache=True, nogil=True)
def add_agreements(codes, size, x, weight, kernel, out):
    """out[k, i] += the kernels of one sequence x with every row of codes."""
    degree = weight.shape[1] - 1
    for i in range(codes.shape[0]):
        run = 0
        for place in range(codes.shape[1] - 1, -1, -1):
            run = min(run + 1, degree) if x[place] == codes[i, place] and x[place] < size else 0
            for d in range(1, run + 1):
                out[kernel[place, d], i] += weight[place, d]


@njit(cache=True, nogil=True)
def add_place(own, links, starts, direct, bits, delta, T):
    """T[x] += delta_i on the nodes x of the samples i < len(delta) at one place, nodes by their numbers."""
    first = starts[direct + 1]
    for i in range(len(delta)):
        if delta[i] == 0.0:
            continue
        x = np.int64(own[i])
        while x >= first:
            T[x] += delta[i]
            x = np.int64(links[x - first]) >> DEPTH_BITS
        while x > 0:
            T[x] += delta[i]
            x = (x - 1) >> bits


@njit(cache=True, nogil=True)
def score_place(own, links, starts, direct, bits, T, cum, begin, out):
    """out[i] += sum over lengths of w_d T at one place, for the samples begin + i; cum the running sums of the w_d."""
    first = starts[direct + 1]
    for i in range(len(out)):
        x = np.int64(own[begin + i])
        e = direct
        if x < first:
            while x < starts[e]:
                e -= 1
        while x >= first:
            link = np.int64(links[x - first])
            parent = link >> DEPTH_BITS
            above = np.int64(direct)
            if parent >= first:
                above = np.int64(links[parent - first]) & DEPTH_MASK
            out[i] += (cum[link & DEPTH_MASK] - cum[above]) * T[x]
            x = parent
        while e > 0:
            out[i] += (cum[e] - cum[e - 1]) * T[x]
            x = (x - 1) >> bits
            e -= 1
