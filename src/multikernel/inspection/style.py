"""One style for every display: axes, colours, names of many rows.

The colours are those of Okabe & Ito 2008 that stand out from white and from black alike (contrast of at least 3 to 1),
and that colour-blind readers tell apart. Text, axes and grid take the colours of matplotlib's settings, so that a
display drawn under ``plt.style.use("dark_background")`` is a dark one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

OKABE_ITO = BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
# lines that are told apart by their dashes as well
LINES = [(colour, dashes) for dashes in ("-", "--", ":") for colour in OKABE_ITO]


def new_axes(ax: Any, size: tuple[float, float]) -> Any:
    """Return the axes given, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def row_axes(ax: Any, rows: int) -> Any:
    """Return the axes given, or new ones that are high enough for so many rows with names."""
    return new_axes(ax, (6.4, 1.1 + 0.26 * max(rows, 2)))


def text_colour() -> Any:
    """Return the colour of text, from matplotlib's settings."""
    import matplotlib as mpl

    return mpl.rcParams["text.color"]


def tidy(ax: Any, grid: str = "x") -> None:
    """Remove the frame but for the axes that are read, and draw a faint grid along one or "both" of them."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, color=text_colour(), alpha=0.15, linewidth=0.7)
    ax.set_axisbelow(True)


def name_rows(ax: Any, names: Sequence[Any]) -> None:
    """Write the names at rows 0, 1, ... from top to bottom; long names are shortened in their middle."""
    ax.set_yticks(np.arange(len(names)), [short_name(name) for name in names], parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def short_name(name: Any, most: int = 34) -> str:
    """Return a name on one line of at most so many letters.

    Examples
    --------
    >>> short_name("rna: rbf(0.25)"), short_name("a name that is too long for the margin of a picture", 21)
    ('rna: rbf(0.25)', 'a name tha… a picture')
    """
    text = " ".join(str(name).split())
    if len(text) <= most:
        return text
    last = most // 2
    return f"{text[: most - last - 1]}…{text[-last:]}"


def first_rows(values: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to draw, those of the largest values first, and the rows that are left out.

    Examples
    --------
    >>> [rows.tolist() for rows in first_rows(np.array([0.1, 0.5, 0.3]), 2)]
    [[1, 2], [0]]
    """
    order = np.argsort(-np.where(np.isnan(values), -np.inf, values), kind="stable")
    return order[:most], order[most:]
