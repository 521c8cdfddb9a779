"""``multikernel fit`` and ``multikernel predict``: from tables to a saved model, and from both to predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from multikernel.cli.compare_command import make_kernels, numbers, words
from multikernel.cli.tables import (
    SEQUENCE,
    Columns,
    Tables,
    absent,
    choose_columns,
    one_line,
    pandas,
    read_tables,
    take_task,
)


def parse_views(given: Sequence[str]) -> dict[str, list[str]]:
    """Return the patterns of each view from texts such as 'rna=gene_*,cov'.

    Examples
    --------
    >>> parse_views(["rna=gene_*", "clinical=age,stage"])
    {'rna': ['gene_*'], 'clinical': ['age', 'stage']}
    """
    views: dict[str, list[str]] = {}
    for text in given:
        name, equals, patterns = text.partition("=")
        if not equals or not name.strip() or not words(patterns):
            raise ValueError(f"The option --view must be a name and columns, such as rna=gene_*. Got {text!r} instead.")
        if name.strip() in views:
            raise ValueError(f"The option --view must name every view once. Got {name.strip()!r} twice.")
        views[name.strip()] = words(patterns)
    return views


def make_entries(columns: Columns, outputs: Mapping[str, list[str]], frame: Any, kernels: Sequence[str]) -> list[tuple]:
    """Return kernels (name, kernels, columns): those asked for on the numbers of each view, one on each sequence."""
    from multikernel.kernels import Spectrum, WeightedDegree

    entries: list[tuple] = []
    for view, names in columns.views.items():
        values = [each for name in names if columns.kinds[name] != SEQUENCE for each in outputs[name]]
        if values:
            entries.append((view, make_kernels(kernels, [], []), values))
        for name in names:
            if columns.kinds[name] == SEQUENCE:
                aligned = frame[name].str.len().nunique() == 1
                entries.append((f"{view}: {name}", WeightedDegree() if aligned else Spectrum(), [name]))
    return entries


def run_fit(
    paths: Sequence[Path], target: str, views: Sequence[str], task: str, kernels: str, costs: str, norms: str, cv: int,
    loss: str | None, scoring: str | None, index: str | None, drop: str, keep: str, standardize: bool, out: Path | None,
    single: bool, checkpoint: Path | None, seed: int, tell: Any, progress: Any, hold_out: float = 0.0,
    command: str = "", baselines: bool = True,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """Read tables, choose columns, search C and norm, train and save; return the model and what there is to report.

    Parameters are those of the command (`multikernel.cli.app.fit`); ``tell`` gets a line for each step,
    ``progress`` the rows of the search, and the model remembers the target and the ``command`` for its report.
    """
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.pipeline import Pipeline

    from multikernel.cli.table_encoder import TableEncoder
    from multikernel.estimators.reporting import FINISHED
    from multikernel.model_selection import MKLClassifierCV, MKLRegressorCV
    from multikernel.saving import save

    axes = {"Cs": numbers(costs, "--C"), "norms": numbers(norms, "--norm")}
    # what is not given has the defaults of the search
    asked, given = parse_views(views), {name: values for name, values in axes.items() if values}
    if out is not None and not out.parent.is_dir():
        raise ValueError(f"The option --out must be a file in an existing folder. Got '{out}' instead.")
    if checkpoint is not None:
        checkpoint.mkdir(parents=True, exist_ok=True)
    tell(f"Reading {', '.join(map(str, paths))}")
    tables = read_tables(paths, index)
    frame = tables.frame
    if target not in frame.columns:
        raise ValueError(absent("column", target, list(frame.columns), paths[0]))
    y = frame[target]
    if gaps := int(y.isna().sum()):
        raise ValueError(f"The column '{target}' must not have gaps. Got {gaps} of them.")
    found, why = take_task(y, task)
    columns = choose_columns(tables, target, asked, words(drop), words(keep))
    files: tuple[Path, Path] | None = None
    if hold_out:
        frame, files = keep_aside(tables, y if found == "classification" else None, hold_out, seed, index, out)
        y = frame[target]
    encoder = TableEncoder(columns.kinds, standardize, index).fit(frame)
    encoder.target_, encoder.command_ = target, command
    entries = make_entries(columns, {name: encoder.outputs(name) for name in columns.kinds}, frame, words(kernels))
    values = y.astype(str).to_numpy() if found == "classification" and y.dtype.kind not in "biuf" else y.to_numpy()
    if found == "classification" and (smallest := int(y.value_counts().min())) < cv:
        raise ValueError(
            f"The option --cv must be at most the size of the smallest class, {smallest}, for classification. "
            f"Got {cv}: take fewer folds, or --task regression."
        )
    splitter = (StratifiedKFold if found == "classification" else KFold)(cv, shuffle=True, random_state=seed)
    options: dict[str, Any] = {
        "cv": splitter,
        "scoring": scoring,
        "checkpoint": checkpoint,
        "callback": progress,
        "baselines": baselines,
    }
    if loss is not None:
        options["loss"] = loss
    model = (MKLClassifierCV if found == "classification" else MKLRegressorCV)(entries, **given, **options)
    count = sum(len(each) if isinstance(each, list) else 1 for _, each, _ in entries)
    tell(f"Training {count} kernels on {len(frame)} samples: a search in {cv} folds, then on all samples")
    whole = Pipeline([("table", encoder), ("model", model)]).fit(frame, values)
    if out is not None:
        model.set_params(callback=None)
        save(whole, out, dtype="float32" if single else "float64")
    return whole, {
        "task": found,
        "why": why,
        "samples": len(frame),
        "columns": {view: names for view, names in columns.views.items()},
        "dropped": columns.dropped,
        "filled": encoder.gaps_,
        "score": float(model.best_score_),
        "score_name": scoring or ("accuracy" if found == "classification" else "r2"),
        "score_error": float(model.cv_results_["std_test_score"][model.best_index_] / np.sqrt(cv)),
        "chosen": {
            # JSON has no infinity, the norm of the plain sum
            name: str(value) if isinstance(value, str) or np.isinf(value) else float(value)
            for name, value in model.best_params_.items()
        },
        "mix_gain": None if getattr(model, "mix_gain_", None) is None else str(model.mix_gain_),
        **describe(model),
        "finished": FINISHED.issuperset(model.model_.status),
        "model": None if out is None else str(out),
        "target": target,
        "train": None if files is None else str(files[0]),
        "test": None if files is None else str(files[1]),
    }


def keep_aside(
    tables: Any, classes: Any, share: float, seed: int, index: str | None, out: Path | None
) -> tuple[Any, tuple[Path, Path]]:
    """Write the samples to train on and those kept aside beside the model, as CSV; return the former and both paths.

    Parameters
    ----------
    tables : Tables
        The samples.
    classes : Series or None
        Their classes, of which both parts get about the same shares.
    share : float
        Share of the samples to keep aside.
    seed : int
        Seed of the draw.
    index : str or None
        The column of the names of the samples.
    out : Path or None
        The file of the model.
    """
    from sklearn.model_selection import train_test_split

    if not 0 < share < 1:
        raise ValueError(f"The option --hold-out must be a share between 0 and 1. Got {share:g} instead.")
    if out is None:
        raise ValueError("The option --hold-out needs --out: the samples kept aside are written beside the model.")
    frame, rows = tables.frame, np.arange(len(tables.frame))
    try:
        parts = train_test_split(rows, test_size=share, random_state=seed, stratify=classes)
    except ValueError as error:
        raise ValueError(
            f"The option --hold-out cannot keep {share:g} of the samples aside: {one_line(error)}"
        ) from None
    named = frame
    if tables.rows is not None:
        named = pandas().concat([pandas().Series(tables.rows, name=index), frame], axis=1)
    files = out.with_suffix(".train.csv"), out.with_suffix(".test.csv")
    for part, path in zip(parts, files, strict=True):
        named.iloc[np.sort(part)].to_csv(path, index=False)
    return frame.iloc[np.sort(parts[0])].reset_index(drop=True), files


def describe(model: Any) -> dict[str, Any]:
    """Return what a fitted model says about itself: kernels, certificate and size."""
    last = model[-1] if hasattr(model, "steps") else model
    weights = np.atleast_2d(getattr(last, "weights_", np.zeros((0, 0))))
    shares = np.atleast_2d(getattr(last, "kernel_contributions_", np.full(weights.shape, np.nan)))
    mean, share = weights.mean(axis=0), shares.mean(axis=0)
    kernels = [
        {"kernel": name, "weight": float(mean[k]), "contribution": None if np.isnan(share[k]) else float(share[k])}
        for k, name in enumerate(getattr(last, "kernel_names_", []))
    ]
    found: dict[str, Any] = {"estimator": type(last).__name__, "kernels": kernels}
    for name in ("objective_", "duality_gap_", "status_", "n_iter_"):
        if hasattr(last, name):
            value = getattr(last, name)
            found[name.rstrip("_")] = value if isinstance(value, str) else np.asarray(value).tolist()
    if hasattr(last, "classes_"):
        found["classes"] = last.classes_.tolist()
    if hasattr(last, "support_"):
        found["support_vectors"] = len(last.support_)
    return found


def run_predict(
    path: Path, data: Sequence[Path], index: str | None, target: str | None
) -> tuple[Any, dict[str, np.ndarray], float | None]:
    """Return the model, columns of predictions, and the score where the data hold the targets."""
    from multikernel.saving import load

    model = load(path)
    tables = read_as_trained(model, data, index)
    frame = tables.frame
    samples = samples_for(model, frame, target, data[0])
    predictions = np.asarray(model.predict(samples))
    columns = {} if tables.rows is None else {"sample": tables.rows}
    columns["prediction"] = predictions
    last = model[-1] if hasattr(model, "steps") else model
    if hasattr(last, "classes_"):
        method = "predict_proba" if hasattr(last, "predict_proba") else "decision_function"
        scores = np.asarray(getattr(model, method)(samples))
        if scores.ndim == 1:
            columns["score"] = scores
        else:
            word = "probability" if method == "predict_proba" else "score"
            columns |= {f"{word} {name}": scores[:, j] for j, name in enumerate(last.classes_)}
    score = None
    if target is not None:
        if target not in frame.columns:
            raise ValueError(absent("column", target, list(frame.columns), data[0]))
        score = float(model.score(samples, targets_of(model, frame, target)))
    return model, columns, score


def read_as_trained(model: Any, data: Sequence[Path], index: str | None) -> Tables:
    """Read tables for a model; rows of several files are matched as they were for the fit."""
    encoder = model[0] if hasattr(model, "steps") else None
    return read_tables(data, index or (getattr(encoder, "index", None) if len(data) > 1 else None))


def samples_for(model: Any, frame: Any, target: str | None, path: Path) -> Any:
    """Return the columns of a table that a model takes: all, where it was made from tables, else those of its fit."""
    from multikernel.cli.table_encoder import TableEncoder

    if hasattr(model, "steps") and isinstance(model[0], TableEncoder):
        return frame
    samples = frame.drop(columns=[target] if target in frame.columns else [])
    names = getattr(model, "feature_names_in_", None)
    if names is not None and not set(names) <= set(samples.columns):
        lacking = next(name for name in names if name not in samples.columns)
        raise ValueError(absent("column", str(lacking), list(samples.columns), path))
    return samples[list(names)] if names is not None else samples.to_numpy()


def targets_of(model: Any, frame: Any, target: str) -> np.ndarray:
    """Return the targets of a table, words where the classes of the model are words."""
    y = frame[target].to_numpy()
    words = getattr(getattr(model, "classes_", None), "dtype", np.dtype(float)).kind in "UO"
    return y.astype(str) if words else y


def column_lines(report: Mapping[str, Any]) -> list[str]:
    """Return the lines about the task and the columns, for the eye."""
    lines = [f"Task: {report['task']}, {report['why']}"]
    if "numbers" in report["why"]:
        other = "regression" if report["task"] == "classification" else "classification"
        lines[0] += f"; --task {other} for the other"
    for view, names in report["columns"].items():
        lines.append(f"View {view}: {few(names)}")
    reasons: dict[str, list[str]] = {}
    for name, why in report["dropped"].items():
        reasons.setdefault(why, []).append(name)
    lines += [f"Not used, {why}: {few(names)}" for why, names in reasons.items()]
    if any(not why.startswith(("asked", "in no view", "constant", "empty")) for why in reasons):
        lines.append("(--keep NAME uses such a column all the same)")
    if report["filled"]:
        lines.append(
            f"Gaps filled with the mean, or with no word: {few([f'{k} ({n})' for k, n in report['filled'].items()])}"
        )
    return lines


def few(names: Sequence[str]) -> str:
    """Return how many names there are, and the first and the last of them.

    Examples
    --------
    >>> few(["a", "b", "c", "d"])
    '4 columns (a, b, ..., d)'
    """
    first, last = names[:2], names[-1:]
    shown = names if len(names) <= len([*first, *last]) else [*first, "...", *last]
    return f"{len(names)} column{'s' if len(names) != 1 else ''} ({', '.join(shown)})"
