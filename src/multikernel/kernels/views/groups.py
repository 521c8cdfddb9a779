"""Groups of columns as views: names, patterns, selectors, or the gene sets of a GMT file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from multikernel.kernels.inputs import is_frame, resolve_columns, take_columns


def column_groups(X: Any, groups: Any) -> dict[str, Any]:
    """Return the views that groups of columns of one table make.

    Parameters
    ----------
    X : data frame (pandas or polars), or array with a mapping of positions
        The samples.
    groups : mapping, list, str or path
        A mapping from the name of a view to its columns: names, a pattern ("gene_*", or "gene_" for all that begin so),
        a list of these, positions, a slice, a mask, or a selector such as
        `sklearn.compose.make_column_selector`. A list of patterns names the views after them. The path of a GMT file
        makes one view of each gene set with a column in X.

    Returns
    -------
    dict
        Samples by the name of the view, as `Views` takes them.

    Examples
    --------
    >>> import pandas as pd
    >>> from multikernel import column_groups
    >>> table = pd.DataFrame({"gene_a": [1.0], "gene_b": [2.0], "age": [50.0]})
    >>> parts = column_groups(table, {"rna": "gene_*", "clinical": ["age"]})
    >>> {name: list(part.columns) for name, part in parts.items()}
    {'rna': ['gene_a', 'gene_b'], 'clinical': ['age']}
    """
    if is_frame(X):
        X = as_pandas(X)
    if isinstance(groups, (str, os.PathLike)):
        names, sets = set(map(str, getattr(X, "columns", ()))), read_gmt(groups)
        groups = {name: [gene for gene in genes if gene in names] for name, genes in sets.items()}
        groups = {name: genes for name, genes in groups.items() if genes}
        if not groups:
            raise ValueError("The gene sets must name columns of X. Got none that do.")
    if isinstance(groups, Sequence):
        groups = {str(group).strip("*_.:- ") or str(group): group for group in groups}
    if not isinstance(groups, Mapping) or not groups:
        raise ValueError(
            "The 'groups' parameter must be a mapping from views to columns, a list of patterns or the path of a GMT "
            f"file. Got {groups!r} instead."
        )
    found = {}
    for name, columns in groups.items():
        found[str(name)] = take_columns(X, resolve_columns(columns, X, f"the view '{name}'"))
    return found


def read_gmt(path: str | os.PathLike) -> dict[str, list[str]]:
    r"""Return the gene sets of a GMT file: each line has a name, a description and the genes, between tabs.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from multikernel import read_gmt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "sets.gmt"
    ...     _ = path.write_text("APOPTOSIS\tnone\tTP53\tBAX\n")
    ...     read_gmt(path)
    {'APOPTOSIS': ['TP53', 'BAX']}
    """
    sets: dict[str, list[str]] = {}
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        fields = [part.strip() for part in line.split("\t")]
        if not line.strip():
            continue
        if len(fields) < 3 or not fields[0]:
            raise ValueError(
                f"Line {number} of the GMT file '{path}' must hold a name, a description and genes between tabs. "
                f"Got {line[:60]!r} instead."
            )
        sets[fields[0]] = list(dict.fromkeys(gene for gene in fields[2:] if gene))
    return sets


def as_pandas(frame: Any) -> Any:
    """Return a data frame of another library, such as polars, as one of pandas."""
    if hasattr(frame, "iloc"):
        return frame
    import pandas as pd

    return pd.DataFrame({name: np.asarray(frame[name]) for name in frame.columns})
