"""Kernels on sequences by their definitions: letter by letter, pair by pair."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import numpy as np

UNKNOWN = "N"


def agree(u: str, v: str) -> bool:
    return u == v and UNKNOWN not in u


def beta(D: int) -> list[float]:
    return [2 * (D - d + 1) / (D * (D + 1)) for d in range(1, D + 1)]


def weighted_degree(x, z, weights, shift=0, window=None):
    L, total = len(x), 0.0
    reach = np.broadcast_to(shift, L)
    inside = (lambda t: True) if window is None else (lambda t: window[0] <= t < window[1])
    for d, weight in enumerate(weights, 1):
        for t in range(L):
            for s in range(reach[t] + 1):
                if t + s + d <= L and inside(t) and inside(t + s):
                    far, near = slice(t + s, t + s + d), slice(t, t + d)
                    total += weight / (2 * (s + 1)) * (agree(x[far], z[near]) + agree(x[near], z[far]))
    return total


def motifs(x, mask, region=None, presence=False):
    if region is not None:
        x = x[:region] if region > 0 else x[region:]
    counts = Counter()
    for t in range(len(x) - len(mask) + 1):
        word = "".join(letter for letter, cared in zip(x[t : t + len(mask)], mask, strict=True) if cared == "1")
        if UNKNOWN not in word:
            counts[word] += 1
    return Counter(dict.fromkeys(counts, 1)) if presence else counts


def neighbours(x, k, m, letters):
    counts = Counter()
    for t in range(len(x) - k + 1):
        word = x[t : t + k]
        if UNKNOWN in word:
            continue
        for other in product(letters, repeat=k):
            if sum(a != b for a, b in zip(word, other, strict=True)) <= m:
                counts["".join(other)] += 1
    return counts


def inner(a: Counter, b: Counter) -> float:
    return float(sum(count * b[word] for word, count in a.items()))


def gapped_kmer(x, z, window, k):
    total = 0.0
    for places in combinations(range(window), k):
        mask = "".join("1" if t in places else "0" for t in range(window))
        total += inner(motifs(x, mask), motifs(z, mask))
    return total


def smith_waterman(x, z, score, opening, extending):
    H = np.zeros((len(x) + 1, len(z) + 1))
    for i in range(1, len(x) + 1):
        for j in range(1, len(z) + 1):
            # a gap of g letters costs opening + (g - 1) extending
            above = [H[i - g, j] - opening - (g - 1) * extending for g in range(1, i + 1)]
            along = [H[i, j - g] - opening - (g - 1) * extending for g in range(1, j + 1)]
            H[i, j] = max(0.0, H[i - 1, j - 1] + score(x[i - 1], z[j - 1]), *above, *along)
    return H.max()
