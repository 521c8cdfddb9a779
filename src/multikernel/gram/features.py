"""Kernels by their explicit features: K_k = s_k Phi_k Phi_k', never formed.

    T_k = Phi_k' a      the tables of coefficients a, independent of the weights of the kernels
    K_k a = s_k Phi_k T_k,      a' K_k a = s_k |T_k|^2

Products stream over the samples: memory and time grow with n, not with its square.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial

import numpy as np

from multikernel.gram.base import Outputs
from multikernel.gram.combined import Combined
from multikernel.gram.host import HostGram, HostOutputs
from multikernel.gram.sources import SAMPLES, Source
from multikernel.threads import Team


class FeatureOutputs(Outputs):
    """The tables T_k of coefficients a of shape (n,), updated as these change; outputs K_k a follow when they are read.

    Attributes
    ----------
    parts : list of ndarrays
        The tables, one for each source of the Gram.
    q : ndarray of shape (p,)
        a' K_k a, updated with the tables: known without a pass over the samples.
    """

    def __init__(self, gram: FeatureGram) -> None:
        self.gram = gram
        self.parts = [source.tables() for source in gram.sources]
        self.coef = np.zeros(gram.n_samples)
        self._squares = np.zeros(gram.n_kernels)
        # K_k a, and whether coefficients have changed since it was computed
        self._F: np.ndarray | None = None
        self._stale = True

    @property
    def q(self) -> np.ndarray:
        return np.maximum(self.gram.scale * self._squares, 0.0)

    def add(self, rows: np.ndarray, delta: np.ndarray) -> None:
        """Move the coefficients of the rows by delta."""
        old = self.coef[rows]
        new = old + delta
        for source, kernels, T in zip(self.gram.sources, self.gram.kernels, self.parts, strict=True):
            growth = np.zeros(len(kernels))
            source.add(T, rows, delta, growth)
            if source.single is not None:
                growth += source.single[:, rows] @ (new * new - old * old)
            self._squares[kernels] += growth
        self.coef[rows] = new
        self._stale = True

    def update(self, coef, kernels=None):
        """Move to other coefficients; tables have all kernels, so that ``kernels`` makes no difference."""
        rows = np.flatnonzero(coef != self.coef)
        for start in range(0, len(rows), SAMPLES):
            part = rows[start : start + SAMPLES]
            self.add(part, coef[part] - self.coef[part])
            # without the rounding of the sum
            self.coef[part] = coef[part]

    def put(self, kernels, part):
        self.kernel_outputs()[kernels] = part.kernel_outputs() if isinstance(part, Outputs) else part

    def take(self, kernels):
        return HostOutputs(self.gram.take_kernels(kernels), self.coef.copy(), self.kernel_outputs()[kernels])

    def quadratic_forms(self):
        return self.kernel_outputs() @ self.coef

    def mix(self, beta):
        return beta @ self.kernel_outputs()

    def kernel_outputs(self, rows=None):
        F = self._F = np.empty((self.gram.n_kernels, self.gram.n_samples)) if self._F is None else self._F
        if self._stale:
            self.gram.team.run(partial(self._fill, F, lo, hi) for lo, hi in _spans(self.gram.n_samples))
            self._stale = False
        return F if rows is None else F[:, rows]

    def _fill(self, out: np.ndarray, lo: int, hi: int) -> None:
        """Set the outputs of the samples from ``lo`` to ``hi``."""
        for source, kernels, T in zip(self.gram.sources, self.gram.kernels, self.parts, strict=True):
            F = source.outputs(T, lo, hi)
            if source.single is not None:
                F += source.single[:, lo:hi] * self.coef[lo:hi]
            out[kernels, lo:hi] = self.gram.scale[kernels, None] * F

    def known(self):
        return self.coef.copy(), self.kernel_outputs().copy()


class FeatureGram(HostGram):
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
    means : ndarray of shape (p, n), optional
        Row means of every kernel, where they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.features import FeatureGram
    >>> from multikernel.gram.sources import DenseSource
    >>> gram = FeatureGram([DenseSource(np.array([[1.0], [2.0]]), np.array([0]))])
    >>> gram.apply(np.array([1.0, 1.0]))
    array([[3., 6.]])
    """

    kind = "features"
    dtype = np.dtype(np.float64)

    def __init__(
        self,
        sources: Sequence[Source],
        kernels: Sequence[np.ndarray] | None = None,
        scale: np.ndarray | None = None,
        n_threads: int = 1,
        means: np.ndarray | None = None,
    ) -> None:
        self.sources = list(sources)
        if means is not None:
            self.means = means
        if kernels is None:
            ends = np.cumsum([source.n_kernels for source in self.sources])
            kernels = [np.arange(end - source.n_kernels, end) for end, source in zip(ends, self.sources, strict=True)]
        self.kernels = [np.asarray(part, np.intp) for part in kernels]
        self.n_kernels = sum(len(part) for part in self.kernels)
        self.n_samples = self.sources[0].n_samples
        self.scale = np.ones(self.n_kernels) if scale is None else np.asarray(scale, float)
        self.team = Team(n_threads)
        self.nbytes = sum(source.nbytes for source in self.sources)
        self.batch = min(source.batch for source in self.sources)
        # outputs are sums over the features of a sample, of sums over the samples
        self.loose = self.diag() * max(source.terms for source in self.sources) / self.n_samples

    @cached_property
    def means(self) -> np.ndarray:
        """Row means of every kernel, shape (p, n); where they are not given they take a pass."""
        return self.apply(np.full(self.n_samples, 1.0 / self.n_samples))

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
        parts = []
        for column in columns.T:
            tables = FeatureOutputs(self)
            tables.update(column)
            parts.append(tables.kernel_outputs())
        out = parts[0] if v.ndim == 1 else np.stack(parts, axis=-1)
        return out if kernels is None else out[kernels]

    def new_outputs(self, shape, known=None):
        if len(shape) > 1:
            return super().new_outputs(shape, known)
        # tables cannot be had from known outputs: they begin at zero coefficients
        return FeatureOutputs(self)

    def combined(self, beta):
        return CombinedFeatures(self, beta)

    def rescaled(self, factor):
        # one factor, or one for each kernel
        means = np.reshape(factor, (-1, 1)) * self.means if "means" in vars(self) else None
        return FeatureGram(self.sources, self.kernels, self.scale * factor, self.team.n_threads, means)

    def take_samples(self, idx):
        return FeatureGram([source.take(idx) for source in self.sources], self.kernels, self.scale, self.team.n_threads)


