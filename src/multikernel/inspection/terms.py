"""The decision function of a fitted model, written as sums over positions and patterns of a sequence.

    f(x) = offset + sum over positions l and d-mers u of W_lu [x has u at l] + sum over patterns u of W_u c_u(x)
           + rest(x)

Weighted degree kernels, with or without shifts, give the first sum. Spectra, motifs, gapped k-mers and k-mers with
mismatches give the second. The rest holds all other kernels: those on numbers, those on other columns, and those on
sequences that are not such sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from multikernel.estimators.base import BaseMKL
from multikernel.inspection.patterns import PatternTerm, pattern_weights
from multikernel.inspection.positions import Layer, PositionTerms
from multikernel.kernels.approximate import code_matrix
from multikernel.kernels.bank import KernelBank
from multikernel.kernels.base import is_integer
from multikernel.kernels.fitted_normalizer import FittedNormalizer
from multikernel.kernels.sequences.degree import WeightedDegree, WeightedDegreeShift
from multikernel.kernels.sequences.encode import Encoded
from multikernel.kernels.sequences.spectrum import PatternKernel
from multikernel.training.expansion import ComputedExpansion, Expansion, Term
from multikernel.training.featured import FeatureExpansion

DEGREE = (WeightedDegree, WeightedDegreeShift)
SUMS = (*DEGREE, PatternKernel)

# sums over positions, sums over patterns, and a function that evaluates all other kernels
Parts = tuple[list[PositionTerms], list[PatternTerm], Callable[[Any], np.ndarray] | None]


@dataclass(frozen=True, eq=False)
class SequenceTerms:
    """One output of a fitted model on one column of sequences.

    Attributes
    ----------
    bank : KernelBank
        The kernels of the decision function.
    column : tuple of int or None
        The column of the sequences; None if samples are sequences.
    output : int
        Number of the output.
    offset : float
        The constant.
    positions : list of PositionTerms
        Sums over positions, from weighted degree kernels.
    patterns : list of PatternTerm
        Sums over patterns, from kernels that count them.
    rest : callable or None
        Evaluates the sum of all other kernels on samples; None if there are none.
    """

    bank: KernelBank
    column: tuple[int, ...] | None
    output: int
    offset: float
    positions: list[PositionTerms]
    patterns: list[PatternTerm]
    rest: Callable[[Any], np.ndarray] | None

    @property
    def members(self) -> list[int]:
        """Numbers of the kernels that are sums over positions or patterns of the column."""
        return [k for k, kernel in enumerate(self.bank.kernels) if _belongs(self.bank, k, self.column, kernel)]


def read_terms(model: Any, owner: str, output: Any = None, column: Any = None) -> SequenceTerms:
    """Write the decision function of a fitted model as sums over positions and patterns.

    Parameters
    ----------
    model : estimator
        Fitted, with kernels that are computed from sequences.
    owner : str
        Name of the calling function, for error messages.
    output : int, optional
        Number of the output, needed if the model has several.
    column : str or int, optional
        The column of sequences, needed if the kernels use several.
    """
    if not isinstance(model, BaseMKL):
        raise TypeError(f"{owner} needs a fitted model of multikernel, such as MKLClassifier. Got {model!r} instead.")
    check_is_fitted(model)
    expansion = getattr(getattr(model, "model_", None), "expansion", None)
    if not isinstance(expansion, (ComputedExpansion, FeatureExpansion)):
        raise ValueError(
            f"{owner} needs a model that computes its kernels from sequences and keeps its support sequences. "
            f"Got {type(model).__name__} with kernels={model.kernels!r} instead."
        )
    bank = expansion.model.maps.bank if isinstance(expansion, FeatureExpansion) else expansion.bank
    chosen = _column(bank, column, owner)
    t = _output(len(expansion.offset), output, owner)
    if isinstance(expansion, FeatureExpansion):
        places, patterns, rest = _from_features(expansion, bank, chosen, t)
    else:
        dual = _duals(model, expansion, t)
        places, patterns, rest = _from_support(expansion, bank, chosen, t, dual, owner)
    return SequenceTerms(bank, chosen, t, float(expansion.offset[t]), places, patterns, rest)


def _belongs(bank: KernelBank, k: int, column: Any, kernel: Any) -> bool:
    """Whether kernel k is a sum over positions or patterns of this column."""
    return bank.columns[k] == column and isinstance(kernel, SUMS)


def _output(n: int, output: Any, owner: str) -> int:
    if output is None and n == 1:
        return 0
    if not is_integer(output) or not 0 <= output < n:
        raise ValueError(
            f"The 'output' parameter of {owner} must be the number of one of the {n} outputs of the model. "
            f"Got {output!r} instead."
        )
    return int(output)


def _column(bank: KernelBank, column: Any, owner: str) -> tuple[int, ...] | None:
    seen = {bank.columns[k] for k, kernel in enumerate(bank.kernels) if isinstance(kernel, SUMS)}
    if not seen:
        raise ValueError(
            f"{owner} needs a model that uses weighted degree kernels or kernels that count patterns of sequences. "
            f"Got the kernels {bank.names!r} instead."
        )
    if column is None and len(seen) == 1:
        return seen.pop()
    names = {position: _column_name(bank, position) for position in seen}
    for position, name in names.items():
        if column is not None and (column == name or position == (column,)):
            return position
    raise ValueError(
        f"The 'column' parameter of {owner} must be one of the columns of sequences, "
        f"{', '.join(repr(name) for name in sorted(names.values(), key=str))}. Got {column!r} instead."
    )


def _column_name(bank: KernelBank, position: tuple[int, ...] | None) -> Any:
    if position is None:
        return None
    return position[0] if bank.feature_names is None else bank.feature_names[position[0]]


def _duals(model: Any, expansion: Expansion, t: int) -> np.ndarray:
    """Return the coefficients a of one output, one for each sample that the expansion keeps."""
    own = np.atleast_2d(model.dual_coef_)[t] if hasattr(model, "dual_coef_") else np.zeros(0)
    if len(own) == len(expansion.kept):
        return own
    out = np.zeros(len(expansion.kept))
    if len(own) == len(model.model_.support):
        out[model.model_.support] = own
    return out


def _from_support(
    expansion: ComputedExpansion, bank: KernelBank, column: Any, t: int, dual: np.ndarray, owner: str
) -> Parts:
    """Return the sums of a model that evaluates its kernels at support sequences."""
    degree, patterns, rest = [], [], []
    for k, (kernel, term) in enumerate(zip(bank.kernels, expansion.terms, strict=True)):
        if not _belongs(bank, k, column, kernel):
            rest.append(k)
            continue
        coef, factor = _row_factor(bank, k, term, t, owner)
        if isinstance(kernel, DEGREE):
            own = dual if factor is None else dual * factor(expansion.samples)
            degree.append((k, coef, own, factor))
            continue
        encoded = encode_samples(bank, k, expansion.samples)
        for pattern, scale in kernel._patterns():
            keys, weights = pattern_weights(encoded, pattern, coef)
            patterns.append(PatternTerm(k, kernel.alphabet_.letters, pattern, keys, scale * weights, factor))
    other = None
    if rest:
        left, nothing = [expansion.terms[k] for k in rest], np.zeros(len(expansion.offset))
        other = partial(_evaluate, replace(expansion, terms=left, offset=nothing, bank=bank.take(rest)), t)
    return _degree_groups(bank, degree, expansion.samples), patterns, other


def _evaluate(expansion: Expansion, t: int, X: Any) -> np.ndarray:
    return expansion.evaluate(X)[:, t]


def _row_factor(
    bank: KernelBank, k: int, term: Term, t: int, owner: str
) -> tuple[np.ndarray, Callable[[Any], np.ndarray] | None]:
    """Return c and r, where kernel k adds r(x) sum_j c_j k(x, x_j) to the output; r is None where it is one."""
    coef, normalizer = term.coef[:, t], term.normalizer
    if normalizer is None:
        return coef, None
    if normalizer.centred:
        raise ValueError(
            f"{owner} needs kernels whose centring is a constant: fit_intercept=True, and no 'cosine' after 'center'. "
            f"Got the normalisation {list(normalizer.steps)!r} of {bank.names[k]!r} instead."
        )
    # 'cosine' divides k(x, x_j) by the norms of both sequences: the norm of x_j goes into c_j, that of x into r
    own = normalizer.cross(np.ones((1, len(coef))), np.ones(1))[0]
    best = int(np.argmax(own))
    return coef * own, partial(_cosine_factor, bank, k, normalizer.take(np.array([best])), own[best])


def _cosine_factor(bank: KernelBank, k: int, normalizer: FittedNormalizer, own: float, X: Any) -> np.ndarray:
    """Return r(x) of samples: the normalised row of one training sequence, divided by that sequence's own factor."""
    diag = bank.raw_diag(k, X)
    return normalizer.cross(np.ones((len(diag), 1)), diag)[:, 0] / own if own else np.zeros(len(diag))


