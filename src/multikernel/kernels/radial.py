"""Kernels of the distance of two vectors: k(x, z) = h(d(x, z)) with h(0) = 1.

Each has one scale, given as a number or learned as a quantile of the pairwise distances of the training
samples (by default their median), so that the kernel does not depend on the unit of the columns.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from scipy import sparse
from scipy.special import gammaln, kve

from multikernel.kernels.base import Kernel, is_real, require, symmetric_blocks
from multikernel.kernels.distances import FEW_COLUMNS, distances, quantile_distance
from multikernel.kernels.inputs import check_non_negative


class RadialKernel(Kernel):
    """Base class of the kernels of a distance.

    A subclass names its metric and its scale parameters and defines `_set_scale`; where the kernel is not
    exp(-gamma d) it also defines `_profile`.
    """

    positive_semidefinite = True
    _metric = "sqeuclidean"
    _scales: tuple[str, ...] = ()

    def _learns(self):
        return all(getattr(self, key) is None for key in self._scales)

    def _learn(self, X, sample_weight, shared):
        given = []
        for key in self._scales:
            value = getattr(self, key)
            require(self, key, value is None or (is_real(value) and value > 0), "a positive number or None")
            if value is not None:
                given.append(key)
        learned, q = not given, self.quantile
        if q is not None:
            given.append("quantile")
        if len(given) > 1:
            raise ValueError(
                f"Only one of the parameters '{given[0]}' and '{given[1]}' of {type(self).__name__} "
                f"may be given. Got {getattr(self, given[0])!r} and {getattr(self, given[1])!r}."
            )
        require(self, "quantile", q is None or (is_real(q) and 0 < q <= 1), "a number in (0, 1] or None")
        require(self, "factor", is_real(self.factor) and self.factor > 0, "a positive number")
        length = None
        if learned:
            fraction = 0.5 if q is None else float(q)
            known = (self._metric, fraction)
            if known not in shared:
                shared[known] = quantile_distance(self._metric, X, fraction, sample_weight)
            length = self.factor * shared[known]
        elif self.factor != 1:
            raise ValueError(
                f"The 'factor' parameter of {type(self).__name__} must be 1 where '{given[0]}' is given. "
                f"Got {self.factor!r} instead."
            )
        self._set_scale(length)
        # 1, or the power of two next to the largest entry where squares of the entries overflow or vanish
        exponent = math.frexp(np.abs(X.data if sparse.issparse(X) else X).max(initial=0.0))[1]
        self.unit_ = 2.0**exponent if abs(exponent) >= sys.float_info.max_exp // 4 else 1.0
        self.center_ = None
        if self._metric == "sqeuclidean" and not sparse.issparse(X) and X.shape[1] > FEW_COLUMNS:
            self.center_ = X.mean(axis=0)

    def _profile(self, D):
        """Return the values of the kernel at distances in units of ``unit_``; D is overwritten."""
        # a finite factor: distances of zero stay zero
        D *= -min(self.gamma_ * self.unit_, sys.float_info.max)
        return np.exp(D, out=D)

    def _distances(self, X, Y):
        """Return distances in units of ``unit_``, a power of two: nothing is rounded, and no square overflows."""
        center = self.center_
        if self.unit_ != 1.0:
            X, Y, center = X / self.unit_, Y / self.unit_, None if center is None else center / self.unit_
        return distances(self._metric, X, Y, center)

    def _sharing_key(self):
        return self._metric, self.unit_

    def _shared_blocks(self, kernels, X, Y, symmetric, dtype):
        if symmetric:
            D = symmetric_blocks(self._distances, X)
            np.fill_diagonal(D, 0.0)
        else:
            D = self._distances(X, Y)
        rounded, kind = D, np.finfo(dtype)
        # a lower precision keeps the digits of distances well inside its range
        if dtype != np.float64 and np.sqrt(kind.tiny) < D.max(initial=0.0) < np.sqrt(kind.max):
            rounded = D.astype(dtype)
        for kernel in kernels:
            # one exponential is as exact as the precision of the distances
            own = rounded if type(kernel)._profile in (RadialKernel._profile, RBF._profile) else D
            yield kernel._profile(own if kernel is kernels[-1] else own.copy())

    def _cross(self, X, Y):
        return self._profile(self._distances(X, Y))

    def _diag(self, X):
        return np.ones(X.shape[0])


class RBF(RadialKernel):
    """The Gaussian kernel k(x, z) = exp(-gamma |x - z|^2) = exp(-|x - z|^2 / width).

    Parameters
    ----------
    gamma : float, optional
        The factor of the squared distance.
    width : float, optional
        Its inverse.
    quantile : float, optional
        Learn the width: its square root is this quantile of the pairwise distances |x_i - x_j| of the
        training samples, i < j [1]_. Without `gamma`, `width` and `quantile` it is their median, 0.5.
    factor : float, default=1.0
        A multiple of that quantile: width = (factor * quantile of the distances)^2.

    Attributes
    ----------
    length_ : float
        The square root of the width in use.
    width_, gamma_ : float
        The width, and its inverse; zero or infinite where they are beyond the range of floating-point numbers.

    References
    ----------
    .. [1] A. Zien and C. S. Ong, Multiclass multiple kernel learning, ICML 2007, section 3.1.
       https://doi.org/10.1145/1273496.1273646

    Examples
    --------
    >>> from multikernel.kernels import RBF
    >>> RBF(quantile=0.5).fit([[0.0], [1.0], [3.0]]).width_
    4.0
    >>> RBF(width=4.0)([[0.0]], [[2.0]]).round(3)
    array([[0.368]])
    """

    _scales = ("gamma", "width")

    def __init__(self, gamma=None, *, width=None, quantile=None, factor=1.0):
        self.gamma = gamma
        self.width = width
        self.quantile = quantile
        self.factor = factor

    def _set_scale(self, length):
        if length is not None:
            width = length * length
        else:
            width = float(self.width if self.width is not None else 1 / self.gamma)
        self.width_, self.length_ = width, math.sqrt(width) if length is None else length
        self.gamma_ = float(self.gamma if self.gamma is not None else 1 / width if width else math.inf)

    def _profile(self, D):
        factor = self.gamma_
        if self.unit_ != 1.0:
            factor = self.unit_ / self.length_
            factor *= factor
        D *= -min(factor, sys.float_info.max)
        return np.exp(D, out=D)


class Laplacian(RadialKernel):
    """The Laplacian kernel k(x, z) = exp(-gamma sum_j |x_j - z_j|).

    Parameters
    ----------
    gamma : float, optional
        The factor of the distance.
    quantile : float, optional
        Learn gamma: its inverse is this quantile of the pairwise distances of the training samples. Without
        `gamma` and `quantile` it is their median, 0.5.
    factor : float, default=1.0
        A multiple of that quantile.

    Attributes
    ----------
    gamma_ : float
        The factor in use.
    """

    _metric = "cityblock"
    _scales = ("gamma",)

    def __init__(self, gamma=None, *, quantile=None, factor=1.0):
        self.gamma = gamma
        self.quantile = quantile
        self.factor = factor

    def _set_scale(self, length):
        self.gamma_ = float(self.gamma if length is None else 1 / length)


class ChiSquared(Laplacian):
    """The chi-squared kernel k(x, z) = exp(-gamma sum_j (x_j - z_j)^2 / (x_j + z_j)) of histograms.

    Parameters
    ----------
    gamma : float, optional
        The factor of the distance.
    quantile : float, optional
        Learn gamma: its inverse is this quantile of the pairwise distances of the training samples. Without
        `gamma` and `quantile` it is their median, 0.5.
    factor : float, default=1.0
        A multiple of that quantile.

    Attributes
    ----------
    gamma_ : float
        The factor in use.
    """

    _metric = "chi2"

    def _check(self, X):
        X = super()._check(X)
        check_non_negative(X, "ChiSquared")
        return X


class Matern(RadialKernel):
    r"""The Matern kernel of smoothness nu, with t = sqrt(2 nu) |x - z| / length_scale.

        k(x, z) = 2^(1 - nu) / Gamma(nu) t^nu K_nu(t)

    For nu = 0.5, 1.5, 2.5 it is exp(-t), (1 + t) exp(-t), (1 + t + t^2 / 3) exp(-t); for nu = infinity it is
    exp(-|x - z|^2 / (2 length_scale^2)).

    Parameters
    ----------
    length_scale : float, optional
        The unit of distance.
    nu : float, default=1.5
        The smoothness, up to 100, or infinity.
    quantile : float, optional
        Learn the length scale as this quantile of the pairwise distances of the training samples. Without
        `length_scale` and `quantile` it is their median, 0.5.
    factor : float, default=1.0
        A multiple of that quantile.

    Attributes
    ----------
    length_scale_ : float
        The length scale in use.
    """

    _scales = ("length_scale",)

    def __init__(self, length_scale=None, *, nu=1.5, quantile=None, factor=1.0):
        self.length_scale = length_scale
        self.nu = nu
        self.quantile = quantile
        self.factor = factor

    def _learn(self, X, sample_weight, shared):
        known = self.nu == math.inf or (is_real(self.nu) and 0 < self.nu <= 100)
        require(self, "nu", known, "a positive number up to 100, or infinity")
        super()._learn(X, sample_weight, shared)

    def _set_scale(self, length):
        self.length_scale_ = float(self.length_scale if length is None else length)

    def _profile(self, D):
        if self.nu == math.inf:
            factor = self.unit_ / self.length_scale_
            D *= -min(0.5 * factor * factor, sys.float_info.max)
            return np.exp(D, out=D)
        t = np.sqrt(D, out=D)
        t *= math.sqrt(2 * self.nu) * (self.unit_ / self.length_scale_)
        if self.nu == 0.5:
            return np.exp(-t)
        if self.nu == 1.5:
            return (1 + t) * np.exp(-t)
        if self.nu == 2.5:
            return (1 + t + t**2 / 3) * np.exp(-t)
        return _matern(t, float(self.nu))


def _matern(t: np.ndarray, nu: float) -> np.ndarray:
    """Evaluate 2^(1 - nu) / Gamma(nu) t^nu K_nu(t), by its series where K_nu(t) overflows."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        bessel = kve(nu, t)
        K = np.exp((1 - nu) * math.log(2) - gammaln(nu) + nu * np.log(t) + np.log(bessel) - t)
    small = ~np.isfinite(bessel)
    # sum_m (t^2 / 4)^m / (m! (1 - nu) ... (m - nu)), m < nu
    term = np.ones(np.count_nonzero(small))
    total = term.copy()
    for m in range(1, min(math.ceil(nu), 9)):
        term = term * t[small] ** 2 / (4 * m * (m - nu))
        total += term
    K[small] = total
    # K_nu(t) underflows far out, where the kernel does too
    K[np.isnan(K)] = 0.0
    return K
