"""Is a kernel positive semidefinite? Cheap proofs that it is not, and repairs for one that is not.

Two proofs of a negative eigenvalue, of which a positive semidefinite kernel has neither:

    a principal block   lambda_min(K) <= lambda_min(K[S, S])          (Cauchy), |S| = 192: Cholesky decides
    a Krylov space      lambda_min(K) <= min of x'Kx / x'x over span{V, KV, ...}      (Rayleigh-Ritz)

The block finds negative eigenvalues that a sample of the points shows as well, the Krylov space those whose
eigenvectors are spread over all samples. Both are compared with what rounding of the entries can explain (``trust_of``
in :mod:`multikernel.gram.storage`) and confirmed in float64. Up to n = 256 the block is all of K and decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from multikernel.gram.combined import LAPACK
from multikernel.gram.inspect import Inspection, as_real, flat_rows, row_blocks, run_shared
from multikernel.gram.storage import trust_of
from multikernel.threads import RUN, single_threaded_blas

# up to _WHOLE samples the smallest eigenvalue of K is computed, above that of a principal block of _SAMPLE samples:
# larger blocks find more negative eigenvalues and take more time
_WHOLE, _SAMPLE = 256, 192
# from so many samples on, no pass over K is spent on looking for negative eigenvalues alone
_DEAR = 2000


@dataclass(frozen=True)
class Definiteness:
    """What :func:`probe_definiteness` found; arrays over the p kernels.

    Attributes
    ----------
    smallest, largest : float array (p,)
        Smallest and largest Rayleigh quotient met: lambda_min <= smallest, largest <= lambda_max. NaN for
        kernels that are not finite.
    indefinite : bool array (p,)
        Whether a negative eigenvalue is proved beyond rounding.
    """

    smallest: np.ndarray
    largest: np.ndarray
    indefinite: np.ndarray


class Repair(NamedTuple):
    """A repaired kernel.

    ``matrix`` (n, n) replaces K. Rows k of test samples become ``k @ projector``, or stay as they are where
    it is None; ``shift`` was added to the diagonal.
    """

    matrix: np.ndarray
    projector: np.ndarray | None
    shift: float


def probe_definiteness(
    kernels: np.ndarray | Sequence[np.ndarray] | Callable[[int, np.ndarray], np.ndarray],
    inspection: Inspection | None = None,
    *,
    diagonal: np.ndarray | None = None,
    steps: int | None = None,
    n_threads: int = 1,
) -> Definiteness:
    """Look for negative eigenvalues of p kernels.

    Parameters
    ----------
    kernels : array (p, n, n), sequence of p arrays (n, n), or callable
        The matrices, or ``apply(k, V)`` that returns K_k V for V of shape (n, m): then only the Krylov space
        is used, ``diagonal`` is needed, and entries are trusted as those of float32.
    inspection : Inspection, optional
        Of the same kernels: its products K 1 and K w are the first Krylov step.
    diagonal : array (p, n), optional
        The diagonals, for a callable.
    steps : int, optional
        Passes over the kernels. Without an inspection 2 by default, each a product with 2 vectors (n >= 2000) to 16
        (small n); with one, whose two products are a first step, 1 between 256 and 2000 samples, a product with 2
        vectors. 0 below, where the block is the whole kernel, and 0 above, where a pass takes long: the principal block
        and the inspection decide there, and negative curvature found in training.
    n_threads : int
        Threads among which kernels, or runs of their rows, are shared.

    Returns
    -------
    Definiteness

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.definite import probe_definiteness
    >>> x = np.linspace(-1, 1, 20)
    >>> K = np.exp(-((x[:, None] - x) ** 2))
    >>> probe_definiteness([K, K - 0.1 * np.eye(20)]).indefinite
    array([False,  True])
    """
    diagonal = diagonal if inspection is None else inspection.diagonal
    if callable(kernels):
        if diagonal is None:
            raise ValueError(
                "The 'diagonal' parameter of probe_definiteness must be given with a callable. Got None instead."
            )
        products = [partial(_apply_rows, kernels, k) for k in range(len(diagonal))]
        matrices, trust = None, np.full(len(products), trust_of(np.dtype(np.float32)))
    else:
        matrices = [as_real(K) for K in kernels]
        diagonal = np.array([np.diagonal(K) for K in matrices]) if diagonal is None else diagonal
        inner = n_threads if len(matrices) < n_threads else 1
        products = [partial(_multiply, K, inner) for K in matrices]
        trust = np.array([trust_of(K.dtype) for K in matrices])
    p, n = np.shape(diagonal)
    top = np.abs(diagonal).max(axis=1) if inspection is None else inspection.largest
    rounding = trust * top  # of an entry: a principal block of m samples moves by at most m times this
    start = None if inspection is None or n == 1 else _orthonormal_pair(inspection.weights)
    if steps is None:
        steps = 2 if inspection is None else int(_WHOLE < n < _DEAR)
    size = int(np.clip(4 * (_DEAR // (n + 1)), 2, 16)) if inspection is None else 2
    fresh = np.random.default_rng(1).standard_normal((size, n)) if steps else np.empty((0, n))
    smallest, largest, block = (np.full(p, np.nan) for _ in range(3))

    def probe(k: int) -> None:
        vectors = images = np.empty((0, n))
        if inspection is not None and start is not None:
            vectors, mix = start
            images = mix @ np.array([inspection.row_sums[k], inspection.probes[k]])
        if len(vectors) or steps:
            smallest[k], largest[k], x = _ritz(products[k], vectors, images, fresh, steps)
            if smallest[k] < -n * rounding[k]:
                smallest[k] = x @ products[k](x[None], exact=True)[0] / (x @ x)
        if matrices is not None:
            block[k] = _block_eigenvalue(matrices[k], rounding[k])

    finite = np.isfinite(diagonal).all(axis=1) if inspection is None else inspection.finite
    with single_threaded_blas():
        run_shared(probe, np.flatnonzero(finite).tolist(), 1 if p < n_threads else n_threads)
    return Definiteness(np.fmin(smallest, block), largest, (smallest < -n * rounding) | np.isfinite(block))


def _ritz(product, vectors, images, fresh, steps):
    """Extreme Ritz values, and the vector of the smallest, of a Krylov space grown by ``steps`` products.

    ``vectors`` (b, n) are orthonormal, with known ``images`` under the kernel; b may be 0. Each step adds as
    many vectors as there are in ``fresh`` (m, n), and takes from there what the images do not give.
    """
    for _ in range(steps):
        size = min(len(fresh), vectors.shape[1] - len(vectors))
        if size > 0:
            columns = np.concatenate([vectors, images[-size:], fresh])[: len(vectors) + size].T
            block = np.linalg.qr(columns)[0].T[len(vectors) :]
            vectors = np.concatenate([vectors, block])
            images = np.concatenate([images, product(block)])
    H = vectors @ images.T
    values, coordinates = np.linalg.eigh((H + H.T) / 2)
    return values[0], values[-1], coordinates[:, 0] @ vectors


def _block_eigenvalue(K: np.ndarray, rounding: float) -> float:
    """lambda_min(K[S, S]) of a sample S where it is negative beyond rounding, NaN where it is not."""
    S = _sample(len(K))
    size, unit = len(S), rounding or 1.0  # in this unit, K[S, S] + |S| I is positive definite up to rounding
    flat, step = flat_rows(K)
    B = np.empty((size, size), dtype=flat.dtype)
    fill = partial(shifted_block, flat, step, S, flat.dtype.type(unit), flat.dtype.type(size), B)
    fill()
    # the factorisation itself, in place: with the copies that NumPy makes it takes twice the time
    if LAPACK[B.dtype.char][0](B.T, lower=True, overwrite_a=True, clean=False)[1] == 0:
        return np.nan
    fill()
    value = float(np.linalg.eigvalsh(np.triu(B).astype(np.float64), UPLO="U")[0]) - size
    return value * unit if value < -size else np.nan


def _multiply(K: np.ndarray, n_threads: int, V: np.ndarray, exact: bool = False) -> np.ndarray:
    """V K for the rows of V, in the precision of K, or exactly: with products and sums in float64."""
    if exact:
        return np.concatenate([V @ block.astype(np.float64).T for block in row_blocks(K)], axis=1)
    flat, step = flat_rows(K)
    m, n = V.shape
    padded = np.zeros((-(-m // 2) * 2, n), dtype=flat.dtype)
    padded[:m] = V
    out = np.empty(padded.shape)
    edges = [n * i // n_threads for i in range(n_threads + 1)]
    run_shared(
        lambda span: multiply_rows(flat, step, padded, *span, out),
        pairwise(edges),
        n_threads,
    )
    return out[:m]


def _apply_rows(apply: Callable, k: int, V: np.ndarray, exact: bool = False) -> np.ndarray:
    return np.asarray(apply(k, V.T), dtype=np.float64).T


def _orthonormal_pair(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal rows Q = M [1; w], and M."""
    Q, R = np.linalg.qr(np.array([np.ones_like(w), w]).T)
    return Q.T, np.linalg.inv(R.T)


