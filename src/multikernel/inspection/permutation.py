"""Whether there is anything to learn: the cross-validated score against the scores of permuted targets.

    p  =  (1 + number of permutations that score at least as well)  /  (1 + number of permutations)

Targets are permuted within the test part of each fold, so that every fold keeps its targets (and a stratified one its
classes), and the kernels of a fold are prepared once for all permutations. If samples and targets are independent, then
each of these permutations is as likely as what was observed, also given the folds, and p <= 0.05 has a probability of
at most 0.05. Where test parts overlap or leave samples out, all targets are permuted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from multikernel.estimators.splits import Split, splits_of
from multikernel.estimators.validation import kept_samples
from multikernel.inspection.trials import (
    check_count,
    check_groups,
    check_work,
    fitted_model,
    generator,
    keeping,
    make_job,
    quiet,
    run_all,
    score_fits,
    share,
    threads_for,
    trained,
)
from multikernel.model_selection.folds import Job
from multikernel.training.progress import progress, telling_compiling


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """What `permutation_test` found.

    Attributes
    ----------
    score : float
        Cross-validated score with the targets as they are.
    permuted : ndarray of shape (n_permutations,)
        Cross-validated scores with permuted targets.
    p_value : float
        Share of all scores, the first among them, that are at least ``score``.
    scorer : str
        Name of the score; larger is better.
    """

    score: float
    permuted: np.ndarray
    p_value: float
    scorer: str

    def __str__(self) -> str:
        """Return the result as a sentence."""
        as_good, total = int(np.sum(self.permuted >= self.score)), len(self.permuted)
        many = "none" if not as_good else f"{as_good}"
        verdict = (
            "There is something to learn."
            if self.p_value <= 0.05
            else "A score like this may be chance: weights and importances then tell nothing."
        )
        return (
            f"Cross-validated {self.scorer} {self.score:.3f}; with permuted targets {self.permuted.mean():.3f} on "
            f"average, and {many} of {total} at least as good (p = {self.p_value:.2g}). {verdict}"
        )


def permutation_test(
    model: Any,
    X: Any,
    y: Any,
    *,
    n_permutations: int = 99,
    cv: Any = 5,
    scoring: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> PermutationTest:
    """Test whether the model predicts better than it does for permuted targets.

    Parameters
    ----------
    model : MKLClassifier, MKLRegressor, M3KClassifier or a search over these
        Fitted or not; of a search its best estimator. It is cloned for every training, and not changed.
    X : samples, or KernelStack
        The training samples, in any form that `fit` takes.
    y : array of shape (n_samples,) or (n_samples, n_targets)
        Classes or numbers.
    n_permutations : int, default=99
        Permutations: the smallest p-value is 1 / (1 + n_permutations).
    cv : int, splitter or list of splits, default=5
        Folds, as in scikit-learn; stratified for classes.
    scoring : str, callable or None, default=None
        Any scorer of scikit-learn; None for accuracy, or R^2 for numbers.
    groups : array of shape (n_samples,), optional
        Groups for the splitter.
    n_jobs : int or None, default=None
        Workers of joblib that train folds at once; None for one, or as joblib's context says.
    random_state : int, generator or None, default=None
        Seed of the permutations.
    verbose : int, default=0
        1 shows progress on stderr.

    Returns
    -------
    PermutationTest
        With ``score``, ``permuted`` and ``p_value``; it prints as a sentence.

    Notes
    -----
    The parameters of the best estimator of a search were chosen with the true targets, which makes the p-value too
    small: test parameters that were chosen before, or on other samples. Ctrl-C keeps the finished folds: the
    KeyboardInterrupt has them as its attribute ``test``.

    References
    ----------
    M. Ojala, G. C. Garriga, Permutation tests for studying classifier performance, JMLR 11, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier
    >>> from multikernel.inspection import permutation_test
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> permutation_test(MKLClassifier("linear"), X, X[:, 0] > 0, n_permutations=19, random_state=0).p_value
    0.05
    """
    owner = "permutation_test"
    check_count(owner, "n_permutations", n_permutations, 1)
    check_work(owner, n_jobs, verbose)
    rng = generator(owner, random_state)
    with telling_compiling(verbose):
        model = fitted_model(owner, model, X, y)
    job, scorer = make_job(owner, model, X, y, scoring)
    groups = check_groups(owner, groups, len(job.y))
    splits = splits_of(owner, cv, job.y, is_classifier(job.base), job.X, groups)
    blocks = _blocks(splits, len(job.y))
    orders = [np.arange(len(job.y)), *(_permutation(blocks, rng) for _ in range(n_permutations))]
    done: list[np.ndarray] = []

    def found() -> tuple[int, int, PermutationTest | None]:
        return len(done), len(splits), _summary(np.mean(done, axis=0), scorer) if done else None

    shown = progress(verbose, 0.0, owner)
    with keeping(owner, "test", found), telling_compiling(verbose), shown as show, quiet():
        job = threads_for(share(job, splits), n_jobs)
        for scores in run_all(partial(_run_fold, job, orders), splits, n_jobs):
            done.append(scores)
            if show is not None:
                show({"done": len(done), "of": len(splits), "parts": f"folds with {n_permutations} permutations"})
    result = found()[2]
    assert result is not None
    if np.isnan(result.score):
        raise ValueError(f"{owner} could not score the model: the scorer {scorer!r} returned NaN or failed.")
    return result


def _blocks(splits: Sequence[Split], n: int) -> list[np.ndarray]:
    """Return the samples within which targets are permuted: the test parts, if every sample is in one of them."""
    tests = np.concatenate([test for _, test in splits])
    return [test for _, test in splits] if np.array_equal(np.sort(tests), np.arange(n)) else [np.arange(n)]


def _permutation(blocks: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Return where the target of each sample comes from."""
    order = np.arange(sum(len(block) for block in blocks))
    for block in blocks:
        order[block] = rng.permutation(block)
    return order


def _run_fold(job: Job, orders: Sequence[np.ndarray], split: Split) -> np.ndarray:
    """Return the scores of one fold for each order of the targets; all are trained from the same start."""
    rows, test = split
    scores = np.full(len(orders), np.nan)
    prepared = job.prepare(job.samples(rows))
    for i, order in enumerate(orders):
        own = replace(job, y=job.y[order])
        classifier = type(job.base).__name__ if is_classifier(job.base) else ""
        try:
            samples = kept_samples(job.X, own.y, None, rows, classifier)
        except ValueError:
            # all samples that are left have one class
            continue
        fit = trained(prepared, job.base._spec(samples), job)
        scores[i] = score_fits(own, {0: fit}, fit.prepared, samples, test).scores[0]
    return scores


def _summary(scores: np.ndarray, scorer: str) -> PermutationTest:
    """Return the test; permutations without a score count as better, so that p is never too small."""
    score, permuted = float(scores[0]), scores[1:]
    as_good = len(permuted) - int(np.sum(permuted < score))
    return PermutationTest(score, permuted, (1 + as_good) / (1 + len(permuted)), scorer)
