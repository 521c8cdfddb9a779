"""Sums, products, multiples and powers of kernels.

    (k1 + k2)(x, z) = k1(x, z) + k2(x, z)        (k1 * k2)(x, z) = k1(x, z) k2(x, z)
    (c * k)(x, z)   = c k(x, z)                  (k ** r)(x, z)  = k(x, z)^r

Sums, products and non-negative multiples of positive semidefinite kernels are positive semidefinite, and so
are their powers with a non-negative integer exponent.
"""

from __future__ import annotations

from numbers import Real

import numpy as np
from sklearn.base import clone

from multikernel.kernels.base import Kernel, as_kernel, is_real, kernel_name, require, short_number
from multikernel.kernels.vectors import Constant


def add(k1, k2):
    """Return the sum of two kernels, or of a kernel and a constant; zero adds nothing."""
    if isinstance(k1, Real):
        return k2 if k1 == 0 else Sum(Constant(k1), k2)
    if isinstance(k2, Real):
        return k1 if k2 == 0 else Sum(k1, Constant(k2))
    return Sum(k1, k2) if callable(k1) and callable(k2) else NotImplemented


def multiply(k1, k2):
    """Return the product of two kernels, or of a kernel and a constant."""
    if isinstance(k1, Real):
        return Scaled(k2, k1)
    if isinstance(k2, Real):
        return Scaled(k1, k2)
    return Product(k1, k2) if callable(k1) and callable(k2) else NotImplemented


def power(kernel, exponent):
    """Return the elementwise power of a kernel."""
    return Power(kernel, exponent) if isinstance(exponent, Real) else NotImplemented


class _Binary(Kernel):
    """Two kernels on the same samples."""

    def __init__(self, k1, k2):
        self.k1 = k1
        self.k2 = k2

    @property
    def positive_semidefinite(self) -> bool:
        """Whether both kernels are positive semidefinite."""
        return as_kernel(self.k1).positive_semidefinite and as_kernel(self.k2).positive_semidefinite

    def _learns(self):
        return as_kernel(self.k1)._learns() or as_kernel(self.k2)._learns()

    def _check(self, X):
        return X

    def _fit(self, X, sample_weight, shared):
        self.k1_ = as_kernel(clone(self.k1, safe=False))._fit(X, sample_weight, shared)
        self.k2_ = as_kernel(clone(self.k2, safe=False))._fit(X, sample_weight, shared)
        self.n_features_in_ = self.k1_.n_features_in_
        return self

    def _train(self, X):
        return self._combine(self.k1_(X), self.k2_(X))

    def _cross(self, X, Y):
        return self._combine(self.k1_(X, Y), self.k2_(X, Y))

    def _diag(self, X):
        return self._combine(self.k1_.diag(X), self.k2_.diag(X))


class Sum(_Binary):
    """The sum k1(x, z) + k2(x, z); also written `k1 + k2`.

    Parameters
    ----------
    k1, k2 : Kernel or callable
        The terms.

    Examples
    --------
    >>> from multikernel.kernels import Linear, RBF
    >>> (Linear() + RBF(gamma=1.0))([[1.0], [1.0]])
    array([[2., 2.],
           [2., 2.]])
    """

    def _combine(self, A, B):
        return np.add(A, B, out=A)

    def _name(self):
        return f"{kernel_name(self.k1)} + {kernel_name(self.k2)}"


class Product(_Binary):
    """The product k1(x, z) k2(x, z); also written `k1 * k2`.

    Parameters
    ----------
    k1, k2 : Kernel or callable
        The factors.
    """

    def _combine(self, A, B):
        return np.multiply(A, B, out=A)

    def _name(self):
        return f"{_factor(self.k1)} * {_factor(self.k2)}"


class _Unary(Kernel):
    """A function of the values of one kernel."""

    def _learns(self):
        return as_kernel(self.kernel)._learns()

    def _check(self, X):
        return X

    def _fit(self, X, sample_weight, shared):
        self._validate()
        self.kernel_ = as_kernel(clone(self.kernel, safe=False))._fit(X, sample_weight, shared)
        self.n_features_in_ = self.kernel_.n_features_in_
        return self

    def _train(self, X):
        return self._map(self.kernel_(X))

    def _cross(self, X, Y):
        return self._map(self.kernel_(X, Y))

    def _diag(self, X):
        return self._map(self.kernel_.diag(X))


class Power(_Unary):
    """The elementwise power k(x, z)^r; also written `kernel ** r`.

    Parameters
    ----------
    kernel : Kernel or callable
        The base; its values must not be negative unless r is an integer.
    exponent : float
        The exponent r >= 0. A non-negative integer keeps a kernel positive semidefinite; other exponents may
        not.
    """

    def __init__(self, kernel, exponent):
        self.kernel = kernel
        self.exponent = exponent

    @property
    def positive_semidefinite(self) -> bool:
        """Whether the base is positive semidefinite and the exponent a non-negative integer."""
        return as_kernel(self.kernel).positive_semidefinite and float(self.exponent).is_integer()

    def _validate(self):
        require(self, "exponent", is_real(self.exponent) and self.exponent >= 0, "a non-negative number")

    def _map(self, K):
        if not float(self.exponent).is_integer() and K.size and K.min() < 0:
            raise ValueError(
                f"The 'exponent' parameter of Power must be an integer for a kernel with negative values. "
                f"Got {self.exponent} and the value {K.min():.3g} instead."
            )
        return np.power(K, self.exponent, out=K)

    def _name(self):
        inner = as_kernel(self.kernel)
        base = f"({inner._name()})" if isinstance(inner, (_Binary, _Unary)) else inner._name()
        return f"{base} ** {short_number(self.exponent)}"


class Scaled(_Unary):
    """The multiple c k(x, z); also written `c * kernel`.

    Parameters
    ----------
    kernel : Kernel or callable
        The kernel.
    constant : float, default=1.0
        The factor c; a kernel stays positive semidefinite for c >= 0.
    """

    def __init__(self, kernel, constant=1.0):
        self.kernel = kernel
        self.constant = constant

    @property
    def positive_semidefinite(self) -> bool:
        """Whether the kernel is positive semidefinite and the factor is not negative."""
        return as_kernel(self.kernel).positive_semidefinite and self.constant >= 0

    def _validate(self):
        require(self, "constant", is_real(self.constant), "a number")

    def _map(self, K):
        return np.multiply(K, self.constant, out=K)

    def _name(self):
        return f"{short_number(self.constant)} * {_factor(self.kernel)}"


def _factor(kernel) -> str:
    name = kernel_name(kernel)
    return f"({name})" if isinstance(kernel, Sum) else name
