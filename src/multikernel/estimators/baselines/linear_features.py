"""Linear kernels by their features: block k is the columns of kernel k, normalised, and the kernel is never formed.

The steps of `multikernel.kernels.normalize`, on features Z with p_i the weights of the samples divided by their sum:

    "variance"   Z / sqrt(sum_i p_i |z_i|^2 - |sum_i p_i z_i|^2)      "cosine"   z_i / |z_i|
    "trace"      Z / sqrt(sum_i p_i |z_i|^2)                          "center"   Z - sum_i p_i z_i
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from multikernel.kernels import Linear
from multikernel.kernels.bank import KernelBank
from multikernel.kernels.base import ROUNDING
from multikernel.kernels.fitted_normalizer import inverse_root
from multikernel.kernels.spec import expand_entries
from multikernel.training.prepare import as_numbers


def are_linear(spec: Any, X: Any) -> bool:
    """Whether every kernel is linear and the samples are a dense table of numbers."""
    if isinstance(spec, str) or sparse.issparse(X) or getattr(as_numbers(X), "dtype", None) != np.float64:
        return False
    return all(type(kernel) is Linear for _, kernel, _ in expand_entries(spec, X))


@dataclass
class LinearFeatures:
    """Normalised columns of linear kernels.

    Attributes
    ----------
    bank : KernelBank
        The kernels.
    steps : list of lists
        For each kernel what was learned: ("divide", number), ("center", mean) or ("cosine", None).
    constant : ndarray of bool
        Kernels that cannot tell samples apart.
    """

    bank: KernelBank
    steps: list[list[tuple[str, Any]]]
    constant: np.ndarray

    @classmethod
    def fit(cls, spec: Any, X: Any, weight: np.ndarray | None, normalize: Any) -> LinearFeatures:
        """Learn the normalisation of every kernel.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.array([[0.0, 3.0], [2.0, 5.0]])
        >>> LinearFeatures.fit([Linear()], X, None, ["center", "variance"]).maps(X)[0].round(3).tolist()
        [[-0.707, -0.707], [0.707, 0.707]]
        """
        bank, n = KernelBank.fit(spec, X, weight, normalize), len(X)
        self = cls(bank, [], np.zeros(bank.n_kernels, bool))
        p = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
        for k in range(self.bank.n_kernels):
            Z, learned = self._raw(k, X), []
            if not np.isfinite(np.einsum("id,id->i", Z, Z)).all():
                raise ValueError(f"Kernel '{bank.names[k]}': the values have NaN or infinity among them.")
            self.constant[k] = _variance(Z, p)[0] <= 0.0
            for name in self.bank.steps:
                step = _learn(name, Z, p)
                self.constant[k] |= step is None
                if step is not None:
                    learned.append(step)
                    Z = _apply(step, Z)
            self.steps.append(learned)
        return self

    def _raw(self, k: int, X: Any) -> np.ndarray:
        return np.asarray(self.bank.select(k, as_numbers(X)), dtype=np.float64)

    def maps(self, X: Any) -> list[np.ndarray]:
        """Return the normalised features of samples, one array (n, d_k) per kernel."""
        found = []
        for k, learned in enumerate(self.steps):
            Z = self._raw(k, X)
            for step in learned:
                Z = _apply(step, Z)
            found.append(Z)
        return found


@dataclass(frozen=True)
class LinearPredictor:
    """Outputs that are linear in the features: coef is (T, D), the blocks side by side."""

    features: LinearFeatures
    coef: np.ndarray

    def evaluate(self, X: Any, n_threads: int = 1) -> np.ndarray:
        """Return the outputs, shape (n_samples, T)."""
        return np.hstack(self.features.maps(X.toarray() if sparse.issparse(X) else X)) @ self.coef.T


def _variance(Z: np.ndarray, p: np.ndarray) -> tuple[float, float]:
    """Return the variance, zero where it is smaller than rounding, and the mean square."""
    square = float(p @ np.einsum("id,id->i", Z, Z))
    variance = float(p @ np.einsum("id,id->i", Z - p @ Z, Z - p @ Z))
    return (variance if variance > ROUNDING * square else 0.0), square


def _learn(name: str, Z: np.ndarray, p: np.ndarray) -> tuple[str, Any] | None:
    """Return the name of a step and the value it learned; None where the divisor is zero."""
    if name == "cosine":
        return "cosine", None
    if name == "center":
        return "center", p @ Z
    by = _variance(Z, p)[0 if name == "variance" else 1]
    return ("divide", np.sqrt(by)) if by > 0 else None


def _apply(step: tuple[str, Any], Z: np.ndarray) -> np.ndarray:
    name, learned = step
    if name == "divide":
        return Z / learned
    if name == "center":
        return Z - learned
    squares = np.einsum("id,id->i", Z, Z)
    return Z * inverse_root(squares, squares)[:, None]
