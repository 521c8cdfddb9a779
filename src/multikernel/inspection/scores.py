"""The contribution of every position to a prediction.

    f(x) = offset + sum over positions l of s_l(x) + rest(x)

A d-mer of x that some support sequence has at the same position, or a counted k-mer that some support sequence has
anywhere, adds its weight W to the decision function. The d positions of the d-mer share W equally, W / d each; in a
motif with gaps the positions of its letters do, and the gaps get nothing. Under `WeightedDegreeShift` a match between x
at l and a support sequence at l + s counts for l, the position in x. Nothing is approximated: the scores of a sequence,
the offset and the rest add up to its decision function.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils import gen_batches

from multikernel.estimators.validation import check_samples
from multikernel.inspection.style import BLUE, GREEN, PURPLE, VERMILION, new_axes, text_colour, tidy
from multikernel.inspection.terms import SequenceTerms, encode_samples, read_terms
from multikernel.inspection.writing import MOST_SEPARATE, save_both
from multikernel.kernels.approximate import code_matrix
from multikernel.kernels.bank import take_rows
from multikernel.kernels.inputs import len_of
from multikernel.kernels.sequences.samples import as_sequences

# colours of nucleotides; other letters are grey
_COLOURS = {"A": GREEN, "C": BLUE, "G": PURPLE, "T": VERMILION, "U": VERMILION}


@dataclass(frozen=True, eq=False)
class PositionScores:
    """What `score_positions` found.

    Attributes
    ----------
    values : ndarray of shape (n, L)
        s_l(x) of every sequence; zero beyond the end of a shorter one.
    rest : ndarray of shape (n,)
        Sum of all other kernels: those on numbers, on other columns, or on sequences but not sums over positions.
    offset : float
        The constant: the intercept plus the constants of centred kernels.
    sequences : list of str
        The sequences.
    """

    values: np.ndarray
    rest: np.ndarray
    offset: float
    sequences: list[str]

    @property
    def decision(self) -> np.ndarray:
        """The decision function, shape (n,): the sum of all parts."""
        return self.offset + self.values.sum(axis=1) + self.rest

    def _columns(self) -> dict[str, Any]:
        lengths = np.array([len(text) for text in self.sequences], np.intp)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        places = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        letters = list("".join(self.sequences))
        return {"sequence": rows, "position": places, "letter": letters, "score": self.values[rows, places]}

    def to_frame(self) -> Any:
        """Return a pandas data frame: sequence, position, letter, score."""
        import pandas as pd

        return pd.DataFrame(self._columns())

    def plot(self, row: int = 0, *, ax: Any = None, origin: int = 0, window: tuple[int, int] | None = None) -> Any:
        """Draw the scores of one sequence, one bar for each letter.

        Parameters
        ----------
        row : int, default=0
            Which sequence.
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.
        origin : int, default=0
            Position that the axis labels as 0.
        window : (int, int), optional
            Positions [start, stop) to draw; by default all.

        Returns
        -------
        matplotlib Axes
            The axes drawn on.
        """
        ax = new_axes(ax, (8.0, 2.6))
        text = self.sequences[row]
        start, stop = (0, len(text)) if window is None else (max(0, window[0]), min(window[1], len(text)))
        places, shown = np.arange(start, stop), self.values[row, start:stop]
        colours = [_COLOURS.get(letter.upper(), "0.5") for letter in text[start:stop]]
        ax.bar(places - origin, shown, width=0.9, color=colours)
        if len(places) <= MOST_SEPARATE:
            for place, height in zip(places, shown, strict=True):
                ax.annotate(
                    text[place], (place - origin, height), (0, 2 if height >= 0 else -2), textcoords="offset points",
                    ha="center", va="bottom" if height >= 0 else "top", fontsize="small", family="monospace",
                )  # fmt: skip
        ax.axhline(0.0, color=text_colour(), linewidth=0.8)
        ax.margins(x=0.01, y=0.15)
        ax.set(xlabel="position", ylabel="score", title=f"sequence {row}: decision function {self.decision[row]:.3g}")
        tidy(ax, "y")
        return ax

    def save(self, folder: str | os.PathLike, row: int = 0, **options: Any) -> list[Path]:
        """Write ``scores.csv`` (all sequences) and ``scores.png`` (one of them) into a folder; return both paths.

        Further ``options`` are those of `plot`.
        """
        return save_both(folder, "scores", self._columns(), lambda: self.plot(row, **options).figure)


def score_positions(model: Any, sequences: Any, *, output: int | None = None, column: Any = None) -> PositionScores:
    """Return the contribution of every position of sequences to their decision function.

    Parameters
    ----------
    model : MKLClassifier, MKLRegressor, MKLOneClass, ...
        Fitted, with kernels computed from sequences, in memory, row by row or by features.
    sequences : list of str, array, Series or data frame
        Samples as `predict` takes them.
    output : int, optional
        Number of the output, for models with several: a class of ``classes_``, a pair of ``pairs_``, a target. A joint
        model of two classes has two outputs; its decision function is the second minus the first.
    column : str or int, optional
        The column of sequences, needed if the kernels use several.

    Returns
    -------
    PositionScores
        ``values`` of shape (n, L), and the ``offset`` and ``rest`` that make their sums the decision function.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier
    >>> from multikernel.datasets import dna
    >>> from multikernel.inspection import score_positions
    >>> from multikernel.kernels import Spectrum, WeightedDegree
    >>> sequences, y = dna(100, 20, motif="GATTACA", at=8, mutation=0.1)
    >>> model = MKLClassifier([WeightedDegree(4), Spectrum(3)]).fit(sequences, y)
    >>> scores = score_positions(model, sequences)
    >>> scores.values.shape, bool(np.allclose(scores.decision, model.decision_function(sequences)))
    ((100, 20), True)
    >>> profile = (y[:, None] * scores.values).mean(axis=0)
    >>> bool(8 <= profile.argmax() < 15)
    True
    """
    terms = read_terms(model, "score_positions", output, column)
    X = check_samples(model, sequences, reset=False)
    texts = _texts(terms, X)
    width = max(map(len, texts), default=0)
    values = np.zeros((len(texts), width))
    # scoring a block takes about eight arrays of float64 of its size: they fit into scikit-learn's working memory (MiB)
    size = int(get_config()["working_memory"] * 2**20 / (8 * 8 * max(width, 1)))
    for block in gen_batches(len(texts), max(1, size)):
        values[block] = _score(terms, take_rows(X, block), width)
    rest = np.zeros(len(texts)) if terms.rest is None else terms.rest(X)
    return PositionScores(values, rest, terms.offset, texts)


def _texts(terms: SequenceTerms, X: Any) -> list[str]:
    samples = as_sequences(terms.bank.select(terms.members[0], X), "score_positions")
    letters, offsets = samples.letters()
    whole = letters.tobytes().decode("latin-1")
    return [whole[offsets[i] : offsets[i + 1]] for i in samples.index]


def _score(terms: SequenceTerms, X: Any, width: int) -> np.ndarray:
    out = np.zeros((len_of(X), width))
    for group in terms.positions:
        codes = code_matrix(terms.bank.kernels[group.kernel], terms.bank.select(group.kernel, X))
        out += group.scores(codes, [None if layer.factor is None else layer.factor(X) for layer in group.layers])
    for term in terms.patterns:
        encoded = encode_samples(terms.bank, term.kernel, X)
        out += term.scores(encoded, None if term.factor is None else term.factor(X), width)
    return out
