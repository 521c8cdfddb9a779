"""What a fitted model says about itself: storage, contributions of the kernels, how far a solver came."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from multikernel.gram.base import Gram
from multikernel.losses import Loss
from multikernel.solution import CONVERGED, INTERRUPTED, MAX_ITER, SETTLED, Solution


@dataclass(frozen=True)
class GramInfo:
    """How the kernels of a fit were kept.

    Attributes
    ----------
    kind : str
        "dense", "lazy" or "mapped".
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
    total = np.tensordot(beta, parts, 1) if gram is None else gram.mix(beta, parts)
    size = np.abs(total).max(initial=0.0)
    if size <= 1e-300:
        return shares
    total = total / size
    weighted = total if sample_weight is None else total * sample_weight[:, None]
    inner = np.tensordot(parts, weighted, 2) if gram is None else gram.forms(parts, weighted)
    shares[some] = beta * inner / (size * np.vdot(total, weighted))
    return shares


def warn_unfinished(estimator: Any, solutions: Sequence[Solution], labels: Sequence[str]) -> None:
    """Warn of problems that did not reach their gap: what happened, likely causes, what to try."""
    for solution, label in zip(solutions, labels, strict=True):
        if solution.status not in (CONVERGED, SETTLED):
            where = f" on the problem {label!r}" if len(solutions) > 1 else ""
            warnings.warn(_sentence(estimator, where, solution), ConvergenceWarning, stacklevel=3)


def _sentence(estimator: Any, where: str, solution: Solution) -> str:
    owner, steps = (
        type(estimator).__name__,
        f"{solution.n_iter} iteration{'s' if solution.n_iter != 1 else ''}",
    )
    worth = f"The model returned is the best one found, certified to within a relative gap of {solution.gap:.2g}."
    if solution.status == INTERRUPTED:
        return f"{owner} was interrupted{where} after {steps}. {worth}"
    costly = cheaper = ""
    if hasattr(estimator, "C"):
        costly, cheaper = f"C={estimator.C:g} is very large, or ", "a smaller C or "
    what = "reached max_iter" if solution.status == MAX_ITER else "made no further progress"
    if isinstance(getattr(estimator, "loss", None), Loss) and (falls := estimator.loss.concavity()):
        return (
            f"{owner} {what}{where}: after {steps} the relative duality gap is {solution.gap:.2g}, above "
            f"tol={estimator.tol:g}, because the loss {type(estimator.loss).__name__} is not convex: at y={falls[0]:g} "
            f"its gradient falls between f={falls[1]:.3g} and f={falls[2]:.3g}. The model returned is no more than a "
            "stationary point."
        )
    return (
        f"{owner} {what}{where}: after {steps} the relative duality gap is {solution.gap:.2g}, above "
        f"tol={estimator.tol:g}. {worth} Likely causes: (a) max_iter={estimator.max_iter} is too small for "
        f"this tol, or tol is below what the precision of the kernels allows: raise max_iter or tol; (b) the "
        f"kernels are scaled very differently or are nearly copies of each other: try normalize='variance'; "
        f"(c) {costly}the solver {solution.solver!r} is slow on this problem: try {cheaper}solver='auto'."
    )
