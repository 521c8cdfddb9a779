"""Pip constraints that pin every direct dependency to the lowest version that pyproject.toml allows.

    python tools/lowest.py [EXTRA ...] > constraints.txt       run by `make test-oldest`

Prints one line ``name==version`` for each ``name>=version`` of the dependencies and of the extras that are named. A
dependency without a lower bound is an error: nothing says from which version on it works.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# name, extras in brackets, lowest version; upper bounds and markers may follow
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[[^]]*\])?\s*>=\s*(?P<version>[\w.]+)")


def lowest_versions(project, extras):
    """The lowest version of each direct dependency, by name.

    Parameters
    ----------
    project : dict
        The table ``project`` of a pyproject.toml.
    extras : sequence of str
        Names of the optional dependencies to include.
    """
    optional = project.get("optional-dependencies", {})
    versions = {}
    for requirement in [*project["dependencies"], *(line for extra in extras for line in optional[extra])]:
        match = REQUIREMENT.match(requirement)
        if match is None:
            raise ValueError(f"The dependency {requirement!r} has no lower bound: write it as name>=version.")
        name, version = match["name"], match["version"]
        if versions.setdefault(name, version) != version:
            raise ValueError(f"The dependency {name} has two lower bounds, {versions[name]} and {version}: write one.")
    return versions


def main(extras):
    """Print the constraints of this project with these extras; return the exit status."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    unknown = sorted(set(extras) - set(project["optional-dependencies"]))
    if unknown:
        print(f"pyproject.toml has no optional dependencies named {', '.join(map(repr, unknown))}.", file=sys.stderr)
        return 2
    for name, version in lowest_versions(project, extras).items():
        print(f"{name}=={version}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
