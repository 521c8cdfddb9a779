"""The multi-class kernel margin: Definition 1 of Cortes, Mohri & Rostamizadeh 2013, and its empirical value (6).

    gamma_K(x, y) = mean of K(x, x') over x' of class y - largest such mean over the other classes,

per sample, and averaged over the samples. The mean over a sample's own class includes the sample itself, as in (4); for
a class of one sample this mean is K(x, x).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from multikernel.estimators.validation import check_labels, check_vector
from multikernel.gram.soundness import as_gram
from multikernel.mixing import MarginTable, margin_table


def kernel_margin(
    stack: Any, y: Any, weights: Any = None, *, sample_weight: Any = None, per_sample: bool = False
) -> Any:
    """Return the kernel margin of a weighted sum of kernels.

    Parameters
    ----------
    stack : KernelStack, array (p, n, n), list of arrays (n, n), or Gram
        Kernels on n samples.
    y : array of shape (n,)
        Classes, of any type, at least two.
    weights : array of shape (p,), optional
        Weights of the kernels; equal ones, of sum one, by default.
    sample_weight : array of shape (n,), optional
        Positive weights of the samples; a weight of two counts as two copies of the sample.
    per_sample : bool
        Whether to return the margin of each sample instead of the mean.

    Returns
    -------
    float or ndarray of shape (n,)
        The mean margin (6), or the margin of each sample.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.theory import kernel_margin
    >>> X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> y = ["a", "a", "b", "b"]
    >>> kernel_margin([X @ X.T, np.eye(4)], y, weights=[1.0, 0.0]), kernel_margin([X @ X.T, np.eye(4)], y)
    (1.0, 0.75)
    >>> kernel_margin([np.eye(4)], y, per_sample=True)
    array([0.5, 0.5, 0.5, 0.5])
    """
    if not isinstance(per_sample, bool | np.bool_):
        raise ValueError(
            f"The 'per_sample' parameter of kernel_margin must be True or False. Got {per_sample!r} instead."
        )
    table = table_of(stack, y, sample_weight)
    beta = checked_weights(weights, table.n_kernels)
    return table.nearest(beta)[1] if per_sample else table.value(beta)


def margin_coefficients(stack: Any, y: Any, *, sample_weight: Any = None) -> np.ndarray:
    """Return eta_iuk: how much more similar sample i is to its own class than to class u, under kernel k.

    One pass over the kernels: O(p n^2) time, O(p n c) memory.

    Parameters
    ----------
    stack : KernelStack, array (p, n, n), list of arrays (n, n), or Gram
        Kernels on n samples.
    y : array of shape (n,)
        Classes, of any type, at least two.
    sample_weight : array of shape (n,), optional
        Positive weights of the samples.

    Returns
    -------
    ndarray of shape (n, c, p)
        Classes in sorted order; zero where u is the sample's own class.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.theory import margin_coefficients
    >>> margin_coefficients([np.eye(4)], ["a", "a", "b", "b"])[0, :, 0]
    array([0. , 0.5])
    """
    table = table_of(stack, y, sample_weight)
    own = table.means[:, table.codes, np.arange(len(table.codes))]
    return (own[:, None] - table.means).transpose(2, 1, 0)


def table_of(stack: Any, y: Any, sample_weight: Any = None) -> MarginTable:
    """Check kernels and classes; return the mean similarities of every sample to every class."""
    gram = as_gram(stack)
    n = gram.n_samples
    if np.shape(y) != (n,):
        raise ValueError(f"y must hold one class for each of {n} samples. Got shape {np.shape(y)} instead.")
    y = check_labels("a kernel margin", y, n)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"Kernel margins need samples of at least 2 classes. Got {len(classes)} instead.")
    if sample_weight is not None:
        what = f"The sample weights must be {n} positive numbers"
        sample_weight = check_vector(sample_weight, n, what, lambda w: w > 0)
    return margin_table(gram, codes, sample_weight, len(classes))


def checked_weights(weights: Any, p: int) -> np.ndarray:
    """Check and return the weights of p kernels; for None equal weights of sum one."""
    if weights is None:
        return np.full(p, 1.0 / p)
    return check_vector(
        weights, p, f"The weights must be {p} non-negative numbers, one per kernel", lambda beta: beta >= 0
    )
