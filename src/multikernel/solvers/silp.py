"""Column generation for the semi-infinite linear programme, after Sonnenburg et al. 2005, Algorithm 1.

Problem: min over B of J(beta) = max_{a in A} g(a) - 1/2 beta'q(a), B a polyhedron, written as

    min theta   over  theta >= g(a) - 1/2 beta'q(a)  for all a in A,   beta in B          (7), (10)

Given: the point at any weights. Each step solves the single-kernel problem (11) at the current weights,
adds its a as a row, and moves to the optimum of the restricted master, a linear programme that stays loaded
in HiGHS and is restarted by the dual simplex.
Returned: the point at the best weights met; the master's multipliers give the lower bound.

Reference: Sonnenburg, Raetsch, Schaefer 2005, with the signs of (7) turned round (S_k = 1/2 q_k - g and
theta). We differ in the stopping rule: the paper stops on the normalised violation |1 - S^t / theta^t| of
the newest row, which is recorded as ``violation`` in the history but bounds no gap when the inner problem
is solved inexactly; and in the inner problem, which is solved only as exactly as the gap asks for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, cast

import numpy as np
from scipy import sparse

from multikernel.certificate import Certificate
from multikernel.machines.base import ConicMachine, HasCompact
from multikernel.mixing.base import HasLinearRows
from multikernel.mixing.highs import HighsProgramme
from multikernel.mixing.norms import Simplex
from multikernel.problem import Point
from multikernel.solvers.base import Solver, Step
from multikernel.solvers.cut_model import CutModel, inner_accuracy
from multikernel.solvers.qcqp import COMPACT_SCOPE, factor_outputs, natural_unit, solve_programme


class LinearMaster:
    """min theta over cuts theta >= g_t - 1/2 beta'q_t and lower <= A beta <= upper, beta >= 0, kept in HiGHS.

    Cuts are divided by a unit near the optimum, since the tolerances of HiGHS are absolute. When the objective is more
    than ten times larger or smaller than the unit, the programme is loaded anew.

    Parameters
    ----------
    cuts : CutModel
        Cuts so far; ``add`` appends to it.
    unit : float
        Size of the objective.
    """

    def __init__(self, cuts: CutModel, unit: float) -> None:
        self.cuts = cuts
        self._load(unit)

    def _load(self, unit: float) -> None:
        mixing, p = self.cuts.mixing, self.cuts.p
        assert isinstance(mixing, HasLinearRows)
        self.unit = unit
        self._lp = HighsProgramme(np.append(np.zeros(p), -np.inf))
        # which rows of the programme are cuts; the others describe the set of weights
        self._is_cut = np.zeros(0, bool)
        self._kept = 0
        self._add(*mixing.linear_rows(p), is_cut=False)

    def _add(self, A: np.ndarray, lower: np.ndarray, upper: np.ndarray, is_cut: bool) -> None:
        """Add rows over the weights, with theta where they are cuts."""
        self._lp.add_rows(np.column_stack([A, np.full(len(A), float(is_cut))]), lower, upper)
        self._is_cut = np.append(self._is_cut, np.full(len(A), is_cut))

    def _add_new_rows(self) -> None:
        """Add the cuts, and the rows of the set of weights, that were met since the last time."""
        cuts, p, known = self.cuts, self.cuts.p, int(self._is_cut.sum())
        # theta + 1/2 beta'q_t >= g_t
        A, least = 0.5 * np.array(cuts.q[known:]).reshape(-1, p) / self.unit, np.array(cuts.g[known:]) / self.unit
        self._add(A, least, np.full(len(A), np.inf), is_cut=True)
        rows = cuts.kept.rows[self._kept :]
        self._kept += len(rows)
        V, least = np.array([v for v, _ in rows]).reshape(-1, p), np.array([low for _, low in rows])
        self._add(V, least, np.full(len(V), np.inf), is_cut=False)

    def minimise(self, unit: float, known: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Return the master's weights and value, and the rigorous bound of its multipliers.

        ``unit`` is the size of the objective known now. Where HiGHS fails the other masters of the cut model are
        tried; where these fail too, the weights are ``known``, and the value and the bound -inf.
        """
        if not 0.1 * self.unit <= unit <= 10 * self.unit:
            self._load(unit)
        cuts, p = self.cuts, self.cuts.p
        while True:
            self._add_new_rows()
            answer = self._lp.minimise(np.eye(1, p + 1, p)[0])
            # HiGHS leaves out rows whose numbers are too large for it
            if answer is None or len(answer[1]) != len(self._is_cut):
                beta, bound = cuts.minimise(known)
                return beta, bound, bound
            x, multipliers = answer
            if not cuts.kept.add_violated(x[:p]):
                beta = cuts.mixing.scale_to_boundary(np.maximum(x[:p], 0.0))
                return beta, self.unit * float(x[p]), cuts.bound(multipliers[self._is_cut])


