"""Theorems of the papers: all forms of joint MKL have one optimum; the weights have norm one."""

import numpy as np
import pytest

from multikernel import MKLClassifier, stack_kernels
from multikernel.datasets import make_simplex
from multikernel.kernels import RBF


def small_problem(n=24, classes=3):
    X, y = make_simplex(n, n_classes=classes, random_state=0)
    return np.array([RBF(width=width)(X) for width in (0.3, 1.0, 4.0)]), y


@pytest.mark.parametrize("C", [0.5, 20.0])
def test_all_forms_of_figure_1_of_zien_and_ong_have_one_optimum(C):
    cp = pytest.importorskip("cvxpy")
    K, y = small_problem()
    n, classes = len(y), 3
    options = {"multiclass": "joint", "normalize": None, "C": C, "tol": 1e-7, "n_jobs": 1}
    duals = {
        solver: MKLClassifier("precomputed", solver=solver, **options).fit(stack_kernels(K), y)
        for solver in ("auto", "qcqp", "qcqp-compact", "silp", "silp-compact")
    }
    values = np.array([model.objective_ for model in duals.values()])
    np.testing.assert_allclose(values, values[0], rtol=1e-5)
    # the convex primals: (4) with weights, and the block norm without them
    factors = [np.linalg.cholesky(each + 1e-10 * np.eye(n)) for each in K]
    V = [cp.Variable((n, classes)) for _ in K]
    b, beta = cp.Variable(classes), cp.Variable(len(K))
    f = sum(L @ each for L, each in zip(factors, V, strict=True))
    f = f + np.ones((n, 1)) @ cp.reshape(b, (1, classes), order="C")
    own = np.eye(classes)[y]
    true = cp.reshape(cp.sum(cp.multiply(own, f), axis=1), (n, 1), order="C") @ np.ones((1, classes))
    loss = C * cp.sum(cp.pos(cp.max(f + 1.0 - own - true, axis=1)))
    weighted = 0.5 * sum(cp.quad_over_lin(cp.vec(each, order="C"), beta[k]) for k, each in enumerate(V)) + loss
    block = 0.5 * cp.square(sum(cp.norm(each, "fro") for each in V)) + loss
    for objective, constraints in ((weighted, [cp.sum(beta) == 1, beta >= 0]), (block, [])):
        problem = cp.Problem(cp.Minimize(objective), constraints)
        problem.solve(solver=cp.CLARABEL)
        assert problem.value == pytest.approx(values[0], rel=1e-5)
    # the primals that are not convex, (3) and its rescaling, at our solution
    model = duals["auto"]
    A = np.zeros((n, classes))
    A[model.support_] = model.dual_coef_.T
    q = np.einsum("ic,kij,jc->k", A, K, A)
    scores = model.decision_function(stack_kernels(K))
    true = scores[np.arange(n), y]
    wrong = np.where(own > 0, -np.inf, scores).max(axis=1)
    hinge = C * np.maximum(0.0, 1.0 - true + wrong).sum()
    for regulariser in (0.5 * model.weights_ @ q, 0.5 * (model.weights_ @ np.sqrt(q)) ** 2):
        assert regulariser + hinge == pytest.approx(values[0], rel=1e-5)


@pytest.mark.parametrize("norm", [1.5, 2.0, 4.0])
@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
def test_theorem_1_of_kloft_et_al_the_weights_have_norm_one(norm, C):
    K, y = small_problem(30, 2)
    stack = stack_kernels(K + 1e-6 * np.eye(30))
    model = MKLClassifier("precomputed", norm=norm, C=C, normalize=None, tol=1e-5).fit(stack, y)
    assert np.linalg.norm(model.weights_, norm) == pytest.approx(1.0, abs=1e-6)
    assert (model.weights_ > 0).all()
