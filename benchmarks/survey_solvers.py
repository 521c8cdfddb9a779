"""Solvers against each other on the fits of the survey: a table, and a performance profile for each kind of problem.

The profile of a solver at the factor t is the share of fits that it solves in at most t times the time of the fastest
solver: at t = 1 the share in which it is the fastest, on the right the share that it solves at all.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from survey_draw import parse

MANY = 32
# a solver within this factor of the fastest counts as as good: times are those of single runs
AS_GOOD = 1.25


def kind(record: dict) -> str:
    """Return the kind of problem that a fit belongs to, as `auto` may tell it."""
    fit = parse(record["key"])
    if fit.norm > 1:
        return "norms 4/3 and 2"
    return f"norm 1, {MANY} kernels or more" if record["kernels"] >= MANY else f"norm 1, fewer than {MANY} kernels"


def factors(records: list[dict]) -> dict[str, dict[str, list[float]]]:
    """For each kind of problem and each solver: times as multiples of the fastest, infinite where not converged."""
    fits: dict[str, dict[str, dict]] = defaultdict(dict)
    for record in records:
        if record["status"] != "refused":
            fits[record["key"].split("/solver=")[0]][parse(record["key"]).solver] = record
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for runs in fits.values():
        times = {name: run["seconds"] if run["status"] == "converged" else np.inf for name, run in runs.items()}
        fastest = min(times.values())
        if len(times) > 1 and np.isfinite(fastest):
            for name, seconds in times.items():
                found[kind(next(iter(runs.values())))][name].append(seconds / fastest)
    return found


def show_solvers(records: list[dict], console: Console) -> None:
    """Print how often each solver is the fastest or nearly so, and how much slower it is."""
    for name, solvers in sorted(factors(records).items()):
        table = Table(title=f"{name}: times as multiples of the fastest solver")
        for column in ("solver", "fits", "converged", f"within {AS_GOOD:g}", "median", "90 %"):
            table.add_column(column, justify="left" if column == "solver" else "right")
        for solver, values in sorted(solvers.items(), key=lambda item: float(np.median(item[1]))):
            x = np.array(values)
            cells = [f"{np.mean(np.isfinite(x)):.0%}", f"{np.mean(x <= AS_GOOD):.0%}"]
            cells += [f"{np.quantile(x, at, method='higher'):.3g}" for at in (0.5, 0.9)]
            table.add_row(solver, str(len(x)), *cells)
        console.print(table)


def picture(records: list[dict], path: Path) -> None:
    """Draw the profiles."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.fonttype"] = "none"
    plt.rcParams["svg.hashsalt"] = "survey"
    found = sorted(factors(records).items())
    figure, axes = plt.subplots(1, len(found), figsize=(3.6 * len(found), 3.4), sharey=True, squeeze=False)
    names = list(dict.fromkeys(name for _, solvers in found for name in solvers))
    colours = {name: f"C{i}" for i, name in enumerate(names)}
    grid = np.logspace(0, 2, 81)
    for axis, (title, solvers) in zip(axes[0], found, strict=True):
        for name, values in solvers.items():
            share = [np.mean(np.array(values) <= factor) for factor in grid]
            wide = 2.2 if name == "auto" else 1.2
            axis.step(grid, share, where="post", color=colours[name], linewidth=wide, label=name)
        number = max(map(len, solvers.values()))
        axis.set(xscale="log", xlabel="multiple of the fastest time", title=f"{title} ({number} fits)", ylim=(0, 1.02))
        axis.title.set_fontsize(9)
    axes[0][0].set_ylabel("share of fits solved")
    axes[0][-1].legend(*axes[0][0].get_legend_handles_labels(), fontsize=8, loc="lower right", frameon=False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
