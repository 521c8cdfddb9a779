"""Novelty and outlier detection by a learned mix of kernels; see docs/oneclass.md for the problem that is solved."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import _num_samples

from multikernel.estimators.base import BaseMKL
from multikernel.estimators.reporting import warn_unfinished
from multikernel.estimators.validation import check_parameters, check_samples, check_weight
from multikernel.gram.base import Gram
from multikernel.kernels.bank import take_rows
from multikernel.kernels.normalize import check_steps
from multikernel.machines.box import ON_BOUND
from multikernel.machines.oneclass import OneClass
from multikernel.solution import Solution
from multikernel.training.publish import contributions

# the identity on n samples has a squared mean of 1/n; below this fraction of it the mean is the origin
_CENTRED = 1e-3


def _border(machine: OneClass, solution: Solution, eps: float) -> float:
    """Return rho, or less: at the optimum f_i < rho only where a_i is at its bound, which nu n samples are at most."""
    f = solution.weights @ solution.outputs
    inside = f[solution.dual_coef < (1.0 - ON_BOUND) * machine.hi]
    return float(min(-solution.intercept, inside.min(initial=np.inf)) - 16 * eps * np.abs(f).max())


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
    kernels : "rbf", kernel, list, or "precomputed", default="rbf"
        "rbf": Gaussian kernels at several widths around the median distance, on all columns. A list holds
        kernels of `multikernel.kernels`, callables k(X, Y), families, or triples (name, kernel, columns);
        parameters of the latter are set as ``name__gamma``. With "precomputed", X is what `stack_kernels`
        returns.
    nu : float, default=0.5
        Upper bound on the fraction of training samples that are outliers, lower bound on the fraction of
        support vectors, above 0 and at most 1.
    norm : float, default=1.0
        Norm of the weights, from 1 (few kernels) over 2 (all useful kernels) to infinity (the plain sum).
    normalize : None, "variance", "cosine", "trace" or list of these, default="variance"
        Scaling of every kernel, learned on the training samples. Centred kernels are refused: their optimum is
        zero.
    psd : {"error", "clip", "shift", "flip"}, default="error"
        What to do about a kernel with negative eigenvalues: refuse it, set them to zero, add a multiple of
        the identity, or flip their sign. Clipped and flipped kernels keep all training samples.
    solver : str or Solver, default="auto"
        Outer algorithm; all reach the same optimum.
    tol : float, default=1e-3
        Relative duality gap to reach.
    max_iter : int, default=500
        Largest number of outer iterations.
    gram : {"auto", "dense", "lazy", "memmap"}, default="auto"
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
    weights_ : ndarray of shape (p,)
        Kernel weights beta.
    kernel_names_ : list of str
        Names of the kernels.
    kernel_contributions_ : ndarray of shape (p,)
        cov(f_k, f) / var(f) over the training samples, f_k = beta_k K_k a: shares that sum to one.
    dual_coef_ : ndarray of shape (n_support,)
        Coefficients a of the support vectors; they sum to one.
    support_ : ndarray of shape (n_support,)
        Rows of the training samples that are support vectors.
    offset_ : float
        The border rho: ``decision_function = score_samples - offset_``. It is lowered by as much as the solution is
        inexact, so that samples on the border are inliers and no more than a fraction nu of the training samples are
        outliers, whatever ``tol``.
    intercept_ : float
        ``-offset_``.
    objective_, dual_objective_ : float
        Primal value of the model, and a lower bound on the optimum; at most zero at the optimum.
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
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns, where X was a data frame.

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
        random_state=None,
    ):
        self.kernels = kernels
        self.nu = nu
        self.norm = norm
        self.normalize = normalize
        self.psd = psd
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.gram = gram
        self.memory_limit = memory_limit
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state

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
        if "center" in check_steps(self.normalize):
            raise ValueError(
                f"The 'normalize' parameter of {type(self).__name__} must not include 'center': with the mean of the "
                f"samples at the origin the optimum is zero. Got {self.normalize!r} instead."
            )
        X = check_samples(self, X, reset=True)
        n = _num_samples(X)
        weight = check_weight(X, sample_weight)
        kept = np.arange(n) if weight is None else np.flatnonzero(weight)
        own = np.ones(len(kept)) if weight is None else weight[kept]
        if weight is not None and not self._precomputed and len(kept) < n:
            X, weight = take_rows(X, kept), own
        kernels = self._make_kernels(X, weight)
        size = self._check_origin(kernels.gram, own / own.sum())
        machine = OneClass(own, self.nu, size)
        solutions = self._solve_all(kernels, [machine], [None], ["one class"])
        solution = solutions[0]
        self.offset_ = _border(machine, solution, np.finfo(kernels.gram.dtype).eps)
        placed = [replace(solution, intercept=-self.offset_)]
        self._store_model(kernels, placed, solution.dual_coef[:, None], balanced=False)
        self.kernel_contributions_ = contributions(solution.weights, solution.outputs, own)
        self.support_ = kept[self._support]
        warn_unfinished(self, solutions, ["one class"])
        if solution.upper > -machine.floor:
            warnings.warn(
                f"The samples surround the origin in the feature space of the kernels of {type(self).__name__}: the "
                "optimum is zero, and the model tells no sample from another. Kernels such as RBF do not have this "
                "problem.",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _check_origin(self, gram: Gram, share: np.ndarray) -> float:
        """Raise where the samples' mean is the origin for every kernel; return the largest mean k(x, x)."""
        size, mean = gram.diag() @ share, gram.apply(share) @ share
        if np.all(mean <= _CENTRED * size * float(share @ share)):
            raise ValueError(
                f"The kernels of {type(self).__name__} must not be centred: with the mean of the samples at the origin "
                "the optimum is zero. Got kernels whose entries have the mean zero."
            )
        return float(size.max())

    def score_samples(self, X: Any) -> np.ndarray:
        """Return how far each sample lies from the origin, in the direction learned.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            sum_k beta_k sum_i a_i k_k(x, x_i); the lower, the more abnormal.
        """
        return self.decision_function(X) + self.offset_

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the signed distance from the border, in units of the score.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            ``score_samples(X) - offset_``: negative for outliers.
        """
        return self._outputs(X)[:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """Return 1 for inliers and -1 for outliers.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            1 or -1.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)
