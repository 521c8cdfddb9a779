"""Some of the samples of a problem on explicit features: what a worker holds of them, and what it answers.

    T_k = sum over the partitions of Phi_k' a        the tables; a partition alone needs those of all samples

A round (CoCoA+) goes once through rows of all partitions by coordinate descent. The partitions of one group share one
copy of the tables; G groups work at once, and none sees the changes of the others. A change d
is added to a group's own copy ``shared`` times: with shared = G the changes of all groups together raise the objective
by at least as much as each group believes of its own.

Functions of this module take the partitions of one group. All of them but those that say so leave the coefficients as
they are. `Stale` is raised where a partition is not the one that the caller knows: it was made again after a loss.

Reference: Ma, Smith, Jaggi, Jordan, Richtarik & Takac 2015, arXiv:1502.03508. We differ in the per-kernel tables, the
intercept, and in ``shared``, which follows the changes of the round before.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from multikernel.gram.features import CombinedFeatures, FeatureGram, FeatureOutputs
from multikernel.gram.partitions import inner, spans_of
from multikernel.machines.base import Machine
from multikernel.machines.box_loops import compensated_sum, settle
from multikernel.machines.descent import Descent, Epochs
from multikernel.threads import ROWS


class Stale(Exception):
    """A partition that does not have the coefficients that the caller knows."""


def rows_of(machine: Machine, rows: slice) -> Machine:
    """Return the machine of some of the samples: costs and targets of these alone, constants those of all samples."""
    part, own = copy(machine), dict[int, np.ndarray]()
    for name, value in vars(machine).items():
        if isinstance(value, np.ndarray) and value.shape == (machine.n_samples,):
            # one array by two names stays one
            own.setdefault(id(value), value[rows])
            setattr(part, name, own[id(value)])
    loss: Any = getattr(machine, "loss", None)
    if np.ndim(getattr(loss, "C", 0.0)):
        part.loss = replace(loss, C=own.get(id(loss.C), loss.C[rows]))  # type: ignore[attr-defined]
    part.n_samples = len(range(*rows.indices(machine.n_samples)))
    return part


@dataclass(frozen=True)
class Round:
    """What all groups of a round begin with.

    Attributes
    ----------
    beta : ndarray of shape (p,)
        Weights of the kernels.
    b, rho, excess, ra, mean
        Multiplier and penalty of the sum of the coefficients, this sum, and the row means of the combined kernel times
        the coefficients and on average; as in `Epochs`.
    shared : float
        How many times a group adds its changes to its own tables.
    step : float
        Part of the changes of the round before that counts.
    turn, turns : int
        Which part of the rows of an epoch the round goes through, of how many.
    version : int
        Number of the coefficients that the partitions have.
    """

    beta: np.ndarray
    b: float
    rho: float
    excess: float
    ra: float
    mean: float
    shared: float
    step: float
    turn: int
    turns: int
    version: int


class _Tables(FeatureOutputs):
    """Tables that partitions share, with the coefficients of one of them."""

    def __init__(self, gram: FeatureGram, parts: list[np.ndarray], coef: np.ndarray) -> None:
        self.gram, self.parts, self.coef = gram, parts, coef
        self._squares, self._F, self._stale = np.zeros(gram.n_kernels), None, True


class _PartEpochs(Epochs):
    """Rounds of one partition; what belongs to all samples is set before each."""

    rows_left: list[np.ndarray]

    def __init__(self, part: Partition, b: float, ra: float, seed: int) -> None:
        self.machine, self.combined = part.machine, part.combined
        self.centred = part.machine.balanced and part.machine.total == 0.0
        self.b, self.ra = b, ra
        self.tables = _Tables(part.gram, [], part.a)
        self.rng = np.random.default_rng(seed)
        self.rows = self._movable(part.f)
        self.r, self.moved = np.zeros(0), np.zeros(part.gram.n_samples)


class Partition:
    """Some of the samples: their features, targets and coefficients.

    Parameters
    ----------
    gram : FeatureGram
        Their raw kernels.

    Attributes
    ----------
    a, f : ndarrays of shape (m,)
        Coefficients, and outputs of the combined kernel as they were when these were last asked for.
    version : int
        Number of the coefficients, -1 without any.
    """

    machine: Descent
    means: np.ndarray
    lengths: np.ndarray
    epochs: _PartEpochs

    def __init__(self, gram: FeatureGram) -> None:
        self.raw, self.gram, self.version = gram, gram, -1
        self.a = self.f = self.before = np.zeros(gram.n_samples)

    def begin(self, machine: Machine, scale: np.ndarray, means: np.ndarray, n: int) -> None:
        """Take the targets of a problem on n samples, the factors of the kernels, and the tables of 1/n everywhere."""
        self.machine, self.version = Descent(machine), -1
        self.gram = self.raw.rescaled(scale)
        self.combined = CombinedFeatures(self.gram, np.zeros(len(scale)))
        self.means = self.outputs(means, np.zeros(self.gram.n_samples))
        # the length of each sample in feature space, for bounds on rounding: sums over features, of sums over samples
        self.lengths = np.sqrt(self.gram.diag() * (1.0 + len(means) / n))

    def tables(self, T: np.ndarray, coef: np.ndarray) -> _Tables:
        """Return tables, those of all sources one after the other, as outputs of this partition; T is shared."""
        ends = np.cumsum([len(source.kernel) for source in self.gram.sources])  # type: ignore[attr-defined]
        return _Tables(self.gram, np.split(T, ends[:-1]), coef)

    def outputs(self, T: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Return the outputs of every kernel, (p, m)."""
        return self.tables(T, coef).kernel_outputs()

    def set_weights(self, beta: np.ndarray) -> None:
        """Take weights of the kernels."""
        if not np.array_equal(beta, self.combined.beta):
            self.combined.set_weights(beta)

    def require(self, version: int, step: float = 1.0) -> None:
        """Raise where the coefficients are others; take ``step`` of their last change."""
        if self.version != version:
            raise Stale
        if step != 1.0:
            self.a = self.before + step * (self.a - self.before)

    def free(self) -> np.ndarray:
        """Return which coefficients are inside their bounds."""
        return (self.a > self.machine.lo) & (self.a < self.machine.hi) & (self.a != 0.0)


