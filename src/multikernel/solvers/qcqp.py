"""The whole problem as one conic programme, for small n, after Lanckriet et al. 2004 and Bach et al. 2004.

Problem: the dual of min over B of max_{a in A} g(a) - 1/2 beta'q(a), where q_k = |L_k'a|^2,

    max  g(a) - 1/2 s     over  a in A,   |L_k' a|^2 <= t_k for every k,   sigma_B(t) <= s

Given: a machine with g linear but for eps |a|_1, on a box with linear equalities, and a mixing whose support
function has rows for a conic solver; each kernel is factorised by its eigenvectors, tiny eigenvalues dropped. Where
coefficients have several columns, L_k'a stands for those of all columns: (9) in Zien & Ong 2007, the "unfolded" form,
whose variables are A itself; "qcqp-compact" is (7), in the variables x_iu = -A_iu of the wrong classes alone. Where
kernels on the classes V_m V_m' take part, L_k'A V_m stands for it.
Returned: weights, the multipliers of the p quadratic constraints, and the a of the programme itself, which
is the one that certifies where kernels are rank-deficient and a solution at fixed weights need not. When
the pair misses the tolerance, the inner solver polishes a at these weights, and the bound of the conic a is
kept.

Reference: (4) in Sonnenburg et al. 2005 states the programme for the simplex. We differ in taking every
norm, in projecting the kernels onto the equality's null space, and in solving again in other units when the
first answer is not exact enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy import sparse

from multikernel.certificate import Best, Certificate
from multikernel.gram.base import Gram
from multikernel.machines.base import ConicMachine, HasCompact, HasConic, Machine
from multikernel.mixing.base import HasSupportRows, Mixing
from multikernel.mixing.cones import ConeRows, solve_conic
from multikernel.problem import Point
from multikernel.solvers.base import Solver, Step
from multikernel.solvers.conic_cuts import boundary_point

# where the compact form exists
COMPACT_SCOPE = "the joint loss 'hinge' of more than two classes"
# bytes of the programme and of its factorisation for each entry of a kernel: what a problem is refused by
_BYTES = 150


@dataclass
class _State:
    tol: float
    conic: ConicMachine
    outputs: list[sparse.sparray]


@dataclass(frozen=True)
class QCQP(Solver):
    """One conic programme in Clarabel.

    Parameters
    ----------
    memory_limit : float
        Largest programme attempted, in bytes; about 150 bytes for each entry of each kernel.
    units : tuple of float
        Multiples of the natural units in which the programme is tried, until one answer is exact enough.

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
    >>> solution = solve(Problem(DenseGram(K), SVC(np.sign(x)), Simplex()), "qcqp", tol=1e-6)
    >>> solution.weights.round(6), round(solution.upper, 6), solution.n_iter
    (array([1., 0.]), 0.5, 1)
    """

    requires = ("machine.conic", "mixing.support_rows")

    memory_limit: float = 2e9
    units: tuple[float, ...] = (1.0, 1.0, 10.0, 0.1)

    def start(self, point: Point, tol: float) -> _State:
        conic = self._conic(point.problem.machine)
        return _State(tol, conic, factor_outputs(point.problem.gram, conic, self.memory_limit))

    def _conic(self, machine: Machine) -> ConicMachine:
        """Return the machine as data."""
        return cast(HasConic, machine).conic()

    def step(self, point: Point, state: _State, certificate: Certificate) -> Step:
        machine, mixing = point.problem.machine, point.problem.mixing
        unit = size = natural_unit(state.outputs, state.conic)
        best = Best(state.tol)
        for factor in self.units:
            found = solve_programme(state.outputs, state.conic, mixing, factor * unit, factor * size)
            if found is not None:
                a, beta = found
                point.set_weights(boundary_point(beta, mixing))
                point.set_dual(machine.make_feasible(factor * unit * a.reshape(point.a.shape)))
            best.take(point)
            if best.converged:
                break
            point.solve(0.1 * state.tol * best.certificate.size)
            best.take(point)
            if best.converged:
                break
            # next time in units of the solution's own size
            unit, size = float(np.abs(point.a).max()) or unit, best.certificate.size
        if best.model is not None:
            point.set_weights(best.model.weights)
            point.set_dual(best.model.coef)
        return Step(best.certificate.lower, done=True)


@dataclass(frozen=True)
class CompactQCQP(QCQP):
    """The joint multiclass problem in its compact form, (7) in Zien & Ong 2007; parameters as of `QCQP`.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.machines.joint.crammer_singer import CrammerSinger
    >>> from multikernel.mixing.norms import Simplex
    >>> from multikernel.problem import Problem
    >>> from multikernel.solve import solve
    >>> X = np.repeat(np.eye(3), 2, axis=0)
    >>> problem = Problem(DenseGram(np.stack([X @ X.T, np.eye(6)])), CrammerSinger(np.arange(6) // 2), Simplex())
    >>> [round(solve(problem, name, tol=1e-6).upper, 5) for name in ("qcqp", "qcqp-compact", "silp", "silp-compact")]
    [1.0, 1.0, 1.0, 1.0]
    """

    requires = ("machine.compact", "mixing.support_rows")
    scope = COMPACT_SCOPE

    def _conic(self, machine: Machine) -> ConicMachine:
        return cast(HasCompact, machine).compact()


def _normal(conic, n: int) -> np.ndarray | None:
    """The unit vector to which every column of a is orthogonal, if there is one."""
    if conic.columns > 1:
        return np.full(n, n**-0.5) if conic.centred else None
    if conic.equality is None or conic.total != 0:
        return None
    return conic.equality / np.linalg.norm(conic.equality)


def _factor(K: np.ndarray, normal: np.ndarray | None) -> np.ndarray:
    """L with a'Ka = |L'a|^2 up to rounding, for every a orthogonal to ``normal``."""
    size = float(np.abs(np.diag(K)).max())
    if normal is not None:
        Ku = K @ normal
        K = K - np.outer(normal, Ku) - np.outer(Ku, normal) + (normal @ Ku) * np.outer(normal, normal)
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    keep = values > 1e-14 * len(K) * size
    return vectors[:, keep] * np.sqrt(values[keep])


def factor_outputs(gram: Gram, conic: ConicMachine, memory_limit: float) -> list[sparse.sparray]:
    """Return the matrices M_k with q_k = |M_k x|^2, x the variables of the programme; raise if too large."""
    needed = _BYTES * gram.n_kernels * gram.n_samples**2 * conic.columns
    if needed > memory_limit:
        raise ValueError(
            f"The whole problem as one programme needs about {needed / 1e9:.3g} GB for {gram.n_kernels} kernels on "
            f"{gram.n_samples} samples, more than the {memory_limit / 1e9:.3g} GB that the solver may take: "
            "the solvers 'qcqp', 'qcqp-compact' and 'silp-compact' are meant for small problems, choose another solver."
        )
    everything, normal = np.arange(gram.n_samples), _normal(conic, gram.n_samples)
    outputs = []
    for k in range(gram.n_kernels):
        L = _factor(gram.rows(everything, np.array([k]))[0].astype(np.float64), normal)
        Y = sparse.eye_array(conic.columns) if gram.output_kernels is None else _factor(gram.output_kernels[k], None).T
        M = sparse.kron(sparse.coo_array(L.T), Y, format="csr")
        outputs.append(M if conic.lift is None else M @ conic.lift)
    return outputs


def natural_unit(outputs: list[sparse.sparray], conic: ConicMachine) -> float:
    """Return the size of the variables: the largest bound, or the size at which the quadratic terms weigh as much."""
    spread = max(float((M.power(2)).sum()) / len(conic.linear) for M in outputs)
    largest = float(np.abs(np.concatenate([conic.lower, conic.upper])).max())
    return min(largest, 1.0 / spread) if spread > 0 else largest


def solve_programme(
    outputs: list[sparse.sparray], conic: ConicMachine, mixing: Mixing, unit: float, size: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return a / unit and beta, None where Clarabel fails.

    The variables are measured in ``unit``, the objective, s and t in ``size``.
    """
    assert isinstance(mixing, HasSupportRows)
    n, p = len(conic.linear), len(outputs)
    support = mixing.support_rows(p)
    tube = np.arange(n if conic.eps else 0) + n + support.A.shape[1]
    width = n + support.A.shape[1] + len(tube)
    x, t, s = np.arange(n), np.arange(n, n + p), n + p
    eye = sparse.eye_array(n)
    box = ConeRows(
        sparse.vstack([-eye, eye]), np.concatenate([-conic.lower, conic.upper]) / unit, (("nonnegative", 2 * n),)
    )
    blocks = [(box, x), (support, np.arange(n, n + support.A.shape[1]))]
    if conic.eps:
        # |a_i| <= u_i, and eps u_i is paid
        sides = sparse.block_array([[eye, -eye], [-eye, -eye]])
        blocks.append((ConeRows(sides, np.zeros(2 * n), (("nonnegative", 2 * n),)), np.concatenate([x, tube])))
    if conic.sums is not None and conic.most is not None:
        blocks.append((ConeRows(conic.sums, conic.most / unit, (("nonnegative", len(conic.most)),)), x))
    if conic.equality is not None:
        rows = sparse.coo_array(conic.equality if sparse.issparse(conic.equality) else np.atleast_2d(conic.equality))
        m = rows.shape[0]
        blocks.append((ConeRows(rows, np.full(m, conic.total / unit), (("zero", m),)), x))
    head = len(blocks)
    for k, M in enumerate(outputs):
        # |M x|^2 <= t  as  |((t - 1)/2, M x)| <= (t + 1)/2
        rows = sparse.block_array([[None, np.full((2, 1), -0.5)], [-unit / np.sqrt(size) * M, None]])
        b = np.zeros(rows.shape[0])
        b[:2] = 0.5, -0.5
        blocks.append((ConeRows(rows, b, (("second_order", len(b)),)), np.append(x, t[k])))
    cost = np.zeros(width)
    cost[x], cost[tube], cost[s] = -unit / size * conic.linear, unit / size * conic.eps, 0.5
    if (answer := solve_conic(np.zeros(width), cost, blocks)) is None:
        return None
    found, z = answer
    a = found[x] if conic.lift is None else conic.lift @ found[x]
    return a, np.array([max(z_k[0] + z_k[1], 0.0) for z_k in z[head:]])
