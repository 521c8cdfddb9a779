"""What a loss is: value, gradient, conjugate and task; all but the first two have defaults."""

from __future__ import annotations

import numpy as np

# distance from y up to which a loss without formulas is searched: larger finds more slopes, and overflows sooner
FAR = 1e8
# distances from y of a global search for the conjugate
_GRID = np.concatenate([-np.geomspace(FAR, 1e-4, 40), [0.0], np.geomspace(1e-4, FAR, 40)])


def largest_log() -> float:
    """Return the largest size of a logarithm of a number of float64 below one, or of its distance from one."""
    return 1.0 - float(np.log(np.finfo(float).eps))


class Loss:
    """A convex loss l(f, y) of one output, differentiable: what a user writes from value and gradient alone.

    A subclass defines ``value`` and ``gradient``. The second derivative, the conjugate and the domain of the conjugate
    are then found by differences and one-dimensional searches; a subclass that has formulas for them is faster. A
    machine multiplies the loss by the cost C of a sample: (C l)*(-a) = C l*(-a / C).

    Attributes
    ----------
    name : str, optional
        What users call the loss; without it, the name of the class.
    task : {"classification", "regression"}
        What y is: labels -1 and 1, or real numbers.
    curvature_bound : float
        Upper bound of the second derivative at cost one, infinity where none is known.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.losses import Loss
    >>> class Quartic(Loss):
    ...     task = "regression"
    ...     def value(self, f, y):
    ...         return (f - y) ** 4
    ...     def gradient(self, f, y):
    ...         return 4 * (f - y) ** 3
    >>> # the conjugate of t^4 at 4 is 3
    >>> Quartic().conjugate(np.array([-4.0]), np.array([0.0])).round(9)
    array([3.])
    """

    task: str = "regression"

    def __post_init__(self) -> None:
        """Check the numbers of a loss that is a dataclass; C may be an array."""
        signs = {
            "C": "positive",
            "sigma": "positive",
            "delta": "positive",
            "epsilon": "non-negative",
            "margin": "finite",
        }
        for name in vars(self).keys() & signs.keys():
            value, sign = getattr(self, name), signs[name]
            numbers = np.asarray(value)
            if numbers.dtype.kind in "iuf":
                above = numbers > 0 if sign == "positive" else numbers >= 0
                wrong = ~(np.isfinite(numbers) & (above | (sign == "finite")))
                if not wrong.any():
                    continue
                value = numbers[wrong][0].item()
            owner = type(self).__name__
            raise ValueError(f"The '{name}' parameter of {owner} must be a {sign} number. Got {value!r} instead.")

    @property
    def curvature_bound(self) -> float:
        """Upper bound of the second derivative at cost one."""
        return np.inf

    @property
    def steepness(self) -> float:
        """Largest slope of a conjugate that has logarithms, at numbers of 53 binary digits; else zero."""
        return 0.0

    def value(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Loss of each sample."""
        raise NotImplementedError(f"A loss must define 'value'. {type(self).__name__} does not.")

    def gradient(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Derivative by f."""
        raise NotImplementedError(f"A loss must define 'gradient'. {type(self).__name__} does not.")

    def concavity(self) -> tuple[float, float, float] | None:
        """Return y and two outputs between which the gradient falls; None where it falls nowhere on a grid."""
        f = np.linspace(-20.0, 20.0, 2001)
        for y in (1.0, -1.0, 0.0) if self.task == "regression" else (1.0, -1.0):
            slope = np.asarray(self.gradient(y + f, np.full(len(f), y)), float)
            falling = np.flatnonzero(np.diff(slope) < -1e-9 * max(np.abs(slope).max(), 1e-300))
            if len(falling):
                return y, float(y + f[falling[0]]), float(y + f[falling[0] + 1])
        return None

    def hessian(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivative by f, at least zero: here by a central difference of the gradient."""
        h = 1e-5 * np.maximum(1.0, np.abs(f))
        return np.maximum((self.gradient(f + h, y) - self.gradient(f - h, y)) / (2.0 * h), 0.0)

    def domain(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and largest a with a finite conjugate l*(-a, y): here the slopes far away from y."""
        y = np.asarray(y, float)
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = (-np.asarray(self.gradient(y + sign * FAR, y), float) for sign in (1.0, -1.0))
        return np.where(np.isfinite(low), low, -1e300), np.where(np.isfinite(high), high, 1e300)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l*(-a, y) = max over f of -a f - l(f, y): here by a global search, then by bisection of the slope.

        The search looks at outputs on both sides of y, from 1e-4 to 1e8 away. Where l is not convex, the result is
        the conjugate of its convex hull, up to the steps of the search, and the duality gap stays open.
        """
        a, y = np.asarray(a, float), np.asarray(y, float)
        a, y = np.broadcast_arrays(a, y)
        low, high = self.domain(y)
        # a slope of -a that the loss nowhere has
        outside = (a < low - 1e-12 * np.abs(low)) | (a > high + 1e-12 * np.abs(high))

        def worth(f):
            with np.errstate(over="ignore", invalid="ignore"):
                return np.nan_to_num(-a * f - self.value(f, y), nan=-np.inf, posinf=-np.inf)

        best = np.argmax([worth(y + step) for step in _GRID], axis=0)
        left = y + _GRID[np.maximum(best - 1, 0)]
        right = y + _GRID[np.minimum(best + 1, len(_GRID) - 1)]
        top = worth(y + _GRID[best])
        for _ in range(60):
            middle = 0.5 * (left + right)
            # beyond the maximum the slope -a - l' is negative
            past = -a - self.gradient(middle, y) < 0
            left, right = np.where(past, left, middle), np.where(past, middle, right)
        top = np.maximum(top, np.maximum(worth(left), worth(right)))
        return np.where(outside, np.inf, top)
