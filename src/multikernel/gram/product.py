"""Products of kernels on samples with kernels on classes, (12) in Zien & Ong 2007, never expanded.

    k_j((x, u), (x', v)) = K_k(x, x') Y_m(u, v),     A -> K_k A Y_m,     q_j = tr A' K_k A Y_m,     j = (k, m)

Pairs with the same kernel on the samples share its outputs F_k = K_k A. Only the F_k are kept: q_j is the inner product
of the c x c matrices A'F_k and Y_m, and the combined outputs are sum_k F_k (sum_m beta_km Y_m).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from multikernel.gram.base import Outputs
from multikernel.gram.combined import Combined, HostRows, all_there, form_rows, times_columns
from multikernel.gram.dense_loops import read_only
from multikernel.gram.host import HostGram


class ProductGram(HostGram):
    """Pairs of a kernel on the samples and a kernel on the classes.

    Parameters
    ----------
    base : HostGram
        The kernels on the samples.
    classes : ndarray of shape (m, c, c)
        The kernels on the classes, symmetric and positive semidefinite.
    pairs : ndarray of int, shape (P, 2), optional
        Numbers of the kernels that are multiplied, by default all pairs, those of the first kernel first.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> gram = ProductGram(DenseGram(np.eye(2)[None]), np.array([np.eye(3), np.ones((3, 3))]))
    >>> outputs = gram.new_outputs((2, 3))
    >>> outputs.update(np.array([[1.0, -1.0, 0.0], [2.0, 0.0, 1.0]]))
    >>> gram.n_kernels, outputs.quadratic_forms()
    (2, array([7., 9.]))
    """

    def __init__(self, base: HostGram, classes: np.ndarray, pairs: np.ndarray | None = None) -> None:
        self.base, self.Y = base, np.ascontiguousarray(classes, np.float64)
        if pairs is None:
            pairs = np.indices((base.n_kernels, len(self.Y))).reshape(2, -1).T
        self.pairs = np.asarray(pairs, np.intp)
        self.kind, self.dtype, self.team = base.kind, base.dtype, base.team
        self.n_kernels, self.n_samples = len(self.pairs), base.n_samples
        self.output_kernels = [self.Y[m] for m in self.pairs[:, 1]]
        sums = (1.0 + self.Y.shape[1] / self.n_samples) * np.abs(self.Y).max(axis=(1, 2))
        whole = (base.diag() + base.loose)[self.pairs[:, 0]] * sums[self.pairs[:, 1], None]
        self.loose = np.maximum(whole - self.diag(), 0.0)

    @property
    def nbytes(self) -> int:  # type: ignore[override]  # a property: the bytes of a lazy base grow
        """Bytes of the base and of the kernels on the classes."""
        return self.base.nbytes + self.Y.nbytes

    def rows(self, idx, kernels=None):
        """Rows of the kernels on the samples of the chosen pairs."""
        pairs = self.pairs if kernels is None else self.pairs[kernels]
        return self.base.rows(idx, pairs[:, 0])

    def diag(self):
        """Diagonals of the kernels on the samples, one for each pair."""
        return self.base.diag()[self.pairs[:, 0]]

    def apply(self, v, kernels=None):
        pairs = self.pairs if kernels is None else self.pairs[kernels]
        needed, at = np.unique(pairs[:, 0], return_inverse=True)
        return np.matmul(self.base.apply(v, needed)[at], self.Y[pairs[:, 1]])

    def new_outputs(self, shape, known=None):
        """Outputs of zero coefficients, or of known ones: those of the kernels on the samples, shape (p, n, c)."""
        return ProductOutputs(self, self.base.new_outputs(shape, known))

    def take_samples(self, idx):
        return ProductGram(self.base.take_samples(idx), self.Y, self.pairs)

    def take_kernels(self, kernels):
        needed, at = np.unique(self.pairs[kernels, 0], return_inverse=True)
        return ProductGram(self.base.take_kernels(needed), self.Y, np.column_stack([at, self.pairs[kernels, 1]]))

    def table(self, beta: np.ndarray) -> np.ndarray:
        """Return the weights as a table of kernels on the samples against kernels on the classes."""
        table = np.zeros((self.base.n_kernels, len(self.Y)))
        np.add.at(table, (self.pairs[:, 0], self.pairs[:, 1]), beta)
        return table

    def combined(self, beta):
        return CombinedProduct(self, beta)


class ProductOutputs(Outputs):
    """Outputs of the kernels on the samples, from which those of all pairs follow.

    Parameters
    ----------
    gram : ProductGram
        The pairs.
    base : Outputs
        Outputs of the kernels on the samples.
    """

    def __init__(self, gram: ProductGram, base: Outputs) -> None:
        self.gram, self.base = gram, base

    @property
    def coef(self) -> np.ndarray:  # type: ignore[override]  # a property in place of a field
        return self.base.coef

    def _needed(self, kernels: np.ndarray) -> np.ndarray:
        """Return the kernels on the samples of some pairs."""
        return np.unique(self.gram.pairs[kernels, 0])

    def update(self, coef, kernels=None):
        self.base.update(coef, None if kernels is None else self._needed(kernels))

    def put(self, kernels, part):
        """Replace the outputs of the kernels on the samples, by those of a part or by numbers, shape (p', n, c)."""
        self.base.put(self._needed(kernels), part.base if isinstance(part, ProductOutputs) else part)

    def take(self, kernels):
        return ProductOutputs(self.gram.take_kernels(kernels), self.base.take(self._needed(kernels)))

    def quadratic_forms(self):
        F, Y, pairs = self.base.kernel_outputs(), self.gram.Y, self.gram.pairs
        # A'F_k against Y_m, for all pairs
        inner = np.matmul(F.transpose(0, 2, 1), self.coef).reshape(len(F), -1)
        return (inner @ Y.reshape(len(Y), -1).T)[pairs[:, 0], pairs[:, 1]]

    def mix(self, beta):
        F, table = self.base.kernel_outputs(), self.gram.table(beta)
        out = np.zeros(F.shape[1:])
        for k in np.flatnonzero(table.any(axis=1)):
            out += F[k] @ np.tensordot(table[k], self.gram.Y, 1)
        return out

    def kernel_outputs(self, rows=None):
        F, pairs = self.base.kernel_outputs(rows), self.gram.pairs
        return np.matmul(F[pairs[:, 0]], self.gram.Y[pairs[:, 1]])

    def known(self):
        """Return the coefficients, and the outputs of the kernels on the samples."""
        return self.base.known()


@dataclass(frozen=True)
class ProductRows(HostRows):
    """Rows of the M_r: M_r = ``scale[r] * matrix[which[r]]``, matrix of shape (s, n, n), in the rows where ``have``."""

    which: np.ndarray


class CombinedProduct(Combined):
    """sum_r M_r (x) W_r, the combined kernel as a short sum of products, rows of the M_r formed on demand.

    The terms stand for the kernels on the samples or for those on the classes, whichever has fewer of positive weight:
    M_r = K_k and W_r = sum_m beta_km Y_m, or M_r = sum_k beta_km K_k and W_r = Y_m. In the first case a stack that
    lies in memory is read in place.

    Parameters
    ----------
    product : ProductGram
        The kernels.
    beta : ndarray of shape (P,)
        Weights of the pairs.

    Attributes
    ----------
    W : ndarray of shape (R, c, c)
        The kernels on the classes.
    diags, rowmeans : ndarrays of shape (R, n)
        Diagonals and row means of the M_r.
    diag, means : ndarrays of shape (n,)
        Diagonal and row means averaged over the classes.
    """

    _gram: HostGram

    def __init__(self, product: ProductGram, beta: np.ndarray) -> None:
        self._product, self._gram = product, product.base
        self.dtype, self.team = self._gram.dtype, self._gram.team
        self._kernel_diag = self._gram.diag()
        self._kernel_means: np.ndarray | None = None
        self._buffer = np.empty((0, 0, 0), self.dtype)
        self.set_weights(beta)

    def set_weights(self, beta: np.ndarray) -> None:
        self.beta, self.cache = beta, {}
        table, n = self._product.table(beta), self._gram.n_samples
        inputs, outputs = np.flatnonzero(table.any(axis=1)), np.flatnonzero(table.any(axis=0))
        by_input = len(inputs) <= len(outputs)
        if by_input:
            self._weights = np.eye(len(table))[inputs]
            self.W = np.tensordot(table[inputs], self._product.Y, 1)
        else:
            self._weights, self.W = np.ascontiguousarray(table[:, outputs].T), self._product.Y[outputs]
        self.diags = self._weights @ self._kernel_diag
        self._share = np.einsum("ruu->r", self.W) / self.W.shape[-1]
        self.diag = self._share @ self.diags
        stored = self._gram.stored() if by_input else None
        if stored is not None:
            stack, factors = stored
            self._rows = ProductRows(stack, factors[inputs], np.ones(n, bool), self.diag, all_there, inputs)
            return
        terms = len(self._weights)
        if len(self._buffer) < terms:
            self._buffer = np.empty((terms, n, n), self.dtype)
        have = np.zeros(n, bool)
        ensure = partial(form_rows, self._gram, self._weights, self._buffer, have)
        self._rows = ProductRows(read_only(self._buffer), np.ones(terms), have, self.diag, ensure, np.arange(terms))

    @property
    def rowmeans(self) -> np.ndarray:
        """Row means of the M_r, float64; the first time they take a pass over all kernels."""
        if self._kernel_means is None:
            n = self._gram.n_samples
            self._kernel_means = self._gram.apply(np.full(n, 1.0 / n))
        return self._weights @ self._kernel_means

    @property
    def means(self) -> np.ndarray:
        """Row means averaged over the classes."""
        return self._share @ self.rowmeans

    def host_rows(self, idx: np.ndarray | None = None) -> ProductRows:
        """Return the rows of the M_r; there is no block of some samples, as there is none of K_beta."""
        return self._rows

    def block(self, idx, dtype=None):
        raise NotImplementedError("Products with kernels on the classes have no block of one matrix.")

    def apply(self, delta: np.ndarray, exact: bool = True) -> np.ndarray:
        """Return sum_r M_r delta W_r, delta of shape (n, c), from the rows of its non-zero entries."""
        idx = np.flatnonzero(delta.any(axis=1))
        rows = self._rows
        rows.ensure(idx)
        whole, out = bool(rows.have.all()), np.zeros(delta.shape)
        for scale, at, W in zip(rows.scale, rows.which, self.W, strict=True):
            out += times_columns(rows.matrix[at], scale, delta, idx, whole, self.team) @ W
        return out
