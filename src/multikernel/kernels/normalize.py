"""Kernel scaling, learned on the training samples and applied to any others.

Steps, with p_i the sample weights divided by their sum, applied in the order given:

    "variance"   K / (sum_i p_i K_ii - sum_ij p_i p_j K_ij)      unit variance (Zien & Ong 2007, section 3)
    "trace"      K / sum_i p_i K_ii                              unit mean diagonal
    "cosine"     K_ij / sqrt(K_ii K_jj)                          unit diagonal
    "center"     K_ij - r_i - r_j + sum_k p_k r_k,  r = K p      mean removed in feature space

On the training samples any list of them is one affine form of the raw matrix,

    K~_ij = scale * u_i u_j K_ij - sum_t (A_it B_jt + B_it A_jt)

and on test rows the steps are repeated with the training statistics.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from multikernel.kernels.base import ROUNDING
from multikernel.kernels.fitted_normalizer import DivideBy, FittedNormalizer, RemoveMean, UnitDiagonal, inverse_root

STEPS = ("variance", "cosine", "center", "trace")


def check_steps(steps) -> tuple[str, ...]:
    """Return the steps as a tuple, or raise the sentence about a wrong one.

    Examples
    --------
    >>> check_steps("variance"), check_steps(None), check_steps(["center", "trace"])
    (('variance',), (), ('center', 'trace'))
    """
    names = () if steps is None else (steps,) if isinstance(steps, str) else steps
    for name in names if isinstance(names, (tuple, list)) else (names,):
        if not isinstance(name, str) or name not in STEPS:
            near = difflib.get_close_matches(str(name), STEPS, 1)
            raise ValueError(
                "The 'normalize' parameter must be None, 'variance', 'cosine', 'center', 'trace' "
                f"or a list of these. Got {name!r} instead." + (f" Did you mean {near[0]!r}?" if near else "")
            )
    return tuple(names)


def learn_normalizer(
    steps,
    diag: np.ndarray,
    matvec: Callable[[np.ndarray], np.ndarray] | None,
    sample_weight: np.ndarray | None = None,
    name: str = "",
    *,
    product: np.ndarray | None = None,
) -> FittedNormalizer:
    """Learn the normalisation of one kernel on its training samples.

    Parameters
    ----------
    steps : None, str or list of str
        "variance", "cosine", "center", "trace".
    diag : ndarray of shape (n,)
        The diagonal of the raw training matrix K.
    matvec : callable or None
        Returns K v for v of shape (n,); called at most once by each "variance" and "center", and not again
        while no "cosine" comes in between. None where the steps ask for no more than ``product``.
    sample_weight : ndarray of shape (n,), optional
        Weights of the samples; integer weights and repetition agree.
    name : str
        The name of the kernel, for the error sentences.
    product : ndarray of shape (n,), optional
        K p, p the weights divided by their sum, where it is known: steps before any "cosine" then need no `matvec`.

    Returns
    -------
    FittedNormalizer
        The learned normalisation.

    Examples
    --------
    >>> import numpy as np
    >>> K = np.array([[2.0, 1.0], [1.0, 4.0]])
    >>> learn_normalizer("trace", np.diag(K), K.dot).scale
    0.3333333333333333
    """
    steps = check_steps(steps)
    diag = np.asarray(diag, dtype=np.float64)
    if steps and not np.isfinite(diag).all():
        raise ValueError(f"The kernel '{name}' has NaN or infinity on its diagonal.")
    n = len(diag)
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    p = weight / weight.sum()
    form = _Form(diag, matvec, p, name, product, np.zeros((n, 0)), np.zeros((n, 0)))
    for step in steps:
        d, size, r = form.statistics(step in ("variance", "center"))
        if step == "cosine":
            form.divide_by_lengths(d, size)
        elif step == "center":
            form.remove_mean(d, size, r, sample_weight is not None)
        else:
            form.divide(p @ d - p @ r, p @ size)
    A, B = (form.A, form.B) if form.A.shape[1] else (None, None)
    parts, centred, needs_diag = tuple(form.parts), "center" in steps, "cosine" in steps
    return FittedNormalizer(steps, n, form.scale, form.u, A, B, form.degenerate, parts, centred, needs_diag)


@dataclass
class _Form:
    """The affine form of the steps so far, of the kernel with this diagonal and these products."""

    diag: np.ndarray
    matvec: Callable[[np.ndarray], np.ndarray] | None
    p: np.ndarray
    name: str
    product: np.ndarray | None  # K (u * p), as long as u does not change
    A: np.ndarray
    B: np.ndarray
    scale: float = 1.0
    u: np.ndarray | None = None
    degenerate: bool = False
    parts: list = field(default_factory=list)

    def statistics(self, with_means: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the diagonal, the sum of the sizes of its terms, and the means K~ p of the rows or, without, zeros."""
        u = 1.0 if self.u is None else self.u
        d = self.diag * self.scale * u**2
        size = np.abs(d)
        if self.A.shape[1]:
            taken = 2 * self.A * self.B
            d, size = d - taken.sum(axis=1), size + np.abs(taken).sum(axis=1)
        if not with_means:
            return d, size, np.zeros_like(d)
        if self.product is None:
            assert self.matvec is not None
            self.product = np.asarray(self.matvec(u * self.p), dtype=np.float64)
        if not np.isfinite(self.product).all():
            raise ValueError(f"The kernel '{self.name}' has NaN or infinity among its values.")
        means = self.scale * u * self.product
        if self.A.shape[1]:
            means = means - self.A @ (self.B.T @ self.p) - self.B @ (self.A.T @ self.p)
        return d, size, means

    def divide(self, by: float, size: float) -> None:
        """Divide by a number, unless it is zero up to rounding: ``size`` is the sum of the sizes of its terms."""
        if by <= max(ROUNDING * size, np.finfo(float).tiny):
            self.degenerate = True
            return
        self.scale = float(self.scale / by)
        self.A = self.A / by
        self.parts.append(DivideBy(float(by)))

    def divide_by_lengths(self, d: np.ndarray, size: np.ndarray) -> None:
        """Give every sample the length one."""
        negative = d < -ROUNDING * size
        if negative.any():
            raise ValueError(
                f"The kernel '{self.name}' must have a non-negative diagonal for the 'cosine' normalisation. "
                f"Got the value {d[negative].min():.3g} instead."
            )
        inverse = inverse_root(d, size)
        self.u = inverse if self.u is None else self.u * inverse
        self.A, self.B = self.A * inverse[:, None], self.B * inverse[:, None]
        self.product = None
        self.degenerate |= not inverse.any()
        self.parts.append(UnitDiagonal(inverse))

    def remove_mean(self, d: np.ndarray, size: np.ndarray, r: np.ndarray, weighted: bool) -> None:
        """Move the origin to the mean of the samples."""
        m = float(self.p @ r)
        self.parts.append(RemoveMean(self.p if weighted else None, r, m))
        if self.p @ d - m <= ROUNDING * (self.p @ size):
            # the variance is zero: the kernel is constant, unless it is indefinite and some |x - mean|^2 is not zero
            distance = np.abs(d - 2 * r + m)
            if np.all(distance <= np.sqrt(ROUNDING) * np.maximum(size, self.p @ size)):
                self.scale, self.degenerate = 0.0, True
                self.A, self.B = self.A[:, :0], self.B[:, :0]
                return
        # K_ij - (r_i - m/2) - (r_j - m/2)
        self.A, self.B = np.column_stack([self.A, r - m / 2]), np.column_stack([self.B, np.ones_like(r)])
