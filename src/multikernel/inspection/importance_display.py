"""A profile over positions, by degree: Sonnenburg, Raetsch & Schaefer 2005, Figure 4."""

from __future__ import annotations

from typing import Any

import numpy as np

from multikernel.inspection.importance import PositionImportance, position_importance
from multikernel.inspection.style import new_axes, tidy
from multikernel.inspection.writing import MOST_SEPARATE

_LABELS = {"weights": "learned weight", "contributions": "share of the decision function"}


class SequenceImportanceDisplay:
    """One bar for each position, with a part for each degree.

    Parameters
    ----------
    importance : PositionImportance
        The importance to draw.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        The figure of the axes.
    bars_ : list of matplotlib BarContainer, or PolyCollection for more than 100 positions
        The parts, one for each degree that is not zero everywhere.

    Examples
    --------
    >>> from multikernel import MKLClassifier
    >>> from multikernel.datasets import dna
    >>> from multikernel.inspection import SequenceImportanceDisplay
    >>> from multikernel.kernels import DegreeBlocks, PositionBlocks, WeightedDegree
    >>> sequences, y = dna(200, 20, motif="GATTACA", at=8, mutation=0.1)
    >>> model = MKLClassifier(PositionBlocks(DegreeBlocks(WeightedDegree(3)), 5)).fit(sequences, y)
    >>> display = SequenceImportanceDisplay.from_estimator(model, origin=8)
    >>> display.ax_.get_xlabel()
    'position'
    """

    def __init__(self, importance: PositionImportance) -> None:
        self.importance = importance

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, output: int | None = None, column: Any = None, **options: Any
    ) -> SequenceImportanceDisplay:
        """Draw the importance of the positions of a fitted model.

        Parameters
        ----------
        estimator : MKLClassifier, MKLRegressor, MKLOneClass, ...
            Fitted.
        output, column
            As of `position_importance`.
        **options
            As of `plot`.

        Returns
        -------
        SequenceImportanceDisplay
            The display.
        """
        return cls.from_importance(position_importance(estimator, output=output, column=column), **options)

    @classmethod
    def from_importance(cls, importance: PositionImportance, **options: Any) -> SequenceImportanceDisplay:
        """Draw what `position_importance` returned; ``options`` as of `plot`."""
        return cls(importance).plot(**options)

    def plot(
        self,
        *,
        ax: Any = None,
        quantity: str = "weights",
        shared: bool = False,
        origin: int = 0,
        window: tuple[int, int] | None = None,
        cmap: str = "viridis",
    ) -> SequenceImportanceDisplay:
        """Draw the profile.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.
        quantity : {"weights", "contributions"}, default="weights"
            Which array of the importance to draw.
        shared : bool, default=False
            Whether the value of a d-mer is shared equally by its d positions; otherwise it is drawn at the first one.
        origin : int, default=0
            Position that the axis labels as 0.
        window : (int, int), optional
            Positions [start, stop) to draw; by default all.
        cmap : str, default="viridis"
            Colours of the degrees.

        Returns
        -------
        SequenceImportanceDisplay
            This display. Sets: ``ax_``, ``figure_``, ``bars_``.
        """
        import matplotlib as mpl

        values = self.importance.by_degree(quantity, shared=shared)
        start, stop = (0, len(values)) if window is None else (max(0, window[0]), min(window[1], len(values)))
        ax = new_axes(ax, (8.0, 3.2))
        places, values = np.arange(start, stop) - origin, values[start:stop]
        used = np.flatnonzero(values.any(axis=0))
        degrees = values.shape[1]
        colours = mpl.colormaps[cmap](np.linspace(0.0, 0.92, max(degrees, 2)))
        # positive parts are stacked upwards from zero, negative ones downwards
        tops = {True: np.zeros(len(places)), False: np.zeros(len(places))}
        self.bars_ = []
        for d in used:
            part = values[:, d]
            up = part >= 0
            bottom = np.where(up, tops[True], tops[False])
            self.bars_.append(_bars(ax, places, bottom, part, colours[d], f"{d + 1}"))
            tops[True] += np.where(up, part, 0.0)
            tops[False] += np.where(up, 0.0, part)
        if degrees > 1:
            scale = mpl.colors.BoundaryNorm(np.arange(0.5, degrees + 1), degrees)
            ticks = np.unique(np.linspace(1, degrees, min(degrees, 5)).round().astype(int))
            mapped = mpl.cm.ScalarMappable(scale, mpl.colors.ListedColormap(colours[:degrees]))
            ax.figure.colorbar(mapped, ax=ax, label="degree", ticks=ticks, pad=0.01)
        ax.set(xlabel="position", ylabel=_LABELS[quantity])
        ax.margins(x=0.01)
        tidy(ax, "y")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _bars(ax: Any, places: np.ndarray, bottom: np.ndarray, heights: np.ndarray, colour: Any, label: str) -> Any:
    """Draw the bars of one degree; for many positions one filled surface, which is faster than many bars."""
    if len(places) <= MOST_SEPARATE:
        return ax.bar(places, heights, bottom=bottom, width=0.9, color=colour, label=label)
    edges = np.append(places - 0.5, places[-1] + 0.5)
    low, high = (np.append(values, values[-1]) for values in (bottom, bottom + heights))
    return ax.fill_between(edges, low, high, step="post", color=colour, linewidth=0, label=label)
