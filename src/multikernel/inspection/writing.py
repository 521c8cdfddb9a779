"""Writing tables and pictures of what was learned."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

# Positions, iterations or cells up to which each is shown apart, with a gap, a mark or its number: more are too narrow
# to read and slow to draw.
MOST_SEPARATE = 100


def write_columns(path: Path, columns: Mapping[str, Sequence]) -> None:
    """Write columns of equal length as CSV, with a header."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows with the same keys as CSV, with a header."""
    write_columns(path, {key: [row[key] for row in rows] for key in (rows[0] if rows else ())})


def save_both(
    folder: str | os.PathLike, name: str, columns: Mapping[str, Sequence], draw: Callable[[], Any]
) -> list[Path]:
    """Write a table and a picture into a folder, ``name``.csv and ``name``.png; return their paths.

    Parameters
    ----------
    folder : path
        The folder; created if it does not exist.
    name : str
        Name of the files without ending.
    columns : dict of sequences
        The table.
    draw : callable
        Function that returns the figure; the figure is closed afterwards.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    table, picture = folder / f"{name}.csv", folder / f"{name}.png"
    write_columns(table, columns)
    save_figure(draw(), picture)
    return [table, picture]


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure to a file and close it."""
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=160)
    plt.close(figure)
