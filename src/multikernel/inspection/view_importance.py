"""How much each view or kernel matters: the drop of the cross-validated score when it is left out, with an interval.

    drop_v  =  mean over folds of   score of the whole model  -  score of the model without v

on the same k folds. The interval is about the mean drop, on new samples, of models trained on as many samples as there
are. Its width comes from B bootstraps: each trains both models on n samples drawn with replacement, and scores them on
the n2 samples that were not drawn, about n / e. Their drops differ for two reasons, which count differently in the mean
over the folds:

    test samples   T^2, the variance of a drop on n2 test samples with the models as they are: a quarter of the mean
                   squared difference between the drops on two halves of them. In the folds all n samples are tested
                   once, which leaves T^2 n2 / n.
    training sets  R^2, the variance of a drop because other samples were trained on: the variance of the B drops less
                   T^2 (1 - n2 / n), since n2 of the same n samples are tested. The folds train k times: R^2 / k.

    drop_v  -+  t sqrt(T^2 n2 / n + R^2 / k),        t Student's quantile, B - 1 degrees of freedom

The variance of the B drops alone would be far too wide: for a view without any effect most of it is R^2. Folds share
most of their training samples, which makes R^2 / k small; bootstraps hold samples several times, which makes R^2 large.
On the 200 planted problems of benchmarks/intervals.py, 90 % intervals of this form held the truth in 92.6 % of cases.
With the correction of Nadeau and Bengio, R^2 (1 / k + test / train), they held it more often still.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.base import is_classifier

from multikernel.estimators.splits import splits_of
from multikernel.estimators.weights_table import AsTable, kernels_of, views_of, weight_columns
from multikernel.inspection.trials import (
    Trial,
    TrialResult,
    check_count,
    check_groups,
    check_share,
    check_work,
    fitted_model,
    generator,
    keeping,
    make_job,
    quiet,
    run_all,
    run_trial,
    share,
    threads_for,
)
from multikernel.training.progress import progress, telling_compiling


@dataclass(frozen=True, eq=False)
class ViewImportance(AsTable):
    """What `view_importance` found, the most important view or kernel first.

    Attributes
    ----------
    names : ndarray of str, shape (m,)
        The views, or the kernels.
    drop : ndarray of shape (m,)
        Drop of the cross-validated score when the view is left out.
    low, high : ndarrays of shape (m,)
        Ends of the interval of each drop; equal where no training changed a prediction, as where norm 1 never chooses
        the view, which says nothing about how sure the drop is.
    weight, contribution : ndarrays of shape (m,)
        Sums over the kernels of the view in the model trained on all samples; means where it has several problems.
    selected : ndarray of shape (m,)
        Share of the bootstraps in which the view has a weight that is not zero.
    score : float
        Cross-validated score of the whole model.
    scorer : str
        Name of the score; larger is better.
    confidence : float
        Share of intervals that are meant to hold the true drop.
    by : {"view", "kernel"}
        What was left out.
    n_bootstraps : int
        Bootstraps behind the intervals.
    """

    names: np.ndarray
    drop: np.ndarray
    low: np.ndarray
    high: np.ndarray
    weight: np.ndarray
    contribution: np.ndarray
    selected: np.ndarray
    score: float
    scorer: str
    confidence: float
    by: str
    n_bootstraps: int

    def _columns(self) -> dict[str, list]:
        numbers = ("drop", "low", "high", "weight", "contribution", "selected")
        return {self.by: self.names.tolist(), **{name: getattr(self, name).tolist() for name in numbers}}

    def __str__(self) -> str:
        """Return the table with a sentence about each view."""
        share = f"{100 * self.confidence:g} %"
        lines = [
            f"Cross-validated {self.scorer} of the whole model: {self.score:.3f}. Left out, a {self.by} takes away:",
        ]
        width = max(len(name) for name in self.names)
        for row in self.rows():
            interval = f"[{row['low']:+.3f}, {row['high']:+.3f}]"
            lines.append(
                f"  {row[self.by]:<{width}}  {row['drop']:+.3f}  {interval}  {verdict(row['low'], row['high'])}"
            )
        lines.append(
            f"In brackets: {share} intervals from {self.n_bootstraps} bootstraps. Views that tell the same stand in "
            "for each other: each alone may seem to matter little."
        )
        return "\n".join(lines)


def verdict(low: float, high: float) -> str:
    """Return what an interval of a drop says, in words.

    Examples
    --------
    >>> verdict(0.01, 0.05), verdict(-0.01, 0.02), verdict(0.0, 0.0)
    ('the model needs it', 'no clear effect', 'the same in every training')
    """
    if low == high:
        # nothing varied, which is no measure of how sure the drop is
        return "the same in every training"
    if low > 0:
        return "the model needs it"
    if high < 0:
        return "the model is better without it"
    return "no clear effect" if np.isfinite(low) else "no interval"


def view_importance(
    model: Any,
    X: Any,
    y: Any,
    *,
    by: str = "view",
    cv: Any = 5,
    scoring: Any = None,
    n_bootstraps: int = 50,
    confidence: float = 0.9,
    groups: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> ViewImportance:
    """Return how much the cross-validated score drops when a view or a kernel is left out, with intervals.

    Parameters
    ----------
    model : MKLClassifier, MKLRegressor, M3KClassifier or a search over these
        Fitted or not; of a search its best estimator. It is cloned for every training, and not changed.
    X : samples, or KernelStack
        The training samples, in any form that `fit` takes.
    y : array of shape (n_samples,) or (n_samples, n_targets)
        Classes or numbers.
    by : {"view", "kernel"}, default="view"
        What is left out: all kernels of a view together, or each kernel alone. A model of a single view is compared
        with constant predictions.
    cv : int, splitter or list of splits, default=5
        Folds, as in scikit-learn; stratified for classes.
    scoring : str, callable or None, default=None
        Any scorer of scikit-learn; None for accuracy, or R^2 for numbers.
    n_bootstraps : int, default=50
        Bootstraps behind the intervals and the frequencies of selection; 0 for none of them.
    confidence : float, default=0.9
        Share of intervals that are meant to hold the true drop.
    groups : array of shape (n_samples,), optional
        Groups for the splitter; bootstraps then draw whole groups.
    n_jobs : int or None, default=None
        Workers of joblib that train folds and bootstraps at once; None for one, or as joblib's context says.
    random_state : int, generator or None, default=None
        Seed of the bootstraps.
    verbose : int, default=0
        1 shows progress on stderr.

    Returns
    -------
    ViewImportance
        With ``names``, ``drop``, ``low``, ``high``, ``weight``, ``contribution``, ``selected``, ``score``,
        ``frame()``, ``rows()``; it prints as a table.

    Notes
    -----
    Ctrl-C keeps what is finished: the KeyboardInterrupt has it as its attribute ``importance``. What the numbers mean
    and when they mislead: docs/interpreting.md.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier
    >>> from multikernel.inspection import view_importance
    >>> from multikernel.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(80, 4))
    >>> model = MKLClassifier([("useful", RBF(), [0, 1]), ("noise", RBF(), [2, 3])])
    >>> found = view_importance(model, X, X[:, 0] > 0, n_bootstraps=10, random_state=0)
    >>> found.names.tolist(), bool(found.low[0] > 0)
    (['useful', 'noise'], True)
    """
    owner = "view_importance"
    if by not in ("view", "kernel"):
        raise ValueError(f"The 'by' parameter of {owner} must be 'view' or 'kernel'. Got {by!r} instead.")
    check_count(owner, "n_bootstraps", n_bootstraps, 0)
    check_share(owner, "confidence", confidence)
    check_work(owner, n_jobs, verbose)
    rng = generator(owner, random_state)
    with telling_compiling(verbose):
        model = fitted_model(owner, model, X, y)
    job, scorer = make_job(owner, model, X, y, scoring)
    members = _members(model, by)
    groups = check_groups(owner, groups, len(job.y))
    splits = splits_of(owner, cv, job.y, is_classifier(job.base), job.X, groups)
    strata = _strata(job.y if is_classifier(job.base) else None, groups, len(job.y))
    trials = [Trial(train, [test]) for train, test in splits]
    trials += [_bootstrap(strata, rng) for _ in range(n_bootstraps)]
    done: list[TrialResult] = []

    def found() -> tuple[int, int, ViewImportance | None]:
        kept = _summary(model, members, done, trials, len(splits), scorer, confidence, by) if done else None
        return len(done), len(trials), kept

    shown = progress(verbose, 0.0, owner)
    with keeping(owner, "importance", found), telling_compiling(verbose), shown as show, quiet():
        job = threads_for(share(job, splits), n_jobs)
        for part, starts_at in ((trials[: len(splits)], []), (trials[len(splits) :], done)):
            run = partial(run_trial, job, list(members.values()), [result.found for result in starts_at])
            for result in run_all(run, part, n_jobs) if part else ():
                done.append(result)
                if show is not None:
                    show({"done": len(done), "of": len(trials), "parts": "folds and bootstraps"})
    result = found()[2]
    assert result is not None
    if np.isnan(result.score):
        errors = [error for each in done for error in each.errors]
        raise ValueError(f"{owner} could not score the models. The scorer said: {errors[0] if errors else 'NaN'}")
    return result


def _members(model: Any, by: str) -> dict[str, frozenset[str]]:
    """Return the names of the kernels of each view, or each kernel alone."""
    found: dict[str, set[str]] = {}
    for kernel, view in zip(kernels_of(model), views_of(model), strict=True):
        found.setdefault(kernel if by == "kernel" else view, set()).add(kernel)
    return {name: frozenset(kernels) for name, kernels in found.items()}


def _strata(y: np.ndarray | None, groups: Any, n: int) -> list[list[np.ndarray]]:
    """Return what bootstraps draw: within each stratum, which is a class, sets of samples that stay together."""
    if groups is not None:
        codes = np.unique(groups, return_inverse=True)[1].ravel()
        return [[np.flatnonzero(codes == code) for code in range(codes.max() + 1)]]
    if y is None:
        return [[np.array([i]) for i in range(n)]]
    return [[np.array([i]) for i in np.flatnonzero(y == value)] for value in np.unique(y)]


def _bootstrap(strata: Sequence[Sequence[np.ndarray]], rng: np.random.Generator) -> Trial:
    """Return a draw with replacement in each stratum; what was not drawn are its test samples, in two halves."""
    n = sum(len(unit) for units in strata for unit in units)
    while True:
        counts, left = np.zeros(n, int), []
        for units in strata:
            for u in rng.integers(len(units), size=len(units)):
                counts[units[u]] += 1
            left += [units[u] for u in rng.permutation(len(units)) if not counts[units[u][0]]]
        if len(left) > 1:
            halves = [np.sort(np.concatenate(half)) for half in (left[::2], left[1::2])]
            return Trial(np.arange(n), halves, counts)


def _summary(
    model: Any,
    members: Mapping[str, frozenset[str]],
    done: Sequence[TrialResult],
    trials: Sequence[Trial],
    n_splits: int,
    scorer: str,
    confidence: float,
    by: str,
) -> ViewImportance:
    """Return what the finished folds and bootstraps say."""
    scores = [result.scores.mean(axis=0) for result in done[:n_splits]]
    drop = np.mean([each[0] - each[1:] for each in scores], axis=0)
    parts = np.array([result.scores[:, :1] - result.scores[:, 1:] for result in done[n_splits:]])
    margin = _margins(parts, trials[: len(done)], len(scores), confidence, len(drop))
    weight, contribution = _learned(model, members)
    chosen = np.array([result.selected for result in done[n_splits:] or done], float).mean(axis=0)
    order = np.argsort(-drop, kind="stable")
    return ViewImportance(
        np.array(list(members))[order], drop[order], (drop - margin)[order], (drop + margin)[order], weight[order],
        contribution[order], chosen[order], float(np.mean(scores, axis=0)[0]), scorer, confidence, by, len(parts),
    )  # fmt: skip


def _margins(drops: np.ndarray, trials: Sequence[Trial], k: int, confidence: float, m: int) -> np.ndarray:
    """Return half the widths of the intervals, NaN where fewer than two bootstraps have scores.

    ``drops`` of B bootstraps, on both halves of their test samples, are of shape (B, 2, m). The first k trials are
    folds.
    """
    used = np.isfinite(drops).all(axis=(1, 2)) if len(drops) else np.zeros(0, bool)
    B = int(used.sum())
    if B < 2:
        return np.full(m, np.nan)
    drops = drops[used]
    n, tested = len(trials[k].rows), len(np.unique(np.concatenate([fold.tests[0] for fold in trials[:k]])))
    not_drawn = np.mean([sum(map(len, trial.tests)) for trial in trials[k:]])
    total = drops.mean(axis=1).var(axis=0, ddof=1)
    test = np.mean((drops[:, 0] - drops[:, 1]) ** 2, axis=0) / 4.0
    training = np.maximum(total - (1.0 - not_drawn / n) * test, 0.0)
    return student.ppf(0.5 + 0.5 * confidence, B - 1) * np.sqrt(not_drawn / tested * test + training / k)


def _learned(model: Any, members: Mapping[str, frozenset[str]]) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and contributions of the fitted model, summed over the kernels of each view."""
    table, kernels = weight_columns(model), kernels_of(model)
    columns = np.array([table["weight"], table["contribution"]]).reshape(2, -1, len(kernels)).mean(axis=1)
    sums = [columns[:, [name in own for name in kernels]].sum(axis=1) for own in members.values()]
    weight, contribution = np.array(sums).T
    return weight, contribution