def size_of(parts: Sequence[Partition]) -> tuple[int, list]:
    """Return bytes of the features, and the runs of the kernels in the tables."""
    return sum(part.raw.nbytes for part in parts), spans_of(parts[0].raw)


def describe(parts: Sequence[Partition], shares: Sequence[np.ndarray | None], n: int) -> tuple[np.ndarray, tuple]:
    """Return the tables of shares of sum one (1/n where None); means and largest entries of the raw diagonals."""
    total, mean, top = None, 0.0, []
    for part, share in zip(parts, shares, strict=True):
        share = np.full(part.raw.n_samples, 1.0 / n) if share is None else share
        tables = FeatureOutputs(part.raw)
        tables.update(share)
        own = np.concatenate(tables.parts)
        total = own if total is None else total + own
        diag = part.raw.diag()
        mean = mean + diag @ share
        top.append(diag.max(axis=1))
    assert total is not None
    return total, (mean, np.array(top))


def begin(parts: Sequence[Partition], machines: Sequence[Machine], scale: np.ndarray, means: np.ndarray, n: int) -> int:
    """Begin a problem. Sets: machines and factors."""
    for part, machine in zip(parts, machines, strict=True):
        part.begin(machine, scale, means, n)
    return len(parts)


def put(parts: Sequence[Partition], coefs: Sequence[np.ndarray | None], version: int) -> float:
    """Set the coefficients, None for zeros; return their dual value without kernels."""
    for part, coef in zip(parts, coefs, strict=True):
        part.a = np.zeros(part.gram.n_samples) if coef is None else np.array(coef)
        part.before, part.version = part.a, version
    return sum(part.machine.dual(part.a) for part in parts)


