"""Kernels with a chosen degree of redundancy (Kloft et al. 2008, section 4.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state

from multikernel.datasets.checks import balanced_labels, check_integer, check_real


def make_redundant_kernels(
    n_samples: int = 900,
    *,
    n_sets: int = 30,
    n_kernels: int = 30,
    n_features: int = 60,
    expansion: int = 4,
    separation: float = 3.0,
    normalize: bool = True,
    dtype: Any = np.float64,
    random_state=None,
) -> Bunch:
    """Linear kernels of which only ``n_sets`` carry different information (Kloft et al. 2008, section 4.1).

    Two Gaussian classes with unit covariance in d = n_features dimensions are cut into nu = n_sets disjoint
    feature sets; p - nu further sets are drawn from them with replacement; each of the p sets X_i is then
    mixed and enlarged by its own random matrix, and K_i = X_i' A_i' A_i X_i. The ratio nu / p is the share
    of information-carrying kernels: the paper takes nu in {1, 2, 3, 4, 6, 8, 12, 15, 20, 30} and cuts the
    900 samples into thirds for training, validation and test.

    Where the paper is silent or does not divide: the class means are ``separation`` apart, in equal parts
    along every feature; A_i has independent standard normal entries; when nu does not divide d (nu = 8) the
    sets differ in size by one feature.

    Parameters
    ----------
    n_samples : int, default=900
        Number of samples, half of each class (one more of the first when odd).
    n_sets : int, default=30
        Number nu of disjoint feature sets, at most ``n_kernels`` and ``n_features``; the default is the end
        of the paper's range without redundancy.
    n_kernels : int, default=30
        Number p of kernels.
    n_features : int, default=60
        Number d of features of the Gaussian classes.
    expansion : int, default=4
        The factor tau: A_i has tau times as many rows as X_i has features.
    separation : float, default=3.0
        Euclidean distance between the class means; the Bayes error is Phi(-separation / 2).
    normalize : bool, default=True
        Divide each kernel by its mean diagonal minus its mean, over all samples.
    dtype : data-type, default=float64
        Storage of the kernels; the default sizes take 194 MB in float64.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With the attributes

        kernels : ndarray of shape (n_kernels, n_samples, n_samples)
            The stack, as `stack_kernels` takes it.
        features : list of n_kernels ndarrays, each of n_samples rows
            The transformed feature sets, with kernels[i] = features[i] @ features[i].T.
        source : ndarray of shape (n_kernels,)
            The original set 0, ..., n_sets - 1 of each kernel.
        X : ndarray of shape (n_samples, n_features)
            The Gaussian sample.
        y : ndarray of shape (n_samples,)
            Labels -1 and +1.

    References
    ----------
    M. Kloft, U. Brefeld, P. Laskov, S. Sonnenburg. Non-sparse multiple kernel learning. NIPS workshop on kernel
    learning: automatic selection of optimal kernels, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.datasets import make_redundant_kernels
    >>> data = make_redundant_kernels(60, n_sets=3, n_kernels=5, n_features=12, random_state=0)
    >>> data.kernels.shape, [Z.shape for Z in data.features][:2]
    ((5, 60, 60), [(60, 16), (60, 16)])
    >>> bool(np.allclose(data.kernels[4], data.features[4] @ data.features[4].T))
    True
    >>> np.unique(data.source).tolist()
    [0, 1, 2]
    """
    name = "make_redundant_kernels"
    check_integer(name, "n_samples", n_samples, 2)
    check_integer(name, "n_kernels", n_kernels, 1)
    check_integer(name, "n_features", n_features, 1)
    check_integer(name, "n_sets", n_sets, 1, min(n_kernels, n_features))
    check_integer(name, "expansion", expansion, 1)
    check_real(name, "separation", separation)
    if not isinstance(normalize, bool | np.bool_):
        raise ValueError(f"The 'normalize' parameter of {name} must be True or False. Got {normalize!r} instead.")
    rng = check_random_state(random_state)
    y = balanced_labels(n_samples, 2, rng) * 2 - 1
    X = rng.standard_normal((n_samples, n_features))
    X += y[:, None] * (separation / (2.0 * np.sqrt(n_features)))
    sets = np.array_split(np.arange(n_features), n_sets)
    source = np.concatenate([np.arange(n_sets), rng.randint(n_sets, size=n_kernels - n_sets)])
    kernels = np.empty((n_kernels, n_samples, n_samples), dtype=dtype)
    features = []
    for i, which in enumerate(source):
        Z = X[:, sets[which]]
        Z = Z @ rng.standard_normal((expansion * Z.shape[1], Z.shape[1])).T
        if normalize:
            # mean of ||z||^2 minus ||mean z||^2: the mean diagonal of Z Z' minus its mean
            Z = Z / np.sqrt(np.mean(np.sum(Z**2, axis=1)) - np.sum(Z.mean(axis=0) ** 2))
        features.append(Z)
        kernels[i] = Z @ Z.T
    return Bunch(kernels=kernels, features=features, source=source, X=X, y=y)
