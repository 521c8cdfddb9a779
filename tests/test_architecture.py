"""The map of the house: which room may import which, and what `import multikernel` may cost.

Rooms are strictly ordered, one room a level; a module imports its own room and lower ones. Imports inside functions
count as well.
"""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import multikernel

PACKAGE = Path(multikernel.__file__).parent

# lowest room first; a new room takes its place here
ROOMS = (
    "threads",
    "losses",
    "gram",
    "mixing",
    "machines",
    "certificate",
    "problem",
    "solution",
    "solvers",
    "solve",
    "kernels",
    "training",
    "saving",
    "estimators",
    "model_selection",
    "datasets",
    "inspection",
    "theory",
    "cli",
    "__main__",
)
LEVEL = {room: level for level, room in enumerate(ROOMS)}

# what only some solvers, the reports and the command line use
OPTIONAL = {"clarabel", "highspy", "matplotlib", "plotly", "typer"}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(name: str) -> str | None:
    """Return the first part below the package, None for the package itself and for what is not ours."""
    parts = name.split(".")
    return parts[1] if parts[0] == "multikernel" and len(parts) > 1 else None


def imported(source: str) -> set[str]:
    """Return the dotted names that a source imports, at any depth; relative imports come back as '.'."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                names.add(".")
            elif node.module == "multikernel":
                names.update(f"multikernel.{alias.name}" for alias in node.names)
            else:
                names.add(node.module)
    return names


def offences(name: str, source: str) -> list[str]:
    """Return one sentence for every import of `name` that climbs."""
    own = room(name)
    found = []
    for target in sorted(imported(source)):
        other = room(target)
        if target == ".":
            found.append(f"{name} imports relatively")
        elif other in LEVEL and LEVEL[other] > LEVEL[own]:
            found.append(f"{name} ({own}) imports {target}, which lies above it")
        elif other is not None and other not in LEVEL and not other.startswith("__"):
            found.append(f"{name} imports {target}, which is in no room")
    return found


@pytest.mark.parametrize("path", modules(), ids=module_name)
def test_a_room_imports_itself_and_lower_rooms(path):
    name = module_name(path)
    assert room(name) in LEVEL, f"{name} has no place in ROOMS"
    assert offences(name, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("multikernel.gram.dense", "from multikernel.kernels.base import Kernel"),
        ("multikernel.machines.svc", "import multikernel.estimators"),
        ("multikernel.mixing.norms", "def f():\n    from multikernel import kernels"),
        ("multikernel.solvers.silp", "from multikernel.solve import solve"),
        ("multikernel.problem", "from multikernel import MKLClassifier"),
        ("multikernel.kernels.bank", "from multikernel.estimators import MKLClassifier"),
        ("multikernel.estimators.classifier", "from multikernel.cli import main"),
        ("multikernel.gram.dense", "from . import base"),
    ],
)
def test_the_check_sees_an_import_that_climbs(name, source):
    assert len(offences(name, source)) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("multikernel.gram.dense", "import numpy as np\nfrom multikernel.gram.base import Gram"),
        ("multikernel.kernels.bank", "from multikernel.gram.lazy import LazyGram"),
        ("multikernel.estimators.classifier", "from multikernel.kernels.bank import KernelBank"),
        ("multikernel.cli", "from multikernel import __version__"),
    ],
)
def test_the_check_lets_an_import_that_descends_pass(name, source):
    assert offences(name, source) == []


def test_a_file_name_occurs_once():
    names = [path.name for path in modules() if path.name not in ("__init__.py", "base.py")]
    assert sorted(names) == sorted(set(names))


def run_python(program: str) -> str:
    """Run a program in a fresh process and return what it printed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    environment["PYTHONPATH"] = str(PACKAGE.parent)
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def loaded_by(statement: str) -> set[str]:
    """Return the modules that a statement loads in a fresh process, those of the standard library it needs aside."""
    program = (
        "import __future__, importlib, json, sys, typing\n"
        "before = set(sys.modules)\n"
        f"{statement}\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))\n"
    )
    return set(json.loads(run_python(program)))


def test_import_multikernel_loads_nothing_else():
    assert loaded_by("import multikernel; multikernel.__version__, dir(multikernel)") == {"multikernel"}


def test_the_classifier_loads_neither_the_conic_solvers_nor_the_reports():
    names = {name.partition(".")[0] for name in loaded_by("from multikernel import MKLClassifier")}
    assert {"numba", "numpy", "sklearn"} <= names
    assert not names & {*OPTIONAL, "torch", "triton", "dask", "distributed"}


def test_auto_runs_where_numpy_scipy_sklearn_and_numba_do():
    # rank-one kernels on few samples: the solver has to fall back on its cuts
    program = f"""
import sys
for name in {sorted(OPTIONAL)}:
    sys.modules[name] = None
import numpy as np
from multikernel import MKLClassifier, stack_kernels
rng = np.random.default_rng(0)
X = rng.normal(size=(30, 4))
y = X[:, 0] + 0.3 * rng.normal(size=30) > 0
stack = stack_kernels([np.outer(x, x) for x in X.T])
for norm in (1, 1.1, 2, np.inf):
    print(MKLClassifier("precomputed", norm=norm, C=100.0, tol=1e-7).fit(stack, y).status_)
"""
    assert run_python(program).split() == ["converged"] * 4


def test_every_public_name_resolves():
    for name in multikernel.__all__:
        assert getattr(multikernel, name) is not None
        assert name in dir(multikernel)
    for name in ("datasets", "gram", "kernels", "losses", "machines", "mixing", "solvers", "training"):
        assert getattr(multikernel, name).__name__ == f"multikernel.{name}"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Multikernel'"):
        _ = multikernel.Multikernel
