"""MKLOneClass: what it learns, scikit-learn's conventions for outliers, what it refuses."""

import numpy as np
import pytest
from reference_tasks import conic_oneclass
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from multikernel import MKLOneClass, stack_kernels
from multikernel.kernels import RBF, Constant, Linear

TIGHT = {"tol": 1e-9, "max_iter": 2000}
RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(size=(60, 2)) * 0.5 + 2.0, RNG.normal(size=(60, 2)) * 0.5 - 2.0])
FAR = np.array([[9.0, -9.0], [0.0, 12.0], [-20.0, 0.0]])


def gaussians(X, Z):
    distance = np.square(X[:, None] - Z).sum(axis=2)
    return np.array([np.exp(-distance / width) for width in (0.5, 2.0, 8.0)])


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-8])
def test_at_most_a_fraction_nu_is_outside(nu, tol):
    model = MKLOneClass(nu=nu, tol=tol).fit(X)
    assert model.duality_gap_ <= tol
    assert np.mean(model.predict(X) == -1) <= nu
    assert len(model.support_) >= nu * len(X) - 1e-9
    if tol == 1e-8:
        assert np.mean(model.predict(X) == -1) >= nu - 4 / len(X)


@pytest.mark.parametrize("dtype, tol", [(np.float64, tol) for tol in (1e-1, 1e-3, 1e-6, 1e-9)] + [(np.float32, 1e-3)])
def test_the_certificate_is_that_of_the_published_border(dtype, tol):
    for nu in (0.13, 0.3, 0.814):
        K = gaussians(X, X).astype(dtype)
        model = MKLOneClass("precomputed", nu=nu, tol=tol, norm=2.0, normalize=None).fit(stack_kernels(K))
        decision = model.decision_function(stack_kernels(K))
        length = model.dual_coef_ @ (decision + model.offset_)[model.support_]
        value = 0.5 * length - model.offset_ + np.maximum(0.0, -decision).sum() / (nu * len(X))
        assert model.objective_ == pytest.approx(value, rel=1e-10)
        gap = (value - model.dual_objective_) / abs(value)
        assert gap <= model.duality_gap_ * (1 + 1e-9) <= tol and model.status_ == "converged"
        assert np.mean(decision < 0) <= nu


@pytest.mark.filterwarnings("ignore:.*(surround the origin|no further progress):UserWarning")
@pytest.mark.parametrize("weighted", [False, True])
def test_at_most_a_fraction_nu_is_outside_also_around_the_origin(weighted):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, nu = int(rng.integers(20, 110)), float(rng.uniform(0.05, 0.95))
        Z, weight = rng.normal(size=(n, 3)) + 0.1, rng.exponential(size=n) if weighted else np.ones(n)
        model = MKLOneClass([Linear()], nu=nu, tol=1e-6).fit(Z, sample_weight=weight)
        assert weight[model.predict(Z) == -1].sum() <= nu * weight.sum()


def test_far_points_are_outliers():
    model = MKLOneClass(nu=0.1).fit(X)
    assert model.predict(FAR).tolist() == [-1, -1, -1]
    assert model.predict(np.array([[2.0, 2.0], [-2.0, -2.0]])).tolist() == [1, 1]
    assert model.score_samples(FAR).max() < model.score_samples(X).min()


def test_the_scores_follow_the_conventions_of_scikit_learn():
    model = MKLOneClass(nu=0.2, norm=2.0)
    labels = model.fit_predict(X)
    np.testing.assert_array_equal(labels, model.predict(X))
    decision = model.decision_function(X)
    np.testing.assert_allclose(decision, model.score_samples(X) - model.offset_, atol=1e-12)
    np.testing.assert_array_equal(labels == 1, decision >= 0)
    assert model.intercept_ == -model.offset_ and set(labels) == {-1, 1}


@pytest.mark.parametrize("norm", [1.0, 4 / 3, 2.0, np.inf])
def test_the_objective_is_that_of_the_conventions(norm):
    K = gaussians(X, X)
    model = MKLOneClass("precomputed", nu=0.3, norm=norm, normalize=None, **TIGHT).fit(stack_kernels(K))
    assert model.objective_ == pytest.approx(conic_oneclass(K, 0.3, norm).value, rel=1e-6)
    assert model.dual_coef_.sum() == pytest.approx(1.0)
    assert np.all(model.dual_coef_ > 0) and model.dual_coef_.max() <= 1 / (0.3 * len(X))


def test_one_kernel_is_the_one_class_machine_of_scikit_learn():
    K, K_far = gaussians(X, X)[1], gaussians(FAR, X)[1]
    model = MKLOneClass("precomputed", nu=0.25, normalize=None, **TIGHT).fit(stack_kernels([K]))
    baseline = OneClassSVM(kernel="precomputed", nu=0.25, tol=1e-10).fit(K)
    # alpha there is nu n times ours
    np.testing.assert_allclose(
        model.score_samples(stack_kernels([K])) * 0.25 * 120, baseline.score_samples(K), atol=1e-4
    )
    np.testing.assert_allclose(model.offset_ * 0.25 * 120, baseline.offset_[0], atol=1e-4)
    np.testing.assert_allclose(
        model.decision_function(stack_kernels([K_far])) * 0.25 * 120, baseline.decision_function(K_far), atol=1e-4
    )


