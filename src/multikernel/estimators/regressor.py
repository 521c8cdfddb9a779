"""Regression by a learned mix of kernels; see docs/regression.md for the problem that is solved."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from multikernel.estimators.base import BaseMKL
from multikernel.estimators.docstrings import documented
from multikernel.estimators.partitioned import by_partitions
from multikernel.estimators.validation import GRAM_OR_FEATURES, Samples, check_parameters, check_regression, loss_rule
from multikernel.training.targets import REGRESSION, Regression

REGRESSOR_RULES = {"loss": loss_rule(REGRESSION, "regression"), "gram": GRAM_OR_FEATURES}


@documented
class RegressorFace(RegressorMixin, BaseMKL):
    """A regressor: the outputs are the predictions."""

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted target of each sample.

        <samples>

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions.
        """
        if hasattr(X, "__dask_graph__"):
            return by_partitions(self, "predict", X, np.shape(self.intercept_))
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs


@documented
class MKLRegressor(RegressorFace):
    """Regression that learns the weights of its kernels: support vectors, least squares, or any convex loss.

    With targets y and the kernels K_1, ..., K_p, it solves

        min over beta >= 0, ||beta||_norm <= 1   max over a   y'a - epsilon |a|_1 - 1/2 sum_k beta_k a' K_k a,
        -C_i <= a_i <= C_i,  sum a = 0,           C_i = C * sample weight,

    to a certified relative duality gap [1]_: errors up to epsilon cost nothing, larger ones C times the rest. With
    another loss l the term y'a - epsilon |a|_1 becomes -sum_i C_i l*(-a_i / C_i, y_i), and A is the domain of the
    conjugate; with the squared loss several targets share the weights.

    Parameters
    ----------
    <kernels, norm, C>
    loss : {"epsilon_insensitive", "squared", "huber", "logcosh", ...} or Loss, default="epsilon_insensitive"
        Loss: max(0, |y - f| - epsilon), (y - f)^2, Huber's with delta = 1, log cosh(y - f), another name of
        `multikernel.losses.named_losses`, or an object of `multikernel.losses` such as ``Huber(delta=0.5)`` or one of
        your own.
    epsilon : float, default=0.1
        Half the width of the tube in which errors cost nothing, in the units of y; "epsilon_insensitive" only: a Loss
        has its own.
    fit_intercept : bool, default=True
        Whether the prediction has an intercept.
    <normalize, psd, solver, tol, max_iter, gram_or_features, memory_limit, verbose, n_jobs, callback, checkpoint>

    Attributes
    ----------
    <weights_, kernel_names_, kernel_contributions_>
    dual_coef_ : ndarray of shape (n_support,) or (n_targets, n_support)
        Signed coefficients a of the support vectors.
    <support_>
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept.
    <certificate, columns>

    References
    ----------
    .. [1] S. Sonnenburg, G. Raetsch, C. Schaefer, A general and efficient multiple kernel learning
    algorithm, NIPS 2005, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLRegressor
    >>> from multikernel.kernels import RBF, Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 4))
    >>> y = 3.0 * X[:, 0] + 5.0
    >>> model = MKLRegressor([("useful", Linear(), [0]), ("noise", RBF(), [1, 2, 3])]).fit(X, y)
    >>> model.kernel_contributions_.round(2), bool(model.duality_gap_ <= 1e-3)
    (array([1., 0.]), True)
    >>> model.predict([[1.0, 0.0, 0.0, 0.0]]).round(), round(model.score(X, y), 2)
    (array([8.]), 1.0)
    """

    _on_device = _in_partitions = True

    def __init__(
        self,
        kernels="rbf",
        *,
        norm=1.0,
        C=1.0,
        loss="epsilon_insensitive",
        epsilon=0.1,
        fit_intercept=True,
        normalize="variance",
        psd="error",
        solver="auto",
        tol=1e-3,
        max_iter=500,
        gram="auto",
        memory_limit=None,
        verbose=0,
        n_jobs=None,
        callback=None,
        checkpoint=None,
    ):
        self._store(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLRegressor:
        """Learn the weights of the kernels and the prediction.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Training samples.
        y : array of shape (n_samples,), or (n_samples, n_targets) for the squared loss
            Targets; several share the weights of the kernels.
        sample_weight : array of shape (n_samples,), optional
            Weights; they count as repetitions would, and samples of weight zero are left out.

        Returns
        -------
        MKLRegressor
            The fitted estimator.
        """
        check_parameters(self, **REGRESSOR_RULES)
        samples = check_regression(self, X, y, sample_weight)
        spec = self._spec(samples)
        return self._learn(samples, spec, self._settings(features_need=spec.features_need))

    def _spec(self, samples: Samples) -> Regression:
        """Return the problem of the samples."""
        return Regression(
            type(self).__name__, samples.y, samples.weight, self.loss, self.epsilon, self.C, self.norm,
            self.fit_intercept,
        )  # fmt: skip
