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
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from multikernel.certificate import Certificate
from multikernel.mixing.norms import Simplex
from multikernel.problem import Point
from multikernel.solvers.base import Solver, Step
from multikernel.solvers.cut_model import CutModel, inner_accuracy
from multikernel.solvers.qcqp import COMPACT_SCOPE, factor_outputs, natural_unit, solve_programme


class LinearMaster:
    """min theta over cuts theta >= g_t - 1/2 beta'q_t and lower <= A beta <= upper, beta >= 0, kept in HiGHS.

    Cuts are divided by a unit near the optimum, so that the solver's absolute tolerances mean something; when
    the objective has left that unit behind, the programme is loaded anew.

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
        import highspy

        self.unit = unit
        self._rows = 0
        p = self.cuts.p
        self._lp = highspy.Highs()
        self._lp.setOptionValue("output_flag", False)
        self._lp.setOptionValue("threads", 1)
        self._lp.setOptionValue("solver", "simplex")
        for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self._lp.setOptionValue(option, 1e-10)
        for _ in range(p):
            self._lp.addVar(0.0, highspy.kHighsInf)
        self._lp.addVar(-highspy.kHighsInf, highspy.kHighsInf)
        self._lp.changeColCost(p, 1.0)
        # which rows of the programme are cuts: others describe the set of weights, and may be added later
        self._is_cut: list[bool] = []
        self._describe()

    def _describe(self) -> None:
        """Add the rows of the set of weights that are new."""
        p = self.cuts.p
        A, lower, upper = self.cuts.mixing.linear_rows(p)
        known = self._is_cut.count(False)
        for row, low, high in zip(A[known:], lower[known:], upper[known:], strict=True):
            self._lp.addRow(low, high, p, np.arange(p), row)
            self._is_cut.append(False)

    def minimise(self, unit: float) -> tuple[np.ndarray, float, float]:
        """Return the master's weights and value, and the rigorous bound of its multipliers.

        ``unit`` is the size of the objective known now.
        """
        if not 0.1 * self.unit <= unit <= 10 * self.unit:
            self._load(unit)
        cuts, p = self.cuts, self.cuts.p
        while True:
            self._describe()
            if not self._run():
                # numbers carried over from earlier programmes can spoil a factorisation: begin anew
                self._load(unit)
                self._run()
            solution = self._lp.getSolution()
            if not cuts.mixing.separate(np.maximum(solution.col_value[:p], 0.0)):
                break
        beta = cuts.mixing.scale_to_boundary(np.maximum(solution.col_value[:p], 0.0))
        multipliers = np.array(solution.row_dual)[np.array(self._is_cut)]
        return beta, self.unit * solution.col_value[p], cuts.bound(multipliers)

    def _run(self) -> bool:
        """Add the rows that are new and solve; return whether the solver calls it optimal."""
        import highspy

        cuts, p = self.cuts, self.cuts.p
        for g, q in zip(cuts.g[self._rows :], cuts.q[self._rows :], strict=True):
            # theta + 1/2 beta'q_t >= g_t
            row = np.append(0.5 * q / self.unit, 1.0)
            self._lp.addRow(g / self.unit, highspy.kHighsInf, p + 1, np.arange(p + 1), row)
            self._is_cut.append(True)
        self._rows = len(cuts.g)
        self._lp.run()
        return self._lp.getModelStatus() == highspy.HighsModelStatus.kOptimal


@dataclass
class _State:
    tol: float
    master: LinearMaster
    theta: float = -np.inf


@dataclass
class _CompactState(_State):
    conic: Any = None
    outputs: list = field(default_factory=list)


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
            beta, state.theta, lower = state.master.minimise(certificate.size)
            settled = float(np.abs(beta - point.beta).sum()) <= self.change > 0
            point.set_weights(beta)
        self._inner(point, state, self.inner * inner_accuracy(certificate, state.tol))
        g, q = point.problem.machine.dual(point.a), point.q
        cuts.add(g, q)
        violation = abs(1.0 - (g - 0.5 * float(point.beta @ q)) / state.theta) if state.theta else np.inf
        return Step(lower, {"violation": violation}, settled=settled)

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

    requires: ClassVar[tuple[str, ...]] = ("machine.compact", "mixing.linear_rows")
    scope: ClassVar[str] = COMPACT_SCOPE

    memory_limit: float = 2e9

    def start(self, point: Point, tol: float) -> _CompactState:
        state, conic = super().start(point, tol), point.problem.machine.compact()
        outputs = factor_outputs(point.problem.gram, conic, self.memory_limit)
        return _CompactState(tol, state.master, conic=conic, outputs=outputs)

    def _inner(self, point: Point, state: _State, accuracy: float) -> None:
        machine, active = point.problem.machine, np.flatnonzero(point.beta)
        combined = [sparse.vstack([np.sqrt(point.beta[k]) * state.outputs[k] for k in active])]
        unit = natural_unit(combined, state.conic)
        a, _ = solve_programme(combined, state.conic, Simplex(), unit, unit)
        point.set_dual(machine.make_feasible(unit * a.reshape(point.a.shape)))
        if point.inner_gap() > accuracy:
            point.solve(accuracy)
