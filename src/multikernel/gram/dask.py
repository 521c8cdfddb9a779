"""Kernels by rows with the workers of a Dask cluster.

    worker b    K_k[rows_b, :] for every kernel, and rows of K_beta as they are needed    (`multikernel.gram.row_block`)
    client      vectors, diagonals, and blocks of K_beta on some samples for the compiled loops of the machines

How workers are asked, and what happens when one dies, is in `multikernel.gram.dask_blocks`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from multikernel.gram.combined import WORKING_SET, Combined, HostRows, all_there
from multikernel.gram.dask_blocks import Blocks, send
from multikernel.gram.dense_loops import read_only
from multikernel.gram.host import HostGram
from multikernel.gram.row_block import assemble, factorise
from multikernel.threads import ROWS, Team


class DaskGram(HostGram):
    """p kernels with the workers of a cluster, or some of them on some of the samples.

    Parameters
    ----------
    blocks : Blocks
        Rows of all kernels.
    diag : ndarray of shape (p, n)
        Diagonals of what is stored.
    scale : ndarray of shape (p,)
        Factors of the kernels.
    n_threads : int
        Threads for work on the client.
    kernels, samples : ndarrays of int, optional
        The kernels and samples of this Gram among those of the blocks; all by default.
    """

    kind = "dask"

    def __init__(
        self,
        blocks: Blocks,
        diag: np.ndarray,
        scale: np.ndarray,
        *,
        n_threads: int = 1,
        kernels: np.ndarray | None = None,
        samples: np.ndarray | None = None,
    ) -> None:
        self.blocks, self.scale, self._raw_diag, self.team = blocks, scale, diag, Team(n_threads)
        self.kernels, self.samples = np.arange(blocks.p) if kernels is None else kernels, samples
        self.n_kernels, self.n_samples = len(self.kernels), blocks.n if samples is None else len(samples)
        self.dtype, self.nbytes = blocks.dtype, blocks.nbytes
        self.device = f"{len({share.worker for share in blocks.shares})} workers of Dask"

    def diag(self):
        d = (self.scale[:, None] * self._raw_diag)[self.kernels]
        return d if self.samples is None else d[:, self.samples]

    def weights(self, beta: np.ndarray) -> np.ndarray:
        """Return the weights of what is stored."""
        weights = np.zeros(self.blocks.p)
        weights[self.kernels] = beta
        return weights * self.scale

    def numbers(self, idx: np.ndarray) -> np.ndarray:
        """Return the numbers of samples among all that are stored."""
        return np.asarray(idx, np.intp) if self.samples is None else self.samples[idx]

    def sums(self, name: str, v: np.ndarray, of: np.ndarray) -> np.ndarray:
        """Return the sum over all blocks of what their rows add to products with v."""
        if self.samples is not None:
            whole = np.zeros((self.blocks.n, *v.shape[1:]))
            whole[self.samples] = v
            v = whole
        total = reduce(np.add, self.blocks.ask(name, v, of))
        return total if self.samples is None else total[:, self.samples]

    def apply(self, v, kernels=None):
        chosen = self.kernels if kernels is None else self.kernels[kernels]
        if not v.any():
            return np.zeros((len(chosen), *v.shape))
        return self.sums("outputs", v, chosen) * self.scale[chosen].reshape(-1, *(1,) * v.ndim)

    def gather(self, name: str, idx: np.ndarray, columns: np.ndarray | None, of: np.ndarray, out: np.ndarray) -> None:
        """Bring rows to the client, at some columns or at all, some at a time, so that little is in memory twice.

        Sets: ``out``, of shape (p', len(idx), len(columns)).
        """
        rows, columns = self.numbers(idx), self.samples if columns is None else self.numbers(columns)
        blocks, size = self.blocks, max(1, ROWS * WORKING_SET // (len(out) * out.shape[2]))
        cuts = [slice(start, start + size) for start in range(0, len(rows), size)]
        found = [blocks.places(rows[cut]) for cut in cuts]

        def tasks(i: int) -> list:
            first = asked.pop(i, None)
            if first is not None and blocks.homes is homes:
                return first
            return blocks.tasks(name, rows[cuts[i]], columns, of, which=found[i][0])

        homes: list[str] = blocks.homes
        asked: dict[int, list] = {}
        # all are asked for at once, and come one after the other
        asked.update({i: tasks(i) for i in range(len(cuts))})
        for i, cut in enumerate(cuts):
            assemble(blocks.answers(partial(tasks, i)), found[i][1], out[:, cut])

    def combine(self, beta, rows, out, slots):
        part = np.empty((1, len(rows), self.n_samples), self.dtype)
        self.gather("mixed_rows", rows, None, self.weights(beta), part)
        out[slots] = part[0]

    def rows(self, idx, kernels=None):
        chosen = self.kernels if kernels is None else self.kernels[kernels]
        return self._raw_rows(chosen, idx, None, self.n_samples)

    def block(self, idx):
        return self._raw_rows(self.kernels, idx, idx, len(idx))

    def _raw_rows(self, chosen: np.ndarray, idx: np.ndarray, columns: np.ndarray | None, width: int) -> np.ndarray:
        out = np.empty((len(chosen), len(idx), width), self.dtype)
        self.gather("rows", idx, columns, chosen, out)
        out *= self.scale[chosen, None, None].astype(self.dtype)
        return out

    def combined(self, beta):
        return DaskCombined(self, beta)

    def _view(self, scale: np.ndarray, kernels: np.ndarray, samples: np.ndarray | None) -> DaskGram:
        return DaskGram(
            self.blocks, self._raw_diag, scale, n_threads=self.team.n_threads, kernels=kernels, samples=samples
        )

    def take_samples(self, idx):
        return self._view(self.scale, self.kernels, self.numbers(idx))

    def take_kernels(self, kernels):
        return self._view(self.scale, self.kernels[kernels], self.samples)

    def rescaled(self, factor):
        return self._view(self.scale * factor, self.kernels, self.samples)


class DaskCombined(Combined):
    """K_beta whose rows are with the workers.

    A block of K_beta comes to the client for at most ``host_limit`` samples. Factorisations stay with a worker.
    """

    # half of what comes from a device: the client is often a small machine, and smaller blocks come sooner
    host_limit = WORKING_SET // 2
    _gram: DaskGram

    def __init__(self, gram: DaskGram, beta: np.ndarray) -> None:
        self._gram, self.dtype, self.team = gram, gram.dtype, gram.team
        self._kernel_diag = gram.diag()
        self.set_weights(beta)

    def set_weights(self, beta):
        self.beta, self.cache = beta, {}
        self._weights, self.diag = self._gram.weights(beta), beta @ self._kernel_diag

    def apply(self, delta, exact=True):
        if not delta.any():
            return np.zeros(delta.shape)
        return self._gram.sums("mixed_outputs", delta, self._weights)[0]

    def block(self, idx, dtype=None):
        out = np.empty((1, len(idx), len(idx)), self.dtype if dtype is None else dtype)
        self._gram.gather("mixed_rows", idx, idx, self._weights, out)
        return out[0]

    def host_rows(self, idx=None):
        if idx is not None:
            return super().host_rows(idx)
        if "rows" not in self.cache:
            # all at once, which takes less time than some rows many times
            n = self._gram.n_samples
            matrix = read_only(self.block(np.arange(n)))
            self.cache["rows"] = HostRows(matrix, 1.0, np.ones(n, bool), self.diag, all_there)
        return self.cache["rows"]

    def factor(self, idx, diagonal, single=False):
        blocks, rows, weights = self._gram.blocks, self._gram.numbers(idx), self._weights
        which, places = blocks.places(rows)
        dtype = self.precision(single, diagonal)

        def make() -> Any:
            parts = blocks.tasks("mixed_rows", rows, rows, weights, which=which)
            return send(blocks.client, factorise, parts, places, diagonal, dtype)

        made = DaskCholesky(blocks, make)
        return made if blocks.answers(lambda: send(blocks.client, _is_there, made.future())) else None


def _is_there(value: Any) -> bool:
    return value is not None


def _solve(factor: Any, rhs: np.ndarray) -> np.ndarray:
    return factor.solve(rhs)


class DaskCholesky:
    """A factorisation that a worker holds; made again when a worker was lost."""

    def __init__(self, blocks: Blocks, make: Callable[[], Any]) -> None:
        self._blocks, self._make = blocks, make
        self._made: tuple[list[str], Any] | None = None

    def future(self) -> Any:
        """Return the factorisation."""
        if self._made is None or self._made[0] is not self._blocks.homes:
            self._made = self._blocks.homes, self._make()
        return self._made[1]

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Return A^-1 rhs, float64, for right-hand sides of shape (n,) or (n, m)."""
        return self._blocks.answers(lambda: send(self._blocks.client, _solve, self.future(), rhs))
