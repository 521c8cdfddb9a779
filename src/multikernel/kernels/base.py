"""Kernels k(x, z): the base class.

A kernel is a scikit-learn estimator whose `fit` learns what depends on the training samples (a width, a
number of columns), and which is then called on samples.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from multikernel.kernels.inputs import Matrix, alike, as_matrix, as_weights
from multikernel.threads import BLOCK_BYTES, ROWS

# A difference of kernel values that is smaller than this fraction of the values is rounding.
ROUNDING = 1e-12
# Letters of a parameter in the name of a kernel: more tell kernels apart, fewer keep tables of names narrow.
_LONGEST = 60


class Kernel(BaseEstimator):
    """Base class of all kernels.

    A subclass defines `_cross`, `_diag` and, where it has parameters, `_learn`; on samples that are not
    vectors it also defines `_check`. All other methods build on these. It says ``positive_semidefinite = True`` and
    ``has_features = True`` where they hold, or defines the properties where its parameters decide.
    """

    # NumPy scalars and arrays leave `2.0 * kernel` to the kernel
    __array_ufunc__ = None

    @property
    def positive_semidefinite(self) -> bool:
        """Whether every Gram matrix of this kernel is positive semidefinite by construction."""
        return False

    @property
    def has_features(self) -> bool:
        """Whether `multikernel.kernels.feature_maps` has explicit features of this kernel, once it is fitted."""
        return False

    def fit(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Kernel:
        """Learn the parameters that depend on the training samples.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Training samples.
        sample_weight : array of shape (n,), optional
            Integer weights count a sample that many times.

        Returns
        -------
        Kernel
            This kernel.
        """
        return self._fit(X, sample_weight, {})

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> np.ndarray:
        """Evaluate the kernel.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (m, d)
            Samples.
        Y : array, sparse matrix or data frame of shape (n, d), optional
            Samples; without them Y = X, and the matrix is exactly symmetric with the diagonal `diag(X)`.

        Returns
        -------
        ndarray of shape (m, n)
            The values k(x_i, y_j) in float64.
        """
        kernel = self._fitted(X if Y is None else Y)
        left = kernel._check(X)
        if Y is None or Y is X:
            return kernel._train(left)
        return kernel._cross(*alike(left, kernel._check(Y)))

    def diag(self, X: ArrayLike) -> np.ndarray:
        """Return the values k(x_i, x_i), float64 of shape (m,)."""
        kernel = self._fitted(X)
        return kernel._diag(kernel._check(X))

    # What a subclass defines.

    def _learn(self, X: Matrix, sample_weight: np.ndarray | None, shared: dict) -> None:
        """Check the parameters and set what is learned.

        `shared` is a dictionary that all kernels fitted on the same columns of the same samples get: what one
        of them computes there, such as a quantile of the distances, others need not compute again.
        """

    def _cross(self, X: Matrix, Y: Matrix) -> np.ndarray:
        """Return a new array of the values k(x_i, y_j)."""
        raise NotImplementedError(f"{type(self).__name__} does not define _cross.")

    def _diag(self, X: Matrix) -> np.ndarray:
        """Return a new array of the values k(x_i, x_i)."""
        raise NotImplementedError(f"{type(self).__name__} does not define _diag.")

    def _check(self, X: ArrayLike) -> Matrix:
        """Return samples in the form that `_cross` takes."""
        owner = type(self).__name__
        matrix = as_matrix(X, owner)
        expected = getattr(self, "n_features_in_", matrix.shape[1])
        if matrix.shape[1] != expected:
            raise ValueError(f"{owner} was fitted on {expected} columns. Got {matrix.shape[1]} instead.")
        return matrix

    def _sharing_key(self) -> Hashable:
        """Return a key, or None: kernels with one key on the same columns are computed by one `_shared_blocks`."""
        return None

    def _shared_blocks(
        self, kernels: Sequence[Kernel], X: Matrix, Y: Matrix, symmetric: bool, dtype: np.dtype | type
    ) -> Iterable[np.ndarray]:
        """Return, one after the other, the blocks (m, n) of kernels with the key of this one.

        Y is X where ``symmetric``; exponentials may be computed in the precision ``dtype``.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define _shared_blocks.")

    def _learns(self) -> bool:
        """Whether the kernel depends on the samples it was fitted on."""
        return False

    # What all kernels have.

    def _fit(self, X, sample_weight, shared: dict) -> Kernel:
        """Fit the kernel; see `fit` and `_learn`."""
        self.__dict__.pop("n_features_in_", None)
        X = self._check(X)
        self._learn(X, as_weights(sample_weight, X), shared)
        self.n_features_in_ = X.shape[1] if getattr(X, "ndim", 1) == 2 else 1
        return self

    def _fitted(self, X) -> Kernel:
        """Return this kernel, or a fitted clone where it is not fitted and learns nothing from samples."""
        if self.__sklearn_is_fitted__():
            return self
        if self._learns():
            raise NotFittedError(f"This {type(self).__name__} learns from the training samples: call fit first.")
        return clone(self).fit(X)

    def _train(self, X: Matrix) -> np.ndarray:
        """Return the matrix of the values k(x_i, x_j), exactly symmetric."""
        K = symmetric_blocks(self._cross, X)
        np.fill_diagonal(K, self._diag(X))
        return K

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "n_features_in_")

    def _name(self) -> str:
        """Return the name of the class with the parameters that differ from their defaults.

        A multiple of the median distance has no name of its own: rbf(0.25), matern(0.25, nu=2.5).
        """
        defaults = inspect.signature(type(self)).parameters
        changed: dict[str, str] = {}
        for key, value in self.get_params(deep=False).items():
            default = defaults[key].default
            if value is not default and not (is_real(value) and is_real(default) and value == default):
                changed[key] = short_number(value)
        parts: list[str] = []
        scaled = "quantile" in defaults and not changed.keys().isdisjoint(("factor", "quantile"))
        given = not changed.keys().isdisjoint(("gamma", "width", "length_scale"))
        if scaled and not given and changed.get("quantile", "0.5") == "0.5":
            changed.pop("quantile", None)
            parts.append(changed.pop("factor", "1"))
        parts.extend(map("=".join, changed.items()))
        word = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self).__name__).lower()
        return f"{word}({', '.join(parts)})" if parts else word

    # The operators; they are defined in multikernel.kernels.algebra, which imports this module.

    def __add__(self, other):
        """Return the sum with a kernel or a constant."""
        return _algebra().add(self, other)

    def __radd__(self, other):
        """Return the sum with a kernel or a constant."""
        return _algebra().add(other, self)

    def __mul__(self, other):
        """Return the product with a kernel or a constant."""
        return _algebra().multiply(self, other)

    def __rmul__(self, other):
        """Return the product with a kernel or a constant."""
        return _algebra().multiply(other, self)

    def __pow__(self, exponent):
        """Return the elementwise power."""
        return _algebra().power(self, exponent)