def _degree_groups(bank: KernelBank, degree: Sequence[tuple], samples: Any) -> list[PositionTerms]:
    """Group weighted degree kernels by alphabet, so that each group sorts its sequences once."""
    alike: dict = {}
    for entry in degree:
        alike.setdefault(bank.kernels[entry[0]].alphabet_, []).append(entry)
    out = []
    for alphabet, entries in alike.items():
        first = bank.kernels[entries[0][0]]
        codes = code_matrix(first, bank.select(entries[0][0], samples))
        seen = {int(r) for k, *_ in entries for r in bank.kernels[k]._shifts()}
        shifts = np.array(sorted(seen, key=lambda r: (r != 0, r)))
        layers = [
            Layer(coef, *degree_weights(bank.kernels[k], shifts), dual, factor) for k, coef, dual, factor in entries
        ]
        out.append(PositionTerms(entries[0][0], codes, alphabet.letters, shifts, layers))
    return out


def degree_weights(kernel: Any, shifts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights (L, D) of d-mers and the factors (R, L) of shifts, by position in the scored sequence."""
    length, factors = kernel.length_, np.zeros((len(shifts), kernel.length_))
    for row, r in zip(factors, shifts, strict=True):
        if r in kernel._shifts():
            starts = kernel._factor(r) * kernel._starts(r)
            # the d-mer of the support sequence begins at l - r
            row[max(0, r) : length + min(0, r)] = starts[max(0, -r) : length - max(0, r)]
    return np.tile(kernel._beta(), (length, 1)), factors


def encode_samples(bank: KernelBank, k: int, X: Any) -> Encoded:
    """Return samples as codes of the letters of kernel k."""
    kernel = bank.kernels[k]
    X = kernel._check(bank.select(k, X))
    encoded = kernel._codes(X)
    return encoded if X.rows is None else encoded.take(X.rows)


def _from_features(expansion: FeatureExpansion, bank: KernelBank, column: Any, t: int) -> Parts:
    """Return the sums of a model that holds weights of explicit features."""
    model = expansion.model
    alike: dict = {}
    other_places = []
    for k, part in model.places:
        if bank.columns[k] != column:
            other_places.append((k, part))
            continue
        coef, no_shift = part.coef[:, t], np.ones((1, part.codes.shape[1]))
        layer = Layer(coef, part.weight[t], no_shift, coef)
        alike.setdefault(bank.kernels[k].alphabet_, []).append((k, part.codes, layer))
    places = [
        PositionTerms(parts[0][0], parts[0][1], alphabet.letters, np.zeros(1, int), [layer for _, _, layer in parts])
        for alphabet, parts in alike.items()
    ]
    patterns, vectors = [], {}
    for k, w in model.vectors.items():
        kernel = bank.kernels[k]
        if not _belongs(bank, k, column, kernel):
            vectors[k] = w
            continue
        begin = 0
        for (pattern, factor), (n_ids, keys) in zip(kernel._patterns(), model.maps.matrices[k].keys, strict=True):
            known = np.arange(n_ids, dtype=np.uint64) if keys is None else keys
            own = np.sqrt(factor) * w[begin : begin + n_ids, t]
            patterns.append(PatternTerm(k, kernel.alphabet_.letters, pattern, known, own))
            begin += max(n_ids, 1)
    rest = None
    if vectors or other_places:
        others = replace(model, places=other_places, vectors=vectors)
        rest = partial(_evaluate, replace(expansion, model=others, offset=np.zeros(len(expansion.offset))), t)
    return places, patterns, rest
