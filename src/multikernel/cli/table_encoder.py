"""The first step of a model on a table: columns become numbers of mean zero and variance one, words become indicators.

A saved model holds it, so that `predict` takes tables as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from multikernel.cli.tables import NUMBER, SEQUENCE, absent, pandas


class TableEncoder(TransformerMixin, BaseEstimator):
    """Columns of a data frame as numbers; see the module.

    Parameters
    ----------
    kinds : dict
        The columns, each "number", "words" or "sequence".
    standardize : bool
        Whether columns of numbers are brought to mean zero and variance one.
    index : str or None
        The column by which the rows of several tables were matched.

    Attributes
    ----------
    means_, scales_ : dict
        Of the columns of numbers. Gaps are filled with the mean.
    levels_ : dict
        The words of each column of words; a word that is not among them, or a gap, has zeros in all indicators.
    gaps_ : dict
        How many gaps each column had.
    """

    def __init__(self, kinds, standardize=True, index=None):
        self.kinds = kinds
        self.index = index
        self.standardize = standardize

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn means, scales and words."""
        self.means_, self.scales_, self.levels_, self.gaps_ = {}, {}, {}, {}
        for name, kind in self.kinds.items():
            column = X[name]
            if gaps := int(column.isna().sum()):
                self.gaps_[name] = gaps
            if kind == NUMBER:
                values = _numbers(name, column)
                known = values[~np.isnan(values)]
                spread = float(known.std())
                self.means_[name], self.scales_[name] = float(known.mean()), spread if spread > 0 else 1.0
            elif kind != SEQUENCE:
                self.levels_[name] = sorted({str(each) for each in column.dropna()})
        return self

    def outputs(self, name: str) -> list[str]:
        """Return the names of the columns that a column becomes."""
        return [f"{name}={level}" for level in self.levels_[name]] if name in self.levels_ else [name]

    def transform(self, X: Any) -> Any:
        """Return the data frame of numbers and sequences."""
        pd = pandas()
        if lacking := [name for name in self.kinds if name not in X.columns]:
            raise ValueError(absent("column", lacking[0], [str(each) for each in X.columns], "the data"))
        made: dict[str, Any] = {}
        for name, kind in self.kinds.items():
            column = X[name]
            if kind == NUMBER:
                values = _numbers(name, column)
                values = np.where(np.isnan(values), self.means_[name], values)
                made[name] = (values - self.means_[name]) / self.scales_[name] if self.standardize else values
            elif kind == SEQUENCE:
                made[name] = column.to_numpy(dtype=object)
            else:
                words = (
                    column.astype(object)
                    .where(column.notna(), None)
                    .map(lambda each: None if each is None else str(each))
                )
                made |= {f"{name}={level}": (words == level).to_numpy(dtype=float) for level in self.levels_[name]}
        return pd.DataFrame(made)


def _numbers(name: str, column: Any) -> np.ndarray:
    try:
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise ValueError(f"The column {name!r} must hold numbers, as the model was fitted on. Got words.") from None
    if np.isinf(values).any():
        raise ValueError(f"The column {name!r} must hold finite numbers. Got infinity.")
    return values
