"""Tables and plots of the comparison: on the terminal, and as a page of the documentation."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
from objective import GAPS, accuracy_within, time_to_gap
from rich.console import Console
from rich.table import Table

OURS, UNIFORM, AUTO, DEFAULT, EASY = (
    "multikernel", "SVC on the uniform sum", "multikernel, auto", "multikernel, defaults", "MKLpy EasyMKL",
)  # fmt: skip
# multiples of the time of SVC on the uniform sum at which accuracies are compared
BUDGETS = (1, 10, 100)
# a solver that takes less than this part of the time of `auto` is faster; more may be noise
FASTER_ENOUGH = 0.8
# faster than MKLpy's EasyMKL by this factor, on the first problem
FASTER = 20

INTRODUCTION = """# Benchmarks

`make bench` writes this page: every solver of the library, scikit-learn and other packages for multiple kernel
learning, on the same kernels in one run. `make bench-quick` prints a small version in about two minutes. The benchmark
is built like [benchopt](https://benchopt.github.io): each contestant is one small file of
`benchmarks/peers/contestants`, only its fit is timed, and the metrics are computed by the objective, not by the
contestant.

- **True gap**: how far the primal value of the returned weights, coefficients and intercept, recomputed in float64,
  lies above the largest dual value found by any contestant, relative to the former
  ([the certificate](conventions.md#the-certificate)). Contestants that solve another problem have none.
- **Time**: seconds of the fit on one thread, checks of the kernels included, and *passes*, readings of the whole stack
  (`np.tensordot(beta, K, 1)`) in the same run. Compare within one run only.
- **MiB**: peak of memory during the fit above what the process held before it.
- **Accuracy** on test samples that no contestant has seen.
"""
# measured once, with the program built from source, on the stacks of rings-2000 and l2-rings-2000; two cores
SHOGUN = """
## SHOGUN

SHOGUN 6.1.4 has to be built from source and is not part of the run. Measured once on the same stacks:

| problem | setting | passes | true gap |
| --- | --- | --- | --- |
| rings-2000 | interleaved, analytic, tuned | 120 to 260 | 7.5e-4 |
| rings-2000 | the same, finer | 530 to 1200 | 2.6e-5 |
| rings-2000 | interleaved, linear program | 200 to 800 | 0.17 to 0.32, at a reported 9e-4 |
| rings-2000 | its defaults | 2600 to 5800 | 1.5e-5 |
| l2-rings-2000 | interleaved, tuned | 160 to 510 | 1.2e-3 |
"""
EXPLANATION = """{}, C = 1. Columns `gap`: time to that true gap. `time`, `passes` and `accuracy` are those of the most
exact run. `accuracy in 10x`: that of the most exact run within ten times the time of {}.
"""


def grouped(records: list[dict]) -> dict[str, dict[str, list[dict]]]:
    """Records by problem and contestant."""
    groups: dict[str, dict[str, list[dict]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        groups[record["problem"]][record["contestant"]].append(record)
    return groups


def seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2g} s" if value >= 1 else f"{1000 * value:.3g} ms"


def rows(problem: dict[str, list[dict]]) -> tuple[list[str], list[list[str]]]:
    """The table of one problem: a row for each contestant that ran."""
    unit = next(iter(problem.values()))[0]["pass"]
    base = min((run["seconds"] for run in problem.get(UNIFORM, []) if "seconds" in run), default=None)
    heading = ["contestant", *(f"gap {gap:g}" for gap in GAPS), "time", "passes", "accuracy", "MiB"]
    heading += [f"accuracy in {budget}x" for budget in BUDGETS] if base else []
    table = []
    for name, runs in problem.items():
        done = [run for run in runs if "seconds" in run]
        if not done:
            continue
        last = done[-1]
        cells = [name, *(seconds(time_to_gap(done, gap)) for gap in GAPS), seconds(last["seconds"])]
        cells += [
            f"{last['seconds'] / unit:.0f}",
            f"{last['accuracy']:.4f}",
            f"{max(run['memory'] for run in done):.0f}",
        ]
        if base:
            within = [accuracy_within(done, budget * base) for budget in BUDGETS]
            cells += ["" if value is None else f"{value:.4f}" for value in within]
        table.append(cells)
    return heading, table


def skipped(problem: dict[str, list[dict]]) -> list[str]:
    return [f"{name}: {runs[-1]['skipped']}" for name, runs in problem.items() if "skipped" in runs[-1]]


def losses(problem: dict[str, list[dict]]) -> list[str]:
    """Sentences about contestants that are better than `auto` in something."""
    ours = [run for run in problem.get(AUTO, []) if "seconds" in run]
    if not ours:
        return []
    found = []
    for gap in GAPS:
        own = time_to_gap(ours, gap)
        times = {
            name: time for name, runs in problem.items() if (time := time_to_gap(runs_done(runs), gap)) is not None
        }
        best = min(times, key=lambda name: times[name], default=AUTO)
        if own is None:
            found.append(f"`auto` does not reach a true gap of {gap:g}.")
        elif times[best] < FASTER_ENOUGH * own:
            found.append(f"`{best}` reaches a gap of {gap:g} in {times[best] / own:.2f} of the time of `auto`.")
    default = (runs_done(problem.get(DEFAULT, [])) or ours)[-1]
    for name, runs in problem.items():
        better = [run for run in runs_done(runs) if not name.startswith(OURS) and run["accuracy"] > default["accuracy"]]
        if better:
            best_run = min(better, key=lambda run: run["seconds"])
            found.append(
                f"{name} is more accurate than `MKLClassifier()`, {best_run['accuracy']:.4f} against "
                f"{default['accuracy']:.4f}, in {best_run['seconds'] / default['seconds']:.2g} times its time."
            )
    base = runs_done(problem.get(UNIFORM, []))
    if base and base[0]["seconds"] < default["seconds"]:
        found.append(f"{UNIFORM} takes {base[0]['seconds'] / default['seconds']:.2g} of the time of `MKLClassifier()`.")
    return found


def runs_done(runs: list[dict]) -> list[dict]:
    return [run for run in runs if "seconds" in run]


def easymkl(problem: dict[str, list[dict]]) -> str:
    """The sentence about MKLpy's EasyMKL at its defaults."""
    ours, theirs = runs_done(problem.get(DEFAULT, [])), runs_done(problem.get(EASY, []))
    if not ours or not theirs:
        return "MKLpy's EasyMKL did not run."
    factor = theirs[0]["seconds"] / ours[0]["seconds"]
    met = factor >= FASTER and ours[0]["accuracy"] >= theirs[0]["accuracy"]
    return (
        f"`MKLClassifier()` is {factor:.0f} times faster than MKLpy's EasyMKL at its defaults, accuracy "
        f"{ours[0]['accuracy']:.4f} against {theirs[0]['accuracy']:.4f} (asked for: {FASTER} times at equal or higher "
        f"accuracy; {'met' if met else 'missed'})."
    )


def show(records: list[dict], console: Console) -> None:
    """Print the tables."""
    for problem in grouped(records).values():
        heading, body = rows(problem)
        table = Table(title=next(iter(problem.values()))[0]["title"])
        for column in heading:
            table.add_column(column, justify="left" if column == "contestant" else "right", no_wrap=True)
        for cells in body:
            table.add_row(*cells)
        console.print(table)
        for line in skipped(problem):
            console.print(f"  skipped: {line}", highlight=False, markup=False, soft_wrap=True)
        for line in losses(problem):
            console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
        if EASY in problem:
            console.print(f"  {easymkl(problem)}", highlight=False, markup=False, soft_wrap=True)


def plot(problem: dict[str, list[dict]], title: str, path: Path) -> None:
    """Draw gap and accuracy over time, one point a run."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.fonttype"] = "none"
    plt.rcParams["svg.hashsalt"] = "benchmarks"
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2))
    for name, runs in problem.items():
        done = sorted(runs_done(runs), key=lambda run: run["seconds"])
        ours = name.startswith(OURS)
        style = {"marker": "o" if ours else "s", "markersize": 4, "linewidth": 1, "linestyle": "-" if ours else "--"}
        gaps = [run for run in done if np.isfinite(run.get("gap", np.inf))]
        label = name.replace("multikernel, ", "")
        line = left.plot(
            [run["seconds"] for run in gaps], [max(run["gap"], 1e-9) for run in gaps], label=label, **style
        )
        right.plot([run["seconds"] for run in done], [run["accuracy"] for run in done],
                   color=line[0].get_color(), label=label, **style)  # fmt: skip
    scales = {"xscale": "log", "yscale": "log"} if any(len(line.get_xdata()) for line in left.lines) else {}
    left.set(xlabel="seconds of the fit", ylabel="true gap", title=title, **scales)
    right.set(xscale="log", xlabel="seconds of the fit", ylabel="accuracy on test samples")
    right.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def write_page(machine: dict, records: list[dict], path: Path, note: str = "") -> None:
    """Write the page, and its plots beside it in `img/`; ``note`` says what a reader must know of the run."""
    groups = grouped(records)
    words = ", ".join(f"{key} {value}" for key, value in machine.items())
    text = [INTRODUCTION, f"This run: {words}.\n"] + ([f"**{note}**\n"] if note else [])
    if "rings-2000" in groups:
        text.append(f"On `rings-2000`, n = 2000 and 20 kernels: {easymkl(groups['rings-2000'])}\n")
    lost = {name: losses(problem) for name, problem in groups.items()}
    text.append("## Where we lose\n")
    text += [f"- {name}: {line}" for name, lines in lost.items() for line in lines] or ["- Nowhere in this run."]
    for name, problem in groups.items():
        title = next(iter(problem.values()))[0]["title"]
        heading, body = rows(problem)
        text += [f"\n## {name}\n", EXPLANATION.format(title[0].upper() + title[1:], UNIFORM)]
        text += ["| " + " | ".join(heading) + " |", "| --- " * len(heading) + "|"]
        text += ["| " + " | ".join(cells) + " |" for cells in body]
        if lines := skipped(problem):
            text += ["", "Not run: " + "; ".join(lines) + "."]
        text += ["", f"![{title}](img/benchmarks-{name}.svg)"]
        plot(problem, title, path.parent / "img" / f"benchmarks-{name}.svg")
    path.write_text("\n".join(text) + "\n" + SHOGUN, encoding="utf-8")
