"""The documentation names only what exists, and describes all solvers, statuses and public names."""

import doctest
import importlib
import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from test_architecture import LEVEL
from typer.testing import CliRunner

import multikernel
from multikernel import solution
from multikernel.cli.app import app
from multikernel.solvers import REGISTRY

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def resolves(name: str) -> bool:
    """Whether a dotted name is a module of the package, or an attribute of a module or of a class."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


def dotted_names(text: str) -> set[str]:
    return {match.rstrip(".") for match in re.findall(r"(?<![\w./-])multikernel(?:\.\w+)+", text)}


def make_targets(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))


def mentioned_targets(text: str) -> set[str]:
    return set(re.findall(r"(?:^ {4}|`)make ([a-z-]+)", text, re.MULTILINE))


def mentioned_paths(text: str) -> set[str]:
    folders = "src|tests|benchmarks|papers|docs|examples|tools"
    return set(re.findall(rf"(?<![\w./(-])((?:{folders})/[\w./-]*\w)", text))


def section(page: str, heading: str) -> str:
    """Return the text of a page from a heading of second level to the next one."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return text.split(f"\n## {heading}\n")[1].split("\n## ")[0]


@every_page
def test_every_name_of_the_package_resolves(page):
    unknown = sorted(name for name in dotted_names(page.read_text(encoding="utf-8")) if not resolves(name))
    assert not unknown


@every_page
def test_every_make_target_exists(page):
    targets = make_targets((ROOT / "Makefile").read_text(encoding="utf-8"))
    assert mentioned_targets(page.read_text(encoding="utf-8")) <= targets


@every_page
def test_every_file_mentioned_exists(page):
    missing = [path for path in mentioned_paths(page.read_text(encoding="utf-8")) if not (ROOT / path).exists()]
    assert not missing


