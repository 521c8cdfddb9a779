"""What a comparison found: one row per method, as a table, a data frame, a file or a picture."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from multikernel.inspection.style import BLUE, name_rows, new_axes, text_colour, tidy
from multikernel.inspection.writing import save_figure, write_rows


@dataclass(frozen=True)
class Comparison:
    """The results of `compare`.

    Attributes
    ----------
    rows : list of dict
        One per fit: method, fold, score, fit_time, score_time, active, gap, status, warnings, error.
    methods : list of str
        The methods, in the order given.
    scoring : str
        Name of the score.
    n_kernels, n_splits : int
        Numbers of kernels and of splits.
    """

    rows: list[dict[str, Any]]
    methods: list[str]
    scoring: str
    n_kernels: int
    n_splits: int

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row per method.

        Means over the splits of score, fit_time (seconds) and active (kernels of non-zero weight); standard error of
        the score; the largest certified gap, None for a method without one; the number of splits that succeeded; the
        first error.
        """
        return [self._summary(name) for name in self.methods]

    def _summary(self, name: str) -> dict[str, Any]:
        fits = [row for row in self.rows if row["method"] == name]
        done = [row for row in fits if row["error"] is None]
        scores = np.array([row["score"] for row in done], float)
        gaps = [row["gap"] for row in done if row["gap"] is not None]
        active = [row["active"] for row in done if row["active"] is not None]
        error = next((row["error"] for row in fits if row["error"] is not None), None)
        return {
            "method": name,
            self.scoring: float(scores.mean()) if len(scores) else None,
            "standard_error": float(scores.std(ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else None,
            "standard_deviation": float(scores.std(ddof=1)) if len(scores) > 1 else None,
            "fit_time": float(np.mean([row["fit_time"] for row in done])) if done else None,
            "active": float(np.mean(active)) if active else None,
            "kernels": self.n_kernels,
            "gap": max(gaps) if gaps else None,
            "splits": len(done),
            "error": error,
        }

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame, indexed by method."""
        import pandas as pd

        return pd.DataFrame(self.table).set_index("method")

    def __rich__(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        title = (
            f"Mean {self.scoring.replace('_', ' ')} and standard error over {self.n_splits} splits, training "
            "time, kernels in use, largest certified gap"
        )
        table = Table(title=Text(title, "table.title"))
        table.add_column("method")
        for heading in (self.scoring.replace("_", " "), "training time", "kernels", "gap"):
            table.add_column(Text(heading), justify="right", no_wrap=True)
        rows = self.table
        best = max((row[self.scoring] for row in rows if row[self.scoring] is not None), default=None)
        for row in rows:
            style = "bold" if best is not None and row[self.scoring] == best else None
            table.add_row(Text(row["method"]), *_cells(row, self.scoring), style=style)
        # Text: brackets in names and errors are not read as markup
        errors = [f"{row['method']}: {row['error']}" for row in rows if row["error"] is not None]
        table.caption = Text("\n".join(errors), "table.caption") if errors else None
        return table

    def __str__(self) -> str:
        from rich.console import Console

        file = io.StringIO()
        Console(file=file, width=120).print(self.__rich__())
        return file.getvalue().rstrip()

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean score of each method with its standard error, and the score of every split as a faint dot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib Axes
            The axes drawn on.
        """
        rows = self.table
        ax = new_axes(ax, (7.0, 1.2 + 0.42 * len(rows)))
        for place, row in enumerate(rows):
            scores = [each["score"] for each in self.rows if each["method"] == row["method"] and each["error"] is None]
            ax.plot(scores, np.full(len(scores), place), "o", color=text_colour(), alpha=0.3, markersize=4, zorder=1)
            if row[self.scoring] is None:
                ax.text(0.5, place, "failed", transform=ax.get_yaxis_transform(), ha="center", va="center", alpha=0.7)
                continue
            ax.errorbar(
                row[self.scoring], place, xerr=row["standard_error"] or 0.0, fmt="o", color=BLUE, capsize=3, zorder=2
            )
            used = "" if row["active"] is None else f", {row['active']:.3g} of {row['kernels']} kernels"
            ax.annotate(
                f"{row['fit_time']:.2g} s{used}", (1.0, place), xycoords=("axes fraction", "data"), xytext=(6, 0),
                textcoords="offset points", va="center", fontsize="small", alpha=0.8,
            )  # fmt: skip
        name_rows(ax, [row["method"] for row in rows])
        ax.set_xlabel(f"{self.scoring.replace('_', ' ')} (mean and standard error over {self.n_splits} splits)")
        tidy(ax)
        return ax

    def save(self, folder: str | os.PathLike) -> list[Path]:
        """Write ``table.csv``, ``fits.csv`` and ``comparison.png`` into a folder; return their paths."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / "table.csv", folder / "fits.csv", folder / "comparison.png"]
        write_rows(paths[0], self.table)
        write_rows(paths[1], [{key: value for key, value in row.items() if key != "key"} for row in self.rows])
        save_figure(self.plot().figure, paths[2])
        return paths


def _cells(row: Mapping[str, Any], scoring: str) -> tuple[str, str, str, str]:
    if row[scoring] is None:
        return "failed", "", "", ""
    spread = "" if row["standard_error"] is None else f" ± {row['standard_error']:.4f}"
    active = "" if row["active"] is None else f"{row['active']:.3g} of {row['kernels']}"
    return (
        f"{row[scoring]:.4f}{spread}", f"{row['fit_time']:.3g} s", active,
        "" if row["gap"] is None else f"{row['gap']:.1e}",
    )  # fmt: skip
