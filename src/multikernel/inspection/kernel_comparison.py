"""Each kernel alone against the learned mix and the plain sum: Zien & Ong 2007, Figure 2."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv, cross_val_score
from sklearn.utils.validation import indexable

from multikernel.estimators.view_input import check_stack
from multikernel.inspection.style import BLUE, GREEN, VERMILION, first_rows, name_rows, row_axes, text_colour, tidy
from multikernel.kernels.inputs import as_table
from multikernel.kernels.spec import expand_entries

MIX, SUM = "learned mix", "plain sum"


class KernelComparisonDisplay:
    """Mean scores over folds, with standard errors: the learned mix, the plain sum, and each kernel alone.

    Parameters
    ----------
    names : sequence of str, length m
        The mix, the sum, and the kernels.
    scores : array of shape (m, n_splits)
        Their scores in each fold.
    scoring : str
        Name of the score.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn on.
    rows_ : ndarray of int
        The entries of ``names`` drawn, from top to bottom.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier
    >>> from multikernel.inspection import KernelComparisonDisplay
    >>> from multikernel.kernels import Linear
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> model = MKLClassifier([("a", Linear(), [0]), ("b", Linear(), [1])])
    >>> display = KernelComparisonDisplay.from_estimator(model, X, X[:, 0] > 0, cv=3)
    >>> [display.names[row] for row in display.rows_][-1], display.scores.shape
    ('b', (4, 3))
    """

    def __init__(self, names: Any, scores: Any, scoring: str = "score") -> None:
        self.names, self.scores, self.scoring = list(names), np.asarray(scores, float), scoring

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, cv: Any = 5, scoring: Any = None, n_jobs: int | None = None,
        **options: Any,
    ) -> KernelComparisonDisplay:  # fmt: skip
        """Score the mix, the sum and every kernel by cross-validation, and draw the scores.

        Parameters
        ----------
        estimator : MKLClassifier, MKLRegressor, M3KClassifier, or a search
            The mix to learn; of a fitted search the base estimator at the chosen parameters. It is cloned.
        X, y
            Samples and targets.
        cv : int, splitter or iterable, default=5
            Folds, the same for all.
        scoring : str or callable, optional
            Any scorer of scikit-learn; by default the estimator's own.
        n_jobs : int, optional
            Folds at once.
        **options
            As of `plot`.

        Returns
        -------
        KernelComparisonDisplay
            The display.
        """
        base = clone(getattr(estimator, "best_estimator_", estimator))
        if "norm" not in base.get_params(deep=False) or "kernels" not in base.get_params(deep=False):
            raise ValueError(
                f"The 'estimator' parameter of {cls.__name__} must learn weights of kernels under a norm, as "
                f"MKLClassifier does. Got {type(estimator).__name__} instead."
            )
        X, y = indexable(X, y)
        splits = list(check_cv(cv, y, classifier=is_classifier(base)).split(np.zeros(len(y)), y))
        jobs = [(MIX, base, X), (SUM, clone(base).set_params(norm=np.inf), X)]
        if base._precomputed:
            stack = check_stack(base, X, False)
            jobs += [(name, base, stack.take_kernels([k])) for k, name in enumerate(stack.names)]
        else:
            for entry in expand_entries(base.kernels, as_table(X)):
                jobs.append((entry[0], clone(base).set_params(kernels=[entry]), X))
        values = [
            cross_val_score(each, samples, y, cv=splits, scoring=scoring, n_jobs=n_jobs) for _, each, samples in jobs
        ]
        name = scoring if isinstance(scoring, str) else "accuracy" if is_classifier(base) else "r2"
        if callable(scoring):
            name = getattr(check_scoring(base, scoring), "__name__", "score")
        return cls([name for name, _, _ in jobs], values, name).plot(**options)

    @classmethod
    def from_search(cls, search: Any, **options: Any) -> KernelComparisonDisplay:
        """Draw what a fitted search with ``baselines=True`` found on its folds, each at its own best C.

        Parameters
        ----------
        search : MKLClassifierCV or MKLRegressorCV
            Fitted.
        **options
            As of `plot`.

        Returns
        -------
        KernelComparisonDisplay
            The display.
        """
        found = cls.scores_of(search)
        if found is None:
            raise ValueError(
                f"{cls.__name__}.from_search needs a fitted search with baselines=True. Got {type(search).__name__} "
                "without baselines: from_estimator computes them."
            )
        return cls(*found).plot(**options)

    @staticmethod
    def scores_of(search: Any) -> tuple[list[str], np.ndarray, str] | None:
        """Return names, scores (m, n_splits) and the name of the score from a fitted search; None without baselines."""
        results = getattr(search, "cv_results_", None)
        if results is None:
            return None
        best: dict[str, int] = {}
        for i, point in enumerate(results["params"]):
            name = point.get("kernel", SUM if np.isinf(point.get("norm", 1.0)) else MIX)
            if name not in best or results["mean_test_score"][i] > results["mean_test_score"][best[name]]:
                best[name] = i
        names = [MIX, SUM, *[name for name in best if name not in (MIX, SUM)]]
        if not {MIX, SUM} <= set(best):
            return None
        scores = [[results[f"split{s}_test_score"][best[name]] for s in range(search.n_splits_)] for name in names]
        default = "accuracy" if is_classifier(search) else "r2"
        return names, np.array(scores), search.scoring if isinstance(search.scoring, str) else default

    def plot(self, *, ax: Any = None, max_rows: int = 30) -> KernelComparisonDisplay:
        """Draw the scores: first the mix and the sum, then the kernels, the best first.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.
        max_rows : int, default=30
            Rows to draw; the axis says how large the scores of the others are.

        Returns
        -------
        KernelComparisonDisplay
            This display. Sets: ``ax_``, ``figure_``, ``rows_``.
        """
        mean = self.scores.mean(axis=1)
        error = (
            self.scores.std(axis=1, ddof=1) / np.sqrt(self.scores.shape[1]) if self.scores.shape[1] > 1 else 0 * mean
        )
        first = [row for row, name in enumerate(self.names) if name in (MIX, SUM)]
        rest = np.array([row for row in range(len(mean)) if row not in first], int)
        best, others = first_rows(mean[rest], max(max_rows - len(first), 1))
        self.rows_ = np.concatenate([first, rest[best]]).astype(int)
        ax = row_axes(ax, len(self.rows_))
        colours = {MIX: BLUE, SUM: GREEN}
        for place, row in enumerate(self.rows_):
            name = self.names[row]
            marker = {MIX: "o", SUM: "s"}.get(name, "D")
            ax.errorbar(mean[row], place, xerr=error[row], fmt=marker, color=colours.get(name, VERMILION),
                        markersize=6, elinewidth=1.8, capsize=0)  # fmt: skip
        for name, colour in colours.items():
            if name in self.names:
                ax.axvline(mean[self.names.index(name)], color=colour, linestyle="--", linewidth=1.0, zorder=1)
        name_rows(ax, [self.names[row] for row in self.rows_])
        label = f"{self.scoring.replace('_', ' ')}, mean and standard error over {self.scores.shape[1]} folds"
        if len(others):
            left = mean[rest[others]]
            label += f"\n{len(others)} other kernels: from {left.min():.2g} to {left.max():.2g}"
        ax.set_xlabel(label)
        tidy(ax)
        if first:
            ax.axhline(len(first) - 0.5, color=text_colour(), alpha=0.3, linewidth=0.8)
        self.ax_, self.figure_ = ax, ax.figure
        return self
