"""The kernel margin of Cortes, Mohri & Rostamizadeh 2013, (6), as a function of the weights.

    h(beta) = sum_i w_i min_{u != y_i} beta . eta_iu,      eta_iuk = M_k(i, y_i) - M_k(i, u),
    M_k(i, u) = mean of K_k(x_i, x') over the samples x' of class u, x_i itself among those of its own class,

w_i = 1/n, or sample weights of sum one (the means are weighted alike). h is concave, piecewise linear and homogeneous;
with u_i the nearest wrong class at beta, v = sum_i w_i eta_{i,u_i} has h(beta) = v . beta and h(b) <= v . b for every
b >= 0: one evaluation gives one exact linear cut of {h >= gamma}, or one for each of several groups of samples, whose
margins add up to h.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from multikernel.gram.base import Gram

# cuts of one evaluation, one for each group of samples: more cuts make for fewer rounds, and for larger programmes
_CUTS = 12


@dataclass(frozen=True, eq=False)
class MarginTable:
    """Mean similarities of every sample to every class, and the mean margin h.

    Attributes
    ----------
    means : ndarray of shape (p, c, n)
        M_k(i, u), float64.
    codes : ndarray of int, shape (n,)
        Classes, 0 to c - 1.
    weight : ndarray of shape (n,)
        Weights of sum one.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.mixing import margin_table
    >>> X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> table = margin_table(DenseGram(np.stack([X @ X.T, np.eye(4)])), np.array([0, 0, 1, 1]))
    >>> table.value(np.array([1.0, 0.0])), table.value(np.array([0.0, 1.0]))
    (1.0, 0.5)
    """

    means: np.ndarray
    codes: np.ndarray
    weight: np.ndarray

    @property
    def n_kernels(self) -> int:
        """Number p of kernels."""
        return len(self.means)

    @cached_property
    def size(self) -> float:
        """Largest |eta_iuk|, the unit of margins; one where all are zero."""
        at = np.arange(len(self.codes))
        return max(float(np.abs(M[self.codes, at] - M).max()) for M in self.means) or 1.0

    @cached_property
    def groups(self) -> np.ndarray:
        """Group of each sample, so that all classes are spread over all groups, int (n,)."""
        n = len(self.codes)
        G = min(n, _CUTS)
        groups = np.empty(n, np.intp)
        groups[np.argsort(self.codes, kind="stable")] = np.arange(n) % G
        return groups

    @property
    def n_groups(self) -> int:
        """Number of concave functions that add up to h."""
        return int(self.groups.max()) + 1

    def nearest(self, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest wrong class of each sample at these weights, and the margins there, both (n,)."""
        p, c, n = self.means.shape
        active = np.flatnonzero(beta)
        if 3 * len(active) < p:
            mix = np.zeros((c, n))
            for k in active:
                mix += beta[k] * self.means[k]
        else:
            mix = (beta @ self.means.reshape(p, c * n)).reshape(c, n)
        at = np.arange(n)
        own = mix[self.codes, at]
        mix[self.codes, at] = -np.inf
        wrong = mix.argmax(axis=0)
        return wrong, own - mix[wrong, at]

    def value(self, beta: np.ndarray) -> float:
        """Return h(beta)."""
        return float(self.weight @ self.nearest(beta)[1])

    def cuts(self, beta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return h(beta), the cuts that are exact there as rows (m, p), and the group of each, (m,)."""
        wrong, margins = self.nearest(beta)
        at, G = np.arange(len(wrong)), self.n_groups
        eta = (self.means[:, self.codes, at] - self.means[:, wrong, at]) * self.weight
        rows = np.array([np.bincount(self.groups, each, G) for each in eta]).T
        return float(self.weight @ margins), rows, np.arange(G)


class SmallestMargins(MarginTable):
    """Margins with h(beta) = min over i and u != y_i of beta . eta_iu, the variant that the paper found poor."""

    @property
    def n_groups(self):
        """One: the smallest margin is no sum."""
        return 1

    def value(self, beta):
        """Return the smallest margin."""
        return float(self.nearest(beta)[1].min())

    def cuts(self, beta):
        """Return the smallest margin and the rows eta_iu of the samples with the smallest ones."""
        wrong, margins = self.nearest(beta)
        worst = np.argsort(margins)[:_CUTS]
        rows = self.means[:, self.codes[worst], worst] - self.means[:, wrong[worst], worst]
        return float(margins[worst[0]]), np.ascontiguousarray(rows.T), np.zeros(len(worst), np.intp)


def margin_table(
    gram: Gram, codes: np.ndarray, weight: np.ndarray | None = None, n_classes: int | None = None
) -> MarginTable:
    """Return the mean similarities of all kernels, from one pass over them: O(p n^2) time, O(p n c) memory.

    Parameters
    ----------
    gram : Gram
        The kernels.
    codes : ndarray of int, shape (n,)
        Classes, 0 to c - 1, each with at least one sample.
    weight : ndarray of shape (n,), optional
        Positive sample weights.
    n_classes : int, optional
        Number c of classes, by default one more than the largest code.
    """
    n = gram.n_samples
    c = int(codes.max()) + 1 if n_classes is None else n_classes
    weight = np.ones(n) if weight is None else np.asarray(weight, float)
    means = np.empty((gram.n_kernels, c, n))
    for u in range(c):
        # only the rows of the class are touched
        share = np.where(codes == u, weight, 0.0)
        means[:, u] = gram.apply(share / share.sum())
    # a kernel whose means differ by the rounding of their sums tells no classes apart
    spread, rounding = np.ptp(means, axis=1).max(axis=1), n * np.finfo(float).eps * np.abs(means).max(axis=(1, 2))
    flat = spread <= rounding
    means[flat] = 0.0
    return MarginTable(means, np.asarray(codes, np.intp), weight / weight.sum())
