"""``multikernel report``: a page about a saved model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from multikernel.cli.fit_command import read_as_trained, samples_for, targets_of
from multikernel.cli.tables import absent


def run_report(
    path: Path,
    data: Sequence[Path],
    target: str | None,
    train: Sequence[Path],
    index: str | None,
    out: Path,
    title: str | None,
    bootstraps: int,
    confidence: float,
    seed: int,
    jobs: int | None,
    verbose: bool,
    command: str,
) -> Any:
    """Write the page and return the report.

    Parameters are those of the command (`multikernel.cli.app.report`); ``verbose`` shows progress on
    stderr, and ``command`` is shown in the recipe, after the command of the fit.
    """
    from multikernel.inspection import report
    from multikernel.saving import load

    if not out.parent.is_dir():
        raise ValueError(f"The option --out must be a file in an existing folder. Got '{out}' instead.")
    model = load(path)
    first = model[0] if hasattr(model, "steps") else None
    column = target or str(getattr(first, "target_", "y"))
    X_test, y_test = _samples(model, data, index, column)
    X_train, y_train = _samples(model, train, index, column) if train else (None, None)
    commands = [each for each in (getattr(first, "command_", ""), command) if each]
    return report(
        model, X_test, y_test, out, X_train=X_train, y_train=y_train, title=title, recipe="\n".join(commands),
        confidence=confidence, n_bootstraps=bootstraps, n_jobs=jobs, random_state=seed,
        verbose=int(verbose),
    )  # fmt: skip


def _samples(model: Any, paths: Sequence[Path], index: str | None, target: str) -> tuple[Any, Any]:
    frame = read_as_trained(model, paths, index).frame
    if target not in frame.columns:
        raise ValueError(absent("column", target, list(frame.columns), paths[0]))
    if gaps := int(frame[target].isna().sum()):
        raise ValueError(f"The column '{target}' of '{paths[0]}' must not have gaps. Got {gaps} of them.")
    return samples_for(model, frame, target, paths[0]), targets_of(model, frame, target)
