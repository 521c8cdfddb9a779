"""The runner: cases in the order of their numbers, one line of JSON for each, until the time is up.

Case i of a kind depends on (seed, kind, i) alone, so a finding is shown again by ``--only KIND --seed S --case I``,
and ``--jobs N`` gives every Nth case to one of N processes. Files of results, also of other machines and seeds, make
one page by ``--merge FILE ... --page PAGE``.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import signal
import subprocess
import sys
import time
import warnings
import zlib
from pathlib import Path

import numpy as np

from drill import Kind, load_kinds
from drill.fits import where
from drill.page import write_page

ROOT = Path(__file__).resolve().parents[2]
UNITS = {"s": 1, "m": 60, "h": 3600}
# seconds after which a case counts as hanging: every case is meant to take less than a few seconds
LIMIT = 60


class TookTooLong(BaseException):
    """Raised in a case by the alarm; no handler of ordinary errors catches it."""


def seconds(text: str) -> float:
    """Return the seconds of a text such as '90', '30m' or '2h'."""
    unit = UNITS.get(text[-1:], 0)
    return float(text[:-1]) * unit if unit else float(text)


def generator(seed: int, kind: str, number: int) -> np.random.Generator:
    """Return the random numbers of one case."""
    return np.random.default_rng([seed, zlib.crc32(kind.encode()), number])


def run_case(kind: Kind, seed: int, number: int) -> dict:
    """Run one case and return its line of the results."""
    began, label = time.perf_counter(), "failed"

    def ring(*_):
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(LIMIT)
    # a compiled loop does not hear the alarm: then the process ends, and a resumed run records it
    faulthandler.dump_traceback_later(2 * LIMIT, exit=True, file=sys.__stderr__)
    try:
        label, finding = kind.case(generator(seed, kind.name, number))
    except TookTooLong:
        finding = f"took more than {LIMIT} s, at {where()}"
    except Exception as error:
        finding = f"{type(error).__name__}: {error} at {where()}"
    finally:
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)
    spent = round(time.perf_counter() - began, 3)
    return {"kind": kind.name, "seed": seed, "case": number, "label": label, "finding": finding, "seconds": spent}


class Results:
    """The file of results: what it holds already is kept, and numbers go on where they ended."""

    def __init__(self, path: Path, resume: bool) -> None:
        self.path, self.running = path, path.with_name(path.name + ".running")
        path.parent.mkdir(parents=True, exist_ok=True)
        if not resume:
            path.unlink(missing_ok=True)
            self.running.unlink(missing_ok=True)
        self.rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        if self.running.exists():
            died = json.loads(self.running.read_text())
            self.add({**died, "label": "failed", "finding": "the process died in this case", "seconds": 0.0})

    def next(self, kind: Kind, part: tuple[int, int] = (0, 1)) -> int:
        """Return the first case of a part that was not run yet; a kind of one process belongs to the first part."""
        j, parts = part
        if kind.alone and j > 0:
            return kind.full
        done = max((row["case"] for row in self.rows if row["kind"] == kind.name), default=None)
        return j if done is None else done + (1 if kind.alone else parts)

    def begin(self, kind: str, seed: int, number: int) -> None:
        """Note which case runs, for the case in which the process does not survive it."""
        self.running.write_text(json.dumps({"kind": kind, "seed": seed, "case": number}))

    def add(self, row: dict) -> None:
        self.rows.append(row)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self.running.unlink(missing_ok=True)


def drill(
    kinds: list[Kind], seed: int, budget: float, results: Results, part: tuple[int, int] = (0, 1)
) -> dict[str, str]:
    """Run cases until the budget in seconds, or all cases, are used up; return the kinds left out, with reasons.

    ``part`` is (j, N) for the cases j, j + N, j + 2 N, ...
    """
    ends, skipped = time.monotonic() + budget, {}
    for at, kind in enumerate(kinds):
        if reason := kind.absent():
            skipped[kind.name] = reason
            print(f"{kind.name:<12} skipped: {reason}", flush=True)
            continue
        # what a kind leaves over goes to the kinds after it
        left = sum(other.share for other in kinds[at:])
        until = time.monotonic() + (ends - time.monotonic()) * kind.share / left
        number, found, count = results.next(kind, part), 0, 0
        while number < kind.full and time.monotonic() < until:
            results.begin(kind.name, seed, number)
            row = run_case(kind, seed, number)
            results.add(row)
            if row["finding"]:
                found += 1
                print(f"{kind.name:<12} case {number}: {row['label']}: {row['finding']}", flush=True)
            number, count = number + (1 if kind.alone else part[1]), count + 1
        print(f"{kind.name:<12} {count} of {kind.full} cases, {found} findings in this run", flush=True)
    return skipped


def supervise(options: argparse.Namespace, path: Path) -> int:
    """Run the cases in another process; where one of them ends that process, go on with the next case in a new one."""
    if options.resume is None:
        Results(path, False)
    ends, only = time.monotonic() + options.budget, options.only
    while True:
        arguments = ["--here", "--resume", str(path), "--seed", str(options.seed), "--only", *only]
        arguments += ["--page", str(options.page)] if options.page else []
        arguments += ["--part", *map(str, options.part)]
        arguments += ["--budget", str(max(ends - time.monotonic(), 0))] if np.isfinite(ends) else []
        code = subprocess.run([sys.executable, "-m", "tests.drill", *arguments, "--check"], cwd=ROOT).returncode
        died = Results(path, True).rows[-1:] if path.with_name(path.name + ".running").exists() else []
        if not died:
            return code if options.check or code > 1 else 0
        print(f"{died[0]['kind']:<12} case {died[0]['case']}: {died[0]['finding']} ({code})", flush=True)
        only = only[only.index(died[0]["kind"]) :]


def spread(options: argparse.Namespace) -> list[Path]:
    """Run parts of the cases at the same time in other processes; return their files of results."""
    folder, jobs = ROOT / "build", range(options.jobs)
    paths = [folder / f"drill-{options.seed}-{j}-of-{options.jobs}.jsonl" for j in jobs]
    budget = ["--budget", str(options.budget)] if np.isfinite(options.budget) else []
    running = []
    for j, path in zip(jobs, paths, strict=True):
        if not options.go_on:
            Results(path, False)
        own = ["--resume", str(path), "--seed", str(options.seed), "--part", str(j), str(options.jobs), *budget]
        command = [sys.executable, "-m", "tests.drill", "--only", *options.only, *own]
        running.append(subprocess.Popen(command, cwd=ROOT))
    for each in running:
        each.wait()
    return paths


def merge(options: argparse.Namespace, paths: list[Path], kinds: dict[str, Kind]) -> int:
    """Tell the findings of several files of results, and write the page about all of them."""
    rows = [row for path in paths if path.exists() for row in Results(path, True).rows]
    findings = [row for row in rows if row["finding"]]
    for row in findings:
        print(f"{row['kind']:<12} seed {row['seed']} case {row['case']}: {row['label']}: {row['finding']}")
    seeds = sorted({row["seed"] for row in rows})
    print(f"\n{len(rows)} cases of seeds {seeds} in {len(paths)} files, {len(findings)} findings")
    ran = {row["kind"] for row in rows}
    absent = {name: reason for name, kind in kinds.items() if name not in ran and (reason := kind.absent())}
    if options.page:
        write_page(options.page, kinds.values(), rows, absent)
    return int(options.check and bool(findings))


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; the exit status is 1 where --check is given and anything was found."""
    kinds = load_kinds()
    parser = argparse.ArgumentParser(prog="python -m tests.drill", description=__doc__)
    parser.add_argument(
        "--budget", type=seconds, default=np.inf, help="time, such as 90s, 30m or 2h; default: all cases"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", type=Path, help="a file of results to go on with; its seed is used")
    parser.add_argument("--only", nargs="+", choices=list(kinds), default=list(kinds), metavar="KIND")
    parser.add_argument("--case", type=int, help="show this case of --only KIND again, with its traceback")
    parser.add_argument("--jobs", type=int, default=1, help="processes among which the cases are divided; 1 by default")
    parser.add_argument(
        "--go-on", action="store_true", help="with --jobs: go on with what the same call has run before"
    )
    parser.add_argument(
        "--part", nargs=2, type=int, default=(0, 1), metavar=("J", "N"), help="every Nth case from J on"
    )
    parser.add_argument("--merge", nargs="+", type=Path, metavar="FILE", help="run nothing: these results in one page")
    parser.add_argument("--page", type=Path, help="write the page about the results there")
    parser.add_argument("--here", action="store_true", help="in this process: a case that ends it ends the run")
    parser.add_argument("--check", action="store_true", help="exit with status 1 where anything was found")
    options = parser.parse_args(arguments)
    # those that matter are looked at by the cases
    warnings.simplefilter("ignore")
    chosen = [kinds[name] for name in options.only]
    if options.case is not None:
        print(*chosen[0].case(generator(options.seed, chosen[0].name, options.case)), sep=": ")
        return 0
    if options.merge or options.jobs > 1:
        return merge(options, options.merge or spread(options), kinds)
    path = options.resume or ROOT / "build" / f"drill-{options.seed}.jsonl"
    if not options.here:
        return supervise(options, path)
    results = Results(path, True)
    seed = results.rows[0]["seed"] if results.rows else options.seed
    skipped = drill(chosen, seed, options.budget, results, tuple(options.part))
    findings = [row for row in results.rows if row["finding"]]
    print(f"\n{len(results.rows)} cases of seed {seed}, {len(findings)} findings; lines in {results.path}")
    if options.page:
        write_page(options.page, kinds.values(), results.rows, skipped)
    return int(options.check and bool(findings))
