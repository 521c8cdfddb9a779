"""MKLRegressor with the epsilon-insensitive loss: what it learns, what it keeps, what it predicts, what it refuses."""

import pickle

import numpy as np
import pytest
from reference_tasks import conic_svr
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import SVR

from multikernel import MKLRegressor, stack_kernels
from multikernel.kernels import RBF, Linear
from multikernel.losses import EpsilonInsensitive

TIGHT = {"tol": 1e-9, "max_iter": 2000}


def waves(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n) + 4.0


def gaussians(X, Z):
    distance = np.square(X[:, None] - Z).sum(axis=2)
    return np.array([np.exp(-distance / width) for width in (0.5, 2.0, 8.0)])


X, Y = waves()
X_TEST, Y_TEST = waves(60, seed=1)
KERNELS = [("wave", RBF(), [0]), ("line", Linear(), [1]), ("noise", RBF(), [2])]


def test_it_finds_the_kernels_that_matter():
    model = MKLRegressor(KERNELS, C=10.0).fit(X, Y)
    assert model.status_ == "converged" and model.duality_gap_ <= 1e-3
    assert model.kernel_names_ == ["wave", "line", "noise"]
    assert model.kernel_contributions_[:2].min() > 0.1 and model.kernel_contributions_[2] < 0.02
    assert model.score(X_TEST, Y_TEST) > 0.9
    assert model.weights_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("norm", [1.0, 4 / 3, 2.0, np.inf])
def test_the_objective_is_that_of_the_conventions(norm):
    K = gaussians(X, X)
    model = MKLRegressor("precomputed", norm=norm, C=2.0, epsilon=0.2, normalize=None, **TIGHT).fit(stack_kernels(K), Y)
    assert model.objective_ == pytest.approx(conic_svr(K, Y, 2.0, 0.2, norm).value, rel=1e-6)
    assert model.dual_objective_ <= model.objective_


@pytest.mark.parametrize("solver", ["newton", "silp", "sip", "level", "alternating", "simplemkl", "qcqp"])
def test_all_solvers_that_apply_agree(solver):
    model = MKLRegressor(KERNELS, solver=solver, tol=1e-5, max_iter=5000).fit(X[:40], Y[:40])
    expected = MKLRegressor(KERNELS, **TIGHT).fit(X[:40], Y[:40])
    assert model.objective_ == pytest.approx(expected.objective_, rel=2e-5)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_one_kernel_is_the_regression_of_scikit_learn(epsilon):
    K, K_test = gaussians(X, X)[1], gaussians(X_TEST, X)[1]
    model = MKLRegressor("precomputed", C=3.0, epsilon=epsilon, normalize=None, **TIGHT).fit(stack_kernels([K]), Y)
    baseline = SVR(kernel="precomputed", C=3.0, epsilon=epsilon, tol=1e-10).fit(K, Y)
    np.testing.assert_allclose(model.predict(stack_kernels([K_test])), baseline.predict(K_test), atol=1e-3)
    assert set(baseline.support_) >= set(model.support_[np.abs(model.dual_coef_) > 1e-3])


def test_weights_act_as_repetition():
    counts = np.random.default_rng(0).integers(0, 4, len(Y))
    idx = np.repeat(np.arange(len(Y)), counts)
    weighted = MKLRegressor(KERNELS, **TIGHT).fit(X, Y, sample_weight=counts)
    repeated = MKLRegressor(KERNELS, **TIGHT).fit(X[idx], Y[idx])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-7)
    np.testing.assert_allclose(weighted.predict(X_TEST), repeated.predict(X_TEST), atol=1e-4)
    assert np.all(counts[weighted.support_] > 0)


def test_the_prediction_is_the_expansion():
    K = gaussians(X, X)
    model = MKLRegressor("precomputed", normalize=None).fit(stack_kernels(K), Y)
    f = np.einsum("k,kij,j->i", model.weights_, K[:, :, model.support_], model.dual_coef_) + model.intercept_
    np.testing.assert_allclose(model.predict(stack_kernels(K)), f, atol=1e-10)
    residual = np.abs(Y - f)
    # errors clearly within the tube have no coefficient
    assert np.all(residual[model.support_] > 0.1 - 0.05)


@pytest.mark.parametrize("shift", [-1e6, 1e6])
def test_a_shift_of_the_targets_shifts_the_predictions(shift):
    here, there = MKLRegressor(KERNELS, **TIGHT).fit(X, Y), MKLRegressor(KERNELS, **TIGHT).fit(X, Y + shift)
    np.testing.assert_allclose(there.predict(X_TEST) - shift, here.predict(X_TEST), atol=1e-3)