def test_weights_act_as_repetition():
    counts = np.random.default_rng(0).integers(0, 4, len(X))
    idx = np.repeat(np.arange(len(X)), counts)
    weighted, repeated = (
        MKLOneClass(nu=0.2, **TIGHT).fit(X, sample_weight=counts),
        MKLOneClass(nu=0.2, **TIGHT).fit(X[idx]),
    )
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-5)


def test_storage_does_not_matter():
    dense, lazy = MKLOneClass(nu=0.2, **TIGHT).fit(X), MKLOneClass(nu=0.2, gram="lazy", **TIGHT).fit(X)
    np.testing.assert_allclose(lazy.decision_function(FAR), dense.decision_function(FAR), atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*constant on the training:UserWarning")
def test_all_equal_samples_are_inliers():
    model = MKLOneClass([RBF(width=1.0), Constant()], normalize=None).fit(np.ones((10, 2)))
    assert model.predict(np.ones((3, 2))).tolist() == [1, 1, 1]


@pytest.mark.filterwarnings("ignore:.*constant on the training:UserWarning")
def test_one_sample():
    assert MKLOneClass([RBF(width=1.0)], normalize=None).fit(X[:1]).predict(X[:1]).tolist() == [1]


def test_inputs_are_not_modified():
    K = gaussians(X, X)
    K.flags.writeable = False
    MKLOneClass("precomputed").fit(stack_kernels(K))


# ---- bad input


@pytest.mark.parametrize("nu", [0.0, -0.1, 1.1, np.nan, "auto", True])
def test_nu_must_lie_above_zero_and_not_above_one(nu):
    with pytest.raises(ValueError) as error:
        MKLOneClass(nu=nu).fit(X)
    expected = f"The 'nu' parameter of MKLOneClass must be a number above 0 and at most 1. Got {nu!r} instead."
    assert str(error.value) == expected


@pytest.mark.parametrize("normalize", ["center", ["variance", "center"]])
def test_centring_is_refused(normalize):
    with pytest.raises(ValueError, match=r"must not include 'center': .*the optimum is zero. Got .*center.* instead"):
        MKLOneClass(normalize=normalize).fit(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_centred_kernels_are_refused(dtype):
    K = gaussians(X, X)
    K = (K - K.mean(1, keepdims=True) - K.mean(2, keepdims=True) + K.mean((1, 2), keepdims=True)).astype(dtype)
    with pytest.raises(ValueError, match=r"kernels of MKLOneClass must not be centred: .*the optimum is zero"):
        MKLOneClass("precomputed").fit(stack_kernels(K))
    with pytest.raises(ValueError, match="must not be centred"):
        MKLOneClass([Linear()]).fit(StandardScaler().fit_transform(X))
    # one kernel that is not centred is enough
    assert MKLOneClass([Linear(), RBF()]).fit(StandardScaler().fit_transform(X)).status_ == "converged"


def test_samples_around_the_origin_are_reported():
    with pytest.warns(UserWarning, match="samples surround the origin"):
        model = MKLOneClass([Linear()], nu=0.5).fit(X + 0.1)
    assert model.objective_ == pytest.approx(0.0, abs=1e-6)


def test_unfinished_fits_say_what_to_try():
    with pytest.warns(UserWarning, match=r"MKLOneClass reached max_iter.*\(c\) the solver 'level' is slow"):
        MKLOneClass(max_iter=1, tol=1e-9, solver="level").fit(X)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("nu", [5e-324, 1e-300, 1e-6])
def test_a_fraction_below_one_sample_leaves_none_outside(nu):
    for weight in (np.full(len(X), 1e100), None):
        model = MKLOneClass(nu=nu).fit(X, sample_weight=weight)
        assert np.all(model.predict(X) == 1) and np.isfinite(model.dual_coef_).all()
        assert model.objective_ == pytest.approx(MKLOneClass(nu=1e-3).fit(X).objective_, rel=2e-3)


def test_a_sample_that_has_all_coefficients_is_on_the_border():
    """nu n < 1: no coefficient reaches its bound, and a sample that has them all is on the border."""
    K = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0])
    model = MKLOneClass("precomputed", normalize=None, nu=0.2, tol=1e-9).fit(stack_kernels(K[None]))
    outputs = model.decision_function(stack_kernels(K[None]))
    assert model.support_.tolist() == [0] and outputs == pytest.approx([0.0, 1.0, 2.0, 3.0], abs=1e-9)
    assert model.objective_ == pytest.approx(0.5 + model.intercept_, abs=1e-9)
