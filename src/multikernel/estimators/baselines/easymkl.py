"""EasyMKL: the nearest points of two hulls, under the sum of the kernels, then under their mix; see docs/baselines.md.

    gamma minimises  (1 - lam) gamma'Y K Y gamma + lam sum_i gamma_i^2 / w_i    over gamma >= 0 of sum one in each class
    first K = sum_k K_k,    beta_k proportional to gamma'Y K_k Y gamma,    then K = sum_k beta_k K_k

With a = Y gamma this is, up to the length of a, the support vector machine without slack on (1 - lam) K + lam/w I,

    max over a   y'a - 1/2 a'K'a,     y_i a_i >= 0,  sum a = 0,

whose coefficients are at most 2 / (lam (1/w_+ + 1/w_-)), w_+ and w_- the weights of the classes: a box, and the loop of
`multikernel.machines.box_loops`. With f = K'a, h = a'f and m = min_+ f - max_- f, the hulls are m / sqrt(h) apart along
a, so that m^2 / h <= optimum <= h: the certificate.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from multikernel.estimators.baselines.weights import Tell, shares, silent, warn_interrupted
from multikernel.estimators.classes import ScoreClassifier, check_classes
from multikernel.estimators.validation import check_parameters
from multikernel.gram.base import Gram
from multikernel.kernels.base import is_real
from multikernel.machines.svc import SVC, SVCFit
from multikernel.solution import CONVERGED, INTERRUPTED, STALLED, Solution
from multikernel.threads import single_threaded_blas
from multikernel.training.mixture import combined_kernel
from multikernel.training.progress import progress
from multikernel.training.publish import contributions
from multikernel.training.targets import BinaryTask, binary_tasks

# gaps below this need the combined kernel in float64
_SINGLE = 1e-5
# solves of one problem, each ten times as accurate as the one before
_ATTEMPTS = 8


class EasyMKLClassifier(ScoreClassifier):
    """Weights from the nearest points of the classes' hulls, at the cost of one machine [1]_.

        gamma minimises (1 - lam) gamma'Y(sum_k K_k)Y gamma + lam |gamma|^2 over gamma >= 0, of sum one in each class,
        beta_k proportional to gamma'Y K_k Y gamma, of sum one,

    and the same machine once more on sum_k beta_k K_k, with the threshold halfway between the two points.

    Parameters
    ----------
    kernels : "rbf", kernel, list, or "precomputed", default="rbf"
        As in `MKLClassifier`.
    lam : float, default=0.1
        From near 0, the classes' hulls, to 1, their means.
    normalize : None, "variance", "cosine", "center", "trace" or list of these, default="trace"
        Scaling of every kernel; the source divides by the mean of the diagonal.
    tol : float, default=1e-3
        Relative duality gap to reach in both stages.
    psd, gram, memory_limit, n_jobs, verbose
        As in `MKLClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    weights_ : ndarray of shape (p,)
        Kernel weights of sum one. More than two classes are taken one against the rest, each with its own weights:
        of shape (n_classes, p), and the other attributes likewise gain a first axis. Where Ctrl-C came before the
        second stage (``status_`` is "interrupted") they are equal, and the model is that of the first stage.
    dual_coef_, intercept_, support_ : ndarray, float, ndarray
        Y gamma of the second stage where it is not zero, minus the threshold, and the rows of these samples.
    objective_, dual_objective_, duality_gap_ : float
        Value of the last stage, a lower bound on its optimum, and the larger relative distance of the two stages.
    kernel_names_, kernel_contributions_, n_iter_, status_, gram_, n_features_in_, feature_names_in_
        As in `MKLClassifier`.

    References
    ----------
    .. [1] F. Aiolli, M. Donini, EasyMKL: a scalable multiple kernel learning algorithm, Neurocomputing 169:215-224,
    2015.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import EasyMKLClassifier
    >>> from multikernel.kernels import RBF, Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 4))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> model = EasyMKLClassifier([("useful", Linear(), [0]), ("noise", RBF(), [1, 2, 3])]).fit(X, y)
    >>> bool(model.weights_[0] > model.weights_[1]), bool(model.duality_gap_ <= 1e-3), model.predict(X[:3])
    (True, True, array(['yes', 'no', 'no'], dtype='<U3'))
    """

    def __init__(
        self,
        kernels="rbf",
        *,
        lam=0.1,
        normalize="trace",
        tol=1e-3,
        psd="error",
        gram="auto",
        memory_limit=None,
        n_jobs=None,
        verbose=0,
    ):
        self.kernels = kernels
        self.lam = lam
        self.normalize = normalize
        self.tol = tol
        self.psd = psd
        self.gram = gram
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> EasyMKLClassifier:
        """Learn the weights of the kernels and the decision function.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Training samples.
        y : array of shape (n_samples,)
            Classes, of any type.
        sample_weight : array of shape (n_samples,), optional
            Weights; they count as repetitions would, and samples of weight zero are left out.

        Returns
        -------
        EasyMKLClassifier
            The fitted estimator.
        """
        check_parameters(self, lam=(lambda v: is_real(v) and 0 < v <= 1, "a number above 0 and at most 1"))
        samples = check_classes(self, X, y, sample_weight)
        own = samples.own
        kernels = self._make_kernels(samples.X, samples.weight)
        tasks = binary_tasks(samples.codes, self.classes_, "ovr")
        while True:
            with single_threaded_blas():
                first = self._first_stage(kernels.gram, tasks, own)
            suspects = np.unique(np.concatenate([kernels.negative_curvature(solution) for solution in first]))
            if not len(suspects):
                break
            kernels.repair_or_raise(suspects)
        with single_threaded_blas():
            solutions = self._second_stage(kernels.gram, tasks, own, first)
        self._store_model(kernels, solutions, np.column_stack([each.dual_coef for each in solutions]), True)
        gaps = [max(one.gap, two.gap) for one, two in zip(first, solutions, strict=True)]
        self.duality_gap_ = gaps[0] if len(gaps) == 1 else np.array(gaps)
        parts = [contributions(each.weights, each.outputs, own) for each in solutions]
        self.kernel_contributions_ = parts[0] if len(parts) == 1 else np.array(parts)
        self.support_ = samples.kept[self._support]
        if _interrupted(solutions):
            kept = sum(two.outputs is one.outputs for one, two in zip(first, solutions, strict=True))
            warn_interrupted(
                type(self).__name__,
                f"the second stage of {len(tasks) - kept} of {len(tasks)} problem{'s' if len(tasks) > 1 else ''}",
                "The model returned has equal weights where that is missing, and is certified to within a relative gap "
                f"of {max(gaps):.2g}.",
            )
        elif max(gaps) > self.tol:
            warnings.warn(
                f"EasyMKLClassifier stopped at a relative duality gap of {max(gaps):.2g}, above tol={self.tol:g}: the "
                "precision of the kernels allows no less. Raise tol or lam.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _first_stage(self, gram: Gram, tasks: Sequence[BinaryTask], weight: np.ndarray) -> list[Solution]:
        """Solve all problems under the sum of the kernels; Ctrl-C passes through until each has a solution."""
        beta = np.ones(gram.n_kernels)
        matrix = regularised(gram, beta, self.lam, weight, self.tol)
        solutions: list[Solution] = []
        for task in tasks:
            if _interrupted(solutions):
                raise KeyboardInterrupt
            with progress(self.verbose, self.tol, f"{task.label}, all kernels") as show:
                solutions.append(nearest_points(gram, beta, matrix, task.y, self.lam, weight, self.tol, show or silent))
        return solutions

    def _second_stage(
        self, gram: Gram, tasks: Sequence[BinaryTask], weight: np.ndarray, first: Sequence[Solution]
    ) -> list[Solution]:
        """Solve all problems under the mix that the first stage asks for.

        Where Ctrl-C comes before that, what the first stage found stands, its equal weights divided by their sum.
        """
        solutions: list[Solution] = []
        for task, one in zip(tasks, first, strict=True):
            p = gram.n_kernels
            found = replace(one, weights=one.weights / p, intercept=one.intercept / p, status=INTERRUPTED)
            if not _interrupted([*first, *solutions]):
                beta = shares(one.outputs @ one.dual_coef)
                with suppress(KeyboardInterrupt):
                    matrix = regularised(gram, beta, self.lam, weight, self.tol)
                    with progress(self.verbose, self.tol, f"{task.label}, the mix") as show:
                        found = nearest_points(gram, beta, matrix, task.y, self.lam, weight, self.tol, show or silent)
            solutions.append(found)
        return solutions


def _interrupted(solutions: Sequence[Solution]) -> bool:
    return any(solution.status == INTERRUPTED for solution in solutions)


def regularised(gram: Gram, beta: np.ndarray, lam: float, weight: np.ndarray, tol: float) -> np.ndarray | None:
    """Return (1 - lam) sum_k beta_k K_k + lam diag(1/w), in float64 where tol asks for it; None for lam = 1."""
    if lam == 1:
        return None
    matrix = combined_kernel(gram, (1.0 - lam) * beta, np.float64 if tol < _SINGLE else gram.dtype)
    matrix.flat[:: len(matrix) + 1] += lam / weight
    return matrix


def nearest_points(
    gram: Gram,
    beta: np.ndarray,
    matrix: np.ndarray | None,
    y: np.ndarray,
    lam: float,
    weight: np.ndarray,
    tol: float,
    tell: Tell = silent,
) -> Solution:
    """Find the nearest points of the two classes' hulls; Ctrl-C keeps the best so far, and passes through without any.

    Parameters
    ----------
    gram : Gram
        The kernels, from which the certificate is computed.
    beta : ndarray of shape (p,)
        Their weights.
    matrix : ndarray of shape (n, n) or None
        What `regularised` made of them.
    y : ndarray of shape (n,)
        Labels -1 and 1.
    lam : float
        Weight of the regularisation.
    weight : ndarray of shape (n,)
        Positive sample weights.
    tol : float
        Relative gap to reach.
    tell : callable
        Told the gap after each solve.

    Returns
    -------
    Solution
        Coefficients y_i gamma_i, the intercept halfway between the points, and bounds on the squared distance.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> gram, ones, w = DenseGram(np.outer(x, x)[None]), np.ones(1), np.ones(4)
    >>> matrix = regularised(gram, ones, 0.01, w, 1e-9)
    >>> nearest_points(gram, ones, matrix, np.sign(x), 0.01, w, 1e-9).dual_coef.round(2)
    array([ 0., -1.,  1.,  0.])
    """
    sums = weight[y > 0].sum(), weight[y < 0].sum()
    tiny = float(np.finfo(float).tiny)
    fit: SVCFit | None = None
    found: Solution | None = None
    try:
        for attempt in range(_ATTEMPTS):
            if matrix is None:
                a = weight * np.where(y > 0, 1.0 / sums[0], -1.0 / sums[1])
            else:
                machine = SVC(y, 2.0 / (lam * (1.0 / sums[0] + 1.0 / sums[1])))
                fit = machine.fit(matrix, fit, 0.5 * tol * 0.1**attempt)
                a = fit.dual_coef / fit.dual_coef[y > 0].sum()
            F = gram.apply(a)
            mixed = beta @ F
            f = (1.0 - lam) * mixed + lam * a / weight
            h, m = float(a @ f), max(float(f[y > 0].min() - f[y < 0].max()), 0.0)
            lower = min(m * m / h, h) if h > 0 else 0.0
            # halfway between the outputs of the two points, without the regularisation
            intercept = -0.5 * float(np.abs(a) @ mixed)
            status = CONVERGED if h - lower <= tol * h else STALLED
            curvature = F @ a / float(a @ a)
            found = Solution(beta, a, intercept, h, lower, tiny, F, curvature, attempt + 1, status, "smo")
            tell({"gap": found.gap, "active": int(np.count_nonzero(beta))})
            if found.status == CONVERGED or matrix is None:
                break
    except KeyboardInterrupt:
        if found is None:
            raise
        return replace(found, status=INTERRUPTED)
    assert found is not None
    return found
