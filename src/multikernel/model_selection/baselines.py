"""Baselines of a search, the plain sum and each kernel alone, and what learning the mix buys over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Point = Mapping[str, Any]


@dataclass(frozen=True)
class MixGain:
    """What learning the mix of kernels bought over the best baseline, in the units of the score.

    In each fold, the best mix and the best baseline by their mean scores in the other folds are compared on the test
    samples of the fold, so that neither is chosen by the samples on which it is scored. Training sets of different
    folds overlap: the standard error has the correction of Nadeau and Bengio, 2003.

    Attributes
    ----------
    gain : float
        Mean score of the mix minus that of the baseline.
    standard_error : float
        Corrected standard error of the gain; NaN with one fold.
    mix, baseline : float
        The two mean scores.
    best_baseline : str
        The best baseline over all folds, in words.
    chosen : str
        What the search chose, in words.

    Examples
    --------
    >>> print(MixGain(0.021, 0.008, 0.95, 0.929, "the plain sum", "a mix of norm 1"))
    Learning the mix bought +0.021 (standard error 0.0080): the best mix scored 0.95 and the best baseline 0.929 on ...
    """

    gain: float
    standard_error: float
    mix: float
    baseline: float
    best_baseline: str
    chosen: str

    def __str__(self) -> str:
        return (
            f"Learning the mix bought {self.gain:+.3f} (standard error {self.standard_error:.4f}): the best mix scored "
            f"{self.mix:.4g} and the best baseline {self.baseline:.4g} on folds that had no part in choosing them. "
            f"Over all folds the best baseline is {self.best_baseline}; the search chose {self.chosen}."
        )


def is_baseline(point: Point) -> bool:
    """Whether no weights are learned at a point."""
    return "kernel" in point or np.isinf(point.get("norm", 1.0))


def described(point: Point) -> str:
    """Return what a point is, in words.

    Examples
    --------
    >>> described({"C": 1.0, "norm": 2.0}), described({"C": 1.0, "kernel": "linear"})
    ('a mix of norm 2', "the kernel 'linear' alone")
    """
    if "kernel" in point:
        return f"the kernel {point['kernel']!r} alone"
    norm = point.get("norm", 1.0)
    return "the plain sum" if np.isinf(norm) else f"a mix of norm {norm:g}"


def with_baselines(points: Sequence[Point], names: Sequence[str], alone: bool, most: int = 30) -> list[dict[str, Any]]:
    """Return the grid and, after it, the plain sum and each kernel alone, at every other value of the grid.

    Parameters
    ----------
    points : sequence of dict
        The grid; each point has a norm.
    names : sequence of str
        The kernels; of one kernel there are no baselines.
    alone : bool
        Whether kernels are also tried alone.
    most : int
        Number of kernels up to which they are: more would take longer than the grid.

    Examples
    --------
    >>> with_baselines([{"C": 1.0, "norm": 1.0}], ["a", "b"], True)[1:]
    [{'C': 1.0, 'norm': inf}, {'C': 1.0, 'kernel': 'a'}, {'C': 1.0, 'kernel': 'b'}]
    """
    every = [dict(point) for point in points]
    if len(names) == 1:
        return every
    others: list[dict[str, Any]] = []
    for point in every:
        rest = {name: value for name, value in point.items() if name != "norm"}
        if rest not in others:
            others.append(rest)
    kernels = names if alone and len(names) <= most else ()
    sums = [{**rest, "norm": np.inf} for rest in others]
    every += [point for point in sums if point not in every]
    # of several losses the squared one, whose models cost least
    cheap = [rest for rest in others if rest.get("loss") == "squared"] or others
    return every + [{**rest, "kernel": name} for name in kernels for rest in cheap]


def mix_gain(
    points: Sequence[Point], scores: np.ndarray, sizes: Sequence[tuple[int, int]], chosen: int
) -> MixGain | None:
    """Compare mixes with baselines; None where there are none of either, or no scores.

    Parameters
    ----------
    points : sequence of dict
        The grid with baselines.
    scores : ndarray of shape (n_splits, n_points)
        Scores of the folds.
    sizes : sequence of (int, int)
        Numbers of training and test samples of each fold.
    chosen : int
        The choice of the search.
    """
    S, mean = len(scores), scores.mean(axis=0)
    base, known = np.array([is_baseline(point) for point in points]), np.isfinite(mean)
    mixes, baselines = np.flatnonzero(~base & known), np.flatnonzero(base & known)
    if not len(mixes) or not len(baselines):
        return None
    pairs = []
    for s in range(S):
        # the mean of the other folds; of a single fold its own
        others = np.delete(scores, s, axis=0).mean(axis=0) if S > 1 else mean
        pairs.append([scores[s, rows[others[rows].argmax()]] for rows in (mixes, baselines)])
    mix, baseline = np.mean(pairs, axis=0)
    error = np.nan
    if S > 1:
        ratio = np.mean([test / train for train, test in sizes])
        gains = np.subtract(*np.transpose(pairs))
        # squares of large scores overflow
        unit = float(np.abs(gains).max()) or 1.0
        error = unit * float(np.sqrt((1.0 / S + ratio) * np.var(gains / unit, ddof=1)))
    best = baselines[mean[baselines].argmax()]
    return MixGain(
        float(mix - baseline), error, float(mix), float(baseline), described(points[best]), described(points[chosen])
    )