@njit(cache=True, nogil=True)
def shifted_block(flat, step, S, unit, shift, B):
    """B = K[S, S] / unit + shift I above the diagonal and on it, with row i of K in flat[i * step :]."""
    for a in range(S.shape[0]):
        row = flat[S[a] * step :]
        for b in range(a, S.shape[0]):
            B[a, b] = row[S[b]] / unit
        B[a, a] += shift


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def multiply_rows(flat, step, V, first, last, out):
    """out[:, i] = V K[i] for i in [first, last), four rows and two vectors at a time.

    Row i of K is flat[i * step : i * step + n]; the number of vectors is even.
    """
    m, n = V.shape
    zero = V[0, 0] - V[0, 0]
    for i in range(first, last, 4):
        i1, i2, i3 = min(i + 1, last - 1), min(i + 2, last - 1), min(i + 3, last - 1)
        x0, x1 = flat[i * step : i * step + n], flat[i1 * step : i1 * step + n]
        x2, x3 = flat[i2 * step : i2 * step + n], flat[i3 * step : i3 * step + n]
        for c in range(0, m, 2):
            v0, v1 = V[c], V[c + 1]
            s00, s01, s10, s11 = zero, zero, zero, zero
            s20, s21, s30, s31 = zero, zero, zero, zero
            for j in range(n):
                a0, a1, a2, a3 = x0[j], x1[j], x2[j], x3[j]
                b0, b1 = v0[j], v1[j]
                s00 += a0 * b0
                s01 += a0 * b1
                s10 += a1 * b0
                s11 += a1 * b1
                s20 += a2 * b0
                s21 += a2 * b1
                s30 += a3 * b0
                s31 += a3 * b1
            out[c, i], out[c + 1, i] = s00, s01
            out[c, i1], out[c + 1, i1] = s10, s11
            out[c, i2], out[c + 1, i2] = s20, s21
            out[c, i3], out[c + 1, i3] = s30, s31


