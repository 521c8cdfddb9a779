"""EasyMKL against a quadratic programme, and its bounds."""

import numpy as np
import pytest
from problems_baselines import LABELS, ROWS, STACK, TWO, N
from reference_baselines import easy_mkl
from sklearn.exceptions import ConvergenceWarning

from multikernel import EasyMKLClassifier, stack_kernels


def unit_trace(K):
    return K / np.diagonal(K, axis1=1, axis2=2).mean(axis=1)[:, None, None]


@pytest.mark.parametrize("lam", [1e-3, 0.1, 0.7, 1.0])
def test_easymkl_agrees_with_a_quadratic_programme(lam):
    y = np.where(TWO[:N] == "yes", 1.0, -1.0)
    beta, a, intercept = easy_mkl(unit_trace(STACK), y, lam)
    model = EasyMKLClassifier("precomputed", lam=lam, tol=1e-11).fit(stack_kernels(STACK), TWO[:N])
    np.testing.assert_allclose(model.weights_, beta, atol=1e-6)
    rows = np.tensordot(beta, ROWS / np.diagonal(STACK, axis1=1, axis2=2).mean(axis=1)[:, None, None], 1)
    np.testing.assert_allclose(model.decision_function(stack_kernels(ROWS)), rows @ a + intercept, atol=1e-5)
    K = np.tensordot(beta, unit_trace(STACK), 1)
    assert model.objective_ == pytest.approx((1 - lam) * a @ K @ a + lam * a @ a, rel=1e-6)
    # the hulls are m / sqrt(h) apart: no gamma has a smaller value than m^2 / h
    own = np.zeros(N)
    own[model.support_] = model.dual_coef_
    assert own[y > 0].sum() == pytest.approx(1.0)
    assert own[y < 0].sum() == pytest.approx(-1.0)
    assert (y * own).min() >= 0
    f = (1 - lam) * np.tensordot(model.weights_, unit_trace(STACK), 1) @ own + lam * own
    h, m = own @ f, f[y > 0].min() - f[y < 0].max()
    assert model.objective_ == pytest.approx(h, rel=1e-12)
    assert model.duality_gap_ == pytest.approx(max(1 - m * m / h / h, 0), abs=1e-10)
    assert model.duality_gap_ <= 1e-11


@pytest.mark.parametrize("lam", [0.01, 0.5])
@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_the_bounds_of_easymkl_hold_the_optimum_at_any_tol(lam, tol):
    y = np.where(TWO[:N] == "yes", 1.0, -1.0)
    loose = EasyMKLClassifier("precomputed", lam=lam, tol=tol).fit(stack_kernels(STACK.astype(np.float32)), TWO[:N])
    assert loose.duality_gap_ <= tol
    from reference_baselines import solve_hulls

    K = np.tensordot(loose.weights_, unit_trace(STACK), 1)
    gamma = solve_hulls(K, y, lam)
    optimum = (1 - lam) * (y * gamma) @ K @ (y * gamma) + lam * gamma @ gamma
    assert loose.dual_objective_ <= optimum * (1 + 1e-5)
    assert loose.objective_ >= optimum * (1 - 1e-5)


def test_easymkl_takes_more_classes_one_against_the_rest():
    model = EasyMKLClassifier("precomputed", tol=1e-8).fit(stack_kernels(STACK), LABELS[:N])
    assert model.weights_.shape == (3, 3)
    outputs = model.decision_function(stack_kernels(ROWS))
    for u in range(3):
        alone = EasyMKLClassifier("precomputed", tol=1e-8).fit(stack_kernels(STACK), LABELS[:N] == u)
        np.testing.assert_allclose(alone.weights_, model.weights_[u], atol=1e-7)
        np.testing.assert_allclose(alone.decision_function(stack_kernels(ROWS)), outputs[:, u], atol=1e-6)
    assert model.score(stack_kernels(ROWS), LABELS[N:]) > 0.55


def test_easymkl_says_where_it_stopped():
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap of .* above tol=1e-30"):
        model = EasyMKLClassifier("precomputed", tol=1e-30).fit(stack_kernels(STACK), TWO[:N])
    assert model.duality_gap_ < 1e-10
    assert model.status_ == "stalled"


def test_single_precision_kernels_are_mixed_in_double_precision_for_a_small_tol():
    # rounded to the precision of the kernels the mix allows no gap below 1e-5
    model = EasyMKLClassifier("precomputed", tol=1e-8).fit(stack_kernels(STACK.astype(np.float32)), TWO[:N])
    assert model.status_ == "converged" and model.duality_gap_ <= 1e-8


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_weights_that_float64_cannot_work_with_are_refused():
    X = np.random.default_rng(0).normal(size=(20, 2))
    for weight, lam in ((1e100, 0.1), (1.0, 1e-300), (1e100, 1e-300)):
        with pytest.raises(ValueError, match="the sample weights over 'lam', must be at most"):
            EasyMKLClassifier(lam=lam).fit(X, np.arange(20) % 2, sample_weight=np.full(20, weight))
