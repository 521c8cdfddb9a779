"""Everything that one pass over p kernel matrices can tell about them.

For each K (n, n) of the stack, read once, row by row, four rows at a time:

    row sums  K 1,    probes  K w  and  K' w,    the worst 2 x 2 minor  max_ij K_ij^2 - K_ii K_jj

with w a fixed vector of random weights. A row sum that is not finite means an entry that is not. K w and K' w
differ where K is not symmetric (for all K but a set of measure zero); the largest |K_ij - K_ji| itself is
looked for only then, so that no transposed entry is fetched for symmetric kernels. In a positive semidefinite
matrix no minor is positive and the largest entry lies on the diagonal. K 1 and K w also start the Krylov
space of :mod:`multikernel.gram.definite`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numba import njit

from multikernel.gram.storage import trust_of
from multikernel.threads import ROWS, RUN, Team


@dataclass(frozen=True)
class Inspection:
    """What :func:`inspect_kernels` found; arrays over the p kernels.

    Attributes
    ----------
    finite : bool array (p,)
        Whether all entries are finite. Where not, the numbers below mean nothing.
    asymmetry : float array (p,)
        The largest ``|K_ij - K_ji|``; 0 where it is below the rounding of the probe.
    largest : float array (p,)
        The largest ``|K_ij|``.
    smallest_diagonal : float array (p,)
        The smallest K_ii; a negative one proves that the kernel is indefinite.
    worst_minor : float array (p,)
        max_ij (K_ij^2 - K_ii K_jj) / largest^2, never below 0 but for rounding. The smallest eigenvalue is at
        most ``-worst_minor * largest / 2``.
    constant : bool array (p,)
        Whether all entries agree, up to rounding (zero kernels among them).
    diagonal, row_sums : float64 arrays (p, n)
        K_ii and sum_j K_ij.
    weights : float array (n,)
        The probe w.
    probes : float64 array (p, n)
        K w.
    dtype : dtype
        The lowest precision among the kernels.
    """

    finite: np.ndarray
    asymmetry: np.ndarray
    largest: np.ndarray
    smallest_diagonal: np.ndarray
    worst_minor: np.ndarray
    constant: np.ndarray
    diagonal: np.ndarray
    row_sums: np.ndarray
    weights: np.ndarray
    probes: np.ndarray
    dtype: np.dtype

    @property
    def asymmetric(self) -> np.ndarray:
        """Whether entries differ from their mirror image by more than half of their digits, bool (p,)."""
        return self.finite & (self.asymmetry > np.sqrt(np.finfo(self.dtype).eps) * self.largest)

    @property
    def indefinite(self) -> np.ndarray:
        """Whether a diagonal entry or a 2 x 2 minor proves indefiniteness beyond rounding, bool (p,)."""
        trust = trust_of(self.dtype)
        negative = self.smallest_diagonal < -trust * self.largest
        return self.finite & (negative | (self.worst_minor > 4 * trust))


def inspect_kernels(kernels: np.ndarray | Sequence[np.ndarray], *, n_threads: int = 1) -> Inspection:
    """Inspect p kernel matrices in one pass over their entries.

    Parameters
    ----------
    kernels : array (p, n, n) or sequence of p arrays (n, n)
        float32 or float64 (others are converted, one matrix at a time); never written.
    n_threads : int
        Threads among which matrices, or runs of their rows, are shared.

    Returns
    -------
    Inspection

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.inspect import inspect_kernels
    >>> found = inspect_kernels([np.eye(3), np.ones((3, 3)), np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]])])
    >>> found.constant, found.indefinite
    (array([False,  True, False]), array([False, False,  True]))
    """
    real = [as_real(K) for K in kernels]
    p, n = len(real), len(real[0])
    diagonal = np.array([np.diagonal(K) for K in real], dtype=np.float64)
    factors = [_into_range(K, top) for K, top in zip(real, np.abs(diagonal).max(axis=1), strict=True)]
    scaled = [K if f == 1 else K * K.dtype.type(f) for K, f in zip(real, factors, strict=True)]
    factor = np.array(factors)[:, None]
    w = _weights(n)
    weights = {K.dtype: w.astype(K.dtype) for K in real}
    parts = max(1, min(-(-2 * n_threads // p), n // 64)) if p < 2 * n_threads else 1
    edges = [n * i // parts for i in range(parts + 1)]
    row_sums, probes = np.empty((p, n)), np.empty((p, n))
    transposed, minors = np.zeros((p, parts, n)), np.empty((p, parts))

    def scan(task: tuple[int, int]) -> None:
        k, part = task
        flat, step = flat_rows(scaled[k])
        d = (diagonal[k] * factors[k]).astype(flat.dtype)
        worst = np.full(n, -np.inf, dtype=flat.dtype)
        out = row_sums[k], probes[k], transposed[k, part], worst
        scan_rows(flat, step, d, weights[flat.dtype], edges[part], edges[part + 1], *out)
        minors[k, part] = worst.max()

    run_shared(scan, [(k, part) for k in range(p) for part in range(parts)], n_threads)
    with np.errstate(invalid="ignore"):
        gaps = np.abs(probes - transposed.sum(axis=1)).max(axis=1)
        spread = np.maximum(np.ptp(diagonal * factor, axis=1), np.ptp(row_sums, axis=1) / n)
    tops = np.abs(diagonal * factor).max(axis=1)
    finite = np.isfinite(row_sums).all(axis=1) & np.isfinite(gaps)
    findings = [_summary(*each) for each in zip(scaled, finite, tops, minors.max(axis=1), gaps, spread, strict=True)]
    largest, asymmetry, worst_minor, constant = (np.array(column) for column in zip(*findings, strict=True))
    return Inspection(
        finite=finite,
        asymmetry=asymmetry / factor[:, 0],
        largest=largest / factor[:, 0],
        smallest_diagonal=diagonal.min(axis=1),
        worst_minor=worst_minor,
        constant=constant,
        diagonal=diagonal,
        row_sums=row_sums / factor,
        weights=w,
        probes=probes / factor,
        dtype=min((K.dtype for K in real), key=lambda dtype: dtype.itemsize),
    )


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def scan_rows(flat, step, diag, w, first, last, row_sums, Kw, Ktw, minors):
    """Scan the rows [first, last) of one matrix, whose row i is flat[i * step : i * step + n].

    Sets: row_sums and Kw in those rows, Ktw += K[first:last]' w[first:last] and the running maxima minors_j
    of K_ij^2 - K_ii K_jj. Sums in double precision run in a loop of their own: in one loop with the rest they
    would halve its vector width.
    """
    n = diag.shape[0]
    zero = w[0] - w[0]
    part = np.zeros_like(diag)
    for i in range(first, last, 4):
        # past the end the last row is read again, with weight zero
        i1, i2, i3 = min(i + 1, last - 1), min(i + 2, last - 1), min(i + 3, last - 1)
        x0, x1 = flat[i * step : i * step + n], flat[i1 * step : i1 * step + n]
        x2, x3 = flat[i2 * step : i2 * step + n], flat[i3 * step : i3 * step + n]
        d0, d1, d2, d3 = diag[i], diag[i1], diag[i2], diag[i3]
        w0 = w[i]
        w1 = w[i1] if i + 1 < last else zero
        w2 = w[i2] if i + 2 < last else zero
        w3 = w[i3] if i + 3 < last else zero
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        y0, y1, y2, y3 = zero, zero, zero, zero
        for j in range(n):
            a0, a1, a2, a3 = x0[j], x1[j], x2[j], x3[j]
            dj, wj, worst = diag[j], w[j], minors[j]
            v0, v1 = a0 * a0 - d0 * dj, a1 * a1 - d1 * dj
            v2, v3 = a2 * a2 - d2 * dj, a3 * a3 - d3 * dj
            worst = v0 if v0 > worst else worst
            worst = v1 if v1 > worst else worst
            worst = v2 if v2 > worst else worst
            worst = v3 if v3 > worst else worst
            minors[j] = worst
            y0 += a0 * wj
            y1 += a1 * wj
            y2 += a2 * wj
            y3 += a3 * wj
            part[j] += (a0 * w0 + a1 * w1) + (a2 * w2 + a3 * w3)
        for j in range(n):
            s0 += np.float64(x0[j])
            s1 += np.float64(x1[j])
            s2 += np.float64(x2[j])
            s3 += np.float64(x3[j])
        if (i - first) % ROWS == 0 or i + 4 >= last:
            for j in range(n):
                Ktw[j] += part[j]
            part[:] = zero
        row_sums[i], row_sums[i1], row_sums[i2], row_sums[i3] = s0, s1, s2, s3
        Kw[i], Kw[i1], Kw[i2], Kw[i3] = y0, y1, y2, y3


def as_real(K: np.ndarray) -> np.ndarray:
    """The matrix itself where it is float32 or float64, otherwise a float64 copy."""
    K = np.asarray(K)
    return K if K.dtype in (np.float32, np.float64) and K.dtype.isnative else K.astype(np.float64)


def flat_rows(K: np.ndarray) -> tuple[np.ndarray, int]:
    """Return a read-only 1-D view of a matrix and the step between its rows.

    One type for contiguous, sliced, writable and read-only matrices, hence one compilation. A matrix in
    Fortran order is read by columns; one without any contiguous direction is copied.
    """
    n, size = len(K), K.itemsize
    if K.strides[1] != size and K.strides[0] == size:
        K = K.T
    if K.strides[1] != size or K.strides[0] < n * size or K.strides[0] % size:
        K = np.ascontiguousarray(K)
    step = K.strides[0] // size
    return np.lib.stride_tricks.as_strided(K, ((n - 1) * step + n,), (size,), writeable=False), step


def run_shared(call: Callable, tasks: Iterable, n_threads: int) -> None:
    """Run call(task) for every task on a team of threads."""
    Team(n_threads).run(partial(call, task) for task in tasks)


def row_blocks(K: np.ndarray) -> Iterable[np.ndarray]:
    """Blocks of consecutive rows, for passes that need a temporary copy."""
    return (K[i : i + ROWS] for i in range(0, len(K), ROWS))


def largest_entry(K: np.ndarray) -> float:
    """max_ij |K_ij|."""
    return float(max(np.abs(block).max() for block in row_blocks(K)))


def largest_asymmetry(K: np.ndarray) -> float:
    """max_ij |K_ij - K_ji|."""
    starts = range(0, len(K), ROWS)
    return float(max(np.abs(K[i : i + ROWS, i:] - K[i:, i : i + ROWS].T).max() for i in starts))


@lru_cache(maxsize=4)
def _weights(n: int) -> np.ndarray:
    """Return w of random magnitudes; its sign changes every few entries, so that partial sums stay small."""
    magnitudes = np.random.default_rng(0).uniform(1.0, 2.0, n)
    w = np.where(np.arange(n) // RUN % 2 == 0, magnitudes, -magnitudes)
    w.flags.writeable = False
    return w


def _into_range(K: np.ndarray, top: float) -> float:
    """Power of two that brings K, with ``top`` the largest K_ii, to where squared entries stay in range."""
    if top == 0:
        top = largest_entry(K)
    lo, hi = (1e-15, 1e15) if K.itemsize < 8 else (1e-140, 1e140)
    return 1.0 if top == 0 or not np.isfinite(top) or lo < top < hi else 2.0 ** -round(float(np.log2(top)))


def _summary(K, finite, top, worst, gap, spread) -> tuple[float, float, float, bool]:
    """Largest, asymmetry, worst minor and constant, for one matrix, from the sums of the pass."""
    if not finite:
        return np.nan, np.nan, np.nan, False
    n, eps = len(K), float(np.finfo(K.dtype).eps)
    # K_ij^2 <= worst + K_ii K_jj
    largest = np.sqrt(top * top + max(worst, 0.0)) if worst <= 1e-3 * top * top else largest_entry(K)
    # rounding of the two sums: float32 is summed in more lanes than float64
    noise = eps * largest * (2 * n if K.itemsize == 8 else 100 + n / 4)
    asymmetry = largest_asymmetry(K) if gap > noise else 0.0
    near = 8 * eps * largest
    constant = bool(spread <= near and np.ptp(K) <= near)
    return float(largest), asymmetry, min(worst / largest**2, 2.0) if largest > 0 else 0.0, constant
