"""Accuracy of the default searches against what a user has: a tuned RBF machine, a random forest, boosted trees, ridge.

    python benchmarks/accuracy.py                       run what is missing, print the table
    python benchmarks/accuracy.py --shard 3/16          every 16th job, into a file of its own
    python benchmarks/accuracy.py --report              only the table, from all files of the folder
    python benchmarks/accuracy.py --report --write      and into docs/accuracy.md
    python benchmarks/accuracy.py --quick               small sets that need no download, two splits

The sets are the tabular and multi-view ones of MULTIKERNEL_DATA, and five of regression. Each is split ten times into
at most 1,000 training and half as many test samples, in the shares of the classes; classes of fewer than eight samples
are left out. A job is one contestant on one split; its result is a line of JSON in the folder --out, and a job that has
one is not run again. Everything that is learned of the samples, scales and words included, is learned on the training
samples. Missing values are the mean of their column for those that do not take them. Jobs run on one thread.

The standard error of a mean difference is that of Nadeau and Bengio (2003), for training sets that overlap:
sqrt((1/J + n_test/n_train) var), J the number of splits.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import (
    load_diabetes,
    load_iris,
    load_wine,
    make_friedman1,
    make_friedman2,
    make_friedman3,
)
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from tasks import wave_samples
from threadpoolctl import threadpool_limits

SPLITS, LARGEST, FEWEST = 10, 1000, 8
TABULAR = (
    "banana", "ecoli", "german", "glass", "heart_statlog", "ionosphere", "liver_bupa", "magic", "optdigits",
    "pendigits", "pima", "satimage", "segment", "sonar", "spambase", "twonorm", "usps_pca50", "waveform", "wdbc",
    "wine", "wpbc", "yeast",
)  # fmt: skip
MULTIVIEW = (
    "bbcsport", "breast_tcga", "leaves100", "mfeat", "msrcv1", "nutrimouse", "protein_fold", "scene15", "threesources",
)  # fmt: skip
REGRESSION = ("diabetes", "friedman1", "friedman2", "friedman3", "waves")
QUICK = ("iris", "wine views", "waves")
CLASSIFIERS = ("MKL", "SVC", "forest", "boosting")
REGRESSORS = ("MKL", "SVR", "ridge", "forest", "boosting")
# our search with no argument at all, on standardised columns as the machines of scikit-learn; for sets of one view
PLAIN = "MKL()"
DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "accuracy.md"


# ---- sets


@lru_cache(maxsize=2)
def samples(name: str):
    """Return the views of a set, one for a tabular one, and its targets."""
    rng = np.random.default_rng(0)
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
    elif name.startswith("friedman"):
        make = {"friedman1": make_friedman1, "friedman2": make_friedman2, "friedman3": make_friedman3}[name]
        X, y = make(n_samples=1000, random_state=0)
        # a tenth of the deviation
        y = y + 0.1 * y.std() * rng.standard_normal(len(y))
    elif name == "waves":
        X, y = wave_samples(1000)
    elif name == "iris":
        X, y = load_iris(return_X_y=True)
    elif name == "wine views":
        X, y = load_wine(return_X_y=True)
        return [X[:, :7], X[:, 7:]], y
    else:
        from multikernel.datasets import load

        data = load(name)
        views = [np.asarray(part, float) for part in (data.data if isinstance(data.data, list) else [data.data])]
        y = np.unique(data.target, return_inverse=True)[1]
        kept = np.flatnonzero(np.bincount(y)[y] >= FEWEST)
        return [view[kept] for view in views], y[kept]
    return [X], y


def split(y: np.ndarray, classes: bool, number: int):
    """Return the training and the test samples of one split."""
    train = min(LARGEST, int(0.7 * len(y)))
    sizes = {"train_size": train, "test_size": min(len(y) - train, train // 2)}
    kind = StratifiedShuffleSplit if classes else ShuffleSplit
    return next(kind(1, random_state=number, **sizes).split(np.zeros(len(y)), y))


# ---- contestants


def contestant(who: str, classes: bool, columns: int):
    """Return an estimator; all but ours take the views side by side."""
    from multikernel import MKLClassifierCV, MKLRegressorCV

    if who == "MKL":
        return (MKLClassifierCV if classes else MKLRegressorCV)("auto", n_jobs=1)
    if who == PLAIN:
        return make_pipeline(SimpleImputer(), StandardScaler(), MKLClassifierCV() if classes else MKLRegressorCV())
    if who == "forest":
        return make_pipeline(
            SimpleImputer(), (RandomForestClassifier if classes else RandomForestRegressor)(random_state=0)
        )
    if who == "boosting":
        return (HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor)(random_state=0)
    if who == "ridge":
        return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15)))
    gammas = np.array([0.01, 0.1, 1.0, 10.0]) / columns
    grid = {"C": [0.1, 1.0, 10.0, 100.0, 1000.0], "gamma": gammas}
    if classes:
        grid = {f"svc__{name}": values for name, values in grid.items()}
        return GridSearchCV(make_pipeline(SimpleImputer(), StandardScaler(), SVC()), grid, cv=5)
    grid = {f"svr__{name}": values for name, values in {**grid, "epsilon": [0.01, 0.1]}.items()}
    search = GridSearchCV(make_pipeline(StandardScaler(), SVR()), grid, cv=5)
    return TransformedTargetRegressor(search, transformer=StandardScaler())


def run(name: str, number: int, who: str) -> dict:
    """Return the result of a job."""
    classes = name not in REGRESSION
    views, y = samples(name)
    train, test = split(y, classes, number)
    X = np.hstack(views)
    model, given = contestant(who, classes, X.shape[1]), [X[rows] for rows in (train, test)]
    if who == "MKL" and len(views) > 1:
        given = [{f"view{j}": view[rows] for j, view in enumerate(views)} for rows in (train, test)]
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(given[0], y[train])
        score = model.score(given[1], y[test])
    row = {
        "set": name, "split": number, "who": who, "score": score, "cpu": round(time.process_time() - began, 2),
        "train": len(train), "test": len(test), "classes": len(np.unique(y)) if classes else 0, "views": len(views),
    }  # fmt: skip
    if who == "MKL":
        gain = model.mix_gain_
        row |= {"choice": {key: str(value) for key, value in model.best_params_.items()}}
        row |= {} if gain is None else {"gain": gain.gain, "gain_error": gain.standard_error}
    return row


def jobs_of(names, splits: int) -> list[tuple[str, int, str]]:
    """Return all jobs, splits outside, so that a part of them is a table of all sets with fewer splits."""
    return [
        (name, number, who)
        for number in range(splits)
        for name in names
        for who in (REGRESSORS if name in REGRESSION else CLASSIFIERS)
        + (() if name in (*MULTIVIEW, QUICK[1]) else (PLAIN,))
    ]


def read(folder: Path) -> list[dict]:
    """Return all results of a folder; a line that was cut off is left out."""
    rows = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            rows[row["set"], row["split"], row["who"]] = row
    return list(rows.values())


# ---- the table


def compared(rows: list[dict]) -> dict[str, dict[str, np.ndarray]]:
    """Return for each set the scores of each contestant, on the splits that all have."""
    found: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        found[row["set"]][row["who"]][row["split"]] = row["score"]
    table = {}
    for name, by_who in found.items():
        wanted = (*(REGRESSORS if name in REGRESSION else CLASSIFIERS), *((PLAIN,) if PLAIN in by_who else ()))
        common = set.intersection(*(set(by_who.get(who, ())) for who in wanted))
        if common:
            table[name] = {who: np.array([by_who[who][s] for s in sorted(common)]) for who in wanted}
    return table


def difference(ours: np.ndarray, theirs: np.ndarray, ratio: float) -> tuple[float, float]:
    """Return the mean difference and its corrected standard error, ``ratio`` the test samples for a training sample.

    >>> difference(np.array([0.9, 0.8]), np.array([0.8, 0.8]), 0.5)
    (0.05, 0.07071067811865475)
    """
    d = ours - theirs
    error = float(np.sqrt((1.0 / len(d) + ratio) * d.var(ddof=1))) if len(d) > 1 else float("nan")
    return round(float(d.mean()), 12), error


def verdict(mean: float, error: float) -> str:
    """Return what a difference says at two standard errors."""
    if not abs(mean) > 2.0 * error:
        return "="
    return "better" if mean > 0 else "worse"


def table(rows: list[dict], names, rivals: tuple[str, ...], title: str, unit: float) -> list[str]:
    """Return a table of some sets and the sentences below it."""
    found, about = compared(rows), {row["set"]: row for row in rows}
    names = [name for name in names if name in found]
    if not names:
        return []
    rivals = tuple(who for who in rivals if all(who in found[name] for name in names))
    contestants = ("MKL", *rivals)
    lines = [f"## {title}", ""]
    lines.append(f"| set | n | classes | views | {' | '.join(contestants)} | MKL minus {rivals[0]} | |")
    lines.append("| --- " * (6 + len(contestants)) + "|")
    ranks, means, worse, plain = [], [], [], []
    for name in names:
        scores, row = found[name], about[name]
        mean, error = difference(scores["MKL"], scores[rivals[0]], row["test"] / row["train"])
        means.append(mean)
        judged = verdict(mean, error)
        worse += [name] if judged == "worse" else []
        if PLAIN in rivals:
            plain.append((*difference(scores[PLAIN], scores[rivals[0]], row["test"] / row["train"]), name))
        averages = [scores[who].mean() for who in contestants]
        ranks.append(rankdata([-round(each, 9) for each in averages]))
        cells = [f"**{unit * each:.1f}**" if each == max(averages) else f"{unit * each:.1f}" for each in averages]
        shown = f"{unit * mean:+.1f} ± {unit * error:.1f}"
        about_set = f"{row['train']} | {row['classes'] or '-'} | {row['views']}"
        lines.append(f"| {name} | {about_set} | {' | '.join(cells)} | {shown} | {judged} |")
    rank = ", ".join(f"{who} {value:.2f}" for who, value in zip(contestants, np.mean(ranks, axis=0), strict=True))
    lines += [
        "",
        f"{len(names)} sets, {max(len(found[name]['MKL']) for name in names)} splits. Mean rank: {rank}. MKL minus "
        f"{rivals[0]}: {unit * np.mean(means):+.2f} on average over the sets, at worst {unit * min(means):+.1f}. "
        f"Worse by more than two corrected standard errors: {', '.join(worse) or 'no set'}.",
        "",
    ]
    if plain:
        worse = [name for mean, error, name in plain if verdict(mean, error) == "worse"]
        lines += [
            f"{PLAIN} minus {rivals[0]}: {unit * np.mean([mean for mean, *_ in plain]):+.2f} on average, at worst "
            f"{unit * min(plain)[0]:+.1f}. Worse by more than two: {', '.join(worse) or 'no set'}.",
            "",
        ]
    return lines


def report(rows: list[dict]) -> str:
    """Return all tables, in percent of accuracy or of R squared."""
    lines = table(rows, (*TABULAR, *QUICK[:1]), (*CLASSIFIERS[1:], PLAIN), "Tabular sets", 100.0)
    lines += table(rows, (*MULTIVIEW, *QUICK[1:2]), CLASSIFIERS[1:], "Several views", 100.0)
    lines += table(rows, REGRESSION, (*REGRESSORS[1:], PLAIN), "Regression", 100.0)
    seconds: dict[str, float] = defaultdict(float)
    for row in rows:
        seconds[row["who"]] += row["cpu"]
    lines.append(f"CPU minutes: {', '.join(f'{who} {value / 60:.1f}' for who, value in seconds.items())}.")
    return "\n".join(lines)


def write(text: str, document: Path = DOCUMENT) -> None:
    """Put the tables between the marks of the document."""
    begin, end = "<!-- tables begin -->", "<!-- tables end -->"
    old = document.read_text()
    head, rest = old.split(begin)
    document.write_text(f"{head}{begin}\n{text}\n{end}{rest.split(end)[1]}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="accuracy-results", help="folder of the results")
    parser.add_argument("--shard", default="0/1", help="i/k: every k-th job from the i-th on, i from 0")
    parser.add_argument("--sets", default="", help="names of sets, with commas")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no job after so many")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args(arguments)
    names = given.sets.split(",") if given.sets else QUICK if given.quick else (*TABULAR, *MULTIVIEW, *REGRESSION)
    folder, (shard, of) = Path(given.out), map(int, given.shard.split("/"))
    folder.mkdir(parents=True, exist_ok=True)
    if not given.report:
        began, done = time.monotonic(), {(row["set"], row["split"], row["who"]) for row in read(folder)}
        with (folder / f"{shard}-of-{of}.jsonl").open("a") as file:
            for job in jobs_of(names, min(given.splits, 2) if given.quick else given.splits)[shard::of]:
                if job in done or time.monotonic() - began > given.seconds:
                    continue
                with threadpool_limits(1):
                    row = run(*job)
                file.write(json.dumps(row) + "\n")
                file.flush()
    if given.report or of == 1:
        text = report(read(folder))
        print(text)
        if given.write:
            write(text)


if __name__ == "__main__":
    main()
