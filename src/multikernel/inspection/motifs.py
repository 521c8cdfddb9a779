"""The motifs of a decision function with their weights, exactly, from the support sequences.

    f(x) = offset + sum over (l, u) of W_lu [x has the d-mer u at l] + sum over patterns u of W_u c_u(x) + rest(x)

    W_lu = sum_k beta_k w_kld sum_i a_i [x_i has u at l],        W_u = sum_k beta_k sum_i a_i c_u(x_i)

w_kld and beta_k include the normalisation of their kernel. With shifts a support sequence that has u at l + s counts at
l as well.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from multikernel.inspection.patterns import PatternTerm
from multikernel.inspection.positions import PositionTerms
from multikernel.inspection.terms import SequenceTerms, read_terms
from multikernel.inspection.writing import write_columns
from multikernel.kernels.base import is_integer


@dataclass(frozen=True)
class Motif:
    """One motif: its letters, its position (None: anywhere), the slice of sequences it is counted in, its weight."""

    motif: str
    position: int | None
    region: str
    weight: float

    @property
    def length(self) -> int:
        """The number of letters, gaps included."""
        return len(self.motif)


class Motifs(tuple):
    """Motifs, largest absolute weight first: a tuple of `Motif` that can be saved as a table."""

    __slots__ = ()

    def _columns(self) -> dict[str, list]:
        names = ("motif", "position", "length", "region", "weight")
        return {name: [getattr(each, name) for each in self] for name in names}

    def to_frame(self) -> Any:
        """Return a pandas data frame: motif, position, length, region, weight."""
        import pandas as pd

        return pd.DataFrame(self._columns()).astype({"position": "Int64"})

    def save(self, path: str | os.PathLike) -> Path:
        """Write the table as CSV; return its path."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_columns(path, self._columns())
        return path


def top_motifs(
    model: Any,
    n: int = 20,
    *,
    length: int | None = None,
    positions: tuple[int, int] | None = None,
    output: int | None = None,
    column: Any = None,
) -> Motifs:
    """Return the motifs of largest weight, positive or negative, in the decision function.

    Parameters
    ----------
    model : MKLClassifier, MKLRegressor, MKLOneClass, ...
        Fitted, with kernels computed from sequences.
    n : int, default=20
        Number of motifs to return.
    length : int, optional
        Only motifs of this length, gaps included.
    positions : (int, int), optional
        Only d-mers that begin at a position in [start, stop); motifs without a position are left out.
    output : int, optional
        Number of the output, for models with several: a class of ``classes_``, a pair of ``pairs_``, a target. A joint
        model of two classes has two outputs; its decision function is the second minus the first.
    column : str or int, optional
        The column of sequences, needed if the kernels use several.

    Returns
    -------
    Motifs
        d-mers with their positions; k-mers and motifs with gaps (written as points) without one.

    Examples
    --------
    >>> from multikernel import MKLClassifier
    >>> from multikernel.datasets import dna
    >>> from multikernel.inspection import top_motifs
    >>> from multikernel.kernels import WeightedDegree
    >>> sequences, y = dna(200, 20, motif="GATTACA", at=8, mutation=0.1)
    >>> model = MKLClassifier([WeightedDegree(7)]).fit(sequences, y)
    >>> [(each.motif, each.position) for each in top_motifs(model, 2, length=3)]
    [('TAC', 11), ('ACA', 12)]
    """
    if not is_integer(n) or n < 1:
        raise ValueError(f"The 'n' parameter of top_motifs must be a positive integer. Got {n!r} instead.")
    if length is not None and (not is_integer(length) or length < 1):
        raise ValueError(
            f"The 'length' parameter of top_motifs must be None or a positive integer. Got {length!r} instead."
        )
    valid = positions is None or (
        isinstance(positions, (tuple, list)) and len(positions) == 2 and all(is_integer(end) for end in positions)
    )
    if not valid:
        raise ValueError(
            f"The 'positions' parameter of top_motifs must be None or a pair (start, stop). Got {positions!r} instead."
        )
    terms = read_terms(model, "top_motifs", output, column)
    _refuse_cosine(terms)
    found: list[Motif] = []
    for group in terms.positions:
        found = _largest(found + _at_positions(group, n, length, positions), n)
    if positions is None:
        found = _largest(found + _anywhere(terms, n, length), n)
    return Motifs(found)


def _refuse_cosine(terms: SequenceTerms) -> None:
    divided = any(layer.factor is not None for group in terms.positions for layer in group.layers)
    if divided or any(term.factor is not None for term in terms.patterns):
        raise ValueError(
            "top_motifs needs kernels in which a motif weighs the same in every sequence: normalize=None, 'variance', "
            "'trace' or 'center'. Got 'cosine', which divides by the norm of each sequence."
        )


def _largest(found: list[Motif], n: int) -> list[Motif]:
    return sorted(found, key=lambda each: (-abs(each.weight), each.motif, each.position or 0))[:n]


def _at_positions(group: PositionTerms, n: int, length: int | None, positions: tuple[int, int] | None) -> list[Motif]:
    """Return the d-mers of largest weight with their positions."""
    found: list[Motif] = []
    letters, m = np.array(list(group.letters)), len(group.codes)
    wanted = range(group.codes.shape[1])[slice(*(positions or (None, None)))]
    for place, order, lcp, reach, here in group.walk():
        if place not in wanted or not here:
            continue
        total = np.zeros((group.degree, len(order)))
        for each in here:
            total[each.degrees - 1] += each.sums * each.layer.weight[place, each.degrees - 1][:, None]
        for d in np.unique(np.concatenate([each.degrees for each in here])):
            if length is not None and d != length:
                continue
            # one representative of each d-mer: the first of the sequences that agree on it
            heads = np.flatnonzero((lcp < d) & (reach[order] >= d) & (total[d - 1] != 0))
            best = heads[np.argsort(-np.abs(total[d - 1, heads]), kind="stable")[:n]]
            for rank in best:
                # sample order[rank] is a support sequence, moved by one of the shifts
                row, r = order[rank] % m, int(group.shifts[order[rank] // m])
                text = "".join(letters[group.codes[row, place - r : place - r + d]])
                found.append(Motif(text, int(place), "", float(total[d - 1, rank])))
        found = _largest(found, n)
    return found


def _anywhere(terms: SequenceTerms, n: int, length: int | None) -> list[Motif]:
    """Return the patterns of largest weight; the weights of kernels that count the same pattern add up."""
    alike: dict[Any, list[PatternTerm]] = {}
    for term in terms.patterns:
        if length is None or term.pattern.span == length:
            alike.setdefault((term.pattern, term.letters), []).append(term)
    found = []
    for (pattern, _), group in alike.items():
        keys, which = np.unique(np.concatenate([term.keys for term in group]), return_inverse=True)
        weights = np.bincount(which.ravel(), np.concatenate([term.weights for term in group]), len(keys))
        start, stop = ("" if end is None else str(end) for end in pattern.region)
        region = "" if pattern.region == (None, None) else f"{start}:{stop}"
        for i in np.argsort(-np.abs(weights), kind="stable")[:n]:
            if weights[i]:
                found.append(Motif(group[0].text(keys[i]), None, region, float(weights[i])))
    return found
