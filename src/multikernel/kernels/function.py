"""Any callable k(X, Y) -> matrix as a kernel.

A user's function, say, or a kernel of `sklearn.gaussian_process.kernels`.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from multikernel.kernels.base import Kernel, require_truth
from multikernel.kernels.inputs import as_matrix, len_of
from multikernel.kernels.sequences.samples import Sequences


class FunctionKernel(Kernel):
    """The kernel that a callable computes.

    Parameters
    ----------
    function : callable
        Takes samples X (m rows) and Y (n rows) and returns the (m, n) matrix of the values k(x_i, y_j).
        Numeric columns arrive as a float64 array or a CSR array, others as they are.
    psd : bool, default=False
        Whether the caller knows that the kernel is positive semidefinite; otherwise estimators check it.

    Notes
    -----
    A value depends on its two samples alone. Hence the noise of `sklearn.gaussian_process.kernels.WhiteKernel`, which
    depends on whether they are the same row, counts as zero.

    Examples
    --------
    >>> from multikernel.kernels import FunctionKernel
    >>> FunctionKernel(lambda X, Y: X @ Y.T)([[1.0], [2.0]])
    array([[1., 2.],
           [2., 4.]])
    """

    def __init__(self, function, psd=False):
        self.function = function
        self.psd = psd

    @property
    def positive_semidefinite(self) -> bool:
        """Whether the caller says so."""
        return bool(self.psd)

    def _check(self, X):
        if sparse.issparse(X):
            return as_matrix(X, self._name())
        X = X.original() if isinstance(X, Sequences) else X
        kind = np.asarray(X).dtype.kind if np.ndim(X) == 2 else "O"
        return as_matrix(X, self._name()) if kind in "biufc" else X

    def _learn(self, X, sample_weight, shared):
        require_truth(self, "psd")
        if not callable(self.function):
            raise TypeError(
                f"The 'function' parameter of FunctionKernel must be callable. Got {self.function!r} instead."
            )

    def _train(self, X):
        values = self._values(X, X)
        K = np.asarray(values, dtype=np.float64)
        largest = np.abs(K).max(initial=0.0)
        asymmetry = np.abs(K - K.T).max(initial=0.0)
        # values of a symmetric function may differ by rounding, in the precision that the callable computes in
        rounding = np.sqrt(np.finfo(values.dtype if values.dtype.kind == "f" else np.float64).eps)
        if asymmetry > rounding * largest:
            raise ValueError(
                f"The kernel '{self._name()}' must be symmetric. "
                f"Got values that differ by {asymmetry:.3g} where the largest is {largest:.3g}."
            )
        return (K + K.T) / 2

    def _cross(self, X, Y):
        return np.array(self._values(X, Y), dtype=np.float64)

    def _values(self, X, Y) -> np.ndarray:
        values = np.asarray(self.function(X, Y))
        shape = (len_of(X), len_of(Y))
        if values.shape != shape:
            raise ValueError(
                f"The kernel '{self._name()}' must return a matrix of shape {shape}. Got {values.shape} instead."
            )
        if values.dtype.kind not in "biuf":
            raise ValueError(f"The kernel '{self._name()}' must return real numbers. Got {values.dtype} instead.")
        return values

    def _diag(self, X):
        n = len_of(X)
        take = X.iloc if hasattr(X, "iloc") else X
        blocks = [np.diag(self._cross(take[i : i + 32], take[i : i + 32])) for i in range(0, n, 32)]
        return np.concatenate(blocks) if blocks else np.empty(0)

    def _name(self):
        return getattr(self.function, "__name__", None) or str(self.function)
