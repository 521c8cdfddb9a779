"""Two-stage estimators against their two stages: weights, then any machine on the mixed kernel."""

import numpy as np
import pytest
from problems_baselines import KERNELS, LABELS, NUMBERS, ROWS, STACK, TEST, TWO, N, X
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, SVR, NuSVC

from multikernel import TwoStageClassifier, TwoStageRegressor, stack_kernels
from multikernel.estimators import baselines as twostage
from multikernel.training.mixture import linear_coefficients


def test_two_stages_are_the_weights_then_the_machine():
    K = STACK / [[[v]] for v in (np.trace(k) / N - k.mean() for k in STACK)]
    model = TwoStageClassifier("precomputed").fit(stack_kernels(STACK), LABELS[:N])
    weights = twostage.AlignFWeights().fit(K, LABELS[:N]).weights_
    np.testing.assert_allclose(model.weights_, weights, atol=1e-9)
    scale = weights / [np.trace(k) / N - k.mean() for k in STACK]
    machine = SVC(kernel="precomputed").fit(np.tensordot(scale, STACK, 1), LABELS[:N])
    rows = np.tensordot(scale, ROWS, 1)
    np.testing.assert_array_equal(model.predict(stack_kernels(ROWS)), machine.predict(rows))
    np.testing.assert_allclose(model.decision_function(stack_kernels(ROWS)), machine.decision_function(rows), atol=1e-5)
    assert model.kernel_names_ == ["kernel_0", "kernel_1", "kernel_2"]


@pytest.mark.parametrize(
    "normalize", [None, "variance", "cosine", ["center", "cosine"], ["cosine", "center", "trace"]], ids=str
)
@pytest.mark.parametrize("storage", ["dense", "lazy", "memmap"])
def test_computed_and_precomputed_kernels_agree_whatever_the_storage(normalize, storage):
    model = TwoStageClassifier(KERNELS, normalize=normalize, gram=storage).fit(X[:N], TWO[:N])
    diag = np.stack([np.ones(TEST), np.ones(TEST), np.square(X[N:, [0, 3]]).sum(axis=1)])
    other = TwoStageClassifier("precomputed", normalize=normalize).fit(stack_kernels(STACK), TWO[:N])
    np.testing.assert_allclose(model.weights_, other.weights_, atol=1e-7)
    expected = other.decision_function(stack_kernels(ROWS, diag=diag))
    np.testing.assert_allclose(model.decision_function(X[N:]), expected, atol=2e-3)
    np.testing.assert_array_equal(model.predict(sparse.csr_array(X[N:])), np.where(expected > 0, "yes", "no"))
    assert model.gram_.kind == storage


def test_any_predictor_on_a_precomputed_kernel_will_do():
    stack, rows, y = stack_kernels(STACK), stack_kernels(ROWS), LABELS[:N]
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": [0.1, 10.0]}, cv=3)
    model = TwoStageClassifier("precomputed", estimator=search).fit(stack, y)
    assert set(model.estimator_.best_params_) == {"C"}
    assert not hasattr(model, "kernel_contributions_")
    assert model.predict(rows).shape == (TEST,)
    nu = TwoStageClassifier("precomputed", estimator=NuSVC(kernel="precomputed")).fit(stack, y)
    assert nu.kernel_contributions_.sum() == pytest.approx(1.0)
    assert not hasattr(nu, "predict_proba")
    model.set_params(
        estimator=SVC(kernel="precomputed"), estimator__C=3.0, weights=twostage.PWMKWeights(), weights__cv=2
    )
    assert (model.get_params()["estimator__C"], clone(model).weights.cv) == (3.0, 2)
    assert model.fit(stack, y).weights_.sum() == pytest.approx(1.0)


def test_probabilities_are_there_where_the_predictor_has_them():
    class Guess(KNeighborsClassifier):
        """Takes similarities instead of distances, for the shape of things."""

    model = TwoStageClassifier("precomputed", estimator=Guess(metric="precomputed"), normalize=None)
    assert hasattr(model, "predict_proba")
    assert not hasattr(model, "decision_function")
    shares = model.fit(stack_kernels(STACK - STACK.min() + 0.1 * np.eye(N)), LABELS[:N], None).predict_proba(
        stack_kernels(ROWS - ROWS.min())
    )
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    with pytest.raises(ValueError, match=r"must take sample weights\. Got Guess"):
        model.fit(stack_kernels(STACK - STACK.min() + 0.1 * np.eye(N)), LABELS[:N], np.arange(N) + 1.0)


