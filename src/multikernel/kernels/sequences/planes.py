"""Sequences of one length as bits, and how many of their d-mers agree: the compiled loops of the weighted degree.

A plane holds one bit of the code of every letter, striped: position t is bit t div W of word t mod W, W >= L / 64.
The next position is then the same bit of the next word, and only after the last word the next bit of the first one:
a shift by one position carries nothing from word to word. For a pair of sequences, with E the positions that agree,

    d = 1, 2, ...:   count the ones of E;   E[w] &= E[w + 1],  E[W - 1] &= E[0] >> 1

leaves in E the positions where d letters in a row agree. Many partners are compared together.
"""

from __future__ import annotations

import numpy as np
from numba import config, njit, types
from numba.extending import intrinsic


def _plain(word):
    """Count the ones of a word, without compilation."""
    return np.uint64(int(word).bit_count())


def _compiled():
    @intrinsic
    def op(typingctx, word):
        def codegen(context, builder, signature, args):
            from llvmlite import ir

            kind = args[0].type
            function = builder.module.declare_intrinsic("llvm.ctpop", [kind], ir.FunctionType(kind, [kind]))
            return builder.call(function, args)

        return types.uint64(types.uint64), codegen

    return op


popcount = _plain if config.DISABLE_JIT else _compiled()

# Partners that are compared with a sequence together: fewer leave vector registers idle, more do not stay in the cache.
LANES = 128


