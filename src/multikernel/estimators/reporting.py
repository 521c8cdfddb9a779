"""Warnings about models that did not reach their gap, and Ctrl-C, which is raised again once a model is kept."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

from sklearn.exceptions import ConvergenceWarning

from multikernel.losses import Loss
from multikernel.solution import CONVERGED, INTERRUPTED, MAX_ITER, SETTLED, Solution
from multikernel.training.core import Fit

# how a run ends that did what it was asked for
FINISHED = frozenset((CONVERGED, SETTLED))


def warn_unfinished(estimator: Any, fit: Fit) -> None:
    """Warn of problems that did not reach their gap: what happened, likely causes, what to try.

    Ctrl-C is raised again: whatever called the fit ends as well, and does not take the model for a finished one.
    """
    sentences = []
    for target, solution in zip(fit.targets, fit.solutions, strict=True):
        if solution.status not in FINISHED:
            where = f" on the problem {target.label!r}" if len(fit.targets) > 1 else ""
            sentences.append(_sentence(estimator, where, solution))
    if INTERRUPTED in [solution.status for solution in fit.solutions]:
        end_interrupted(*sentences)
    for sentence in sentences:
        warnings.warn(sentence, ConvergenceWarning, stacklevel=4)


def end_interrupted(*sentences: str) -> NoReturn:
    """Warn what Ctrl-C has left, and raise it again, also where warnings are errors."""
    try:
        for sentence in sentences:
            warnings.warn(sentence, ConvergenceWarning, stacklevel=4)
    finally:
        raise KeyboardInterrupt


def _sentence(estimator: Any, where: str, solution: Solution) -> str:
    owner, steps = (
        type(estimator).__name__,
        f"{solution.n_iter} iteration{'s' if solution.n_iter != 1 else ''}",
    )
    certified = f"certified to within a relative gap of {solution.gap:.2g}."
    worth = f"The model returned is the best one found, {certified}"
    if solution.status == INTERRUPTED:
        stays = "" if estimator.checkpoint is None else " Its checkpoint stays: the same call goes on from there."
        return f"{owner} was interrupted{where} after {steps}. The model kept is the best one found, {certified}{stays}"
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
