"""Importance of views or kernels with its intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from multikernel.inspection.style import BLUE, VERMILION, first_rows, name_rows, row_axes, text_colour, tidy


class ImportanceDisplay:
    """A point for the drop in score without each view, with its interval, the largest drop first.

    A full point: the interval is above zero, so that the view is of use beside the others. A hollow one: it is not.

    Parameters
    ----------
    importance : ViewImportance
        What `view_importance` found.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn on.
    bars_ : matplotlib ErrorbarContainer
        The points with their intervals.
    rows_ : ndarray of int
        The views or kernels drawn, from top to bottom.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier
    >>> from multikernel.inspection import ImportanceDisplay
    >>> from multikernel.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> model = MKLClassifier([("a", RBF(), [0]), ("b", RBF(), [1])])
    >>> display = ImportanceDisplay.from_estimator(model, X, X[:, 0] > 0, cv=3, random_state=0)
    >>> display.ax_.get_yticklabels()[0].get_text()
    'a'
    """

    def __init__(self, importance: Any) -> None:
        self.importance = importance

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, max_rows: int = 30, **options: Any
    ) -> ImportanceDisplay:
        """Compute the importance of the views of an estimator and draw it.

        Parameters
        ----------
        estimator, X, y
            As of `view_importance`.
        ax, max_rows
            As of `plot`.
        **options
            As of `view_importance`.

        Returns
        -------
        ImportanceDisplay
            The display.
        """
        from multikernel.inspection.view_importance import view_importance

        return cls(view_importance(estimator, X, y, **options)).plot(ax=ax, max_rows=max_rows)

    @classmethod
    def from_importance(cls, importance: Any, **options: Any) -> ImportanceDisplay:
        """Draw what `view_importance` returned; ``options`` as of `plot`."""
        return cls(importance).plot(**options)

    def plot(self, *, ax: Any = None, max_rows: int = 30) -> ImportanceDisplay:
        """Draw the drops.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.
        max_rows : int, default=30
            Rows to draw; the axis says how large the drops of the others are.

        Returns
        -------
        ImportanceDisplay
            This display. Sets: ``ax_``, ``figure_``, ``bars_``, ``rows_``.
        """
        found = self.importance
        drop, low, high = (np.asarray(each, float) for each in (found.drop, found.low, found.high))
        self.rows_, others = first_rows(drop, max_rows)
        ax = row_axes(ax, len(self.rows_))
        places, sure = np.arange(len(self.rows_)), low > 0
        ax.axvline(0.0, color=text_colour(), linewidth=0.8)
        reach = np.abs([drop - low, high - drop])[:, self.rows_]
        self.bars_ = ax.errorbar(
            drop[self.rows_], places, xerr=reach, fmt="none", ecolor=BLUE, elinewidth=2.0, capsize=0, zorder=2
        )
        faces = [BLUE if sure[row] else ax.get_facecolor() for row in self.rows_]
        edges = [VERMILION if high[row] < 0 else BLUE for row in self.rows_]
        ax.scatter(drop[self.rows_], places, s=38, c=faces, edgecolors=edges, linewidths=1.6, zorder=3)
        name_rows(ax, [found.names[row] for row in self.rows_])
        label = f"drop in {found.scorer} without the {found.by}, {100 * found.confidence:.0f} % interval"
        if len(others):
            label += f"\n{len(others)} others: drops from {drop[others].min():.2g} to {drop[others].max():.2g}"
        ax.set_xlabel(label)
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
