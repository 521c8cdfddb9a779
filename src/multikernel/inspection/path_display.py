"""The weights along C or along the norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from multikernel.inspection.style import LINES, first_rows, new_axes, short_name, text_colour, tidy
from multikernel.model_selection import mkl_path


class PathDisplay:
    """A line for the weight of each kernel, over the values of C or of the norm.

    Parameters
    ----------
    values : array of shape (L,)
        The values of C or of the norm.
    weights : array of shape (L, p) or (L, T, p)
        The weights; of T problems their mean is drawn.
    names : sequence of str, length p
        The kernels.
    parameter : {"C", "norm"}, default="C"
        What the values are of.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn on.
    lines_ : list of matplotlib Line2D
        The lines with a name, those of the largest weights first.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier
    >>> from multikernel.inspection import PathDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> display = PathDisplay.from_estimator(MKLClassifier(), X, X[:, 0] ** 2 > 0.5, Cs=[0.1, 1.0, 10.0])
    >>> display.ax_.get_xlabel(), display.ax_.get_xscale(), len(display.lines_)
    ('C', 'log', 5)
    """

    def __init__(self, values: Any, weights: Any, names: Any, parameter: str = "C") -> None:
        self.values, self.names, self.parameter = np.asarray(values, float), list(names), parameter
        weights = np.asarray(weights, float)
        self.weights = weights.reshape(len(weights), -1, weights.shape[-1]).mean(axis=1)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, Cs: Any = None, norms: Any = None, **options: Any
    ) -> PathDisplay:
        """Train an estimator along C or along the norm, and draw the weights.

        Parameters
        ----------
        estimator, X, y, Cs, norms
            As of `multikernel.model_selection.mkl_path`.
        **options
            As of `plot`.

        Returns
        -------
        PathDisplay
            The display.
        """
        return cls.from_path(mkl_path(estimator, X, y, Cs=Cs, norms=norms), **options)

    @classmethod
    def from_path(cls, path: Any, **options: Any) -> PathDisplay:
        """Draw what `multikernel.model_selection.mkl_path` returned; ``options`` as of `plot`."""
        # what the values are of: the parameter in which the models have them
        parameter = (
            "norm" if all(model.norm == value for model, value in zip(path.models, path.values, strict=True)) else "C"
        )
        return cls(path.values, path.weights, path.models[0].kernel_names_, parameter).plot(**options)

    def plot(self, *, ax: Any = None, max_lines: int = 8) -> PathDisplay:
        """Draw the lines.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.
        max_lines : int, default=8
            Kernels with a colour and a name, those of the largest weights; the others are drawn faintly.

        Returns
        -------
        PathDisplay
            This display. Sets: ``ax_``, ``figure_``, ``lines_``.
        """
        ax = new_axes(ax, (7.2, 4.0))
        order = np.argsort(self.values, kind="stable")
        values, weights = self.values[order], self.weights[order]
        named, others = first_rows(weights.max(axis=0), max_lines)
        if len(others):
            faint = ax.plot(values, weights[:, others], color=text_colour(), alpha=0.25, linewidth=0.8)
            faint[0].set_label(f"{len(others)} others")
        self.lines_ = []
        for place, k in enumerate(named):
            colour, dashes = LINES[place % len(LINES)]
            self.lines_ += ax.plot(
                values, weights[:, k], color=colour, linestyle=dashes, linewidth=1.8, marker="o", markersize=3.5,
                label=short_name(self.names[k]),
            )  # fmt: skip
        if np.isfinite(values).all() and values.min() > 0 and self.parameter == "C":
            ax.set_xscale("log")
        ax.set(xlabel=self.parameter, ylabel="weight")
        ax.set_ylim(bottom=0.0)
        tidy(ax, "both")
        legend = ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize="small", frameon=False)
        for text in legend.get_texts():
            text.set_parse_math(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
