"""The console command ``multikernel``."""

from __future__ import annotations


def main() -> None:
    """Run the command."""
    from multikernel.cli.app import app

    app()
