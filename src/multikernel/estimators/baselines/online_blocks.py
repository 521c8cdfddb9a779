"""What an online learner moves: the dual vectors theta_1, ..., theta_p of the blocks, in kernels or in features.

    kernels     theta_j = sum_i phi_j(x_i) A_i, known by A (n, c) and by its outputs F_j = K_j A
    features    theta_j itself, the columns of block j of an array (c, D)

The predictor is w_j = m_j theta_j, m from the mirror map. An average of the predictors over the visits is kept without
touching what did not change: with S_j the sum of the m_j so far,

    sum_t m_j(t) theta_j(t) = S_j theta_j - sum over changes of (change) S_j(at that time).

The lower bound uses the coefficients gathered since the last restart: theta now minus the decayed theta of the restart.
Those of the first epochs are far from the optimum, and would count as much as the later ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.typed import List

from multikernel.estimators.baselines.online_loops import (
    SIZE,
    STEPS,
    TAUS,
    TOTAL,
    current,
    visit_features,
    visit_kernels,
)
from multikernel.gram.base import Gram
from multikernel.gram.dense import AffineForm, DenseGram
from multikernel.kernels.base import BLOCK_BYTES, ROUNDING
from multikernel.threads import interruptible


@dataclass(frozen=True)
class Coefficients:
    """A predictor in kernels: block j is sum_i phi_j(x_i) (m_j A_i - late_ij).

    Attributes
    ----------
    m : ndarray of shape (p,)
        Factors of the kernels.
    A : ndarray of shape (n, c)
        Coefficients that all kernels share.
    late : ndarray of shape (n, c, p) or None
        What is subtracted from them.
    """

    m: np.ndarray
    A: np.ndarray
    late: np.ndarray | None = None

    def of(self, j: int) -> np.ndarray:
        """Return the coefficients of kernel j, (n, c)."""
        return self.m[j] * self.A if self.late is None else self.m[j] * self.A - self.late[:, :, j]


class Blocks(ABC):
    """Dual vectors of p blocks for c classes on n samples, zero to begin with.

    Attributes
    ----------
    state : ndarray of shape (4,)
        Steps, factor of theta, sum of taus, sum of coefficients.
    squares : ndarray of shape (p,)
        Squared norms of the blocks, in units of the factor.
    diag : ndarray of shape (n, p)
        k_j(x_i, x_i).
    A : ndarray of shape (n, c)
        Coefficients of the samples, in units of the factor.
    left : float
        Factor by which theta of the last `restart` has decayed since.
    """

    n_blocks: int
    n_samples: int
    diag: np.ndarray
    A: np.ndarray
    late: np.ndarray
    _before: tuple[np.ndarray, np.ndarray]

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.state = np.array([0.0, 1.0, 0.0, 0.0])
        self.squares, self.sums = np.zeros((2, self.n_blocks))
        self.left = 1.0

    @abstractmethod
    def visit(self, rule: int, order: np.ndarray, y: np.ndarray, cost: np.ndarray, limits: np.ndarray) -> None:
        """Let the learner ``rule`` visit samples in this order; sets everything above."""

    def current(self, rule: int, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the factors m and the norms of the blocks of the current predictor."""
        m = np.empty(self.n_blocks)
        current(rule, self.state, limits, self.squares, m)
        return m, m * np.sqrt(np.maximum(self.squares, 0.0))

    @abstractmethod
    def outputs(self, m: np.ndarray) -> np.ndarray:
        """Return the outputs of w_j = m_j theta_j on all samples, (n, c)."""

    @abstractmethod
    def block_outputs(self, model: Any) -> np.ndarray:
        """Return the outputs of each block of a predictor, (p, n, c)."""

    @abstractmethod
    def predictor(self, m: np.ndarray) -> Any:
        """Return a copy of w_j = m_j theta_j."""

    def known_outputs(self, m: np.ndarray) -> np.ndarray | None:
        """Return the outputs of each block of w_j = m_j theta_j, (p, n, c), where they cost nothing; else None."""
        return None

    @abstractmethod
    def averaged(self, visits: int) -> tuple[np.ndarray, np.ndarray, Any, np.ndarray | None]:
        """Return norms, outputs, predictor and known outputs of the average over the visits since `restart`."""

    @abstractmethod
    def gathered(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients gathered since `restart`, (n, c), and the squared norms of their blocks."""

    def _gathered_coefficients(self) -> np.ndarray:
        A = self.A - self.left * self._before[0]
        # a difference of equal numbers leaves rounding, which is no violation
        A[np.abs(A) <= ROUNDING * np.abs(self.A).max(initial=0.0)] = 0.0
        return A

    def fold(self) -> None:
        """Move the factor of theta into the arrays."""
        size = self.state[SIZE]
        if size != 1.0:
            self._multiply(size)
            self.A *= size
            self.squares *= size * size
            self.sums /= size
            self.state[TOTAL] *= size
            self.state[SIZE] = 1.0
            self.left *= size

    @abstractmethod
    def _multiply(self, size: float) -> None:
        """Multiply theta."""

    def restart(self) -> None:
        """Begin a new average, and gather anew."""
        self.sums[:] = 0.0
        self.late[...] = 0.0
        self.left, self._before = 1.0, self._position()

    @abstractmethod
    def _position(self) -> tuple[np.ndarray, np.ndarray]:
        """Return copies of the coefficients and of theta, or of its outputs."""

    def restart_steps(self) -> None:
        """Count steps from zero again."""
        self.state[[STEPS, TAUS]] = 0.0


def _compiled_list(arrays: Iterable[np.ndarray]) -> List:
    """Return the arrays, of one kind all, in a list that compiled functions read."""
    # while Numba looks at a list, Ctrl-C becomes a wrong type or is lost
    with interruptible():
        return List(arrays)


class KernelBlocks(Blocks):
    """Blocks that are known by their kernels.

    Parameters
    ----------
    gram : Gram
        The kernels.
    n_classes : int
        Number c of classes.
    average : bool
        Whether averages are kept.
    """

    def __init__(self, gram: Gram, n_classes: int, average: bool = True) -> None:
        self.gram = gram
        self.n_blocks, self.n_samples = gram.n_kernels, gram.n_samples
        super().__init__(n_classes)
        self.diag = np.ascontiguousarray(np.maximum(gram.diag(), 0.0).T)
        self.A = np.zeros((self.n_samples, n_classes))
        self.F = np.zeros((self.n_blocks, n_classes, self.n_samples))
        self._matrices, form = None, AffineForm(np.ones(self.n_blocks))
        if isinstance(gram, DenseGram):
            matrices = [np.asarray(gram.raw(k)) for k in range(self.n_blocks)]
            # a compiled list holds arrays of one kind
            if len({(M.dtype, M.flags.c_contiguous, M.flags.f_contiguous) for M in matrices}) == 1:
                self._matrices, form = _compiled_list(matrices), gram.form
        unit = np.zeros((0, 0)) if form.u is None else form.u
        none = np.zeros((0, 0, 0))
        left, right = (none, none) if form.A is None or form.B is None else (form.A, form.B)
        self._form = form.scale, unit, left, right
        self._low = np.zeros((2, self.n_blocks, n_classes, left.shape[2]))
        self.late = np.zeros((self.n_samples if average else 0, n_classes, self.n_blocks))
        self.restart()

    def visit(self, rule, order, y, cost, limits):
        if self._matrices is not None:
            self._visit(rule, self._matrices, order, order, y, cost, limits)
            return
        size = max(1, BLOCK_BYTES // (self.n_blocks * self.n_samples * self.gram.dtype.itemsize))
        for first in range(0, len(order), size):
            part = order[first : first + size]
            self._visit(rule, _compiled_list(self.gram.rows(part)), np.arange(len(part)), part, y, cost, limits)

    def _visit(self, rule, K, slots, order, y, cost, limits):
        with interruptible():
            visit_kernels(
                rule, K, *self._form, slots, order, y, cost, self.diag, self.state, limits, self.squares, self.F,
                self._low, self.A, self.sums, self.late,
            )  # fmt: skip

    def _outputs(self) -> np.ndarray:
        """Return K_j A for all kernels, (p, c, n)."""
        _, unit, left, right = self._form
        F = self.F * unit[:, None] if len(unit) else self.F
        if not len(left):
            return F
        return F - np.einsum("jnt,jct->jcn", left, self._low[1]) - np.einsum("jnt,jct->jcn", right, self._low[0])

    def outputs(self, m):
        return np.tensordot(m, self._outputs(), 1).T

    def block_outputs(self, model):
        if model.late is None:
            return self.gram.apply(model.A) * model.m[:, None, None]
        parts = (self.gram.apply(model.of(j), np.array([j]))[0] for j in range(self.n_blocks))
        return np.stack(list(parts))

    def predictor(self, m):
        return Coefficients(m.copy(), self.A.copy())

    def averaged(self, visits):
        model = Coefficients(self.sums / visits, self.A.copy(), self.late / visits)
        outputs = self.block_outputs(model)
        squares = [np.vdot(outputs[j], model.of(j)) for j in range(self.n_blocks)]
        return np.sqrt(np.maximum(squares, 0.0)), outputs.sum(axis=0), model, outputs

    def known_outputs(self, m):
        return np.ascontiguousarray((m[:, None, None] * self._outputs()).transpose(0, 2, 1))

    def gathered(self):
        A, F = self._gathered_coefficients(), self._outputs() - self.left * self._before[1]
        return A, np.maximum(F.reshape(len(F), -1) @ A.T.ravel(), 0.0)

    def _position(self):
        return self.A.copy(), self._outputs().copy()

    def _multiply(self, size):
        self.F *= size
        self._low *= size


class FeatureBlocks(Blocks):
    """Blocks that are known by their features.

    Parameters
    ----------
    features : sequence of ndarrays of shape (n, d_j)
        The features of each block.
    n_classes : int
        Number c of classes.
    average : bool
        Whether averages are kept.
    coefficients : bool
        Whether the coefficients of the samples are kept, which a certificate needs.
    """

    def __init__(
        self, features: Sequence[np.ndarray], n_classes: int, average: bool = True, coefficients: bool = True
    ) -> None:
        self.starts = np.cumsum([0, *(part.shape[1] for part in features)])
        self.n_blocks = len(features)
        super().__init__(n_classes)
        self.set_samples(features)
        width = int(self.starts[-1])
        self.theta = np.zeros((n_classes, width))
        self.late = np.zeros((n_classes if average else 0, width))
        self.A = np.zeros((self.n_samples if coefficients else 0, n_classes))
        self.restart()

    def set_samples(self, features: Sequence[np.ndarray]) -> None:
        """Take the features of other samples, for learners that see each only once."""
        self.X = np.ascontiguousarray(np.hstack(features), dtype=np.float64)
        self.n_samples = len(self.X)
        self.diag = np.column_stack([np.einsum("id,id->i", part, part) for part in self._split(self.X)])

    def as_stream(self, epochs: float = 1.0) -> FeatureBlocks:
        """Return a copy for further samples: theta divided by the number of epochs, and no samples."""
        other = object.__new__(FeatureBlocks)
        other.__dict__.update(self.__dict__)
        other.theta, other.squares = self.theta / epochs, self.squares / epochs**2
        other.state = self.state / [epochs, 1.0, epochs, epochs]
        other.forget()
        return other

    def forget(self) -> None:
        """Keep theta alone."""
        self.X, self.diag = np.zeros((0, self.X.shape[1])), np.zeros((0, self.n_blocks))
        self.A, self.late, self.n_samples = np.zeros((0, self.n_classes)), np.zeros((0, self.X.shape[1])), 0
        self._before = self.A, self.late

    def _split(self, values: np.ndarray) -> list[np.ndarray]:
        return np.split(values, self.starts[1:-1], axis=1)

    def _spread(self, m: np.ndarray) -> np.ndarray:
        return np.repeat(m, np.diff(self.starts))

    def visit(self, rule, order, y, cost, limits):
        with interruptible():
            visit_features(
                rule, self.X, self.starts, order, y, cost, self.diag, self.state, limits, self.squares, self.theta,
                self.A, self.sums, self.late,
            )  # fmt: skip

    def outputs(self, m):
        return self.X @ self.predictor(m).T

    def block_outputs(self, model):
        return np.stack([x @ w.T for x, w in zip(self._split(self.X), self._split(model), strict=True)])

    def predictor(self, m):
        return self._spread(m) * self.theta

    def averaged(self, visits):
        model = (self._spread(self.sums) * self.theta - self.late) / visits
        norms = np.array([np.linalg.norm(part) for part in self._split(model)])
        return norms, self.X @ model.T, model, None

    def gathered(self):
        theta = self.theta - self.left * self._before[1]
        return self._gathered_coefficients(), np.array([np.sum(part**2) for part in self._split(theta)])

    def _position(self):
        return self.A.copy(), self.theta.copy()

    def _multiply(self, size):
        self.theta *= size
