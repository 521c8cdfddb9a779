"""Kernels on the classes: the machine and the Gram of products against a conic solver and against laws."""

from __future__ import annotations

import numpy as np
import pytest
from problems import KINDS
from reference_joint import (
    all_pairs,
    conic_joint,
    conic_products,
    joint_infeasibility,
    product_bounds,
    product_forms,
)
from scipy.optimize import linprog

from multikernel.gram.dense import AffineForm, DenseGram
from multikernel.gram.product import ProductGram
from multikernel.kernels import pairwise_output_kernels
from multikernel.machines.joint import class_products as products
from multikernel.machines.joint.class_products import ProductCrammerSinger
from multikernel.machines.joint.crammer_singer import CrammerSinger
from multikernel.machines.joint.product_loops import best_row, product_block
from multikernel.machines.svc import SVC
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Point, Problem
from multikernel.solve import solve
from multikernel.solvers import choose_solver

NORMS = (1.0, 4 / 3, 2.0, np.inf)


def output_kernels(c, kind, rng) -> np.ndarray:
    """Some kernels on the classes: the identity, low ranks, one contrast."""
    low = rng.normal(size=(c, 2))
    contrast = np.eye(c)[0] - np.eye(c)[1]
    families = [
        [np.eye(c)],
        [np.eye(c), low @ low.T],
        [low @ low.T, np.outer(contrast, contrast), np.ones((c, c)) + np.eye(c)],
        [np.diag(rng.uniform(0.1, 2.0, c))],
    ]
    return np.array(families[kind % 4])


