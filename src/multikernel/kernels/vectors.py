"""Kernels of inner products and of histograms, on vectors."""

from __future__ import annotations

from math import comb

import numpy as np
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from multikernel.kernels.base import Kernel, is_integer, is_real, require
from multikernel.kernels.distances import distances
from multikernel.kernels.inputs import check_non_negative

# Monomials of a polynomial kernel that are computed one by one: more features take longer than the kernel matrix.
_MONOMIALS = 20_000


class Linear(Kernel):
    """The inner product k(x, z) = <x, z>.

    Examples
    --------
    >>> from multikernel.kernels import Linear
    >>> Linear()([[1.0, 2.0], [0.0, 1.0]])
    array([[5., 2.],
           [2., 1.]])
    """

    positive_semidefinite = True
    has_features = True

    def _cross(self, X, Y):
        return safe_sparse_dot(X, Y.T, dense_output=True)

    def _diag(self, X):
        return row_norms(X, squared=True)


class Polynomial(Kernel):
    """The polynomial kernel k(x, z) = (gamma <x, z> + coef0)^degree.

    Parameters
    ----------
    degree : int, default=3
        The degree.
    gamma : float, optional
        The factor of the inner product; by default one over the number of columns.
    coef0 : float, default=1.0
        The constant; the kernel is positive semidefinite where the constant is not negative.

    Attributes
    ----------
    gamma_ : float
        The factor in use.
    """

    def __init__(self, degree=3, *, gamma=None, coef0=1.0):
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    @property
    def positive_semidefinite(self) -> bool:
        """Whether the constant is not negative."""
        return self.coef0 >= 0

    @property
    def has_features(self) -> bool:
        """Whether the monomials are not too many, and no coefficient of them is negative."""
        d = getattr(self, "n_features_in_", 1)
        return self.coef0 >= 0 and comb(d + self.degree, self.degree) <= _MONOMIALS

    def _learn(self, X, sample_weight, shared):
        require(self, "degree", is_integer(self.degree) and self.degree >= 1, "a positive integer")
        gamma = self.gamma
        require(self, "gamma", gamma is None or (is_real(gamma) and gamma > 0), "a positive number or None")
        require(self, "coef0", is_real(self.coef0), "a number")
        self.gamma_ = 1.0 / X.shape[1] if gamma is None else float(gamma)

    def _map(self, G):
        G *= self.gamma_
        G += self.coef0
        return np.power(G, self.degree, out=G)

    def _cross(self, X, Y):
        return self._map(safe_sparse_dot(X, Y.T, dense_output=True))

    def _diag(self, X):
        return self._map(row_norms(X, squared=True))


class Cosine(Kernel):
    """The cosine of the angle k(x, z) = <x, z> / (|x| |z|), and zero where x or z is zero."""

    positive_semidefinite = True

    def _cross(self, X, Y):
        from sklearn.metrics.pairwise import cosine_similarity  # slow to import

        return cosine_similarity(X, Y, dense_output=True)

    def _diag(self, X):
        return (row_norms(X, squared=True) > 0).astype(np.float64)


class Tanimoto(Kernel):
    """The Tanimoto kernel k(x, z) = <x, z> / (|x|^2 + |z|^2 - <x, z>), and one where both are zero.

    On binary vectors it is the size of the intersection over that of the union. It is positive semidefinite
    on all real vectors: 1 / s is the integral of exp(-t s), and exp(-t (|x|^2 + |z|^2 - <x, z>)) is a kernel for
    every t >= 0.
    """

    positive_semidefinite = True

    def _cross(self, X, Y):
        G = safe_sparse_dot(X, Y.T, dense_output=True)
        union = row_norms(X, squared=True)[:, None] + row_norms(Y, squared=True)
        union -= G
        return np.divide(G, union, out=np.ones_like(G), where=union > 0)

    def _diag(self, X):
        return np.ones(X.shape[0])


class HistogramIntersection(Kernel):
    """The histogram intersection k(x, z) = sum_j min(x_j, z_j), on non-negative columns."""

    positive_semidefinite = True

    def _check(self, X):
        X = super()._check(X)
        check_non_negative(X, "HistogramIntersection")
        return X

    def _cross(self, X, Y):
        # min(a, b) = (a + b - |a - b|) / 2
        K = distances("cityblock", X, Y)
        np.subtract(self._diag(X)[:, None], K, out=K)
        K += self._diag(Y)
        K *= 0.5
        return np.maximum(K, 0.0, out=K)

    def _diag(self, X):
        return np.asarray(X.sum(axis=1), dtype=np.float64).ravel()


class Constant(Kernel):
    """The constant k(x, z) = value.

    Parameters
    ----------
    value : float, default=1.0
        The constant.
    """

    def __init__(self, value=1.0):
        self.value = value

    @property
    def positive_semidefinite(self) -> bool:
        """Whether the constant is not negative."""
        return self.value >= 0

    def _learn(self, X, sample_weight, shared):
        require(self, "value", is_real(self.value), "a number")

    def _cross(self, X, Y):
        return np.full((X.shape[0], Y.shape[0]), float(self.value))

    def _diag(self, X):
        return np.full(X.shape[0], float(self.value))
