"""Machines and solvers on kernels that hide their matrices, as a device would: they reach the same optimum."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import multikernel
from multikernel.gram.base import Gram, Outputs
from multikernel.gram.combined import Cholesky, Combined
from multikernel.gram.dense import DenseGram
from multikernel.gram.dense_loops import add_row_products
from multikernel.losses import Logistic, SquaredHinge
from multikernel.machines.box_ascent import nearest
from multikernel.machines.joint.crammer_singer import CrammerSinger
from multikernel.machines.joint.joint_loss import JointLoss
from multikernel.machines.oneclass import OneClass
from multikernel.machines.ridge import Ridge
from multikernel.machines.smooth import Smooth
from multikernel.machines.svc import SVC
from multikernel.machines.svr import SVR
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Point, Problem
from multikernel.solve import solve
from multikernel.threads import Team

LIMIT = 64


class HiddenOutputs(Outputs):
    """K_k a by whole products, no row of any kernel being read."""

    def __init__(self, gram, coef, F):
        self.gram, self.coef, self._F = gram, coef, F

    def update(self, coef, kernels=None):
        kernels = np.arange(len(self._F)) if kernels is None else kernels
        self._F[kernels] = self.gram.apply(coef, kernels)
        self.coef = coef

    def put(self, kernels, part):
        self._F[kernels] = part.kernel_outputs() if isinstance(part, Outputs) else part

    def take(self, kernels):
        return HiddenOutputs(self.gram.take_kernels(kernels), self.coef, self._F[kernels])

    def quadratic_forms(self):
        return np.tensordot(self._F, self.coef, self.coef.ndim)

    def mix(self, beta):
        return np.tensordot(beta, self._F, 1)

    def kernel_outputs(self, rows=None):
        return self._F if rows is None else self._F[:, rows]

    def known(self):
        return self.coef, self._F.copy()


class HiddenCombined(Combined):
    """K_beta somewhere else: blocks of at most ``LIMIT`` samples come to the host, larger ones are counted."""

    host_limit = LIMIT

    def __init__(self, stack, beta, fetched):
        self._stack, self._fetched = stack, fetched
        self.dtype, self.team = stack.dtype, Team()
        self.set_weights(beta)

    def set_weights(self, beta):
        self.beta, self.cache = beta, {}
        self._K = np.tensordot(beta, self._stack, 1)
        self.diag = np.diagonal(self._K).copy()

    @property
    def means(self):
        return self._K.mean(axis=1)

    def apply(self, delta, exact=True):
        return self._K @ delta

    def block(self, idx, dtype=None):
        self._fetched.append(len(idx))
        return self._K[np.ix_(idx, idx)].astype(self.dtype if dtype is None else dtype)

    def factor(self, idx, diagonal, single=False):
        A = self._K[np.ix_(idx, idx)].copy()
        A.flat[:: len(A) + 1] += diagonal
        try:
            return Cholesky(A, self.team)
        except np.linalg.LinAlgError:
            return None


class HiddenGram(Gram):
    """What the contract asks for and no more."""

    kind = "hidden"

    def __init__(self, stack, fetched):
        self._stack, self.fetched = stack, fetched
        self.n_kernels, self.n_samples, self.dtype = len(stack), stack.shape[1], stack.dtype

    def diag(self):
        return np.diagonal(self._stack, axis1=1, axis2=2).copy()

    def apply(self, v, kernels=None):
        return (self._stack if kernels is None else self._stack[kernels]) @ v

    def new_outputs(self, shape, known=None):
        coef, F = (np.zeros(shape), np.zeros((self.n_kernels, *shape))) if known is None else known
        return HiddenOutputs(self, coef, F.copy())

    def rows(self, idx, kernels=None):
        return (self._stack if kernels is None else self._stack[kernels])[:, idx]

    def block(self, idx):
        return self._stack[:, idx[:, None], idx]

    def combined(self, beta):
        return HiddenCombined(self._stack, beta, self.fetched)

    def take_samples(self, idx):
        return HiddenGram(self.block(idx), self.fetched)

    def take_kernels(self, kernels):
        return HiddenGram(self._stack[kernels], self.fetched)

    def rescaled(self, factor):
        return HiddenGram(self._stack * factor, self.fetched)


def samples(n=150, p=6, seed=0):
    """Stack of Gaussian kernels, labels, targets and three classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    stack = np.array([np.exp(-((x[:, None] - x) ** 2)) for x in X.T])
    t = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=n)
    return stack, np.where(t > np.median(t), 1.0, -1.0), t, np.digitize(t, np.quantile(t, [1 / 3, 2 / 3]))


STACK, LABELS, TARGETS, CLASSES = samples()

