"""Compiled passes over the letters of sequences."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def look_up(table, characters, out):
    """out_t = table[characters_t]."""
    for t in range(characters.shape[0]):
        out[t] = table[characters[t]]


@njit(cache=True, nogil=True)
def histogram(characters):
    """Return how often each of the 256 characters occurs."""
    # four tables: equal neighbours need not wait for each other
    counts = np.zeros((4, 256), np.int64)
    m = characters.shape[0]
    for t in range(m // 4):
        for r in range(4):
            counts[r, characters[4 * t + r]] += 1
    for t in range(m // 4 * 4, m):
        counts[0, characters[t]] += 1
    return counts[0] + counts[1] + counts[2] + counts[3]
