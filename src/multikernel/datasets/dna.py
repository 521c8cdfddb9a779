"""Random DNA with a planted motif."""

from __future__ import annotations

import numpy as np

from multikernel.datasets.checks import check_integer, check_real
from multikernel.kernels.sequences.alphabet import look_up


def dna(
    n: int = 2000,
    length: int = 200,
    *,
    motif: str = "GATTACAGGCAT",
    at: int | None = None,
    mutation: float = 0.25,
    seed: int = 10,
) -> tuple[np.ndarray, np.ndarray]:
    """Random DNA; every second sequence carries a mutated motif at a fixed place.

    Parameters
    ----------
    n : int, default=2000
        Number of sequences.
    length : int, default=200
        Length of each sequence.
    motif : str, default='GATTACAGGCAT'
        The planted motif, of the letters A, C, G, T.
    at : int, optional
        The place where the motif begins; by default the middle.
    mutation : float, default=0.25
        The probability that a letter of the motif is replaced by a random one.
    seed : int, default=10
        Seed of the draw.

    Returns
    -------
    sequences : 'S' array of shape (n,)
        One byte for each letter.
    y : ndarray of shape (n,)
        +1 where the motif was planted, otherwise -1.

    Examples
    --------
    >>> from multikernel.datasets import dna
    >>> sequences, y = dna(4, 10, motif="GATTACA", at=1, mutation=0.0, seed=0)
    >>> y.tolist(), [bytes(s[1:8]) for s in sequences[1::2]]
    ([-1, 1, -1, 1], [b'GATTACA', b'GATTACA'])
    """
    check_integer("dna", "n", n, 1)
    check_integer("dna", "length", length, 1)
    check_integer("dna", "seed", seed, 0)
    check_real("dna", "mutation", mutation, below=1.0 + 1e-12)
    if not isinstance(motif, str) or not set(motif.upper()) <= set("ACGT"):
        raise ValueError(
            f"The 'motif' parameter of dna must be a text of the letters A, C, G and T. Got {motif!r} instead."
        )
    place = max(0, min(length // 2, length - len(motif))) if at is None else at
    check_integer("dna", "at", place, 0, length - len(motif))
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (n, length), dtype=np.uint8)
    y = np.where(np.arange(n) % 2, 1, -1)
    planted = np.tile(np.array(["ACGT".index(letter) for letter in motif.upper()], np.uint8), (n // 2, 1))
    change = rng.random(planted.shape) < mutation
    planted[change] = rng.integers(0, 4, change.sum())
    codes[1::2, place : place + len(motif)] = planted
    look_up(np.frombuffer(b"ACGT", np.uint8), codes.reshape(-1), codes.reshape(-1))
    return codes.view(f"S{length}").ravel(), y