def get(parts: Sequence[Partition], version: int) -> list[tuple[np.ndarray, float]]:
    """Return the coefficients of each partition, and their dual value without kernels."""
    for part in parts:
        part.require(version)
    return [(part.a, part.machine.dual(part.a)) for part in parts]


def sum_tables(parts: Sequence[Partition], version: int) -> np.ndarray:
    """Return what the partitions add to the tables, Phi' a."""
    for part in parts:
        part.require(version)
    return tables_of(parts, [part.a for part in parts])


def tables_of(parts: Sequence[Partition], coefs: Sequence[np.ndarray]) -> np.ndarray:
    """Return Phi' coef, summed over the partitions."""
    total = np.concatenate([source.tables() for source in parts[0].gram.sources])
    for part, coef in zip(parts, coefs, strict=True):
        part.tables(total, np.zeros(len(coef))).update(coef)
    return total


def look(parts: Sequence[Partition], T: np.ndarray, beta: np.ndarray, version: int) -> list[tuple]:
    """Return, for each partition, what the certificate needs of its coefficients.

    These are sum_j sqrt(K_jj) |a_j| of every kernel, sum_j |a_j|, and the intercept that is the best for its samples
    alone.

    Sets: f.
    """
    out = []
    for part in parts:
        part.require(version)
        part.set_weights(beta)
        tables = part.tables(T, part.a)
        part.f = part.combined.scores(tables, np.arange(part.gram.n_samples))
        a = np.abs(part.a)
        out.append((part.lengths @ a, float(a.sum()), float(part.machine.primal(part.f, 0.0)[1])))
    return out


def risks(parts: Sequence[Partition], intercepts: np.ndarray, version: int) -> np.ndarray:
    """Return the sum of the losses at each of several intercepts."""
    for part in parts:
        part.require(version)
    none = [np.zeros(part.gram.n_samples) for part in parts]
    return np.array(
        [sum(p.machine.risk(p.f + b, b, zero) for p, zero in zip(parts, none, strict=True)) for b in intercepts]
    )


def worst_risk(parts: Sequence[Partition], b: float, error: np.ndarray, digit: float, version: int) -> float:
    """Return the largest sum of the losses that rounding leaves possible.

    ``error`` is, for every kernel, the rounding of the outputs of a sample of length one; adding the intercept rounds
    once more.
    """
    total = 0.0
    for part in parts:
        part.require(version)
        out = part.f + b
        own = out - part.f
        lost = np.abs(part.f - (out - own)) + np.abs(b - own) + error @ part.lengths
        total += part.machine.risk(out, b, np.where(lost, lost + digit * np.abs(out), 0.0))
    return total


