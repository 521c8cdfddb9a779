"""Searches of the survey: MKLClassifierCV and MKLRegressorCV against GridSearchCV over the same fits.

Two settings of each family, four values of C, three folds. The bar: a search takes at most the time of GridSearchCV.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from clock import processor_seconds
from rich.console import Console
from rich.table import Table
from survey_draw import Fit, stack

CS = (0.1, 1.0, 10.0, 100.0)
FOLDS = 3
PER_FAMILY = 2
# processor seconds that a search and GridSearchCV may take together
LIMIT = 240.0


def searches(fits: list[Fit]) -> list[Fit]:
    """Return the settings that are searched: the first ones of each family; C is that of the search."""
    kept: dict[str, list[Fit]] = {}
    for fit in fits:
        # one class has no search, explicit features are fitted by a machine of their own
        if fit.C == 1.0 and fit.task != "one class" and fit.bank != "features":
            kept.setdefault(fit.family, []).append(fit)
    return [fit for family in kept.values() for fit in family[:PER_FAMILY]]


def measure_search(fit: Fit, tol: float) -> dict:
    """Return the processor seconds of a search and of GridSearchCV, and whether both choose the same C."""
    from sklearn.model_selection import GridSearchCV
    from survey_fit import model_of

    from multikernel import MKLClassifierCV, MKLRegressorCV, stack_kernels

    K, y = stack(fit.dataset, fit.bank, fit.n)
    data = stack_kernels(K), y
    model = model_of(fit, tol)
    shared = {"norm": fit.norm, "loss": fit.loss, "tol": tol, "n_jobs": 1}
    shared |= {"Cs": list(CS), "cv": FOLDS, "baselines": False}
    if fit.task == "regression":
        search = MKLRegressorCV("precomputed", **shared)
    else:
        search = MKLClassifierCV("precomputed", multiclass=fit.multi, **shared)
    grid = GridSearchCV(model, {"C": list(CS)}, cv=FOLDS)
    try:
        ours = processor_seconds(lambda: search.fit(*data))
        theirs = processor_seconds(lambda: grid.fit(*data))
    except Exception as error:
        return {"status": "error", "message": f"{type(error).__name__}: {error}"}
    scores = search.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"]
    return {
        "status": "done", "seconds": ours, "grid": theirs, "C": search.C_, "grid C": grid.best_params_["C"],
        "scores": float(np.max(np.abs(np.asarray(scores[0]) - scores[1]))),
    }  # fmt: skip


def searched(fits: list[Fit], source: str, worker) -> Iterator[dict]:
    """Yield a record of each search."""
    for fit in fits:
        result = worker.do("search", fit, 1e-3, LIMIT) or {"status": "killed"}
        yield {"key": fit.key, "family": fit.family, "source": source} | result


def report_searches(records: list[dict], console: Console) -> bool:
    """Print the searches, the slowest against GridSearchCV first, and return whether the bar is met.

    The last column is the largest difference of the mean scores of both, which have other models within the gap.
    """
    done = [record for record in records if record["status"] == "done"]
    done.sort(key=lambda record: record["grid"] / record["seconds"])
    table = Table(title="Searches: time of GridSearchCV over the same fits / time of the search")
    for column in ("search", "ratio", "seconds", "C", "grid's", "scores"):
        table.add_column(column, justify="left" if column == "search" else "right", no_wrap=True)
    for record in done:
        ratio = record["grid"] / record["seconds"]
        cells = f"{ratio:.2f}", *(f"{record[name]:.3g}" for name in ("seconds", "C", "grid C", "scores"))
        table.add_row(record["key"].removesuffix("/C=1"), *cells, style="red" if ratio < 1 else None)
    console.print(table)
    for record in records:
        if record["status"] != "done":
            console.print(f"  {record['key']}  {record['status']} {record.get('message', '')}", soft_wrap=True)
    ratios = np.array([record["grid"] / record["seconds"] for record in done])
    slower = int(np.count_nonzero(ratios < 1))
    if len(ratios):
        console.print(f"{len(done)} of {len(records)} searches, median {np.median(ratios):.3g} times faster, "
                      f"{slower} slower than GridSearchCV")  # fmt: skip
    return not slower and len(done) == len(records)
