"""C, norm and kernel margin of M3K by cross-validation, with shared kernels and margins; see docs/margin.md."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np

from multikernel.estimators.m3k import FINITE_NORM, M3KClassifier
from multikernel.model_selection.search import SearchCV
from multikernel.model_selection.searches import MKLClassifierCV


class M3KClassifierCV(SearchCV, M3KClassifier):
    """`M3KClassifier` with C, norm and kernel margin chosen by cross-validation.

    It chooses as ``GridSearchCV(M3KClassifier(...), {"C": Cs, "norm": norms, "gamma0_fraction": gamma0_fractions})``
    does, with shared kernels, shared margins (one largest margin for each fold and norm) and warm starts.

    Parameters
    ----------
    kernels : "rbf", kernel, list, or "precomputed", default="rbf"
        As those of `M3KClassifier`.
    Cs, norms, gamma0_fractions : list of float or None, default=None
        Axes of the grid; None for the one value of `C`, `norm` or `gamma0_fraction`. Fractions are of the largest
        margin of each fold, so that none is infeasible in any.
    cv : int, splitter, iterable or None, default=None
        Folds: their number (None for 5, stratified by class), a splitter of scikit-learn, or pairs (train, test).
    scoring : str, callable or None, default=None
        Scorer; None for the `score` of the estimator.
    refit : bool or callable, default=True
        Whether the best point is trained on all samples. A callable takes ``cv_results_`` and returns the row.
    error_score : "raise" or number, default=nan
        Score of a fit that fails, in a warning; "raise" raises its error.
    n_jobs : int or None, default=None
        Folds that are trained at once, sharing the threads; None for what the surrounding joblib backend says, else 1.
    gamma0, gamma0_fraction, norm, C
        As those of `M3KClassifier`, without effect where the grid has their axis.
    normalize, psd, solver, tol, max_iter, class_weight, gram, memory_limit, verbose, random_state
        As those of `M3KClassifier`.

    Attributes
    ----------
    best_params_, best_score_, best_index_ : dict, float, int
        What was chosen among the axes of the grid, its mean score, and its row of the table.
    C_, norm_, gamma0_fraction_ : float
        The cost, norm and fraction of the choice.
    best_estimator_ : M3KClassifier
        Trained on all samples; its attributes (``weights_``, ``margin_``, ``gamma0_``, ...) and methods are also those
        of the search.
    cv_results_ : dict of ndarrays
        The table of the search, as that of GridSearchCV.
    weights_path_ : ndarray of shape (n_splits, n_points, p)
        Kernel weights in each fold, for each row of the table; NaN where the fit failed.
    n_splits_ : int
        Number of folds.
    scorer_ : callable
        The scorer.
    refit_time_ : float
        Seconds of the last training.

    See Also
    --------
    M3KClassifier : The base estimator, with all fitted attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import M3KClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], 20)
    >>> X = np.eye(3)[y] + 0.5 * rng.normal(size=(60, 3))
    >>> search = M3KClassifierCV(Cs=[0.1, 1.0], gamma0_fractions=[0.5, 1.0], cv=3).fit(X, y)
    >>> sorted(search.best_params_), search.weights_path_.shape, bool(search.margin_ >= search.gamma0_ - 1e-9)
    (['C', 'gamma0_fraction'], (3, 4, 5), True)
    """

    _base = M3KClassifier
    _axis_rules = MappingProxyType({"norm": FINITE_NORM})

    def __init__(
        self,
        kernels="rbf",
        *,
        Cs=None,
        norms=None,
        gamma0_fractions=None,
        cv=None,
        scoring=None,
        refit=True,
        error_score=np.nan,
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
        random_state=None,
    ):
        super().__init__(
            kernels, gamma0=gamma0, gamma0_fraction=gamma0_fraction, norm=norm, C=C, normalize=normalize, psd=psd,
            solver=solver, tol=tol, max_iter=max_iter, class_weight=class_weight, gram=gram, memory_limit=memory_limit,
            verbose=verbose, n_jobs=n_jobs, random_state=random_state,
        )  # fmt: skip
        self.Cs = Cs
        self.norms = norms
        self.gamma0_fractions = gamma0_fractions
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.error_score = error_score

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> M3KClassifierCV:
        """Search the grid, and train the best point on all samples.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or KernelStack
            Training samples.
        y : array of shape (n_samples,)
            Classes, of any type.
        sample_weight : array of shape (n_samples,), optional
            Weights in training, and in scoring where GridSearchCV of the installed scikit-learn hands them on.
        groups : array of shape (n_samples,), optional
            Groups, for a splitter that takes them.

        Returns
        -------
        M3KClassifierCV
            The fitted estimator.
        """
        return self._search(X, y, sample_weight, groups)

    def _check_base(self) -> None:
        if self.gamma0_fractions is not None and self.gamma0 != "max":
            raise ValueError(
                f"The 'gamma0' parameter of {type(self).__name__} must be 'max' where 'gamma0_fractions' are given. "
                f"Got {self.gamma0!r} instead."
            )
        self._check_own()

    _check_y = MKLClassifierCV._check_y
