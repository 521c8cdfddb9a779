"""The model of a baseline in which each kernel has its own coefficients, or features in the place of kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from multikernel.training.publish import GramInfo


@dataclass(frozen=True)
class Learned:
    """A predictor with the names, weights and contributions of its kernels.

    Attributes
    ----------
    expansion : object with ``evaluate(X, n_threads)``
        Returns the outputs on other samples, shape (n_samples, columns).
    names : sequence of str
        Names of the kernels.
    weights : ndarray of shape (p,) or (n_classes, p)
        Kernel weights.
    contributions : ndarray of shape (p,) or None
        Parts of the kernels in the variance of the outputs, perhaps negative; None where the samples came in parts.
    gram : GramInfo or None
        How the kernels were kept; None likewise.
    """

    expansion: Any
    names: tuple[str, ...]
    weights: np.ndarray
    contributions: np.ndarray | None = None
    gram: GramInfo | None = None

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes."""
        found = {
            "kernel_names_": list(self.names),
            "weights_": self.weights,
            "kernel_contributions_": self.contributions,
            "gram_": self.gram,
        }
        return {name: value for name, value in found.items() if value is not None}
