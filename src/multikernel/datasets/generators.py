"""The toy problems of the papers, one function each, drawn from a seed.

| function | drawn as in |
| --- | --- |
| `make_stars` | Sonnenburg et al. 2005, Figure 1: two nested stars |
| `make_sine` | Sonnenburg et al. 2005, Figure 2: a sine of growing frequency |
| `make_linear_two_sines` | Sonnenburg et al. 2005, Figure 3: f(x) = c x + sin(a x) + sin(b x) |
| `make_simplex` | Zien & Ong 2007, section 3.1: class centres at the vertices of a simplex |
| `make_related_classes` | Zien & Ong 2007, Figure 4: three Gaussian classes, some closer than others |

Where a paper prints a parameter it is the default; where it prints none, the docstring says which value is
ours. The kernels of Kloft et al. 2008 are in `redundant`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import helmert
from sklearn.utils import check_random_state

from multikernel.datasets.checks import balanced_labels, check_integer, check_real


def make_stars(
    n_samples: int = 1000,
    *,
    distance: float = 0.5,
    n_rays: int = 6,
    ray_length: float = 0.4,
    noise: float = 0.1,
    random_state=None,
) -> tuple[np.ndarray, np.ndarray]:
    """Two nested stars in the plane (Sonnenburg et al. 2005, Figure 1).

    At angle theta the inner star lies at radius 1 + ray_length cos(n_rays theta), the outer one ``distance``
    further out; Gaussian noise is added to both coordinates. As the distance grows the problem becomes
    separable and wider Gaussian kernels are chosen. The paper prints neither the shape nor the sizes: all
    defaults are ours.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points, half of them (one more when odd) on the inner star.
    distance : float, default=0.5
        Radial distance between the stars; 0 makes the classes the same.
    n_rays : int, default=6
        Number of rays of each star.
    ray_length : float, default=0.4
        Amplitude of the rays, below 1.
    noise : float, default=0.1
        Standard deviation of the noise.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points.
    y : ndarray of shape (n_samples,)
        +1 on the outer star, -1 on the inner one.

    References
    ----------
    S. Sonnenburg, G. Raetsch, C. Schaefer. A general and efficient multiple kernel learning algorithm. NIPS
    2005.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.datasets import make_stars
    >>> X, y = make_stars(200, distance=1.0, noise=0.0, random_state=0)
    >>> X.shape, int((y > 0).sum())
    ((200, 2), 100)
    >>> radius = np.hypot(X[:, 0], X[:, 1])
    >>> bool(radius[y > 0].min() >= 1.6), bool(radius[y < 0].max() <= 1.4)
    (True, True)
    """
    check_integer("make_stars", "n_samples", n_samples, 2)
    check_real("make_stars", "distance", distance)
    check_integer("make_stars", "n_rays", n_rays, 1)
    check_real("make_stars", "ray_length", ray_length, below=1.0)
    check_real("make_stars", "noise", noise)
    rng = check_random_state(random_state)
    y = balanced_labels(n_samples, 2, rng) * 2 - 1
    theta = rng.uniform(0.0, 2.0 * np.pi, size=n_samples)
    radius = 1.0 + ray_length * np.cos(n_rays * theta) + distance * (y > 0)
    X = radius[:, None] * np.column_stack([np.cos(theta), np.sin(theta)])
    return X + noise * rng.standard_normal(X.shape), y


def make_sine(
    n_samples: int = 200,
    *,
    frequency: float = 1.0,
    span: float = 10.0,
    noise: float = 0.0,
    random_state=None,
) -> tuple[np.ndarray, np.ndarray]:
    """A sine wave to be regressed, y = sin(frequency x) (Sonnenburg et al. 2005, Figure 2).

    As the frequency grows the weights switch to narrower Gaussian kernels. The paper prints neither the
    number of points nor the interval: those defaults are ours.

    Parameters
    ----------
    n_samples : int, default=200
        Number of points.
    frequency : float, default=1.0
        Angular frequency.
    span : float, default=10.0
        The points are drawn uniformly from [0, span].
    noise : float, default=0.0
        Standard deviation of Gaussian noise on y.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The points, in increasing order.
    y : ndarray of shape (n_samples,)
        The targets.

    References
    ----------
    S. Sonnenburg, G. Raetsch, C. Schaefer. A general and efficient multiple kernel learning algorithm. NIPS
    2005.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.datasets import make_sine
    >>> X, y = make_sine(50, frequency=3.0, random_state=0)
    >>> bool(np.allclose(y, np.sin(3.0 * X[:, 0])))
    True
    """
    check_real("make_sine", "frequency", frequency)
    return _waves("make_sine", n_samples, 0.0, (frequency,), span, noise, random_state)


def make_linear_two_sines(
    n_samples: int = 200,
    *,
    slope: float = 1.0,
    low_frequency: float = 1.0,
    high_frequency: float = 10.0,
    span: float = 10.0,
    noise: float = 0.0,
    random_state=None,
) -> tuple[np.ndarray, np.ndarray]:
    """A line and two sines, f(x) = c x + sin(a x) + sin(b x) (Sonnenburg et al. 2005, Figure 3).

    A wide Gaussian kernel models the line, a medium one the slow sine, and narrower ones the fast sine as its
    frequency grows. The paper prints the form but not c, a, b, the number of points or the interval: these
    defaults are ours.

    Parameters
    ----------
    n_samples : int, default=200
        Number of points.
    slope : float, default=1.0
        The factor c of the line.
    low_frequency, high_frequency : float, default=1.0 and 10.0
        The angular frequencies a and b.
    span : float, default=10.0
        The points are drawn uniformly from [0, span].
    noise : float, default=0.0
        Standard deviation of Gaussian noise on y.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The points, in increasing order.
    y : ndarray of shape (n_samples,)
        The targets.

    References
    ----------
    S. Sonnenburg, G. Raetsch, C. Schaefer. A general and efficient multiple kernel learning algorithm. NIPS
    2005.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.datasets import make_linear_two_sines
    >>> X, y = make_linear_two_sines(50, slope=2.0, high_frequency=7.0, random_state=0)
    >>> x = X[:, 0]
    >>> bool(np.allclose(y, 2.0 * x + np.sin(x) + np.sin(7.0 * x)))
    True
    """
    check_real("make_linear_two_sines", "slope", slope, least=-np.inf)
    check_real("make_linear_two_sines", "low_frequency", low_frequency)
    check_real("make_linear_two_sines", "high_frequency", high_frequency)
    frequencies = (low_frequency, high_frequency)
    return _waves("make_linear_two_sines", n_samples, slope, frequencies, span, noise, random_state)


def make_simplex(
    n_samples: int = 300, *, n_classes: int = 3, noise: float = 0.3, random_state=None
) -> tuple[np.ndarray, np.ndarray]:
    """Classes at the vertices of a regular simplex, with Gaussian noise (Zien & Ong 2007, section 3.1).

    The c centres are the vertices of the standard simplex, at distance sqrt(2) from each other, in the c - 1
    dimensions they span (four classes: a tetrahedron in three dimensions). Defaults are the paper's base
    case.

    Parameters
    ----------
    n_samples : int, default=300
        Number of points, spread evenly over the classes.
    n_classes : int, default=3
        Number of classes c.
    noise : float, default=0.3
        Standard deviation of the noise.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    X : ndarray of shape (n_samples, n_classes - 1)
        The points.
    y : ndarray of shape (n_samples,)
        The classes 0, ..., n_classes - 1.

    References
    ----------
    A. Zien, C. S. Ong. Multiclass multiple kernel learning. ICML 2007. doi:10.1145/1273496.1273646.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.datasets import make_simplex
    >>> X, y = make_simplex(8, n_classes=4, noise=0.0, random_state=0)
    >>> X.shape, np.bincount(y).tolist()
    ((8, 3), [2, 2, 2, 2])
    >>> centres = np.array([X[y == u][0] for u in range(4)])
    >>> np.linalg.norm(centres[1:] - centres[0], axis=1).round(6).tolist()
    [1.414214, 1.414214, 1.414214]
    """
    check_integer("make_simplex", "n_classes", n_classes, 2)
    check_integer("make_simplex", "n_samples", n_samples, n_classes)
    check_real("make_simplex", "noise", noise)
    rng = check_random_state(random_state)
    y = balanced_labels(n_samples, n_classes, rng)
    X = helmert(n_classes).T[y]
    return X + noise * rng.standard_normal(X.shape), y


def make_related_classes(
    n_samples: int = 300,
    *,
    centers: Sequence[Sequence[float]] = ((-2.0, 0.0), (-1.0, 1.0), (2.5, 0.0)),
    noise: float = 0.5,
    random_state=None,
) -> tuple[np.ndarray, np.ndarray]:
    """Three Gaussian classes with different pairwise relations (Zien & Ong 2007, section 3.4 and Figure 4).

    The setting in which the kernel on the classes is learned: its Euclidean embedding should show which
    classes are close. The paper draws the classes without printing numbers: the centres and the noise are
    ours (the first two classes are near each other, the third is far from both, less far from the second).

    Parameters
    ----------
    n_samples : int, default=300
        Number of points, spread evenly over the classes.
    centers : array-like of shape (n_classes, n_features), default=((-2, 0), (-1, 1), (2.5, 0))
        The class centres.
    noise : float, default=0.5
        Standard deviation of every class in every direction.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The points.
    y : ndarray of shape (n_samples,)
        The classes 0, ..., n_classes - 1.

    References
    ----------
    A. Zien, C. S. Ong. Multiclass multiple kernel learning. ICML 2007. doi:10.1145/1273496.1273646.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.datasets import make_related_classes
    >>> X, y = make_related_classes(300, random_state=0)
    >>> X.shape, np.bincount(y).tolist()
    ((300, 2), [100, 100, 100])
    >>> means = np.array([X[y == u].mean(axis=0) for u in range(3)])
    >>> near, far = np.linalg.norm(means[0] - means[1]), np.linalg.norm(means[0] - means[2])
    >>> bool(near < far / 2)
    True
    """
    means = np.asarray(centers)
    if means.dtype.kind not in "biuf" or means.ndim != 2 or len(means) < 2 or not np.isfinite(means).all():
        raise ValueError(
            "The 'centers' parameter of make_related_classes must be finite numbers of shape "
            f"(n_classes, n_features) with at least two rows. Got shape {means.shape} instead."
        )
    check_integer("make_related_classes", "n_samples", n_samples, len(means))
    check_real("make_related_classes", "noise", noise)
    rng = check_random_state(random_state)
    y = balanced_labels(n_samples, len(means), rng)
    return means[y] + noise * rng.standard_normal((n_samples, means.shape[1])), y


def _waves(name, n_samples, slope, frequencies, span, noise, random_state):
    """Points x on [0, span] and slope x + sum of sin(frequency x) + noise."""
    check_integer(name, "n_samples", n_samples, 1)
    check_real(name, "span", span)
    check_real(name, "noise", noise)
    rng = check_random_state(random_state)
    x = np.sort(rng.uniform(0.0, span, size=n_samples))
    y = slope * x + sum(np.sin(frequency * x) for frequency in frequencies)
    return x[:, None], y + noise * rng.standard_normal(n_samples)
