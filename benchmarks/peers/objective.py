"""The metrics of the comparison, computed here and never by a contestant."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gaps import hinge_bounds, joint_bounds

GAPS = (1e-2, 1e-3, 1e-5)


def metrics(found, K: np.ndarray, y: np.ndarray, y_test: np.ndarray, C: float, norm: float) -> dict:
    """Return accuracy on the test samples and, for a contestant that gives a solution, its primal and dual value."""
    result = {
        "accuracy": float(np.mean(found["predicted"] == y_test)),
        "seconds": float(found["seconds"]),
        "memory": float(found["memory"]) / 2**20,
    }
    if "weights" in found:
        bounds = joint_bounds if found["dual_coef"].ndim == 2 else hinge_bounds
        upper, lower = bounds(K, y, found["weights"], found["dual_coef"], found["intercept"], C, norm)
        if np.isfinite(upper):
            result |= {"upper": upper, "lower": lower}
    return result


def add_gaps(records: list[dict]) -> None:
    """Add the true gap of every solution: from its primal value to the largest dual value of any run on the problem.

    Sets "gap". The coefficients of one run alone may certify less: where the optimum has kinks, a solver takes its
    bound from several coefficients.
    """
    best: dict[str, float] = {}
    for record in records:
        best[record["problem"]] = max(best.get(record["problem"], -np.inf), record.get("lower", -np.inf))
    for record in records:
        if "upper" in record:
            record["gap"] = (record["upper"] - best[record["problem"]]) / record["upper"]


def time_to_gap(runs: list[dict], gap: float) -> float | None:
    """Return the least seconds of the runs of one contestant that reach a true gap."""
    return min((run["seconds"] for run in runs if run.get("gap", np.inf) <= gap), default=None)


def accuracy_within(runs: list[dict], seconds: float) -> float | None:
    """Return the accuracy of the slowest run of one contestant that takes at most so many seconds."""
    inside = [run for run in runs if "accuracy" in run and run["seconds"] <= seconds]
    return max(inside, key=lambda run: run["seconds"])["accuracy"] if inside else None
