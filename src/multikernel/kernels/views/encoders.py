"""Numbers from the samples of a view, as learned on training samples: scaled columns, categories, words and counts.

An encoder learns on samples that have the view and returns float64 numbers, NaN where a value is missing.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator


class ColumnEncoder(BaseEstimator):
    """Columns of numbers with mean zero and variance one, and a column of zeros and ones for every category.

    A missing number is NaN, a missing category NaN in all its columns, and a category that was not seen in training
    zero in all of them. Columns of one value become zero.

    Parameters
    ----------
    logarithm : bool, default=False
        Whether to take log(1 + x) of the numbers first, for counts.
    scale : bool, default=True
        Whether numbers get mean zero and variance one.
    """

    def __init__(self, logarithm=False, scale=True):
        self.logarithm = logarithm
        self.scale = scale

    def fit(self, samples: Any) -> ColumnEncoder:
        """Learn means, scales and categories."""
        self.categories_, numbers = [], []
        for column in _columns(samples):
            self.categories_.append(None if _is_number(column) else _categories(column))
            if self.categories_[-1] is None:
                numbers.append(self._number(column))
        d, array = len(numbers), np.array(numbers)
        self.mean_, self.scale_ = np.zeros(d), np.ones(d)
        if d and self.scale:
            seen = np.maximum((~np.isnan(array)).sum(axis=1), 1)
            self.mean_ = np.nansum(array, axis=1) / seen
            deviation = np.sqrt(np.nansum((array - self.mean_[:, None]) ** 2, axis=1) / seen)
            self.scale_ = np.where(deviation > 0, deviation, 1.0)
        return self

    def transform(self, samples: Any) -> np.ndarray:
        """Return the numbers of samples with the columns of the training samples."""
        columns = _columns(samples)
        if len(columns) != len(self.categories_):
            raise ValueError(f"must have {len(self.categories_)} columns, as in fit. Got {len(columns)} instead.")
        parts, j = [], 0
        for place, (column, known) in enumerate(zip(columns, self.categories_, strict=True)):
            if known is None:
                if not _is_number(column):
                    raise ValueError(f"must have numbers in column {place}, as in fit. Got {column[0]!r} instead.")
                parts.append(((self._number(column) - self.mean_[j]) / self.scale_[j])[:, None])
                j += 1
                continue
            absent = _is_absent(column)
            # two categories are at distance one, as two numbers one deviation apart
            block = np.array([[value == each for each in known] for value in column], np.float64) / np.sqrt(2.0)
            block = block.reshape(len(column), len(known))
            block[absent] = np.nan
            parts.append(block)
        return np.hstack(parts)

    def _number(self, column: np.ndarray) -> np.ndarray:
        values = column.astype(np.float64)
        return np.log1p(np.maximum(values, 0.0)) if self.logarithm else values


class TermEncoder(BaseEstimator):
    """Words of texts, or counts, weighted by how rare they are in training (tf-idf), each sample of length one.

    Attributes
    ----------
    vocabulary_ : dict or None
        The column of each word; None for counts.
    idf_ : ndarray
        The weight log((1 + n) / (1 + n_j)) + 1 of a term in n_j of n training samples.
    """

    def fit(self, samples: Any) -> TermEncoder:
        """Learn the words and their weights."""
        self.vocabulary_ = None
        if getattr(samples, "ndim", 1) == 1:
            words = sorted({word for text in samples for word in _words(text)})
            self.vocabulary_ = {word: j for j, word in enumerate(words)}
            if not words:
                raise ValueError("must hold words of two letters or more. Got none.")
        counts = self._counts(samples)
        n = counts.shape[0]
        self.idf_ = np.log((1 + n) / (1 + (counts > 0).sum(axis=0))) + 1.0
        return self

    def transform(self, samples: Any) -> sparse.csr_array:
        """Return the weighted terms of samples."""
        counts = self._counts(samples)
        if counts.shape[1] != len(self.idf_):
            raise ValueError(f"must have {len(self.idf_)} columns, as in fit. Got {counts.shape[1]} instead.")
        counts.data = (1.0 + np.log(counts.data)) * self.idf_[counts.indices]
        lengths = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
        return sparse.csr_array(sparse.diags_array(1.0 / np.where(lengths > 0, lengths, 1.0)) @ counts)

    def _counts(self, samples: Any) -> sparse.csr_array:
        """Return positive counts."""
        if self.vocabulary_ is None:
            # rows of samples that lack the view are NaN
            known = samples if sparse.issparse(samples) else np.nan_to_num(samples, nan=0.0)
            counts = sparse.csr_array(known, dtype=np.float64, copy=True)
            # below one the logarithm is negative
            counts.data = np.maximum(counts.data, 0.0)
            counts.eliminate_zeros()
            counts.data = np.maximum(counts.data, 1.0)
            return counts
        rows, cols = [], []
        for i, text in enumerate(samples):
            known = [self.vocabulary_[word] for word in _words(text) if word in self.vocabulary_]
            rows += [i] * len(known)
            cols += known
        shape = (len(samples), len(self.vocabulary_))
        return sparse.csr_array((np.ones(len(rows)), (rows, cols)), shape=shape)


def _words(text: str | None) -> list[str]:
    return re.findall(r"\w\w+", (text or "").lower())


def _columns(samples: Any) -> list[np.ndarray]:
    """Return the columns of a data frame or of an array."""
    if hasattr(samples, "iloc"):
        return [_values(samples.iloc[:, j], name) for j, name in enumerate(samples.columns)]
    return list(np.asarray(samples).T)


def _values(column: Any, name: Any) -> np.ndarray:
    """Return the values of a data frame's column: numbers in float64, others as objects."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "mMc":
        raise ValueError(f"must hold numbers or categories. Got {column.dtype} in column {name!r} instead.")
    return column.to_numpy(np.float64, na_value=np.nan) if kind in "iuf" else np.asarray(column, dtype=object)


def _is_number(column: np.ndarray) -> bool:
    return column.dtype.kind in "iuf"


def _is_absent(column: np.ndarray) -> np.ndarray:
    return np.array([value is None or value != value for value in column], bool)


def _categories(column: np.ndarray) -> list:
    """Return the distinct values of a column in a fixed order."""
    return sorted({value for value, absent in zip(column, _is_absent(column), strict=True) if not absent}, key=str)
