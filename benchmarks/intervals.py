"""Whether the intervals of `view_importance` hold the truth, and whether `permutation_test` keeps its level.

    python benchmarks/intervals.py FOLDER [--shard I/K] [--quick]      measure, one line of JSON for each problem
    python benchmarks/intervals.py FOLDER --report                     print the tables of all shards in FOLDER

Intervals: 200 planted problems of four views. "main" carries most of the signal, "weak" some, "copy" is a noisy copy of
"main", and "noise" says nothing. Sizes, dimensions, strengths, noise, task and norm differ between problems. The truth
of a view is the mean drop of the score when it is left out, over 50 training sets of the same size, on 20,000 fresh
samples; it is compared with the 90 % interval from one training set.

Level: 400 problems whose targets have nothing to do with the samples; 5 % of their p-values should be at most 0.05.

The method of the intervals was chosen on other problems of the same kind: these have seeds of their own.

Shards share the problems out: shard I of K takes problems I, I + K, ... and has a file of its own. What a file already
has is not computed again, so that a run that was stopped goes on. One process takes one core.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from multikernel import MKLClassifier, MKLRegressor
from multikernel.inspection import permutation_test, view_importance
from multikernel.inspection.trials import Trial, make_job, run_trial
from multikernel.kernels import RBF

VIEWS = ("main", "weak", "copy", "noise")
# problems, training sets and fresh samples of the truth, bootstraps, problems without signal, permutations
WHOLE = {"planted": 200, "sets": 50, "fresh": 20_000, "bootstraps": 50, "null": 400, "permutations": 99}
QUICK = {"planted": 2, "sets": 2, "fresh": 200, "bootstraps": 4, "null": 2, "permutations": 9}

Draw = Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]


def planted(number: int) -> tuple[Draw, Any, int]:
    """Return how samples of a planted problem are drawn, its model, and the number of training samples."""
    rng = np.random.default_rng([5, number])
    classes = number % 2 == 0
    n, norm = (80, 120, 200)[number // 2 % 3], (1.0, 2.0)[number // 6 % 2]
    strong, weak, blur = rng.uniform(0.5, 2.0), rng.uniform(0.2, 1.0), rng.uniform(0.3, 1.0)
    noise, bend = rng.uniform(0.3, 1.0), rng.uniform(0.0, 1.0)
    sizes = rng.integers(1, 5, size=len(VIEWS))

    def draw(m: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        views = [rng.normal(size=(m, d)) for d in sizes]
        z = views[0][:, 0]
        views[2][:, 0] = z + blur * views[2][:, 0]
        f = strong * ((1.0 - bend) * z + bend * np.sin(2.0 * z)) + weak * views[1][:, 0] + noise * rng.normal(size=m)
        return np.hstack(views), np.where(f > 0, 1, 0) if classes else f

    edges = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    entries = [(name, RBF(), slice(edges[v], edges[v + 1])) for v, name in enumerate(VIEWS)]
    kind = MKLClassifier if classes else MKLRegressor
    return draw, kind(entries, norm=norm, n_jobs=1), n


def true_drops(draw: Draw, model: Any, n: int, sets: int, fresh: int, rng: np.random.Generator) -> np.ndarray:
    """Return the mean drop of each view over training sets, on fresh samples."""
    X_test, y_test = draw(fresh, rng)
    drops = []
    for _ in range(sets):
        X, y = draw(n, rng)
        job, _ = make_job("intervals", model, np.vstack([X, X_test]), np.concatenate([y, y_test]), None)
        trial = Trial(np.arange(n), [np.arange(n, n + fresh)])
        scores = run_trial(job, [frozenset([view]) for view in VIEWS], [], trial).scores[0]
        drops.append(scores[0] - scores[1:])
    return np.mean(drops, axis=0)


def interval(number: int, size: dict[str, int]) -> dict[str, Any]:
    """Return the intervals and the true drops of one planted problem."""
    draw, model, n = planted(number)
    truth = true_drops(draw, model, n, size["sets"], size["fresh"], np.random.default_rng([6, number]))
    X, y = draw(n, np.random.default_rng([7, number]))
    found = view_importance(model, X, y, n_bootstraps=size["bootstraps"], random_state=number)
    rows = {row["view"]: row for row in found.rows()}
    columns = {name: [rows[view][name] for view in VIEWS] for name in ("drop", "low", "high")}
    return {"score": found.scorer, "n": n, "norm": model.norm, "truth": truth.tolist(), **columns}


def level(number: int, size: dict[str, int]) -> dict[str, Any]:
    """Return the p-value of one problem without signal."""
    rng = np.random.default_rng([8, number])
    scoring, n = ("accuracy", "roc_auc", "r2")[number % 3], (60, 100, 150)[number // 3 % 3]
    norm, share = (1.0, 2.0)[number // 9 % 2], (0.5, 0.3)[number // 18 % 2]
    X = rng.normal(size=(n, 4))
    entries = [("left", RBF(), slice(0, 2)), ("right", RBF(), slice(2, 4))]
    if scoring == "r2":
        model, y = MKLRegressor(entries, norm=norm, n_jobs=1), rng.normal(size=n)
    else:
        model, y = MKLClassifier(entries, norm=norm, n_jobs=1), (rng.random(n) < share).astype(int)
    found = permutation_test(
        model, X, y, scoring=scoring, n_permutations=size["permutations"], random_state=rng.integers(2**31)
    )
    return {"score": scoring, "n": n, "norm": norm, "p": found.p_value}


TASKS: dict[str, Callable[[int, dict[str, int]], dict[str, Any]]] = {"planted": interval, "null": level}


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of all shards; a line that was cut off is left out."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue


def measure(folder: Path, shard: int, shards: int, size: dict[str, int]) -> None:
    """Compute what the files of the folder lack of one shard."""
    folder.mkdir(parents=True, exist_ok=True)
    done = {(row["task"], row["number"]) for row in read(folder)}
    with (folder / f"{shard}-of-{shards}.jsonl").open("a", encoding="utf-8") as file:
        for task, run in TASKS.items():
            for number in range(shard - 1, size[task], shards):
                if (task, number) in done:
                    continue
                began = time.process_time()
                row = {"task": task, "number": number, **run(number, size)}
                row["seconds"] = round(time.process_time() - began, 2)
                file.write(f"\n{json.dumps(row)}\n")
                file.flush()


def _line(name: str, hits: np.ndarray) -> str:
    share = hits.mean()
    error = np.sqrt(share * (1.0 - share) / len(hits))
    return f"  {name:<24} {100 * share:5.1f} %  of {len(hits):4d}   standard error {100 * error:.1f}"


def report(folder: Path) -> dict[str, float]:
    """Print the share of intervals that hold the truth, and of small p-values; return both."""
    rows = {(row["task"], row["number"]): row for row in read(folder)}.values()
    planted_rows, null_rows = ([row for row in rows if row["task"] == task] for task in TASKS)
    found = {}
    if planted_rows:
        low, high, truth = (np.array([row[name] for row in planted_rows]) for name in ("low", "high", "truth"))
        held = (low <= truth) & (truth <= high)
        found["coverage"] = float(held.mean())
        print(f"90 % intervals of {len(planted_rows)} planted problems hold the truth:")
        print(_line("all views", held.ravel()))
        for v, view in enumerate(VIEWS):
            print(_line(view, held[:, v]))
        for name in ("score", "n", "norm"):
            values = np.array([row[name] for row in planted_rows])
            for value in np.unique(values):
                print(_line(f"{name} {value}", held[values == value].ravel()))
        drop = np.array([row["drop"] for row in planted_rows])
        print(f"  mean error of the drop {np.mean(drop - truth):+.4f}, mean width {np.mean(high - low):.4f}")
    if null_rows:
        small = np.array([row["p"] <= 0.05 for row in null_rows])
        found["level"] = float(small.mean())
        print(f"p <= 0.05 in {len(null_rows)} problems without signal:")
        print(_line("all", small))
        for name in ("score", "n", "norm"):
            values = np.array([row[name] for row in null_rows])
            for value in np.unique(values):
                print(_line(f"{name} {value}", small[values == value]))
    print(f"CPU time: {sum(row['seconds'] for row in rows) / 60:.1f} minutes")
    return found


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Measure a shard, or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shard", default="1/1", metavar="I/K")
    parser.add_argument("--quick", action="store_true", help="a few tiny problems, to see that everything runs")
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args(arguments)
    if not given.report:
        warnings.simplefilter("ignore")
        shard, shards = map(int, given.shard.split("/"))
        measure(given.folder, shard, shards, QUICK if given.quick else WHOLE)
    return report(given.folder)


if __name__ == "__main__":
    main()
