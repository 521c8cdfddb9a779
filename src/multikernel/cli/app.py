"""The commands of ``multikernel``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import typer

from multikernel.threads import interruptible

app = typer.Typer(
    help="Multiple kernel learning with a certificate.", no_args_is_help=True, rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)  # fmt: skip


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take options from a TOML or JSON file; those of the command line win."""
    if path is None:
        return None
    from multikernel.cli.output import config_options

    with refusals():
        known = {name.replace("_", "-"): each.name for each in context.command.params if (name := each.name)}
        found = config_options(path, known)
    context.default_map = {**(context.default_map or {}), **found}
    return path


def check_number(param: typer.CallbackParam, value: float) -> float:
    """Refuse NaN, which is in every range for older versions of typer, and an infinite cost."""
    if value != value or (value == float("inf") and param.name == "cost"):
        raise typer.BadParameter(f"{value} is no number that this option takes.")
    return value


@contextmanager
def refusals() -> Iterator[None]:
    """End with a sentence on stderr: status 2 for what the input lacks, 130 for Ctrl-C."""
    try:
        with interruptible():
            try:
                yield
            except BrokenPipeError:
                # the reader of stdout, such as head, has seen enough; nothing may be written to it any more
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(0) from None
    except KeyboardInterrupt as interrupt:
        # of errors after Ctrl-C only what could not be written is told: others may be those of interrupted libraries
        if isinstance(interrupt.__cause__, OSError):
            typer.echo(f"Error: {interrupt.__cause__}", err=True)
        typer.echo("Interrupted.", err=True)
        raise typer.Exit(130) from None
    except (ValueError, TypeError, OSError, MemoryError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None


CONFIG = typer.Option(
    None, "--config", is_eager=True, callback=read_config,
    help="A TOML or JSON file with options, such as target = 'y'; the command line wins.",
)  # fmt: skip
JSON = typer.Option(False, "--json", help="Print one JSON object instead of tables.")
QUIET = typer.Option(False, "--quiet", help="Nothing on stderr but errors.")
INDEX = typer.Option(None, help="Column that names the samples in every file; default: rows in the same order.")


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> None:
    """Multiple kernel learning with a certificate."""
    if show:
        from multikernel import __version__

        typer.echo(f"multikernel {__version__}")
        raise typer.Exit


@app.command()
def demo(
    splits: int = typer.Option(3, min=1, help="Random halves of the data to average over."),
    norm: float = typer.Option(1.0, min=1.0, callback=check_number, help="Norm of the weights."),
    cost: float = typer.Option(1.0, "--C", min=1e-6, callback=check_number, help="Cost C of the losses."),
) -> None:
    """Learn weights of kernels on the breast cancer data; compare with the sum and the best single kernel."""
    from multikernel.cli.demo import run_demo

    with refusals():
        run_demo(splits, norm, cost)


@app.command(name="warm-up")
def warm_up() -> None:
    """Compile the loops of the library now, so that no later fit waits for it."""
    from multikernel.cli.warm_up import run_warm_up

    with refusals():
        typer.echo(run_warm_up())


@app.command()
def compare(
    data: Path | None = typer.Argument(None, help="A CSV table, or an npz archive with X (or kernels K) and y."),
    target: str = typer.Option("y", help="Column, or array, of the targets."),
    methods: str = typer.Option("uniform,alignf,mkl,l2", help="Methods, separated by commas; 'list' shows them."),
    kernels: str = typer.Option("rbf", help="Kernels: rbf, linear, polynomial, laplacian, cosine."),
    widths: str = typer.Option("", help="Widths w of the Gaussian kernels exp(-|x - z|^2 / w), separated by commas."),
    factors: str = typer.Option("", help="Instead of widths: multiples of the median distance."),
    task: str = typer.Option("auto", help="auto, classification or regression: what the targets are."),
    keep: str = typer.Option("", help="Columns to use although they look like ids, an index or a constant."),
    cv: int = typer.Option(5, min=2, help="Folds."),
    scoring: str | None = typer.Option(None, help="Any scorer of scikit-learn; accuracy or r2 by default."),
    cost: str = typer.Option("", "--C", help="Cost of the losses; of several, inner cross-validation chooses one."),
    normalize: str = typer.Option("", help="Normalisation, such as 'center,cosine' or 'none'; default: each method's."),
    sample: int | None = typer.Option(None, min=4, help="Use this many samples, drawn at random."),
    seed: int = typer.Option(0, help="Seed of the folds and of the drawn samples."),
    standardize: bool = typer.Option(True, help="Bring columns to mean zero and variance one."),
    output: Path | None = typer.Option(None, help="Folder for the table, the plot and the results."),
    resume: bool = typer.Option(True, help="Keep the results in the folder; compute the missing."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress bar."),
) -> None:
    """Compare methods on your data: one table and one plot over the same splits."""
    from rich.console import Console

    from multikernel.cli.compare_command import run_compare
    from multikernel.inspection.methods import METHODS

    console = Console()
    with refusals():
        if methods == "list":
            for name, (what, _, _) in METHODS.items():
                console.print(f"{name:<11} {what}", highlight=False)
            return
        if data is None:
            raise ValueError("The data are missing: multikernel compare data.csv --target y --methods uniform,mkl.")
        found = run_compare(
            data, target, methods, kernels, widths, factors, cv, scoring, cost, normalize, sample, seed, standardize,
            output, resume, 0 if quiet else 1, task, keep,
            lambda line: console.print(line, highlight=False, soft_wrap=True, markup=False),
        )  # fmt: skip
        console.print(found)
        if output is not None:
            console.print(f"Table, fits and plot are in {output}.", highlight=False, soft_wrap=True, markup=False)
    if all(row["splits"] == 0 for row in found.table):
        raise typer.Exit(1)


@app.command()
def fit(
    context: typer.Context,
    data: list[Path] = typer.Argument(help="Tables of the same samples: CSV, Parquet, FASTA, npz, HDF5, h5ad, h5mu."),
    target: str = typer.Option("y", help="Column of the targets."),
    view: list[str] = typer.Option(
        [], help="A view: a name and its columns, such as rna=gene_* or clinical=age,stage."
    ),
    task: str = typer.Option("auto", help="classification, regression, or auto: from the targets."),
    kernels: str = typer.Option(
        "rbf", help="Kernels of every view: rbf (five widths), linear, polynomial, laplacian, cosine."
    ),
    cost: str = typer.Option("", "--C", help="Costs to choose from, separated by commas; default: 0.1,1,10,100,1000."),
    norm: str = typer.Option("", help="Norms of the weights to choose from; default: 1,2, or 1 where --C is given."),
    baselines: bool = typer.Option(True, help="Also try the plain sum, and up to 30 kernels each alone."),
    cv: int = typer.Option(5, min=2, help="Folds that choose among them."),
    loss: str | None = typer.Option(
        None, help="Loss, such as logistic for probabilities; default: that of the estimator."
    ),
    scoring: str | None = typer.Option(None, help="Any scorer of scikit-learn; accuracy or r2 by default."),
    index: str | None = INDEX,
    drop: str = typer.Option("", help="Columns, or patterns of them, that are not used."),
    keep: str = typer.Option("", help="Columns that are used although they look like an index or an id."),
    standardize: bool = typer.Option(True, help="Bring columns of numbers to mean zero and variance one."),
    hold_out: float = typer.Option(
        0.0, "--hold-out", help="Share of the samples to keep aside for the report; written beside the model."
    ),
    out: Path | None = typer.Option(None, help="The file of the model, such as model.mk."),
    float32: bool = typer.Option(False, "--float32", help="Save in half the space."),
    checkpoint: Path | None = typer.Option(None, help="Folder for the state of a long fit."),
    resume: bool = typer.Option(
        False, "--resume", help="Go on where the same command was ended; as --checkpoint OUT.state."
    ),
    seed: int = typer.Option(0, min=0, help="Seed of the folds."),
    as_json: bool = JSON,
    quiet: bool = QUIET,
    config: Path | None = CONFIG,
) -> None:
    """Train a model on tables, choose C and norm by cross-validation, and save it.

    For example:

    `multikernel fit data.csv --target y --out model.mk`

    `multikernel fit data.csv --target y --view rna=gene_* --view clinical=age,stage --cv 5 --out model.mk`

    `multikernel fit rna.csv protein.csv clinical.csv --index patient --target subtype --out model.mk`
    """
    from multikernel.cli.fit_command import run_fit
    from multikernel.cli.output import command_line, print_fit, watcher

    with refusals():
        if resume and checkpoint is None:
            if out is None:
                raise ValueError("The option --resume needs --out or --checkpoint. Got neither.")
            checkpoint = out.with_name(f"{out.name}.state")
        own = checkpoint if resume else None
        with watcher(quiet) as (tell, progress):
            _, report = run_fit(
                data, target, view, task, kernels, cost, norm, cv, loss, scoring, index, drop, keep, standardize, out,
                float32, checkpoint, seed, tell, progress, hold_out, command_line(context),
                baselines,
            )  # fmt: skip
        if own is not None:
            # the state of a fit that is done is gone, and the folder with it where nothing else is there
            with suppress(OSError):
                own.rmdir()
        print_fit(report, as_json)
    if not report["finished"]:
        raise typer.Exit(1)


@app.command()
def predict(
    model: Path = typer.Argument(help="A model that was saved."),
    data: list[Path] = typer.Argument(help="Tables with the columns that the model was trained on."),
    target: str | None = typer.Option(
        None, help="Column of the targets, where the data have them: the score is printed."
    ),
    index: str | None = INDEX,
    out: Path | None = typer.Option(None, help="Write the predictions there, as CSV, instead of stdout."),
    as_json: bool = JSON,
) -> None:
    """Predict with a saved model: one line of CSV for each row of the data.

    For example:

    `multikernel predict model.mk new.csv`

    `multikernel predict model.mk new.csv --target y --out predictions.csv`
    """
    from multikernel.cli.fit_command import run_predict
    from multikernel.cli.output import print_predictions

    with refusals():
        _, columns, score = run_predict(model, data, index, target)
        print_predictions(columns, score, out, as_json)


@app.command()
def report(
    context: typer.Context,
    model: Path = typer.Argument(help="A model that was saved."),
    data: list[Path] = typer.Argument(help="Tables of samples that the model was not trained on."),
    target: str | None = typer.Option(None, help="Column of the targets; default: that of the fit."),
    train: list[Path] = typer.Option(
        [], help="A table that the model was trained on, for the importance of its views; several times for several."
    ),
    index: str | None = INDEX,
    out: Path = typer.Option(Path("report.html"), help="The page."),
    title: str | None = typer.Option(None, help="Title of the page."),
    bootstraps: int = typer.Option(50, min=0, help="Bootstraps behind the intervals of the importance."),
    confidence: float = typer.Option(0.9, help="Confidence of the intervals."),
    seed: int = typer.Option(0, min=0, help="Seed of the bootstraps."),
    jobs: int | None = typer.Option(None, min=1, help="Folds and bootstraps at once."),
    as_json: bool = JSON,
    quiet: bool = QUIET,
    config: Path | None = CONFIG,
) -> None:
    """Explain a saved model on one HTML page: what it learned, how sure that is, how to make it again.

    For example:

    `multikernel report model.mk test.csv --target y --train train.csv --out report.html`

    `multikernel fit data.csv --target y --hold-out 0.25 --out model.mk` and then
    `multikernel report model.mk model.test.csv --train model.train.csv`
    """
    from multikernel.cli.output import command_line, print_report
    from multikernel.cli.report_command import run_report

    with refusals():
        found = run_report(
            model, data, target, train, index, out, title, bootstraps, confidence, seed, jobs, not quiet,
            command_line(context),
        )  # fmt: skip
        print_report(found, as_json)


@app.command()
def inspect(
    model: Path = typer.Argument(help="A model that was saved."),
    as_json: bool = JSON,
) -> None:
    """Show what a saved model is: kernels with weights and contributions, certificate, columns.

    For example: `multikernel inspect model.mk`
    """
    from multikernel.cli.output import print_model

    with refusals():
        print_model(model, as_json)


@app.command()
def kernels(as_json: bool = JSON) -> None:
    """List the kernels."""
    from multikernel.cli.output import print_kernels

    with refusals():
        print_kernels(as_json)


@app.command()
def datasets(
    folder: Path | None = typer.Option(None, help="Folder with the data; default: MULTIKERNEL_DATA."),
    as_json: bool = JSON,
) -> None:
    """List the data sets in a folder, with their samples, classes and views."""
    from multikernel.cli.output import print_datasets

    with refusals():
        print_datasets(folder, as_json)
