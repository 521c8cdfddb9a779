"""What the commands print: results on stdout, as tables or as JSON, and progress on stderr."""

from __future__ import annotations

import json
import shlex
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from multikernel.inspection.methods import did_you_mean


def config_options(path: Path, known: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a TOML or JSON file by the names of their parameters.

    Parameters
    ----------
    path : Path
        The file.
    known : mapping
        Names of options, without dashes in front, and the parameters they set.
    """
    if not path.is_file():
        raise ValueError(f"The option --config must be a file. '{path}' does not exist.")
    try:
        text = path.read_text(encoding="utf-8")
        found = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        raise ValueError(
            f"The option --config must be a file of TOML or JSON. Got: {' '.join(str(error).split())}"
        ) from None
    if not isinstance(found, dict):
        raise ValueError(f"The option --config must be a file of options and values. Got a {type(found).__name__}.")
    names = {**known, "C": known.get("cost", "cost"), "json": known.get("as-json", "as_json")}
    options = {}
    for name, value in found.items():
        if name not in names:
            raise ValueError(
                f"The option --config must hold options of the command. Got {name!r}.{did_you_mean(name, list(names))}"
            )
        several = isinstance(value, list) and name not in ("data", "view")
        options[names[name]] = ",".join(map(str, value)) if several else value
    return options


@contextmanager
def watcher(quiet: bool) -> Iterator[tuple[Callable[[str], None], Callable[[dict], None] | None]]:
    """Yield what tells a step, and what is called after each fit of a search: lines on stderr, or one that moves."""
    if quiet:
        yield lambda text: None, None
        return
    console, began = Console(stderr=True), time.perf_counter()
    shown = 0

    with console.status("Starting") as status:

        def tell(text: str) -> None:
            console.print(text, highlight=False, markup=False)
            status.update(f"{text} (the first fit compiles, or loads what was compiled)")

        def progress(row: dict) -> None:
            nonlocal shown
            line = f"{row['done']} of {row['of']} fits, {time.perf_counter() - began:.0f} s"
            status.update(line)
            # ten lines where nothing can move, such as a file
            if not console.is_terminal and (tenth := 10 * row["done"] // row["of"]) > shown:
                shown = tenth
                console.print(line, highlight=False)

        yield tell, progress


def command_line(context: Any) -> str:
    """Return the command that is running, with the options that are not at their defaults and files without folders."""
    words = ["multikernel", str(context.info_name)]
    for each in context.command.params:
        value = context.params.get(each.name)
        if (
            value is None
            or value == each.default
            or each.name in ("config", "as_json", "quiet", "resume", "checkpoint")
        ):
            continue
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        option = [] if each.param_type_name == "argument" else [each.opts[0]]
        # older versions of typer have files as texts here
        is_file = each.name in ("data", "model", "train", "out")
        for one in values:
            words += [*option, *([] if one is True else [Path(one).name if is_file else str(one)])]
    return shlex.join(words)


def _write(found: Any) -> None:
    sys.stdout.write(json.dumps(found, indent=2, ensure_ascii=False, default=_plain) + "\n")


def _plain(value: Any) -> Any:
    """Return NumPy's values as Python's."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else str(value)


def _kernel_table(kernels: list[dict[str, Any]]) -> Table:
    table = Table(title="Kernels in use")
    table.add_column("kernel")
    for heading in ("weight", "contribution"):
        table.add_column(heading, justify="right")
    for row in sorted(kernels, key=lambda each: -each["weight"]):
        if row["weight"] > 0:
            share = "" if row["contribution"] is None else f"{row['contribution']:.3f}"
            table.add_row(row["kernel"], f"{row['weight']:.3g}", share)
    return table


def _certificate(report: Mapping[str, Any]) -> str:
    used = sum(row["weight"] > 0 for row in report["kernels"])
    text = f"{used} of {len(report['kernels'])} kernels in use"
    if "support_vectors" in report:
        text += f", {report['support_vectors']} support vectors"
    if "duality_gap" in report:
        text += f", relative duality gap {np.max(report['duality_gap']):.1e}"
    return f"{text} ({report['status']})" if isinstance(report.get("status"), str) else text


def print_fit(report: Mapping[str, Any], as_json: bool) -> None:
    """Print what a fit found."""
    from multikernel.cli.fit_command import column_lines

    if as_json:
        _write(report)
        return
    console = Console()
    for line in column_lines(report):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print(_kernel_table(report["kernels"]))
    values = report["chosen"].items()
    chosen = ", ".join(f"{name} = {value if isinstance(value, str) else f'{value:g}'}" for name, value in values)
    score = f"{report['score']:.3f} ± {report['score_error']:.3f} (standard error)"
    console.print(f"Cross-validated {report['score_name']} of the choice: {score}", highlight=False)
    console.print(f"Chosen: {chosen}. {_certificate(report)}.", highlight=False, soft_wrap=True, markup=False)
    if report["mix_gain"] is not None:
        console.print(report["mix_gain"], highlight=False, soft_wrap=True, markup=False)
    if report["model"] is not None:
        following = f"multikernel predict {report['model']} NEW_DATA"
        if report["test"] is not None:
            console.print(
                f"Kept aside: {report['test']}; trained on: {report['train']}.", highlight=False, markup=False,
                soft_wrap=True,
            )  # fmt: skip
            following = f"multikernel report {report['model']} {report['test']} --train {report['train']}"
        console.print(
            f"Saved to {report['model']}. Next: {following}",
            highlight=False,
            soft_wrap=True,
            markup=False,
        )
    else:
        console.print("Not saved: --out model.mk keeps the model.", highlight=False)


def print_predictions(columns: Mapping[str, np.ndarray], score: float | None, out: Path | None, as_json: bool) -> None:
    """Print predictions as CSV or JSON, and the score."""
    if as_json:
        _write(
            {**({} if score is None else {"score": score}), **{name: each.tolist() for name, each in columns.items()}}
        )
        return
    import csv

    stream = sys.stdout if out is None else out.open("w", encoding="utf-8", newline="")
    try:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(each.tolist() for each in columns.values()), strict=True))
    finally:
        if out is not None:
            stream.close()
    if out is not None:
        sys.stdout.write(f"{len(columns['prediction'])} predictions are in {out}.\n")
    if score is not None:
        (sys.stdout if out is not None else sys.stderr).write(f"Score on these data: {score:.3f}\n")


