"""Kernels in memory, read where they lie.

A normalised kernel is an affine view of the stored one,

    K~_ij = s u_i u_j K_ij - sum_t (A_it B_jt + B_it A_jt),

so that neither scaling, nor unit diagonals, nor centring copies or changes what the caller handed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from math import fsum
from operator import attrgetter

import numpy as np

from multikernel.gram.base import ROUNDINGS
from multikernel.gram.combined import times_columns
from multikernel.gram.dense_loops import add_combined_rows, add_outputs, add_scaled_rows, gather_block, read_only
from multikernel.gram.host import HostGram
from multikernel.gram.precise import left_over, product
from multikernel.threads import Team

# fraction of the entries below which they are copied, rows for a product by the library and samples for a problem of
# their own: a copy against passes over all entries
_FEW = 0.25


@dataclass(frozen=True)
class AffineForm:
    """The affine views of p kernels: ``scale`` (p,), ``u`` (p, n) or None, ``A`` and ``B`` (p, n, m) or None."""

    scale: np.ndarray
    u: np.ndarray | None = None
    A: np.ndarray | None = None
    B: np.ndarray | None = None

    def cancelled(self) -> np.ndarray:
        """Return what `Gram.loose` is to be where there are A and B."""
        assert self.A is not None and self.B is not None
        # |A_i| |B_j| + |B_i| |A_j|, both sizes made alike, and what the diagonal has lost to them
        a, b = (np.square(side).sum(axis=2) for side in (self.A, self.B))
        unit = np.sqrt(np.maximum(a.max(axis=1), 1e-300) / np.maximum(b.max(axis=1), 1e-300))[:, None]
        return a / unit + b * unit + 2.0 * np.einsum("kit,kit->ki", self.A, self.B)


class DenseGram(HostGram):
    """p matrices in memory.

    Parameters
    ----------
    kernels : ndarray of shape (p, n, n) or sequence of ndarrays of shape (n, n)
        Symmetric matrices, float32 or float64; never copied, never written.
    form : AffineForm, optional
        Normalisation of each kernel.
    n_threads : int
        Threads for passes over the stack.
    owned : bool
        Whether the matrices were made for this Gram, and count as its memory.
    """

    kind = "dense"

    def __init__(
        self,
        kernels: np.ndarray | Sequence[np.ndarray],
        form: AffineForm | None = None,
        *,
        n_threads: int = 1,
        owned: bool = False,
    ) -> None:
        if isinstance(kernels, np.ndarray):
            self._groups = [read_only(kernels)]
        else:
            self._groups = [read_only(np.asarray(K))[None] for K in kernels]
        self._first = np.cumsum([0, *map(len, self._groups)])
        self.n_kernels = int(self._first[-1])
        self.n_samples = self._groups[0].shape[1]
        self.dtype = np.result_type(*self._groups)
        self.form = form or AffineForm(np.ones(self.n_kernels))
        self.team = Team(n_threads)
        self.nbytes = sum(map(attrgetter("nbytes"), self._groups)) if owned else 0
        self._diag: np.ndarray | None = None
        if self.form.A is not None:
            self.loose = self.form.cancelled()

    def raw(self, kernel: int) -> np.ndarray:
        """Return the stored matrix of one kernel."""
        g = int(np.searchsorted(self._first, kernel, side="right")) - 1
        return self._groups[g][kernel - self._first[g]]

    def _members(self, kernels: np.ndarray):
        """Split kernel numbers by group: (positions in ``kernels``, numbers within the group, matrices)."""
        if len(self._groups) == 1:
            if len(kernels):
                yield np.arange(len(kernels)), kernels, self._groups[0]
            return
        group = np.searchsorted(self._first, kernels, side="right") - 1
        for g in np.unique(group):
            at = np.flatnonzero(group == g)
            yield at, kernels[at] - self._first[g], self._groups[g]

    def rows(self, idx, kernels=None):
        kernels = np.arange(self.n_kernels) if kernels is None else kernels
        out = np.empty((len(kernels), len(idx), self.n_samples), self.dtype)
        for j, k in enumerate(kernels):
            self.combine(np.eye(1, self.n_kernels, k)[0], np.asarray(idx, np.intp), out[j], np.arange(len(idx)))
        return out

    def diag(self):
        if self._diag is None:
            s, u, A, B = self.form.scale, self.form.u, self.form.A, self.form.B
            d = np.empty((self.n_kernels, self.n_samples))
            for first, K in zip(self._first, self._groups, strict=False):
                d[first : first + len(K)] = np.diagonal(K, axis1=1, axis2=2)
            d = s[:, None] * (d if u is None else u**2 * d)
            self._diag = d if A is None or B is None else d - 2 * np.einsum("kit,kit->ki", A, B)
        return self._diag

    def combine(self, beta, rows, out, slots):
        active, fresh = np.flatnonzero(beta), True
        s, u, A, B = self.form.scale, self.form.u, self.form.A, self.form.B
        # the precision asked for: a sum in float64 must not be rounded to that of the entries
        coef = (beta * s)[active].astype(out.dtype)
        for at, kernels, K in self._members(active):
            loop = partial(add_combined_rows, K, kernels, coef[at])
            if u is not None:
                loop = partial(add_scaled_rows, K, kernels, coef[at], u[active[at]].astype(out.dtype))
            calls = []
            for lo, hi in self.team.split(len(rows), 4, len(at) * self.n_samples * K.itemsize):
                calls.append(partial(loop, rows, slots, lo, hi, fresh, out))
            self.team.run(calls)
            fresh = False
        if fresh:
            out[slots] = 0
        if A is not None and B is not None:
            left = np.concatenate([beta[active, None, None] * A[active], beta[active, None, None] * B[active]])
            right = np.concatenate([B[active], A[active]])
            out[slots] -= np.einsum("kit,kjt->ij", left[:, rows], right, optimize=True).astype(out.dtype)

    def apply(self, v, kernels=None):
        kernels = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        idx = np.flatnonzero(v if v.ndim == 1 else v.any(axis=1))
        F, delta, calls = np.zeros((len(kernels), *v.shape)), v[idx], []
        if v.ndim > 1:
            # one kernel to a thread
            for lo, hi in self.team.split(len(kernels)):
                calls.append(partial(self._set_columns, F[lo:hi], idx, v, kernels[lo:hi]))
            self.team.run(calls)
            return F
        s, u, A, B = self.form.scale[kernels], self.form.u, self.form.A, self.form.B
        D = s[:, None] * (delta if u is None else u[kernels][:, idx] * delta)
        for at, members, K in self._members(kernels):
            Dg, Fg = D[at], F[at[0] : at[-1] + 1]  # members of a group are consecutive
            wide = len(at) < self.team.n_threads
            of_row, of_kernel = len(at) * len(idx) * K.itemsize, self.n_samples * len(idx) * K.itemsize
            for lo, hi in self.team.split(self.n_samples, 64, of_row) if wide else [(0, self.n_samples)]:
                for first, last in [(0, len(at))] if wide else self.team.split(len(at), 1, of_kernel):
                    calls.append(partial(add_outputs, K, members, idx, Dg, first, last, lo, hi, Fg))
        self.team.run(calls)
        if u is not None:
            F *= u[kernels]
        if A is not None and B is not None:
            A, B = A[kernels], B[kernels]
            F -= np.einsum("kit,kt->ki", A, np.einsum("krt,r->kt", B[:, idx], delta))
            F -= np.einsum("kit,kt->ki", B, np.einsum("krt,r->kt", A[:, idx], delta))
        return F

    def _set_columns(self, F, idx, v, kernels):
        """F_k = K~_k v for v of shape (n, c), zero but for the rows ``idx``, one kernel after the other."""
        whole, alone = len(idx) >= _FEW * len(v), Team()
        s, u, A, B = self.form.scale, self.form.u, self.form.A, self.form.B
        for at, members, K in self._members(kernels):
            for j, k, member in zip(at, kernels[at], members, strict=True):
                F[j] = times_columns(K[member], s[k], v if u is None else u[k, :, None] * v, idx, whole, alone)
                if u is not None:
                    F[j] *= u[k, :, None]
                if A is not None and B is not None:
                    F[j] -= A[k] @ (B[k, idx].T @ v[idx]) + B[k] @ (A[k, idx].T @ v[idx])

    def apply_precisely(self, v, kernels=None):
        kernels = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        columns = v.reshape(len(v), -1)
        idx = np.flatnonzero(columns.any(axis=1))
        F, plain = np.empty((len(kernels), *columns.shape)), self.form.u is None and self.form.A is None
        self.team.run(partial(self._set_precisely, F, j, k, idx, columns) for j, k in enumerate(kernels))
        # where entries are not stored as they are, each has a few roundings
        rounding = float(np.finfo(float).eps) * (len(idx) * left_over(len(idx)) + (0 if plain else ROUNDINGS))
        return F.reshape(len(kernels), *v.shape), rounding

    def _set_precisely(self, F, j, k, idx, v):
        """F_j = K~_k v for v of shape (n, c), zero but for the rows ``idx``."""
        s, u, A, B = self.form.scale[k], self.form.u, self.form.A, self.form.B
        F[j] = s * product(self.raw(k), idx, v if u is None else u[k, :, None] * v)
        if u is not None:
            F[j] *= u[k, :, None]
        if A is not None and B is not None:
            for left, right in ((A[k], B[k]), (B[k], A[k])):
                F[j] -= left @ [[fsum(a * b) for b in v.T] for a in right.T]

    def take_samples(self, idx):
        """Return the Gram of some samples: a copy where they are few and the kernels lie in memory, else a view."""
        idx = np.asarray(idx, np.intp)
        if self.kind != "dense" or len(idx) ** 2 > _FEW * self.n_samples**2:
            return super().take_samples(idx)
        new, form = copy(self), self.form
        # kernel by kernel: indexing both axes at once would put the entries of one kernel far apart
        new._groups = []
        for K in self._groups:
            blocks = np.empty((len(K), len(idx), len(idx)), K.dtype)
            for one, out in zip(K, blocks, strict=True):
                gather_block(one, 1.0, idx, 0, len(idx), out)
            new._groups.append(read_only(blocks))
        new.n_samples, new.nbytes, new._diag = len(idx), sum(map(attrgetter("nbytes"), new._groups)), None
        new.form = replace(form, **{name: side[:, idx] for name in "uAB" if (side := getattr(form, name)) is not None})
        new.loose = self.loose[:, idx] if isinstance(self.loose, np.ndarray) else self.loose
        return new

    def rescaled(self, factor):
        new, form = copy(self), self.form
        new.form = replace(form, scale=form.scale * factor, A=None if form.A is None else form.A * factor)
        new.loose, new._diag = self.loose * factor, None
        return new

    def stored(self, kernel=None):
        if self.form.u is not None or self.form.A is not None:
            return None
        if kernel is not None:
            return self.raw(kernel), float(self.form.scale[kernel])
        return (self._groups[0], self.form.scale) if len(self._groups) == 1 else None
