"""Views and kernels by the types of the data: `make_views`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from multikernel.gram.stack import KernelStack
from multikernel.kernels.base import kernel_name
from multikernel.kernels.from_stack import Stacked
from multikernel.kernels.inputs import is_frame
from multikernel.kernels.radial import RBF
from multikernel.kernels.sequences.alphabet import DNA, PROTEIN, RNA, infer_alphabet
from multikernel.kernels.sequences.degree import WeightedDegree
from multikernel.kernels.sequences.encode import to_bytes
from multikernel.kernels.sequences.spectrum import Spectrum
from multikernel.kernels.vectors import Linear, Tanimoto
from multikernel.kernels.views.encoders import ColumnEncoder, TermEncoder
from multikernel.kernels.views.groups import as_pandas
from multikernel.kernels.views.reading import View
from multikernel.kernels.views.views import Views


def make_views(data: Any, groups: Any = None, *, verbose: bool = True) -> Views:
    """Return views with an encoding and kernels for each, by the type of its data.

    Scales, categories, words and their weights are learned on the training samples of each fit and each fold.

    ============= ============================================= ============================= =======================
    kind          what it is                                    encoding                      kernels
    ============= ============================================= ============================= =======================
    numeric       numbers                                       mean 0, variance 1            Gaussians, linear
    binary        zeros and ones only                           none                          Tanimoto, linear
    counts        whole numbers, most zero, some in each column tf-idf, length 1              Gaussian, linear
    dense counts  the same, with missing values                 log(1 + x), then as numeric   Gaussians, linear
    categorical   columns of a data frame that are no numbers   a column for each category    Gaussians, linear
    mixed         categories and numbers                        both of these                 Gaussians, linear
    text          texts of words                                words by tf-idf, length 1     Gaussian, linear
    sequence      texts of nucleotides or residues              none                          spectrum, weighted degree
    kernel        a KernelStack                                 none                          each of its kernels
    ============= ============================================= ============================= =======================

    Gaussians have a quarter, half, once, twice and four times the median distance as their length. The weighted degree
    kernel is proposed where all sequences have one length.

    Parameters
    ----------
    data : dict, list, data frame, array, AnnData, MuData or Views
        As for `Views`. A data frame without groups becomes a view of its numbers, one of its categories and one of each
        column of texts.
    groups : mapping, list, str or path, optional
        As for `Views`.
    verbose : bool, default=True
        Whether to print what was chosen.

    Returns
    -------
    Views
        For estimators with ``kernels="auto"``, or with ``kernels=views.kernels``.

    Examples
    --------
    >>> import pandas as pd
    >>> from multikernel import make_views
    >>> table = pd.DataFrame({"age": [50, 61], "stage": ["I", "I"], "dna": ["ACGT", "AGGT"]})
    >>> views = make_views(table)
    numbers     numeric      1 column  mean 0, variance 1       rbf(0.25), rbf(0.5), rbf, rbf(2), rbf(4), linear
    categories  categorical  1 column  one column per category  rbf(0.25), rbf(0.5), rbf, rbf(2), rbf(4), linear
    dna         sequence     texts     none                     spectrum, weighted_degree
    """
    if verbose not in (True, False):
        raise ValueError(f"The 'verbose' parameter of make_views must be True or False. Got {verbose!r} instead.")
    if not isinstance(data, Views):
        if groups is None and is_frame(data):
            data = _by_type(as_pandas(data))
        data = Views(data, groups)
    proposed = Views(data)
    views = [_propose(view) for view in data._store.views]
    proposed._store = type(data._store)(views, data._store.index)
    if verbose:
        print(described(views))
    return proposed


def described(views: list[View]) -> str:
    """Return what was chosen, one line for each view."""
    rows = []
    for view in views:
        names = ", ".join(map(kernel_name, view.kernels))
        lacking, gaps = int(view.missing.sum()), view.gaps()
        note = f"; {lacking} samples lack it" if lacking else ""
        note += f"; {gaps} values are missing" if gaps else ""
        rows.append((view.name, view.kind, view.described(), _ENCODINGS[view.kind], names + note))
    widths = [max(len(row[j]) for row in rows) for j in range(4)]
    return "\n".join("  ".join(part.ljust(w) for part, w in zip(row, [*widths, 0], strict=True)) for row in rows)


_ENCODINGS = {
    "numeric": "mean 0, variance 1",
    "binary": "none",
    "counts": "tf-idf, length 1",
    "dense counts": "log(1 + x), mean 0, variance 1",
    "categorical": "one column per category",
    "mixed": "one column per category, mean 0, variance 1",
    "text": "words by tf-idf, length 1",
    "sequence": "none",
    "kernel": "none",
}


def _by_type(frame: Any) -> dict[str, Any]:
    """Return the views of a data frame: its numbers, its categories, and each column of texts."""
    numbers, categories, texts = [], [], {}
    for j, name in enumerate(frame.columns):
        column = frame.iloc[:, j]
        kind = getattr(column.dtype, "kind", "O")
        if kind in "iufb":
            numbers.append(j)
        elif kind == "O" and _are_texts(column):
            texts[str(name)] = column
        else:
            categories.append(j)
    found = {"numbers": frame.iloc[:, numbers]} if numbers else {}
    if categories:
        found["categories"] = frame.iloc[:, categories]
    return {**found, **texts}


def _are_texts(column: Any) -> bool:
    """Whether the texts of a column are read letter by letter or word by word: most differ, or hold several words."""
    values = [value for value in column if isinstance(value, str)]
    if not values:
        return False
    several = sum(len(value.split()) > 2 for value in values)
    return 2 * several > len(values) or (2 * len(set(values)) > len(values) and _kind_of_texts(values) == "sequence")


def _kind_of_texts(values: Any) -> str:
    """Return "sequence" for texts over an alphabet of nucleotides or residues, else "text"."""
    texts = [value.strip() for value in values if isinstance(value, str) and value.strip()]
    if not texts or any(" " in text for text in texts):
        return "text"
    try:
        alphabet = infer_alphabet(to_bytes(texts, "The samples")[0])
    except ValueError:
        return "text"
    return "sequence" if alphabet in (DNA, RNA, PROTEIN) else "text"


def _propose(view: View) -> View:
    """Return the view with its kind, an encoder and kernels."""
    samples = view.samples
    widths, gaussian = [RBF(factor=factor) for factor in (0.25, 0.5, 1.0, 2.0, 4.0)], [RBF()]
    if isinstance(samples, KernelStack):
        return replace(view, kind="kernel", kernels=[Stacked(name) for name in samples.names])
    if hasattr(samples, "iloc"):
        mixed = any(getattr(kind, "kind", "O") in "iuf" for kind in samples.dtypes)
        kind = "mixed" if mixed else "categorical"
        return replace(view, kind=kind, encoder=ColumnEncoder(), kernels=[*widths, Linear()])
    if getattr(samples, "ndim", 2) == 1:
        kind = _kind_of_texts(samples)
        if kind == "text":
            return replace(view, kind=kind, encoder=TermEncoder(), kernels=[*gaussian, Linear()])
        lengths = {len(text) for text in samples if text is not None}
        kernels = [Spectrum(), *([WeightedDegree()] if len(lengths) == 1 else [])]
        return replace(view, kind=kind, kernels=kernels)
    values = samples.data if sparse.issparse(samples) else samples[~np.isnan(samples)]
    whole = len(values) > 0 and values.min() >= 0 and not np.any(values % 1)
    if whole and values.max() <= 1:
        return replace(view, kind="binary", kernels=[Tanimoto(), Linear()])
    # a column of numbers, such as an amount beside indicators of categories, has no zeros
    most = np.max((samples != 0).sum(axis=0))
    if whole and values.max() > 2 and 2 * np.count_nonzero(values) < np.prod(samples.shape) and most < samples.shape[0]:
        if not view.gaps():
            return replace(view, kind="counts", encoder=TermEncoder(), kernels=[*gaussian, Linear()])
        return replace(view, kind="dense counts", encoder=ColumnEncoder(logarithm=True), kernels=[*widths, Linear()])
    if sparse.issparse(samples):
        # scaled columns would not be sparse
        return replace(view, kind="numeric", kernels=[*widths, Linear()])
    return replace(view, kind="numeric", encoder=ColumnEncoder(), kernels=[*widths, Linear()])
