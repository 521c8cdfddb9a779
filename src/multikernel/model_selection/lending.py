"""What a search lends to the models that it trains: kernels, checks, starts and test outputs.

The models of one fold borrow from one `Lent`, the model of all samples from a `Pooled`; the rest is their own `fit`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from multikernel.machines.base import Machine
from multikernel.model_selection.shared_kernels import evaluate_together
from multikernel.problem import Start
from multikernel.solution import Solution
from multikernel.training.core import TrainingKernels


class Solved(NamedTuple):
    """A problem of one model, its solution, and the samples of the fold that it is about (None for all)."""

    machine: Machine
    solution: Solution
    subset: np.ndarray | None


class Lent:
    """What the models of one fold share.

    Parameters
    ----------
    make : callable or None
        Returns the kernels on the training samples; called once, when they are first asked for. None where a model has
        to make its own.
    X_test : samples
        The very object on which the models will be scored.

    Attributes
    ----------
    seconds : float
        Time that the kernels took.
    solved : list of Solved or None
        The problems of the last model that was trained.
    start : list of Solved or None
        From which the next model is to start.
    shared : dict
        What models make of the kernels and of the samples alone, and others need not make again.
    """

    def __init__(self, make: Callable[[], TrainingKernels] | None, X_test: Any = None) -> None:
        self._make, self._X_test = make, X_test
        self._kernels: TrainingKernels | None = None
        self._outputs: dict[int, np.ndarray] = {}
        self._checked: tuple[Any, dict[str, Any]] | None = None
        self.seconds = 0.0
        self.solved: list[Solved] | None = None
        self.start: list[Solved] | None = None
        self.shared: dict[Any, Any] = {}

    @property
    def kernels(self) -> Any:
        """The kernels on the training samples, None where a model has to make its own."""
        if self._kernels is None and self._make is not None:
            began = time.perf_counter()
            self._kernels = self._make()
            self.seconds = time.perf_counter() - began
        return self._kernels

    def checked(self, model: Any, check: Callable[[], Any]) -> Any:
        """Return what ``check`` makes of the samples; only the first model of the fold calls it.

        Sets: the attributes that it sets on a model, on every model.
        """
        if self._checked is None:
            before = dict(vars(model))
            found = check()
            self._checked = found, {k: v for k, v in vars(model).items() if k not in before or before[k] is not v}
        vars(model).update(self._checked[1])
        return self._checked[0]

    def starts(self, machines: Sequence[Machine], subsets: Sequence[np.ndarray | None]) -> list[Start | None]:
        """Return weights and coefficients from which each machine starts, and the outputs known from before."""
        if self.start is None or len(self.start) != len(machines):
            return [None] * len(machines)
        starts: list[Start | None] = []
        for machine, (other, old, _) in zip(machines, self.start, strict=True):
            a, b, F = machine.warm_start(other, old.dual_coef, old.outputs)
            starts.append(Start(old.weights, a, (b, F)))
        return starts

    def keep(self, *columns: Sequence) -> None:
        """Remember the machines of a model, their solutions and the samples that each is about."""
        self.solved = [Solved(*each) for each in zip(*columns, strict=True)]

    def evaluate(self, models: Sequence[Any]) -> None:
        """Evaluate the models on the test samples, all at once."""
        outputs = evaluate_together(self.kernels, [model._expansion for model in models])
        self._outputs = {id(model): values for model, values in zip(models, outputs, strict=True)}

    @property
    def space(self) -> np.ndarray | None:
        """The memory of the kernels, where they have some of their own."""
        return getattr(self._kernels, "space", None)

    def outputs(self, model: Any, X: Any) -> np.ndarray | None:
        """Return the outputs of a model where they are known."""
        return self._outputs.get(id(model)) if X is self._X_test else None


class Pooled(Lent):
    """Kernels of all samples, and a start that is the mean of what several folds have found at the same point.

    A sample that is in every training set but one counts in all of them but one, so that bounds and sums hold for the
    mean as they do in the folds; with other splits the machine repairs them.

    Parameters
    ----------
    make : callable or None
        As for `Lent`.
    taking_part : bool array
        Which of all samples take part: those of positive weight.
    folds : list of list of (ndarray, ndarray, ndarray)
        For each fold, and each problem of the model: its weights, its samples and their coefficients.
    """

    def __init__(
        self, make: Callable[[], TrainingKernels] | None, taking_part: np.ndarray, folds: Sequence[Sequence]
    ) -> None:
        super().__init__(make)
        self._taking_part, self._folds = taking_part, folds

    def starts(self, machines, subsets):
        """Return the mean of weights and coefficients, for problems that all folds share."""
        if not self._folds or any(len(fold) != len(machines) for fold in self._folds):
            return [None] * len(machines)
        return [
            self._mean(t, machine, subset) for t, (machine, subset) in enumerate(zip(machines, subsets, strict=True))
        ]

    def _mean(self, t: int, machine: Machine, subset: np.ndarray | None) -> Start | None:
        parts, shape = [fold[t] for fold in self._folds], machine.start().shape[1:]
        # a fold that lacks a class has fewer columns
        if any(coef.shape[1:] != shape for _, _, coef in parts):
            return None
        n = len(self._taking_part)
        total, count = np.zeros((n, *shape)), np.zeros(n)
        for _, samples, coef in parts:
            total[samples] += coef
            count[samples] += 1
        a = (total.T / np.maximum(count, 1)).T[self._taking_part]
        weights = np.mean([weights for weights, _, _ in parts], axis=0)
        return Start(weights, machine.make_feasible(a if subset is None else a[subset]))
