"""What every kind of prepared kernels shares: affine forms, constant kernels, and repairs of indefinite ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from multikernel.gram.base import Gram
from multikernel.gram.definite import probe_definiteness, repair, smallest_eigenvalue_ratio
from multikernel.gram.dense import AffineForm, DenseGram
from multikernel.gram.memmap import MemmapGram
from multikernel.gram.soundness import WHERE_REPAIRED, indefinite_error
from multikernel.gram.storage import trust_of
from multikernel.kernels.base import ROUNDING
from multikernel.kernels.fitted_normalizer import FittedNormalizer
from multikernel.training.core import Prepared, Settings


def no_variance(diag: np.ndarray, products: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return which kernels are constant: mean diagonal and mean of all entries agree, bool (p,).

    Parameters
    ----------
    diag, products : ndarrays of shape (p, n)
        Diagonals and K_k w.
    weight : ndarray of shape (n,)
        Weights w of sum one.
    """
    return diag @ weight - products @ weight <= ROUNDING * (np.abs(diag) @ weight)


def affine_form(normalizers: Sequence[FittedNormalizer]) -> AffineForm:
    """Return the affine views of all kernels, one normalisation each, as one form."""
    n = normalizers[0].n_samples
    scale = np.array([normalizer.scale for normalizer in normalizers], float)
    u = A = B = None
    if any(normalizer.u is not None for normalizer in normalizers):
        u = np.array([np.ones(n) if each.u is None else each.u for each in normalizers])
    terms = max((0 if each.A is None else each.A.shape[1]) for each in normalizers)
    if terms:
        A, B = np.zeros((2, len(normalizers), n, terms))
        for k, each in enumerate(normalizers):
            if each.A is not None and each.B is not None:
                A[k, :, : each.A.shape[1]], B[k, :, : each.B.shape[1]] = each.A, each.B
    return AffineForm(scale, u, A, B)


def repaired_if_met(prepared: Prepared, settings: Settings, curvatures: Sequence[np.ndarray]) -> Prepared:
    """Return the kernels, those repaired that proved indefinite in training, or raise; the same object if none did.

    Parameters
    ----------
    prepared : Prepared
        The kernels.
    settings : Settings
        ``psd`` says what to do about an indefinite kernel: raise, or repair it, after which training begins again.
    curvatures : sequence of ndarrays of shape (p,)
        For each problem that was solved, the smallest a'K_k a / a'a that it met.
    """
    gram = prepared.gram
    rounding = gram.n_samples * trust_of(gram.dtype) * np.abs(gram.diag()).max(axis=1)
    met = np.any(np.asarray(curvatures) < -rounding, axis=0)
    suspects = np.flatnonzero(met & ~prepared.known_psd)
    return repaired(prepared, suspects, settings) if len(suspects) else prepared


def repaired(prepared: Prepared, kernels: Iterable[int], settings: Settings) -> Prepared:
    """Return the kernels with some of them replaced by positive semidefinite ones, as ``psd`` says, or raise."""
    kernels = [int(k) for k in kernels]
    gram, every = prepared.gram, np.arange(prepared.gram.n_samples)

    def matrix(k: int) -> np.ndarray:
        return gram.rows(every, np.array([k]))[0].astype(np.float64)

    if settings.psd == "error":
        which = np.isin(np.arange(len(prepared.names)), kernels)
        raise indefinite_error(prepared.names, which, smallest_eigenvalue_ratio(matrix(kernels[0])), gram.kind)
    if not isinstance(gram, DenseGram):
        raise refuse_repair(settings.psd, gram.kind)
    projectors, known_psd, new = dict(prepared.projectors), prepared.known_psd.copy(), {}
    for k in kernels:
        fixed = repair(matrix(k), settings.psd)
        new[k] = fixed.matrix.astype(gram.dtype)
        if fixed.projector is not None:
            projectors[k] = fixed.projector.astype(np.float64)
        known_psd[k] = True
    return replace(prepared, gram=_with_matrices(gram, new), projectors=projectors, known_psd=known_psd)


def _with_matrices(gram: DenseGram, new: dict[int, np.ndarray]) -> DenseGram:
    """Return the kernels of a Gram with some of them replaced by matrices."""
    p, form, keys = gram.n_kernels, gram.form, list(new)
    scale = form.scale.copy()
    scale[keys] = 1.0
    u, A = (None if part is None else part.copy() for part in (form.u, form.A))
    if u is not None:
        u[keys] = 1.0
    if A is not None:
        A[keys] = 0.0
    matrices = [new[k] if k in new else gram.raw(k) for k in range(p)]
    form = AffineForm(scale, u, A, form.B)
    found: DenseGram
    if isinstance(gram, MemmapGram):
        found = MemmapGram(matrices, form, n_threads=gram.team.n_threads)
    else:
        found = DenseGram(matrices, form, n_threads=gram.team.n_threads, owned=gram.nbytes > 0)
    found.budget = gram.budget
    return found


def require_definite(gram: Gram, names: Sequence[str], known_psd: np.ndarray, psd: str) -> None:
    """Raise where a kernel that is not stored is found to be indefinite: it cannot be repaired."""
    suspects = np.flatnonzero(~known_psd)
    if not len(suspects):
        return
    found = probe_definiteness(
        lambda j, V: gram.apply(V, suspects[[j]])[0], diagonal=gram.diag()[suspects], n_threads=1
    )
    if found.indefinite.any():
        if psd != "error":
            raise refuse_repair(psd, gram.kind)
        which = np.zeros(len(names), bool)
        which[suspects[found.indefinite]] = True
        first = int(np.argmax(found.indefinite))
        raise indefinite_error(names, which, found.smallest[first] / found.largest[first], gram.kind)


def refuse_repair(psd: str, kind: str) -> ValueError:
    """Return the error about repairs of kernels that are not stored."""
    return ValueError(f"psd={psd!r} repairs a kernel as a whole and needs {WHERE_REPAIRED}. Got gram={kind!r} instead.")
