"""The base class of the kernels on sequences."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np

from multikernel.kernels.base import Kernel
from multikernel.kernels.inputs import as_weights
from multikernel.kernels.sequences.alphabet import Alphabet, as_alphabet
from multikernel.kernels.sequences.encode import Encoded
from multikernel.kernels.sequences.samples import Sequences, as_sequences
from multikernel.threads import ROWS, Team, resolve_threads


class SequenceKernel(Kernel):
    """Base class of the kernels on sequences.

    A subclass defines `_cross` and `_diag` on `Sequences`. One that compares positions sets `_one_length`.

    Attributes
    ----------
    alphabet_ : Alphabet
        The letters; every other character is unknown and matches nothing, not even itself.
    length_ : int
        The length of the sequences, for kernels that compare positions.
    """

    _one_length = False
    alphabet: Alphabet | str | None
    alphabet_: Alphabet
    length_: int

    def __call__(self, X, Y=None):
        """Evaluate the kernel, as `Kernel.__call__` does, on sequences that are read once."""
        owner = type(self).__name__
        left = as_sequences(X, owner)
        return super().__call__(left, left if Y is X else None if Y is None else as_sequences(Y, owner))

    def diag(self, X):
        return super().diag(as_sequences(X, type(self).__name__))

    def _fit(self, X, sample_weight, shared):
        for name in ("n_features_in_", "alphabet_", "length_"):
            self.__dict__.pop(name, None)
        X = self._check(X)
        self.alphabet_ = X.infer_alphabet() if self.alphabet is None else as_alphabet(self.alphabet)
        if self._one_length:
            self.length_ = int(X.lengths[0]) if len(X) else 0
        self._learn(X, as_weights(sample_weight, X), shared)
        self.n_features_in_ = 1
        return self

    def _check(self, X):
        owner = type(self).__name__
        X = as_sequences(X, owner)
        if self._one_length and len(X):
            lengths = X.lengths
            fitted = hasattr(self, "length_")
            wanted = self.length_ if fitted else int(lengths[0])
            if (other := np.flatnonzero(lengths != wanted)).size:
                length, place = lengths[other[0]], X.index[other[0]]
                expected = "was fitted on sequences of" if fitted else "needs sequences of one length, as the first of"
                raise ValueError(f"{owner} {expected} {wanted} letters. Got one of {length} at index {place} instead.")
        return X

    def _codes(self, X: Sequences) -> Encoded:
        """Return the codes of all sequences in the store of X."""
        return X.encoded(self.alphabet_)


def share_rows(n: int, work: Callable[[int, int], None], *, lower: bool) -> None:
    """Call work(first, last) for row blocks that cover range(n), in parallel where there are many rows.

    Parameters
    ----------
    n : int
        Number of rows.
    work : callable
        Computes the rows of one block; releases the interpreter lock.
    lower : bool
        Whether only the first i + 1 entries of row i are computed.
    """
    # whoever computes a matrix in blocks of one or two times ROWS rows shares the blocks among threads itself
    team = Team(resolve_threads() if n >= 4 * ROWS else 1)
    if team.n_threads == 1:
        work(0, n)
        return
    parts = 4 * team.n_threads
    share = np.arange(parts + 1) / parts
    edges = np.unique((n * (np.sqrt(share) if lower else share)).astype(int))
    # the blocks with the longest rows come first, so that threads end at about the same time
    team.run(partial(work, int(lo), int(hi)) for lo, hi in reversed(list(pairwise(edges))))
