"""Base class of the objects that learn kernel weights before the predictor, and equal weights.

    stack, y, sample weights  ->  Gram, TargetValues  ->  learn  ->  weights_

A stack is what `stack_kernels` takes, or the Gram of an estimator, whose kernels are normalised already. The targets
are a kernel as well, T T' with the columns of T centred: labels -1 and 1 for two classes, class indicators for more,
the targets themselves in regression.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import type_of_target

from multikernel.estimators.baselines.messages import Tell, silent
from multikernel.estimators.reporting import end_interrupted
from multikernel.estimators.validation import check_labels, check_vector
from multikernel.gram.base import Gram
from multikernel.gram.host import HostGram
from multikernel.gram.soundness import as_gram
from multikernel.kernels.base import BLOCK_BYTES, require
from multikernel.solution import CONVERGED, INTERRUPTED
from multikernel.threads import Team, single_threaded_blas

TASKS = ("classification", "regression")

# parameter -> (test, what the parameter must be)
Rules = Mapping[str, tuple[Callable[[Any], bool], str]]


@dataclass(frozen=True)
class TargetValues:
    """What the kernels are compared with.

    Attributes
    ----------
    values : ndarray of shape (n,) or (n, m)
        Numbers 0, 1, ... of the classes, or the targets of a regression in float64.
    n_classes : int
        Number of classes, 0 for a regression.
    weight : ndarray of shape (n,)
        Positive weights of the samples, ones without them; they count as repetitions would.
    """

    values: np.ndarray
    n_classes: int
    weight: np.ndarray

    @property
    def weighted(self) -> bool:
        """Whether some sample counts more than another."""
        return bool(np.any(self.weight != self.weight[0]))

    def factor(self, centred: bool = True) -> np.ndarray:
        """Return T of shape (n, m), with the target kernel T T': one column for two classes, one each for more.

        Parameters
        ----------
        centred : bool
            Whether the weighted mean of each column is taken out.
        """
        if self.n_classes == 2:
            T = np.where(self.values == 1, 1.0, -1.0)[:, None]
        elif self.n_classes:
            T = (self.values[:, None] == np.arange(self.n_classes)).astype(float)
        else:
            T = self.values.reshape(len(self.values), -1)
        return T - np.average(T, axis=0, weights=self.weight) if centred else T


class KernelWeights(BaseEstimator):
    """Base class of the weights objects: subclasses write `_learn`, and ``_rules`` about their parameters.

    Attributes
    ----------
    weights_ : ndarray of shape (p,)
        Non-negative weights; their scale is said by each class.
    status_ : str
        "converged", or what kept an object from the end of its work: "max_iter" or "interrupted".
    """

    # tasks that the object supports, and the rules of its parameters
    _tasks: tuple[str, ...] = TASKS
    _rules: Rules = {}  # noqa: RUF012

    def fit(
        self,
        stack: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        task: str | None = None,
        callback: Tell | None = None,
    ) -> KernelWeights:
        """Learn the weights.

        Parameters
        ----------
        stack : KernelStack, array (p, n, n), list of arrays (n, n), or Gram
            Symmetric kernels on the n training samples.
        y : array of shape (n,), or (n, m) for a regression of several targets
            Classes of any type, or numbers.
        sample_weight : array of shape (n,), optional
            Weights; they count as repetitions would.
        task : {"classification", "regression"}, optional
            What y is; by default what scikit-learn's ``type_of_target`` says.
        callback : callable, optional
            Called on the way with a dict that says how far the work is.

        Returns
        -------
        KernelWeights
            The fitted object.
        """
        self._check_parameters()
        gram = as_gram(stack)
        weight = _check_weight(sample_weight, gram.n_samples)
        kept = np.flatnonzero(weight)
        if len(kept) < len(weight):
            gram = gram.take_samples(kept)
        targets = self._targets(y, gram, weight, kept, task)
        self.status_ = CONVERGED
        with single_threaded_blas():
            self.weights_ = np.asarray(self._learn(gram, targets, callback or silent), float)
        if self.status_ == INTERRUPTED:
            end_interrupted(f"{type(self).__name__} was interrupted after {self._reached()}")
        return self

    def _reached(self) -> str:
        """Say how far the work came before Ctrl-C, and what the weights are worth."""
        raise NotImplementedError

    @abstractmethod
    def _learn(self, gram: Gram, targets: TargetValues, tell: Tell) -> np.ndarray:
        """Return the weights, shape (p,).

        Sets: ``status_``, where it did not come to the end.
        """

    def _check_parameters(self) -> None:
        for name, (test, what) in self._rules.items():
            require(self, name, test(getattr(self, name)), what)

    def _targets(self, y: Any, gram: Gram, weight: np.ndarray, kept: np.ndarray, task: str | None) -> TargetValues:
        y = check_labels(type(self).__name__, y, len(weight))
        y = y.reshape(len(y)) if y.size == len(y) else y
        if task is None:
            task = "regression" if type_of_target(y).startswith("continuous") or y.ndim > 1 else "classification"
        if task not in TASKS:
            raise ValueError(f"The 'task' of {type(self).__name__} must be {TASKS[0]!r} or {TASKS[1]!r}. Got {task!r}.")
        if task not in self._tasks:
            raise ValueError(f"{type(self).__name__} needs classes. Got the targets of a regression instead.")
        if task == "regression":
            return TargetValues(y[kept].astype(np.float64), 0, weight[kept])
        classes, codes = np.unique(y[kept], return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes. "
                f"Got one class only: {classes.tolist()[0]!r}."
            )
        return TargetValues(codes.ravel(), len(classes), weight[kept])


def _check_weight(sample_weight: Any, n: int) -> np.ndarray:
    if sample_weight is None:
        return np.ones(n)
    what = f"The sample weights must be {n} non-negative numbers, not all zero"
    weight = check_vector(sample_weight, n, what, lambda w: w >= 0)
    if not weight.any():
        raise ValueError(f"{what}. Got only zeros.")
    return weight


def rows_at_once(gram: Gram) -> int:
    """Return how many rows of all kernels to read at once: a bounded memory, and a small part of the kernels.

    Examples
    --------
    >>> import numpy as np
    >>> rows_at_once(as_gram(np.eye(1024)[None]))
    32
    """
    most = BLOCK_BYTES // (gram.n_kernels * gram.n_samples * gram.dtype.itemsize)
    return max(1, min(most, isqrt(gram.n_samples)))


def row_blocks(gram: Gram, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Split rows that are asked of all kernels into blocks of `rows_at_once`."""
    size = rows_at_once(gram)
    for lo in range(0, len(rows), size):
        yield rows[lo : lo + size]


def team_of(gram: Gram) -> Team:
    """Return the threads that a Gram on the host works with; one thread for others."""
    return gram.team if isinstance(gram, HostGram) else Team(1)


def shares(values: np.ndarray) -> np.ndarray:
    """Return non-negative values divided by their sum; equal shares where all are zero.

    Examples
    --------
    >>> import numpy as np
    >>> shares(np.array([3.0, 1.0, -2.0])), shares(np.zeros(2))
    (array([0.75, 0.25, 0.  ]), array([0.5, 0.5]))
    """
    values = np.maximum(values, 0.0)
    total = values.sum()
    return values / total if total > 0 else np.full(len(values), 1.0 / len(values))


class UniformWeights(KernelWeights):
    """Equal weights, of sum one; nothing is learned.

    Attributes
    ----------
    weights_ : ndarray of shape (p,)
        1/p each.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.estimators.baselines import UniformWeights
    >>> UniformWeights().fit([np.eye(3), np.ones((3, 3))], [0, 1, 1]).weights_
    array([0.5, 0.5])
    """

    def _learn(self, gram, targets, tell):
        return np.full(gram.n_kernels, 1.0 / gram.n_kernels)