class CombinedFeatures(Combined):
    """K_beta by features: what a machine asks of it, a few rows at a time.

    Parameters
    ----------
    gram : FeatureGram
        The kernels.
    beta : ndarray of shape (p,)
        Weights.
    """

    # more kernel values than those of so many samples are not worth their memory
    host_limit = 5000

    def __init__(self, gram: FeatureGram, beta: np.ndarray) -> None:
        self.gram, self.dtype, self.team = gram, gram.dtype, gram.team
        self._kernel_diag = gram.diag()
        self.set_weights(beta)

    @cached_property
    def tables(self) -> FeatureOutputs:
        """Tables for the machine's use, kept from one solution to the next."""
        return FeatureOutputs(self.gram)

    def set_weights(self, beta: np.ndarray) -> None:
        """Take new weights; tables do not depend on them."""
        self.beta = beta
        self.cache = {}
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
        if "means" not in self.cache:
            self.cache["means"] = self.beta @ self.gram.means
        return self.cache["means"]

    def scores(self, tables: FeatureOutputs, rows: np.ndarray) -> np.ndarray:
        """(K_beta a)[rows] for the coefficients of the tables."""
        out = self._single[rows] * tables.coef[rows]
        for source, coef, T in zip(self.gram.sources, self._coef, tables.parts, strict=True):
            source.score(T, coef, rows, out)
        return out

    def block(self, idx: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
        G = np.zeros((len(idx), len(idx)))
        for source, coef in zip(self.gram.sources, self._coef, strict=True):
            source.pairs(coef, idx, G)
        np.fill_diagonal(G, self.diag[idx])
        return G if dtype is None else G.astype(dtype, copy=False)

    def apply(self, delta: np.ndarray, exact: bool = True) -> np.ndarray:
        if delta.ndim > 1:
            return np.stack([self.apply(column) for column in delta.T], axis=-1)
        if not delta.any():
            return np.zeros(len(delta))
        tables = FeatureOutputs(self.gram)
        tables.update(delta)
        out = np.empty(len(delta))
        for lo, hi in _spans(len(delta)):
            rows = np.arange(lo, hi)
            out[lo:hi] = self.scores(tables, rows)
        return out


def _spans(n: int) -> list[tuple[int, int]]:
    return [(lo, min(lo + SAMPLES, n)) for lo in range(0, n, SAMPLES)]
