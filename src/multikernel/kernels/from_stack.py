"""A kernel that was computed beforehand, on samples that are rows of a `KernelStack`."""

from __future__ import annotations

import numpy as np

from multikernel.gram.stack import KernelStack
from multikernel.kernels.base import Kernel, require


class Stacked(Kernel):
    """One kernel of a `KernelStack`, for a view of precomputed kernels beside other views.

    Parameters
    ----------
    kernel : str or int, default=0
        The name of the kernel in the stack, or its number.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import Views, stack_kernels
    >>> from multikernel.kernels import KernelBank, Stacked
    >>> X = Views({"graph": stack_kernels([np.eye(3)]), "size": [[1.0], [2.0], [4.0]]})
    >>> KernelBank.fit([("graph", Stacked(), "graph")], X).raw(0, X[:1], X)
    array([[1., 0., 0.]])
    """

    def __init__(self, kernel=0):
        self.kernel = kernel

    def _check(self, X):
        if not isinstance(X, KernelStack):
            raise ValueError(f"Stacked needs a KernelStack as its view. Got {type(X).__name__} instead.")
        return X

    def _learn(self, X, sample_weight, shared):
        named = self.kernel in X.names
        require(self, "kernel", named or self.kernel in range(X.n_kernels), f"one of {X.names}, or a number")
        self.number_ = X.names.index(self.kernel) if named else int(self.kernel)
        self.n_ids_ = X.n_ids

    def _train(self, X):
        return self._cross(X, X)

    def _cross(self, X, Y):
        return np.array(X.kernel_rows(self.number_, Y.row_ids, self.n_ids_), dtype=np.float64)

    def _diag(self, X):
        if X.diag is None:
            raise ValueError(
                "Stacked needs the values k(x, x) of new samples: give stack_kernels the parameter 'diag'."
            )
        return np.array(X.diag[self.number_])
