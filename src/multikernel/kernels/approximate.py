"""Kernels that are defined by their features: k(x, z) = <phi(x), phi(z)>, with phi of bounded size.

    RandomFourier   phi(x) = sqrt(2/m) (cos w_j'x, sin w_j'x), w_j ~ N(0, 2 gamma I): on average the Gaussian kernel
    Nystroem        phi(x) = K_ZZ^(-1/2) k(Z, x), Z some of the training samples: exact on Z
    HashedDegree    the d-mers of a weighted degree kernel with their places, hashed into a table

Each approximates another kernel. As a kernel of its own it is exact and positive semidefinite, and can be trained on a
million samples, since its features are explicit.

References
----------
A. Rahimi, B. Recht. Random features for large-scale kernel machines. NIPS 2007.
C. Williams, M. Seeger. Using the Nystroem method to speed up kernel machines. NIPS 2000.
S. Sonnenburg, G. Raetsch, C. Schaefer. Learning interpretable SVMs for biological sequence classification. RECOMB 2005.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy import sparse
from sklearn.base import clone

from multikernel.kernels.base import Kernel, as_kernel, is_integer, require
from multikernel.kernels.inputs import len_of
from multikernel.kernels.radial import RBF
from multikernel.kernels.sequences.degree import WeightedDegree


class FeatureKernel(Kernel):
    """Base class of the kernels with a bounded number of features; a subclass defines `_features`."""

    positive_semidefinite = True
    has_features = True

    def features(self, X) -> np.ndarray | sparse.csr_array:
        """Return phi(x_i) as the rows of a dense or sparse matrix."""
        kernel = self._fitted(X)
        return kernel._features(kernel._check(X))

    def _features(self, X):
        raise NotImplementedError(f"{type(self).__name__} does not define _features.")

    def _cross(self, X, Y):
        product = self._features(X) @ self._features(Y).T
        return product.toarray() if sparse.issparse(product) else product

    def _diag(self, X):
        Phi = self._features(X)
        if sparse.issparse(Phi):
            return np.asarray(Phi.multiply(Phi).sum(axis=1), np.float64).ravel()
        return np.einsum("ij,ij->i", Phi, Phi)

    def _learns(self):
        return True


class RandomFourier(FeatureKernel):
    """Random Fourier features of the Gaussian kernel.

    The error of one value is of the order 1 / sqrt(n_features), whatever the number of samples; k(x, x) = 1 exactly.

    Parameters
    ----------
    kernel : RBF, optional
        The Gaussian kernel that is approximated, by default `RBF()`, whose width is the median distance.
    n_features : int, default=500
        Number m of features, even.
    random_state : int, default=0
        Seed of the frequencies.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.kernels import RBF, RandomFourier
    >>> X = np.array([[0.0], [1.0]])
    >>> kernel = RandomFourier(RBF(gamma=0.5), n_features=20000).fit(X)
    >>> abs(kernel(X)[0, 1] - RBF(gamma=0.5)(X)[0, 1]) < 0.01
    np.True_
    """

    def __init__(self, kernel=None, n_features=500, random_state=0):
        self.kernel = kernel
        self.n_features = n_features
        self.random_state = random_state

    def _learn(self, X, sample_weight, shared):
        require(self, "kernel", self.kernel is None or isinstance(self.kernel, RBF), "an RBF kernel or None")
        even = is_integer(self.n_features) and self.n_features > 0 and self.n_features % 2 == 0
        require(self, "n_features", even, "a positive even integer")
        seed = is_integer(self.random_state) and self.random_state >= 0
        require(self, "random_state", seed, "a non-negative integer")
        self.kernel_ = (RBF() if self.kernel is None else clone(self.kernel))._fit(X, sample_weight, shared)
        rng = np.random.default_rng(self.random_state)
        size = X.shape[1], self.n_features // 2
        self.frequencies_ = np.sqrt(2.0) / self.kernel_.length_ * rng.standard_normal(size)

    def _features(self, X):
        angle = np.asarray(X @ self.frequencies_)
        Phi = np.empty((len(angle), self.n_features))
        half = self.n_features // 2
        np.cos(angle, out=Phi[:, :half])
        np.sin(angle, out=Phi[:, half:])
        Phi *= np.sqrt(1.0 / half)
        return Phi


class Nystroem(FeatureKernel):
    """Nystroem features of any kernel: exact on the landmarks, the projection onto them elsewhere.

    Parameters
    ----------
    kernel : kernel, optional
        The kernel that is approximated, by default `RBF()`.
    n_landmarks : int, default=300
        Number of training samples that are landmarks, drawn without replacement; all where there are fewer.
    random_state : int, default=0
        Seed of the draw.

    Attributes
    ----------
    landmarks_ : samples
        The landmarks.
    map_ : ndarray of shape (n_landmarks, n_features)
        K_ZZ^(-1/2) without its zero directions.
    """

    def __init__(self, kernel=None, n_landmarks=300, random_state=0):
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def _check(self, X):
        return as_kernel(self.kernel)._check(X) if self.kernel is not None else super()._check(X)

    def _learn(self, X, sample_weight, shared):
        require(self, "n_landmarks", is_integer(self.n_landmarks) and self.n_landmarks >= 1, "a positive integer")
        seed = is_integer(self.random_state) and self.random_state >= 0
        require(self, "random_state", seed, "a non-negative integer")
        self.kernel_ = RBF() if self.kernel is None else as_kernel(clone(self.kernel))
        self.kernel_._fit(X, sample_weight, shared)
        n = len_of(X)
        chosen = np.random.default_rng(self.random_state).permutation(n)[: self.n_landmarks]
        self.landmarks_ = X[np.sort(chosen)]
        values, vectors = np.linalg.eigh(self.kernel_(self.landmarks_))
        # eigenvalues that are rounding: the rule of numpy.linalg.matrix_rank
        keep = values > len(values) * np.finfo(np.float64).eps * max(values[-1], 0.0)
        self.map_ = vectors[:, keep] / np.sqrt(values[keep])

    def _features(self, X):
        return self.kernel_(X, self.landmarks_) @ self.map_


class HashedDegree(FeatureKernel):
    """The weighted degree kernel with its features hashed into a table of fixed size.

    Two d-mers (with their places) that are hashed to one slot count as the same. With m slots and s features in a
    sequence a value is therefore too large by about s^2 / m in units of the weights, for all pairs of sequences alike,
    up to noise. `WeightedDegree` itself has exact features, which are to be preferred; hashing is for alphabets and
    degrees that have too many of them.

    Parameters
    ----------
    kernel : WeightedDegree, optional
        The kernel that is approximated, by default `WeightedDegree()`.
    slots : int, default=262144
        Size m of the table, a power of two.

    Examples
    --------
    >>> from multikernel.kernels import HashedDegree, WeightedDegree
    >>> HashedDegree(WeightedDegree(2, weights=[1, 1]))(["ACGT", "ACGA"])
    array([[7., 5.],
           [5., 7.]])
    """

    def __init__(self, kernel=None, slots=1 << 18):
        self.kernel = kernel
        self.slots = slots

    def _check(self, X):
        valid = self.kernel is None or isinstance(self.kernel, WeightedDegree)
        require(self, "kernel", valid, "a WeightedDegree or None")
        return (self.__dict__.get("kernel_") or self.kernel or WeightedDegree())._check(X)

    def _fit(self, X, sample_weight, shared):
        self.__dict__.pop("kernel_", None)
        return super()._fit(X, sample_weight, shared)

    def _learns(self):
        return False

    def _learn(self, X, sample_weight, shared):
        power = is_integer(self.slots) and 2 <= self.slots <= 1 << 31 and self.slots & (self.slots - 1) == 0
        require(self, "slots", power, "a power of two from 2 to 2^31")
        self.kernel_ = (WeightedDegree() if self.kernel is None else clone(self.kernel))._fit(X, sample_weight, shared)

    def _features(self, X):
        codes = code_matrix(self.kernel_, X)
        weight = np.sqrt(np.outer(self.kernel_._inside(), self.kernel_._beta()))
        entries = int((weight > 0).sum())
        slots, values = np.zeros((len(codes), entries), np.int32), np.zeros((len(codes), entries))
        hash_places(codes, self.kernel_.alphabet_.size, weight, self.slots - 1, slots, values)
        # sparse arrays keep the type of their indices: 32 bits where they suffice
        index = np.int32 if slots.size < 2**31 else np.int64
        start = np.arange(0, slots.size + 1, max(entries, 1), dtype=index)
        Phi = sparse.csr_array((values.ravel(), slots.ravel(), start), (len(codes), self.slots))
        Phi.sum_duplicates()
        return Phi


def code_matrix(kernel, X) -> np.ndarray:
    """Return the letters of sequences of one length as a fitted kernel reads them, uint8 of shape (n, L)."""
    X = kernel._check(X)
    encoded = kernel._codes(X)
    if encoded.length is None:
        return encoded.take(X.index).matrix()
    matrix = encoded.matrix()
    return matrix if X.rows is None else matrix[X.rows]


@njit(cache=True)
def hash_places(codes, size, weight, mask, slots, values):
    """Write the slot and the value of every (place, d-mer) of each row, zero where an unknown letter spoils it."""
    for i in range(codes.shape[0]):
        at = 0
        for place in range(codes.shape[1]):
            # Fowler-Noll-Vo over the place and the letters, mixed as in splitmix64
            h = np.uint64(14695981039346656037) ^ np.uint64(place)
            known = True
            for d in range(weight.shape[1]):
                if place + d >= codes.shape[1] or codes[i, place + d] >= size:
                    known = False
                if known:
                    h = (h * np.uint64(1099511628211)) ^ np.uint64(codes[i, place + d] + 1)
                if weight[place, d] > 0.0:
                    if known:
                        x = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                        slots[i, at] = np.int32((x ^ (x >> np.uint64(31))) & np.uint64(mask))
                        values[i, at] = weight[place, d]
                    at += 1