def test_storage_and_kind_of_input_do_not_matter():
    dense = MKLRegressor(**TIGHT).fit(X, Y)
    for other in (MKLRegressor(gram="lazy", **TIGHT).fit(X, Y), MKLRegressor(**TIGHT).fit(sparse.csr_matrix(X), Y)):
        np.testing.assert_allclose(other.predict(X_TEST), dense.predict(X_TEST), atol=1e-4)


def test_a_column_of_targets_is_taken_with_a_warning():
    with pytest.warns(UserWarning, match="column-vector y"):
        model = MKLRegressor().fit(X, Y[:, None])
    assert model.predict(X).shape == Y.shape


def test_model_selection_and_pickle():
    K = stack_kernels(gaussians(X, X))
    search = GridSearchCV(MKLRegressor("precomputed"), {"C": [0.01, 10.0]}, cv=3).fit(K, Y)
    assert search.best_params_ == {"C": 10.0}
    model = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(model.predict(K), search.predict(K))


def test_inputs_are_not_modified():
    K, y = gaussians(X, X), Y.copy()
    K.flags.writeable = y.flags.writeable = False
    MKLRegressor("precomputed").fit(stack_kernels(K), y)


# ---- bad and borderline input


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_constant_targets_are_predicted(epsilon):
    model = MKLRegressor(epsilon=epsilon).fit(X, np.full(len(X), 3.25))
    assert model.status_ == "converged" and model.objective_ == 0.0 and len(model.support_) == 0
    np.testing.assert_allclose(model.predict(X_TEST), 3.25)


def test_targets_within_the_tube_are_a_constant():
    model = MKLRegressor(epsilon=100.0).fit(X, Y)
    assert np.ptp(model.predict(X_TEST)) == 0.0 and model.objective_ == 0.0


@pytest.mark.parametrize(
    ("name", "value", "rest"),
    [
        ("epsilon", -0.1, "a non-negative number. Got -0.1 instead."),
        ("epsilon", np.nan, "a non-negative number. Got nan instead."),
        ("epsilon", np.inf, "a non-negative number. Got inf instead."),
        ("C", 0.0, "a positive number. Got 0.0 instead."),
        ("loss", "hinge", "Got 'hinge' instead."),
    ],
)
def test_a_wrong_parameter_is_named(name, value, rest):
    with pytest.raises(ValueError) as error:
        MKLRegressor(**{name: value}).fit(X, Y)
    assert str(error.value).startswith(f"The '{name}' parameter of MKLRegressor must be ")
    assert str(error.value).endswith(rest)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_targets_must_be_finite(value):
    y = Y.copy()
    y[3] = value
    with pytest.raises(ValueError, match="y contains"):
        MKLRegressor().fit(X, y)


def test_targets_must_be_there_and_be_numbers():
    with pytest.raises(ValueError, match="requires y to be passed"):
        MKLRegressor().fit(X, None)
    with pytest.raises(ValueError, match=r"must hold numbers\. Got the text 'much' instead: for classes"):
        MKLRegressor().fit(X, np.array(["much"] * len(X)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MKLRegressor().fit(X, Y[:-1])


def test_several_targets_are_refused_with_a_way_out():
    both = np.column_stack([Y, -Y])
    with pytest.raises(ValueError, match=r"takes one target. Got y of shape \(80, 2\): use .*MultiOutputRegressor"):
        MKLRegressor().fit(X, both)
    model = MultiOutputRegressor(MKLRegressor(KERNELS)).fit(X, both)
    assert model.predict(X_TEST).shape == (60, 2)


def test_a_loss_with_its_own_epsilon_leaves_no_other():
    X = np.random.default_rng(0).normal(size=(30, 2))
    own = EpsilonInsensitive(epsilon=0.5)
    with pytest.raises(ValueError, match=r"'epsilon' parameter of MKLRegressor must be left out .* own. Got 0.2: use"):
        MKLRegressor(loss=own, epsilon=0.2).fit(X, X[:, 0])
    found = [
        MKLRegressor(loss=loss, epsilon=epsilon).fit(X, X[:, 0]).objective_
        for loss, epsilon in ((own, 0.1), (own, 0.5), ("epsilon_insensitive", 0.5))
    ]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("size", [1e153, 1e160, 1e300])
def test_targets_whose_losses_no_number_holds_are_refused(size):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=r"targets of MKLRegressor must .* at most 2e\+304.* divide y"):
        MKLRegressor(loss="squared").fit(X, size * X[:, 0])
    # the loss of a tube grows like the targets
    assert np.isfinite(MKLRegressor().fit(X, size * X[:, 0]).objective_)
