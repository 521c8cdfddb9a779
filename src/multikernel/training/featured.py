"""Kernels by their explicit features: a Gram that is never formed, and a model that streams over new samples.

Normalisations that divide a kernel ("variance", "trace") are factors of its features; the others are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from multikernel.gram.base import Gram
from multikernel.gram.features import FeatureGram
from multikernel.gram.storage import default_limit, parse_bytes
from multikernel.kernels.bank import KernelBank
from multikernel.kernels.base import len_of
from multikernel.kernels.feature_maps import FeatureMaps, FeatureModel
from multikernel.kernels.normalize import learn_normalizer
from multikernel.losses import Hinge, Squared, SquaredHinge
from multikernel.machines.base import Machine
from multikernel.machines.box import BoxMachine
from multikernel.machines.descent import Descent
from multikernel.machines.ridge import Ridge
from multikernel.machines.smooth import Smooth
from multikernel.training.core import TrainingKernels, no_variance
from multikernel.training.expansion import Expansion

# samples from which on "auto" takes features, where all kernels have them
LARGE = 20_000
_DIVIDING = {"variance", "trace"}
_LINEAR = (Hinge, Squared, SquaredHinge)
# the problems that have linear-time machines
_NEEDED = {
    "classifier": "two classes or multiclass='ovr' or 'ovo', output_kernels=None, and loss='hinge', 'squared' or "
    "'squared_hinge'",
    "regressor": "one target and loss='epsilon_insensitive' or 'squared'",
}


def takes_features(bank: KernelBank, n: int, gram: str, linear: bool, estimator: Any) -> bool:
    """Whether the kernels of a bank are to be taken by their features, or raise where they are asked for and cannot be.

    Parameters
    ----------
    bank : KernelBank
        Fitted kernels.
    n : int
        Number of samples.
    gram : str
        What the user asked for.
    linear : bool
        Whether the problems have linear-time machines.
    estimator : estimator
        Who asks, for the error sentences.
    """
    if gram not in ("auto", "features"):
        return False
    divided = set(bank.steps) <= _DIVIDING
    if gram == "auto":
        return n >= LARGE and linear and divided and not bank.without_features()
    if not linear:
        needed = _NEEDED[get_tags(estimator).estimator_type]
        raise ValueError(f"gram='features' of {type(estimator).__name__} needs {needed}.")
    without = bank.without_features()
    if without:
        raise ValueError(
            f"gram='features' needs kernels with explicit features. Got {without[0]!r}, which has none: see "
            "RandomFourier and Nystroem for kernels that stand for others."
        )
    if not divided:
        raise ValueError(
            f"gram='features' needs normalize=None, 'variance' or 'trace'. Got {list(bank.steps)!r} instead."
        )
    return True


def _constant(n: int, mean: float, v: np.ndarray) -> np.ndarray:
    """Return a vector whose mean is that of K v: the normalisations that divide ask for no more."""
    return np.full(n, mean)


class FeatureKernels(TrainingKernels):
    """Kernels of a bank on training samples, by their features.

    Parameters
    ----------
    bank : KernelBank
        Fitted kernels, with the steps of their normalisation.
    X : samples
        The n training samples.
    weight : ndarray of shape (n,) or None
        Positive sample weights, None for equal ones.
    psd, gram : str
        For interface's sake: kernels with features are positive semidefinite.
    memory_limit : float, str or None
        Memory that dense features may take; above it they are computed whenever they are read.
    n_threads : int
        Threads.
    """

    def __init__(
        self,
        bank: KernelBank,
        X: Any,
        weight: np.ndarray | None,
        *,
        psd: str = "error",
        gram: str = "features",
        memory_limit: float | str | None = None,
        n_threads: int = 1,
    ) -> None:
        super().__init__()
        self.bank, self.X, self.psd, self.names = bank, X, psd, bank.names
        n, p = len_of(X), bank.n_kernels
        self.known_psd = np.ones(p, bool)
        self.maps = FeatureMaps(bank, X)
        limit = default_limit() if memory_limit is None else parse_bytes(memory_limit)
        parts = list(self.maps.sources(X, limit))
        whole = FeatureGram([source for source, _ in parts], [kernels for _, kernels in parts], n_threads=n_threads)
        share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
        diag = whole.diag()
        # share' K_k share: all that the mean of a kernel asks for
        means = whole.quad(share)
        self.normalizers = [
            learn_normalizer(bank.steps, d, partial(_constant, n, mean), weight, name)
            for d, mean, name in zip(diag, means, bank.names, strict=True)
        ]
        flat = no_variance(diag, np.repeat(means[:, None], n, axis=1), share)
        self.constant = flat | np.array([each.degenerate for each in self.normalizers])
        whole.scale = np.array([each.scale for each in self.normalizers])
        self.gram = whole

    def expansion(self, weights, coef, intercepts, balanced):
        scale = np.array([each.scale for each in self.normalizers])
        useful = ~(self.constant & balanced)
        model = self.maps.model(self.X, weights * scale * useful, coef)
        return FeatureExpansion([], np.array(intercepts, float), model)

    def _replace(self, kernel, matrix):
        raise AssertionError("Kernels with features need no repair.")

    def _expansion(self, terms, offset, active, kept):
        raise AssertionError("Kernels with features have an expansion of their own.")


@dataclass(frozen=True)
class FeatureExpansion(Expansion):
    """Outputs by features: no kernel row of any sample is formed."""

    model: FeatureModel

    def evaluate(self, X: Any, n_threads: int = 1) -> np.ndarray:
        """Return the outputs, shape (n_samples, T)."""
        return self.model.evaluate(X) + self.offset


def is_linear(loss: Any) -> bool:
    """Whether coordinate descent takes a loss of classification, by name or as an object."""
    return loss in ("hinge", "squared", "squared_hinge") if isinstance(loss, str) else type(loss) in _LINEAR


def suited_machine(gram: Gram, machine: Machine) -> Machine:
    """Return the machine that solves the problem of another on this Gram."""
    return Descent(machine) if gram.kind == "features" else machine


def has_descent(machine: Machine) -> bool:
    """Whether coordinate descent on features solves the machine's problem."""
    if isinstance(machine, Smooth):
        return isinstance(machine.loss, SquaredHinge)
    return isinstance(machine, BoxMachine) or (isinstance(machine, Ridge) and machine.Y.ndim == 1)
