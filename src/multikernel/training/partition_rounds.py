"""Rounds of coordinate descent on all partitions of the samples, as the client leads them (CoCoA+).

    max_a  g(a) - 1/2 a' K a - b sum a - rho / 2 (sum a)^2,       K centred where there is an intercept

An epoch is one pass of every group over its own rows, in one or more rounds, between which tables are added up. From
sums over the groups the client knows the objective along all changes of a round together, takes the best multiple of
them, at most one, and moves the multiplier b of the sum. Tables stay with the workers, which add them up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from multikernel.gram.dask_blocks import send
from multikernel.gram.partitions import StateLost
from multikernel.machines import partition as work
from multikernel.machines.base import PENALTY
from multikernel.machines.box_loops import last_digit


def _moved(T: np.ndarray, change: np.ndarray, step: float) -> np.ndarray:
    return T + step * change


def _compare(spans: Sequence, T: np.ndarray, change: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return <T_k, d_k>, |d_k|^2 and <m_k, d_k> of every kernel, for tables T, their change d, and those of 1/n."""
    return np.array([work.inner(spans, other, change) for other in (T, change, means)])


class Rounds:
    """Rounds of coordinate descent on all partitions, from the coefficients of a point.

    Parameters
    ----------
    point : PartitionPoint
        The point, whose weights may change between rounds.

    Attributes
    ----------
    q : ndarray of shape (p,)
        a' K_k a.
    """

    moved = None
    # rounds of an epoch: groups that learn of each other more often need fewer epochs, and send more tables
    turns = 4

    def __init__(self, point: Any) -> None:
        self.point, self.gram, self.balanced = point, point.gram, point.machine.balanced
        point.safely(self._start)

    def _start(self) -> None:
        """Begin at the coefficients of the point."""
        point, gram, groups = self.point, self.gram, self.gram.groups
        b = float(point.certificate.intercept) - point.machine.shift if self.balanced else 0.0
        point.look_again()
        self.tables, self.q, self.version, self.step = point.tables, point.a.q, point.version, 1.0
        # the row means of every kernel times the coefficients, and the sum of these
        self.means_a, self.excess = np.zeros(gram.n_kernels), 0.0
        if self.balanced:
            told = send(groups.client, work.inner, gram.spans, self.tables, point.means)
            self.means_a = gram.scale * groups.answers(told)
        self.refresh()
        # the multiplier of the centred kernel, which changes little with the weights
        self.b = b + self.ra
        groups.ask(work.start_rounds, self.b, self.ra, point.version, point.version)

    def refresh(self) -> None:
        """Take over the weights of the point as they are now."""
        beta, gram = self.point.beta, self.gram
        diag, squares = (gram.scale * each for each in gram.moments)
        self.ra = float(beta @ self.means_a)
        self.mean = float(beta @ squares) if self.balanced else 0.0
        self.rho = PENALTY * (float(beta @ diag) - self.mean) if self.balanced else 0.0

    def run(self) -> None:
        """Go once through all partitions."""
        try:
            for turn in range(self.turns):
                self._run(turn)
        except StateLost:
            self.point.restore()
            self.point.safely(self._start)

    def _run(self, turn: int) -> None:
        """Take one round: some rows of every group, then the best multiple of their changes together."""
        gram, groups, beta = self.gram, self.gram.groups, self.point.beta
        now = work.Round(
            beta,
            self.b,
            self.rho,
            self.excess,
            self.ra,
            self.mean,
            self.point.shared(),
            self.step,
            turn,
            self.turns,
            self.version,
        )
        tasks = groups.tasks(work.advance, self.tables, now, gram.spans)
        self.point.leave()
        change = groups.total(tasks, 0)
        told = send(groups.client, _compare, gram.spans, self.tables, change, self.point.means)
        sums, compared = groups.answers([groups.rest(tasks, 1), told])
        along, square, means = gram.scale * compared
        growth, d = sum(each[0] for each in sums), sum(each[1] for each in sums)
        # the dual value of the centred kernel at a multiple t of the changes: t rise - t^2 bend / 2, at least
        md = float(beta @ means) if self.balanced else 0.0
        cross = float(beta @ along) - self.ra * d - md * self.excess + self.mean * self.excess * d
        bend = float(beta @ square) - 2.0 * md * d + (self.mean + self.rho) * d**2
        rise = growth - (self.b + self.rho * self.excess) * d - cross
        step = 1.0 if rise >= bend else max(rise, 0.0) / bend
        alone = sum(
            float(beta @ (gram.scale * own)) - 2.0 * rd * dd + (self.mean + self.rho) * dd**2 for _, dd, rd, own in sums
        )
        # how much larger the changes are together than each by itself: what the next round has to allow for
        self.point.overlap = max(bend / alone, 1.0) if alone > 0.0 and step > 0.0 else np.inf
        self.tables = send(groups.client, _moved, self.tables, change, step)
        self.q = np.maximum(self.q + step * (2.0 * along + step * square), 0.0)
        self.means_a, self.excess = self.means_a + step * means, self.excess + step * d
        self.ra = float(beta @ self.means_a) if self.balanced else 0.0
        self.step = step
        # the share of an epoch's step of the multiplier
        self.b += self.rho * self.excess / self.turns

    def finish(self) -> Any:
        """Return the coefficients with every constraint made exact; they are now on the client as well."""
        try:
            return self._finish()
        except StateLost:
            self.point.restore()
            return self.point.a

    def _finish(self) -> Any:
        groups, version = self.gram.groups, self.version
        room = np.array(groups.ask_each(work.rooms, self.step, version))
        if self.balanced:
            excess = float(room[:, 0, 0].sum())
            sign, share = (-1.0 if excess > 0.0 else 1.0), np.inf
            for everyone in (False, True):
                finite, unbounded = room[:, 1 + 2 * everyone + (sign > 0)].sum(axis=0)
                endless = bool(unbounded > 0.0)
                within = unbounded if endless else finite
                share = abs(excess) / within if within > 0.0 else np.inf
                if share <= 1.0 or endless:
                    break
            share = share if endless else min(share, 1.0)
            sums = np.array(groups.ask_each(work.shift, sign, share, everyone, endless, version))
            # totals that add up to zero as whole numbers of one digit; what is left goes where there is most room
            unit = last_digit(max(float(np.abs(sums).sum()), np.finfo(float).tiny))
            whole = np.rint(sums / unit)
            whole[int(np.argmax(room[:, 3:].sum(axis=(1, 2))))] -= whole.sum()
            groups.ask(work.settle_sums, version, own=list(whole * unit))
            version += 1
        answers = groups.ask_each(work.get, version)
        return self.point.taken(
            np.concatenate([each[0] for each in answers]), sum(each[1] for each in answers), version
        )