def smallest_eigenvalue_ratio(K: Any) -> float:
    """lambda_min / lambda_max of one symmetric matrix, to about three digits: what an error message says.

    K is an array, or a `scipy.sparse.linalg.LinearOperator` with the products of a matrix that is elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> round(smallest_eigenvalue_ratio(np.diag([4.0, 1.0, -2.0])), 3)
    -0.5
    """
    from scipy.linalg import eigvalsh
    from scipy.sparse.linalg import ArpackError, eigsh

    K = K if hasattr(K, "matvec") else np.asarray(K, dtype=np.float64)
    n = K.shape[0]
    ends = None
    if n > 500:
        try:
            start = np.random.default_rng(0).standard_normal(n)
            ends = eigsh(K, k=2, which="BE", tol=1e-4, v0=start, return_eigenvectors=False)
        except ArpackError:
            ends = None
    if ends is None:
        ends = eigvalsh(K @ np.eye(n) if hasattr(K, "matvec") else K)
    low, high = float(np.min(ends)), float(np.max(ends))
    # a kernel without a positive eigenvalue, up to rounding, is compared with itself
    return low / (high if high > -n * np.finfo(float).eps * low else -low or 1.0)


def repair(K: np.ndarray, how: str) -> Repair:
    """Return a positive semidefinite kernel in place of a symmetric K = U diag(l) U', by changing its eigenvalues.

    Parameters
    ----------
    K : array (n, n)
        Symmetric; not written.
    how : {"clip", "shift", "flip"}
        ``"clip"``: max(l, 0); ``"flip"``: |l|; ``"shift"``: l - min(l), on the diagonal only.

    Returns
    -------
    Repair
        With ``matrix`` = K P and ``projector`` P in the dtype of K: for clip, P projects on the eigenvectors
        with l >= 0; for flip, P = U diag(sign l) U'. Rows k of test samples become k P. None for shift.

    Examples
    --------
    >>> import numpy as np
    >>> K = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> repair(K, "flip").matrix.round(12)
    array([[1., 0.],
           [0., 1.]])
    """
    from scipy.linalg import eigh, eigvalsh

    if how not in ("clip", "shift", "flip"):
        raise ValueError(
            f"The 'psd' parameter must be 'clip', 'shift' or 'flip' to repair a kernel. Got {how!r} instead."
        )
    K = as_real(K)
    S = (K.astype(np.float64) + K.T) / 2
    if how == "shift":
        amount = max(0.0, -float(eigvalsh(S, subset_by_index=[0, 0])[0]))
        S[np.diag_indices_from(S)] += amount
        return Repair(S.astype(K.dtype, copy=False), None, amount)
    values, U = eigh(S)
    sign = np.where(values < 0, 0.0 if how == "clip" else -1.0, 1.0)
    fixed = (U * (values * sign)) @ U.T
    projector = (U * sign) @ U.T
    return Repair(((fixed + fixed.T) / 2).astype(K.dtype), projector.astype(K.dtype), 0.0)


@cache
def _sample(n: int) -> np.ndarray:
    """Return all samples where they are few, otherwise runs of neighbours, evenly spread, at random places."""
    if n <= _WHOLE:
        return np.arange(n)
    every = n * RUN // _SAMPLE
    offsets = np.random.default_rng(2).integers(0, every - RUN + 1, _SAMPLE // RUN)
    first = np.arange(_SAMPLE // RUN) * every + offsets
    return (first[:, None] + np.arange(RUN)).ravel()
