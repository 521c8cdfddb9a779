"""The terms of Theorem 2 of Cortes et al. 2013 for a trained model, with and without the kernel margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from multikernel.estimators.validation import check_samples, check_targets
from multikernel.mixing import margin_table
from multikernel.theory.bounds import Bound, margin_bound, margin_loss, mixing_bound, moment_factor, trace_term
from multikernel.training.prepare import prepare

_PLUG_IN = (
    "This is a plug-in estimate, not a guarantee: the margins of the kernels were measured on the training\n"
    "samples, and Lambda on the trained model."
)


@dataclass(frozen=True, eq=False)
class BoundReport:
    """The terms of Theorem 2; ``str(report)`` is a table of them.

    Attributes
    ----------
    bound : Bound
        Margin loss, complexity term and confidence term.
    without : Bound
        The bound without the margin constraint (gamma0 = -inf).
    n, c, p : int
        Numbers of samples, classes and kernels.
    rho, delta, gamma0, norm : float
        Margin of the predictor; probability with which the bound may fail; kernel margin that the weights must have,
        divided by their sum; norm of the weights.
    Lambda : float
        Largest norm of the c functions of the model.
    T, T_without : float
        Trace term, with and without the constraint.
    n_inside, n_pairs : int
        |I| and |J|.
    gamma : ndarray of shape (p,)
        Mean of eta_k over samples and wrong classes, for each kernel.
    kernel_margin : float
        Mean kernel margin (6) of the weighted sum of kernels, weights divided by their sum.
    h_star_bound : float
        Bound 1 - margin / gamma_max of Proposition 1 for the same sum of kernels.
    train_error : float
        Share of training errors of the model.
    """

    bound: Bound
    without: Bound
    n: int
    c: int
    p: int
    rho: float
    delta: float
    gamma0: float
    norm: float
    Lambda: float
    T: float
    T_without: float
    n_inside: int
    n_pairs: int
    gamma: np.ndarray
    kernel_margin: float
    h_star_bound: float
    train_error: float

    def __str__(self) -> str:
        count = self.n_inside + self.n_pairs
        free = moment_factor(self.p)
        rows = [
            ("training error", self.train_error, self.train_error),
            (f"margin loss at rho = {self.rho:g}", self.bound.margin_loss, self.without.margin_loss),
            ("Lambda, largest norm of a class", self.Lambda, self.Lambda),
            ("|I| + |J|", float(count), float(self.p)),
            ("min_s s (|I| + |J|)^(1/s)", moment_factor(count), free),
            ("T, trace term", self.T, self.T_without),
            ("complexity term", self.bound.complexity, self.without.complexity),
            (f"confidence term, delta = {self.delta:g}", self.bound.confidence, self.without.confidence),
            ("bound on the error", self.bound.total, self.without.total),
        ]
        lines = [
            f"Theorem 2 of Cortes et al. 2013: n = {self.n}, c = {self.c}, p = {self.p}, kernel margin "
            f"{self.kernel_margin:.4g}",
            f"{'':<36}{f'gamma0 = {self.gamma0:.4g}':>18}{'no constraint':>16}",
            *(f"{name:<36}{a:>18.6g}{b:>16.6g}" for name, a, b in rows),
            f"Proposition 1: the mean similarity to each class errs on at most {self.h_star_bound:.4g} of the sample.",
            _PLUG_IN,
        ]
        if self.norm > 1:
            lines.append(
                f"The theorem is for weights of sum one: the weights of norm {self.norm:g} and their margins were\n"
                "divided by the sum of the weights. For norm 2 the paper gives only the order of the factor,\n"
                f"(|I| + |J|)^(1/4) = {count**0.25:.4g}, instead of the square root of the fifth row."
            )
        if self.bound.total >= 1:
            lines.append("A bound of 1 or more says nothing about the error: compare its terms, not the sum.")
        return "\n".join(lines)


def bound_report(
    model: Any, X: Any, y: Any, *, rho: float = 1.0, delta: float = 0.05, verbose: bool = True
) -> BoundReport:
    """Print and return each term of Theorem 2 for a trained joint multiclass model.

    Parameters
    ----------
    model : M3KClassifier or MKLClassifier
        Fitted without sample weights, with ``multiclass="joint"`` and the hinge, and without intercepts.
    X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
        The training samples.
    y : array of shape (n_samples,)
        The classes of the training samples.
    rho : float, default=1.0
        Margin of the predictor.
    delta : float, default=0.05
        Probability with which the bound may fail.
    verbose : bool, default=True
        Whether the table is printed.

    Returns
    -------
    BoundReport
        The terms.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import M3KClassifier
    >>> from multikernel.theory import bound_report
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], 40)
    >>> X = np.eye(3)[y] + 0.3 * rng.normal(size=(120, 3))
    >>> model = M3KClassifier(normalize=["center", "cosine"], gamma0_fraction=0.9).fit(X, y)
    >>> report = bound_report(model, X, y, verbose=False)
    >>> round(report.T, 6), round(report.T_without, 6), report.n_inside < report.p
    (120.0, 120.0, True)
    """
    check_is_fitted(model)
    owner = type(model).__name__
    # checks rho and delta before the work starts; the bound itself comes last
    margin_bound(0.0, 0.0, 2, 1, rho, delta)
    if not isinstance(verbose, bool | np.bool_):
        raise ValueError(f"The 'verbose' parameter of bound_report must be True or False. Got {verbose!r} instead.")
    A = np.atleast_2d(getattr(model, "dual_coef_", np.zeros((0, 0))))
    if len(A) != len(getattr(model, "classes_", ())) or np.ndim(model.weights_) != 1 or np.any(model.intercept_):
        raise ValueError(
            f"bound_report needs a model of all classes at once without intercepts: M3KClassifier, or MKLClassifier "
            f"with multiclass='joint', fit_intercept=False and more than two classes. Got {owner} instead."
        )
    other = clone(model)
    samples = check_samples(other, X, reset=True)
    y = check_targets(other, samples, y)
    codes = np.searchsorted(model.classes_, y)
    gram = prepare(other.kernels, samples, None, other._settings()).gram
    n, c, beta = gram.n_samples, len(model.classes_), model.weights_
    scores = _outputs(model, gram, A, n, beta, X)
    if scores is None or not np.array_equal(model.classes_, np.unique(y)):
        raise ValueError(f"bound_report needs the samples that {owner} was trained on. Got other samples instead.")
    coef = np.zeros((n, c))
    coef[model.support_] = A.T
    table = margin_table(gram, codes, None, c)
    # mean over samples and wrong classes; a sample's own class adds zero
    at = np.arange(n)
    gamma = np.array([np.sum(M[codes, at] - M) for M in table.means]) / (n * (c - 1))
    traces = gram.diag().sum(axis=1)
    # K_beta is s = sum(beta) times a kernel with weights of sum one; in the space of that kernel norms are larger by
    # sqrt(s)
    total = float(beta.sum())
    gamma0 = min(float(getattr(model, "gamma0_", -np.inf)) / total, float(gamma.max()))
    T, inside, pairs = trace_term(gamma, traces, gamma0)
    T_without = float(traces.max())
    Lambda = float(np.sqrt(total * np.einsum("ic,ic->c", coef, scores).max()))
    loss = margin_loss(scores, codes, rho)
    margins = table.nearest(beta / total)[1]
    mean, top = float(margins.mean()), float(margins.max())
    report = BoundReport(
        mixing_bound(loss, Lambda, T, inside + pairs, c, n, rho, delta),
        mixing_bound(loss, Lambda, T_without, len(beta), c, n, rho, delta),
        n, c, len(beta), rho, delta, gamma0, float(model.norm), Lambda, T, T_without, inside, pairs, gamma,
        mean, 1.0 - mean / top if top > 0 else 1.0, margin_loss(scores, codes, 0.0),
    )  # fmt: skip
    if verbose:
        print(report)
    return report


def _outputs(model: Any, gram: Any, A: np.ndarray, n: int, beta: np.ndarray, X: Any) -> np.ndarray | None:
    """Return K_beta A on the training samples; None if the model's decision function differs, on other samples."""
    if A.shape[1] and model.support_.max() >= n:
        return None
    coef = np.zeros((n, len(A)))
    coef[model.support_] = A.T
    scores = np.tensordot(beta, gram.apply(coef), 1)
    expected = model.decision_function(X)
    ours = scores[:, 1] - scores[:, 0] if expected.ndim == 1 else scores
    size = np.abs(ours).max(initial=0.0) + 1e-300
    agree = expected.shape == ours.shape and np.abs(expected - ours).max() <= 1e-3 * size
    return scores if agree else None
