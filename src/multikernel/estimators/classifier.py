"""Classification by a learned mix of kernels; see docs/conventions.md for the problem that is solved."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from multikernel.estimators.base import BaseMKL
from multikernel.estimators.calibration import calibrate_by_folds
from multikernel.estimators.classes import ProbabilityFace
from multikernel.estimators.docstrings import documented
from multikernel.estimators.validation import GRAM_OR_FEATURES, Samples, check_classes, check_parameters, loss_rule
from multikernel.kernels.class_kernels import embed_classes
from multikernel.training.core import Fit
from multikernel.training.publish import Model
from multikernel.training.targets import CLASSIFICATION, Classification

CLASSIFIER_RULES = {"loss": loss_rule(CLASSIFICATION, "classification"), "gram": GRAM_OR_FEATURES}


@documented
class MKLClassifier(ProbabilityFace):
    """Classification that learns the weights of its kernels: support vectors, least squares, or any convex loss.

    For two classes, with labels y = -1, 1 and the kernels K_1, ..., K_p, it solves

        min over beta >= 0, ||beta||_norm <= 1   max over a   y'a - 1/2 sum_k beta_k a' K_k a,
        0 <= y_i a_i <= C_i,  sum a = 0,          C_i = C * sample weight * class weight,

    to a certified relative duality gap [1]_, [2]_.

    Parameters
    ----------
    <kernels, norm, C>
    loss : {"hinge", "squared", "squared_hinge", "smooth_hinge", "logistic", "multinomial"} or Loss, default="hinge"
        Loss: max(0, 1 - yf), (y - f)^2, max(0, 1 - yf)^2, log(1 + exp(10 (1 - yf))) / 10, log(1 + exp(-yf)), or an
        object of `multikernel.losses` such as ``SmoothHinge(sigma=20)`` or one of your own. In the problem above y'a
        then becomes -sum_i C_i l*(-a_i / C_i, y_i), and A is the domain of the conjugate. "multinomial" is the softmax
        loss of all classes, log sum_u exp(f_u) - f_y, which for two classes is the logistic one.
    multiclass : {"joint", "ovr", "ovo"}, default="joint"
        More than two classes: all in one problem with one set of weights ("joint"), each against the rest, or each
        pair, every problem with its own weights. Jointly, a loss of the margin is that of the largest wrong class,
        max over u != y of l(f_y - f_u) [4]_, and the squared loss that of each class against the rest [3]_; a loss of
        your own has no such form. Widths and normalisations are learned once, on all samples.
    output_kernels : None, list or OutputKernels, default=None
        Kernels on the classes, for the joint hinge: c x c matrices, kernels over the class labels or pairs (kernel,
        attributes). The joint kernels are the products of each kernel on the samples with each of them [4]_, or those
        that an `OutputKernels` lists, and two classes are a joint problem too; see docs/outputs.md.
    fit_intercept : bool, default=True
        Whether the decision function has an intercept, one per column, which asks sum a = 0 of every column; the
        problem of [3]_ has none.
    <probability>
    <normalize, psd, solver, tol, max_iter, class_weight, gram_or_features, memory_limit, verbose, n_jobs, callback,
    checkpoint>

    Attributes
    ----------
    <classes_>
    weights_ : ndarray of shape (p,)
        Kernel weights beta. With T problems (more than two classes) of shape (T, p); the other attributes
        likewise gain a first axis, or become lists. With ``multiclass="joint"`` there is one problem, and only
        ``dual_coef_`` and ``intercept_`` gain an axis, one entry per class.
    <kernel_names_, kernel_contributions_>
    output_kernel_ : ndarray of shape (c, c)
        With output kernels: the learned kernel on the classes, the sum over the pairs of weight times kernel on the
        classes. ``weights_`` and ``kernel_names_`` ("input x output") then have an entry for each pair.
    class_embedding_ : ndarray of shape (c, c - 1)
        With output kernels: points, one a class, with the distances of ``output_kernel_``; longest axes first.
    <dual_coef_, support_, intercept_, certificate, columns>
    pairs_ : list of tuple
        With ``multiclass="ovo"`` and more than two classes: the classes (negative, positive) of each problem.

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
    >>> model.kernel_contributions_.round(2) + 0.0, bool(model.duality_gap_ <= 1e-3)
    (array([1., 0.]), True)
    >>> model.predict(X[:3])
    array(['yes', 'no', 'no'], dtype='<U3')
    """

    _on_device = _in_partitions = True

    def __init__(
        self,
        kernels="rbf",
        *,
        norm=1.0,
        C=1.0,
        loss="hinge",
        multiclass="joint",
        output_kernels=None,
        fit_intercept=True,
        probability=False,
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
        callback=None,
        checkpoint=None,
    ):
        self._store(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLClassifier:
        """Learn the weights of the kernels and the decision function.

        <fit>
        """
        check_parameters(self, **CLASSIFIER_RULES)
        samples = check_classes(self, X, y, sample_weight)
        spec = self._spec(samples)
        self._learn(samples, spec, self._settings(features_need=spec.features_need))
        self.__dict__.pop("calibration_", None)
        if self.probability:
            self.calibration_ = calibrate_by_folds(
                self, samples.X, samples.classes[samples.codes], samples.codes, samples.weight
            )
        return self

    def _spec(self, samples: Samples) -> Classification:
        """Return the problems of the samples."""
        loss = CLASSIFICATION[self.loss] if isinstance(self.loss, str) else self.loss
        return Classification(
            type(self).__name__, samples.codes, samples.classes, samples.weight, loss, self.C, self.norm,
            self.multiclass, self.class_weight, self.fit_intercept, self.output_kernels,
        )  # fmt: skip

    def _set(self, model: Model, fit: Fit, samples: Samples) -> None:
        """Set what was learned of the classes too: pairs of them, and the kernel on them."""
        BaseMKL._set(self, model, fit, samples)
        for name in ("pairs_", "output_kernel_", "class_embedding_"):
            self.__dict__.pop(name, None)
        if len(self.classes_) > 2 and self.multiclass == "ovo":
            self.pairs_ = list(combinations(self.classes_, 2))
        if (products := fit.targets[0].classes) is not None:
            self.output_kernel_ = products.mixed(model.weights[0]).sum(axis=0)
            self.class_embedding_ = embed_classes(self.output_kernel_)
