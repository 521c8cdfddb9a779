"""Which positions a model looks at: Sonnenburg, Raetsch & Schaefer 2005, Figure 4.

    weights_ld        = sum_k beta_k w_kld / sum over (l, d) of w_kld
    contributions_ld  = sum_k beta_k w_kld a' M_ld a / sum over (l, d) of the same
    M_ld(i, j)        = [x_i and x_j agree on the d letters from l on]

k runs over the weighted degree kernels, beta_k is the learned weight, w_kld the weight of d-mers at position l within
the kernel (including its normalisation in the second line), a the signed coefficients of the support sequences.

`weights` shows what was learned: the weight of each kernel, spread over the d-mers it counts; its sum is the sum of the
weights of these kernels. `contributions` shows the effect on the decision function: the share of the d-mers in a' K a,
the squared norm of the decision function; its sum is one. If all training sequences have the same d letters at l, then
M_ld is constant, and since the coefficients a sum to zero the contribution is zero. A kernel that counts only such
d-mers is constant and gets no weight.

The value of a pair (l, d) is shown at the position where the d-mer begins, or shared equally by its d positions. Under
`WeightedDegreeShift` l is the position in the scored sequence, not in the support sequence; contributions may then be
negative.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from multikernel.inspection.terms import DEGREE, SequenceTerms, degree_weights, read_terms
from multikernel.inspection.writing import save_both

QUANTITIES = ("weights", "contributions")


@dataclass(frozen=True, eq=False)
class PositionImportance:
    """What `position_importance` found.

    Attributes
    ----------
    weights : ndarray of shape (L, D)
        The learned weight of the d-mers that begin at each position, d = 1, ..., D, as in the module docstring.
    contributions : ndarray of shape (L, D)
        Shares of these d-mers in the squared norm of the decision function.
    """

    weights: np.ndarray
    contributions: np.ndarray

    def by_degree(self, quantity: str = "weights", *, shared: bool = False) -> np.ndarray:
        """Return a quantity by position and degree, shape (L, D).

        Parameters
        ----------
        quantity : {"weights", "contributions"}
            The array to return.
        shared : bool, default=False
            Whether the value of a d-mer is shared equally by its d positions; otherwise its first position has all.
        """
        if quantity not in QUANTITIES:
            raise ValueError(
                "The 'quantity' parameter of PositionImportance must be 'weights' or 'contributions'. "
                f"Got {quantity!r} instead."
            )
        values = getattr(self, quantity)
        if not shared:
            return values
        out = np.zeros_like(values)
        for d in range(1, values.shape[1] + 1):
            for j in range(min(d, len(values))):
                out[j:, d - 1] += values[: len(values) - j, d - 1] / d
        return out

    def profile(self, quantity: str = "weights", *, shared: bool = False) -> np.ndarray:
        """Return a quantity by position, summed over the degrees, shape (L,); parameters as of `by_degree`."""
        return self.by_degree(quantity, shared=shared).sum(axis=1)

    def _columns(self) -> dict[str, Any]:
        length, degree = self.weights.shape
        return {
            "position": np.repeat(np.arange(length), degree),
            "degree": np.tile(np.arange(1, degree + 1), length),
            "weight": self.weights.ravel(),
            "contribution": self.contributions.ravel(),
        }

    def to_frame(self) -> Any:
        """Return a pandas data frame: position, degree, weight, contribution."""
        import pandas as pd

        return pd.DataFrame(self._columns())

    def save(self, folder: str | os.PathLike, **options: Any) -> list[Path]:
        """Write ``importance.csv`` and ``importance.png`` into a folder; return their paths.

        Further ``options`` are those of `SequenceImportanceDisplay.plot`.
        """
        from multikernel.inspection.importance_display import SequenceImportanceDisplay

        def draw() -> Any:
            return SequenceImportanceDisplay.from_importance(self, **options).figure_

        return save_both(folder, "importance", self._columns(), draw)


def position_importance(model: Any, *, output: int | None = None, column: Any = None) -> PositionImportance:
    """Return how much each position matters, for each length d of d-mers.

    Parameters
    ----------
    model : MKLClassifier, MKLRegressor, MKLOneClass, ...
        Fitted, with weighted degree kernels among its kernels, whole or split by `PositionBlocks` and `DegreeBlocks`.
    output : int, optional
        Number of the output, for models with several: a class of ``classes_``, a pair of ``pairs_``, a target. A joint
        model of two classes has two outputs; its decision function is the second minus the first.
    column : str or int, optional
        The column of sequences, needed if the kernels use several.

    Returns
    -------
    PositionImportance
        ``weights`` and ``contributions`` by position and degree. Kernels that are constant on the training samples
        have no part in them.

    References
    ----------
    S. Sonnenburg, G. Raetsch, C. Schaefer, A general and efficient multiple kernel learning algorithm, NIPS
    2005, Figure 4.

    Examples
    --------
    >>> from multikernel import MKLClassifier
    >>> from multikernel.datasets import dna
    >>> from multikernel.inspection import position_importance
    >>> from multikernel.kernels import PositionBlocks, WeightedDegree
    >>> sequences, y = dna(200, 20, motif="GATTACA", at=8, mutation=0.1)
    >>> model = MKLClassifier(PositionBlocks(WeightedDegree(3), 20)).fit(sequences, y)
    >>> importance = position_importance(model)
    >>> importance.weights.shape, round(float(importance.weights.sum()), 6)
    ((20, 3), 1.0)
    >>> bool(8 <= importance.profile().argmax() < 15), bool(importance.profile("contributions")[8:15].sum() > 0.8)
    (True, True)
    """
    owner = "position_importance"
    terms = read_terms(model, owner, output, column)
    members = [k for k in terms.members if isinstance(terms.bank.kernels[k], DEGREE)]
    if not members or not terms.positions:
        raise ValueError(
            f"{owner} needs a model that uses weighted degree kernels, such as PositionBlocks(WeightedDegree(20), 9). "
            f"Got the kernels {terms.bank.names!r} instead."
        )
    beta = _learned(model, terms, owner)
    length = terms.bank.kernels[members[0]].length_
    degree = max(terms.bank.kernels[k].degree for k in members)
    counted = _counted(terms, length, degree)
    weights, energies = np.zeros((length, degree)), np.zeros((length, degree))
    # d-mers that end within the sequence
    fits = np.arange(length)[:, None] + np.arange(1, degree + 1) <= length
    for k in members:
        kernel = terms.bank.kernels[k]
        own, shift_factors = degree_weights(kernel, kernel._shifts())
        share = np.zeros((length, degree))
        share[:, : kernel.degree] = own * shift_factors.sum(axis=0)[:, None]
        share *= fits & counted
        if share.any():
            weights += beta[terms.bank.names[k]] * share / share.sum()
    for group in terms.positions:
        part = group.energies()
        energies[:, : part.shape[1]] += part
    total = energies.sum()
    return PositionImportance(weights, energies / total if total > 0 else energies)


def _learned(model: Any, terms: SequenceTerms, owner: str) -> dict[str, float]:
    """Return the weight of every kernel, by its name."""
    names = getattr(model, "kernel_names_", [])
    if not hasattr(model, "dual_coef_") or not set(terms.bank.names) <= set(names):
        raise ValueError(
            f"{owner} needs a model with a weight for each kernel and a coefficient for each sample, and no kernels on "
            f"the classes. Got {type(model).__name__} with kernels {names!r} instead."
        )
    weights = np.asarray(model.weights_)
    return dict(zip(names, weights[terms.output] if weights.ndim == 2 else weights, strict=True))


def _counted(terms: SequenceTerms, length: int, degree: int) -> np.ndarray:
    """Return a mask of the pairs (l, d) that have a weight in the decision function."""
    out = np.zeros((length, degree), bool)
    for group in terms.positions:
        for layer in group.layers:
            own = (layer.weight != 0) & np.any(layer.shift_factors, axis=0).reshape(-1, 1)
            out[:, : own.shape[1]] |= own
    return out
