"""Displays as SVG inside the page: its colours, its fonts, no metadata, texts that can be read and searched."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from multikernel.inspection.page.html import Html, tag

# colours that stand for those of the page, which are light or dark
_INK, _PAPER = "#010203", "#fdfcfb"
_INKED = (
    "text.color",
    "axes.edgecolor",
    "axes.labelcolor",
    "xtick.color",
    "ytick.color",
    "grid.color",
    "legend.edgecolor",
)


def picture(
    draw: Callable[[Any], Any], size: tuple[float, float], name: str, label: str, tips: Sequence[str] = ()
) -> Html:
    """Return a figure of the page.

    Parameters
    ----------
    draw : callable
        Draws on the axes it is given, and returns the display.
    size : (float, float)
        Width and height in inches; no more than 5.5 wide, so that letters can be read on a phone.
    name : str
        Begins every id of the picture: ids are unique in a page.
    label : str
        What the picture shows, for those who do not see it and as its caption.
    tips : sequence of str
        What hovering shows over each entry of the display, of which it draws those of its ``rows_``.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings = {
        **dict.fromkeys(_INKED, _INK), "axes.facecolor": _PAPER, "figure.facecolor": _PAPER, "legend.facecolor": _PAPER,
        "svg.fonttype": "none", "svg.hashsalt": name, "font.size": 10.0,
    }  # fmt: skip
    # the caller's settings of pictures do not change the page
    with mpl.rc_context({**mpl.rcParamsDefault, "backend": mpl.rcParams["backend"], **settings}):
        figure = Figure(figsize=size, layout="constrained")
        ax = figure.subplots()
        display = draw(ax)
        tips = [tips[row] for row in display.rows_] if tips else ()
        for place in range(len(tips)):
            row = ax.axhspan(place - 0.5, place + 0.5, alpha=0.0, linewidth=0.0, zorder=9)
            row.set_gid(f"row{place}")
        file = io.StringIO()
        figure.savefig(file, format="svg", dpi=160, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    text = text.replace(_INK, "currentColor").replace(_PAPER, "var(--paper)")
    text = re.sub(r"(font: [\d.]+px) [^;\"]*", r"\1 system-ui, sans-serif", text)
    for place, tip in enumerate(tips):
        text = text.replace(f'<g id="{name}-row{place}">', f'<g id="{name}-row{place}" data-tip="{escape(tip)}">')
    text = text.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
    return tag("figure", Html(text), tag("figcaption", label))
