"""LP-beta and LP-B: one classifier per kernel, and a linear programme over their scores; see docs/baselines.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from multikernel.estimators.baselines.each_kernel import each_kernel
from multikernel.estimators.baselines.learned import Learned
from multikernel.estimators.baselines.lp_beta_programme import solve_lp_beta
from multikernel.estimators.baselines.messages import Tell, telling
from multikernel.estimators.classes import ClassifierFace
from multikernel.estimators.docstrings import documented
from multikernel.estimators.reporting import end_interrupted
from multikernel.estimators.splits import Split, splits_of
from multikernel.estimators.validation import RULES, Rule, check_classes, check_parameters, require_that
from multikernel.machines.svc import SVC, SVCFit
from multikernel.solution import CONVERGED, INTERRUPTED
from multikernel.solve import Recorder
from multikernel.threads import single_threaded_blas
from multikernel.training.checkpoint import Checkpoint
from multikernel.training.prepare import prepare
from multikernel.training.publish import GramInfo, contributions, expand
from multikernel.training.targets import costs_in_range, labelled_problems


def each_of(rule: Rule, text: str) -> Rule:
    """Return the rule that a number, or each of several, follow a rule."""

    def check(value: Any) -> None:
        values = value if isinstance(value, (list, tuple, np.ndarray)) else [value]
        require_that(len(values) > 0 and all(rule.allows(each) for each in values))

    return Rule(text, check=check)


@documented
class LPBetaClassifier(ClassifierFace):
    """A linear programme over one classifier per kernel: LP-beta and LP-B [1]_.

        min over beta, xi, rho   -rho + sum_i xi_i / (nu n)
        s.t.   sum_k beta_k (f_k,y_i(x_i) - f_k,u(x_i)) + xi_i >= rho for u other than y_i,
               xi >= 0,  beta >= 0,  sum_k beta_k = 1

    f_k,u is a support vector machine on kernel k, class u against the rest; in the programme its values on samples that
    were held out of its training. Predictions are those of sum_k beta_k f_k,u with machines trained on all samples.

    Parameters
    ----------
    <kernels>
    nu : float or sequence of float, default=(0.1, 0.3, 0.5, 0.7, 0.9)
        Fraction of the samples that may fall behind the margin, above the error rate to expect: below it the programme
        prefers kernels that say nothing to kernels that err. Of several the one with the best accuracy is taken, under
        cross-validation of the programme over the same folds.
    C : float or list of float, default=1.0
        Cost of the machines; of several the one with the best validated accuracy is taken, for each kernel by itself.
    per_class : bool, default=False
        Whether every class has weights of its own (LP-B).
    cv : int, splitter, iterable or None, default=None
        Folds: their number (None for 5, stratified by class), a splitter of scikit-learn, or pairs (train, test).
    <normalize>
    tol : float, default=1e-3
        Violation of the optimality conditions to which machines are trained, as in scikit-learn's ``SVC``.
    <psd, gram, memory_limit, n_jobs, verbose, checkpoint>
    callback : callable, default=None
        Called after each kernel, and each fold that chooses nu, with a dict: how many are "done" "of" all, what they
        are ("parts"), and "problem", the name of the class.

    Attributes
    ----------
    <classes_>
    weights_ : ndarray of shape (p,), or (n_classes, p) with ``per_class``
        Kernel weights, of sum one.
    rho_, objective_ : float
        Margin and value of the linear programme.
    nu_ : float
        The nu of the programme.
    C_ : ndarray of shape (p,)
        Cost of each kernel's machine; NaN for kernels that Ctrl-C left out.
    kernel_scores_ : ndarray of shape (p,)
        Validated accuracy of each kernel alone; NaN likewise.
    status_ : str
        "converged", or "interrupted": the model is then that of the kernels, or of the folds for nu, that were reached.
    gram_ : GramInfo
        How the kernels were kept: kind, dtype, nbytes.
    <kernel_names_, kernel_contributions_, columns>

    References
    ----------
    .. [1] P. Gehler, S. Nowozin, On feature combination for multiclass object classification, ICCV 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import LPBetaClassifier
    >>> from multikernel.kernels import RBF, Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 4))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> model = LPBetaClassifier([("useful", Linear(), [0]), ("noise", RBF(), [1, 2, 3])]).fit(X, y)
    >>> bool(model.weights_[0] > 0.8), model.predict(X[:3])
    (True, array(['yes', 'no', 'no'], dtype='<U3'))
    """

    def __init__(
        self,
        kernels="rbf",
        *,
        nu=(0.1, 0.3, 0.5, 0.7, 0.9),
        C=1.0,
        per_class=False,
        cv=None,
        normalize="variance",
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LPBetaClassifier:
        """Train the machines of all kernels and learn their weights.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Training samples.
        y : array of shape (n_samples,)
            Classes, of any type.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples' losses, in the machines and in the programme; samples of weight zero are left out.

        Returns
        -------
        LPBetaClassifier
            The fitted estimator.
        """
        check_parameters(
            self,
            C=each_of(RULES["C"], "a positive number or a list of them"),
            nu=each_of(RULES["nu"], "a number above 0 and at most 1, or a list of them"),
            per_class=RULES["fit_intercept"],
        )
        samples = check_classes(self, X, y, sample_weight)
        codes, weight, settings = samples.codes, samples.ones, self._settings(callback=self.callback)
        splits = self._splits(np.asarray(y).ravel(), samples.kept, codes)
        prepared = prepare(self.kernels, samples.X, samples.weight, settings)
        labels = np.column_stack([labels for labels, _, _ in labelled_problems(codes, samples.classes, "ovr")])
        with np.errstate(over="ignore"):
            size = float(prepared.gram.diag().max()) or 1.0
            costs_in_range(type(self).__name__, np.max(self.C) * weight, size, labels=True)
        machines = _Machines(labels, codes, weight, np.ravel(self.C), splits, self.tol)
        with self._begin(settings, samples, splits) as settings, telling(settings, settings.owner) as tell:
            with single_threaded_blas():
                state = settings.checkpoint
                call = machines.train if state is None else partial(machines.resume, state)
                trained = each_kernel(prepared.gram, call, prepared.gram.dtype, tell)
            reached = np.flatnonzero([fit is not None for fit in trained])
            # what Ctrl-C has cut short, and what is kept
            cut = []
            if len(reached) < len(trained):
                worth = "The model kept is that of these kernels; the others have the weight zero."
                cut.append(f"the machines of {len(reached)} of {len(trained)} kernels. {worth}")
            fits = [machines.blank() if fit is None else fit for fit in trained]
            scores = by_class(np.array([fits[k].scores for k in reached]))
            tested = np.unique(np.concatenate([test for _, test in splits]))
            nu = self._choose_nu(scores, codes, weight, splits, tested, tell, cut)
            if state is not None:
                state.file.stays = bool(cut)
        found = solve_lp_beta(scores[:, tested], codes[tested], [nu], weight[tested], self.per_class)[0]
        weights = np.zeros((*found.weights.shape[:-1], len(fits)))
        weights[..., reached] = found.weights
        mixed = column_weights(weights, labels.shape[1])
        intercepts = np.einsum("tk,kt->t", mixed, np.array([fit.intercept for fit in fits]))
        expansion = expand(prepared, mixed, np.array([fit.coef for fit in fits]), intercepts, balanced=True)
        outputs = np.array([fit.outputs for fit in fits]) * mixed.T[:, None, :]
        parts = contributions(np.ones(len(fits)), outputs, weight)
        model = Learned(
            expansion,
            prepared.names,
            weights,
            parts,
            GramInfo(prepared.gram.kind, str(prepared.gram.dtype), prepared.gram.nbytes),
        )
        self.__dict__.update(
            model.attributes(),
            model_=model,
            classes_=samples.classes,
            nu_=nu,
            rho_=found.rho,
            objective_=found.objective,
            C_=np.array([fit.C for fit in fits]),
            kernel_scores_=np.array([fit.accuracy for fit in fits]),
            status_=INTERRUPTED if cut else CONVERGED,
        )
        if cut:
            end_interrupted(*(f"{type(self).__name__} was interrupted after {each}" for each in cut))
        return self

    def _splits(self, y: np.ndarray, kept: np.ndarray, codes: np.ndarray) -> list[Split]:
        """Return the folds as positions among the samples of positive weight."""
        if self.cv is None or isinstance(self.cv, Integral):
            return splits_of(type(self).__name__, self.cv, codes, True)
        place = np.full(len(y), -1)
        place[kept] = np.arange(len(kept))
        found = splits_of(type(self).__name__, self.cv, y, True)
        inside = ((place[train], place[test]) for train, test in found)
        return [(train[train >= 0], test[test >= 0]) for train, test in inside if (test >= 0).any()]

    def _choose_nu(
        self,
        scores: np.ndarray,
        codes: np.ndarray,
        weight: np.ndarray,
        splits: list[Split],
        tested: np.ndarray,
        tell: Tell,
        cut: list[str],
    ) -> float:
        """Return the nu whose programme, on the held-out scores of a training fold, is right most often on the rest.

        After Ctrl-C the folds before it decide, and without any the largest nu, which is above the error rate if one
        of them is; ``cut`` is told so.
        """
        nus = np.ravel(self.nu)
        if len(nus) == 1:
            return float(nus[0])
        right: list[list[float]] = []
        folds = [(np.intersect1d(train, tested), test) for train, test in splits]
        folds = [fold for fold in folds if len(fold[0])] or [(tested, tested)]
        recorder = Recorder(tell)
        try:
            for train, test in folds:
                path = solve_lp_beta(scores[:, train], codes[train], nus, weight[train], self.per_class)
                right.append([_right(found.weights, scores[:, test], codes[test], weight[test]) for found in path])
                recorder.record({"done": len(right), "of": len(folds), "parts": "folds for nu"})
        except KeyboardInterrupt:
            taken = "the nu that was best on them" if right else "the largest nu"
            cut.append(f"{len(right)} of {len(folds)} folds that choose nu. The model kept takes {taken}.")
        return float(nus[int(np.argmax(np.sum(right, axis=0)))] if right else nus.max())


def _right(weights: np.ndarray, scores: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> float:
    """Return the weight of the samples that a mix of the scores classifies right."""
    mixed = np.einsum("uk,knu->nu", np.broadcast_to(weights, (scores.shape[2], len(scores))), scores)
    return float(weight @ (mixed.argmax(axis=1) == codes))


def column_weights(weights: np.ndarray, columns: int) -> np.ndarray:
    """Return the weights of each output, (columns, p); the one output of two classes has the mean of both.

    Examples
    --------
    >>> import numpy as np
    >>> column_weights(np.array([[1.0, 0.0], [0.5, 0.5]]), 1)
    array([[0.75, 0.25]])
    """
    if columns == 1:
        return np.atleast_2d(weights).mean(axis=0)[None]
    return np.broadcast_to(weights, (columns, weights.shape[-1]))


def by_class(scores: np.ndarray) -> np.ndarray:
    """Return scores with one column per class: a single column is f for the second class and -f for the first."""
    return np.concatenate([-scores, scores], axis=-1) if scores.shape[-1] == 1 else scores


@dataclass(frozen=True)
class KernelFit:
    """The machines of one kernel: coefficients, outputs and scores when held out (n, T), intercepts (T,)."""

    C: float
    coef: np.ndarray
    intercept: np.ndarray
    outputs: np.ndarray
    scores: np.ndarray
    accuracy: float


@dataclass(frozen=True)
class _Machines:
    """What the machines of one kernel are trained with: labels (n, T), classes, weights, costs, folds, tolerance."""

    labels: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    costs: np.ndarray
    splits: list[Split]
    tol: float

    def blank(self) -> KernelFit:
        """Return machines whose outputs are zero."""
        nothing = np.zeros(self.labels.shape)
        return KernelFit(np.nan, nothing, nothing[0], nothing, nothing, np.nan)

    def resume(self, state: Checkpoint, k: int, block: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> KernelFit:
        """Return the machines of kernel k that an earlier call has trained, or train and keep them."""
        names = [each.name for each in fields(KernelFit)]
        if (known := state.part(k).get(*names)) is not None:
            values: list[Any] = [each if each.ndim else float(each) for each in known]
            return KernelFit(*values)
        fit = self.train(k, block)
        state.part(k).put(**vars(fit))
        return fit

    def train(self, k: int, block: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> KernelFit:
        """Choose C on the folds, then train on all samples."""
        n, T = self.labels.shape
        total, times = np.zeros((len(self.costs), n, T)), np.zeros(n)
        for train, test in self.splits:
            times[test] += 1
            K, K_test = block(train, train), block(test, train)
            for scores, fits in zip(total, self._path(K, train), strict=True):
                coef, intercept = _columns(fits)
                scores[test] += K_test @ coef + intercept
            del K, K_test
        held = times > 0
        total[:, held] /= times[held, None]
        right = by_class(total)[:, held].argmax(axis=2) == self.codes[held]
        accuracy = np.average(right, axis=1, weights=self.weight[held])
        best = int(np.argmax(accuracy))
        every = np.arange(n)
        fits = self._path(block(every, every), every, self.costs[best : best + 1])[0]
        coef, intercept = _columns(fits)
        outputs = np.column_stack([fit.outputs for fit in fits])
        return KernelFit(self.costs[best], coef, intercept, outputs, total[best], float(accuracy[best]))

    def _path(self, K: np.ndarray, train: np.ndarray, costs: np.ndarray | None = None) -> list[list[SVCFit]]:
        """Train the T machines at all costs, each from the one before."""
        path: list[list[SVCFit]] = []
        for C in self.costs if costs is None else costs:
            starts: Sequence[SVCFit | None] = path[-1] if path else [None] * self.labels.shape[1]
            path.append(
                [
                    SVC(y, C * self.weight[train]).fit(K, start, self.tol)
                    for y, start in zip(self.labels[train].T, starts, strict=True)
                ]
            )
        return path


def _columns(fits: Sequence[SVCFit]) -> tuple[np.ndarray, np.ndarray]:
    return np.column_stack([fit.dual_coef for fit in fits]), np.array([fit.intercept for fit in fits])
