"""Descriptions of parameters and attributes that many estimators share, each written once.

In the docstring of a class, or of one of its methods, a line ``<kernels, norm, C>`` stands for the descriptions of
these names, in this order.
"""

from __future__ import annotations

import re
from typing import TypeVar

_Class = TypeVar("_Class", bound=type)

SHARED = {
    "kernels": """
kernels : "rbf", "auto", kernel, its name, list, dict by view, or "precomputed", default="rbf"
    "rbf": Gaussian kernels at several widths around the median distance, on all columns, or on each of several
    views. "auto": what `make_views` proposes for the types of the data. A list holds
    kernels of `multikernel.kernels`, callables k(X, Y), families, or triples (name, kernel, columns);
    parameters of the latter are set as ``name__gamma``. With "precomputed", X is what `stack_kernels`
    returns.""",
    "norm": """
norm : float, default=1.0
    Norm of the weights, from 1 (few kernels) over 2 (all useful kernels) to infinity (the plain sum).""",
    "C": """
C : float, default=1.0
    Cost of the losses.""",
    "probability": """
probability : bool, default=False
    Whether `predict_proba` is calibrated by folds, for any loss: a sigmoid, for more classes a softmax, of the scores
    of samples that were left out in training. `MKLClassifier` trains five models more; a search has the scores.""",
    "normalize": """
normalize : None, "variance", "cosine", "center", "trace" or list of these, default="variance"
    Scaling of every kernel, learned on the training samples.""",
    "psd": """
psd : {"error", "clip", "shift", "flip"}, default="error"
    What to do about a kernel with negative eigenvalues: refuse it, set them to zero, add a multiple of
    the identity, or flip their sign. Clipped and flipped kernels keep all training samples.""",
    "solver": """
solver : str or Solver, default="auto"
    Outer algorithm; all reach the same optimum.""",
    "tol": """
tol : float, default=1e-3
    Relative duality gap to reach.""",
    "max_iter": """
max_iter : int, default=500
    Largest number of outer iterations.""",
    "class_weight": """
class_weight : None, "balanced" or dict, default=None
    Factors of C by class.""",
    "gram": """
gram : {"auto", "dense", "lazy", "memmap"}, default="auto"
    Where kernels are kept: in memory, computed row by row, or in a temporary file.""",
    "gram_or_torch": """
gram : {"auto", "dense", "lazy", "memmap", "torch", "dask"} or TorchStorage, default="auto"
    Where kernels are kept: in memory, computed row by row, in a temporary file, on a GPU by PyTorch, or by rows with
    the workers of the current client of Dask.""",
    "gram_or_features": """
gram : {"auto", "dense", "lazy", "memmap", "torch", "dask", "features"} or TorchStorage, default="auto"
    Where kernels are kept: in memory, computed row by row, in a temporary file, on a GPU by PyTorch, by rows with the
    workers of the current client of Dask, or not at all, with explicit features in their place; "auto" takes features
    from 20,000 samples on where all kernels have them.""",
    "memory_limit": """
memory_limit : float, str or None, default=None
    Bytes, or a text such as "2GB", that kernels may take; None for half of the free memory.""",
    "verbose": """
verbose : int, default=0
    1 shows progress on the terminal and a few plain lines in a file (stderr), 2 one line per iteration.""",
    "n_jobs": """
n_jobs : int or None, default=None
    Threads; None for all that are available.""",
    "callback": """
callback : callable, default=None
    Called after each iteration with its row of ``history_``, a dict that has two entries more: "problem", which
    problem is being solved, and "decision_function", a function that evaluates the iteration's model on samples.""",
    "checkpoint": """
checkpoint : str, path or None, default=None
    Existing folder for the state of a long fit: after the process was killed, the same call with the same samples goes
    on from there. A finished fit removes its file.""",
    "baselines": """
baselines : bool, default=True
    Whether the plain sum of the kernels, and each kernel alone where there are at most 30, compete with the points of
    the grid, on the same folds and at the same costs; their rows follow those of the grid in ``cv_results_``. Where
    the grid has several losses, the squared one among them, kernels alone are tried with that, whose models cost
    least. Ties go to the earlier row. ``mix_gain_`` says what learning the mix bought.""",
    "search": """
cv : int, splitter, iterable or None, default=None
    Folds: their number (None for 5, stratified by class), a splitter of scikit-learn, or pairs (train, test).
scoring : str, callable or None, default=None
    Scorer; None for the `score` of the estimator.
refit : bool or callable, default=True
    Whether the best point is trained on all samples. A callable takes ``cv_results_`` and returns the row.
error_score : "raise" or number, default=nan
    Score of a fit that fails, in a warning; "raise" raises its error.
verbose : int, default=0
    1 shows on the terminal which fold and point are done, 2 one line per fit.
callback : callable, default=None
    Called after each fit with a dict: "done" and "of", how many fits are done of how many, "fold", "params" and
    "gap".""",
    "stopping": """
average : bool, default=True
    Whether predictors averaged over at least the last half of the epochs compete with the last one; the model is
    the one of least objective.
early_stopping : bool, default=False
    Whether a part of the samples is held out, and learning stops when it is no longer classified better; the model
    is then the one that classifies it best.
validation_fraction : float, default=0.1
    The part of the samples that is held out.
n_iter_no_change : int, default=5
    Epochs without improvement before it stops.""",
    "epochs": """
callback : callable, default=None
    Called after each evaluation with its row of ``history_``, a dict that also has "problem", the name of the class.
random_state : int, RandomState or None, default=None
    Order of the samples and choice of those held out.""",
    "block_norms": """
weights_ : ndarray of shape (p,)
    ||w_k|| / sum_j ||w_j||: how much of the predictor lies in each kernel.
block_norms_ : ndarray of shape (p,)
    ||w_k||.
coef_ : ndarray of shape (n_classes, D)
    Where all kernels are linear: w, the blocks side by side, in normalised columns.
support_ : ndarray of int
    Otherwise: training samples that the model refers to.
objective_, dual_objective_ : float
    Value of the objective above, and a lower bound on its minimum.
duality_gap_ : float
    Their relative distance.""",
    "epochs_": """
status_ : str
    "converged", "max_iter", "settled" (early stopping) or "interrupted".
history_ : dict of ndarrays
    One entry per evaluation, which is every epoch up to 100: time, epoch, primal (of the last predictor), upper,
    lower, gap, active and, with early stopping, score.
gram_ : GramInfo
    How the kernels were kept: kind, dtype, nbytes.""",
    "samples": """
Parameters
----------
X : array, sparse matrix or data frame of shape (n_samples, n_features), Views, dict or list of tables, or KernelStack
    Samples.""",
    "fit": """
Parameters
----------
X : array, sparse matrix or data frame of shape (n_samples, n_features), Views, dict or list of tables, or KernelStack
    Training samples.
y : array of shape (n_samples,)
    Classes, of any type.
sample_weight : array of shape (n_samples,), optional
    Weights; they count as repetitions would, and samples of weight zero are left out.

Returns
-------
estimator
    The fitted estimator itself.""",
    "classes_": """
classes_ : ndarray of shape (n_classes,)
    The classes.""",
    "weights_": """
weights_ : ndarray of shape (p,)
    Kernel weights beta.""",
    "kernel_names_": """
kernel_names_ : list of str
    Names of the kernels.""",
    "kernel_contributions_": """
kernel_contributions_ : ndarray of shape (p,)
    cov(f_k, f) / var(f) over the training samples, f_k = beta_k K_k a. They sum to one;
    a kernel that works against the others has a negative one.""",
    "dual_coef_": """
dual_coef_ : ndarray of shape (n_support,)
    Signed coefficients a of the support vectors.""",
    "support_": """
support_ : ndarray of shape (n_support,)
    Rows of the training samples that are support vectors of some problem.""",
    "intercept_": """
intercept_ : float
    Intercept.""",
    "certificate": """
objective_, dual_objective_ : float
    Primal value of the model, and a lower bound on the optimum.
duality_gap_ : float
    Their relative distance.
n_iter_ : int
    Outer iterations.
status_ : str
    "converged", "max_iter", "stalled", "interrupted", or "settled" where the solver stops on the change of weights.
history_ : dict of ndarrays
    time, upper, lower, gap and number of active kernels after each iteration.
solver_ : str
    The solver that ran.
gram_ : GramInfo
    How the kernels were kept: kind, dtype, nbytes, device, recomputed.
model_ : Model
    What the fit learned, enough to predict and to report.""",
    "columns": """
n_features_in_ : int
    Number of columns of X.
feature_names_in_ : ndarray of str
    Names of the columns, where X was a data frame.""",
    "search_results": """
best_params_, best_score_, best_index_ : dict, float, int
    What was chosen among the axes of the grid, its mean score, and its row of the table. Where one kernel alone was
    chosen, "kernel" is its name, and all weight is on it.
cv_results_ : dict of ndarrays
    The table of the search, as that of GridSearchCV: ``params``, ``param_C``, ``split0_test_score``,
    ``mean_test_score``, ``rank_test_score``, ``mean_fit_time`` and so on. What models share counts for each of them
    in equal parts.
weights_path_ : ndarray of shape (n_splits, n_points, p) or (n_splits, n_points, T, p)
    Kernel weights in each fold, for each row of the table; NaN where the fit failed.
mix_gain_ : MixGain or None
    With baselines: by how much the best mix scores above the best baseline, on folds that had no part in choosing
    them, with its standard error; printed, a sentence. None where there is nothing to compare.
n_splits_ : int
    Number of folds.
scorer_ : callable
    The scorer.
refit_time_ : float
    Seconds of the last training.""",
}


def documented(cls: _Class) -> _Class:
    """Fill in the descriptions that the docstrings of a class name in lines such as ``<kernels, norm>``."""

    def described(match: re.Match) -> str:
        lines = [line for name in re.split(r",\s*", match[2]) for line in SHARED[name].strip("\n").splitlines()]
        return "\n".join(match[1] + line if line else line for line in lines)

    # a method that is there for some parameters only is kept as ``fn``
    methods = [getattr(each, "fn", each) for each in vars(cls).values()]
    for each in (cls, *filter(callable, methods)):
        if each.__doc__:
            each.__doc__ = re.sub(r"^( *)<([a-zA-Z_, \n]+)>$", described, each.__doc__, flags=re.M)
    return cls
