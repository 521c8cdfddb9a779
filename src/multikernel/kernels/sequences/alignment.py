"""Local alignment: the score of the best pair of segments (Smith and Waterman 1981, Gotoh 1982).

    H_ij = max(0, H_{i-1,j-1} + s(x_i, z_j), E_ij, F_ij)         k(x, z) = max_ij H_ij
    E_ij = max(H_{i,j-1} - open, E_{i,j-1} - extend),            F_ij = max(H_{i-1,j} - open, F_{i-1,j} - extend)

The first letter of a gap costs `gap_open`, each further one `gap_extend`. The score is symmetric but in general not
positive semidefinite: estimators refuse it where it is not, unless told to repair it (``psd='clip'``, 'flip', 'shift').

A sequence is aligned with sixteen partners of similar length together.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from multikernel.kernels.base import is_integer, require
from multikernel.kernels.sequences.alphabet import Alphabet
from multikernel.kernels.sequences.base import SequenceKernel, share_rows
from multikernel.kernels.sequences.matrices import LETTERS, NAMED, scores

# Partners that are aligned together, one in each lane of a vector register: more do not stay in the cache.
LANES = 16
# Below every score, with room for further costs: no alignment goes there.
_NEVER = np.iinfo(np.int32).min // 2


class LocalAlignment(SequenceKernel):
    """The Smith-Waterman score of the best local alignment of two proteins, with affine gaps.

    Possibly indefinite: an estimator needs ``psd='clip'``, 'flip' or 'shift' where it is. The letters B, Z, X and *
    have scores in the matrix, and every other character counts as X.

    Parameters
    ----------
    matrix : {'blosum62', 'pam250'} or array of shape (m, m)
        Substitution scores: a symmetric matrix of integers, in the order of `alphabet`.
    gap_open : int, default=11
        The cost of the first letter of a gap.
    gap_extend : int, default=1
        The cost of each further one.
    alphabet : str or Alphabet, optional
        The letters of a matrix of your own; others score its smallest entry against everything.

    Examples
    --------
    >>> from multikernel.kernels import LocalAlignment
    >>> LocalAlignment()(["HEAGAWGHEE", "PAWHEAE"])
    array([[62., 17.],
           [17., 44.]])
    """

    def __init__(self, matrix="blosum62", gap_open=11, gap_extend=1, *, alphabet=None):
        self.matrix = matrix
        self.gap_open = gap_open
        self.gap_extend = gap_extend
        self.alphabet = alphabet

    def _fit(self, X, sample_weight, shared):
        super()._fit(X, sample_weight, shared)
        if isinstance(self.matrix, str):
            self.alphabet_ = Alphabet(LETTERS)
        return self

    def _learn(self, X, sample_weight, shared):
        for name in ("gap_open", "gap_extend"):
            value = getattr(self, name)
            require(self, name, is_integer(value) and value >= 0, "a non-negative integer")
        named = isinstance(self.matrix, str)
        if named:
            require(self, "matrix", self.matrix.lower() in NAMED, "'blosum62', 'pam250' or a matrix of scores")
            table = scores(self.matrix.lower())
            unknown = table[LETTERS.index("X")]
            corner = unknown[LETTERS.index("X")]
        else:
            table = np.asarray(self.matrix)
            square = table.ndim == 2 and table.shape[0] == table.shape[1] == self.alphabet_.size
            valid = self.alphabet is not None and square and table.dtype.kind in "iu" and (table == table.T).all()
            require(
                self, "matrix", valid, "'blosum62', 'pam250' or a symmetric matrix of integers, one row for each "
                "letter of 'alphabet'",
            )  # fmt: skip
            unknown, corner = np.full(len(table), table.min()), table.min()
        self.scores_ = np.block([[table, unknown[:, None]], [unknown[None], np.array([[corner]])]]).astype(np.int32)

    def _train(self, X):
        return self._align(X, X, True)

    def _cross(self, X, Y):
        return self._align(X, Y, False)

    def _diag(self, X):
        encoded = self._codes(X)
        out = np.empty(len(X))
        for r, i in enumerate(X.index):
            one = np.array([i])
            block = np.empty((1, 1))
            self._rows(encoded, one, encoded, one, np.zeros(1, np.int64), False, 0, 1, block)
            out[r] = block[0, 0]
        return out

    def _align(self, X, Y, symmetric) -> np.ndarray:
        left, right = self._codes(X), self._codes(Y)
        rows, cols = X.index, Y.index
        K = np.zeros((len(rows), len(cols)))
        # partners of similar length are aligned together: the loop runs to the end of the longest
        order = np.argsort(right.lengths[cols], kind="stable")

        def work(first: int, last: int) -> None:
            self._rows(left, rows, right, cols, order, symmetric, first, last, K)

        if K.size:
            share_rows(len(rows), work, lower=False)
        return np.maximum(K, K.T) if symmetric else K

    def _rows(self, left, rows, right, cols, order, symmetric, first, last, out) -> None:
        align_rows(left.codes, left.offsets, rows, right.codes, right.offsets, cols, order, self.scores_,
                   self.gap_open, self.gap_extend, symmetric, first, last, out)  # fmt: skip


@njit(cache=True, nogil=True)
def align_rows(x_codes, x_offsets, rows, z_codes, z_offsets, cols, order, scores, opening, extending, lower, first,
               last, out):  # fmt: skip
    """out[i, j] = the score of sequences rows_i and cols_j, for i in [first, last); where ``lower`` only j <= i."""
    size = scores.shape[0]
    for start in range(0, order.shape[0], LANES):
        longest, smallest = 0, order[start]
        for lane in range(min(LANES, order.shape[0] - start)):
            j = cols[order[start + lane]]
            longest = max(longest, z_offsets[j + 1] - z_offsets[j])
            smallest = min(smallest, order[start + lane])
        if lower and smallest >= last:
            continue
        # scores of every letter against the letters of the sixteen partners
        profile = np.full((size, longest, LANES), _NEVER, np.int32)
        for lane in range(min(LANES, order.shape[0] - start)):
            j = cols[order[start + lane]]
            for t in range(z_offsets[j + 1] - z_offsets[j]):
                for a in range(size):
                    profile[a, t, lane] = scores[a, z_codes[z_offsets[j] + t]]
        H, F = np.empty((longest + 1, LANES), np.int32), np.empty((longest + 1, LANES), np.int32)
        diagonal, gap, best = np.empty(LANES, np.int32), np.empty(LANES, np.int32), np.empty(LANES, np.int32)
        for i in range(max(first, smallest) if lower else first, last):
            H[:] = 0
            F[:] = _NEVER
            best[:] = 0
            for at in range(x_offsets[rows[i]], x_offsets[rows[i] + 1]):
                letter = x_codes[at]
                diagonal[:] = 0
                gap[:] = _NEVER
                for t in range(longest):
                    for lane in range(LANES):
                        # H[t + 1] still holds the row above, H[t] already this row
                        above = H[t + 1, lane]
                        down = max(np.int32(above - opening), np.int32(F[t + 1, lane] - extending))
                        along = max(np.int32(H[t, lane] - opening), np.int32(gap[lane] - extending))
                        value = max(np.int32(diagonal[lane] + profile[letter, t, lane]), np.int32(0))
                        value = max(value, max(down, along))
                        F[t + 1, lane] = down
                        gap[lane] = along
                        diagonal[lane] = above
                        H[t + 1, lane] = value
                        best[lane] = max(best[lane], value)
            for lane in range(min(LANES, order.shape[0] - start)):
                out[i, order[start + lane]] = best[lane]
