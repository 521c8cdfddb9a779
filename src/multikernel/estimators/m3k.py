"""Classification by a mix of kernels with a large kernel margin; see docs/margin.md for the problem that is solved."""

from __future__ import annotations

from numbers import Real
from typing import Any

from multikernel.estimators.classes import ClassifierFace
from multikernel.estimators.docstrings import documented
from multikernel.estimators.validation import Rule, Samples, check_classes, check_parameters
from multikernel.training.core import Fit
from multikernel.training.margin_targets import MarginClassification
from multikernel.training.publish import Model

FINITE_NORM = Rule("a finite number of at least 1", (Real,), 1.0, open_high=True)


@documented
class M3KClassifier(ClassifierFace):
    """Maximum margin multiple kernel classification (M3K): joint multiclass learning held to a kernel margin.

    With c >= 2 classes and the kernels K_1, ..., K_p it solves [1]_, (7),

        min over beta   max over A   sum_i A_{i,y_i} - 1/2 sum_k beta_k tr A' K_k A,
        A_i <= C_i e_{y_i},  A_i . 1 = 0,
        beta >= 0,  ||beta||_norm <= 1,  (1/n) sum_i min over u != y_i of beta . eta_iu  >=  gamma0,

    to a certified relative duality gap. eta_iuk is the mean similarity under kernel k of sample i to its own class (to
    which it belongs itself) minus that to class u: the left-hand side is the mean kernel margin of the mix, (6).
    Without the margin this is ``MKLClassifier(multiclass="joint", fit_intercept=False)``, for two classes in the scale
    of several: its objective there is half the binary one at twice the C.

    Parameters
    ----------
    <kernels>
    gamma0 : "max" or float, default="max"
        Smallest kernel margin of the mix, in the units of the normalised kernels; "max" for the largest that any
        weights have. ``-inf`` leaves the constraint out.
    gamma0_fraction : float or None, default=None
        The same as a fraction of the largest, from 0 to 1; ``gamma0`` must then be left at "max". Where the largest
        margin is negative, 2 - fraction times it: as far below as it would lie below a positive one.
    norm : float, default=1.0
        Norm of the weights, 1 or more. Above 1 the margin must not be negative, as the set ||beta|| <= 1 would then
        hold weights of zero.
    <C>
    normalize : None, "variance", "cosine", "center", "trace" or list of these, default="variance"
        Scaling of every kernel, learned on the training samples; the paper takes ``["center", "cosine"]``.
    <psd, solver, tol, max_iter, class_weight, gram, memory_limit, verbose, n_jobs, callback, checkpoint>

    Attributes
    ----------
    <classes_, weights_>
    margin_ : float
        Kernel margin of the mix, at least ``gamma0_``.
    gamma0_ : float
        The margin asked for.
    gamma0_max_ : float
        The largest margin that weights of this norm have.
    dual_coef_ : ndarray of shape (n_classes, n_support)
        A of the support vectors.
    intercept_ : ndarray of shape (n_classes,)
        Zeros.
    <kernel_names_, kernel_contributions_, support_, certificate, columns>

    See Also
    --------
    multikernel.estimators.baselines.KernelMarginWeights : The weights of the largest margin, for any predictor.
    multikernel.theory.bound_report : What the margin buys in the bound on the error.

    Notes
    -----
    A class of one sample is as similar to itself as K(x, x) says: the definition counts a sample among its own class.

    References
    ----------
    .. [1] C. Cortes, M. Mohri, A. Rostamizadeh, Multi-class classification with maximum margin multiple kernel, ICML
    2013.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import M3KClassifier
    >>> from multikernel.kernels import RBF, Linear
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["a", "b", "c"], 30)
    >>> X = np.hstack([np.repeat(np.eye(3), 30, axis=0) + 0.4 * rng.normal(size=(90, 3)), rng.normal(size=(90, 3))])
    >>> kernels = [("useful", Linear(), [0, 1, 2]), ("noise", RBF(), [3, 4, 5])]
    >>> model = M3KClassifier(kernels, normalize=["center", "cosine"]).fit(X, y)
    >>> model.weights_.round(2), bool(model.margin_ >= model.gamma0_ - 1e-9), bool(model.duality_gap_ <= 1e-3)
    (array([1., 0.]), True, True)
    >>> model.predict([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    array(['a'], dtype='<U1')
    """

    def __init__(
        self,
        kernels="rbf",
        *,
        gamma0="max",
        gamma0_fraction=None,
        norm=1.0,
        C=1.0,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> M3KClassifier:
        """Learn the weights of the kernels and the decision function.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Training samples.
        y : array of shape (n_samples,)
            Classes, of any type.
        sample_weight : array of shape (n_samples,), optional
            Weights; they count as repetitions would, in the margins as well, and samples of weight zero are left out.

        Returns
        -------
        M3KClassifier
            The fitted estimator.
        """
        check_margin_parameters(self)
        samples = check_classes(self, X, y, sample_weight)
        return self._learn(samples, self._spec(samples), self._settings())

    def _spec(self, samples: Samples) -> MarginClassification:
        """Return the problem of the samples."""
        gamma0 = self.gamma0 if isinstance(self.gamma0, str) else float(self.gamma0)
        return MarginClassification(
            type(self).__name__, samples.codes, samples.classes, samples.weight, C=self.C, norm=self.norm,
            multiclass="products", class_weight=self.class_weight, fit_intercept=False, gamma0=gamma0,
            gamma0_fraction=self.gamma0_fraction,
        )  # fmt: skip

    def _set(self, model: Model, fit: Fit, samples: Samples) -> None:
        super()._set(model, fit, samples)
        set_margin_attributes(self, fit)


def check_margin_parameters(estimator: Any) -> None:
    """Raise one sentence about a parameter that is not what it must be."""
    check_parameters(estimator, norm=FINITE_NORM)
    if estimator.gamma0_fraction is not None and not (isinstance(estimator.gamma0, str) and estimator.gamma0 == "max"):
        raise ValueError(
            f"The 'gamma0' parameter of {type(estimator).__name__} must be 'max' where 'gamma0_fraction' is given. "
            f"Got {estimator.gamma0!r} instead."
        )


def set_margin_attributes(estimator: Any, fit: Fit) -> None:
    """Set the margin asked for, the largest one, and the one of the weights learned."""
    notes = fit.targets[0].notes
    estimator.gamma0_, estimator.gamma0_max_ = notes["gamma0"], notes["gamma0_max"]
    estimator.margin_ = notes["margins"].value(fit.solutions[0].weights) * fit.prepared.unit
