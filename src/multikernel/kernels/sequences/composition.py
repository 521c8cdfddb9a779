"""Amino-acid composition: a kernel on the shares of the letters.

    k(x, z) = kernel(f(x), f(z)),      f_a(x) = the share of the letter a among the known letters of x

The shares are vectors, so `kernel` may be any kernel on vectors.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from multikernel.kernels.base import as_kernel
from multikernel.kernels.sequences.base import SequenceKernel
from multikernel.kernels.sequences.encode import Encoded
from multikernel.kernels.sequences.samples import Sequences
from multikernel.kernels.vectors import Linear


class AminoAcidComposition(SequenceKernel):
    """A kernel on the composition of sequences.

    Parameters
    ----------
    kernel : Kernel, optional
        The kernel on the vectors of shares; by default the inner product.
    alphabet : 'dna', 'rna', 'protein', str or Alphabet, default='protein'
        The letters; None infers them from the training samples.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, fitted on the shares of the training samples.

    Examples
    --------
    >>> from multikernel.kernels import AminoAcidComposition
    >>> AminoAcidComposition()(["AAC", "CCC"]).round(3)
    array([[0.556, 0.333],
           [0.333, 1.   ]])
    """

    def __init__(self, kernel=None, *, alphabet="protein"):
        self.kernel = kernel
        self.alphabet = alphabet

    @property
    def positive_semidefinite(self) -> bool:
        """Whether the kernel on the shares is positive semidefinite."""
        return self.kernel is None or as_kernel(self.kernel).positive_semidefinite

    def _learns(self):
        return self.kernel is not None and as_kernel(self.kernel)._learns()

    def _learn(self, X, sample_weight, shared):
        kernel = Linear() if self.kernel is None else as_kernel(clone(self.kernel, safe=False))
        own = shared.setdefault(("composition", self.alphabet_), {})
        self.kernel_ = kernel._fit(self._shares(X), sample_weight, own)

    def _shares(self, X: Sequences) -> np.ndarray:
        encoded = self._codes(X)
        return X.prepared(("shares", encoded.alphabet), lambda: composition(encoded))[X.index]

    def _train(self, X):
        return self.kernel_(self._shares(X))

    def _cross(self, X, Y):
        return self.kernel_(self._shares(X), self._shares(Y))

    def _diag(self, X):
        return self.kernel_.diag(self._shares(X))


def composition(encoded: Encoded) -> np.ndarray:
    """Return the share of every letter in every sequence, shape (n, size); zeros where no letter is known.

    Examples
    --------
    >>> from multikernel.kernels.sequences import encode
    >>> from multikernel.kernels.sequences.composition import composition
    >>> composition(encode(["AACN"], "dna"))
    array([[0.66666667, 0.33333333, 0.        , 0.        ]])
    """
    n, size = len(encoded), encoded.alphabet.size
    places = np.repeat(np.arange(n), encoded.lengths) * (size + 1) + encoded.codes
    counts = np.bincount(places, minlength=n * (size + 1)).reshape(n, size + 1)[:, :size].astype(np.float64)
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
