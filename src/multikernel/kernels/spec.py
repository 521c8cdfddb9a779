"""What a user writes as the kernels of a model, made into a flat list of (name, kernel, columns).

    spec   =  "rbf"  |  kernel  |  family  |  [entry, ...]
    entry  =  spec  |  (name, spec without names, columns)

A kernel is a `Kernel` or any callable k(X, Y).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from multikernel.kernels.base import as_kernel, kernel_name
from multikernel.kernels.families import Family, rbf_family


@dataclass(frozen=True)
class _Entry:
    prefix: str  # of the names of the members of a named list
    name: str
    kernel: object
    columns: object
    given: bool  # whether the user gave the name

    @property
    def full(self) -> str:
        return self.prefix + self.name


def named_entries(spec) -> list[tuple[str, object, object]]:
    """Return what the user wrote as a flat list of (name, kernel or family, columns), with unique names.

    Examples
    --------
    >>> from multikernel.kernels import Linear, rbf_family
    >>> spec = [Linear(), Linear(), ("f", rbf_family([1.0, 2.0]), slice(0, 2))]
    >>> [name for name, kernel, columns in named_entries(spec)]
    ['linear', 'linear-2', 'f: rbf(width=1)', 'f: rbf(width=2)']
    """
    return _triples(_entries(spec))


def expand_entries(spec, X) -> list[tuple[str, object, object]]:
    """Return the same list with every family replaced by its kernels on the columns of X.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.kernels import Linear, per_column
    >>> [name for name, kernel, columns in expand_entries([("f", per_column(Linear()), [0, 2])], np.eye(3))]
    ['f: linear[0]', 'f: linear[2]']
    """
    members = []
    for entry in _entries(spec):
        if isinstance(entry.kernel, Family):
            prefix = f"{entry.name}: " if entry.given else entry.prefix
            for name, kernel, columns in entry.kernel.expand(X, entry.columns):
                members.append(_Entry(prefix, name, kernel, columns, False))
        else:
            members.append(entry)
    return _triples(members)


def _entries(spec) -> list[_Entry]:
    entries = list(_flatten(spec, "", None))
    if not entries:
        raise ValueError("The 'kernels' parameter must hold at least one kernel. Got none.")
    for name, count in Counter(entry.name for entry in entries if entry.given).items():
        if count > 1:
            raise ValueError(f"The names of the kernels must be unique. Got {name!r} {count} times.")
        if "__" in name:
            raise ValueError(f"The names of the kernels must not contain '__'. Got {name!r} instead.")
    return entries


def _flatten(spec, prefix: str, columns) -> Iterator[_Entry]:
    if isinstance(spec, str):
        if spec != "rbf":
            raise ValueError(
                "The 'kernels' parameter must be 'rbf', a kernel, or a list of kernels and of "
                f"(name, kernel, columns). Got {spec!r} instead."
            )
        spec = rbf_family()
    if isinstance(spec, tuple):
        if len(spec) != 3 or not isinstance(spec[0], str) or prefix:
            raise ValueError(
                f"An entry of 'kernels' must be a kernel or (name, kernel, columns). Got {spec!r} instead."
            )
        name, kernel, columns = spec
        if isinstance(kernel, (list, str)):
            yield from _flatten(kernel, f"{name}: ", columns)
        else:
            yield _Entry("", name, _valid(kernel), columns, True)
    elif isinstance(spec, list):
        for entry in spec:
            yield from _flatten(entry, prefix, columns)
    else:
        name = str(_valid(spec)) if isinstance(spec, Family) else kernel_name(spec)
        yield _Entry(prefix, name, spec, columns, False)


def _valid(kernel):
    if not isinstance(kernel, Family):
        as_kernel(kernel)
    return kernel


def _triples(entries: list[_Entry]) -> list[tuple[str, object, object]]:
    """Keep the given names, and number the others that occur again: 'rbf', 'rbf-2', 'rbf-3'."""
    taken = {entry.full for entry in entries if entry.given}
    result = []
    for entry in entries:
        number, name = 2, entry.full
        while not entry.given and name in taken:
            name, number = f"{entry.full}-{number}", number + 1
        taken.add(name)
        result.append((name, entry.kernel, entry.columns))
    return result
