"""Coefficients in a box are brought to a given sum, by compiled loops."""

from __future__ import annotations

import numpy as np
from numba import njit

# rounding of the sum, relative to that of the absolute values: no reason to move more than one coefficient
_ROUNDING = 1e-15


@njit(cache=True, nogil=True)
def balance(a, lo, hi, total, free):
    """Bring sum a to ``total``: each free coefficient by its share of their room, then all of them by theirs.

    What rounding leaves goes to the roomiest, of the free ones where there are such. Sums are compensated.

    Sets: a, of shape (n,), within its bounds lo and hi.
    """
    n = a.shape[0]
    excess = compensated_sum(a, -total)
    if excess == 0.0:
        return
    rounding = _ROUNDING * np.abs(a).sum()
    for everyone in (False, True):
        if abs(excess) <= rounding:
            break
        room = 0.0
        for i in range(n):
            if everyone or free[i]:
                room += a[i] - lo[i] if excess > 0.0 else hi[i] - a[i]
        part = min(1.0, abs(excess) / room) if room > 0.0 else 1.0
        for i in range(n):
            if everyone or free[i]:
                moved = a[i] - part * (a[i] - lo[i] if excess > 0.0 else a[i] - hi[i])
                a[i] = min(max(moved, lo[i]), hi[i])
        excess = compensated_sum(a, -total)
        if part < 1.0:
            break
    everyone = not free.any()
    roomiest, best = 0, -1.0
    for i in range(n):
        if everyone or free[i]:
            room = a[i] - lo[i] if excess > 0.0 else hi[i] - a[i]
            if room > best:
                roomiest, best = i, room
    a[roomiest] = min(max(a[roomiest] - excess, lo[roomiest]), hi[roomiest])


@njit(cache=True, nogil=True)
def compensated_sum(a, start):
    """Return start + sum a, exact but for its last digit (Neumaier 1974)."""
    total, lost = start, 0.0
    for i in range(a.shape[0]):
        x = a[i]
        new = total + x
        lost += (total - new) + x if abs(total) >= abs(x) else (x - new) + total
        total = new
    return total + lost
