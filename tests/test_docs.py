"""The documentation names only what exists, and describes all solvers, statuses and public names."""

import importlib
import re
from pathlib import Path

import pytest
from test_architecture import LEVEL

import multikernel
from multikernel import solution
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
    folders = "src|tests|benchmarks|papers|docs|tools"
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


def test_the_pages_are_those_of_the_navigation():
    shown = re.findall(r"^  - .+: ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(shown) == sorted(page.name for page in PAGES if page.parent.name == "docs")


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


def public_names() -> list[str]:
    packages = ["multikernel", "multikernel.estimators.baselines", "multikernel.kernels.sequences"]
    packages += [f"multikernel.{name}" for name in multikernel._SUBMODULES]
    return [
        f"{package}.{name}"
        for package in packages
        for name in getattr(importlib.import_module(package), "__all__", ())
        if not name.startswith("_")
    ]


def test_the_reference_holds_every_public_class_and_function():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    some = {name: members for name, members in re.findall(r"^::: (\S+)\n {4}options: {members: \[(.+)\]}", text, re.M)}
    # the page of a package shows what its __all__ names, unless it chooses members
    whole = set(re.findall(r"^::: (\S+)$", text, re.MULTILINE)) - set(some)
    chosen = {f"{package}.{name}" for package, members in some.items() for name in members.split(", ")}
    absent = []
    for name in public_names():
        package, _, attribute = name.rpartition(".")
        module = getattr(getattr(importlib.import_module(package), attribute), "__module__", package)
        parents = {module.rsplit(".", cut)[0] for cut in range(1, module.count(".") + 1)}
        if name not in chosen and not {module, package, *parents} & whole:
            absent.append(name)
    assert not absent


@pytest.mark.parametrize("room", multikernel._SUBMODULES)
def test_the_reference_and_the_map_name_every_room(room):
    assert f"::: multikernel.{room}" in (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert f"| `{room}/` |" in section("architecture.md", "The rooms")


def test_the_map_has_the_rooms_in_the_order_that_imports_follow():
    rows = re.findall(r"^\| (`.+?) \|", section("architecture.md", "The rooms"), re.MULTILINE)
    levels = [LEVEL[name] for row in rows for name in re.findall(r"`(\w+)/?`", row)]
    assert levels == sorted(levels) and len(levels) >= len(multikernel._SUBMODULES)


def test_the_checks_see_what_does_not_exist():
    assert resolves("multikernel.solvers.newton.Newton") and resolves("multikernel.MKLClassifier")
    assert not resolves("multikernel.solvers.newtn") and not resolves("multikernel.MKLClassifier.no_method")
    assert dotted_names("in `multikernel.gram.dense`, and `multikernel compare`.") == {"multikernel.gram.dense"}
    assert mentioned_targets("    make demo     # shows\nRun `make nothing`, or make sense.") == {"demo", "nothing"}
    assert make_targets("docs: $(VENV)/.docs\n\tmkdocs build\ntest-oldest:\n") == {"docs", "test-oldest"}
    assert mentioned_paths("see `benchmarks/run.py` and [docs](docs/index.md)") == {"benchmarks/run.py"}