@every_page
def test_every_link_between_pages_has_a_target(page):
    for target, anchor in re.findall(
        r"\]\((?!https?:)([\w/.-]*\.md)?(?:#([\w-]+))?\)", page.read_text(encoding="utf-8")
    ):
        other = page.parent / target if target else page
        assert other.exists(), f"{target} does not exist"
        headings = re.findall(r"^#+ (.+)$", other.read_text(encoding="utf-8"), re.MULTILINE)
        slugs = {re.sub(r"[\s_]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower()) for text in headings}
        assert not anchor or anchor in slugs, f"{other.name} has no section {anchor!r}"


def commands(name: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return "".join(re.findall(r"^```bash\n(.+?)^```", text, re.MULTILINE | re.DOTALL)).splitlines()


@pytest.mark.parametrize("name", ["docs/five-minutes.md", "docs/sources.md"])
def test_every_command_of_the_page_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / name).read_text(encoding="utf-8")
    # the examples up to the last one that writes a table
    examples = [found.source for found in doctest.DocTestParser().get_examples(text)]
    writing = [i for i, source in enumerate(examples) if ".to_csv(" in source]
    names: dict = {}
    for source in examples[: max(writing, default=-1) + 1]:
        exec(compile(source, name, "single"), names)
    for program, *arguments in map(shlex.split, commands(name)):
        if program == "python":
            assert arguments[0] == "-c"
            exec(arguments[1], {})
            continue
        assert program == "multikernel"
        # the same, with fewer bootstraps
        fewer = ["--bootstraps", "4"] if arguments[0] == "report" else []
        result = CliRunner().invoke(app, [*arguments, *fewer])
        assert result.exit_code == 0, f"{arguments}: {result.output}"


def test_the_commands_of_the_readme_are_those_of_the_page():
    assert commands("README.md") and {*commands("README.md")} <= {*commands("docs/five-minutes.md")}


def test_every_page_is_in_one_table_of_contents():
    tables = re.findall(
        r"^```{toctree}\n(.+?)^```", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), re.M | re.S
    )
    shown = [line for table in tables for line in table.splitlines() if line and not line.startswith(":")]
    pages = [page.stem for page in PAGES if page.parent.name == "docs" and page.stem != "index"]
    assert sorted(shown) == sorted([*pages, "gallery/index"])


def test_every_solver_is_described():
    text = (ROOT / "docs" / "solvers.md").read_text(encoding="utf-8")
    headings = {name for line in re.findall(r"^## (.+)$", text, re.MULTILINE) for name in line.split(", ")}
    rows = set(re.findall(r'^\| `"([\w-]+)"` \|', text, re.MULTILINE))
    assert headings == rows <= {*REGISTRY, "auto"}
    # others by their modules, which the reference shows
    for name in {*REGISTRY} - rows:
        opening = importlib.import_module(REGISTRY[name][0]).__doc__
        assert "Problem" in opening and "Reference" in opening, f"{name} is not described"


def test_every_status_is_described():
    statuses = {value for name, value in vars(solution).items() if name.isupper() and isinstance(value, str)}
    assert set(re.findall(r'^\| `"(\w+)"` \|', section("errors.md", "What the status says"), re.MULTILINE)) == statuses


def listed_modules() -> list[str]:
    return re.findall(r"^   (multikernel[\w.]*)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_reference_lists_every_module_with_public_names():
    packages = ["multikernel.estimators.baselines", "multikernel.kernels.sequences"]
    packages += [f"multikernel.{name}" for name in multikernel._SUBMODULES]
    public = {name for module in listed_modules() for name in getattr(importlib.import_module(module), "__all__", ())}
    assert "MKLClassifier" in public
    for package in packages:
        absent = {*getattr(importlib.import_module(package), "__all__", ())} - public
        assert package in listed_modules() or not absent, f"docs/api.md lacks {package}"
    assert {module for module, _ in REGISTRY.values()} <= {*listed_modules()}


def test_public_names_have_a_description():
    for module in map(importlib.import_module, listed_modules()):
        assert module.__doc__
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if callable(value):
                assert value.__doc__, f"{module.__name__}.{name}"
                assert not re.search(r"^ *<(?!BLANKLINE)[a-zA-Z_, \n]+>$", value.__doc__, re.MULTILINE), (
                    f"{name}: not filled in"
                )


@pytest.mark.parametrize("room", multikernel._SUBMODULES)
def test_the_reference_and_the_map_name_every_room(room):
    assert f"multikernel.{room}" in (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert f"| `{room}/` |" in section("architecture.md", "The rooms")


DOCSTRING = """Fit x_ with |beta|_1.

    min over beta    max over a_

to a gap [1]_, see docs/losses.md. Phases:
1. first *one*,
   of two lines;
2. `second_`.

Parameters
----------
x_ : array
    The | values.

References
----------
.. [1] A. Author, Title,
2005.

Examples
--------
>>> x_ = 1 * 2
"""
AS_RST = r"""Fit x\_ with \|beta\|_1.

::

    min over beta    max over a_

to a gap [1]_, see :doc:`/losses`. Phases:

1. first \*one\*,
   of two lines;
2. `second_`.

Parameters
----------
x\_ : array
    The \| values.

References
----------

.. [1] A. Author, Title,
   2005.

Examples
--------

>>> x_ = 1 * 2
"""


def test_docstrings_become_restructured_text():
    spec = importlib.util.spec_from_file_location("plain_docstrings", ROOT / "docs" / "_ext" / "plain_docstrings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.plain(DOCSTRING.splitlines()) == AS_RST.splitlines()


def test_the_map_has_the_rooms_in_the_order_that_imports_follow():
    rows = re.findall(r"^\| (`.+?) \|", section("architecture.md", "The rooms"), re.MULTILINE)
    levels = [LEVEL[name] for row in rows for name in re.findall(r"`(\w+)/?`", row)]
    assert levels == sorted(levels) and len(levels) >= len(multikernel._SUBMODULES)


def test_the_checks_see_what_does_not_exist():
    assert resolves("multikernel.solvers.newton.Newton") and resolves("multikernel.MKLClassifier")
    assert not resolves("multikernel.solvers.newtn") and not resolves("multikernel.MKLClassifier.no_method")
    assert dotted_names("in `multikernel.gram.dense`, and `multikernel compare`.") == {"multikernel.gram.dense"}
    assert mentioned_targets("    make demo     # shows\nRun `make nothing`, or make sense.") == {"demo", "nothing"}
    assert make_targets("docs: $(VENV)/.docs\n\tsphinx docs site\ntest-oldest:\n") == {"docs", "test-oldest"}
    assert mentioned_paths("see `benchmarks/run.py` and [docs](docs/index.md)") == {"benchmarks/run.py"}


def test_the_citation_has_the_version_of_the_package():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == multikernel.__version__
