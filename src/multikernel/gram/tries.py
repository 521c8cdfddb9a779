"""The sets {i : x_i and x_j agree on the d letters from place l on}, for every place l and length d, as tries.

    order_l   samples sorted by their letters from l on;  lcp_l   agreement of neighbours there, at most D
    node      a set of at least two samples that agree on d letters, d in (bottom of its parent, bottom]

Sorting goes from the last place to the first: the order at l is one stable pass by letter over the order at l + 1,
and the agreements follow by running minima (the positional Burrows-Wheeler transform of Durbin 2014), so that a place
costs O(n). Sets of one sample need no node: they only touch the diagonal. Nodes of up to ``direct`` letters lie in a
complete tree, number (x - 1) >> bits above number x, whatever their size; longer ones are numbered after them, one
node for all lengths that share the same samples, and know their parent.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# bits of a link that hold the length of a node; the rest is the number of its parent
DEPTH_BITS = 6
DEPTH_MASK = (1 << DEPTH_BITS) - 1
MAX_DEGREE = DEPTH_MASK
# largest number of bits of a node in the complete tree: 2^16 nodes stay in the second-level cache
_DIRECT_BITS = 16


def letter_bits(size: int) -> int:
    """Return the number of bits of a letter of an alphabet of this size.

    Examples
    --------
    >>> letter_bits(4), letter_bits(20)
    (2, 5)
    """
    return max(1, int(size - 1).bit_length())


def direct_length(n: int, bits: int, degree: int) -> int:
    """Return the number of letters up to which nodes lie in a complete tree on n samples.

    Examples
    --------
    >>> direct_length(1_000_000, 2, 20), direct_length(100, 2, 20), direct_length(100, 5, 3)
    (8, 3, 1)
    """
    return max(1, min(degree, _DIRECT_BITS // bits, int(np.log2(max(n, 2))) // bits))


def tree_starts(direct: int, bits: int) -> np.ndarray:
    """Return the number of the first node of each length 0, ..., direct, and of the first node beyond."""
    return np.array([((1 << (bits * d)) - 1) // ((1 << bits) - 1) for d in range(direct + 2)], np.int64)


class Walk:
    """The tries of all places, one after the other from the last place to the first.

    Parameters
    ----------
    codes : ndarray of shape (n, L), uint8
        Letters; ``size`` stands for an unknown one, which agrees with nothing.
    size : int
        Number of letters.
    degree : int
        Longest agreement that counts.

    Attributes
    ----------
    direct, bits : int
        Letters of the nodes in the complete tree, and bits of a letter.
    starts : ndarray of int
        First node of each length, the last entry the first node that has a link.
    """

    def __init__(self, codes: np.ndarray, size: int, degree: int) -> None:
        n = codes.shape[0]
        self.codes, self.size, self.degree = codes, size, degree
        self.bits = letter_bits(size)
        self.direct = direct_length(n, self.bits, degree)
        self.starts = tree_starts(self.direct, self.bits)

    def __iter__(self):
        """Yield (l, leaf, links, depth, reach) for l = L - 1, ..., 0.

        leaf : uint32 array (n,), the longest node of each sample; links : uint32 array, parent and length of the
        nodes beyond the complete tree; depth, reach : uint8 arrays (n,), letters of that node, and letters up to an
        unknown one or the end. All but links are written over in the next step.
        """
        n, places = self.codes.shape
        order, lcp = np.arange(n, dtype=np.uint32), np.zeros(n, np.uint8)
        other, fresh = np.empty_like(order), np.empty_like(lcp)
        code, reach = np.zeros(n, np.uint32), np.zeros(n, np.uint8)
        leaf, depth, links = np.empty(n, np.uint32), np.empty(n, np.uint8), np.empty(n, np.uint32)
        for place in range(places - 1, -1, -1):
            column = np.ascontiguousarray(self.codes[:, place])
            sort_place(column, self.size, self.degree, order, lcp, other, fresh)
            order, lcp, other, fresh = other, fresh, order, lcp
            extend(column, self.size, self.degree, self.bits, self.direct, code, reach)
            m = grow(order, lcp, code, reach, self.direct, self.bits, self.starts, leaf, depth, links)
            yield place, leaf, links[:m].copy(), depth, reach


@njit(cache=True, nogil=True)
def sort_place(column, size, degree, order, lcp, new_order, new_lcp):
    """One stable pass by letter: from the order and agreements at l + 1 to those at l."""
    n = len(order)
    start = np.zeros(size + 2, np.int64)
    for i in range(n):
        start[column[i] + 1] += 1
    for c in range(size + 1):
        start[c + 1] += start[c]
    fill = start.copy()
    # least agreement at l + 1 since the last sample with this letter
    least = np.zeros(size, np.uint8)
    for i in range(n):
        agree = lcp[i]
        for c in range(size):
            least[c] = min(least[c], agree)
        j = order[i]
        letter = column[j]
        at = fill[letter]
        fill[letter] += 1
        new_order[at] = j
        if letter < size:
            new_lcp[at] = min(degree, least[letter] + 1) if at > start[letter] else 0
            least[letter] = 255
        else:
            new_lcp[at] = 0


@njit(cache=True, nogil=True)
def extend(column, size, degree, bits, direct, code, reach):
    """Put the letter at l before those from l + 1 on. Sets: code, the first letters; reach, how many there are."""
    top = bits * (direct - 1)
    for i in range(len(column)):
        letter = column[i]
        if letter < size:
            code[i] = (letter << top) | (code[i] >> bits)
            reach[i] = min(degree, reach[i] + 1)
        else:
            code[i] = 0
            reach[i] = 0


@njit(cache=True, nogil=True)
def grow(order, lcp, code, reach, direct, bits, starts, leaf, depth, links):
    """Make the nodes of one place from the sorted samples; return the number of those with links.

    A node is open while its samples pass by; the stack holds the open nodes, shorter ones below.
    """
    n, first = len(order), starts[direct + 1]
    node, length = np.empty(DEPTH_MASK + 2, np.int64), np.empty(DEPTH_MASK + 2, np.int64)
    top, made = -1, 0
    for i in range(1, n + 1):
        agree = np.int64(lcp[i]) if i < n else 0
        if agree <= direct:
            agree = 0
        j = order[i - 1]
        e = min(direct, np.int64(reach[j]))
        stem = starts[e] + (np.int64(code[j]) >> (bits * (direct - e)))
        if agree > 0 and (top < 0 or agree > length[top]):
            top += 1
            node[top], length[top] = first + made, agree
            made += 1
            leaf[j], depth[j] = node[top], agree
            continue
        if top < 0:
            leaf[j], depth[j] = stem, e
            continue
        leaf[j], depth[j] = node[top], length[top]
        while top >= 0 and length[top] > agree:
            x, bottom = node[top], length[top]
            top -= 1
            if top >= 0 and length[top] >= agree:
                parent = node[top]
            elif agree > 0:
                top += 1
                node[top], length[top] = first + made, agree
                made += 1
                parent = node[top]
            else:
                parent = stem
            links[x - first] = (parent << DEPTH_BITS) | bottom
    return made
