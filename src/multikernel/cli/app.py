"""The commands of ``multikernel``."""

from __future__ import annotations

from pathlib import Path

import typer

app = typer.Typer(help="Multiple kernel learning with a certificate.", no_args_is_help=True, add_completion=False)


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
    norm: float = typer.Option(1.0, min=1.0, help="Norm of the weights."),
    cost: float = typer.Option(1.0, "--C", min=1e-6, help="Cost C of the losses."),
) -> None:
    """Learn weights of kernels on the breast cancer data; compare with the sum and the best single kernel."""
    from multikernel.cli.demo import run_demo

    run_demo(splits, norm, cost)


@app.command(name="warm-up")
def warm_up() -> None:
    """Compile the loops of the library now, so that no later fit waits for it."""
    from multikernel.cli.warm_up import run_warm_up

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
    if methods == "list":
        for name, (what, _, _) in METHODS.items():
            console.print(f"{name:<11} {what}", highlight=False)
        return
    try:
        if data is None:
            raise ValueError("The data are missing: multikernel compare data.csv --target y --methods uniform,mkl.")
        found = run_compare(
            data, target, methods, kernels, widths, factors, cv, scoring, cost, normalize, sample, seed, standardize,
            output, resume, 0 if quiet else 1, task, keep,
            lambda line: console.print(line, highlight=False, soft_wrap=True, markup=False),
        )  # fmt: skip
    except (ValueError, OSError, MemoryError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    console.print(found)
    if output is not None:
        console.print(f"Table, fits and plot are in {output}.", highlight=False, soft_wrap=True, markup=False)
    if all(row["splits"] == 0 for row in found.table):
        raise typer.Exit(1)
