"""The kernel on categorical and mixed columns: Gower's similarity, positive semidefinite also where values are missing.

    k(x, z) = 1/d sum_j s_j(x_j, z_j)      s_j = [x_j = z_j] for a category, max(0, 1 - |x_j - z_j| / r_j) for a number

with r_j the range of column j in training. Each s_j is a kernel: the triangle is one because its Fourier transform is
not negative. A missing value, and a category that was not seen in training, is alike to nothing: s_j = 0, the kernel of
the feature vector zero. (Gower's own rule, to leave the column out of the mean, is not positive semidefinite.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from multikernel.kernels.base import Kernel, require
from multikernel.kernels.inputs import is_frame
from multikernel.kernels.sequences.samples import Sequences


class Gower(Kernel):
    """Gower's similarity of categorical and mixed columns, in [0, 1]; on categories alone the share of equal ones.

    Parameters
    ----------
    categorical : "infer", "all" or list of int, default="infer"
        The columns, by position, that hold categories: by default those that are not numbers; True and False are
        categories.

    Attributes
    ----------
    categories_ : list of (dict or None)
        The code of each category; None for columns of numbers.
    ranges_ : ndarray of shape (d,)
        Largest less smallest number of each column; one for categories and where there is but one number.

    Examples
    --------
    >>> import pandas as pd
    >>> from multikernel.kernels import Gower
    >>> table = pd.DataFrame({"stage": ["I", "II", "II"], "age": [40, 50, 60]})
    >>> Gower().fit(table)(table)
    array([[1.  , 0.25, 0.  ],
           [0.25, 1.  , 0.75],
           [0.  , 0.75, 1.  ]])
    """

    positive_semidefinite = True

    def __init__(self, categorical="infer"):
        self.categorical = categorical

    def _learns(self):
        return True

    def _fit(self, X, sample_weight, shared):
        self.__dict__.pop("categories_", None)
        raw = _raw_columns(X)
        chosen = self.categorical
        known = isinstance(chosen, str) and chosen in ("infer", "all")
        listed = isinstance(chosen, (list, tuple)) and all(isinstance(j, int) and 0 <= j < len(raw) for j in chosen)
        require(self, "categorical", known or listed, f"'infer', 'all' or positions from 0 to {len(raw) - 1}")
        self.categories_ = []
        for j, column in enumerate(raw):
            category = chosen == "all" or (listed and j in chosen) or column.dtype.kind not in "iuf"
            values = [value for value in column.tolist() if value is not None and value == value] if category else []
            self.categories_.append({v: i for i, v in enumerate(dict.fromkeys(values))} if category else None)
        codes = self._check(X)
        spans = np.where(np.isnan(codes), -np.inf, codes).max(axis=0, initial=-np.inf)
        spans = spans - np.where(np.isnan(codes), np.inf, codes).min(axis=0, initial=np.inf)
        numbers = np.array([each is None for each in self.categories_])
        self.ranges_ = np.where(numbers & (spans > 0), spans, 1.0)
        self.n_features_in_ = codes.shape[1]
        return self

    def _check(self, X):
        if isinstance(X, _Codes):
            return X
        raw = _raw_columns(X)
        if len(raw) != len(self.categories_):
            raise ValueError(f"Gower was fitted on {len(self.categories_)} columns. Got {len(raw)} instead.")
        codes = np.empty((len(raw[0]), len(raw)))
        for j, (column, known) in enumerate(zip(raw, self.categories_, strict=True)):
            if known is not None:
                codes[:, j] = [known.get(value, np.nan) for value in column.tolist()]
                continue
            if column.dtype.kind not in "iuf":
                raise ValueError(f"Gower was fitted on numbers in column {j}. Got {column[0]!r} instead.")
            codes[:, j] = column
            if np.isinf(codes[:, j]).any():
                raise ValueError(f"Gower got infinity in column {j}, row {np.isinf(codes[:, j]).argmax()}.")
        return codes.view(_Codes)

    def _cross(self, X, Y):
        X, Y = np.asarray(X), np.asarray(Y)
        K = np.zeros((len(X), len(Y)))
        for j, known in enumerate(self.categories_):
            x, y = X[:, j, None], Y[:, j]
            if known is not None:
                K += x == y
            else:
                K += np.nan_to_num(np.maximum(1.0 - np.abs(x - y) / self.ranges_[j], 0.0), nan=0.0)
        return K / len(self.categories_)

    def _diag(self, X):
        return np.asarray(~np.isnan(X), np.float64).mean(axis=1)


class _Codes(np.ndarray):
    """Columns of codes of categories and of numbers, NaN for what is missing or was not seen."""


def _raw_columns(X: Any) -> list[np.ndarray]:
    """Return the columns of any table."""
    if isinstance(X, Sequences):
        X = X.original()
    if is_frame(X):
        return [np.asarray(X[name] if not hasattr(X, "iloc") else X.iloc[:, j]) for j, name in enumerate(X.columns)]
    array = X.toarray() if sparse.issparse(X) else np.asarray(X)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(f"Gower needs samples of shape (n, d). Got an array of shape {array.shape} instead.")
    return list(array.T)
