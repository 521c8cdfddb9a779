"""HTML from Python, with everything escaped that is not HTML already.

Numbers are `<data value="...">` elements: the page shows a few digits, and the value has all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np


class Html(str):
    """A text that is HTML; every other text is escaped when it becomes part of one."""


class Column(NamedTuple):
    """A column of a table: its heading, and what the heading means, shown on hover and focus."""

    heading: str
    tip: str = ""


def tag(name: str, *children: Any, **attributes: Any) -> Html:
    """Return an element.

    Attributes that are None or False are left out, and True stands for one without a value. Underscores become
    hyphens, and one at the end is dropped: ``class_``, ``aria_label``.

    Examples
    --------
    >>> tag("p", "a < b, ", tag("b", "bold"), class_="x", data_tip='"')
    '<p class="x" data-tip="&quot;">a &lt; b, <b>bold</b></p>'
    """
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        words.append(key if value is True else f'{key}="{escape(str(value))}"')
    inner = join(children)
    return Html(f"<{' '.join(words)}>{inner}</{name}>")


def join(children: Sequence[Any]) -> Html:
    """Return pieces one after the other: None is left out, and what is not HTML is escaped."""
    return Html("".join(each if isinstance(each, Html) else escape(str(each)) for each in children if each is not None))


def number(value: Any, form: str = ".3f", key: str | None = None) -> Html:
    """Return a number with few digits, all of which the attribute ``value`` holds; a dash where there is none.

    Parameters
    ----------
    value : number or None
        The number.
    form : str
        How it is shown, as in `format`.
    key : str, optional
        A name by which the number is found in the page.

    Examples
    --------
    >>> number(0.123456, key="gap"), number(-1e-9), len(number(None))
    ('<data value="0.123456" data-key="gap">0.123</data>', '<data value="-1e-09">0.000</data>', 1)
    """
    if value is None or not math.isfinite(value):
        return Html("\N{EN DASH}")
    plain = value.item() if isinstance(value, np.generic) else value
    text = format(plain, form)
    # no minus before what is rounded to zero
    text = text.lstrip("-") if not text.strip("-+0.") else text.replace("-", "\N{MINUS SIGN}")
    return tag("data", text, value=repr(plain), data_key=key)


def table(caption: str, columns: Sequence[Column], rows: Sequence[Sequence[Any]], *, sortable: bool = True) -> Html:
    """Return a table in a box that scrolls by itself; the first cell of each row is its heading.

    The script of the page makes the headings of a sortable table into buttons.
    """
    # a column of texts is aligned to the left
    words = ["text" if rows and not _is_number(rows[0][j]) else None for j in range(len(columns))]
    head = [
        tag("th", each.heading, scope="col", class_=words[j], data_tip=each.tip or None,
            tabindex=0 if each.tip and not sortable else None)
        for j, each in enumerate(columns)
    ]  # fmt: skip
    body = [
        tag("tr", tag("th", row[0], scope="row"), *[tag("td", row[j], class_=words[j]) for j in range(1, len(row))])
        for row in rows
    ]
    kind = "sortable" if sortable else None
    return framed(caption, tag("thead", tag("tr", *head)), tag("tbody", *body), class_=kind)


def framed(caption: str, *parts: Html, class_: str | None) -> Html:
    """Return a table with its caption, in a box that scrolls by itself and can be reached by the keyboard."""
    whole = tag("table", tag("caption", tag("span", caption)), *parts, class_=class_)
    return tag("div", whole, class_="scroll", role="region", tabindex=0, aria_label=caption)


def _is_number(cell: Any) -> bool:
    return isinstance(cell, Html) and (cell.startswith("<data") or len(cell) == 1)


def section(anchor: str, heading: str, *children: Any) -> Html:
    """Return a part of the page with its heading."""
    title = tag("h2", heading, id=f"{anchor}-heading")
    return tag("section", title, *children, id=anchor, aria_labelledby=f"{anchor}-heading")
