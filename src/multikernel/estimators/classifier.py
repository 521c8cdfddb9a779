"""Classification by a learned mix of kernels; see docs/conventions.md for the problem that is solved."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from multikernel.estimators.base import BaseMKL
from multikernel.estimators.multiclass import binary_tasks, pairwise_votes
from multikernel.estimators.reporting import contributions, warn_unfinished
from multikernel.estimators.samples import check_samples, check_targets, check_weight
from multikernel.estimators.tasks import CLASSIFICATION, classification_machine, loss_rule
from multikernel.estimators.validation import check_parameters
from multikernel.kernels.bank import take_rows
from multikernel.losses import Logistic


def _has_probabilities(estimator: Any) -> bool:
    return isinstance(estimator.loss, Logistic) or (isinstance(estimator.loss, str) and estimator.loss == "logistic")


class MKLClassifier(ClassifierMixin, BaseMKL):
    """Classification that learns the weights of its kernels: support vectors, least squares, or any convex loss.

    For two classes, with labels y = -1, 1 and the kernels K_1, ..., K_p, it solves

        min over beta >= 0, ||beta||_norm <= 1   max over a   y'a - 1/2 sum_k beta_k a' K_k a,
        0 <= y_i a_i <= C_i,  sum a = 0,          C_i = C * sample weight * class weight,

    to a certified relative duality gap [1]_, [2]_.

    Parameters
    ----------
    kernels : "rbf", kernel, list, or "precomputed", default="rbf"
        "rbf": Gaussian kernels at several widths around the median distance, on all columns. A list holds
        kernels of `multikernel.kernels`, callables k(X, Y), families, or triples (name, kernel, columns);
        parameters of the latter are set as ``name__gamma``. With "precomputed", X is what `stack_kernels`
        returns.
    norm : float, default=1.0
        Norm of the weights, from 1 (few kernels) over 2 (all useful kernels) to infinity (the plain sum).
    C : float, default=1.0
        Cost of the losses.
    loss : {"hinge", "squared", "squared_hinge", "smooth_hinge", "logistic"} or Loss, default="hinge"
        Loss: max(0, 1 - yf), (y - f)^2, max(0, 1 - yf)^2, log(1 + exp(10 (1 - yf))) / 10, log(1 + exp(-yf)), or an
        object of `multikernel.losses` such as ``SmoothHinge(sigma=20)`` or one of your own. In the problem above y'a
        then becomes -sum_i C_i l*(-a_i / C_i, y_i), and A is the domain of the conjugate.
    multiclass : {"joint", "ovr", "ovo"}, default="ovr"
        More than two classes: all in one problem with one set of weights ("joint", for the hinge of the largest wrong
        class [4]_ and for the squared loss of each class against the rest [3]_), each against the rest, or each pair,
        every problem with its own weights. Widths and normalisations are learned once, on all samples.
    fit_intercept : bool, default=True
        Whether the decision function has an intercept, one per column, which asks sum a = 0 of every column; the
        problem of [3]_ has none.
    normalize : None, "variance", "cosine", "center", "trace" or list of these, default="variance"
        Scaling of every kernel, learned on the training samples.
    psd : {"error", "clip", "shift", "flip"}, default="error"
        What to do about a kernel with negative eigenvalues: refuse it, set them to zero, add a multiple of
        the identity, or flip their sign. Clipped and flipped kernels keep all training samples.
    solver : str or Solver, default="auto"
        Outer algorithm; all reach the same optimum.
    tol : float, default=1e-3
        Relative duality gap to reach.
    max_iter : int, default=500
        Largest number of outer iterations.
    class_weight : None, "balanced" or dict, default=None
        Factors of C by class.
    gram : {"auto", "dense", "lazy", "mapped"}, default="auto"
        Where kernels are kept: in memory, computed row by row, or in a temporary file.
    memory_limit : float, str or None, default=None
        Bytes, or a text such as "2GB", that kernels may take; None for half of the free memory.
    verbose : int, default=0
        1 shows progress on the terminal, 2 one line per iteration.
    n_jobs : int or None, default=None
        Threads; None for all that are available.
    random_state : int, RandomState or None, default=None
        For interface's sake: fits are deterministic.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    weights_ : ndarray of shape (p,)
        Kernel weights beta. With T problems (more than two classes) of shape (T, p); the other attributes
        likewise gain a first axis, or become lists. With ``multiclass="joint"`` there is one problem, and only
        ``dual_coef_`` and ``intercept_`` gain an axis, one entry per class.
    kernel_names_ : list of str
        Names of the kernels.
    kernel_contributions_ : ndarray of shape (p,)
        cov(f_k, f) / var(f) over the training samples, f_k = beta_k K_k a: shares that sum to one.
    dual_coef_ : ndarray of shape (n_support,)
        Signed coefficients a of the support vectors.
    support_ : ndarray of shape (n_support,)
        Rows of the training samples that are support vectors of some problem.
    intercept_ : float
        Intercept.
    objective_, dual_objective_ : float
        Primal value of the model, and a lower bound on the optimum.
    duality_gap_ : float
        Their relative distance.
    n_iter_ : int
        Outer iterations.
    status_ : str
        "converged", "max_iter", "stalled" or "interrupted".
    history_ : dict of ndarrays
        time, upper, lower, gap and number of active kernels after each iteration.
    solver_ : str
        The solver that ran.
    gram_ : GramInfo
        How the kernels were kept: kind, dtype, nbytes.
    pairs_ : list of tuple
        With ``multiclass="ovo"`` and more than two classes: the classes (negative, positive) of each problem.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns, where X was a data frame.

    References
    ----------
    .. [1] S. Sonnenburg, G. Raetsch, C. Schaefer, A general and efficient multiple kernel learning
    algorithm, NIPS 2005.
    .. [2] M. Kloft, U. Brefeld, S. Sonnenburg, A. Zien, lp-norm multiple kernel learning, JMLR 12:953-997,
    2011.
    .. [3] Y. Ying, C. Campbell, T. Damoulas, M. Girolami, Class prediction from disparate biological data sources using
    an iterative multi-kernel algorithm, PRIB 2009.
    .. [4] A. Zien, C. S. Ong, Multiclass multiple kernel learning, ICML 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier
    >>> from multikernel.kernels import RBF, Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 4))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> model = MKLClassifier([("useful", Linear(), [0]), ("noise", RBF(), [1, 2, 3])]).fit(X, y)
    >>> model.kernel_contributions_.round(2), bool(model.duality_gap_ <= 1e-3)
    (array([1., 0.]), True)
    >>> model.predict(X[:3])
    array(['yes', 'no', 'no'], dtype='<U3')
    """

    def __init__(
        self,
        kernels="rbf",
        *,
        norm=1.0,
        C=1.0,
        loss="hinge",
        multiclass="ovr",
        fit_intercept=True,
        normalize="variance",
        psd="error",
        solver="auto",
        tol=1e-3,
        max_iter=500,
        class_weight=None,
        gram="auto",
        memory_limit=None,
        verbose=0,
        n_jobs=None,
        random_state=None,
    ):
        self.kernels = kernels
        self.norm = norm
        self.C = C
        self.loss = loss
        self.multiclass = multiclass
        self.fit_intercept = fit_intercept
        self.normalize = normalize
        self.psd = psd
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.gram = gram
        self.memory_limit = memory_limit
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLClassifier:
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
        MKLClassifier
            The fitted estimator.
        """
        check_parameters(self, loss=loss_rule(CLASSIFICATION, "classification"))
        X = check_samples(self, X, reset=True)
        y = check_targets(self, X, y)
        check_classification_targets(y)
        weight = check_weight(X, sample_weight)
        kept = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
        self.classes_, codes = np.unique(y[kept], return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes. "
                f"Got one class only: {self.classes_.tolist()[0]!r}."
            )
        if weight is not None and not self._precomputed and len(kept) < len(y):
            X, weight = take_rows(X, kept), weight[kept]
        kernels = self._make_kernels(X, weight)
        own = None if weight is None else weight[weight > 0]
        cost = self._costs(codes, y[kept], own)
        tasks = binary_tasks(codes, self.classes_, self.multiclass)
        machines = [
            classification_machine(self, task.y, cost if task.idx is None else cost[task.idx]) for task in tasks
        ]
        labels = [task.label for task in tasks]
        solutions = self._solve_all(kernels, machines, [task.idx for task in tasks], labels)
        columns, shares = [], []
        for task, solution in zip(tasks, solutions, strict=True):
            idx = slice(None) if task.idx is None else task.idx
            columns.append(np.zeros((len(codes), *solution.dual_coef.shape[1:])))
            columns[-1][idx] = solution.dual_coef
            shares.append(contributions(solution.weights, solution.outputs, None if own is None else own[idx]))
        self._store_model(kernels, solutions, np.column_stack(columns), self.fit_intercept)
        self.kernel_contributions_ = shares[0] if len(tasks) == 1 else np.array(shares)
        self.support_ = kept[self._support]
        self._pairwise = len(self.classes_) > 2 and self.multiclass == "ovo"
        self.__dict__.pop("pairs_", None)
        if self._pairwise:
            n = len(self.classes_)
            self.pairs_ = [(self.classes_[i], self.classes_[j]) for i in range(n) for j in range(i + 1, n)]
        warn_unfinished(self, solutions, labels)
        return self

    def _costs(self, codes: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Return C_i = C * sample weight * class weight."""
        factors = np.ones(len(self.classes_))
        if isinstance(self.class_weight, str):
            counts = np.bincount(codes, weight, len(factors))
            factors = counts.sum() / (len(factors) * counts)
        elif self.class_weight is not None:
            factors = compute_class_weight(dict(self.class_weight), classes=self.classes_, y=y)
            if not np.all(np.isfinite(factors) & (factors > 0)):
                raise ValueError(
                    f"The 'class_weight' parameter of {type(self).__name__} must hold positive numbers. "
                    f"Got {self.class_weight!r} instead."
                )
        cost = self.C * factors[codes]
        return cost if weight is None else cost * weight

    def decision_function(self, X: Any) -> np.ndarray:
        """Return how clearly each sample belongs to each class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive values for ``classes_[1]``. More: one column per class; for "ovo" the votes
            of the pairs plus their outputs, squeezed so that they only break ties.
        """
        outputs = self._outputs(X)
        if len(self.classes_) == 2:
            return outputs[:, 0]
        return pairwise_votes(outputs, len(self.classes_)) if self._pairwise else outputs

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each sample.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Members of ``classes_``.
        """
        scores = self.decision_function(X)
        winners = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[winners]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, for the logistic loss.

        Two classes: 1 / (1 + exp(-f)). More, with ``multiclass="ovr"``: those of each class against the rest, divided
        by their sum; "ovo" has no probabilities. For other losses see `sklearn.calibration.CalibratedClassifierCV`.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities; rows sum to one.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        if self._pairwise:
            raise ValueError(
                f"The 'multiclass' parameter of {type(self).__name__} must be 'ovr' for probabilities of more than two "
                f"classes. Got 'ovo' instead."
            )
        # log 1 / (1 + exp(-f)), relative to the largest, so that no row is zero
        shares = -np.logaddexp(0.0, -scores)
        shares = np.exp(shares - shares.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)
