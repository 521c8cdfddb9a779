"""Weights and contributions of a fitted model, kernel by kernel or view by view."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from multikernel.estimators.weights_table import views_of
from multikernel.inspection.style import BLUE, VERMILION, first_rows, name_rows, row_axes, text_colour, tidy


class WeightsDisplay:
    """A bar for each weight and a diamond for each contribution, the largest weights first.

    Parameters
    ----------
    names : sequence of str, length p
        The kernels or views.
    weights, contributions : arrays of shape (p,)
        Their weights and contributions; means over the problems where there are several.
    low, high : arrays of shape (p,), optional
        The least and the largest weight over the folds of a search.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn on.
    bars_ : matplotlib BarContainer
        The weights.
    points_ : matplotlib Line2D
        The contributions.
    rows_ : ndarray of int
        The kernels or views drawn, from top to bottom.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier
    >>> from multikernel.inspection import WeightsDisplay
    >>> from multikernel.kernels import Linear
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = MKLClassifier([("age", Linear(), [0]), ("height", Linear(), [1])]).fit(X, X[:, 0] > 0)
    >>> display = WeightsDisplay.from_estimator(model)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['age', 'height']
    """

    def __init__(self, names: Any, weights: Any, contributions: Any, low: Any = None, high: Any = None) -> None:
        self.names, self.low, self.high = list(names), low, high
        self.weights, self.contributions = np.asarray(weights, float), np.asarray(contributions, float)

    @classmethod
    def from_estimator(cls, estimator: Any, *, by: str = "kernel", **options: Any) -> WeightsDisplay:
        """Draw the weights of a fitted estimator.

        Parameters
        ----------
        estimator : MKLClassifier, MKLRegressor, MKLClassifierCV, ...
            Fitted; of a search also the range of the weights over its folds is drawn.
        by : {"kernel", "view"}, default="kernel"
            Whether weights are those of kernels or the sums over the kernels of each view.
        **options
            As of `plot`.

        Returns
        -------
        WeightsDisplay
            The display.
        """
        check_is_fitted(estimator)
        if by not in ("kernel", "view"):
            raise ValueError(f"The 'by' parameter of {cls.__name__} must be 'kernel' or 'view'. Got {by!r} instead.")
        names, sums = list(estimator.kernel_names_), np.eye(len(estimator.kernel_names_))
        if by == "view":
            views = views_of(estimator)
            names = list(dict.fromkeys(views))
            sums = np.array([[float(view == name) for view in views] for name in names])
        p = sums.shape[1]
        weights = np.atleast_2d(estimator.weights_).mean(axis=0)
        parts = np.atleast_2d(getattr(estimator, "kernel_contributions_", np.full(p, np.nan))).mean(axis=0)
        folds = fold_weights(estimator)
        low = high = None
        if folds is not None:
            folds = folds @ sums.T
            low, high = folds.min(axis=0), folds.max(axis=0)
        return cls(names, sums @ weights, sums @ parts, low, high).plot(**options)

    def plot(self, *, ax: Any = None, max_rows: int = 30) -> WeightsDisplay:
        """Draw the weights.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.
        max_rows : int, default=30
            Rows to draw; the axis says what the others are together.

        Returns
        -------
        WeightsDisplay
            This display. Sets: ``ax_``, ``figure_``, ``bars_``, ``points_``, ``rows_``.
        """
        self.rows_, others = first_rows(self.weights, max_rows)
        ax = row_axes(ax, len(self.rows_))
        places = np.arange(len(self.rows_))
        self.bars_ = ax.barh(places, self.weights[self.rows_], height=0.62, color=BLUE, label="weight")
        if self.low is not None and self.high is not None:
            ax.hlines(places, self.low[self.rows_], self.high[self.rows_], color=text_colour(), linewidth=1.2,
                      label="weight, range over folds")  # fmt: skip
        (self.points_,) = ax.plot(
            self.contributions[self.rows_], places, "D", color=VERMILION, markersize=5, markeredgecolor="none",
            label="contribution",
        )  # fmt: skip
        name_rows(ax, [self.names[row] for row in self.rows_])
        ax.axvline(0.0, color=text_colour(), linewidth=0.8)
        label = "weight in the mix, contribution to the decision"
        if len(others):
            used = np.count_nonzero(self.weights[others])
            label += f"\n{len(others)} others, {used} with weight: {self.weights[others].sum():.2g} together"
        ax.set_xlabel(label)
        tidy(ax)
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, fontsize="small", frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def fold_weights(estimator: Any) -> np.ndarray | None:
    """Return the weights of the chosen point in each fold of a search, (n_splits, p), None without a search."""
    path = getattr(estimator, "weights_path_", None)
    if path is None or not hasattr(estimator, "best_index_") or path.size == 0:
        return None
    chosen = path[:, estimator.best_index_]
    chosen = chosen.reshape(len(chosen), -1, chosen.shape[-1]).mean(axis=1)
    p = len(estimator.kernel_names_)
    return chosen if chosen.shape[1] == p and np.isfinite(chosen).all() else None