def print_report(found: Any, as_json: bool) -> None:
    """Print what a report says, and where it is."""
    if as_json:
        _write({
            "path": str(found.path),
            "summary": found.summary,
            "scores": found.scores.values,
            "importance": None if found.importance is None else found.importance.rows(),
            "cautions": [vars(each) for each in found.cautions],
        })  # fmt: skip
        return
    console = Console()
    for line in str(found).splitlines():
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print(f"The page is {found.path}.", highlight=False, markup=False, soft_wrap=True)


def print_model(path: Path, as_json: bool) -> None:
    """Print what a saved model is."""
    from multikernel.cli.fit_command import describe, few
    from multikernel.cli.table_encoder import TableEncoder
    from multikernel.saving import load

    model = load(path)
    report = describe(model)
    report["size"] = path.stat().st_size
    encoder = model[0] if hasattr(model, "steps") else None
    if isinstance(encoder, TableEncoder):
        report["columns"] = encoder.kinds
    elif hasattr(model, "n_features_in_"):
        report["columns"] = model.n_features_in_
    if as_json:
        _write(report)
        return
    console = Console()
    classes = f", classes {', '.join(map(str, report['classes']))}" if "classes" in report else ""
    console.print(
        f"{report['estimator']}{classes}; {report['size'] / 1000:.0f} kB", highlight=False, markup=False, soft_wrap=True
    )
    if isinstance(columns := report.get("columns"), dict):
        for kind in dict.fromkeys(columns.values()):
            names = [name for name, own in columns.items() if own == kind]
            console.print(f"{kind}: {few(names)}", highlight=False, markup=False, soft_wrap=True)
    console.print(_kernel_table(report["kernels"]))
    console.print(f"{_certificate(report)}.", highlight=False)


def print_kernels(as_json: bool) -> None:
    """Print every kernel with its first line."""
    from multikernel import kernels

    found = {}
    for name in kernels.__all__:
        each = getattr(kernels, name)
        base = isinstance(each, type) and issubclass(each, (kernels.Kernel, kernels.Family))
        if base and each not in (kernels.Kernel, kernels.Family):
            found[name] = (each.__doc__ or "").strip().splitlines()[0]
    if as_json:
        _write(found)
        return
    table = Table("kernel", "what it is")
    for name, what in found.items():
        table.add_row(name, what.replace("[", r"\["))
    Console().print(table)


def print_datasets(folder: Path | None, as_json: bool) -> None:
    """Print every data set with its samples, views and classes."""
    from multikernel.datasets import available
    from multikernel.datasets.loaders import load_dataset

    rows: list[dict[str, Any]] = []
    for name in available(folder):
        data = load_dataset(name, folder)
        views = data.get("data")
        several = isinstance(views, list)
        shapes = [each.shape for each in (views if several else [] if views is None else [views])]
        target = data.get("target")
        rows.append({
            "name": name,
            "samples": shapes[0][0] if shapes else None,
            "columns": [shape[1] if len(shape) > 1 else 1 for shape in shapes],
            "targets": None if target is None else len(np.unique(target)),
        })  # fmt: skip
    if as_json:
        _write(rows)
        return
    table = Table("data set", "samples", "columns", "different targets")
    for row in rows:
        table.add_row(
            row["name"], str(row["samples"] or ""), " + ".join(map(str, row["columns"])), str(row["targets"] or "")
        )
    Console().print(table)
