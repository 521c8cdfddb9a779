"""What passes between the three steps of training: prepare, train, publish.

    prepared = prepare(kernels, samples, weight, settings)    kernels on the training samples; nothing of the targets
    fit      = train(prepared, targets, settings, starts)     one certified solution for each problem
    model    = publish(fit)                                   what predicts, and what is reported

Each step is a function of its arguments: no estimator takes part, and nothing is remembered between calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from multikernel.gram.base import Gram
from multikernel.kernels.class_kernels import ClassKernels
from multikernel.kernels.fitted_normalizer import FittedNormalizer
from multikernel.machines.base import Machine
from multikernel.mixing.base import Mixing
from multikernel.problem import Start
from multikernel.solution import Solution
from multikernel.solvers.base import Solver
from multikernel.training.expansion import Expansion, Term


@dataclass(frozen=True)
class Settings:
    """How to train: nothing of samples, targets or estimators.

    Attributes
    ----------
    owner : str
        Name of the estimator, for error sentences.
    normalize : None, str or list of str
        Steps of the normalisation.
    psd : {"error", "clip", "shift", "flip"}
        What to do about an indefinite kernel.
    gram : str or TorchStorage
        Storage asked for.
    memory_limit : float, str or None
        Memory that kernels may take.
    n_threads : int
        Threads.
    verbose : int
        0 for silence.
    solver : str or Solver
        Outer algorithm.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Largest number of outer iterations.
    callback : callable or None
        Called after each iteration with its row of the history, which also has "problem", its label, and "evaluate",
        a function from valid samples to the outputs of the iteration's model.
    features_need : callable
        Returns what explicit features need of the problem, in the user's words; None where it has that.
    checkpoint : Checkpoint or None
        Where the state of a long fit is kept (`multikernel.training.checkpoint`).
    """

    owner: str
    normalize: Any = None
    psd: str = "error"
    gram: Any = "auto"
    memory_limit: float | str | None = None
    n_threads: int = 1
    verbose: int = 0
    solver: str | Solver = "auto"
    tol: float = 1e-3
    max_iter: int = 500
    callback: Callable[[dict], None] | None = None
    features_need: Callable[[], str | None] = lambda: "MKLClassifier or MKLRegressor"
    checkpoint: Any = None


# numbers of a kernel, its raw values, and k(x, x) where that was asked for
Block = tuple[int, np.ndarray, np.ndarray | None]


class Source(ABC):
    """Where the raw kernel values between other samples and the training samples come from."""

    @abstractmethod
    def expansion(self, terms: list[Term], offset: np.ndarray, active: np.ndarray, kept: np.ndarray) -> Expansion:
        """Return what evaluates the terms of the kernels ``active`` on the training samples ``kept``."""

    @abstractmethod
    def blocks(self, X: Any, kernels: Sequence[int], diag: bool, at: np.ndarray | None = None) -> Iterator[Block]:
        """Yield the raw values of some kernels between samples X and all training samples.

        ``diag`` asks for k(x, x) too. ``at`` says which of the samples X are among those that all folds of a search
        share, whose kernels may be known.
        """

    def take_kernels(self, kernels: np.ndarray) -> Source:
        """Return the source of some of the kernels; its expansions keep the numbers that kernels have in this one."""
        return PartSource(self, kernels)


@dataclass(frozen=True)
class PartSource(Source):
    """Some of the kernels of a source."""

    whole: Source
    kernels: np.ndarray

    def expansion(self, terms, offset, active, kept):
        return self.whole.expansion(terms, offset, self.kernels[active], kept)

    def blocks(self, X, kernels, diag, at=None):
        number = {int(self.kernels[k]): k for k in kernels}
        for k, K, own in self.whole.blocks(X, list(number), diag, at):
            yield number[k], K, own


@dataclass(frozen=True)
class Prepared:
    """The p normalised kernels on n training samples.

    Attributes
    ----------
    gram : Gram
        The kernels on the training samples.
    names : tuple of str
        Names of the kernels.
    normalizers : tuple of FittedNormalizer
        Their normalisations.
    weight : ndarray of shape (n,) or None
        Positive sample weights, None for equal ones.
    source : Source
        Raw kernel values of other samples.
    constant : bool array (p,)
        Kernels that cannot tell samples apart.
    known_psd : bool array (p,)
        Kernels that are positive semidefinite, by construction or by repair.
    unit : float
        What the kernels were divided by: a power of two, near the largest k(x, x) where that is far from one.
    projectors : mapping from int to ndarray of shape (n, n)
        P_k of the kernels that were clipped or flipped: k(x, .) becomes k(x, .) P_k.
    """

    gram: Gram
    names: tuple[str, ...]
    normalizers: tuple[FittedNormalizer, ...]
    weight: np.ndarray | None
    source: Source
    constant: np.ndarray
    known_psd: np.ndarray
    projectors: Mapping[int, np.ndarray] = field(default_factory=dict)
    unit: float = 1.0

    def take_kernels(self, kernels: np.ndarray) -> Prepared:
        """Return some of the kernels, read where they lie."""
        return replace(
            self,
            gram=self.gram.take_kernels(kernels),
            names=tuple(self.names[k] for k in kernels),
            normalizers=tuple(self.normalizers[k] for k in kernels),
            source=self.source.take_kernels(kernels),
            constant=self.constant[kernels],
            known_psd=self.known_psd[kernels],
            projectors={j: self.projectors[int(k)] for j, k in enumerate(kernels) if int(k) in self.projectors},
        )


@dataclass(frozen=True)
class Target:
    """One problem on prepared kernels.

    Attributes
    ----------
    machine : Machine
        The learner with its targets and costs.
    mixing : Mixing
        The set of the weights.
    label : str
        What the problem decides, in words.
    balanced : bool
        Whether the coefficients sum to zero.
    samples : ndarray of int or None
        The samples that take part, None for all.
    classes : ClassKernels or None
        Kernels on the classes with which the kernels are multiplied.
    notes : mapping
        What the estimator wants to report of the problem.
    unit : float
        Power of two by which coefficients and objective are divided in the end: the costs were multiplied by it. Where
        the sum of the coefficients is fixed, offset and objective are multiplied by it.
    """

    machine: Machine
    mixing: Mixing
    label: str
    balanced: bool
    samples: np.ndarray | None = None
    classes: ClassKernels | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    unit: float = 1.0


# what makes the problems of a fit from its kernels, and what says where each of them starts
Targets = Callable[[Prepared], Sequence[Target]]
Starts = Callable[[Sequence[Target]], Sequence[Start | None]]


@dataclass(frozen=True)
class Fit:
    """Trained problems, with the kernels that they were trained on, in units of these: `publish` takes them back."""

    prepared: Prepared
    targets: tuple[Target, ...]
    solutions: tuple[Solution, ...]
