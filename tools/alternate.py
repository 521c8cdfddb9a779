"""Compare the speed of two versions of the package, alternated in one run.

    python tools/alternate.py OLD_SRC NEW_SRC [--repeats 15] [--only NAME,...]

OLD_SRC and NEW_SRC are the `src` folders of two checkouts; `make alternate OLD=path` compares another checkout with
this one. For each workload of tools/timed_fits.py each version has a process of its own, in a single thread, so that
memory that other workloads left does not count. Both make the data and fit once untimed; then both run it in turn, and
which goes first changes from pair to pair. A short workload is repeated inside a run until it takes a quarter of a
second.

Printed for each workload: seconds of one fit of the old version (smallest processor time), and three ratios new / old:
the median over pairs of processor time, the ratio of the smallest processor times, and the median over pairs of wall
time. Processor time decides, because other work on the machine disturbs it least. The exit status is 1 if the geometric
mean of the medians is above 1.05, if one of them is above 1.15, if a workload fails, or if the versions disagree: in
the objective (in kernel weights, where there is no objective) by more than 2 tol, relatively, or in a search's choice.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import geometric_mean, median

MEAN_BAR, WORST_BAR = 1.05, 1.15
# seconds that one timed run lasts at least
SHORTEST_RUN = 0.25
# glibc moves these limits by what a process freed before, which alone makes two equal processes differ by a quarter;
# arrays of up to 32 MiB are kept for reuse from the start (set the variables yourself to measure otherwise)
MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(256 << 20)}
THREAD_LIMITS = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA")


def ratios(pairs: list[tuple[dict, dict]]) -> tuple[float, float, float]:
    """Return new / old from pairs (old, new): median of processor time, of the smallest ones, median of wall time."""
    cpu, wall = (median(new[clock] / old[clock] for old, new in pairs) for clock in ("cpu", "wall"))
    old, new = zip(*pairs, strict=True)
    return cpu, min(each["cpu"] for each in new) / min(each["cpu"] for each in old), wall


def difference(old: list[float], new: list[float]) -> float:
    """Return the largest difference of two lists of values, relative to the largest; infinite if lengths differ."""
    if len(old) != len(new):
        return math.inf
    size = max(map(abs, old), default=1.0) or 1.0
    return max((abs(a - b) / size for a, b in zip(old, new, strict=True)), default=0.0)


def verdict(medians: dict[str, float]) -> list[str]:
    """Return a sentence for each bar that is missed."""
    mean = geometric_mean(medians.values())
    missed = [f"{name}: {ratio:.3f} is above {WORST_BAR}" for name, ratio in medians.items() if ratio > WORST_BAR]
    return missed + ([f"geometric mean {mean:.3f} is above {MEAN_BAR}"] if mean > MEAN_BAR else [])


class Version:
    """One version of the package in a process of its own."""

    def __init__(self, source: Path) -> None:
        source = source.resolve()
        if not (source / "multikernel" / "__init__.py").is_file():
            raise SystemExit(f"{source} must be a folder that holds the package multikernel.")
        environment = {**MEMORY, **os.environ, "PYTHONPATH": str(source), "VECLIB_MAXIMUM_THREADS": "1"}
        environment |= {f"{library}_NUM_THREADS": "1" for library in THREAD_LIMITS}
        command = [sys.executable, __file__, "--worker"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)
        loaded = Path(json.loads(self.process.stdout.readline())["file"])
        if not loaded.is_relative_to(source):
            raise SystemExit(f"{source} was asked for, but the process imported {loaded}.")

    def ask(self, request: str) -> dict:
        """Send a request and return the answer."""
        print(request, file=self.process.stdin, flush=True)
        reply = json.loads(self.process.stdout.readline() or '{"error": "the process ended"}')
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply

    def close(self) -> None:
        """End the process."""
        self.process.stdin.close()
        self.process.wait()


def compare(name: str, sources: tuple[Path, Path], repeats: int) -> tuple[float, str | None]:
    """Time one workload, print its line; return the median ratio and what the versions disagree on."""
    old, new = (Version(source) for source in sources)
    first, second = (version.ask(f"prepare {name}") for version in (old, new))
    loops = max(1, math.ceil(SHORTEST_RUN / max(old.ask("run 1")["cpu"], 1e-3)))
    new.ask("run 1")
    pairs = []
    for turn in range(repeats):
        answers = {version: version.ask(f"run {loops}") for version in ((old, new) if turn % 2 else (new, old))}
        pairs.append((answers[old], answers[new]))
    old.close()
    new.close()
    cpu, smallest, wall = ratios(pairs)
    apart = difference(first["values"], second["values"])
    seconds = min(answer["cpu"] for answer, _ in pairs) / loops
    flag = "  SLOWER" if cpu > WORST_BAR else ""
    print(f"{name:<28} {seconds:9.4f} {cpu:8.3f} {smallest:8.3f} {wall:8.3f}   apart {apart:.1e}{flag}", flush=True)
    if first["choice"] != second["choice"]:
        return cpu, f"{name}: the old version chooses {first['choice']}, the new one {second['choice']}"
    allowed = 2 * first["tol"]
    return cpu, None if apart <= allowed else f"{name}: the versions differ by {apart:.2e}, {allowed:g} allowed"


def clocks() -> tuple[float, float]:
    """Return processor seconds of this process and of those it waited for, and wall seconds."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used), time.perf_counter()