@dataclass
class _State:
    tol: float
    master: LinearMaster
    # value of the last master; -inf before the first and where HiGHS failed
    theta: float = field(default=-np.inf, kw_only=True)


@dataclass
class _CompactState(_State):
    conic: ConicMachine
    outputs: list[sparse.sparray]


@dataclass(frozen=True)
class SILP(Solver):
    """Column generation with a linear master.

    Parameters
    ----------
    inner : float
        Accuracy of the inner solver as a fraction of the current gap.
    change : float
        Where positive, the run also ends when sum_k |beta_k - beta_k^old| is at most this number (1e-4 for MCKL-SILP
        of Ying et al. 2009, (4) to (6), which is this method with the squared loss shared by all classes).

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.machines.svc import SVC
    >>> from multikernel.mixing.norms import Simplex
    >>> from multikernel.problem import Problem
    >>> from multikernel.solve import solve
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> K = np.stack([np.outer(x, x), np.eye(4)])
    >>> solution = solve(Problem(DenseGram(K), SVC(np.sign(x)), Simplex()), "silp", tol=1e-6)
    >>> round(solution.upper, 6), "violation" in solution.history
    (0.5, True)
    """

    requires: ClassVar[tuple[str, ...]] = ("mixing.linear_rows",)

    inner: float = 0.1
    change: float = 0.0

    def start(self, point: Point, tol: float) -> _State:
        cuts = CutModel(point.problem.mixing, point.problem.gram.n_kernels)
        return _State(tol, LinearMaster(cuts, point.problem.machine.scale))

    def step(self, point: Point, state: _State, certificate: Certificate) -> Step:
        cuts = state.master.cuts
        lower, settled = -np.inf, False
        if cuts.g:
            beta, state.theta, lower = state.master.minimise(certificate.size, point.beta)
            solved = state.theta > -np.inf
            settled = solved and float(np.abs(beta - point.beta).sum()) <= self.change > 0
            point.set_weights(beta)
        self._inner(point, state, self.inner * inner_accuracy(certificate, state.tol))
        g, q = point.problem.machine.dual(point.a), point.q
        cuts.add(g, q, point.a)
        violation = abs(1.0 - (g - 0.5 * float(point.beta @ q)) / state.theta) if state.theta else np.inf
        return Step(lower, cuts.mix, {"violation": violation}, settled=settled)

    def _inner(self, point: Point, state: _State, accuracy: float) -> None:
        """Solve the problem at the current weights."""
        point.solve(accuracy)


@dataclass(frozen=True)
class CompactSILP(SILP):
    """The joint multiclass problem by cuts from its compact form, (7) in Zien & Ong 2007.

    At fixed weights the quadratic programme in x_iu = -A_iu, u the wrong classes, goes to Clarabel as it stands, where
    "silp", the unfolded form (11), leaves A to the machine; what the programme leaves inexact the machine finishes.

    Parameters
    ----------
    memory_limit : float
        Largest programme attempted, in bytes; about 150 bytes for each entry of each kernel.
    """

    requires = ("machine.compact", "mixing.linear_rows")
    scope = COMPACT_SCOPE

    memory_limit: float = 2e9

    def start(self, point: Point, tol: float) -> _CompactState:
        state, conic = super().start(point, tol), cast(HasCompact, point.problem.machine).compact()
        outputs = factor_outputs(point.problem.gram, conic, self.memory_limit)
        return _CompactState(tol, state.master, conic, outputs)

    def _inner(self, point: Point, state: _State, accuracy: float) -> None:
        assert isinstance(state, _CompactState)
        machine, active = point.problem.machine, np.flatnonzero(point.beta)
        combined = [sparse.vstack([np.sqrt(point.beta[k]) * state.outputs[k] for k in active])]
        unit = natural_unit(combined, state.conic)
        if (found := solve_programme(combined, state.conic, Simplex(), unit, unit)) is not None:
            point.set_dual(machine.make_feasible(unit * found[0].reshape(point.a.shape)))
        if point.certificate.inner_gap > accuracy:
            point.solve(accuracy)
