"""Docstrings of the package are plain text with numpydoc's headings: this makes reStructuredText of them.

- Indented lines below a paragraph are a formula: they are shown as they stand.
- Signs that reStructuredText would read as markup (`a_`, `|x|`, `*`) are escaped outside backquotes.
- The path of a page is a link to it.
- The lines of a numbered reference belong together, and a list begins a paragraph of its own.
"""

import re

UNDERLINE = re.compile(r"-{3,}")
REFERENCE = re.compile(r"\.\. \[\d+\] ")
ITEM = re.compile(r"(-|\d+\.) ")
# the sections of numpydoc whose indented lines are descriptions
DESCRIPTIONS = {"Parameters", "Other Parameters", "Attributes", "Methods", "Returns", "Yields", "Raises", "Warns"}


def escape(line: str) -> str:
    """Escape signs of markup outside backquotes and the numbers of references."""
    parts = re.split(r"(``.+?``|`[^`]+?`|\[\d+\]_)", line)
    parts[::2] = [re.sub(r"([*|\\]|(?<=\w)_(?!\w))", r"\\\1", part) for part in parts[::2]]
    parts[::2] = [re.sub(r"\bdocs/([\w-]+)\.md", r":doc:`/\1`", part) for part in parts[::2]]
    return "".join(parts)


def plain(lines: list[str]) -> list[str]:
    """Return the lines of a docstring as reStructuredText."""
    section, kind, out = "", "text", []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        before = kind
        if UNDERLINE.fullmatch(following):
            section, kind = line, "text"
        elif not line.strip():
            kind = kind if kind == "formula" else "text"
        elif kind == "example" or line.startswith(">>>"):
            kind = "example"
        elif line.startswith("    ") and section not in DESCRIPTIONS:
            kind = "formula" if kind != "item" else kind
        elif REFERENCE.match(line) or (section == "References" and kind == "reference"):
            kind = "reference"
        elif ITEM.match(line) or (line.startswith(" ") and kind == "item"):
            kind = "item"
        else:
            kind = "text"
        if line.strip() and (kind != before or REFERENCE.match(line)) and out and out[-1].strip():
            out.append("")
        if kind == "formula" and before != "formula":
            out += ["::", ""]
        if kind == "reference" and not REFERENCE.match(line):
            line = "   " + line
        out.append(line if kind in ("formula", "example") or UNDERLINE.fullmatch(line) else escape(line))
    return out


def process(app, what, name, obj, options, lines):
    """Change the lines in place, before numpydoc reads them."""
    lines[:] = plain(lines)


def skip(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to every estimator."""
    inherited = str(getattr(obj, "__module__", "")).startswith("sklearn")
    return True if inherited or re.fullmatch(r"set_\w+_request", name) else None


def setup(app):
    """Connect both functions."""
    app.connect("autodoc-process-docstring", process, priority=1)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