def agreed(result) -> dict:
    """Return what both versions must agree on: the values (objective, else kernel weights) and a search's choice."""
    model = getattr(result, "best_estimator_", result)
    values = getattr(model, "objective_", getattr(model, "weights_", [] if model is None else model))
    values = [float(values)] if isinstance(values, float) else [float(each) for each in values]
    return {"values": values, "choice": repr(getattr(result, "best_params_", None))}


def worker() -> None:
    """Answer requests from standard input, each by one line of JSON, until there are no more."""
    # what the library prints goes to standard error, so that standard output holds answers alone
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from timed_fits import WORKLOADS

    import multikernel

    print(json.dumps({"file": multikernel.__file__}), file=replies, flush=True)
    work = None
    for action, _, detail in (line.strip().partition(" ") for line in sys.stdin):
        try:
            if action == "prepare":
                work = None  # the data of the last workload are given back first
                work = WORKLOADS[detail]()
                reply = {"tol": work.tol, **agreed(work.call())}
            else:
                before = clocks()
                for _ in range(int(detail)):
                    work.call()
                reply = {key: now - then for key, now, then in zip(("cpu", "wall"), clocks(), before, strict=True)}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Compare two versions and return the exit status."""
    from timed_fits import WORKLOADS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="src folder of the old version")
    parser.add_argument("new", type=Path, help="src folder of the new version")
    parser.add_argument("--repeats", type=int, default=15, help="pairs of runs")
    parser.add_argument("--only", default="", help="names of workloads, or parts of names, separated by commas")
    options = parser.parse_args(arguments)
    names = [name for name in WORKLOADS if any(part.strip() in name for part in options.only.split(","))]
    if not names:
        parser.error(f"--only must be a part of one of {', '.join(WORKLOADS)}; got {options.only}.")
    medians, faults = {}, []
    print(f"{'workload':<28} {'old, s':>9} {'new/old':>8} {'smallest':>8} {'wall':>8}")
    for name in names:
        try:
            medians[name], disagreement = compare(name, (options.old, options.new), options.repeats)
            faults += [disagreement] if disagreement else []
        except RuntimeError as error:
            faults.append(f"{name}: {error}")
    if medians:
        print(f"geometric mean of {len(medians)} workloads: {geometric_mean(medians.values()):.3f}")
        faults += verdict(medians)
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(worker() if sys.argv[1:] == ["--worker"] else main())
