"""Draws the measured curves of docs/scale.md, from figures that are in the repository; nothing is measured here.

    python benchmarks/scale_curves.py [--out docs/img]

scale-time.svg: times against the number of samples, from the table of the GPU on that page, from
papers/2005-sonnenburg/growth.csv and from benchmarks/results/partitions.jsonl. scale-memory.svg: largest memory of the
process that calls `fit`, from the last of these. Lines through two or three points are there for the eye only.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
# a row of the table of the GPU: samples, kernels, time of the whole fit
GPU_ROW = re.compile(r"^\| ([\d,]+) \| (stored|recomputed)[^|]*\| ([\d.]+) s \| (.*) \|$", re.MULTILINE)
HOST = re.compile(r"on (?:the )?(\d+) cores of that machine: ([\d.]+) s")


def gpu_times(page: str) -> dict[str, list[tuple[int, float]]]:
    """Return samples and seconds of the fits on the GPU, and on the cores of the same machine.

    Examples
    --------
    >>> gpu_times("| 20,000 | stored, 16 GB | 0.4 s | the same fit on the 16 cores of that machine: 13 s |")
    {'one H200, stored': [(20000, 0.4)], '16 of its cores, stored': [(20000, 13.0)]}
    """
    found: dict[str, list[tuple[int, float]]] = {}
    for samples, kind, seconds, remark in GPU_ROW.findall(page):
        n = int(samples.replace(",", ""))
        found.setdefault(f"one H200, {kind}", []).append((n, float(seconds)))
        for cores, other in HOST.findall(remark):
            found.setdefault(f"{cores} of its cores, {kind}", []).append((n, float(other)))
    return found


def short(n: float, _: int = 0) -> str:
    """Return a number for an axis.

    Examples
    --------
    >>> short(20000), short(2_000_000), short(0.1)
    ('20k', '2M', '0.1')
    """
    return next(f"{n / by:g}{unit}" for by, unit in ((1e6, "M"), (1e3, "k"), (1, "")) if n >= by or by == 1)


def curves() -> tuple[list[tuple[str, str, list]], list[tuple[str, str, list]]]:
    """Return (group, label, points) of the times, and of the memory in MiB."""
    device = gpu_times((ROOT / "docs" / "scale.md").read_text(encoding="utf-8"))
    with (ROOT / "papers" / "2005-sonnenburg" / "growth-rows.csv").open() as file:
        epochs = [(int(row["n"]), float(row["seconds"])) for row in csv.DictReader(file)]
    lines = (ROOT / "benchmarks" / "results" / "partitions.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if "kind" in row]
    names = {"partitions": "two workers", "alone": "one process"}
    times = [("kernel matrices, whole fit", label, points) for label, points in device.items()]
    times.append(("explicit features, one epoch", "one thread", epochs))
    memory = []
    for kind, label in names.items():
        own = [row for row in rows if row["kind"] == kind]
        times.append(("explicit features, whole fit", label, [(row["n"], row["fit"]) for row in own]))
        memory.append(("memory", label, [(row["n"], row["peak"]) for row in own]))
    return times, memory


def draw(found: list[tuple[str, str, list]], ylabel: str, path: Path) -> None:
    """Draw one panel for each group."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    plt.rcParams["svg.fonttype"] = "none"
    plt.rcParams["svg.hashsalt"] = "scale"
    groups = list(dict.fromkeys(group for group, _, _ in found))
    figure, axes = plt.subplots(1, len(groups), figsize=(0.8 + 3.1 * len(groups), 3.2), squeeze=False)
    for axis, group in zip(axes[0], groups, strict=True):
        for _, label, points in (each for each in found if each[0] == group):
            axis.plot(*zip(*points, strict=True), marker="o", linewidth=1.2, label=label)
        axis.set(xscale="log", yscale="log", xlabel="samples", title=group if len(groups) > 1 else "")
        low, high = axis.get_ylim()
        axis.set_ylim(min(low, 10 ** np.floor(np.log10(low) + 0.5)), max(high, 10 ** np.ceil(np.log10(high) - 0.5)))
        for scale, (low, high) in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
            scale.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 25.0 * low else (1.0,)))
            scale.set_minor_locator(NullLocator())
            scale.set_major_formatter(FuncFormatter(short))
        axis.title.set_fontsize(9)
        axis.grid(which="major", alpha=0.3)
        axis.legend(fontsize=8, frameon=False)
    axes[0][0].set_ylabel(ylabel)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "img")
    out = parser.parse_args(arguments).out
    times, memory = curves()
    draw(times, "seconds", out / "scale-time.svg")
    draw(memory, "MiB", out / "scale-memory.svg")


if __name__ == "__main__":
    main()
