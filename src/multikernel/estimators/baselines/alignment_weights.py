"""Weights by how well kernels are aligned with the targets.

With K~ the centred kernels, T T' the target kernel (yy' for two classes and for numbers, the Gram matrix of the class
indicators for more) and M_kl = <K~_k, K~_l>, a_k = <K~_k, T T'>:

    align        beta_k proportional to a_k / |K~_k|
    alignf       v minimises v'Mv - 2 v'a over v >= 0,   beta = v / |v|
    FHeuristic   beta_k proportional to <K_k, T T'> / |K_k|, nothing centred

The nonnegative programme maximises the alignment of sum_k v_k K_k itself. The unconstrained inverse M^-1 a has
negative entries on kernels that are nearly collinear, and is not it.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from multikernel.estimators.baselines.kernel_products import kernel_products
from multikernel.estimators.baselines.weights import KernelWeights, shares
from multikernel.kernels.base import ROUNDING

# added to the diagonal of the kernels' correlations, so that copies of a kernel share its weight: correlations of
# positive semidefinite kernels are not negative, and the objective changes by no more than this fraction of itself
_RIDGE = 1e-9


def in_units_of_largest(T: np.ndarray) -> tuple[np.ndarray, float]:
    """Return targets divided by a power of two, so that their fourth powers are in the range of float64, and that."""
    unit = float(np.ldexp(1.0, np.frexp(np.abs(T).max())[1] - 1))
    return T / unit, unit


class _Aligned(KernelWeights):
    """Weights proportional to a_k / |K_k|."""

    _centred = True

    def _learn(self, gram, targets, tell):
        T = in_units_of_largest(targets.factor(self._centred))[0]
        found = kernel_products(gram, T, targets.weight, centred=self._centred, cross=False, tell=tell)
        root = np.sqrt(targets.weight)[:, None]
        norms = np.sqrt(found.M) * np.linalg.norm((root * T).T @ (root * T))
        self.alignments_ = _quotient(found.a, norms)
        return shares(self.alignments_)


class AlignWeights(_Aligned):
    """Each kernel's own centred alignment with the targets [1]_.

        beta_k = rho_k / sum_j rho_j,     rho_k = <K~_k, T T'> / (|K~_k| |T T'|)

    K~ the centred kernel, T the centred labels: -1 and 1 for two classes, indicators for more, or numbers.

    Attributes
    ----------
    weights_ : ndarray of shape (p,)
        Weights of sum one.
    alignments_ : ndarray of shape (p,)
        rho, from 0 to 1 for positive semidefinite kernels.

    References
    ----------
    .. [1] C. Cortes, M. Mohri, A. Rostamizadeh, Algorithms for learning kernels based on centered alignment,
    JMLR 13:795-828, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.estimators.baselines import AlignWeights
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> AlignWeights().fit([np.outer(x, x), np.eye(4)], np.sign(x)).weights_.round(3)
    array([0.609, 0.391])
    """


class FHeuristicWeights(_Aligned):
    """Each kernel's alignment with the targets, nothing centred [1]_, [2]_.

        beta_k = A_k / sum_j A_j,     A_k = <K_k, T T'> / (|K_k| |T T'|)

    T the labels -1 and 1 for two classes, indicators for more, or numbers as they are.

    Attributes
    ----------
    weights_ : ndarray of shape (p,)
        Weights of sum one.
    alignments_ : ndarray of shape (p,)
        A, from 0 to 1 for positive semidefinite kernels.

    References
    ----------
    .. [1] S. Qiu, T. Lane, A framework for multiple kernel support vector regression and its applications to siRNA
    efficacy prediction, IEEE/ACM TCBB 6:190-199, 2009.
    .. [2] M. Goenen, E. Alpaydin, Multiple kernel learning algorithms, JMLR 12:2211-2268, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.estimators.baselines import FHeuristicWeights
    >>> FHeuristicWeights().fit([np.eye(4), np.ones((4, 4))], [0, 0, 1, 1]).weights_
    array([1., 0.])
    """

    _centred = False


class AlignFWeights(KernelWeights):
    """The mix of kernels best aligned with the targets, weights never negative [1]_.

        v minimises v'Mv - 2 v'a over v >= 0,      M_kl = <K~_k, K~_l>,   a_k = <K~_k, T T'>,     beta = v / |v|

    K~ the centred kernels, T the centred labels: -1 and 1 for two classes, indicators for more, or numbers. Kernels
    that are copies of each other up to a factor share their weight.

    Attributes
    ----------
    weights_ : ndarray of shape (p,)
        Weights of Euclidean norm one.
    objective_ : float
        v'Mv - 2 v'a at the v that was found.
    alignment_ : float
        Centred alignment of the mix with the targets, at most one.

    References
    ----------
    .. [1] C. Cortes, M. Mohri, A. Rostamizadeh, Algorithms for learning kernels based on centered alignment,
    JMLR 13:795-828, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.estimators.baselines import AlignFWeights
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> weights = AlignFWeights().fit([np.outer(x, x) for x in X.T], X[:, 0] > 0)
    >>> weights.weights_.round(1)
    array([1., 0., 0.])
    """

    def _learn(self, gram, targets, tell):
        T, unit = in_units_of_largest(targets.factor())
        found = kernel_products(gram, T, targets.weight, tell=tell)
        v = nonnegative_minimiser(found.M, found.a)
        self.objective_ = float(v @ found.M @ v - 2.0 * v @ found.a) * unit * unit * unit * unit
        root = np.sqrt(targets.weight)[:, None]
        size = np.sqrt(max(v @ found.M @ v, 0.0)) * np.linalg.norm((root * T).T @ (root * T))
        self.alignment_ = float(_quotient(np.array([v @ found.a]), np.array([size]))[0])
        length = np.linalg.norm(v)
        return v / length if length > 0 else np.full(len(v), 1.0 / np.sqrt(len(v)))


def nonnegative_minimiser(M: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Minimise v'Mv - 2 v'a over v >= 0, M positive semidefinite, as least squares in a root of M.

    Examples
    --------
    >>> import numpy as np
    >>> nonnegative_minimiser(np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([2.0, 2.0])).round(6)
    array([1., 1.])
    """
    size = np.sqrt(np.maximum(np.diag(M), 0.0))
    useful = np.flatnonzero(size > ROUNDING * size.max(initial=0.0))
    v = np.zeros(len(a))
    if not len(useful):
        return v
    # correlations of the kernels, so that scales do not matter
    size = size[useful]
    values, U = np.linalg.eigh(M[np.ix_(useful, useful)] / np.multiply.outer(size, size))
    values = np.maximum(values, 0.0) + _RIDGE
    v[useful] = nnls(np.sqrt(values)[:, None] * U.T, U.T @ (a[useful] / size) / np.sqrt(values))[0] / size
    return v


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b, zero where b is."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
