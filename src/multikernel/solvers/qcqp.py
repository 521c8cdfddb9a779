"""The whole problem as one conic programme, for small n, after Lanckriet et al. 2004 and Bach et al. 2004.

Problem: the dual of min over B of max_{a in A} g(a) - 1/2 beta'q(a), with K_k = L_k L_k',

    max  g(a) - 1/2 s     over  a in A,   |L_k' a|^2 <= t_k for every k,   sigma_B(t) <= s

Given: a machine with linear g on a box with one equality, and a mixing whose support function has rows for a conic
solver; each kernel is factorised by its eigenvectors, tiny eigenvalues dropped.
Returned: weights, the multipliers of the p quadratic constraints, and the a of the programme itself, which is the one
that certifies where kernels are rank-deficient and a solution at fixed weights need not. When the pair misses the
tolerance, the inner solver polishes a at these weights, and the bound of the conic a is kept.

Reference: (4) in Sonnenburg et al. 2005 states the programme for the simplex. We differ in taking every norm, and in
solving again in units of the solution's own size when the first answer is not exact enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from multikernel.certificate import Certificate, certify
from multikernel.cones import boundary_point, solve_conic
from multikernel.mixing import ConeRows
from multikernel.problem import Point
from multikernel.solvers.base import Solver, Step

# bytes of the programme and of its factorisation for each entry of a kernel
_BYTES = 100


@dataclass
class _State:
    tol: float
    factors: list[np.ndarray]


@dataclass(frozen=True)
class QCQP(Solver):
    """One conic programme in Clarabel.

    Parameters
    ----------
    memory_limit : float
        Largest programme attempted, in bytes; about 100 bytes for each entry of each kernel.
    attempts : int
        Number of units in which the programme is tried.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.gram.dense import DenseGram
    >>> from multikernel.machines.svc import SVC
    >>> from multikernel.mixing import Simplex
    >>> from multikernel.problem import Problem
    >>> from multikernel.solve import solve
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> K = np.stack([np.outer(x, x), np.eye(4)])
    >>> solution = solve(Problem(DenseGram(K), SVC(np.sign(x)), Simplex()), "qcqp", tol=1e-6)
    >>> solution.weights.round(6), round(solution.upper, 6), solution.n_iter
    (array([1., 0.]), 0.5, 1)
    """

    requires: ClassVar[tuple[str, ...]] = ("machine.conic", "mixing.support_rows")

    memory_limit: float = 4e9
    attempts: int = 4

    def start(self, point: Point, tol: float) -> _State:
        gram = point.problem.gram
        needed = _BYTES * gram.n_kernels * gram.n_samples**2
        if needed > self.memory_limit:
            raise ValueError(
                f"The solver 'qcqp' needs about {needed / 1e9:.3g} GB for {gram.n_kernels} kernels on "
                f"{gram.n_samples} samples, more than its memory_limit of {self.memory_limit / 1e9:.3g} GB: "
                "it is meant for small problems, choose another solver."
            )
        everything = np.arange(gram.n_samples)
        factors = [
            _factor(gram.rows(everything, np.array([k]))[0].astype(np.float64)) for k in range(gram.n_kernels)
        ]
        return _State(tol, factors)

    def step(self, point: Point, state: _State, certificate: Certificate) -> Step:
        machine, mixing = point.problem.machine, point.problem.mixing
        conic = machine.conic()
        spread = max(float(np.mean(np.sum(L**2, axis=1))) for L in state.factors)
        largest = float(np.abs(np.concatenate([conic.lower, conic.upper])).max())
        unit = min(largest, 1.0 / spread) if spread > 0 else largest
        lower, best, found = -np.inf, np.inf, (point.beta, point.a)
        for _ in range(self.attempts):
            a, beta = _solve_programme(state.factors, conic, mixing, unit)
            point.set_weights(boundary_point(beta, mixing))
            point.set_dual(machine.repair(unit * a))
            now = certify(point)
            lower = max(lower, now.lower)
            if now.upper < best:
                best, found = now.upper, (point.beta, point.a)
            if best - lower <= state.tol * abs(best):
                break
            point.solve(0.1 * state.tol * abs(best))
            upper = certify(point).upper
            if upper < best:
                best, found = upper, (point.beta, point.a)
            if best - lower <= state.tol * abs(best):
                break
            size = float(np.abs(point.a).max())
            unit = size if size > 0 and not 0.3 < size / unit < 3 else 0.1 * unit
        point.set_weights(found[0])
        point.set_dual(found[1])
        return Step(lower, done=True)


def _factor(K: np.ndarray) -> np.ndarray:
    """L with K = L L' up to rounding."""
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    keep = values > 1e-14 * len(K) * max(values[-1], 0.0)
    return vectors[:, keep] * np.sqrt(values[keep])


def _solve_programme(factors, conic, mixing, unit) -> tuple[np.ndarray, np.ndarray]:
    """a / unit, and beta; a, s and t are measured in ``unit``, so that each L_k is multiplied by its root."""
    n, p = len(conic.linear), len(factors)
    support = mixing.support_rows(p)
    width = n + support.A.shape[1]
    a, t, s = np.arange(n), np.arange(n, n + p), n + p
    box = ConeRows(
        np.vstack([-np.eye(n), np.eye(n)]),
        np.concatenate([-conic.lower, conic.upper]) / unit,
        (("nonnegative", 2 * n),),
    )
    blocks = [(box, a), (support, np.arange(n, width))]
    if conic.equality is not None:
        blocks.append((ConeRows(conic.equality[None], np.array([conic.total / unit]), (("zero", 1),)), a))
    head = len(blocks)
    for k, L in enumerate(factors):
        # |L'a|^2 <= t  as  |((t - 1)/2, L'a)| <= (t + 1)/2
        rows = np.zeros((2 + L.shape[1], n + 1))
        rows[:2, n] = -0.5
        rows[2:, :n] = -np.sqrt(unit) * L.T
        b = np.zeros(len(rows))
        b[:2] = 0.5, -0.5
        blocks.append((ConeRows(rows, b, (("second_order", len(rows)),)), np.append(a, t[k])))
    cost = np.zeros(width)
    cost[a], cost[s] = -conic.linear, 0.5
    x, z = solve_conic(np.zeros(width), cost, blocks)
    return x[a], np.array([max(z_k[0] + z_k[1], 0.0) for z_k in z[head:]])
