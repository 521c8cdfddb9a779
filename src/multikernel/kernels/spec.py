"""What a user writes as the kernels of a model, made into a flat list of (name, kernel, columns); families of kernels.

    spec   =  kernel  |  family  |  [entry, ...]  |  {view: spec without names, ...}
    entry  =  spec  |  (name, spec without names, columns)

A kernel is a `Kernel`, its name ("linear"; "rbf" is `rbf_family()`), or any callable k(X, Y). A `Family` becomes
kernels once the columns of the samples are known. On `Views` a kernel without columns stands for one kernel on every
view.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, clone

from multikernel.kernels.base import as_kernel, is_integer, is_real, kernel_name, named_kernel
from multikernel.kernels.inputs import columns_of, resolve_columns
from multikernel.kernels.radial import RBF

Entry = tuple[str, object, object]


@dataclass(frozen=True)
class _Entry:
    prefix: str  # of the names in a named list
    name: str
    kernel: object
    columns: object
    given: bool  # whether the user gave the name


def named_entries(spec) -> list[Entry]:
    """Return what the user wrote as a flat list of (name, kernel or family, columns), with unique names.

    Examples
    --------
    >>> from multikernel.kernels import Linear, rbf_family
    >>> spec = [Linear(), Linear(), ("f", rbf_family([1.0, 2.0]), slice(0, 2))]
    >>> [name for name, kernel, columns in named_entries(spec)]
    ['linear', 'linear-2', 'f: rbf(width=1)', 'f: rbf(width=2)']
    """
    return expand_entries(spec, None)


def expand_entries(spec, X) -> list[Entry]:
    """Return the same list with every family replaced by its kernels on the columns of X, unless X is None.

    Given names are kept, others that occur again are numbered: 'rbf', 'rbf-2', 'rbf-3'.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.kernels import Linear, per_column
    >>> [name for name, kernel, columns in expand_entries([("f", per_column(Linear()), [0, 2])], np.eye(3))]
    ['f: linear[0]', 'f: linear[2]']
    """
    entries, given = [], Counter[str]()
    if hasattr(X, "kernels_by_view"):
        spec = X.kernels_by_view(spec)
    for entry in _flatten(spec, "", None):
        if entry.given:
            given[entry.name] += 1
        if X is not None and isinstance(entry.kernel, Family):
            prefix = f"{entry.name}: " if entry.given else entry.prefix
            for name, kernel, columns in entry.kernel.expand(X, entry.columns):
                entries.append(_Entry(prefix, name, kernel, columns, False))
        else:
            entries.append(entry)
    if not entries:
        raise ValueError("The 'kernels' parameter must hold at least one kernel. Got none.")
    for name, count in given.items():
        if count > 1:
            raise ValueError(f"The names of the kernels must be unique. Got {name!r} {count} times.")
        if "__" in name:
            raise ValueError(f"The names of the kernels must not contain '__'. Got {name!r} instead.")
    result, taken = [], set(given)
    for entry in entries:
        full = name = entry.prefix + entry.name
        number = 2
        while not entry.given and name in taken:
            name, number = f"{full}-{number}", number + 1
        taken.add(name)
        result.append((name, entry.kernel, entry.columns))
    return result


def _flatten(spec, prefix: str, columns) -> Iterator[_Entry]:
    """Yield the entries of a spec; those of a named list have a prefix and the columns of the list."""
    if isinstance(spec, str):
        spec = rbf_family() if spec == "rbf" else named_kernel(spec)
    if isinstance(spec, Mapping):
        spec = [(view, each, view) for view, each in spec.items()]
    if isinstance(spec, tuple):
        if len(spec) != 3 or not isinstance(spec[0], str) or prefix:
            raise ValueError(
                f"An entry of 'kernels' must be a kernel or (name, kernel, columns). Got {spec!r} instead."
            )
        name, kernel, columns = spec
        kernel = named_kernel(kernel) if isinstance(kernel, str) and kernel != "rbf" else kernel
        if isinstance(kernel, (list, str)):
            yield from _flatten(kernel, f"{name}: ", columns)
        else:
            if not isinstance(kernel, Family):
                as_kernel(kernel)
            yield _Entry("", name, kernel, columns, True)
    elif isinstance(spec, list):
        for entry in spec:
            yield from _flatten(entry, prefix, columns)
    else:
        name = str(spec) if isinstance(spec, Family) else as_kernel(spec)._name()
        yield _Entry(prefix, name, spec, columns, False)


class Family(BaseEstimator):
    """Base class of what becomes several kernels once the columns of the samples are known."""

    def expand(self, X, columns=None) -> list[Entry]:
        """Return the kernels as (name, kernel, columns).

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Training samples.
        columns : None, int, str, slice, sequence or callable
            The columns given to the whole family.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define expand.")


class PerColumn(Family):
    """The same kernel on every column alone; see `per_column`."""

    def __init__(self, kernel):
        self.kernel = kernel

    def expand(self, X, columns=None):
        """Return one entry per kernel and column."""
        d, names = columns_of(X)
        if d is None:
            raise ValueError("per_column needs samples with columns. Got samples without columns.")
        positions = resolve_columns(columns, X, "per_column") or range(d)
        labels = {i: i if names is None else names[i] for i in positions}
        # one clone of each kernel, and shallow copies: there may be a hundred thousand columns
        members = [(kernel_name(kernel), clone(kernel, safe=False)) for kernel in _members(self.kernel)]
        return [(f"{name}[{labels[i]}]", copy(kernel), (i,)) for i in positions for name, kernel in members]


