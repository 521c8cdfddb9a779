"""The console command."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from multikernel import __version__
from multikernel.cli import main
from multikernel.cli.app import app
from multikernel.cli.demo import load_samples, make_kernels


def test_the_demo_learns_compares_and_certifies():
    result = CliRunner().invoke(app, ["demo", "--splits", "1"], env={"COLUMNS": "140"})
    assert result.exit_code == 0, result.output
    for heading in ("kernel", "weight", "contribution", "accuracy alone"):
        assert heading in result.output
    for row in (
        "learned weights",
        "uniform sum of all kernels",
        "best single kernel",
        "relative duality gap",
        "seconds",
    ):
        assert row in result.output
    for name, _, _ in make_kernels():
        assert name in result.output


def test_the_samples_of_the_demo_are_three_groups_and_noise():
    X, y = load_samples()
    assert X.shape == (569, 60) and set(y) == {"malignant", "benign"}


def test_the_version_and_the_help_are_shown(monkeypatch, capsys):
    assert CliRunner().invoke(app, ["--version"]).output == f"multikernel {__version__}\n"
    assert "demo" in CliRunner().invoke(app, ["--help"]).output
    monkeypatch.setattr("sys.argv", ["multikernel", "--version"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert __version__ in capsys.readouterr().out


def test_the_package_runs_as_a_command():
    found = subprocess.run(
        [sys.executable, "-m", "multikernel", "--version"], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == f"multikernel {__version__}"


def test_a_warm_up_compiles_what_a_fit_needs():
    result = CliRunner().invoke(app, ["warm-up"])
    assert result.exit_code == 0 and "The loops are compiled and kept" in result.output
    code = "import numpy as np; from multikernel import MKLClassifier as M"
    code += "; X = np.random.default_rng(0).normal(size=(90, 3))"
    code += "; M(verbose=1).fit(X, X[:, 0] > 0); M(verbose=1).fit(X, np.arange(90) % 3)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "starting" in found.stderr and "compiling" not in found.stderr


@pytest.mark.parametrize(("option", "value"), [("--C", "nan"), ("--C", "inf"), ("--norm", "nan"), ("--C", "0")])
def test_the_demo_refuses_numbers_by_the_name_of_their_option(option, value):
    result = CliRunner().invoke(app, ["demo", option, value], env={"COLUMNS": "140"})
    assert result.exit_code == 2 and option in result.output and "Traceback" not in result.output