def n_words(length: int) -> int:
    """Return the number W of words of a plane: 1, 2, or a multiple of four."""
    words = -(-length // 64)
    return max(words, 1) if words <= 2 else -(-words // 4) * 4


def pack_planes(codes: np.ndarray, size: int) -> np.ndarray:
    """Return the planes of codes of shape (n, L): uint64 of shape (n, planes + 1, W), the last where a letter is known.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.kernels.sequences.planes import pack_planes
    >>> pack_planes(np.array([[0, 1, 2, 3, 4]], np.uint8), 4)[0, :, 0].tolist()
    [10, 12, 15]
    """
    n_planes = max(2, int(size - 1).bit_length())
    planes = np.zeros((len(codes), n_planes + 1, n_words(codes.shape[1])), np.uint64)
    pack(codes, n_planes, size, planes)
    return planes


def pack_mask(chosen: np.ndarray) -> np.ndarray:
    """Return the words of a bool array over positions."""
    return pack_planes(np.where(chosen, 0, 1)[None].astype(np.uint8), 1)[0, -1]


@njit(cache=True, nogil=True)
def pack(codes, n_planes, size, out):
    """out[i, b] = bit b of the codes of row i for b < n_planes, out[i, n_planes] = where the letter is known."""
    words = out.shape[2]
    for i in range(codes.shape[0]):
        w, place = 0, np.uint64(0)
        for t in range(codes.shape[1]):
            code = np.uint64(codes[i, t])
            if code < np.uint64(size):
                for b in range(n_planes):
                    out[i, b, w] |= ((code >> np.uint64(b)) & np.uint64(1)) << place
                out[i, n_planes, w] |= np.uint64(1) << place
            w += 1
            if w == words:
                w = 0
                place += np.uint64(1)


@njit(cache=True, nogil=True)
def _sources(shifts, words):
    """Return the word, the right and the left shift that give word w of a plane moved by r positions."""
    source = np.empty((shifts.shape[0], words), np.int64)
    right = np.zeros((shifts.shape[0], words), np.uint64)
    left = np.zeros((shifts.shape[0], words), np.uint64)
    for r in range(shifts.shape[0]):
        for w in range(words):
            up = (w + shifts[r]) // words
            source[r, w] = w + shifts[r] - up * words
            if up >= 0:
                right[r, w] = np.uint64(up)
            else:
                left[r, w] = np.uint64(-up)
    return source, right, left


@njit(cache=True, nogil=True)
def _fill_tile(planes, start, tile):
    """tile[b, w, j] = planes[start + j, b, w]; lanes beyond the end repeat the last sequence."""
    last = planes.shape[0] - 1
    for j in range(LANES):
        source = min(start + j, last)
        for b in range(planes.shape[1]):
            for w in range(planes.shape[2]):
                tile[b, w, j] = planes[source, b, w]


@njit(cache=True, nogil=True)
def _compare(left, i, r, source, down, up, tile, E):
    """E[w] = where sequence i, moved by the r-th shift, agrees with the sequences of the tile in all planes."""
    known = tile.shape[0] - 1
    for w in range(tile.shape[1]):
        at, fall, rise = source[r, w], down[r, w], up[r, w]
        x = (left[i, 0, at] >> fall) << rise
        y = (left[i, 1, at] >> fall) << rise
        v = (left[i, known, at] >> fall) << rise
        for j in range(LANES):
            E[w, j] = v & tile[known, w, j] & ~((x ^ tile[0, w, j]) | (y ^ tile[1, w, j]))
        for b in range(2, known):
            x = (left[i, b, at] >> fall) << rise
            for j in range(LANES):
                E[w, j] &= ~(x ^ tile[b, w, j])


@njit(cache=True, nogil=True)
def count_plain(left, right, lower, first, last, shifts, weights, spans, out):
    """out[i, j] = sum_r sum_d weights[r, d] |{t: d letters of i at t + r and of j at t agree}|, i in [first, last).

    Parameters
    ----------
    left, right : uint64 arrays of shape (n, planes + 1, W)
        Packed sequences; W is a multiple of four.
    lower : bool
        Whether only the entries j <= i need be computed; some others are written too.
    first, last : int
        The range of i.
    shifts : int array (R,)
        The shifts r, below 64 W.
    weights : float array (R, D)
        The weights.
    spans : int array (R,)
        Degrees to count.
    out : float array (n, m)
        The result.
    """
    known, words = right.shape[1] - 1, right.shape[2]
    tile = np.empty((known + 1, words, LANES), np.uint64)
    E = np.empty((words + 2, LANES), np.uint64)
    total = np.empty(LANES, np.float64)
    source, down, up = _sources(shifts, words)
    for start in range(0, right.shape[0], LANES):
        lanes = min(LANES, right.shape[0] - start)
        begin = max(first, start) if lower else first
        if begin < last:
            _fill_tile(right, start, tile)
        for i in range(begin, last):
            for j in range(LANES):
                total[j] = 0.0
            for r in range(shifts.shape[0]):
                _compare(left, i, r, source, down, up, tile, E)
                # two degrees in one pass: E of degree d is read, E of d + 1 is not stored, E of d + 2 is written
                for d in range(0, spans[r], 2):
                    c0, c1 = weights[r, d], weights[r, d + 1] if d + 1 < spans[r] else 0.0
                    alive = np.uint64(0)
                    for j in range(LANES):
                        E[words, j] = E[0, j] >> np.uint64(1)
                        E[words + 1, j] = E[1, j] >> np.uint64(1)
                    for w in range(0, words, 4):
                        for j in range(LANES):
                            e0, e1, e2, e3, e4 = E[w, j], E[w + 1, j], E[w + 2, j], E[w + 3, j], E[w + 4, j]
                            ones = (popcount(e0) + popcount(e1)) + (popcount(e2) + popcount(e3))
                            e0, e1, e2, e3, e4 = e0 & e1, e1 & e2, e2 & e3, e3 & e4, e4 & E[w + 5, j]
                            more = (popcount(e0) + popcount(e1)) + (popcount(e2) + popcount(e3))
                            e0, e1, e2, e3 = e0 & e1, e1 & e2, e2 & e3, e3 & e4
                            total[j] += c0 * ones + c1 * more
                            alive |= (e0 | e1) | (e2 | e3)
                            E[w, j] = e0
                            E[w + 1, j] = e1
                            E[w + 2, j] = e2
                            E[w + 3, j] = e3
                    if alive == np.uint64(0):
                        break
            for j in range(lanes):
                out[i, start + j] = total[j]


@njit(cache=True, nogil=True)
def count_masked(left, right, lower, first, last, shifts, masks, weights, group, slots, spans, out):
    """out[slots_m, i, j] = sum_r sum_d weights[m, r, d] |{t in mask: d letters of i at t + r, of j at t agree}|.

    Parameters
    ----------
    left, right, lower, first, last, shifts, spans
        As in `count_plain`, for any W.
    masks : uint64 array (Q, R, W)
        Where the d-mers of j may begin.
    weights : float array (M, R, D)
        The weights of M kernels.
    group : int array (Q + 1,)
        Kernels group_q, ..., group_q+1 - 1 use mask q.
    slots : int array (M,)
        The number of each kernel in ``out``.
    out : float array (M, n, m)
        The result.
    """
    known, words = right.shape[1] - 1, right.shape[2]
    tile = np.empty((known + 1, words, LANES), np.uint64)
    E = np.empty((words + 1, LANES), np.uint64)
    counts = np.empty(LANES, np.uint64)
    total = np.empty((out.shape[0], LANES), np.float64)
    source, down, up = _sources(shifts, words)
    for start in range(0, right.shape[0], LANES):
        lanes = min(LANES, right.shape[0] - start)
        begin = max(first, start) if lower else first
        if begin < last:
            _fill_tile(right, start, tile)
        for i in range(begin, last):
            total[:] = 0.0
            for r in range(shifts.shape[0]):
                _compare(left, i, r, source, down, up, tile, E)
                for d in range(spans[r]):
                    for q in range(masks.shape[0]):
                        wanted = False
                        for m in range(group[q], group[q + 1]):
                            wanted |= weights[m, r, d] != 0.0
                        if not wanted:
                            continue
                        counts[:] = np.uint64(0)
                        for w in range(words):
                            mask = masks[q, r, w]
                            if mask != np.uint64(0):
                                for j in range(LANES):
                                    counts[j] += popcount(E[w, j] & mask)
                        for m in range(group[q], group[q + 1]):
                            c = weights[m, r, d]
                            if c != 0.0:
                                for j in range(LANES):
                                    total[m, j] += c * counts[j]
                    alive = np.uint64(0)
                    for j in range(LANES):
                        E[words, j] = E[0, j] >> np.uint64(1)
                    for w in range(words):
                        for j in range(LANES):
                            E[w, j] &= E[w + 1, j]
                            alive |= E[w, j]
                    if alive == np.uint64(0):
                        break
            for m in range(out.shape[0]):
                for j in range(lanes):
                    out[slots[m], i, start + j] = total[m, j]


@njit(cache=True, nogil=True)
def mirror(K):
    """K[j, i] = K[i, j] for j < i, in blocks that stay in the cache."""
    n = K.shape[0]
    for i0 in range(0, n, 64):
        for j0 in range(0, i0 + 64, 64):
            for i in range(i0, min(i0 + 64, n)):
                for j in range(j0, min(j0 + 64, i)):
                    K[j, i] = K[i, j]
