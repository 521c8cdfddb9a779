"""The commands of ``multikernel``."""

from __future__ import annotations

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
    """Learn a mix of kernels on the breast cancer data; compare it with the sum and the best kernel."""
    from multikernel.cli.demo import run_demo

    run_demo(splits, norm, cost)
