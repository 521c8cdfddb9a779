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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from multikernel.estimators.baselines.messages import Tell, silent, telling
from multikernel.estimators.baselines.weights import shares
from multikernel.estimators.classes import ClassifierFace
from multikernel.estimators.docstrings import documented
from multikernel.estimators.reporting import end_interrupted
from multikernel.estimators.validation import RULES, Samples, check_classes, check_parameters
from multikernel.gram.base import Gram
from multikernel.machines.svc import SVC, SVCFit
from multikernel.mixing.norms import mixing_for
from multikernel.solution import CONVERGED, INTERRUPTED, STALLED, Solution
from multikernel.solve import Recorder
from multikernel.threads import single_threaded_blas
from multikernel.training.checkpoint import Checkpoint
from multikernel.training.core import Fit, Settings, Target
from multikernel.training.mixture import combined_kernel
from multikernel.training.prepare import prepare
from multikernel.training.publish import publish
from multikernel.training.repair import repaired_if_met
from multikernel.training.targets import costs_in_range, labelled_problems


@documented
class EasyMKLClassifier(ClassifierFace):
    """Weights from the nearest points of the classes' hulls, at the cost of one machine [1]_.

        gamma minimises (1 - lam) gamma'Y(sum_k K_k)Y gamma + lam |gamma|^2 over gamma >= 0, of sum one in each class,
        beta_k proportional to gamma'Y K_k Y gamma, of sum one,

    and the same machine once more on sum_k beta_k K_k, with the threshold halfway between the two points.

    Parameters
    ----------
    <kernels>
    lam : float, default=0.1
        From near 0, the classes' hulls, to 1, their means.
    normalize : None, "variance", "cosine", "center", "trace" or list of these, default="trace"
        Scaling of every kernel; the source divides by the mean of the diagonal.
    tol : float, default=1e-3
        Relative duality gap to reach in both stages.
    <psd, gram, memory_limit, n_jobs, verbose, checkpoint>
    callback : callable, default=None
        Called after each solve with its row of ``history_``, a dict that also has "problem", the classes and the stage.

    Attributes
    ----------
    <classes_>
    weights_ : ndarray of shape (p,)
        Kernel weights of sum one. More than two classes are taken one against the rest, each with its own weights:
        of shape (n_classes, p), and the other attributes likewise gain a first axis. Where Ctrl-C came before the
        second stage (``status_`` is "interrupted") they are equal, and the model is that of the first stage.
    dual_coef_, intercept_, support_ : ndarray, float, ndarray
        Y gamma of the second stage where it is not zero, minus the threshold, and the rows of these samples.
    objective_, dual_objective_, duality_gap_ : float
        Value of the last stage, a lower bound on its optimum, and the larger relative distance of the two stages.
    history_ : dict of ndarrays
        time, upper, lower, gap and number of active kernels after each solve of the last stage.
    n_iter_ : int
        Solves of the last stage, each more accurate than the one before.
    status_, solver_, gram_, model_
        As in `MKLClassifier`.
    <kernel_names_, kernel_contributions_, columns>

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
        callback=None,
        checkpoint=None,
    ):
        self._store(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> EasyMKLClassifier:
        """Learn the weights of the kernels and the decision function.

        <fit>
        """
        check_parameters(self, lam=RULES["nu"])
        samples = check_classes(self, X, y, sample_weight)
        settings, problems = self._settings(callback=self.callback), Problems.of(samples, self.lam)
        with self._begin(settings, samples) as settings:
            prepared = prepare(self.kernels, samples.X, samples.weight, settings)
            size = float(prepared.gram.diag().max()) or 1.0
            with np.errstate(over="ignore"):
                cost = samples.ones / self.lam
            costs_in_range(type(self).__name__, cost, size, labels=True, what="the sample weights over 'lam'")
            with single_threaded_blas():
                while True:
                    first = problems.first_stage(prepared.gram, settings)
                    definite = repaired_if_met(prepared, settings, [solution.curvature for solution in first])
                    if definite is prepared:
                        break
                    prepared = definite
                solutions = problems.second_stage(prepared.gram, first, settings)
            if settings.checkpoint is not None:
                settings.checkpoint.file.stays = _interrupted(solutions)
        fit = Fit(prepared, problems.targets(), tuple(solutions))
        self._set(publish(fit), fit, samples)
        self._warn(first, solutions, max(solution.gap for solution in solutions))
        return self

    def _warn(self, first: Sequence[Solution], solutions: Sequence[Solution], gap: float) -> None:
        """Warn of a gap above ``tol``, or of Ctrl-C, which is raised again."""
        if _interrupted(solutions):
            count = len(solutions)
            kept = sum(two.outputs is one.outputs for one, two in zip(first, solutions, strict=True))
            end_interrupted(
                f"{type(self).__name__} was interrupted after the second stage of {count - kept} of {count} "
                f"problem{'s' if count > 1 else ''}. The model kept has equal weights where that is missing, and is "
                f"certified to within a relative gap of {gap:.2g}."
            )
        elif gap > self.tol:
            warnings.warn(
                f"EasyMKLClassifier stopped at a relative duality gap of {gap:.2g}, above tol={self.tol:g}: the "
                "precision of the kernels allows no less. Raise tol or lam.",
                ConvergenceWarning,
                stacklevel=3,
            )


@dataclass(frozen=True)
class Problems:
    """Each class against the rest; of two classes the one problem.

    Attributes
    ----------
    labels : list of (ndarray, str)
        Labels -1 and 1 of each problem, and its name.
    weight : ndarray of shape (n,)
        Positive sample weights.
    lam : float
        Weight of the regularisation.
    """

    labels: list[tuple[np.ndarray, str]]
    weight: np.ndarray
    lam: float

    @classmethod
    def of(cls, samples: Samples, lam: float) -> Problems:
        """Return the problems of samples with classes."""
        labels = [(y, name) for y, _, name in labelled_problems(samples.codes, samples.classes, "ovr")]
        return cls(labels, samples.ones, lam)

    def targets(self) -> tuple[Target, ...]:
        """Return the problems for `publish`; the coefficients of each problem sum to zero."""
        return tuple(Target(SVC(y), mixing_for(1.0), name, balanced=True) for y, name in self.labels)

    def first_stage(self, gram: Gram, settings: Settings) -> list[Solution]:
        """Solve all problems under the sum of the kernels; Ctrl-C passes through until each has a solution."""
        beta = np.ones(gram.n_kernels)
        matrix = regularised(gram, beta, self.lam, self.weight, settings.tol)
        solutions: list[Solution] = []
        for y, name in self.labels:
            if _interrupted(solutions):
                raise KeyboardInterrupt
            state = settings.checkpoint and settings.checkpoint.part(f"{len(solutions)}/first")
            with telling(settings, f"{name}, all kernels") as tell:
                found = nearest_points(gram, beta, matrix, y, self.lam, self.weight, settings.tol, tell, state)
            solutions.append(found)
        return solutions

    def second_stage(self, gram: Gram, first: Sequence[Solution], settings: Settings) -> list[Solution]:
        """Solve all problems under the mix that the first stage asks for.

        A problem that Ctrl-C keeps from its second stage keeps the solution of the first stage, with the equal weights
        divided by their sum.
        """
        solutions: list[Solution] = []
        for (y, name), one in zip(self.labels, first, strict=True):
            p = gram.n_kernels
            found = replace(one, weights=one.weights / p, intercept=one.intercept / p, status=INTERRUPTED)
            if not _interrupted([*first, *solutions]):
                beta = shares(one.outputs @ one.dual_coef)
                state = settings.checkpoint and settings.checkpoint.part(f"{len(solutions)}/second")
                try:
                    matrix = regularised(gram, beta, self.lam, self.weight, settings.tol)
                    with telling(settings, f"{name}, the mix") as tell:
                        found = nearest_points(gram, beta, matrix, y, self.lam, self.weight, settings.tol, tell, state)
                except KeyboardInterrupt:
                    found = replace(found, status=INTERRUPTED)
            # as exact as the worse of the two stages
            stalled = STALLED in (one.status, found.status) and found.status != INTERRUPTED
            status = STALLED if stalled else found.status
            solutions.append(replace(found, gap=max(one.gap, found.gap), status=status))
        return solutions


def _interrupted(solutions: Sequence[Solution]) -> bool:
    return any(solution.status == INTERRUPTED for solution in solutions)


def regularised(gram: Gram, beta: np.ndarray, lam: float, weight: np.ndarray, tol: float) -> np.ndarray | None:
    """Return (1 - lam) sum_k beta_k K_k + lam diag(1/w); None for lam = 1.

    It is in the precision of the kernels, or in float64 where ``tol`` is below the root of that precision.
    """
    if lam == 1:
        return None
    dtype = np.float64 if tol * tol < np.finfo(gram.dtype).eps else gram.dtype
    matrix = combined_kernel(gram, (1.0 - lam) * beta, dtype)
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
    state: Checkpoint | None = None,
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
    state : Checkpoint, optional
        Coefficients of an earlier call, certified anew; those of each solve are kept there.

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
    machine = SVC(y, 2.0 / (lam * (1.0 / sums[0] + 1.0 / sums[1])))
    # each solve is ten times as accurate as the one before, up to the precision of the matrix
    accuracy, finest = 0.5 * tol, 0.0 if matrix is None else float(np.finfo(matrix.dtype).eps)
    fit: SVCFit | None = None
    found: Solution | None = None
    recorder, interrupted = Recorder(tell), False
    known = None if state is None else state.get("coef")
    try:
        while found is None or (found.status == STALLED and matrix is not None and accuracy > finest):
            a = weight * np.where(y > 0, 1.0 / sums[0], -1.0 / sums[1])
            if known is not None and known[0].shape == a.shape:
                a, known = known[0], None
            elif matrix is not None:
                fit = machine.fit(matrix, fit, accuracy)
                # a rough solution may be zero
                a = fit.dual_coef / total if (total := float(fit.dual_coef[y > 0].sum())) > 0 else a
                accuracy *= 0.1
            found = _solution(gram.apply(a), a, beta, y, lam, weight, tol)
            if state is not None:
                state.put(coef=a)
            active = int(np.count_nonzero(beta))
            recorder.record({"upper": found.upper, "lower": found.lower, "gap": found.gap, "active": active})
    except KeyboardInterrupt:
        interrupted = True
    if found is None:
        raise KeyboardInterrupt
    status = INTERRUPTED if interrupted else found.status
    return replace(found, n_iter=recorder.n_rows, status=status, history=recorder.history)


def _solution(
    F: np.ndarray, a: np.ndarray, beta: np.ndarray, y: np.ndarray, lam: float, weight: np.ndarray, tol: float
) -> Solution:
    """Return the points given by the coefficients a, with F = K_k a, and bounds on the squared distance."""
    mixed = beta @ F
    f = (1.0 - lam) * mixed + lam * a / weight
    h, m = float(a @ f), max(float(f[y > 0].min() - f[y < 0].max()), 0.0)
    lower = min(m * m / h, h) if h > 0 else 0.0
    # halfway between the outputs of the two points, without the regularisation
    intercept = -0.5 * float(np.abs(a) @ mixed)
    status = CONVERGED if h - lower <= tol * h else STALLED
    gap = max(h - lower, 0.0) / max(h, float(np.finfo(float).tiny))
    return Solution(beta, a, intercept, h, lower, gap, F, F @ a / float(a @ a), 1, status, "smo")
