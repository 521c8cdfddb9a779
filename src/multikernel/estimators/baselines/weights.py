"""What every object that learns kernel weights before the predictor shares.

    stack, y, sample weights  ->  Gram, Targets  ->  learn  ->  weights_

A stack is what `stack_kernels` takes, or the Gram of an estimator, whose kernels are normalised already. The targets
are a kernel as well, T T' with the columns of T centred: labels -1 and 1 for two classes, class indicators for more,
the targets themselves in regression.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import type_of_target

from multikernel.gram.base import Gram
from multikernel.gram.dense import DenseGram
from multikernel.gram.inspect import inspect_kernels
from multikernel.gram.soundness import require_sound
from multikernel.gram.stack import KernelStack, stack_kernels
from multikernel.gram.subset import SubsetGram
from multikernel.kernels.base import require
from multikernel.solution import CONVERGED
from multikernel.threads import resolve_threads, single_threaded_blas

TASKS = ("classification", "regression")


# rows of all kernels that are read at once: a part of all rows, between so few and so many bytes
_PARTS, _LITTLE, _MUCH = 16, 1 << 20, 16 << 20


# parameter -> (test, what it must be)
Rules = Mapping[str, tuple[Callable[[Any], bool], str]]


# what is told on the way, with "gap" and "active", or "done", "of" and "parts"
Tell = Callable[[dict], None]


def silent(row: dict) -> None:
    """Show nothing of what is told."""


def warn_interrupted(owner: str, after: str, worth: str) -> None:
    """Warn that Ctrl-C came, after what, and of what the result is worth."""
    warnings.warn(f"{owner} was interrupted after {after}. {worth}", ConvergenceWarning, stacklevel=3)


@dataclass(frozen=True)
class Targets:
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

    # tasks that the object knows, and what its parameters must be
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
            gram = SubsetGram(gram, kept)
        targets = self._targets(y, gram, weight, kept, task)
        self.status_ = CONVERGED
        with single_threaded_blas():
            self.weights_ = np.asarray(self._learn(gram, targets, callback or silent), float)
        return self

    @abstractmethod
    def _learn(self, gram: Gram, targets: Targets, tell: Tell) -> np.ndarray:
        """Return the weights, shape (p,).

        Sets: ``status_``, where it did not come to the end.
        """

    def _check_parameters(self) -> None:
        for name, (test, what) in self._rules.items():
            require(self, name, test(getattr(self, name)), what)

    def _targets(self, y: Any, gram: Gram, weight: np.ndarray, kept: np.ndarray, task: str | None) -> Targets:
        y = check_labels(type(self).__name__, y, len(weight))
        y = y.reshape(len(y)) if y.size == len(y) else y
        if task is None:
            task = "regression" if type_of_target(y).startswith("continuous") or y.ndim > 1 else "classification"
        if task not in TASKS:
            raise ValueError(f"The 'task' of {type(self).__name__} must be {TASKS[0]!r} or {TASKS[1]!r}. Got {task!r}.")
        if task not in self._tasks:
            raise ValueError(f"{type(self).__name__} needs classes. Got the targets of a regression instead.")
        if task == "regression":
            return Targets(y[kept].astype(np.float64), 0, weight[kept])
        classes, codes = np.unique(y[kept], return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes. "
                f"Got one class only: {classes.tolist()[0]!r}."
            )
        return Targets(codes.ravel(), len(classes), weight[kept])


def as_gram(stack: Any) -> Gram:
    """Return a Gram as it is, and matrices as a Gram that reads them where they lie.

    Examples
    --------
    >>> import numpy as np
    >>> as_gram([np.eye(3), np.ones((3, 3))]).n_kernels
    2
    """
    if isinstance(stack, Gram):
        return stack
    stack = stack if isinstance(stack, KernelStack) else stack_kernels(stack)
    n_threads = resolve_threads(None)
    kernels = stack.train_kernels()
    require_sound(inspect_kernels(kernels, n_threads=n_threads), stack.names)
    # a symmetric matrix may be read by its columns
    return DenseGram([K if K.strides[1] == K.itemsize else K.T for K in kernels], n_threads=n_threads)


def check_vector(values: Any, n: int, what: str, test: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return n finite numbers in float64, or raise one sentence about what they must be and what they are.

    Examples
    --------
    >>> check_vector([1, 2], 2, "The weights must be 2 positive numbers", lambda w: w > 0)
    array([1., 2.])
    >>> check_vector([1, -2], 2, "The weights must be 2 positive numbers", lambda w: w > 0)
    Traceback (most recent call last):
        ...
    ValueError: The weights must be 2 positive numbers. Got -2 instead.
    """
    try:
        vector = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what}. Got {type(values).__name__} without numbers instead.") from None
    if vector.shape != (n,):
        raise ValueError(f"{what}. Got {f'shape {vector.shape}' if vector.ndim else repr(values)} instead.")
    wrong = ~(np.isfinite(vector) & test(vector))
    if wrong.any():
        raise ValueError(f"{what}. Got {vector[wrong][0]:g} instead.")
    return vector


def check_labels(owner: str, y: Any, n: int) -> np.ndarray:
    """Return targets, one for each of n samples, as an array without gaps and of one kind."""
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    y = np.asarray(y)
    if y.ndim < 1 or len(y) != n:
        raise ValueError(f"y of {owner} must hold one target for each of {n} samples. Got shape {y.shape} instead.")
    require_one_kind(owner, y)
    assert_all_finite(y, input_name="y")
    return y


def require_one_kind(owner: str, y: np.ndarray) -> None:
    """Raise one sentence where an array of objects holds texts and other things, which have no order."""
    if y.dtype.kind == "O" and len({isinstance(value, str) for value in y.flat}) > 1:
        other = next(value for value in y.flat if not isinstance(value, str))
        raise ValueError(f"y of {owner} must hold targets of one kind. Got texts and {other!r}.")


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
    >>> rows_at_once(as_gram(np.eye(64)[None])), rows_at_once(as_gram(np.eye(1024)[None]))
    (64, 128)
    """
    row = gram.n_kernels * gram.n_samples * gram.dtype.itemsize
    return int(np.clip(max(gram.n_samples // _PARTS, _LITTLE // row), 1, min(max(_MUCH // row, 1), gram.n_samples)))


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
