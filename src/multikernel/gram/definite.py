"""Is a kernel positive semidefinite? Cheap proofs that it is not, and repairs for one that is not.

Two witnesses of a negative eigenvalue, neither of which can accuse a positive semidefinite kernel:

    a principal block   lambda_min(K) <= lambda_min(K[S, S])          (Cauchy), |S| = 192: Cholesky decides
    a Krylov space      lambda_min(K) <= min of x'Kx / x'x over span{V, KV, ...}      (Rayleigh-Ritz)

The block sees indefinite similarities, whose spectrum a sample of the points repeats; the Krylov space sees what is
spread over all samples. Both are compared with what rounding of the stored entries can explain, ``trust_of`` of
:mod:`multikernel.gram.inspect`, and confirmed in float64. With n <= 256 samples the block is all of K and decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import njit
from threadpoolctl import ThreadpoolController

from multikernel.gram.inspect import Inspection, as_real, flat_rows, row_blocks, run_shared, trust_of

_WHOLE = 256  # up to this n the principal block is all of K,
_BLOCK = 192  # above it so many samples,
_RUN = 16  # in runs of neighbours: one cache line of float32


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

    ``matrix`` (n, n) replaces K. Rows k of test samples become ``k @ projector`` (unchanged where it is None);
    ``shift`` was added to the diagonal.
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
        The matrices, or ``apply(k, V)`` that returns K_k V for V of shape (n, m); only the Krylov space is then
        used, and ``diagonal`` is needed.
    inspection : Inspection, optional
        Of the same kernels: its products K 1 and K w are the first Krylov step.
    diagonal : array (p, n), optional
        The diagonals, for a callable.
    steps : int, optional
        Passes over the kernels, each a product with 4 vectors (n >= 2000) to 16 (small n). 1 by default with
        an inspection, otherwise 2.
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
    source = _Source(kernels, inspection, diagonal, n_threads)
    steps = steps or (2 if inspection is None else 1)
    with _blas().limit(limits=1, user_api="blas"):
        smallest, largest = source.ritz(steps)
        block = source.principal_blocks()
    indefinite = (smallest < -source.n * source.rounding) | np.isfinite(block)
    return Definiteness(np.fmin(smallest, block), largest, indefinite)


class _Source:
    """The kernels, and products with them, shared among threads."""

    def __init__(self, kernels, inspection, diagonal, n_threads):
        self.apply = kernels if callable(kernels) else None
        self.matrices = None if self.apply else [as_real(K) for K in kernels]
        if inspection is not None:
            diagonal = inspection.diagonal
        elif self.matrices is not None:
            diagonal = np.array([np.diagonal(K) for K in self.matrices], dtype=np.float64)
        elif diagonal is None:
            raise ValueError("The 'diagonal' parameter of probe_definiteness must be given with a callable. "
                             "Got None instead.")  # fmt: skip
        self.p, self.n = np.shape(diagonal)
        self.inspection = inspection
        self.n_threads = n_threads
        self.finite = np.isfinite(diagonal).all(axis=1) if inspection is None else inspection.finite
        self.live = np.flatnonzero(self.finite)
        top = np.abs(diagonal).max(axis=1) if inspection is None else inspection.largest
        trust = [trust_of(np.float64)] * self.p if self.matrices is None else [trust_of(K.dtype) for K in self.matrices]
        # |perturbation of an entry|: a principal block of m samples moves by at most m times this
        self.rounding = np.asarray(trust) * top

    def ritz(self, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Extreme Ritz values of the Krylov space after ``steps`` products; negative ones confirmed in float64."""
        m = int(np.clip(4 * (2000 // self.n), 4, 16))
        fresh = np.random.default_rng(1).standard_normal((m, self.n))
        basis, images = self._start()
        blocks = np.zeros((self.p, m, self.n))
        extremes = np.full((2, self.p), np.nan)

        def prepare(k: int) -> None:
            blocks[k, :size] = _complement(basis[k], [*images[k][-size:], *fresh], size)

        def extract(k: int) -> None:
            H = basis[k] @ images[k].T
            values, vectors = np.linalg.eigh((H + H.T) / 2)
            extremes[:, k] = values[0], values[-1]
            if values[0] < -self.n * self.rounding[k]:
                extremes[0, k] = self._quotient(k, vectors[:, 0] @ basis[k])

        for _ in range(steps):
            size = min(m, self.n - basis.shape[1])
            if size > 0:
                run_shared(prepare, self.live, self.n_threads)
                products = self.products(blocks)
                basis = np.concatenate([basis, blocks[:, :size]], axis=1)
                images = np.concatenate([images, products[:, :size]], axis=1)
        run_shared(extract, self.live, self.n_threads)
        return extremes[0], extremes[1]

    def _start(self) -> tuple[np.ndarray, np.ndarray]:
        """Orthonormal vectors (p, b, n) and their images under the kernels, from the inspection: span{1, w}."""
        found = self.inspection
        if found is None or self.n == 1:
            return np.empty((self.p, 0, self.n)), np.empty((self.p, 0, self.n))
        Q, R = np.linalg.qr(np.array([np.ones(self.n), found.weights]).T)
        images = np.linalg.solve(R.T, np.stack([found.row_sums, found.probes], axis=1))
        return np.broadcast_to(Q.T, images.shape), images

    def products(self, blocks: np.ndarray) -> np.ndarray:
        """(V_k K_k) for V_k = blocks[k], of shape (p, m, n)."""
        out = np.empty_like(blocks)
        if self.apply is not None:
            for k in self.live:
                out[k] = np.asarray(self.apply(int(k), blocks[k].T)).T
            return out
        parts = 1 if self.p >= 2 * self.n_threads else max(1, min(-(-2 * self.n_threads // self.p), self.n // 64))
        edges = [self.n * i // parts for i in range(parts + 1)]

        def multiply(task: tuple[int, int]) -> None:
            k, part = task
            flat, step = flat_rows(self.matrices[k])
            multiply_rows(flat, step, blocks[k].astype(flat.dtype), edges[part], edges[part + 1], out[k])

        run_shared(multiply, [(k, part) for k in self.live for part in range(parts)], self.n_threads)
        return out

    def _quotient(self, k: int, x: np.ndarray) -> float:
        """x'Kx / x'x in float64."""
        if self.apply is not None:
            image = np.asarray(self.apply(int(k), x[:, None]), dtype=np.float64)[:, 0]
        else:
            image = np.concatenate([block.astype(np.float64) @ x for block in row_blocks(self.matrices[k])])
        return float(x @ image / (x @ x))

    def principal_blocks(self) -> np.ndarray:
        """lambda_min(K_k[S, S]) where it is negative beyond rounding, NaN elsewhere."""
        found = np.full(self.p, np.nan)
        if self.matrices is None:
            return found
        S = _sample(self.n)

        def check(k: int) -> None:
            scale = self.rounding[k] or 1.0  # in this unit, K[S, S] + |S| I is positive definite up to rounding
            B = np.concatenate([np.take(self.matrices[k][i : i + _RUN], S, axis=1) for i in S[::_RUN]])
            B = B[: len(S)] / B.dtype.type(scale)
            B[np.diag_indices_from(B)] += len(S)
            try:
                np.linalg.cholesky(B)
            except np.linalg.LinAlgError:
                B = B.astype(np.float64)
                B[np.diag_indices_from(B)] -= len(S)
                value = float(np.linalg.eigvalsh(B)[0])
                if value < -len(S):
                    found[k] = value * scale

        run_shared(check, self.live, self.n_threads)
        return found


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def multiply_rows(flat, step, V, first, last, out):
    """out[:, i] = V K[i] for i in [first, last), four rows and four vectors at a time.

    Row i of K is flat[i * step : i * step + n]; the number of vectors is a multiple of four.
    """
    m, n = V.shape
    zero = V[0, 0] - V[0, 0]
    for i in range(first, last, 4):
        i1, i2, i3 = min(i + 1, last - 1), min(i + 2, last - 1), min(i + 3, last - 1)
        x0, x1 = flat[i * step : i * step + n], flat[i1 * step : i1 * step + n]
        x2, x3 = flat[i2 * step : i2 * step + n], flat[i3 * step : i3 * step + n]
        for c in range(0, m, 4):
            v0, v1, v2, v3 = V[c], V[c + 1], V[c + 2], V[c + 3]
            s00, s01, s02, s03 = zero, zero, zero, zero
            s10, s11, s12, s13 = zero, zero, zero, zero
            s20, s21, s22, s23 = zero, zero, zero, zero
            s30, s31, s32, s33 = zero, zero, zero, zero
            for j in range(n):
                a0, a1, a2, a3 = x0[j], x1[j], x2[j], x3[j]
                b0, b1, b2, b3 = v0[j], v1[j], v2[j], v3[j]
                s00 += a0 * b0
                s01 += a0 * b1
                s02 += a0 * b2
                s03 += a0 * b3
                s10 += a1 * b0
                s11 += a1 * b1
                s12 += a1 * b2
                s13 += a1 * b3
                s20 += a2 * b0
                s21 += a2 * b1
                s22 += a2 * b2
                s23 += a2 * b3
                s30 += a3 * b0
                s31 += a3 * b1
                s32 += a3 * b2
                s33 += a3 * b3
            out[c, i], out[c + 1, i], out[c + 2, i], out[c + 3, i] = s00, s01, s02, s03
            out[c, i1], out[c + 1, i1], out[c + 2, i1], out[c + 3, i1] = s10, s11, s12, s13
            out[c, i2], out[c + 1, i2], out[c + 2, i2], out[c + 3, i2] = s20, s21, s22, s23
            out[c, i3], out[c + 1, i3], out[c + 2, i3], out[c + 3, i3] = s30, s31, s32, s33


def smallest_eigenvalue_ratio(K: np.ndarray) -> float:
    """lambda_min / lambda_max of one symmetric matrix, to about three digits: what an error message says.

    Examples
    --------
    >>> import numpy as np
    >>> round(smallest_eigenvalue_ratio(np.diag([4.0, 1.0, -2.0])), 3)
    -0.5
    """
    from scipy.linalg import eigvalsh
    from scipy.sparse.linalg import ArpackError, eigsh

    K = np.asarray(K, dtype=np.float64)
    n = len(K)
    ends = None
    if n > 500:
        try:
            start = np.random.default_rng(0).standard_normal(n)
            ends = eigsh(K, k=2, which="BE", tol=1e-4, v0=start, return_eigenvectors=False)
        except ArpackError:
            ends = None
    if ends is None:
        ends = eigvalsh(K)
    low, high = float(np.min(ends)), float(np.max(ends))
    return low / high if high > 0 else -np.inf if low < 0 else 0.0


def repair(K: np.ndarray, how: str) -> Repair:
    """Return the positive semidefinite kernel nearest in spirit to a symmetric K = U diag(l) U'.

    Parameters
    ----------
    K : array (n, n)
        Symmetric; not written.
    how : {"clip", "shift", "flip"}
        ``"clip"``: max(l, 0); ``"flip"``: |l|; ``"shift"``: l - min(l), on the diagonal only.

    Returns
    -------
    Repair
        With ``matrix`` and ``projector`` P in the dtype of K: K P for clip (P projects on the eigenvectors with
        l >= 0) and flip (P = U diag(sign l) U'), so that rows k of test samples become k P; None for shift.

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
        raise ValueError(f"The 'psd' parameter must be 'clip', 'shift' or 'flip' to repair a kernel. Got {how!r} instead.")
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


def _complement(known: np.ndarray, wanted: list[np.ndarray], m: int) -> np.ndarray:
    """m orthonormal rows, orthogonal to the orthonormal rows ``known``, that start with the span of ``wanted``."""
    columns = np.array([*known, *wanted])[: len(known) + m].T
    return np.linalg.qr(columns)[0].T[len(known) :]


def _sample(n: int) -> np.ndarray:
    """All of few samples; otherwise runs of neighbours, evenly spread, at random places."""
    if n <= _WHOLE:
        return np.arange(n)
    runs = _BLOCK // _RUN
    room = n // runs - _RUN
    offset = np.random.default_rng(2).integers(0, room + 1, runs)
    return (np.arange(runs) * (n // runs) + offset)[:, None].repeat(_RUN, 1).ravel() + np.tile(np.arange(_RUN), runs)


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()
