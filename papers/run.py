"""The tables and figures of five papers on multiple kernel learning, ours beside theirs.

    python papers/run.py list
    python papers/run.py run 2005-sonnenburg/figure1 [--small] [--jobs 2] [--output FOLDER]
    python papers/run.py run all [--long]
    python papers/run.py show all
    python papers/run.py page

run    computes what is missing, then writes NAME.csv (the verdicts) and NAME-rows.csv beside the script, and the
       picture below docs/papers; a run that was stopped goes on where it was. A name may be a folder, or 'all'.
       --small takes small sizes, for a test, and writes below build/papers-small unless --output says where;
       --long includes the million samples.
show   writes verdicts and pictures anew from the rows that are there, and computes nothing.
page   writes docs/papers.md from the tables that are there.

Real data are read from the folder named by MULTIKERNEL_DATA. Every process uses one thread.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from pathlib import Path

# one thread a process: before NumPy is imported
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

sys.path.insert(0, str(Path(__file__).parent))

import experiments  # noqa: E402

PAGE = experiments.PAPERS.parent / "docs" / "papers.md"
TITLES = {
    "2005-sonnenburg": "Sonnenburg, Raetsch, Schaefer 2005: A general and efficient multiple kernel learning algorithm",
    "2007-zien-ong": "Zien, Ong 2007: Multiclass multiple kernel learning",
    "2008-kloft": "Kloft, Brefeld, Laskov, Sonnenburg 2008: Non-sparse multiple kernel learning",
    "2009-ying": "Ying, Campbell, Damoulas, Girolami 2009: Class prediction from disparate biological data sources",
    "2013-cortes": "Cortes, Mohri, Rostamizadeh 2013: Multi-class classification with maximum margin multiple kernel",
}
HEADER = """# The papers, reproduced

Written by `python papers/run.py page` from the tables beside the scripts: a number that is not there was not measured.
`make papers` runs everything but the fit of a million samples, `make papers-full` that too;
`python papers/run.py run 2005-sonnenburg/figure1` runs one script. *Error* is the standard error of ours.

The column *paper* gives the statement and, in brackets, the test we applied. Verdicts on statements: **claim
holds**, **claim fails**; *above 0* and *below 0* are by more than two standard errors, *not below 0* by no more than
one. On numbers, measured on the paper's data: **reproduced** (within two standard errors of ours, or within the
spread that the paper prints), **better**, **differs**. On numbers measured on other data, or on columns that we
chose, which the line names: **near, on other data** (by the same rule) and **differs**: these say little about the
paper's number. **only ours** where the paper prints and claims nothing, or where our result has to be so by
construction. What fails or differs has its reason, as far as known. Two theorems are tests of the suite: all
formulations of Zien & Ong's Figure 1 have one optimum, and the weights of Kloft et al.'s Theorem 1 have norm one.
"""
KINDS = (
    experiments.HOLDS, experiments.FAILS, experiments.REPRODUCED, experiments.BETTER, experiments.NEAR,
    experiments.DIFFERS, experiments.ONLY_OURS,
)  # fmt: skip


def table_of(name: str) -> Path:
    """Return the path of the verdicts of a script."""
    return experiments.PAPERS / f"{name}.csv"


def read_verdicts(name: str) -> list[dict[str, str]]:
    """Return the verdicts of a script, none where it was not run."""
    if not table_of(name).exists():
        return []
    with open(table_of(name), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def page() -> str:
    """Return the page of all papers."""
    parts = [HEADER, overview()]
    for folder, title in TITLES.items():
        parts.append(f"## {title}\n")
        for name in (each for each in experiments.names() if each.startswith(folder)):
            script, found = experiments.load_script(name), read_verdicts(name)
            parts.append(f"### {script.title}\n\n`papers/{name}.py`. {' '.join(script.compared.split())}\n")
            if not found:
                parts.append("*Not run in full yet.*\n")
                continue
            parts.append("| | paper | ours | error | verdict |\n| --- | --- | --- | --- | --- |")
            for row in found:
                why = f": {row['why']}" if row["why"] else ""
                cells = (row["what"], row["paper"], row["ours"], row["error"], f"**{row['verdict']}**{why}")
                parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
            parts.append(f"\n![{script.title}](papers/{name.replace('/', '-')}.png)\n")
    return "\n".join(parts).rstrip() + "\n"


def overview() -> str:
    """Return one line for each script with the number of its verdicts."""
    lines = [f"| script | table or figure | {' | '.join(KINDS)} |", "| --- " * (2 + len(KINDS)) + "|"]
    for name in experiments.names():
        kinds = [row["verdict"] for row in read_verdicts(name)]
        counts = [str(kinds.count(kind) or "") for kind in KINDS] if kinds else ["not run"] + [""] * (len(KINDS) - 1)
        lines.append(f"| {name} | {experiments.load_script(name).title} | {' | '.join(counts)} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """List the scripts, run some of them, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the scripts, and whether their tables are there")
    commands.add_parser("page", help="write docs/papers.md")
    command = commands.add_parser("run", help="run a script, a folder or all")
    command.add_argument("name", help="such as 2005-sonnenburg/figure1, 2005-sonnenburg or all")
    command.add_argument("--small", action="store_true", help="small sizes, for a test")
    command.add_argument("--long", action="store_true", help="with 'all' or a folder: the long ones too")
    command.add_argument("--jobs", type=int, default=1, help="processes")
    command.add_argument("--output", type=Path, help="folder of tables and pictures")
    command = commands.add_parser("show", help="verdicts and pictures of the rows that are there")
    command.add_argument("name", help="such as 2005-sonnenburg/figure1, 2005-sonnenburg or all")
    chosen = parser.parse_args(arguments)
    if chosen.command == "list":
        for name in experiments.names():
            state = "done" if table_of(name).exists() else "not run"
            long = " (long)" if getattr(experiments.load_script(name), "long", False) else ""
            print(f"{name:<28} {state:<8} {experiments.load_script(name).title}{long}")
        return
    if chosen.command == "run":
        output = chosen.output or (experiments.SMALL if chosen.small else None)
        for name in names_of(parser, chosen.name):
            if chosen.name == name or chosen.long or not getattr(experiments.load_script(name), "long", False):
                experiments.run(name, chosen.small, output, chosen.jobs)
        if output is not None:
            print(f"Tables and pictures are below {output}")
            return
    if chosen.command == "show":
        for name in names_of(parser, chosen.name):
            experiments.show(name)
    PAGE.write_text(page(), encoding="utf-8")


def names_of(parser: argparse.ArgumentParser, chosen: str) -> list[str]:
    """Return the scripts that a name, a folder or 'all' stands for."""
    known = experiments.names()
    names = [each for each in known if chosen in ("all", each, each.split("/")[0])]
    if not names:
        parser.error(f"there is no script {chosen!r}. There are: {', '.join(known)}.")
    return names


if __name__ == "__main__":
    main()