def draw(index, n=None, norm=None, fit_intercept=None):
    """Problem number ``index``: kernels, kernels on the classes, classes, C, norm, whether there are biases."""
    rng = np.random.default_rng([11, index])
    c = 2 + index % 5
    n = max(c, int(np.exp(rng.uniform(np.log(6), np.log(45))))) if n is None else n
    X = rng.normal(size=(n, 6))
    y = np.argsort(np.argsort(X[:, 0] + 0.5 * rng.normal(size=n))) * c // n
    stack = np.array(KINDS[list(KINDS)[index % len(KINDS)]][0](X, int(rng.integers(1, 4)), rng))
    stack = (stack + stack.transpose(0, 2, 1)) / 2
    C = float(10.0 ** rng.uniform(-2, 2))
    norm = NORMS[index % 4] if norm is None else norm
    biased = bool(index // 2 % 2) if fit_intercept is None else fit_intercept
    return stack, output_kernels(c, index // 3, rng), y, C, norm, biased


def run(stack, outputs, y, C, norm, fit_intercept, solver="auto", tol=1e-6, pairs=None):
    machine = ProductCrammerSinger(y, C, fit_intercept, outputs.shape[1])
    return solve(Problem(ProductGram(DenseGram(stack), outputs, pairs), machine, mixing_for(norm)), solver, tol=tol)


def check(solution, stack, outputs, y, C, norm, fit_intercept, pairs=None):
    """The status, the set A, the gap recomputed, and the optimum."""
    pairs = all_pairs(stack, outputs) if pairs is None else pairs
    assert solution.status == "converged" and solution.gap <= 1e-6
    assert joint_infeasibility(solution.dual_coef, y, C, fit_intercept) < 1e-9
    args = solution.weights, solution.dual_coef, solution.intercept, fit_intercept
    lower, upper = product_bounds(stack, outputs, pairs, y, C, norm, *args)
    assert upper == pytest.approx(solution.upper, rel=1e-9)
    assert lower <= upper * (1 + 1e-12)
    optimum = conic_products(stack, outputs, pairs, y, C, norm, fit_intercept)
    assert solution.upper == pytest.approx(optimum, rel=1e-5)
    assert solution.lower <= optimum * (1 + 1e-7) and solution.upper >= optimum * (1 - 1e-7)


@pytest.mark.parametrize("index", range(40))
def test_agrees_with_the_conic_solver(index):
    problem = draw(index)
    check(run(*problem), *problem)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize(
    "solver", ["qcqp", "qcqp-compact", "silp", "silp-compact", "sip", "level", "alternating", "simplemkl", "newton"]
)
def test_every_solver_reaches_the_optimum(solver, norm, fit_intercept):
    if norm != 1 and solver in ("silp", "silp-compact", "simplemkl"):
        pytest.skip("the solver is for other norms")
    problem = draw(4, n=16, norm=norm, fit_intercept=fit_intercept)
    check(run(*problem, solver=solver), *problem)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("index", [1, 2, 8])
def test_the_four_forms_of_the_joint_problem_agree(index, fit_intercept):
    """(7), (9), (11) and the compact twin of (11) in Zien & Ong 2007, without kernels on the classes."""
    stack, _, y, C, *_ = draw(index, n=18)
    c = 2 + index % 5
    machine = CrammerSinger(y, C, fit_intercept, c)
    optimum = conic_joint(stack, y, C, 1.0, c, fit_intercept)
    for solver in ("qcqp", "qcqp-compact", "silp", "silp-compact"):
        solution = solve(Problem(DenseGram(stack), machine, mixing_for(1.0)), solver, tol=1e-6)
        assert solution.status == "converged", solver
        assert solution.upper == pytest.approx(optimum, rel=1e-5), solver


def test_compact_variables_are_those_of_the_paper():
    """(8): A_iu = -x_iu off the own class, and A_iy the sum of the row."""
    rng = np.random.default_rng(0)
    y = np.array([0, 2, 1, 2])
    conic = CrammerSinger(y, 2.0).compact()
    x = rng.uniform(size=len(conic.linear))
    A = (conic.lift @ x).reshape(4, 3)
    np.testing.assert_allclose(A.sum(axis=1), 0.0, atol=1e-15)
    np.testing.assert_allclose(A[np.arange(4), y], x.reshape(4, 2).sum(axis=1))
    np.testing.assert_allclose(np.asarray(conic.sums @ x), A[np.arange(4), y])
    np.testing.assert_allclose(np.asarray(conic.equality @ x), A.sum(axis=0)[1:])


@pytest.mark.parametrize("solver", ["qcqp-compact", "silp-compact"])
def test_compact_forms_of_other_problems_are_refused(solver):
    problem = Problem(DenseGram(np.eye(4)[None]), SVC(np.array([1.0, -1.0, 1.0, -1.0])), mixing_for(1.0))
    with pytest.raises(ValueError, match="the loss 'hinge', only with the joint loss 'hinge' of more than two"):
        solve(problem, solver)


def test_a_programme_too_large_is_refused():
    y = np.arange(3000) % 3
    gram = DenseGram(np.broadcast_to(np.eye(3000, dtype=np.float32), (2, 3000, 3000)))
    with pytest.raises(ValueError, match="meant for small problems"):
        solve(Problem(gram, CrammerSinger(y), mixing_for(1.0)), "qcqp-compact")


def test_auto_takes_cuts_where_products_are_many():
    y = np.arange(20) % 20
    gram = ProductGram(DenseGram(np.eye(20)[None]), pairwise_output_kernels(20))
    assert choose_solver(Problem(gram, ProductCrammerSinger(y), mixing_for(1.0)))[0] in ("level", "alternating")
    few = ProductGram(DenseGram(np.eye(20)[None]), pairwise_output_kernels(20)[:5])
    assert choose_solver(Problem(few, ProductCrammerSinger(y), mixing_for(1.0)))[0] == "newton"


# ---- laws


def test_the_identity_is_the_problem_without_kernels_on_the_classes():
    stack, _, y, C, norm, biased = draw(3, n=24)
    plain = solve(Problem(DenseGram(stack), CrammerSinger(y, C, biased, 5), mixing_for(norm)), tol=1e-7)
    assert run(stack, np.eye(5)[None], y, C, norm, biased).upper == pytest.approx(plain.upper, rel=2e-6)


def loss_of_biases(y, c):
    """Return the least sum of hinge losses of all classes for outputs that are biases alone, by linear programming."""
    counts = np.bincount(y, minlength=c)
    rows = [np.eye(c)[u] - np.eye(c)[v] for v in range(c) for u in range(c) if u != v]
    # b_u - b_v - xi_v <= -1 for all u other than v, xi >= 0
    slack = [-np.eye(c)[v] for v in range(c) for u in range(c) if u != v]
    bounds = [(None, None)] * c + [(0, None)] * c
    A = np.hstack([rows, slack])
    return linprog(np.concatenate([np.zeros(c), counts]), A_ub=A, b_ub=-np.ones(len(A)), bounds=bounds).fun


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_factors_may_stand_on_either_side_and_constants_count_for_nothing(fit_intercept):
    stack, outputs, y, C, _, _ = draw(8, n=20)
    c = outputs.shape[1]
    value = run(stack, outputs, y, C, 1.0, fit_intercept).upper
    assert run(3 * stack, outputs / 3, y, C, 1.0, fit_intercept).upper == pytest.approx(value, rel=5e-6)
    # rows of A sum to zero: Y + v1' + 1v' is Y
    v = np.full((c, c), 2.0)
    assert run(stack, outputs + v, y, C, 1.0, fit_intercept).upper == pytest.approx(value, rel=5e-6)
    # and a constant kernel on the classes has q = 0
    flat = run(stack, np.ones((1, c, c)), y, C, 1.0, fit_intercept)
    expected = loss_of_biases(y, c) if fit_intercept else len(y)
    assert flat.upper == pytest.approx(C * expected, rel=5e-6)
    assert np.abs(product_forms(stack, np.ones((1, c, c)), [(0, 0)], flat.dual_coef)).max() < 1e-8


def test_permuting_the_classes_permutes_the_kernels_on_them():
    stack, outputs, y, C, norm, biased = draw(13, n=20)
    order = np.random.default_rng(0).permutation(outputs.shape[1])
    other = np.empty_like(outputs)
    other[:, order[:, None], order] = outputs
    one = run(stack, outputs, y, C, norm, biased).upper
    assert run(stack, other, order[y], C, norm, biased).upper == pytest.approx(one, rel=5e-6)


def test_a_list_of_pairs_is_a_part_of_the_full_product():
    stack, outputs, y, C, _, _ = draw(8, n=20)
    stack = np.array([stack[0], np.eye(20)])
    pairs = np.array([(0, 0), (1, len(outputs) - 1)])
    solution = run(stack, outputs, y, C, 1.0, True, pairs=pairs)
    check(solution, stack, outputs, y, C, 1.0, True, pairs=[tuple(pair) for pair in pairs])
    assert solution.upper >= run(stack, outputs, y, C, 1.0, True).upper * (1 - 1e-6)


# ---- the parts


def random_products(n=9, c=4, p=2, m=3, seed=0):
    rng = np.random.default_rng(seed)
    X, V = rng.normal(size=(p, n, 3)), rng.normal(size=(m, c, 2))
    return X @ X.transpose(0, 2, 1), V @ V.transpose(0, 2, 1), rng


def test_the_gram_of_products_is_the_kronecker_product():
    stack, outputs, rng = random_products()
    base = DenseGram(stack)
    gram = ProductGram(base, outputs, np.array([(0, 1), (1, 0), (1, 2)]))
    A, beta = rng.normal(size=(9, 4)), rng.uniform(size=3)
    each = np.array([(np.kron(stack[k], outputs[m]) @ A.ravel()).reshape(9, 4) for k, m in gram.pairs])
    found = gram.new_outputs(A.shape)
    assert not found.kernel_outputs().any()
    found.update(A)
    # what is kept is one array for each kernel on the samples
    assert found.known()[1].shape == (2, 9, 4)
    np.testing.assert_allclose(found.kernel_outputs(), each)
    np.testing.assert_allclose(found.kernel_outputs(np.array([5, 2])), each[:, [5, 2]])
    np.testing.assert_allclose(gram.apply(A, np.array([2, 0])), each[[2, 0]])
    np.testing.assert_allclose(found.mix(beta), np.tensordot(beta, each, 1))
    np.testing.assert_allclose(found.quadratic_forms(), np.tensordot(each, A, 2))
    np.testing.assert_allclose(gram.rows(np.arange(9)), stack[[0, 1, 1]])
    np.testing.assert_allclose(gram.diag(), base.diag()[[0, 1, 1]])


@pytest.mark.parametrize(
    ("beta", "terms", "in_place"),
    [([1, 0, 0, 0, 2, 0], 2, True), ([1, 1, 1, 0, 0, 0], 1, True), ([0.5, 0, 0, 1, 0, 0], 1, False)],
)
@pytest.mark.parametrize("scattered", [False, True])
def test_the_combined_product_takes_the_shorter_sum(beta, terms, in_place, scattered):
    stack, outputs, rng = random_products()
    beta = np.array(beta, float)
    form = AffineForm(np.array([2.0, 3.0]))
    gram = ProductGram(DenseGram(list(stack) if scattered else stack, form), outputs)
    combined = gram.combined(beta)
    assert len(combined.W) == terms and bool(combined.host_rows().have.all()) == (in_place and not scattered)
    delta = np.zeros((9, 4))
    delta[[1, 5]] = rng.normal(size=(2, 4))
    expected = np.tensordot(beta, gram.apply(delta), 1)
    np.testing.assert_allclose(combined.apply(delta), expected, atol=1e-12)
    combined.host_rows().ensure(np.arange(9))
    np.testing.assert_allclose(combined.apply(delta), expected, atol=1e-12)
    combined.set_weights(beta[::-1].copy())
    np.testing.assert_allclose(combined.apply(delta), np.tensordot(beta[::-1], gram.apply(delta), 1), atol=1e-12)


@pytest.mark.loops
def test_best_row_comes_near_the_maximum_over_its_set():
    rng = np.random.default_rng(0)
    room = [np.empty(4) for _ in range(3)]
    d, some = np.empty(4), np.empty(4, np.intp)
    for _ in range(20):
        V, g = rng.normal(size=(4, 4)), rng.normal(size=4)
        H, C, y = V @ V.T + 0.1 * np.eye(4), rng.uniform(0.5, 2.0), int(rng.integers(4))
        k, bound, values = np.linalg.eigvalsh(H)[-1], C * np.eye(4)[y], [0.0]
        now = np.zeros(4)
        for _ in range(60):
            m = best_row(H - 0.1 * np.eye(4), 0.1, k, g - H @ now, now, C, y, 10, d, some, *room)
            assert set(some[:m]) == set(np.flatnonzero(d))
            now = now + d
            assert abs(now.sum()) < 1e-12 and (now <= bound + 1e-15).all()
            values.append(g @ now - 0.5 * now @ H @ now)
        # it ascends, the first time half of the way, and at the end no vertex of the linearised problem is better
        assert np.all(np.diff(values) >= -1e-12) and values[1] >= 0.5 * values[-1]
        slope = g - H @ now
        assert C * (slope[y] - slope.min()) - slope @ now < 1e-3 * (1.0 + abs(values[-1]))


@pytest.mark.loops
def test_product_block_is_the_kernel_of_differences():
    stack, outputs, _ = random_products(n=5)
    i, u, v = np.array([0, 0, 2, 4]), np.array([1, 2, 0, 3]), np.array([0, 0, 3, 1])
    M = np.empty((4, 4))
    scale = np.array([0.5, 2.0])
    product_block(stack, np.array([1, 0]), scale, outputs[:2], i, u, v, 0, 4, M)
    full = 0.5 * np.kron(stack[1], outputs[0]) + 2.0 * np.kron(stack[0], outputs[1])
    B = np.zeros((4, 20))
    B[np.arange(4), i * 4 + u] += 1
    B[np.arange(4), i * 4 + v] -= 1
    np.testing.assert_allclose(M, B @ full @ B.T, atol=1e-12)


@pytest.mark.loops
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_tiny_problem(fit_intercept):
    problem = draw(6, n=8, norm=2.0, fit_intercept=fit_intercept)
    check(run(*problem), *problem)


def test_too_many_free_entries_are_moved_in_part(monkeypatch):
    problem = draw(13, n=40, norm=1.0, fit_intercept=True)
    monkeypatch.setattr(products, "_TOGETHER", 12)
    check(run(*problem), *problem)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_curvature_predicts_the_next_solution(fit_intercept):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 3))
    y = np.argmax(X + 0.5 * rng.normal(size=X.shape), axis=1)
    outputs = np.array([np.eye(3), [[1.0, 0.8, 0], [0.8, 1.0, 0], [0, 0, 1.0]]])
    gram = ProductGram(DenseGram(np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))[None]), outputs)
    problem = Problem(gram, ProductCrammerSinger(y, 1.0, fit_intercept), mixing_for(1.0))
    beta, move = np.array([0.4, 0.6]), np.array([1e-4, -1e-4])
    here, there = Point(problem, beta), Point(problem, beta + move)
    for point in (here, there):
        point.solve(1e-12)
    c = problem.machine.curvature(here.combined, here.a, here.f, here.outputs)
    change, predicted = there.a - here.a, np.zeros_like(here.a)
    predicted[c.free] = -c.response @ move
    np.testing.assert_allclose(predicted, change, atol=0.02 * np.abs(change).max())
    np.testing.assert_allclose(-0.5 * (there.q - here.q), c.H @ move, rtol=0.02)
