"""The support vector machine of all classes on one kernel.

    max_A  sum_i A_{i,y_i} - 1/2 tr A'KA,     A <= C_i e_{y_i} row by row,     A1 = 0,     1'A = 0  (with biases)
    min    1/2 tr A'KA + sum_i C_i max_u ([u != y_i] + F_iu - F_{i,y_i})_+,    F = KA + b

Given: classes y, costs C, the combined kernel K. Returned: A of shape (n, c), feasible, to the accuracy asked for.
The dual is (9) in Zien & Ong 2007. A row step moves A_i to the projection of A_i + g_i / K_ii onto its set, g_i the
slopes (Crammer & Singer 2001). Where row steps become slow (large costs, classes that overlap) we differ from the
papers: an interior-point method finishes (`interior_point`).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from multikernel.machines.base import ConicMachine
from multikernel.machines.joint.hinge_biases import best_biases
from multikernel.machines.joint.hinge_loops import hinge_row_steps
from multikernel.machines.joint.rows import RowMachine, RowSteps


class HingeRowSteps(RowSteps):
    """Row steps of the hinge."""

    def _loop(self, max_steps, wanted, top, low):
        machine, rows = self.machine, self.rows
        return hinge_row_steps(
            rows.matrix, rows.scale, rows.have, self.diag, self.r, self.mean, machine.balanced,
            self.A, self.G, self.mask, machine.C, machine.y, self.S, self.t, self.b, self.rho, self.target,
            self.column_target, max_steps, wanted, top, low,
        )  # fmt: skip

    def gap(self, a):
        machine = self.machine
        g, t = self.slopes_at(a)
        g = g + t[:, None]
        own = g[machine.y, np.arange(machine.n_samples)]
        return float(machine.C @ (own - g.min(axis=0)) - np.vdot(a.T, g))


class CrammerSinger(RowMachine):
    """The hinge of the largest wrong class, with per-sample costs.

    Parameters
    ----------
    y : ndarray of int, shape (n,)
        Classes, 0 to c - 1.
    C : float or ndarray of shape (n,)
        Cost of each sample (C times its weight), positive.
    fit_intercept : bool
        Whether each class has a bias; without biases the columns of A need not sum to zero.
    n_classes : int, optional
        Number c of classes, by default one more than the largest of y.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.machines.joint.crammer_singer import CrammerSinger
    >>> from multikernel.mixing.norms import Simplex
    >>> from multikernel.problem import Problem
    >>> from multikernel.solve import solve
    >>> X = np.repeat(np.eye(3), 2, axis=0)
    >>> K = np.stack([X @ X.T, np.eye(6)])
    >>> solution = solve(Problem(DenseGram(K), CrammerSinger(np.array([0, 0, 1, 1, 2, 2])), Simplex()), tol=1e-6)
    >>> solution.weights.round(3), round(solution.upper, 4)
    (array([1., 0.]), 1.0)
    """

    description = "the joint loss 'hinge'"
    row_steps: type[RowSteps] = HingeRowSteps

    def dual(self, a):
        return float(a[self._own].sum())

    def conic(self) -> ConicMachine:
        """Return the machine as data for a conic solver: A row by row as one vector."""
        n, c = self.n_samples, self.n_classes
        rows = np.kron(np.eye(n), np.ones(c))
        columns = np.kron(np.ones(n), np.eye(c))
        linear = np.zeros((n, c))
        linear[self._own] = 1.0
        return ConicMachine(
            linear.ravel(), np.repeat(-self.C, c), self.upper.ravel(),
            np.vstack([rows, columns[1:]]) if self.balanced else rows, columns=c, centred=self.balanced,
        )  # fmt: skip

    def compact(self) -> ConicMachine:
        """Return the machine in the variables of (7): x_iu = -A_iu for the wrong classes u, row by row."""
        n, c = self.n_samples, self.n_classes
        i, u = np.nonzero(self.upper == 0.0)
        x = np.arange(len(i))
        lift = sparse.coo_array(
            (np.repeat([-1.0, 1.0], len(i)), (np.concatenate([i * c + u, i * c + self.y[i]]), np.tile(x, 2))),
            shape=(n * c, len(i)),
        )
        # the columns of A sum to zero, one of them because the others do
        columns = sparse.kron(np.ones((1, n)), sparse.eye_array(c, format="csr")[1:]) @ lift if self.balanced else None
        return ConicMachine(
            np.ones(len(i)), np.zeros(len(i)), self.C[i], columns, columns=c, centred=self.balanced, lift=lift.tocsr(),
            sums=sparse.coo_array((np.ones(len(i)), (i, x)), shape=(n, len(i))), most=self.C,
        )  # fmt: skip

    # ---- the inner problem

    def losses(self, f):
        margins = f - f[self._own][:, None] + 1.0
        margins[self._own] = 0.0
        return self.C * margins.max(axis=1)

    def best_biases(self, f, enough):
        margins = f - f[self._own][:, None] + 1.0
        margins[self._own] = 0.0
        return best_biases(margins, self.C, self.y, enough)[0]
