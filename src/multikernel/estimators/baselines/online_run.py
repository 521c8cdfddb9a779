"""Epochs of an online learner, with a certificate after each.

    P(w) = h(w) + 1/n sum_i c_i max_u ([u != y_i] + f_iu - f_{i,y_i}),     h(w) = lambda/2 ||w||^2_{2,r} + a ||w||_{2,1}
    D(A) = sum_i A_{i,y_i} - h*(theta(A)),                h*(theta) = ||(||theta_j|| - a)_+||_q^2 / (2 lambda)

with 1/r + 1/q = 1, theta_j(A) = sum_i phi_j(x_i) A_i, A_i 1 = 0 and A_iu <= c_i [u = y_i] / n. Every D(A) is a lower
bound on every P(w). A violation adds e_y - e_u to the row of its sample, so that the gathered coefficients, divided by
the number of steps, are such an A. The bound kept is the best over the epochs; each takes the coefficients gathered in
at least the last half of the epochs, times the best factor that the bounds on A allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from multikernel.certificate import ROUNDING, Certificate
from multikernel.estimators.baselines.online_blocks import Blocks, Coefficients
from multikernel.solution import CONVERGED, INTERRUPTED, MAX_ITER, SETTLED
from multikernel.solve import Recorder
from multikernel.threads import interruptible
from multikernel.training.checkpoint import Checkpoint

# a predictor is evaluated when the epochs have grown by this factor: after each of the first hundred, then more rarely,
# since an evaluation costs a part of an epoch
_GROWTH = 1.01
# what a checkpoint holds of a run and of its blocks, which have some of these
_OF_RUN = ("epoch", "window", "upper", "lower", "score", "norms", "limits")
_OF_BLOCKS = ("state", "squares", "sums", "left", "A", "late", "F", "_low", "theta")


@dataclass(frozen=True)
class Penalty:
    """h(w) = lam/2 ||w||^2_{2,r} + sparse ||w||_{2,1}, with q = r / (r - 1) the dual exponent.

    Examples
    --------
    >>> import numpy as np
    >>> h = Penalty(lam=2.0, sparse=1.0, q=2.0)
    >>> h.value(np.array([3.0, 4.0])), h.conjugate(np.array([4.0, 5.0]))
    (32.0, 6.25)
    """

    lam: float
    sparse: float
    q: float

    def value(self, norms: np.ndarray) -> float:
        """Return h of a predictor whose blocks have these norms."""
        size = _norm(norms, self.q / (self.q - 1.0))
        return 0.5 * self.lam * size * size + self.sparse * float(norms.sum())

    def conjugate(self, norms: np.ndarray) -> float:
        """Return h* of a theta whose blocks have these norms."""
        size = _norm(np.maximum(norms - self.sparse, 0.0), self.q)
        # a product of floats overflows to infinity, a power raises
        return size * size / (2.0 * self.lam)

    def best_multiple(self, linear: float, norms: np.ndarray) -> float:
        """Return the largest s linear - h*(s theta) over 0 <= s <= 1, theta with blocks of these norms."""
        if self.sparse == 0.0:
            curvature = 2.0 * self.conjugate(norms)
            s = min(1.0, linear / curvature) if curvature > 0 else 1.0
            return s * linear - 0.5 * s * s * curvature
        found = minimize_scalar(lambda s: self.conjugate(s * norms) - s * linear, bounds=(0.0, 1.0), method="bounded")
        return max(-float(found.fun), linear - self.conjugate(norms))

    def limits(self, radius: float = np.inf) -> np.ndarray:
        """Return lambda, a, q and R as the compiled loops read them."""
        return np.array([self.lam, self.sparse, self.q, radius])


def _norm(x: np.ndarray, power: float) -> float:
    top = float(x.max(initial=0.0))
    return top * float(np.sum((x / top) ** power)) ** (1.0 / power) if top > 0 else 0.0


def power_for(p: int, block_norm: float | None = None) -> float:
    """Return q = r / (r - 1) of the mixed norm (2, r) for r = ``block_norm``; without r, max(2, 2 ln p).

    Examples
    --------
    >>> power_for(69, 1.5), power_for(3), round(power_for(69), 3)
    (3.0, 2.197..., 8.468)
    """
    return max(2.0, 2.0 * float(np.log(p))) if block_norm is None else block_norm / (block_norm - 1.0)


@dataclass(frozen=True)
class Sample:
    """What is learned from.

    Attributes
    ----------
    y : ndarray of int, shape (n,)
        Classes, 0 to c - 1.
    cost : ndarray of shape (n,)
        Factors c_i of the losses, of mean one over the samples that are learned from.
    train, held_out : ndarrays of int
        The samples to learn from, and those that tell when to stop (empty where none do).
    total : float
        Weight of the samples to learn from.
    """

    y: np.ndarray
    cost: np.ndarray
    train: np.ndarray
    held_out: np.ndarray
    total: float = np.nan

    def loss(self, f: np.ndarray) -> float:
        """Return the mean loss of outputs (n, c) over the samples to learn from."""
        f, y, rows = f[self.train], self.y[self.train], np.arange(len(self.train))
        margins = 1.0 + f - f[rows, y][:, None]
        margins[rows, y] = 0.0
        return float(self.cost[self.train] @ margins.max(axis=1)) / len(rows)

    def score(self, f: np.ndarray) -> float:
        """Return the accuracy of outputs on the samples held out."""
        return float(np.mean(f[self.held_out].argmax(axis=1) == self.y[self.held_out]))


@dataclass
class Result:
    """The best predictor of a run.

    Attributes
    ----------
    model : Coefficients or ndarray of shape (c, D)
        The predictor, in kernels or in features.
    outputs : ndarray of shape (p, n, c) or None
        Outputs of its blocks, where they were known.
    norms : ndarray of shape (p,)
        Norms of its blocks.
    upper, lower : float
        P of the predictor, and the largest lower bound found.
    radius : float
        Bound on ||w||_{2,r} that was kept; infinite where there is none.
    n_iter : int
        Epochs.
    status : str
        "converged", "max_iter", "settled" (the samples held out are no longer classified better) or "interrupted".
    curvature : ndarray of shape (p,)
        tr A'K_j A / tr A'A of the last coefficients; negative for a kernel that is not positive semidefinite.
    history : dict of lists
        One entry per evaluation, which is every epoch up to 100: time, epoch, primal, upper, lower, gap, active and,
        where samples are held out, score.
    """

    model: Any
    outputs: np.ndarray | None
    norms: np.ndarray
    upper: float
    lower: float
    radius: float
    n_iter: int
    status: str
    curvature: np.ndarray
    history: dict[str, list] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """Relative duality gap."""
        return Certificate(self.upper, self.lower, None, ROUNDING).relative


class Run:
    """Epochs of one learner over a sample.

    Parameters
    ----------
    blocks : Blocks
        What it moves.
    sample : Sample
        What it learns from.
    penalty : Penalty
        What it minimises beside the loss.
    rule : int
        The learner.
    radius : float
        Bound on the norm of the predictor.
    average : bool
        Whether predictors averaged over at least the last half of the epochs compete with the last one.
    seed : numpy.random.RandomState
        Orders of the samples.
    """

    def __init__(
        self, blocks: Blocks, sample: Sample, penalty: Penalty, rule: int, *,
        radius: float = np.inf, average: bool = True, seed: np.random.RandomState,
    ) -> None:  # fmt: skip
        self.blocks, self.sample, self.penalty, self.rule = blocks, sample, penalty, rule
        self.limits, self.average, self.seed = penalty.limits(radius), average, seed
        self.epoch, self.window = 0, 1
        self.best: Sequence[Any] | None = None
        self.norms, self.upper, self.lower = np.zeros(blocks.n_blocks), np.inf, 0.0
        self.score = -np.inf

    def visit(self) -> None:
        """One epoch: every sample once, in a random order."""
        if self._window_ends():
            self.window = self.epoch + 1
            self.blocks.restart()
        order = self.seed.permutation(self.sample.train)
        self.blocks.visit(self.rule, order, self.sample.y, self.sample.cost, self.limits)
        self.blocks.fold()
        self.epoch += 1

    def _window_ends(self) -> bool:
        """Whether the next epoch begins a new window of the average and of the bound, twice as long as the last."""
        return self.epoch + 1 >= 2 * self.window

    def last(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the factors m and the norms of the current predictor."""
        return self.blocks.current(self.rule, self.limits)

    def bound(self) -> float:
        """Return D of the coefficients gathered in this window."""
        sample, n = self.sample, len(self.sample.train)
        A, squares = self.blocks.gathered()
        own = A[np.arange(len(A)), sample.y][sample.train]
        if not own.any():
            return 0.0
        # A_{i,y_i} <= c_i / n after division
        factor = float(np.min(sample.cost[sample.train] / np.maximum(n * own, 1e-300)))
        linear, norms = factor * float(own.sum()), factor * np.sqrt(squares)
        return self.penalty.best_multiple(linear, norms)

    def check(self, average: bool) -> float:
        """Evaluate the last predictor, and the averaged one if asked for; keep the best, and return P of the last."""
        m, norms = self.last()
        f = self.blocks.outputs(m)
        primal = self.penalty.value(norms) + self.sample.loss(f)
        self._offer(primal, f, norms, lambda: (self.blocks.predictor(m), self.blocks.known_outputs(m)))
        if average:
            norms, f, *known = self.blocks.averaged((self.epoch - self.window + 1) * len(self.sample.train))
            self._offer(self.penalty.value(norms) + self.sample.loss(f), f, norms, lambda: known)
        self.lower = max(self.lower, self.bound())
        return primal

    def _offer(self, primal: float, f: np.ndarray, norms: np.ndarray, model: Callable[[], Sequence[Any]]) -> None:
        if len(self.sample.held_out):
            score = self.sample.score(f)
            better = score > self.score or (score == self.score and primal < self.upper)
        else:
            score, better = -np.inf, primal < self.upper
        if better:
            self.score, self.upper, self.norms, self.best = score, primal, norms, model()

    def save(self, state: Checkpoint) -> None:
        """Keep a copy of all that the run goes on from."""
        assert self.best is not None
        model, outputs = self.best
        parts = {"w": model} if isinstance(model, np.ndarray) else vars(model)
        arrays = {
            **{f"run/{name}": getattr(self, name) for name in _OF_RUN},
            **{f"blocks/{name}": getattr(self.blocks, name) for name in _OF_BLOCKS if hasattr(self.blocks, name)},
            **{f"before/{i}": each for i, each in enumerate(self.blocks._before)},
            **{f"model/{name}": each for name, each in (*parts.items(), ("outputs", outputs)) if each is not None},
        }
        state.clear()
        # the next epoch writes into the arrays of the blocks
        state.put(**{name: np.array(each) for name, each in arrays.items()})

    def restore(self, state: Checkpoint, drawn: int = 0) -> None:
        """Go back to a state that was kept, after ``drawn`` epochs of another run."""
        groups = {group: state.part(group).all() for group in ("run", "blocks", "before", "model")}
        for owner, group in ((self, "run"), (self.blocks, "blocks")):
            for name, each in groups[group].items():
                setattr(owner, name, each if each.ndim else each.item())
        self.blocks._before = groups["before"]["0"], groups["before"]["1"]
        outputs = groups["model"].pop("outputs", None)
        self.best = groups["model"].get("w", None), outputs
        if self.best[0] is None:
            self.best = Coefficients(**groups["model"]), outputs
        for _ in range(drawn + self.epoch):
            self.seed.permutation(self.sample.train)

    def run(
        self,
        max_iter: int,
        tol: float,
        patience: int | None = None,
        callback: Callable[[dict], None] | None = None,
        state: Checkpoint | None = None,
        drawn: int = 0,
    ) -> Result:
        """Run epochs until the relative gap, the patience or their number is reached.

        It goes on from a ``state`` that is not empty, after the orders of ``drawn`` epochs of another run.
        """
        status, idle, looked = MAX_ITER, 0, 0
        held = len(self.sample.held_out) > 0
        recorder = Recorder(callback)
        # epochs compete with the predictor that is zero
        (m, norms), blank = self.last(), np.zeros((self.blocks.n_samples, self.blocks.n_classes))
        zero = self.blocks.predictor(0.0 * m), self.blocks.known_outputs(0.0 * m)
        self._offer(self.sample.loss(blank), blank, 0.0 * norms, lambda: zero)
        if state is not None and state.all():
            self.restore(state, drawn)
            looked = self.epoch
        # a bound by the triangle inequality, of all coefficients as large as they may be: it is enough where C is small
        share = self.sample.cost[self.sample.train] / len(self.sample.train)
        lengths = share @ np.sqrt(2.0 * self.blocks.diag[self.sample.train])
        self.lower = max(self.lower, float(share.sum()) - self.penalty.conjugate(lengths))
        try:
            while self.epoch < max_iter:
                self.visit()
                if not held and self.epoch < min(_GROWTH * looked, max_iter):
                    continue
                before, looked = self.score, self.epoch
                # an average costs a pass over the kernels: it is evaluated when its window ends, in a short run last
                due = self.epoch == max_iter or (self._window_ends() and self.epoch**2 >= max_iter)
                with interruptible():
                    primal = self.check(average=self.average and due)
                gap = Certificate(self.upper, self.lower, None, ROUNDING).relative
                row = {"epoch": self.epoch, "primal": primal, "upper": self.upper, "lower": self.lower, "gap": gap}
                score = {"score": self.score} if held else {}
                if state is not None and state.file.due:
                    self.save(state)
                recorder.record({**row, "active": int(np.count_nonzero(self.norms)), **score})
                if gap <= tol:
                    status = CONVERGED
                    break
                idle = 0 if self.score > before else idle + 1
                if held and patience is not None and idle >= patience:
                    status = SETTLED
                    break
        except KeyboardInterrupt:
            status = INTERRUPTED
        if state is not None:
            state.file.stays = status == INTERRUPTED
        assert self.best is not None
        squares, size = self.blocks.squares, float(np.sum(self.blocks.A**2))
        curvature = squares / size if size else np.full(len(squares), np.inf)
        model, outputs = self.best
        return Result(
            model, outputs, self.norms, self.upper, min(self.lower, self.upper), float(self.limits[3]),
            self.epoch, status, curvature, recorder.history,
        )  # fmt: skip
