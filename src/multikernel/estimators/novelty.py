"""Novelty and outlier detection by a learned mix of kernels; see docs/oneclass.md for the problem that is solved."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin

from multikernel.estimators.base import BaseMKL
from multikernel.estimators.docstrings import documented
from multikernel.estimators.validation import Samples, check_parameters, check_unlabelled
from multikernel.machines.oneclass import OneClass
from multikernel.training.core import Fit, Prepared
from multikernel.training.publish import Model
from multikernel.training.targets import one_problem

# the identity on n samples has a squared mean of 1/n; below this fraction of it the mean is the origin
_CENTRED = 1e-3


def one_class(owner: str, weight: np.ndarray, nu: float, prepared: Prepared) -> OneClass:
    """Return the machine of one class, or raise where the samples' mean is the origin for every kernel."""
    share, gram = weight / weight.sum(), prepared.gram
    size, mean = gram.diag() @ share, gram.apply(share) @ share
    if np.all(mean <= _CENTRED * size * float(share @ share)):
        raise ValueError(
            f"The kernels of {owner} must not be centred: with the mean of the samples at the origin the optimum is "
            "zero. Got kernels whose entries have the mean zero."
        )
    # what predicts sums the same terms in another order, and may compute them in another precision
    return OneClass(weight, nu, float(size.max()), 16 * float(np.finfo(gram.dtype).eps))


@documented
class MKLOneClass(OutlierMixin, BaseMKL):
    """One-class support vector machine that learns the weights of its kernels.

    With the kernels K_1, ..., K_p on n samples, it solves

        min over beta >= 0, ||beta||_norm <= 1   max over a   -1/2 sum_k beta_k a' K_k a,
        0 <= a_i <= w_i / (nu sum w),  sum a = 1,

    w the sample weights, to a certified relative duality gap [1]_, [2]_. The optimum is minus half the squared
    distance of the samples, but for a fraction nu, from the origin of feature space; samples are outliers on the
    origin's side.

    Parameters
    ----------
    <kernels>
    nu : float, default=0.5
        Upper bound on the fraction of training samples that are outliers, lower bound on the fraction of
        support vectors, above 0 and at most 1.
    <norm>
    normalize : None, "variance", "cosine", "trace" or list of these, default="variance"
        Scaling of every kernel, learned on the training samples. Centred kernels are refused: their optimum is
        zero.
    <psd, solver, tol, max_iter, gram_or_torch, memory_limit, verbose, n_jobs, callback, checkpoint>

    Attributes
    ----------
    <weights_, kernel_names_, kernel_contributions_>
    dual_coef_ : ndarray of shape (n_support,)
        Coefficients a of the support vectors; they sum to one.
    <support_>
    offset_ : float
        The border rho: ``decision_function = score_samples - offset_``. It is a nu-quantile of the training scores less
        their rounding, or lower by at most the gap: no more than a fraction nu of the training samples are outliers,
        whatever ``tol``.
    intercept_ : float
        ``-offset_``.
    <certificate, columns>

    References
    ----------
    .. [1] S. Sonnenburg, G. Raetsch, C. Schaefer, A general and efficient multiple kernel learning
    algorithm, NIPS 2005, section 3.
    .. [2] B. Schoelkopf, J. Platt, J. Shawe-Taylor, A. Smola, R. Williamson, Estimating the support of a
    high-dimensional distribution, Neural Computation 13:1443-1471, 2001, doi:10.1162/089976601750264965.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLOneClass
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> model = MKLOneClass(nu=0.1).fit(X)
    >>> model.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    >>> bool(np.mean(model.predict(X) == -1) <= 0.1)
    True
    """

    _on_device = True

    def __init__(
        self,
        kernels="rbf",
        *,
        nu=0.5,
        norm=1.0,
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MKLOneClass:
        """Learn the weights of the kernels and the half-space.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Training samples.
        y : None
            Not used, for interface's sake.
        sample_weight : array of shape (n_samples,), optional
            Weights; they count as repetitions would, and samples of weight zero are left out.

        Returns
        -------
        MKLOneClass
            The fitted estimator.
        """
        check_parameters(self)
        if "center" in np.ravel(self.normalize):
            raise ValueError(
                f"The 'normalize' parameter of {type(self).__name__} must not include 'center': with the mean of the "
                f"samples at the origin the optimum is zero. Got {self.normalize!r} instead."
            )
        samples = check_unlabelled(self, X, sample_weight)
        machine = partial(one_class, type(self).__name__, samples.ones, self.nu)
        targets = one_problem(machine, self.norm, "one class", balanced=False)
        return self._learn(samples, targets, self._settings())

    def _set(self, model: Model, fit: Fit, samples: Samples) -> None:
        super()._set(model, fit, samples)
        self.offset_ = -float(model.intercepts[0])
        if fit.solutions[0].upper > -fit.targets[0].machine.floor:
            warnings.warn(
                f"The samples surround the origin in the feature space of the kernels of {type(self).__name__}: the "
                "optimum is zero, and the model tells no sample from another. Kernels such as RBF do not have this "
                "problem.",
                UserWarning,
                stacklevel=4,
            )

    def score_samples(self, X: Any) -> np.ndarray:
        """Return how far each sample lies from the origin, in the direction learned.

        <samples>

        Returns
        -------
        ndarray of shape (n_samples,)
            sum_k beta_k sum_i a_i k_k(x, x_i); the lower, the more abnormal.
        """
        return self.decision_function(X) + self.offset_

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the signed distance from the border, in units of the score.

        <samples>

        Returns
        -------
        ndarray of shape (n_samples,)
            ``score_samples(X) - offset_``: negative for outliers.
        """
        return self._outputs(X)[:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """Return 1 for inliers and -1 for outliers.

        <samples>

        Returns
        -------
        ndarray of shape (n_samples,)
            1 or -1.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)