def test_regressors_of_one_and_several_targets():
    one = TwoStageRegressor(KERNELS).fit(X[:N], NUMBERS[:N])
    assert one.score(X[N:], NUMBERS[N:]) > 0.5
    assert isinstance(one.estimator_, SVR)
    # whole numbers are numbers here, not classes
    whole = TwoStageRegressor(KERNELS).fit(X[:N], np.round(3 * NUMBERS[:N]))
    expected = twostage.AlignFWeights().fit(_normalised(), np.round(3 * NUMBERS[:N]), task="regression").weights_
    np.testing.assert_allclose(whole.weights_, expected, atol=1e-8)
    ridge = TwoStageRegressor(KERNELS, estimator=KernelRidge(alpha=0.1, kernel="precomputed"))
    both = ridge.fit(X[:N], np.column_stack([NUMBERS, -2 * NUMBERS])[:N])
    np.testing.assert_allclose(both.predict(X[N:]) @ [2.0, 1.0], 0.0, atol=1e-9)
    assert both.kernel_contributions_.sum() == pytest.approx(1.0)


def _normalised():
    return STACK / [[[v]] for v in (np.trace(k) / N - k.mean() for k in STACK)]


def test_an_object_of_your_own_gives_the_weights():
    class Last(BaseEstimator):
        def fit(self, stack, y, sample_weight=None):
            self.weights_ = np.eye(stack.n_kernels)[-1]
            return self

    model = TwoStageClassifier("precomputed", weights=Last(), normalize=None).fit(stack_kernels(STACK), TWO[:N])
    alone = SVC(kernel="precomputed").fit(STACK[2], TWO[:N])
    np.testing.assert_allclose(
        model.decision_function(stack_kernels(ROWS)), alone.decision_function(ROWS[2]), atol=1e-9
    )
    np.testing.assert_allclose(model.kernel_contributions_, [0, 0, 1], atol=1e-12)


def test_contributions_are_shares_of_the_outputs_of_all_pairs():
    machine = SVC(kernel="precomputed", decision_function_shape="ovo").fit(STACK[1], LABELS[:N])
    A = linear_coefficients(machine, N)
    np.testing.assert_allclose(STACK[1] @ A + machine.intercept_, machine.decision_function(STACK[1]), atol=1e-10)
    model = TwoStageClassifier("precomputed", normalize=None).fit(stack_kernels(STACK), LABELS[:N])
    A = linear_coefficients(model.estimator_, N)
    parts = np.array([w * K @ A for w, K in zip(model.weights_, STACK, strict=True)])
    parts -= parts.mean(axis=1, keepdims=True)
    expected = np.einsum("knt,nt->k", parts, parts.sum(axis=0)) / np.sum(parts.sum(axis=0) ** 2)
    np.testing.assert_allclose(model.kernel_contributions_, expected, atol=1e-9)


@pytest.mark.parametrize("repair", ["clip", "shift", "flip"])
def test_repaired_kernels_predict_as_repaired(repair):
    K = STACK.copy()
    values, U = np.linalg.eigh(K[0])
    values[:5] = -0.1
    K[0] = (U * values) @ U.T
    K[0] = 0.5 * (K[0] + K[0].T)
    weight = np.ones(N)
    weight[::7] = 0
    for sample_weight in (None, weight):
        model = TwoStageClassifier("precomputed", psd=repair, normalize=None, weights=twostage.UniformWeights())
        model.fit(stack_kernels(K), TWO[:N], sample_weight)
        kept = np.arange(N) if sample_weight is None else np.flatnonzero(weight)
        A = linear_coefficients(model.estimator_, len(kept))[:, 0]
        values, U = np.linalg.eigh(K[0][np.ix_(kept, kept)])
        if repair == "shift":
            own = ROWS[0][:, kept]
        else:
            change = (values > 0) if repair == "clip" else np.sign(values)
            own = ROWS[0][:, kept] @ (U * change) @ U.T
        rows = (own + ROWS[1][:, kept] + ROWS[2][:, kept]) / 3
        expected = rows @ A + model.estimator_.intercept_[0]
        np.testing.assert_allclose(model.decision_function(stack_kernels(ROWS)), expected, atol=1e-6)