def products(
    parts: Sequence[Partition], shares: Sequence[np.ndarray | None], T: np.ndarray, beta: np.ndarray, n: int,
    version: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return means, and means of products with f, of the outputs of every kernel and of f = sum_k beta_k f_k itself."""
    first, second = np.zeros(len(beta) + 1), np.zeros(len(beta) + 1)
    for part, share in zip(parts, shares, strict=True):
        part.require(version)
        F = part.outputs(T, part.a)
        F = np.vstack([F, beta @ F])
        w = np.full(part.gram.n_samples, 1.0 / n) if share is None else share
        first += F @ w
        second += F @ (w * F[-1])
    return first, second


def start_rounds(parts: Sequence[Partition], b: float, ra: float, seed: int, version: int) -> int:
    """Begin rounds from the coefficients whose outputs were last looked at. Sets: the rows that may move."""
    for number, part in enumerate(parts):
        part.require(version)
        part.epochs = _PartEpochs(part, b, ra, seed + number)
    return len(parts)


def advance(
    parts: Sequence[Partition], T: np.ndarray, now: Round, spans: Sequence[tuple[int, int, int]]
) -> tuple[np.ndarray, tuple]:
    """Take one round, some rows of each partition in turn, in random order. Sets: the coefficients.

    Returns the change of the tables, and of the coefficients d: the growth of the dual value without kernels, sum d,
    the row means times d, and |Phi_k' d|^2 of every kernel.
    """
    local = T.copy()
    excess, ra, rows = now.excess, now.ra, []
    for part in parts:
        part.require(now.version, now.step)
        part.set_weights(now.beta)
        part.before, part.a = part.a, part.a.copy()
        run = part.epochs
        run.tables = part.tables(local, part.a)
        run.b, run.rho, run.mean, run.shared = now.b, now.rho, now.mean, now.shared
        run.r = now.beta @ part.means if run.centred else np.zeros(0)
        if now.turn == 0:
            run.rows_left = np.array_split(run.order(), now.turns)
        mine = run.rows_left[now.turn]
        rows.append(np.array_split(mine, max(1, len(mine) // ROWS)))
    # all partitions take part all along: an order by partitions would take more epochs
    for piece in range(max(map(len, rows))):
        for part, own in zip(parts, rows, strict=True):
            if piece < len(own):
                part.epochs.excess, part.epochs.ra = excess, ra
                part.epochs.visit(own[piece])
                excess, ra = part.epochs.excess, part.epochs.ra
    growth = moved = means = 0.0
    for part in parts:
        d = part.a - part.before
        growth += part.machine.dual(part.a) - part.machine.dual(part.before)
        moved += float(d.sum())
        means += float(part.epochs.r @ d) if part.epochs.centred else 0.0
    local -= T
    local /= now.shared
    return local, (growth, moved, means, inner(spans, local, local))


def rooms(parts: Sequence[Partition], step: float, version: int) -> list[np.ndarray]:
    """Return for each partition sum a, and how far a may shrink and grow in all, by `_room`.

    The rows are: free coefficients that may shrink, free ones that may grow, all that may shrink, all that may grow;
    the columns what is finite, and the sizes of those without a bound.

    Sets: the coefficients, of whose last change ``step`` is taken.
    """
    out = []
    for part in parts:
        part.require(version, step)
        part.before = part.a
        table = [
            [room[np.isfinite(limit)].sum(), room[~np.isfinite(limit)].sum()]
            for everyone in (False, True)
            for sign in (-1.0, 1.0)
            for room, limit in [_room(part, sign, everyone)]
        ]
        out.append(np.array([[compensated_sum(part.a, 0.0), 0.0], *table]))
    return out


def _room(part: Partition, sign: float, everyone: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return how far each coefficient may move by the sign, 1 / h where it has no bound there; and the distances."""
    machine = part.machine
    limit = part.a - machine.lo if sign < 0 else machine.hi - part.a
    with np.errstate(divide="ignore"):
        room = np.where(np.isfinite(limit), limit, 1.0 / machine.h)
    return room if everyone else np.where(part.free(), room, 0.0), limit


def shift(
    parts: Sequence[Partition], sign: float, share: float, everyone: bool, endless: bool, version: int
) -> list[float]:
    """Move each coefficient by a share of its room; return the sums. Sets: the coefficients."""
    sums = []
    for part in parts:
        part.require(version)
        if share:
            room, limit = _room(part, sign, everyone)
            room = np.where(np.isfinite(limit) != endless, room, 0.0)
            part.a = np.clip(part.a + sign * share * room, part.machine.lo, part.machine.hi)
        sums.append(compensated_sum(part.a, 0.0))
    return sums


def settle_sums(parts: Sequence[Partition], totals: Sequence[float], version: int) -> int:
    """Round the coefficients so that their sums are the totals in exact arithmetic. Sets: the coefficients."""
    for part, total in zip(parts, totals, strict=True):
        part.require(version)
        part.a = part.a.copy()
        settle(part.a, part.machine.lo, part.machine.hi, total, part.free())
        part.before, part.version = part.a, version + 1
    return len(parts)