MACHINES = {
    "svc": lambda: SVC(LABELS, 3.0),
    "svc, large costs": lambda: SVC(LABELS, 300.0),
    "svc without intercept": lambda: SVC(LABELS, 3.0, False),
    "svr": lambda: SVR(TARGETS, 3.0, 0.1),
    "svr without intercept": lambda: SVR(TARGETS, 3.0, 0.1, False),
    "one class": lambda: OneClass(np.ones(len(LABELS)), 0.3),
    "ridge": lambda: Ridge(TARGETS, 2.0, True),
    "ridge, columns": lambda: Ridge(np.eye(3)[CLASSES], 2.0, True),
    "logistic": lambda: Smooth(LABELS, Logistic(), 3.0, True),
    "squared hinge": lambda: Smooth(LABELS, SquaredHinge(), 3.0),
}
JOINT = {
    "hinge": lambda: CrammerSinger(CLASSES, 3.0, True),
    "hinge without biases": lambda: CrammerSinger(CLASSES, 3.0, False),
    "logistic of all classes": lambda: JointLoss(CLASSES, Logistic(), 3.0, True),
    "largest squared margin": lambda: JointLoss(CLASSES, SquaredHinge(), 3.0, False),
}


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("kind", [*MACHINES, *JOINT])
def test_a_hidden_matrix_has_the_same_optimum(kind, norm):
    make, fetched = {**MACHINES, **JOINT}[kind], []
    expected = solve(Problem(DenseGram(STACK), make(), mixing_for(norm)), tol=1e-6)
    found = solve(Problem(HiddenGram(STACK, fetched), make(), mixing_for(norm)), tol=1e-6)
    assert found.status == expected.status == "converged"
    assert found.upper == pytest.approx(expected.upper, rel=2e-6)
    assert found.weights == pytest.approx(expected.weights, abs=1e-2)
    # machines of the box read blocks, machines of all classes single rows, the others solve where the matrix is
    assert max(fetched, default=0) <= LIMIT
    assert bool(fetched) == isinstance(make(), (SVC, SVR, OneClass))


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("kind", [name for name in MACHINES if name.startswith(("svc", "svr", "one"))])
def test_products_with_the_kernel_are_enough_for_a_box(kind, norm, monkeypatch):
    """Machines of a box read no entry of a kernel whose products are cheap."""
    expected = solve(Problem(DenseGram(STACK), MACHINES[kind](), mixing_for(norm)), tol=1e-6)
    monkeypatch.setattr(HiddenCombined, "by_products", True)
    fetched = []
    found = solve(Problem(HiddenGram(STACK, fetched), MACHINES[kind](), mixing_for(norm)), tol=1e-5)
    assert found.status == "converged" and not fetched
    assert found.upper == pytest.approx(expected.upper, rel=2e-5)


@pytest.mark.loops
@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("soft", [0.0, 0.3])
@pytest.mark.parametrize("start", [0.0, 5.0, -5.0])
def test_nearest_solves_the_projection(balanced, soft, start):
    """x is in the box, sums to the total, and no pair of coordinates, nor a single one, can come nearer."""
    rng = np.random.default_rng(0)
    v, lo, hi = rng.normal(size=40), -rng.uniform(0.1, 1, 40), rng.uniform(0.1, 1, 40)
    v[:4], total, x = v[0], 1.5, np.empty(40)
    b = nearest(v, lo, hi, soft, total, balanced, start, x)
    assert np.all(x >= lo) and np.all(x <= hi)
    slope = v - b - x
    if balanced:
        assert x.sum() == pytest.approx(total, abs=1e-10)
    else:
        assert b == 0.0
    assert np.all(slope[x == lo] <= 1e-9 - soft * (lo < 0)[x == lo]) and np.all(slope[x == hi] >= soft - 1e-9)
    inside = (x > lo) & (x < hi) & (x != 0)
    np.testing.assert_allclose(slope[inside], soft * np.sign(x[inside]), atol=1e-9)
    assert np.all(np.abs(slope[x == 0]) <= soft + 1e-9)


@pytest.mark.parametrize("solver", ["newton", "active-set", "alternating", "level", "sip", "silp", "simplemkl", "qcqp"])
def test_every_solver_takes_a_hidden_matrix(solver):
    fetched = []
    expected = solve(Problem(DenseGram(STACK), SVC(LABELS, 3.0), mixing_for(1.0)), tol=1e-6)
    found = solve(Problem(HiddenGram(STACK, fetched), SVC(LABELS, 3.0), mixing_for(1.0)), solver, tol=1e-5)
    assert found.status == "converged"
    assert found.upper == pytest.approx(expected.upper, rel=2e-5)
    assert max(fetched, default=0) <= LIMIT


