"""Writes docs/reliability.md from the lines of a run."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from drill import Kind

OPENING = """# What was tried to break it

`make drill` attacks the library for as long as it is given time: `make drill BUDGET=30m SEED=1` draws cases from a seed
and stops when the time is up, without `BUDGET` it runs all cases, and `RESUME=FILE` goes on with the file of results of
an earlier run; `JOBS=16` divides the cases among as many processes. A case depends on the seed, its kind and its number
alone: `python -m tests.drill --only KIND --seed S --case N` shows it again. The kinds live in `tests/drill`, a slice of
each runs in the test suite, and this page is written by the run that it describes.
"""


# the section that tests/exact.py writes, which a new run leaves as it is
EXACT = "## The certificate in exact arithmetic"


def write_section(path: Path, text: str) -> None:
    """Put the tables of tests/exact.py at the end of the page, in place of earlier ones."""
    before = path.read_text(encoding="utf-8").partition(EXACT)[0].rstrip() if path.exists() else OPENING.rstrip()
    path.write_text(f"{before}\n\n{EXACT}\n\n{text}", encoding="utf-8")


def write_page(path: Path, kinds: Iterable[Kind], rows: list[dict], skipped: dict[str, str]) -> None:
    """Write counts, what each kind does, and all findings."""
    seeds = ", ".join(map(str, sorted({row["seed"] for row in rows})))
    minutes = sum(row["seconds"] for row in rows) / 60
    found = [row for row in rows if row["finding"]]
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn", "numba"))
    lines = [
        OPENING,
        f"## The last run\n\nSeed {seeds}: {len(rows):,} cases in {minutes:.0f} minutes on one core, {len(found)} "
        f"findings. Python {platform.python_version()} on {platform.system()}, {packages}.\n",
        "| kind | cases | all cases | findings |",
        "| --- | --- | --- | --- |",
    ]
    kinds = list(kinds)
    counts, wrong = (Counter(row["kind"] for row in each) for each in (rows, found))
    lines += [f"| {k.name} | {counts[k.name]:,} | {k.full:,} | {wrong[k.name]} |" for k in kinds]
    lines.append("\n## What a case is\n")
    for kind in kinds:
        labels = Counter(row["label"] for row in rows if row["kind"] == kind.name)
        most = ", ".join(f"{label} {count:,}" for label, count in labels.most_common(12))
        others = f", and {len(labels) - 12} others" if len(labels) > 12 else ""
        lines.append(f"**{kind.name}.** {kind.what}")
        if kind.name in skipped:
            lines.append(f"Left out of this run: {skipped[kind.name]}")
        lines.append(f"Tried: {most}{others}.\n" if labels else "")
    lines.append("## Findings\n")
    lines += [
        f"- {row['kind']}, seed {row['seed']}, case {row['case']} ({row['label']}): "
        f"{' '.join(row['finding'].split())[:300]}"
        for row in found
    ]
    lines += [] if found else ["None."]
    kept = path.read_text(encoding="utf-8").partition(EXACT) if path.exists() else ("", "", "")
    path.write_text("\n".join(lines) + "\n" + (f"\n{EXACT}{kept[2]}" if kept[1] else ""), encoding="utf-8")