def symmetric_blocks(values: Callable[[Matrix, Matrix], np.ndarray], X: Matrix) -> np.ndarray:
    """Return the exactly symmetric (n, n) matrix values(X, X), computed in blocks on and above its diagonal."""
    from multikernel.gram.dense_loops import complete  # slow to import

    n = X.shape[0]
    K = np.empty((n, n))
    for i in range(0, n, ROWS):
        rows = slice(i, min(i + ROWS, n))
        for j in range(i, n, ROWS):
            cols = slice(j, min(j + ROWS, n))
            K[rows, cols] = values(X[rows], X[cols])
    # of two roundings of one value, the one above the diagonal
    complete(K)
    return K


def row_blocks(n: int, row_bytes: int) -> Iterator[slice]:
    """Cut n rows of so many bytes into blocks of `BLOCK_BYTES`, or of `ROWS` rows where that is more."""
    size = max(ROWS, BLOCK_BYTES // max(1, row_bytes))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def as_kernel(kernel) -> Kernel:
    """Return a kernel as it is, one given by its name, and any other callable k(X, Y) as a `FunctionKernel`."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        return named_kernel(kernel)
    if callable(kernel) and not inspect.isclass(kernel):
        from multikernel.kernels.function import FunctionKernel

        return FunctionKernel(kernel)
    hint = f": write {kernel.__name__}(), with brackets" if inspect.isclass(kernel) else ""
    raise TypeError(f"A kernel must be a Kernel or a callable k(X, Y). Got {kernel!r} instead{hint}.")


def named_kernel(name: str) -> Kernel:
    """Return the kernel of this name with its default parameters.

    Examples
    --------
    >>> named_kernel("linear"), named_kernel("weighted_degree")
    (Linear(), WeightedDegree())
    """
    found = {}
    for each in vars(importlib.import_module("multikernel.kernels")).values():
        if inspect.isclass(each) and issubclass(each, Kernel) and each is not Kernel:
            required = [p for p in inspect.signature(each).parameters.values() if p.default is p.empty]
            if not required:
                found[_snake(each.__name__)] = each
    if name not in found:
        near = difflib.get_close_matches(str(name), found, 1)
        raise ValueError(
            "The 'kernels' parameter must be 'rbf', a kernel, or a list of kernels and of (name, kernel, columns); a "
            f"kernel may be given by its name: {', '.join(map(repr, sorted(found)))}. Got {name!r} instead."
            + (f" Did you mean {near[0]!r}?" if near else "")
        )
    return found[name]()


def _snake(word: str) -> str:
    """Return the name of a class in small letters: 'weighted_degree', 'rbf'."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).lower()


def kernel_name(kernel) -> str:
    """Return a short name of a kernel, such as 'rbf(gamma=0.5)'."""
    return as_kernel(kernel)._name()


def require(kernel, parameter: str, fulfilled, what: str) -> None:
    """Raise an error about a parameter unless the requirement is fulfilled; ``what`` says what it must be."""
    if not fulfilled:
        value = getattr(kernel, parameter)
        raise ValueError(
            f"The '{parameter}' parameter of {type(kernel).__name__} must be {what}. Got {value!r} instead."
        )


def require_truth(kernel, *parameters: str) -> None:
    """Raise an error about the first of these parameters that is not True or False."""
    for parameter in parameters:
        require(kernel, parameter, isinstance(getattr(kernel, parameter), bool | np.bool_), "True or False")


def is_real(value) -> bool:
    """Whether the value is a finite real number, and not a truth value."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) and math.isfinite(value)


def is_integer(value) -> bool:
    """Whether the value is an integer, and not a truth value."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def _algebra():
    return importlib.import_module("multikernel.kernels.algebra")


def short_number(value) -> str:
    """Return a parameter as the name of a kernel shows it; a long text is cut."""
    text = f"{value:g}" if is_real(value) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