class PerGroup(Family):
    """The same kernel on every group of columns; see `per_group`."""

    def __init__(self, kernel, groups):
        self.kernel = kernel
        self.groups = groups

    def expand(self, X, columns=None):
        """Return one entry per kernel and group."""
        if columns is not None:
            raise ValueError(f"per_group names its own columns: the entry's must be None. Got {columns!r} instead.")
        if not isinstance(self.groups, (Mapping, Sequence)) or isinstance(self.groups, str) or not len(self.groups):
            raise ValueError(
                f"The 'groups' parameter of per_group must be a list or a dict of columns. Got {self.groups!r} instead."
            )
        groups = self.groups.items() if isinstance(self.groups, Mapping) else enumerate(self.groups)
        return [
            (f"{kernel_name(kernel)}[{label}]", clone(kernel, safe=False), chosen)
            for label, chosen in groups
            for kernel in _members(self.kernel)
        ]


def rbf_family(widths=None, *, gammas=None, factors=None, quantile: float = 0.5) -> list[RBF]:
    """Return Gaussian kernels that differ in their width.

    Parameters
    ----------
    widths : sequence of float, optional
        Widths w of exp(-|x - z|^2 / w).
    gammas : sequence of float, optional
        Inverses of the widths.
    factors : sequence of float or int, optional
        Multiples of the given quantile of the pairwise distances, whose square is the width. An integer p
        stands for the first p of 2^0, 2^-0.5, 2^0.5, 2^-1, 2^1, ... (Zien and Ong 2007, section 3.1). By
        default the factors are 1/4, 1/2, 1, 2, 4.
    quantile : float, default=0.5
        The quantile that the factors multiply.

    Returns
    -------
    list of RBF
        One kernel per width.

    Examples
    --------
    >>> from multikernel.kernels import rbf_family
    >>> rbf_family([0.5, 2.0])
    [RBF(width=0.5), RBF(width=2.0)]
    >>> [round(kernel.factor, 3) for kernel in rbf_family(factors=5)]
    [1.0, 0.707, 1.414, 0.5, 2.0]
    """
    name, values = "factors", factors
    if factors is not None and is_integer(factors):
        # exponents 0, -1/2, 1/2, -1, 1, ...
        values = [2.0 ** ((-1) ** i * ((i + 1) // 2) / 2) for i in range(factors)]
    for other, given in (("gammas", gammas), ("widths", widths)):
        if given is not None:
            if values is not None:
                raise ValueError(f"Only one of the parameters '{other}' and '{name}' of rbf_family may be given.")
            name, values = other, given
    if values is None:
        values = (0.25, 0.5, 1.0, 2.0, 4.0)
    numbers = np.ravel(values)
    if not len(numbers) or not all(map(is_real, numbers)) or numbers.min() <= 0:
        raise ValueError(f"The '{name}' parameter of rbf_family must be positive numbers. Got {values!r} instead.")
    common = {"quantile": quantile} if name == "factors" else {}
    kernels = []
    for number in numbers:
        kernels.append(RBF(**common, **{name.removesuffix("s"): float(number)}))
    return kernels


def per_column(kernel) -> PerColumn:
    """Return the family of one kernel per column.

    Parameters
    ----------
    kernel : Kernel, callable, or list of these
        The kernel that is fitted on every column alone; of several kernels, such as an `rbf_family`, every one is.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.kernels import KernelBank, RBF, per_column
    >>> KernelBank.fit(per_column(RBF()), np.eye(3)).names
    ['rbf[0]', 'rbf[1]', 'rbf[2]']
    """
    return PerColumn(kernel)


def per_group(kernel, groups) -> PerGroup:
    """Return the family of one kernel per group of columns.

    Parameters
    ----------
    kernel : Kernel, callable, or list of these
        The kernel that is fitted on every group; of several kernels, such as an `rbf_family`, every one is.
    groups : list or dict
        The columns of each group; a dict also names them.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.kernels import KernelBank, Linear, per_group
    >>> KernelBank.fit(per_group(Linear(), {"shape": [0, 1], "size": 2}), np.eye(3)).names
    ['linear[shape]', 'linear[size]']
    """
    return PerGroup(kernel, groups)


def _members(kernel) -> list:
    kernel = rbf_family() if isinstance(kernel, str) and kernel == "rbf" else kernel
    members = list(kernel) if isinstance(kernel, (list, tuple)) else [kernel]
    return [named_kernel(member) if isinstance(member, str) else member for member in members]


def view_of(name: str) -> str:
    """Return the view of a kernel from its name in the bank: what stands before ": ", or in brackets at the end.

    Examples
    --------
    >>> [view_of(name) for name in ("rna: rbf(2)", "rbf[rna]", "rna", "rna: linear[TP53]")]
    ['rna', 'rna', 'rna', 'rna']
    """
    view, colon, _ = name.partition(": ")
    if not colon and name.endswith("]") and "[" in name:
        return name[name.rindex("[") + 1 : -1]
    return view
