"""Kernels by their explicit features: K_k = s_k Phi_k Phi_k', never formed.

    T_k = Phi_k' a      the tables of coefficients a, independent of the weights of the kernels
    K_k a = s_k Phi_k T_k,      a' K_k a = s_k |T_k|^2

Products stream over the samples: memory and time grow with n, not with its square.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from multikernel.gram.base import Gram
from multikernel.gram.sources import Source
from multikernel.threads import Team

# samples that go through the tables together: those of one place are then read many times while they are in the cache
_GRAIN = 1 << 16


class Tables:
    """The tables T_k of some coefficients, kept up to date as they change.

    Attributes
    ----------
    a : ndarray of shape (n,)
        The coefficients.
    q : ndarray of shape (p,)
        a' K_k a, kept incrementally.
    """

    def __init__(self, gram: FeatureGram) -> None:
        self.gram = gram
        self.parts = [source.tables() for source in gram.sources]
        self.a = np.zeros(gram.n_samples)
        self._growth = np.zeros(gram.n_kernels)

    @property
    def q(self) -> np.ndarray:
        return np.maximum(self.gram.scale * self._growth, 0.0)

    def add(self, rows: np.ndarray, delta: np.ndarray) -> None:
        """Move the coefficients of the rows by delta."""
        old = self.a[rows]
        new = old + delta
        for source, kernels, T in zip(self.gram.sources, self.gram.kernels, self.parts, strict=True):
            growth = np.zeros(len(kernels))
            source.add(T, rows, delta, growth)
            if source.single is not None:
                growth += source.single[:, rows] @ (new * new - old * old)
            self._growth[kernels] += growth
        self.a[rows] = new

    def move(self, a: np.ndarray) -> None:
        """Move to the coefficients ``a``, at the cost of those that differ."""
        rows = np.flatnonzero(a != self.a)
        for start in range(0, len(rows), _GRAIN):
            part = rows[start : start + _GRAIN]
            self.add(part, a[part] - self.a[part])
            # without rounding
            self.a[part] = a[part]

    def outputs(self, out: np.ndarray, accumulate: bool = False) -> None:
        """K_k a of every kernel.

        Sets: out, of shape (p, n); added to where ``accumulate``.
        """
        team = self.gram.team
        calls = [partial(self._outputs, out, accumulate, lo, hi) for lo, hi in _spans(self.gram.n_samples)]
        team.run(calls)

    def _outputs(self, out: np.ndarray, accumulate: bool, lo: int, hi: int) -> None:
        for source, kernels, T in zip(self.gram.sources, self.gram.kernels, self.parts, strict=True):
            F = source.outputs(T, lo, hi)
            if source.single is not None:
                F += source.single[:, lo:hi] * self.a[lo:hi]
            F *= self.gram.scale[kernels, None]
            if accumulate:
                out[kernels, lo:hi] += F
            else:
                out[kernels, lo:hi] = F


class FeatureGram(Gram):
    """The p kernels of several feature maps.

    Parameters
    ----------
    sources : sequence of Source
        The maps.
    kernels : sequence of int arrays, optional
        Numbers of the kernels of each map; consecutive by default.
    scale : ndarray of shape (p,), optional
        Factors of the kernels.
    n_threads : int
        Threads for outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.features import FeatureGram
    >>> from multikernel.gram.sources import DenseSource
    >>> gram = FeatureGram([DenseSource(np.array([[1.0], [2.0]]), np.array([0]))])
    >>> gram.apply(np.array([1.0, 1.0])), gram.quad(np.array([1.0, 1.0]))
    (array([[3., 6.]]), array([9.]))
    """

    kind = "features"
    dtype = np.dtype(np.float64)

    def __init__(
        self,
        sources: Sequence[Source],
        kernels: Sequence[np.ndarray] | None = None,
        scale: np.ndarray | None = None,
        n_threads: int = 1,
    ) -> None:
        self.sources = list(sources)
        if kernels is None:
            ends = np.cumsum([source.n_kernels for source in self.sources])
            kernels = [np.arange(end - source.n_kernels, end) for end, source in zip(ends, self.sources, strict=True)]
        self.kernels = [np.asarray(part, np.intp) for part in kernels]
        self.n_kernels = sum(len(part) for part in self.kernels)
        self.n_samples = self.sources[0].n_samples
        self.scale = np.ones(self.n_kernels) if scale is None else np.asarray(scale, float)
        self.team = Team(n_threads)
        self.batch = min(source.batch for source in self.sources)
        self._held: Tables | None = None
        self._means: np.ndarray | None = None

    @property
    def means(self) -> np.ndarray:
        """Row means of every kernel, shape (p, n); the first time they take a pass."""
        if self._means is None:
            self._means = self.apply(np.full(self.n_samples, 1.0 / self.n_samples))
        return self._means

    @property
    def held(self) -> Tables:
        """The tables that follow the coefficients of a run."""
        if self._held is None:
            self._held = Tables(self)
        return self._held

    @property
    def nbytes(self):
        tables = 0 if self._held is None else sum(T.nbytes for T in self._held.parts)
        return tables + sum(source.nbytes for source in self.sources)

    def diag(self):
        out = np.empty((self.n_kernels, self.n_samples))
        for source, kernels in zip(self.sources, self.kernels, strict=True):
            out[kernels] = self.scale[kernels, None] * source.diag()
        return out

    def rows(self, idx, kernels=None):
        idx = np.asarray(idx, np.intp)
        out = np.empty((self.n_kernels, len(idx), self.n_samples))
        for source, own in zip(self.sources, self.kernels, strict=True):
            out[own] = self.scale[own, None, None] * source.cross(idx)
        return out if kernels is None else out[kernels]

    def apply(self, v, kernels=None):
        columns = v[:, None] if v.ndim == 1 else v
        out = np.zeros((self.n_kernels, self.n_samples, columns.shape[1]))
        for c in range(columns.shape[1]):
            tables = Tables(self)
            tables.move(columns[:, c])
            tables.outputs(out[:, :, c])
        out = out[:, :, 0] if v.ndim == 1 else out
        return out if kernels is None else out[kernels]

    def quad(self, v):
        if v.ndim > 1:
            return np.sum([self.quad(column) for column in v.T], axis=0)
        tables = Tables(self)
        tables.move(v)
        return tables.q

    def update_outputs(self, F, old, new):
        if new.ndim > 1:
            return super().update_outputs(F, old, new)
        self.held.move(new)
        self.held.outputs(F)
        return None

    def combined(self, beta):
        return CombinedFeatures(self, beta)

    def take_samples(self, idx):
        return FeatureGram([source.take(idx) for source in self.sources], self.kernels, self.scale, self.team.n_threads)


class CombinedFeatures:
    """K_beta by features: what a machine asks of it, a few rows at a time.

    Parameters
    ----------
    gram : FeatureGram
        The kernels.
    beta : ndarray of shape (p,)
        Weights.

    Attributes
    ----------
    diag : ndarray of shape (n,)
        K_beta(i, i).
    """

    def __init__(self, gram: FeatureGram, beta: np.ndarray) -> None:
        self.gram = gram
        self._kernel_diag = gram.diag()
        self.set_weights(beta)

    def set_weights(self, beta: np.ndarray) -> None:
        """Take new weights; tables do not depend on them."""
        self.beta = beta
        self.made: dict = {}
        self.diag = beta @ self._kernel_diag
        coef = beta * self.gram.scale
        self._coef = [coef[kernels] for kernels in self.gram.kernels]
        self._single = np.zeros(self.gram.n_samples)
        for source, own in zip(self.gram.sources, self._coef, strict=True):
            if source.single is not None:
                self._single += own @ source.single

    @property
    def means(self) -> np.ndarray:
        """Row means of K_beta."""
        if "means" not in self.made:
            self.made["means"] = self.beta @ self.gram.means
        return self.made["means"]

    def scores(self, tables: Tables, rows: np.ndarray) -> np.ndarray:
        """(K_beta a)[rows] for the coefficients of the tables."""
        out = self._single[rows] * tables.a[rows]
        for source, coef, T in zip(self.gram.sources, self._coef, tables.parts, strict=True):
            source.score(T, coef, rows, out)
        return out

    def block(self, rows: np.ndarray) -> np.ndarray:
        """K_beta[rows, rows]."""
        G = np.zeros((len(rows), len(rows)))
        for source, coef in zip(self.gram.sources, self._coef, strict=True):
            source.pairs(coef, rows, G)
        np.fill_diagonal(G, self.diag[rows])
        return G

    def apply(self, delta: np.ndarray) -> np.ndarray:
        """Return K_beta delta."""
        if not delta.any():
            return np.zeros_like(delta)
        tables = Tables(self.gram)
        tables.move(delta)
        out = np.empty(len(delta))
        for lo, hi in _spans(len(delta)):
            rows = np.arange(lo, hi)
            out[lo:hi] = self.scores(tables, rows)
        return out


def _spans(n: int) -> list[tuple[int, int]]:
    return [(lo, min(lo + _GRAIN, n)) for lo in range(0, n, _GRAIN)]
