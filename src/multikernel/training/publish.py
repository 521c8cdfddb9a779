"""What a fitted model says about itself: storage, and contributions of the kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multikernel.gram.base import Gram


@dataclass(frozen=True)
class GramInfo:
    """How the kernels of a fit were kept.

    Attributes
    ----------
    kind : str
        "dense", "lazy" or "memmap".
    dtype : str
        Precision of the entries.
    nbytes : int
        Bytes of kernels held beside the caller's own at the end of the fit.
    """

    kind: str
    dtype: str
    nbytes: int


def contributions(
    weights: np.ndarray, outputs: np.ndarray, sample_weight: np.ndarray | None = None, gram: Gram | None = None
) -> np.ndarray:
    """Return cov(f_k, f) / var(f) over the samples, f_k = beta_k K_k a and f their sum.

    Shares that sum to one; zeros where f is constant.

    Parameters
    ----------
    weights : ndarray of shape (p,)
        Kernel weights beta.
    outputs : ndarray of shape (p, n) or (p, n, c)
        K_k a; the covariances of several columns are added up.
    sample_weight : ndarray of shape (n,), optional
        Weights of the samples.
    gram : Gram, optional
        What the outputs are those of, where kernels share them.

    Examples
    --------
    >>> import numpy as np
    >>> contributions(np.array([0.5, 0.5]), np.array([[1.0, -1.0], [3.0, -3.0]]))
    array([0.25, 0.75])
    """
    shares = np.zeros(len(weights))
    # kernels of weight zero add nothing
    some = np.flatnonzero(weights) if gram is None else slice(None)
    beta, parts = weights[some], outputs.reshape(*outputs.shape[:2], -1)[some]
    parts = parts - np.average(parts, axis=1, weights=sample_weight)[:, None]
    total = np.tensordot(beta, parts, 1) if gram is None else gram.new_outputs((), (parts[0], parts)).mix(beta)
    size = np.abs(total).max(initial=0.0)
    if size <= 1e-300:
        return shares
    total = total / size
    weighted = total if sample_weight is None else total * sample_weight[:, None]
    if gram is None:
        inner = np.tensordot(parts, weighted, 2)
    else:
        inner = gram.new_outputs((), (weighted, parts)).quadratic_forms()
    shares[some] = beta * inner / (size * np.vdot(total, weighted))
    return shares