def test_working_sets_do_not_need_the_accuracy_of_the_last_one():
    """A part of a solution, by working sets, brings the dual value up, and no block is larger than allowed."""
    fetched = []
    machine, gram = SVC(LABELS, 3.0), HiddenGram(STACK, fetched)
    combined = gram.combined(np.full(len(STACK), 1 / len(STACK)))
    a, value = machine.start(), 0.0
    for _ in range(4):
        a = machine.partial_solve(combined, a, combined.apply(a), 0.0, 100)
        now = machine.dual(a) - 0.5 * a @ combined.apply(a)
        assert now > value
        value = now
    # two sets of at most 64 samples a call
    assert len(fetched) == 8 and max(fetched) <= LIMIT


@pytest.mark.parametrize("kind", MACHINES)
def test_machines_and_grams_are_not_changed_by_what_is_asked_of_them(kind):
    """Calls in random order on one machine and one Gram give the bits that new ones give."""
    rng = np.random.default_rng(0)
    betas = [np.full(6, 1 / 6), np.array([0.5, 0.0, 0.25, 0.25, 0.0, 0.0])]

    def parts(machine, gram, beta):
        problem = Problem(gram, machine, mixing_for(1.0))
        first = problem.machine.start()
        starts = [first, machine.make_feasible(first + 0.1)]
        point = Point(problem, beta, starts[1])
        solved = Point(problem, beta, starts[0])
        solved.solve(1e-3 * machine.scale)
        yield from (lambda: [point.certificate.upper, point.certificate.lower], lambda: point.q)
        yield from (lambda: solved.a, lambda: [solved.certificate.upper, solved.certificate.lower])
        yield lambda: machine.solve(gram.combined(beta), starts[1], point.f, 1e-2 * machine.scale)
        yield lambda: machine.curvature(gram.combined(beta), solved.a, solved.f, solved.outputs).H
        if hasattr(machine, "partial_solve"):
            yield lambda: machine.partial_solve(gram.combined(beta), starts[1], point.f, 1e-2 * machine.scale, 40)

    expected = [np.asarray(call()) for beta in betas for call in parts(MACHINES[kind](), DenseGram(STACK), beta)]
    machine, gram = MACHINES[kind](), DenseGram(STACK)
    calls = [call for beta in betas for call in parts(machine, gram, beta)]
    for i in np.concatenate([rng.permutation(len(calls)) for _ in range(3)]):
        np.testing.assert_array_equal(np.asarray(calls[i]()), expected[i])


def test_a_newcomer_has_ten_methods_to_know():
    public = {name for name, value in vars(Gram).items() if callable(value) and not name.startswith("_")}
    assert public == {
        "apply", "block", "combined", "diag", "new_outputs", "rescaled", "rows", "stored", "take_kernels",
        "take_samples",
    }  # fmt: skip


def matrices_read(path: Path) -> list[str]:
    """Return what stands before .matrix, .have and .ensure in a file."""
    tree = ast.parse(path.read_text())
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return [ast.unparse(each.value) for each in attributes if each.attr in ("matrix", "have", "ensure")]


def test_matrices_are_read_through_host_rows_alone():
    package = Path(multikernel.__file__).parent
    assert not [each for path in (package / "solvers").rglob("*.py") for each in matrices_read(path)]
    machines = {each for path in (package / "machines").rglob("*.py") for each in matrices_read(path)}
    # names that hold a HostRows
    assert machines == {"rows", "self.rows", "K"}


def test_outputs_are_updated_once_when_they_are_read(monkeypatch):
    updates = []
    update = HiddenOutputs.update

    def counted(self, coef, kernels=None):
        updates.append(coef)
        update(self, coef, kernels)

    monkeypatch.setattr(HiddenOutputs, "update", counted)
    machine = SVC(LABELS, 3.0)
    point = Point(Problem(HiddenGram(STACK, []), machine, mixing_for(1.0)))
    starts = [machine.make_feasible(t * LABELS) for t in (0.1, 0.2, 0.3)]
    for a in starts:
        point.set_dual(a)
    assert not updates
    for _ in range(2):
        np.testing.assert_allclose(point.q, np.einsum("kij,i,j->k", STACK, starts[2], starts[2]))
        np.testing.assert_allclose(point.f, np.tensordot(point.beta, STACK, 1) @ starts[2])
        point.certificate
    assert len(updates) == 1 and updates[0] is starts[2]
    # other weights ask for no outputs of single kernels
    point.set_weights(np.eye(6)[0])
    np.testing.assert_allclose(point.f, STACK[0] @ starts[2])
    assert len(updates) == 1


@pytest.mark.loops
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_with_columns_are_added_for_any_number_of_rows_and_columns(dtype):
    rng = np.random.default_rng(0)
    for rows in (1, 4, 6):
        for columns in range(1, 9):
            K, V = rng.normal(size=(rows, 10)).astype(dtype), rng.normal(size=(columns, 10))
            out = rng.normal(size=(rows, columns))
            expected = out + K.astype(float) @ V.T
            add_row_products(K, V, out)
            np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)
